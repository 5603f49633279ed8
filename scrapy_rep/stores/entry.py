"""The entry that a store keeps for one origin, the bytes that represent it, and a line of JSON.

    bytes    = version deflated
    deflated = zlib stream (RFC 1950), with the preset dictionary of the version, of content
    content  = head [LF body]
    head     = JSON object; fields with their default value are left out

    line     = {"type": "policy", "version": 1, "origin": …, "entry": head, "body": …}

The checksum of zlib detects a damaged entry. Bytes of a line's body that are not UTF-8 are lone
surrogates (PEP 383). Both may come from other programs, so everything that is read is limited in
size, and every value is checked.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from ..protocol.access import MAX_RETRY_AFTER, AccessPolicy, AccessResult, CopyInfo, access_result
from ..protocol.lines import SIZE_LIMIT


class Entry(NamedTuple):
    """What is known of a file of an origin, such as robots.txt. Times are seconds since 1970."""

    result: AccessResult
    """The result of the last fetch that was not cancelled: neither NOT_MODIFIED nor REDIRECT."""
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

    def moved(self, seconds: float) -> Entry:
        """Return the entry with all times moved, to another clock."""
        since = self.unreachable_since
        return self._replace(
            fetched_at=self.fetched_at + seconds,
            refresh_at=self.refresh_at + seconds,
            expires_at=self.expires_at + seconds,
            unreachable_since=None if since is None else since + seconds,
        )


BODY_LIMIT = SIZE_LIMIT + 1
"""The most bytes of a body: one more than the parser reads, so that it can detect a cut line."""

URL_LIMIT = 8000
"""The most characters of a URL. RFC 9110 §4.1: "It is RECOMMENDED that all senders and recipients
support, at a minimum, URIs with lengths of 8000 octets"."""

FAILURE_LIMIT = 1000  # characters of a failure's text (ours)
VALIDATOR_LIMIT = 256  # characters of a validator: the fetcher ignores a longer one (ours)

HEAD_LIMIT = 1 << 16
"""The most bytes of a head. Two URLs, two validators and a failure of the maximum length are
shorter, with each character escaped."""

CONTENT_LIMIT = HEAD_LIMIT + 1 + BODY_LIMIT
ENTRY_LIMIT = CONTENT_LIMIT + CONTENT_LIMIT // 1000 + 100
"""The most bytes of an entry. Deflate adds at most 1 byte in 4,000, a header and a trailer."""

LATEST = 253_402_300_800.0  # the latest valid time: the first second of the year 10000

LINE_TYPE, LINE_VERSION = "policy", 1

LINE_LIMIT = 6 * BODY_LIMIT + HEAD_LIMIT + 6 * URL_LIMIT
"""The most bytes of a line: each byte of the body may have an escape, such as ``\\u0001``."""

VERSION = b"\x07"
"""The version of this format, of the tables in SQLite and of the keys in Redis. A change of one of
them needs a new version."""

# The preset dictionary: text that is common in entries. Do not change it within a version.
DICTIONARY = (
    b'{"result": "unavailable", "fetched_at": 1, "refresh_at": 1, "expires_at": 1, "status": 404, '
    b'"last_modified": "Mon, 01 Jan 2026 00:00:00 GMT", "lifetime": 3600}, "etag": "W/\\""}\n'
    b"User-agent: GPTBot\nUser-agent: CCBot\nUser-agent: Googlebot\nUser-agent: AhrefsBot\n"
    b"Crawl-delay: 10\nDisallow: /cgi-bin/\nDisallow: /admin/\nDisallow: /search\nDisallow: /*?\n"
    b"Disallow: /cart\nDisallow: /login\nDisallow: /user/\nUser-agent: *\nDisallow:\n"
    b"Sitemap: https://www./sitemap_index.xml\nDisallow: /wp-admin/\n"
    b"Allow: /wp-admin/admin-ajax.php\n\nSitemap: https://www./sitemap.xml\n"
    b'{"result": "rules", "fetched_at": 1, "refresh_at": 1, "expires_at": 1, "copy": {"url": '
    b'"https://www./robots.txt", "sha256": "0"}, "status": 200, "url": "https://www./robots.txt"}\n'
    b"User-agent: *\nAllow: /\nDisallow: /\n"
)

