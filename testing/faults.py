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

    async def page(*connection: Any) -> None:
        body = before + gzip_bomb(300)
        await raw(GZIP + length(body) + body)(*connection)

    return page


async def inflating_404(*connection: Any) -> None:
    """Send data that inflates to 60 MiB, with a 404."""
    body = zlib.compress(bytes(60 * MIB))
    head = b"HTTP/1.1 404 No\r\nContent-Encoding: deflate\r\n"
    await raw(head + length(body) + body)(*connection)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = HEAD + b"Content-Encoding: gzip\r\n"
PACKED = gzip.compress(RULES, mtime=0)
PATHS = ("/private", "/public")
"""Pages to request. :func:`outcome_of` tells from them how a robots.txt was understood."""

# What a response means (RFC 9309 §2.3.1).
RULES_HOLD = "rules"
ALLOWED = "unavailable"
DISALLOWED = "unreachable"
RULES_HOLD_OR_NOT = f"{RULES_HOLD} or {DISALLOWED}"
"""Scrapy's download handlers differ."""

_TOO_LARGE: dict[str, dict[str, Page | Misbehaviour]] = {
    RULES_HOLD: {
        "has no end": endless(HEAD + b"\r\n", RULES),
        "has 10 GB": endless(HEAD + b"Content-Length: 10000000000\r\n\r\n", RULES),
        "inflates to 300 MiB": inflating(),
        "has chunks without end": endless(CHUNKED, chunked(RULES), chunked(b"# nothing\n" * 1000)),
        "inflates to 300 MiB in its second member": inflating(gzip_bomb(0)),
    },
    DISALLOWED: {
        "has a gzip header without end": endless(
            GZIP + b"\r\n", b"\x1f\x8b\x08\x08" + bytes(6), b"name" * 2500
        ),
        "has brotli without end": endless(HEAD + b"Content-Encoding: br\r\n\r\n", bytes(100)),
    },
}
_FAULTS: dict[str, dict[str, Page | Misbehaviour]] = {
    DISALLOWED: {
        # The connection
        "closes without a word": raw(b""),
        "resets before the headers": raw(b"", reset=True),
        "resets after the headers": raw(HEAD + length(RULES), reset=True),
        "resets within the body": raw(HEAD + length(RULES) + RULES[:9], reset=True),
        "closes within the headers": raw(HEAD),
        "closes within the body": raw(HEAD + length(RULES) + RULES[:9]),
        "stalls before the headers": stall(),
        "stalls within the headers": stall(HEAD),
        "stalls within the body": stall(HEAD + length(RULES) + RULES[:9]),
        "trickles its headers": trickle(HEAD + b"X-Slow: "),
        "trickles its body": trickle(HEAD + length(RULES * 100)),
        # The framing and the coding
        "announces more than it has": raw(HEAD + length(RULES + b"x") + RULES),
        "leaves the last chunk out": raw(CHUNKED + chunked(RULES)),
        "cuts a chunk off": raw(CHUNKED + chunked(RULES)[:9]),
        "breaks the length of a chunk": raw(CHUNKED + chunked(RULES) + b"what?\r\n" + RULES),
        "sends gzip that is none": raw(GZIP + length(RULES) + RULES),
        "cuts gzip off": raw(GZIP + length(PACKED[:-5]) + PACKED[:-5]),
        "sends an unknown coding": Page(RULES, headers={"Content-Encoding": "rot13"}),
        # The head
        "is no HTTP at all": raw(b"SSH-2.0-OpenSSH_9.7\r\n"),
        "has no status": raw(b"HTTP/1.1 fine\r\n\r\n" + RULES),
        "has an endless header": endless(HEAD + b"X-Long: ", piece=b"x" * 10_000),
        # Redirects
        "redirects to a file": redirect("file:///etc/passwd"),
        "redirects to no URL": redirect("http://[::1/robots.txt"),
        "redirects to no host": redirect("http://no..host/robots.txt"),
        "redirects nowhere": Page(b"", 302),
        "redirects to a closed port": redirect("http://127.0.0.1:1/robots.txt"),
        # Statuses
        "has too many requests": Page(RULES, 429),
        "is in pieces": Page(RULES, 206),
        "has not changed, unasked": Page(b"", 304),
        "has several choices": Page(RULES, 300, {"Location": "/r"}),
        "is down": Page(RULES, 503),
        "has a status of its own": Page(RULES, 999),
        **_TOO_LARGE[DISALLOWED],
    },
    ALLOWED: {
        "redirects to itself": redirect("/robots.txt"),
        # Statuses, with all kinds of bodies
        "is missing, with rules": Page(RULES, 404),
        "is missing, in gzip that is none": Page(RULES, 404, {"Content-Encoding": "gzip"}),
        "is missing, in brotli that is none": Page(b"\xff no", 404, {"Content-Encoding": "br"}),
        "is missing, inflating to 60 MiB": inflating_404,
        "is missing, cut off": raw(b"HTTP/1.1 404 No\r\n" + length(RULES) + RULES[:9]),
        "is missing, without end": endless(b"HTTP/1.1 404 No\r\n\r\n"),
        "is forbidden": Page(RULES, 403),
        # Contents
        "is empty": text(b""),
        "has no content": raw(b"HTTP/1.1 204 None\r\n\r\n"),
        "is a page": Page(b"<html><body>Not found</body></html>"),
        "is one long line": text(b"a" * MIB),
    },
    RULES_HOLD: {
        "announces nothing and closes": raw(HEAD + b"\r\n" + RULES),
        "sends proper chunks": raw(
            CHUNKED + chunked(RULES[:9]) + chunked(RULES[9:]) + b"0\r\n\r\n"
        ),
        "sends proper gzip": raw(GZIP + length(PACKED) + PACKED),
        "is binary": text(bytes(range(256)) * 100 + b"\n" + RULES),
        "is in UTF-16": text(RULES.decode().encode("utf-16")),
        **_TOO_LARGE[RULES_HOLD],
    },
    RULES_HOLD_OR_NOT: {
        "has more than it announces": raw(HEAD + length(RULES) + RULES + b"Allow: /private\n")
    },
}
"""Responses to a request for robots.txt, by what they mean."""

MEANINGS = {name: meaning for meaning, pages in _FAULTS.items() for name in pages}
"""The outcomes that the fault of each name may have."""
TOO_LARGE = [name for pages in _TOO_LARGE.values() for name in pages]


def fault(name: str) -> Page | Misbehaviour:
    """The page with the fault of this name."""
    return _FAULTS[MEANINGS[name]][name]


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
