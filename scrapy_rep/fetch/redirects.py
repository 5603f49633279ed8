"""Where a redirect of a robots.txt may lead (RFC 9309 §2.3.1.2).

A redirect may lead to any host: "even across authorities (for example, hosts in the case of HTTP)".
But a public site must not decide what the crawler requests inside its own network. So a redirect
from a public site is not followed to an address that is not public (RFC 6890), and if a host name
leads to one, the response is not used.
"""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from w3lib.url import safe_url_string

from ..ip_addresses import Address, is_local_name, is_public, literal_address
from ..protocol.paths import origin_of
from ..protocol.printable import printable
from ..stores.entry import URL_LIMIT
from .downloader import Download


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
