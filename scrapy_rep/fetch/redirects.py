"""Where the redirects of a robots.txt may lead (RFC 9309 §2.3.1.2), and the cookies they set.

A redirect may lead to any host: "even across authorities (for example, hosts in the case of HTTP)".
But a public site must not decide what the crawler requests inside its own network. So a redirect
from a public site is not followed to an address that is not public (RFC 6890), and if a host name
leads to one, the response is not used.

Some sites answer no request before a redirect has set a cookie. So a cookie is returned to the
origin that set it, for the rest of the fetch: never to another origin, whatever its Domain is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urljoin, urlsplit

from w3lib.url import safe_url_string

from ..ip_addresses import Address, is_local_name, is_public, literal_address
from ..protocol.freshness import http_date
from ..protocol.paths import origin_of
from ..protocol.printable import printable
from ..stores.entry import URL_LIMIT
from .downloader import Download

MAX_COOKIES = 8192
"""The most bytes of all cookies of a fetch (ours). Many servers accept no longer header."""
MAX_ATTRIBUTE = 100
"""The bytes of an attribute that are read. A date has about 30."""

_SEPARATOR = b"; "
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What no cookie has (RFC 6265bis §5.6). A line break would begin another header."""


def refusal(first: Download, url: str, response: Download | None = None) -> str | None:
    """Return why a redirect to a URL is refused; None if it is followed.

    ``first`` is the response of the origin. The host name of the URL is not resolved. Instead, call
    this again with the response that came from the URL, which has its address.
    """
    if _private_host(first.url) or _private_connection(first):
        return None  # an origin that is not on the public web
    place = _private_host(url) if response is None else _private_connection(response)
    return place and f"redirect to {printable(url)} refused: {place} is not a public address"


def redirect_target(url: str, location: bytes) -> str | None:
    """Return the URL that a redirect leads to; None if it is never followed.

    The user name and the password of the URL are removed.
    """
    try:
        target = urljoin(url, safe_url_string(location.strip(), encoding="utf-8"))
        parts = urlsplit(target)
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or origin_of(target) is None:
        return None
    netloc = parts.netloc.rpartition("@")[2]
    target = parts._replace(netloc=netloc, fragment="").geturl()
    return target if len(target) <= URL_LIMIT else None


def _private_host(url: str) -> str | None:
    """Return what the host of a URL stands for, if that is known not to be public."""
    host = urlsplit(url).hostname or ""
    return "this machine" if is_local_name(host) else _private(literal_address(host))


def _private_connection(response: Download) -> str | None:
    """Return the address that a response came from, if that is known not to be public."""
    return None if response.by_proxy else _private(response.response.ip_address)


def _private(address: Address | None) -> str | None:
    return None if address is None or is_public(address) else str(address)


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
            if not _has_expired(attributes, now) and self._size + len(cookie) <= MAX_COOKIES:
                cookies[name] = cookie
                self._size += len(cookie)


def _has_expired(attributes: Iterable[bytes], now: float) -> bool:
    """Whether a cookie is to be deleted. Max-Age has precedence over Expires (RFC 6265 §5.3)."""
    parts = (each[:MAX_ATTRIBUTE].decode("latin-1").partition("=") for each in attributes)
    values = {name.strip().lower(): value.strip() for name, _, value in parts}
    age, expires = values.get("max-age", ""), http_date(values.get("expires", ""))
    if age.removeprefix("-").isdecimal():
        return age.startswith("-") or not age.strip("0")
    return expires is not None and expires <= now
