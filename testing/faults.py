"""Broken responses for :mod:`testing.web`, and errors that nobody foresaw."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
import socket
import struct
import zlib
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache, wraps
from itertools import pairwise
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

from testing.web import Misbehaviour, Page, Received, Site, redirect, text

RULES = b"User-agent: *\nDisallow: /private\n"
MIB = 1 << 20
LONG = 3600
"""Seconds: longer than any test."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


def raw(*pieces: bytes, pause: float = 0, reset: bool = False) -> Misbehaviour:
    """Send the pieces, with a pause between them, and close or reset the connection."""

    async def page(_: Received, __: StreamReader, writer: StreamWriter) -> None:
        for number, piece in enumerate(pieces):
            if number:
                await asyncio.sleep(pause)
            writer.write(piece)
            await writer.drain()
        if reset:
            await asyncio.sleep(0.05)  # until the octets have arrived
            with contextlib.suppress(OSError):  # the client has closed it
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, linger
                )
            writer.transport.abort()

    return page


def stall(*pieces: bytes) -> Misbehaviour:
    """Send the pieces, and keep the connection open."""
    return raw(*pieces, b"", pause=LONG) if pieces else raw(b"", b"", pause=LONG)


def answer_when(condition: Callable[[], object], page: Page) -> Misbehaviour:
    """Send ``page`` after its delay, once the condition holds, and close the connection."""

    async def wait(_: Received, __: StreamReader, writer: StreamWriter) -> None:
        while not condition():  # noqa: ASYNC110 - it may change in another thread
            await asyncio.sleep(0.02)
        await asyncio.sleep(page.delay)
        writer.write(replace(page, headers={**page.headers, "Connection": "close"}).octets())
        await writer.drain()

    return wait


async def silence(_: Received, reader: StreamReader, __: StreamWriter) -> None:
    """Send nothing until the client closes the connection."""
    await reader.read()


def trickle(head: bytes, seconds: float = 0.05) -> Misbehaviour:
    """Send the head, and then one octet at a time."""
    return raw(head, *(bytes([octet]) for octet in RULES * 100), pause=seconds)


def endless(head: bytes, body: bytes = b"", piece: bytes = b"# nothing\n" * 1000) -> Misbehaviour:
    """Send head and body, and then the piece again and again while the client reads."""

    async def page(_: Received, __: StreamReader, writer: StreamWriter) -> None:
        writer.write(head + body)
        while True:
            writer.write(piece)
            await writer.drain()

    return page


def chunked(body: bytes) -> bytes:
    """A body as one chunk (RFC 9112 §7.1)."""
    return b"%x\r\n" % len(body) + body + b"\r\n"


@lru_cache
def gzip_bomb(mebibytes: int, start: bytes = RULES) -> bytes:
    """Gzip data that inflates to ``start`` and a comment of so many MiB (RFC 1952)."""
    start += b"#"
    comment = bytes(MIB)
    checksum = zlib.crc32(start)
    for _ in range(mebibytes):
        checksum = zlib.crc32(comment, checksum)
    size = (len(start) + mebibytes * MIB) % 2**32
    # A part after a full flush refers to nothing before it, so each MiB has the same data.
    parts = _deflated(start) + _deflated(comment) * mebibytes
    end = _deflated(b"", zlib.Z_FINISH)
    return b"\x1f\x8b\x08" + bytes(7) + parts + end + struct.pack("<II", checksum, size)


def _deflated(data: bytes, flush: int = zlib.Z_FULL_FLUSH) -> bytes:
    coder = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return coder.compress(data) + coder.flush(flush)


def length(body: bytes) -> bytes:
    """The Content-Length header of a body, and the end of the head."""
    return b"Content-Length: %d\r\n\r\n" % len(body)


def inflating(before: bytes = b"") -> Misbehaviour:
    """Send gzip data that inflates to 300 MiB, after other members of the file."""
    body = before + gzip_bomb(300)
    return raw(GZIP + length(body) + body)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = HEAD + b"Content-Encoding: gzip\r\n"
PACKED = gzip.compress(RULES, mtime=0)
PATHS = ("/private", "/public")
"""Pages to request. :func:`outcome_of` tells from them how a robots.txt was understood."""

# Responses to a request for robots.txt, and what they mean (RFC 9309 §2.3.1): the rules hold,
# everything is allowed, or everything is disallowed.
RULES_HOLD = "rules"
ALLOWED = "unavailable"
DISALLOWED = "unreachable"
RULES_HOLD_OR_NOT = f"{RULES_HOLD} or {DISALLOWED}"
"""Scrapy's download handlers differ."""

