"""Where a redirect of a robots.txt may lead (RFC 9309 §2.3.1.2).

A redirect may lead to any host of the public web: "even across authorities (for example, hosts in
the case of HTTP)". But a public site must not decide what the crawler requests inside its own
network. So a redirect from a public address leads to public addresses only, unless
REP_ALLOW_PRIVATE_REDIRECTS is on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from w3lib.url import safe_url_string

from ..protocol.paths import origin_of
from ..protocol.printable import printable
from .addresses import is_local_name, is_public, literal_address
from .resolver import addresses_of

if TYPE_CHECKING:
    from .addresses import Address
    from .downloader import RobotsTxtResponse

URL_LIMIT = 8000
"""The number of characters of a URL that is followed. RFC 9110 §4.1 recommends support for URIs of
at least 8000 octets."""

NOT_PUBLIC = "is not a public address"
"""The end of the reason for a refusal that REP_ALLOW_PRIVATE_REDIRECTS turns off."""


class RedirectPolicy:
    """Decides about the redirects of one attempt to get a robots.txt.

    ``allow_private`` says whether a public site may redirect to an address that is not public.
    """

    def __init__(self, *, allow_private: bool) -> None:
        self._is_unrestricted: bool | None = allow_private or None
        """None until the first redirect."""

    async def refusal(self, response: RobotsTxtResponse, target: str, seconds: float) -> str | None:
        """Return why a redirect to ``target`` is refused; None if it is followed.

        ``response`` contains the redirect. The first one is that of the origin whose robots.txt is
        fetched. The host name of the target is resolved, which takes at most ``seconds``; if a
        proxy resolves it, it is not resolved here.
        """
        if self._is_unrestricted is None:
            self._is_unrestricted = await _is_private(response, seconds)
        if self._is_unrestricted:
            return None
        host = _host_of(target)
        literal = literal_address(host)
        if is_local_name(host):
            return _refusal(target, "this machine")
        if literal is not None:
            return None if is_public(literal) else _refusal(target, str(literal))
        if _uses_proxy(response, target):
            return None
        addresses = await addresses_of(host, seconds)
        if not addresses:
            if response.from_cache:  # without a network, no name can be resolved
                return None
            return f"redirect to {printable(target)} refused: its host cannot be resolved"
        private = next((each for each in addresses if not is_public(each)), None)
        return None if private is None else _refusal(target, str(private))

    def response_refusal(self, response: RobotsTxtResponse) -> str | None:
        """Return why the response to a redirect is not used; None if it is used.

        The decision is about the address of the connection. A name can resolve to another address
        for the connection than it did for :meth:`refusal`.
        """
        address = response.ip_address
        if self._is_unrestricted is not False or response.by_proxy or address is None:
            return None
        return None if is_public(address) else _refusal(response.url, str(address))


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


async def _is_private(response: RobotsTxtResponse, seconds: float) -> bool:
    """Return whether the server that answered is not on the public web.

    The address of the connection decides, if the download handler reports it. The host name may
    resolve to another address by now.
    """
    host = _host_of(response.url)
    literal = literal_address(host)
    if is_local_name(host):
        return True
    if literal is not None:
        return not is_public(literal)
    if response.by_proxy:
        return False
    if response.ip_address is not None:
        return not is_public(response.ip_address)
    addresses: tuple[Address, ...] = await addresses_of(host, seconds)
    return bool(addresses) and not any(map(is_public, addresses))


def _uses_proxy(response: RobotsTxtResponse, target: str) -> bool:
    """Return whether the next request will use a proxy, as the last one did."""
    if not response.by_system_proxy:
        return response.by_proxy
    # As Scrapy's HttpProxyMiddleware does: by scheme, except for the hosts in no_proxy.
    return urlsplit(target).scheme in getproxies() and not proxy_bypass(_host_of(target))


def _host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def _refusal(target: str, address: str) -> str:
    return f"redirect to {printable(target)} refused: {address} {NOT_PUBLIC}"