_RESULTS = {
    result.value: result
    for result in AccessResult
    if result not in (AccessResult.NOT_MODIFIED, AccessResult.REDIRECT)
}


def _is_number(least: float, most: float) -> Callable[[object], bool]:
    """Return a check for a number within these limits. A bool is not a number."""
    return lambda value: type(value) in (int, float) and least <= value <= most  # type: ignore[operator]


def _is_text(pattern: str, most: int) -> Callable[[object], bool]:
    return lambda value: (
        isinstance(value, str) and len(value) <= most and bool(re.fullmatch(pattern, value))
    )


_IS_TIME = _is_number(0, LATEST)
_IS_URL = _is_text("(?:https?|ftp)://[!-~]+", URL_LIMIT)
is_validator = _is_text("[ -~\x80-\xff]+", VALIDATOR_LIMIT)  # the characters of a header field
"""Whether a value is a validator that can be sent in a header, and is short enough to keep."""

_COPY_CHECKS: dict[str, Callable[[Any], bool]] = {
    "url": _IS_URL,
    "etag": is_validator,
    "last_modified": is_validator,
    "lifetime": _is_number(-LATEST, LATEST),
    "sha256": _is_text("[0-9a-f]{64}", 64),
}
_ENTRY_CHECKS: dict[str, Callable[[Any], bool]] = {
    "result": lambda value: value in _RESULTS.values(),
    "fetched_at": _IS_TIME,
    "refresh_at": _IS_TIME,
    "expires_at": _IS_TIME,
    "copy": lambda value: value is None or _invalid(value, _COPY_CHECKS) is None,
    "status": lambda value: type(value) is int and 100 <= value <= 999,
    "url": _IS_URL,
    "failure": _is_text("[^\ud800-\udfff]*", FAILURE_LIMIT),  # the characters that UTF-8 can encode
    "unreachable_since": _IS_TIME,
    "failures": lambda value: type(value) is int and value >= 0,
}
"""Whether a value is valid for a field of the head. None is valid where it is the default."""


def reinterpreted(entry: Entry, policy: AccessPolicy) -> Entry:
    """Return what an entry means under a policy, which may be another than when it was put."""
    result, expires_at, refresh_at = entry.result, entry.expires_at, entry.refresh_at
    if result is not AccessResult.UNREACHABLE:
        latest = entry.fetched_at + policy.max_ttl
        expires_at, refresh_at = min(expires_at, latest), min(refresh_at, latest)
    if entry.status is not None and result is not AccessResult.SUCCESSFUL:
        if entry.status >= 400:
            is_test = result is AccessResult.CHALLENGE
            result = access_result(entry.status, policy, challenge=is_test)
        elif result.is_unavailable and policy.not_robots == "unreachable":
            result = AccessResult.UNREACHABLE
        if result.is_unavailable != entry.result.is_unavailable:
            # The response has another meaning now: fetch again.
            return entry._replace(expires_at=0, refresh_at=0)
    return entry._replace(result=result, expires_at=expires_at, refresh_at=refresh_at)


def encode(entry: Entry) -> bytes:
    """Return the bytes of an entry.

    Values that :func:`decode` would refuse are left out or cut.
    """
    content = json.dumps(_head_of(entry, _ENTRY_CHECKS)).encode()
    if entry.body is not None:
        content += b"\n" + entry.body[:BODY_LIMIT]
    deflate = zlib.compressobj(zdict=DICTIONARY)
    return VERSION + deflate.compress(content) + deflate.flush()


def decode(data: bytes) -> Entry:
    """Return the entry that these bytes represent.

    Raises ValueError for bytes that :func:`encode` of this version does not produce. Memory use is
    limited to a few times the size of the largest entry, for any bytes.
    """
    if len(data) > ENTRY_LIMIT:
        raise ValueError(f"not an entry: {len(data)} bytes")
    if data[:1] != VERSION:
        raise ValueError(f"an entry of version {data[:1]!r}")
    inflate = zlib.decompressobj(zdict=DICTIONARY)
    try:
        content = inflate.decompress(data[1:], CONTENT_LIMIT + 1)
    except zlib.error as error:
        raise ValueError(f"not an entry: {error}") from None
    if not inflate.eof or inflate.unused_data:
        raise ValueError("not an entry: cut off, too long, or followed by something")
    head, newline, body = content.partition(b"\n")
    if len(head) > HEAD_LIMIT or len(body) > BODY_LIMIT:
        raise ValueError("not an entry: too long")
    return _entry_of(_parsed(head, "ascii"), body if newline else None)