_FAULTS: dict[str, tuple[Callable[[], Page | Misbehaviour], str]] = {
    # The connection
    "closes without a word": (lambda: raw(b""), DISALLOWED),
    "resets before the headers": (lambda: raw(b"", reset=True), DISALLOWED),
    "resets after the headers": (lambda: raw(HEAD + length(RULES), reset=True), DISALLOWED),
    "resets within the body": (
        lambda: raw(HEAD + length(RULES) + RULES[:9], reset=True),
        DISALLOWED,
    ),
    "closes within the headers": (lambda: raw(HEAD), DISALLOWED),
    "closes within the body": (lambda: raw(HEAD + length(RULES) + RULES[:9]), DISALLOWED),
    "stalls before the headers": (stall, DISALLOWED),
    "stalls within the headers": (lambda: stall(HEAD), DISALLOWED),
    "stalls within the body": (lambda: stall(HEAD + length(RULES) + RULES[:9]), DISALLOWED),
    "trickles its headers": (lambda: trickle(HEAD + b"X-Slow: "), DISALLOWED),
    "trickles its body": (lambda: trickle(HEAD + length(RULES * 100)), DISALLOWED),
    # The framing
    "announces more than it has": (lambda: raw(HEAD + length(RULES + b"x") + RULES), DISALLOWED),
    "has more than it announces": (
        lambda: raw(HEAD + length(RULES) + RULES + b"Allow: /private\n"),
        RULES_HOLD_OR_NOT,
    ),
    "announces nothing and closes": (lambda: raw(HEAD + b"\r\n" + RULES), RULES_HOLD),
    "sends proper chunks": (
        lambda: raw(CHUNKED + chunked(RULES[:9]) + chunked(RULES[9:]) + b"0\r\n\r\n"),
        RULES_HOLD,
    ),
    "leaves the last chunk out": (lambda: raw(CHUNKED + chunked(RULES)), DISALLOWED),
    "cuts a chunk off": (lambda: raw(CHUNKED + chunked(RULES)[:9]), DISALLOWED),
    "breaks the length of a chunk": (
        lambda: raw(CHUNKED + chunked(RULES) + b"what?\r\n" + RULES),
        DISALLOWED,
    ),
    # The coding
    "sends proper gzip": (lambda: raw(GZIP + length(PACKED) + PACKED), RULES_HOLD),
    "sends gzip that is none": (lambda: raw(GZIP + length(RULES) + RULES), DISALLOWED),
    "cuts gzip off": (lambda: raw(GZIP + length(PACKED[:-5]) + PACKED[:-5]), DISALLOWED),
    "sends an unknown coding": (
        lambda: Page(RULES, headers={"Content-Encoding": "rot13"}),
        DISALLOWED,
    ),
    # The head
    "is no HTTP at all": (lambda: raw(b"SSH-2.0-OpenSSH_9.7\r\n"), DISALLOWED),
    "has no status": (lambda: raw(b"HTTP/1.1 fine\r\n\r\n" + RULES), DISALLOWED),
    "has an endless header": (
        lambda: endless(HEAD + b"X-Long: ", piece=b"x" * 10_000),
        DISALLOWED,
    ),
    # Redirects
    "redirects to itself": (lambda: redirect("/robots.txt"), ALLOWED),
    "redirects to a file": (lambda: redirect("file:///etc/passwd"), DISALLOWED),
    "redirects to no URL": (lambda: redirect("http://[::1/robots.txt"), DISALLOWED),
    "redirects to no host": (lambda: redirect("http://no..host/robots.txt"), DISALLOWED),
    "redirects nowhere": (lambda: Page(b"", 302), DISALLOWED),
    "redirects to a closed port": (lambda: redirect("http://127.0.0.1:1/robots.txt"), DISALLOWED),
    # Statuses, with all kinds of bodies
    "is missing, with rules": (lambda: Page(RULES, 404), ALLOWED),
    "is missing, in gzip that is none": (
        lambda: Page(RULES, 404, {"Content-Encoding": "gzip"}),
        ALLOWED,
    ),
    "is missing, in brotli that is none": (
        lambda: Page(b"\xff rubbish", 404, {"Content-Encoding": "br"}),
        ALLOWED,
    ),
    "is missing, inflating to 60 MiB": (
        lambda: Page(zlib.compress(bytes(60 * MIB)), 404, {"Content-Encoding": "deflate"}),
        ALLOWED,
    ),
    "is missing, cut off": (
        lambda: raw(b"HTTP/1.1 404 No\r\n" + length(RULES) + RULES[:9]),
        ALLOWED,
    ),
    "is missing, without end": (lambda: endless(b"HTTP/1.1 404 No\r\n\r\n"), ALLOWED),
    "is forbidden": (lambda: Page(RULES, 403), ALLOWED),
    "has too many requests": (lambda: Page(RULES, 429), DISALLOWED),
    "is in pieces": (lambda: Page(RULES, 206), DISALLOWED),
    "has not changed, unasked": (lambda: Page(b"", 304), DISALLOWED),
    "has several choices": (lambda: Page(RULES, 300, {"Location": "/r"}), DISALLOWED),
    "is down": (lambda: Page(RULES, 503), DISALLOWED),
    "has a status of its own": (lambda: Page(RULES, 999), DISALLOWED),
    # Contents
    "is empty": (lambda: text(b""), ALLOWED),
    "has no content": (lambda: raw(b"HTTP/1.1 204 None\r\n\r\n"), ALLOWED),
    "is a page": (lambda: Page(b"<html><body>Not found</body></html>"), ALLOWED),
    "is binary": (lambda: text(bytes(range(256)) * 100 + b"\n" + RULES), RULES_HOLD),
    "is one long line": (lambda: text(b"a" * MIB), ALLOWED),
    "is in UTF-16": (lambda: text(RULES.decode().encode("utf-16")), RULES_HOLD),
    "has no end": (lambda: endless(HEAD + b"\r\n", RULES), RULES_HOLD),
    "has 10 GB": (
        lambda: endless(HEAD + b"Content-Length: 10000000000\r\n\r\n", RULES),
        RULES_HOLD,
    ),
    "inflates to 300 MiB": (inflating, RULES_HOLD),
    "has chunks without end": (
        lambda: endless(CHUNKED, chunked(RULES), chunked(b"# nothing\n" * 1000)),
        RULES_HOLD,
    ),
    "inflates to 300 MiB in its second member": (lambda: inflating(gzip_bomb(0)), RULES_HOLD),
    "has a gzip header without end": (
        lambda: endless(GZIP + b"\r\n", b"\x1f\x8b\x08\x08" + bytes(6), b"name" * 2500),
        DISALLOWED,
    ),
    "has brotli without end": (
        lambda: endless(HEAD + b"Content-Encoding: br\r\n\r\n", bytes(100)),
        DISALLOWED,
    ),
}

