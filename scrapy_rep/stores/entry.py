"""What a store keeps of one origin, and the octets in which it keeps it.

    octets = version deflated
    deflated: zlib (RFC 1950), with the preset dictionary of the version, of
    content = head [LF body]        head: a JSON object, fields that are empty left out

The checksum of zlib tells an entry that is damaged. What another version has written is not read.
Others may write to a store, too: what is read from it is bounded, and every value is checked.
"""

from __future__ import annotations

import json
import re
import zlib
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.access import MAX_RETRY_AFTER
from ..protocol.lines import SIZE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable


class Outcome(str, Enum):
    """What the last fetch came to."""

    RULES = "rules"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"

    def __str__(self) -> str:
        return self.value


class Entry(NamedTuple):
    """One origin's robots.txt. Times are seconds since 1970."""

    kind: Outcome
    fetched_at: float
    """When the last fetch ended, whatever it came to."""
    refresh_at: float
    """Until then nobody need ask the site."""
    expires_at: float = 0
    """Until then what it said holds."""
    body: bytes | None = None
    """The last good copy, as it came, up to the size limit."""
    copy_url: str | None = None
    etag: str | None = None
    last_modified: str | None = None
    lifetime: float | None = None
    status: int | None = None
    """The status of the last answer; None where there was no HTTP answer."""
    url: str | None = None
    """Where the last answer came from, after redirects."""
    failure: str | None = None
    """Why the origin is unreachable, in words."""
    unreachable_since: float | None = None
    failures: int = 0
    disallow_all: bool = False


BODY_LIMIT = SIZE_LIMIT + 1
"""Octets of a body: one more than are read, so that a cut line is known to be one."""

URL_LIMIT = 8000
"""RFC 9110, section 4.1: "It is RECOMMENDED that all senders and recipients support, at a minimum,
URIs with lengths of 8000 octets"."""

FAILURE_LIMIT = 1000
VALIDATOR_LIMIT = 256

HEAD_LIMIT = 1 << 16
"""Octets: more than the longest URLs, validators and failure come to, each character escaped."""

CONTENT_LIMIT = HEAD_LIMIT + 1 + BODY_LIMIT
OCTETS_LIMIT = CONTENT_LIMIT + CONTENT_LIMIT // 1000 + 100
"""Octets of an entry: deflate makes nothing longer than by 1 in 4,000, and its own few octets."""

LATEST = 253_402_300_800.0
"""The first second of the year 10000. No time is later."""

MAX_FAILURES = 1_000_000_000

_URL = re.compile("(?:https?|ftp)://[!-~]+")
_VALIDATOR = re.compile("[ -~\x80-\xff]+")  # what can be in a header
_FAILURE = re.compile("[^\ud800-\udfff]*")  # what can be encoded

VERSION = b"\x03"
"""Of the octets, and of everything in which they lie: a change of either is another version."""

# Deflate finds again what stands here. It is a part of the version: never change it.
_DICTIONARY = (
    b'{"kind": "unreachable", "failure": "status 503", "unreachable_since": 1, "failures": '
    b'{"kind": "unavailable", "fetched_at": 1, "refresh_at": 1, "expires_at": 1, "status": 404, '
    b'"disallow_all": true, "last_modified": "Mon, 01 Jan 2026 00:00:00 GMT", "lifetime": 3600, '
    b'"etag": "W/\\"", "copy_url": "https://www.", "url": "https://www.", /robots.txt"}\n'
    b"# robots.txt\nUser-agent: GPTBot\nUser-agent: CCBot\nUser-agent: ClaudeBot\n"
    b"User-agent: Googlebot\nUser-agent: Bingbot\nUser-agent: AhrefsBot\nUser-agent: MJ12bot\n"
    b"User-agent: SemrushBot\nUser-agent: Baiduspider\nUser-agent: Yandex\nUser-agent: "
    b"AdsBot-Google\nUser-agent: Mediapartners-Google\nCrawl-delay: 10\nRequest-rate: 1/\n"
    b"Host: www.\nClean-param: \nDisallow: /cgi-bin/\nDisallow: /admin/\nDisallow: /search\n"
    b"Disallow: /*?\nDisallow: /cart\nDisallow: /checkout\nDisallow: /login\nDisallow: /user/\n"
    b"Disallow: /includes/\nDisallow: /modules/\nAllow: /core/*.css$\nAllow: /*.js$\n"
    b"Disallow: /wp-content/plugins/\nDisallow: /wp-includes/\nUser-agent: *\nDisallow:\n"
    b"Sitemap: https://www./sitemap_index.xml\nDisallow: /wp-admin/\n"
    b"Allow: /wp-admin/admin-ajax.php\n\nSitemap: https://www./sitemap.xml\n"
    b'{"kind": "rules", "fetched_at": 1, "refresh_at": 1, "expires_at": 1, "copy_url": '
    b'"https://www.", "status": 200, "url": "https://www.", /robots.txt"}\n'
    b"User-agent: *\r\nDisallow: /\r\nAllow: /\r\n\nUser-agent: *\nAllow: /\nDisallow: /\n"
)

