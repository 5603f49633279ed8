"""The cookies that redirects set, for the rest of one fetch (RFC 6265).

Some sites answer no request before a redirect has set a cookie. So a cookie is returned to the
origin that set it. It is never sent to another origin, whatever its Domain is, and not kept after
the fetch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..protocol.freshness import http_date
from ..protocol.paths import origin_of

MAX_SIZE = 8192
"""The most bytes of all cookies of a fetch (ours). Many servers accept no longer header."""

MAX_ATTRIBUTE = 100
"""The bytes of an attribute that are read. A date has about 30."""

_SEPARATOR = b"; "

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What no cookie has (RFC 6265bis §5.6). A line break would begin another header."""


class HopCookies:
    """The cookies of one fetch, by the origin that set them."""

    def __init__(self) -> None:
        self._by_origin: dict[str | None, dict[bytes, bytes]] = {}
        self._size = 0

    def header(self, url: str) -> bytes:
        """Return the Cookie header of a request; empty if its origin has set no cookies."""
        return b"".join(self._by_origin.get(origin_of(url), {}).values())[len(_SEPARATOR) :]

    def update(self, url: str, lines: Iterable[bytes], now: float) -> None:
        """Read the Set-Cookie lines of a response (RFC 6265 §5.2). ``now`` is seconds since 1970.

        Of the attributes, only Max-Age and Expires matter. Cookies above the size are ignored.
        """
        cookies = self._by_origin.setdefault(origin_of(url), {})
        for line in lines:
            pair, *attributes = line.split(b";")
            name, equals, value = map(bytes.strip, pair.partition(b"="))
            if not name or not equals or _CONTROL.search(pair):
                continue
            cookie = _SEPARATOR + name + b"=" + value
            self._size -= len(cookies.pop(name, b""))
            if not _has_expired(attributes, now) and self._size + len(cookie) <= MAX_SIZE:
                cookies[name] = cookie
                self._size += len(cookie)


def _has_expired(attributes: Iterable[bytes], now: float) -> bool:
    """Whether a cookie is to be deleted. Max-Age has precedence over Expires (RFC 6265 §5.3)."""
    values = {}
    for attribute in attributes:
        name, _, value = attribute[:MAX_ATTRIBUTE].decode("latin-1").partition("=")
        values[name.strip().lower()] = value.strip()
    age, expires = values.get("max-age", ""), http_date(values.get("expires", ""))
    if age.removeprefix("-").isdecimal():
        return age.startswith("-") or not age.strip("0")
    return expires is not None and expires <= now
