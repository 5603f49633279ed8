"""The entry that a store keeps for one origin, and the octets that represent it.

    octets   = version deflated
    deflated = zlib stream (RFC 1950), with the preset dictionary of the version, of content
    content  = head [LF body]
    head     = JSON object; fields with their default value are left out

The checksum of zlib detects a damaged entry. Entries of other versions are ignored. Other programs
may write to a store, too, so everything that is read from it is limited in size, and every value is
checked.
"""

from __future__ import annotations

import json
import re
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.access import MAX_RETRY_AFTER, AccessResult, CopyInfo
from ..protocol.lines import SIZE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Entry(NamedTuple):
    """What is known of one file of an origin, such as its robots.txt. Times are seconds since 1970.

    To add a field, add it here and add a row to ``_ENTRY_CHECKS``.
    """

    result: AccessResult
    """The result of the last fetch that was not cancelled: RULES, UNAVAILABLE, DISALLOWED or
    UNREACHABLE."""
    fetched_at: float
    """When that fetch ended."""
    refresh_at: float
    """When the next fetch is due."""
    expires_at: float = 0
    """When the freshness lifetime of the last response ends."""
    body: bytes | None = None
    """The last good copy as it was received, up to the size limit."""
    copy: CopyInfo | None = None
    """Where the good copy came from."""
    status: int | None = None
    """The status of the last response; None if there was no HTTP response."""
    url: str | None = None
    """The URL of the last response, after redirects."""
    failure: str | None = None
    """Why the origin is unreachable, in words."""
    unreachable_since: float | None = None
    """When the first of the failed fetches in a row ended."""
    failures: int = 0
    """The number of failed fetches in a row."""


BODY_LIMIT = SIZE_LIMIT + 1
"""The most octets of a body: one more than the parser reads, so that it can detect a cut line."""

URL_LIMIT = 8000
"""The most characters of a URL. RFC 9110 §4.1: "It is RECOMMENDED that all senders and recipients
support, at a minimum, URIs with lengths of 8000 octets"."""

FAILURE_LIMIT = 1000
"""The most characters of a failure's text (ours)."""

VALIDATOR_LIMIT = 256
"""The most characters of a validator. The fetcher ignores a longer one (ours)."""

HEAD_LIMIT = 1 << 16
"""The most octets of a head. Two URLs, two validators and a failure of the maximum length are
shorter, with each character escaped."""

CONTENT_LIMIT = HEAD_LIMIT + 1 + BODY_LIMIT
OCTETS_LIMIT = CONTENT_LIMIT + CONTENT_LIMIT // 1000 + 100
"""The most octets of an entry. Deflate adds at most 1 octet in 4,000, a header and a trailer."""

LATEST = 253_402_300_800.0
"""The latest valid time: the first second of the year 10000."""

MAX_FAILURES = 1_000_000_000
"""More failures than one a second for 30 years."""

_URL = re.compile("(?:https?|ftp)://[!-~]+")
_VALIDATOR = re.compile("[ -~\x80-\xff]+")  # the characters of a header field
_SHA256 = re.compile("[0-9a-f]{64}")
_FAILURE = re.compile("[^\ud800-\udfff]*")  # the characters that UTF-8 can encode

VERSION = b"\x05"
"""The version of this format, of the tables in SQLite and of the keys in Redis. A change of one of
them needs a new version."""

# The preset dictionary: text that is common in entries. Do not change it within a version.
_DICTIONARY = (
    b'{"result": "unreachable", "failure": "status 503", "unreachable_since": 1, "failures": '
    b'{"result": "unavailable", "fetched_at": 1, "refresh_at": 1, "expires_at": 1, "status": 404, '
    b'"disallowed", "last_modified": "Mon, 01 Jan 2026 00:00:00 GMT", "lifetime": 3600}, '
    b'"etag": "W/\\"", "url": "https://www.", /robots.txt"}\n'
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
    b'{"result": "rules", "fetched_at": 1, "refresh_at": 1, "expires_at": 1, "copy": {"url": '
    b'"https://www./robots.txt", "sha256": "0"}, "status": 200, "url": "https://www./robots.txt"}\n'
    b"User-agent: *\r\nDisallow: /\r\nAllow: /\r\n\nUser-agent: *\nAllow: /\nDisallow: /\n"
)

_STORED_RESULTS = (
    AccessResult.RULES,
    AccessResult.UNAVAILABLE,
    AccessResult.DISALLOWED,
    AccessResult.UNREACHABLE,
)

_RESULTS = {result.value: result for result in _STORED_RESULTS}

_Checks = dict[str, "Callable[[Any], bool]"]

_COPY_CHECKS: _Checks = {
    "url": lambda value: _is_text(value, _URL, URL_LIMIT),
    "etag": lambda value: value is None or _is_text(value, _VALIDATOR, VALIDATOR_LIMIT),
    "last_modified": lambda value: value is None or _is_text(value, _VALIDATOR, VALIDATOR_LIMIT),
    "lifetime": lambda value: value is None or _is_number(value, -LATEST, LATEST),
    "sha256": lambda value: value is None or _is_text(value, _SHA256, 64),
}
_ENTRY_CHECKS: _Checks = {
    "result": lambda value: value in _STORED_RESULTS,
    "fetched_at": lambda value: _is_number(value, 0, LATEST),
    "refresh_at": lambda value: _is_number(value, 0, LATEST),
    "expires_at": lambda value: _is_number(value, 0, LATEST),
    "copy": lambda value: value is None or _is_valid(value, _COPY_CHECKS),
    "status": lambda value: value is None or (type(value) is int and 100 <= value <= 999),
    "url": lambda value: value is None or _is_text(value, _URL, URL_LIMIT),
    "failure": lambda value: value is None or _is_text(value, _FAILURE, FAILURE_LIMIT),
    "unreachable_since": lambda value: value is None or _is_number(value, 0, LATEST),
    "failures": lambda value: type(value) is int and 0 <= value <= MAX_FAILURES,
}
"""Whether a value is valid for a field of the head."""


