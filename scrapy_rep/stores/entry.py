"""What a store keeps of one origin, and the octets in which it keeps it.

    octets = version deflated
    deflated: zlib (RFC 1950), with the preset dictionary of the version, of
    content = head [LF body]        head: a JSON object, fields that are empty left out

The checksum of zlib tells an entry that is damaged. What another version has written is not read.
"""

from __future__ import annotations

import json
import zlib
from enum import Enum
from typing import Any, NamedTuple


class Kind(str, Enum):
    """What the last fetch came to."""

    RULES = "rules"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"

    def __str__(self) -> str:
        return self.value


class Entry(NamedTuple):
    """One origin's robots.txt. Times are seconds since 1970."""

    kind: Kind
    fetched_at: float
    """When the last fetch ended, whatever it came to."""
    settled_until: float
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


VERSION = b"\x01"
"""Of the octets, and of everything in which they lie: a change of either is another version."""

# Deflate finds again what stands here. It is a part of the version: never change it.
_DICTIONARY = (
    b'{"kind": "unreachable", "failure": "status 503", "unreachable_since": 1, "failures": '
    b'{"kind": "unavailable", "fetched_at": 1, "settled_until": 1, "expires_at": 1, "status": 404, '
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
    b'{"kind": "rules", "fetched_at": 1, "settled_until": 1, "expires_at": 1, "copy_url": '
    b'"https://www.", "status": 200, "url": "https://www.", /robots.txt"}\n'
    b"User-agent: *\r\nDisallow: /\r\nAllow: /\r\n\nUser-agent: *\nAllow: /\nDisallow: /\n"
)

_HEAD = {name: Entry._field_defaults.get(name) for name in Entry._fields if name != "body"}
"""The fields of the head with their defaults."""


def encode(entry: Entry) -> bytes:
    """The octets of an entry."""
    head: dict[str, Any] = {}
    for name, default in _HEAD.items():
        value = getattr(entry, name)
        if value != default:
            head[name] = round(value, 3) if isinstance(value, float) else value
    content = json.dumps(head).encode()
    if entry.body is not None:
        content += b"\n" + entry.body
    deflate = zlib.compressobj(zdict=_DICTIONARY)
    return VERSION + deflate.compress(content) + deflate.flush()


def decode(octets: bytes) -> Entry:
    """The entry. ValueError for what :func:`encode` of this version has not made."""
    if octets[:1] != VERSION:
        raise ValueError(f"an entry of version {octets[:1]!r}")
    inflate = zlib.decompressobj(zdict=_DICTIONARY)
    try:
        content = inflate.decompress(octets[1:])
        head, newline, body = content.partition(b"\n")
        if not inflate.eof:
            raise ValueError("half an entry")
        found = json.loads(head)
        values = {name: found[name] for name in _HEAD if name in found}
        values["kind"] = Kind(values["kind"])
        return Entry(**values, body=body if newline else None)
    except (zlib.error, KeyError, TypeError) as error:
        raise ValueError(f"no entry: {error}") from error