def to_line(key: str, entry: Entry) -> str:
    """Return the line of an entry, with the LF."""
    head = _head_of(entry, _ENTRY_CHECKS)
    record = {"type": LINE_TYPE, "version": LINE_VERSION, "origin": key, "entry": head}
    if entry.body is not None:
        record["body"] = entry.body.decode("utf-8", "surrogateescape")
    return json.dumps(record) + "\n"


def from_line(line: bytes) -> tuple[str, Entry]:
    """Return the key and the entry of a line. Raises ValueError for any other line."""
    record = _parsed(line, "utf-8")
    if not isinstance(record, dict) or record.get("type") != LINE_TYPE:
        raise ValueError("it is not a policy")
    version = record.get("version")
    if version != LINE_VERSION or isinstance(version, bool):
        raise ValueError(f"it is of version {str(version)[:20]!r}, not {LINE_VERSION}")
    key = record.get("origin")
    if not isinstance(key, str) or not 0 < len(key) <= URL_LIMIT:
        raise ValueError("it has no origin")
    text = record.get("body")
    try:
        body = None if text is None else text.encode("utf-8", "surrogateescape")
    except (AttributeError, UnicodeEncodeError):
        raise ValueError("its body is not valid") from None
    if len(body or b"") > BODY_LIMIT:
        raise ValueError("its body is too long")
    return key, _entry_of(record.get("entry"), body)


def _parsed(data: bytes, encoding: str) -> Any:
    try:
        return json.loads(data.decode(encoding))
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None


def _entry_of(head: Any, body: bytes | None) -> Entry:
    """Return the entry with the fields of a head, which other programs may have written."""
    try:
        values = {name: head[name] for name in _ENTRY_CHECKS if name in head}
        values["result"] = _RESULTS.get(values["result"])
        if values.get("copy") is not None:
            copy = values["copy"]
            values["copy"] = CopyInfo(**{name: copy[name] for name in _COPY_CHECKS if name in copy})
        entry = Entry(**values, body=body)
    except (KeyError, TypeError):
        raise ValueError("not an entry: a field is missing or has a wrong type") from None
    if (invalid := _invalid(entry, _ENTRY_CHECKS)) is not None:
        raise ValueError(f"not an entry: invalid {invalid}")
    latest_refresh = entry.expires_at
    if entry.result is AccessResult.UNREACHABLE:
        latest_refresh = entry.fetched_at + MAX_RETRY_AFTER + 1  # times are rounded
    if entry.refresh_at > latest_refresh:
        raise ValueError("not an entry: its next fetch is too late")
    if entry.result is AccessResult.SUCCESSFUL and body is None:
        raise ValueError("not an entry: rules without a body")
    if entry.result.is_unavailable and body is not None:
        raise ValueError("not an entry: a body of an unavailable robots.txt")
    return entry


def _head_of(record: Entry | CopyInfo, checks: dict[str, Callable[[Any], bool]]) -> dict[str, Any]:
    """Return the valid fields of a record as JSON types. A field with its default is left out."""
    head: dict[str, Any] = {}
    for name, is_valid in checks.items():
        value = getattr(record, name)
        if isinstance(value, float):
            value = round(min(value, LATEST), 3)
        elif name == "failure" and value is not None:
            value = value[:FAILURE_LIMIT].encode(errors="replace").decode()
        if isinstance(value, CopyInfo):
            value = _head_of(value, _COPY_CHECKS)
            if "url" in value:
                head[name] = value
        elif value != record._field_defaults.get(name) and is_valid(value):
            head[name] = value
    return head


def _invalid(record: Entry | CopyInfo, checks: dict[str, Callable[[Any], bool]]) -> str | None:
    """Return the name of an invalid field of a record; None if all are valid."""
    for name, is_valid in checks.items():
        value = getattr(record, name)
        may_be_none = record._field_defaults.get(name, ...) is None
        if not (is_valid(value) or (value is None and may_be_none)):
            return name
    return None