_HEAD = {name: Entry._field_defaults.get(name) for name in Entry._fields if name != "body"}
"""The fields of the head with their defaults."""

_FITS: dict[str, Callable[[Any], bool]] = {
    "kind": lambda value: isinstance(value, Outcome),
    "fetched_at": lambda value: _is_number(value, 0, LATEST),
    "refresh_at": lambda value: _is_number(value, 0, LATEST),
    "expires_at": lambda value: _is_number(value, 0, LATEST),
    "copy_url": lambda value: value is None or _is_text(value, _URL, URL_LIMIT),
    "etag": lambda value: value is None or _is_text(value, _VALIDATOR, VALIDATOR_LIMIT),
    "last_modified": lambda value: value is None or _is_text(value, _VALIDATOR, VALIDATOR_LIMIT),
    "lifetime": lambda value: value is None or _is_number(value, -LATEST, LATEST),
    "status": lambda value: value is None or (type(value) is int and 100 <= value <= 999),
    "url": lambda value: value is None or _is_text(value, _URL, URL_LIMIT),
    "failure": lambda value: value is None or _is_text(value, _FAILURE, FAILURE_LIMIT),
    "unreachable_since": lambda value: value is None or _is_number(value, 0, LATEST),
    "failures": lambda value: type(value) is int and 0 <= value <= MAX_FAILURES,
    "disallow_all": lambda value: type(value) is bool,
}
"""Whether a value can be that of a field."""


def encode(entry: Entry) -> bytes:
    """The octets of an entry. Values that :func:`decode` refuses are left out or cut."""
    head: dict[str, Any] = {}
    for name, default in _HEAD.items():
        value = getattr(entry, name)
        if isinstance(value, float):
            value = round(min(value, LATEST), 3)
        elif name == "failure" and value is not None:
            value = value[:FAILURE_LIMIT].encode(errors="replace").decode()
        if value != default and _FITS[name](value):
            head[name] = value
    content = json.dumps(head).encode()
    if entry.body is not None:
        content += b"\n" + entry.body[:BODY_LIMIT]
    deflate = zlib.compressobj(zdict=_DICTIONARY)
    return VERSION + deflate.compress(content) + deflate.flush()


def decode(octets: bytes) -> Entry:
    """The entry. ValueError for what :func:`encode` of this version has not made.

    Whatever the octets are, it takes no more memory than an entry at its limits.
    """
    head, body = _inflated(octets)
    try:
        found = json.loads(head.decode("ascii"))
        values = {name: found[name] for name in _HEAD if name in found}
        values["kind"] = Outcome(values["kind"])
        entry = Entry(**values, body=body)
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no entry: {type(error).__name__}") from None
    for name, fits in _FITS.items():
        if not fits(getattr(entry, name)):
            raise ValueError(f"no entry: its {name} cannot be")
    settled_at_most = entry.expires_at
    if entry.kind is Outcome.UNREACHABLE:
        settled_at_most = entry.fetched_at + MAX_RETRY_AFTER + 1  # times are rounded
    if entry.refresh_at > settled_at_most:
        raise ValueError("no entry: it is settled for too long")
    if entry.kind is Outcome.RULES and body is None:
        raise ValueError("no entry: rules without a body")
    if entry.kind is Outcome.UNAVAILABLE and body is not None:
        raise ValueError("no entry: a body of what is unavailable")
    return entry


def _inflated(octets: bytes) -> tuple[bytes, bytes | None]:
    """The head and the body."""
    if len(octets) > OCTETS_LIMIT:
        raise ValueError(f"no entry: {len(octets)} octets")
    if octets[:1] != VERSION:
        raise ValueError(f"an entry of version {octets[:1]!r}")
    inflate = zlib.decompressobj(zdict=_DICTIONARY)
    try:
        content = inflate.decompress(octets[1:], CONTENT_LIMIT + 1)
    except zlib.error as error:
        raise ValueError(f"no entry: {error}") from None
    if not inflate.eof or inflate.unused_data:
        raise ValueError("no entry: cut off, too long, or followed by something")
    head, newline, body = content.partition(b"\n")
    if len(head) > HEAD_LIMIT or len(body) > BODY_LIMIT:
        raise ValueError("no entry: too long")
    return head, body if newline else None


def _is_number(value: object, least: float, most: float) -> bool:
    """Whether it is one, finite, and within these bounds. A bool is none."""
    return type(value) in (int, float) and least <= value <= most  # type: ignore[operator]


def _is_text(value: object, pattern: re.Pattern[str], most: int) -> bool:
    return isinstance(value, str) and len(value) <= most and pattern.fullmatch(value) is not None