def encode(entry: Entry) -> bytes:
    """Return the octets of an entry.

    Values that :func:`decode` would refuse are left out or cut.
    """
    content = json.dumps(head_of(entry)).encode()
    if entry.body is not None:
        content += b"\n" + entry.body[:BODY_LIMIT]
    deflate = zlib.compressobj(zdict=_DICTIONARY)
    return VERSION + deflate.compress(content) + deflate.flush()


def decode(octets: bytes) -> Entry:
    """Return the entry that these octets represent.

    Raises ValueError for octets that :func:`encode` of this version does not produce. Memory use is
    limited to a few times the size of the largest entry, for any octets.
    """
    head, body = _inflated(octets)
    try:
        found = json.loads(head.decode("ascii"))
    except RecursionError as error:
        raise ValueError(f"not an entry: {type(error).__name__}") from None
    return from_head(found, body)


def head_of(entry: Entry) -> dict[str, Any]:
    """Return all fields of an entry but the body, as JSON types.

    Fields with their default value are left out, and values that :func:`from_head` would refuse are
    left out or cut.
    """
    return _head_of(entry, _ENTRY_CHECKS)


def from_head(found: Any, body: bytes | None) -> Entry:
    """Return the entry with the fields of a head, which other programs may have written.

    Raises ValueError for a head that :func:`head_of` does not produce.
    """
    try:
        values = {name: found[name] for name in _ENTRY_CHECKS if name in found}
        values["result"] = _RESULTS.get(values["result"])
        if values.get("copy") is not None:
            copy = values["copy"]
            values["copy"] = CopyInfo(**{name: copy[name] for name in _COPY_CHECKS if name in copy})
        entry = Entry(**values, body=body)
    except (KeyError, TypeError):
        raise ValueError("not an entry: a field is missing or has a wrong type") from None
    for name, is_valid in _ENTRY_CHECKS.items():
        if not is_valid(getattr(entry, name)):
            raise ValueError(f"not an entry: invalid {name}")
    latest_refresh = entry.expires_at
    if entry.result is AccessResult.UNREACHABLE:
        latest_refresh = entry.fetched_at + MAX_RETRY_AFTER + 1  # times are rounded
    if entry.refresh_at > latest_refresh:
        raise ValueError("not an entry: its next fetch is too late")
    if entry.result is AccessResult.RULES and body is None:
        raise ValueError("not an entry: rules without a body")
    if entry.result in (AccessResult.UNAVAILABLE, AccessResult.DISALLOWED) and body is not None:
        raise ValueError("not an entry: a body of an unavailable robots.txt")
    return entry


def _head_of(record: Entry | CopyInfo, checks: _Checks) -> dict[str, Any]:
    """Return the valid fields of a record that do not have their default value."""
    defaults: Mapping[str, object] = record._field_defaults
    head: dict[str, Any] = {}
    for name, is_valid in checks.items():
        value = getattr(record, name)
        if isinstance(value, float):
            value = round(min(value, LATEST), 3)
        elif name == "failure" and value is not None:
            value = value[:FAILURE_LIMIT].encode(errors="replace").decode()
        elif isinstance(value, CopyInfo):
            if is_valid(value._replace(etag=None, last_modified=None, lifetime=None, sha256=None)):
                head[name] = _head_of(value, _COPY_CHECKS)
            continue
        if (name not in defaults or value != defaults[name]) and is_valid(value):
            head[name] = value
    return head


def _inflated(octets: bytes) -> tuple[bytes, bytes | None]:
    """Return the head and the body."""
    if len(octets) > OCTETS_LIMIT:
        raise ValueError(f"not an entry: {len(octets)} octets")
    if octets[:1] != VERSION:
        raise ValueError(f"an entry of version {octets[:1]!r}")
    inflate = zlib.decompressobj(zdict=_DICTIONARY)
    try:
        content = inflate.decompress(octets[1:], CONTENT_LIMIT + 1)
    except zlib.error as error:
        raise ValueError(f"not an entry: {error}") from None
    if not inflate.eof or inflate.unused_data:
        raise ValueError("not an entry: cut off, too long, or followed by something")
    head, newline, body = content.partition(b"\n")
    if len(head) > HEAD_LIMIT or len(body) > BODY_LIMIT:
        raise ValueError("not an entry: too long")
    return head, body if newline else None


def _is_valid(record: CopyInfo, checks: _Checks) -> bool:
    return all(is_valid(getattr(record, name)) for name, is_valid in checks.items())


def _is_number(value: object, least: float, most: float) -> bool:
    """Return whether a value is a number within these limits. A bool is not a number."""
    return type(value) in (int, float) and least <= value <= most  # type: ignore[operator]


def _is_text(value: object, pattern: re.Pattern[str], most: int) -> bool:
    return isinstance(value, str) and len(value) <= most and pattern.fullmatch(value) is not None