NAMES = tuple(_FAULTS)
TOO_LARGE = NAMES[NAMES.index("has no end") :]


def fault(name: str) -> Page | Misbehaviour:
    """The page with the fault of this name."""
    return _FAULTS[name][0]()


def meaning_of(name: str) -> str:
    """The outcomes that the fault of this name may have."""
    return _FAULTS[name][1]


def endless_redirects(hops: int) -> dict[str, Page | Misbehaviour]:
    """Pages ``/robots.txt``, ``/hop/1`` …: so many redirects, and rules at the end."""
    paths = ["/robots.txt", *(f"/hop/{number}" for number in range(1, hops + 1))]
    pages: dict[str, Page | Misbehaviour] = {
        path: redirect(target) for path, target in pairwise(paths)
    }
    return {**pages, paths[-1]: text(RULES)}


def outcome_of(site: Site) -> str:
    """The outcome of a robots.txt, by the PATHS that the server received."""
    outcomes = {("/public",): RULES_HOLD, PATHS: ALLOWED, (): DISALLOWED}
    received = tuple(path for path in site.page_paths if path in PATHS)
    return outcomes.get(received, repr(received))


@dataclass(frozen=True)
class ErrorFault:
    """Errors that nobody foresaw, in some calls of a function."""

    place: str
    error: type[BaseException]
    share: float
    """Which part of the calls fails."""
    seed: int

    def injected(self) -> AbstractContextManager[object]:
        """Return a context manager that replaces the function."""
        return patch(self.place, self._failing(resolve_name(self.place)))

    def _failing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its errors."""
        chance = random.Random(self.seed)

        def fail() -> None:
            if chance.random() < self.share:
                raise self.error("unforeseen")

        if asyncio.iscoroutinefunction(function):

            @wraps(function)
            async def call_async(*arguments: Any, **options: Any) -> Any:
                fail()
                return await function(*arguments, **options)

            return call_async

        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            fail()
            return function(*arguments, **options)

        return call
