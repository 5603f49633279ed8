"""Where a redirect of a robots.txt may lead (RFC 9309, section 2.3.1.2).

To any host of the web: "even across authorities (for example, hosts in the case of HTTP)". But a
site on the web does not decide what the crawler asks for in the network that it runs in: from a
public address a redirect leads to public addresses only, unless REP_ALLOW_PRIVATE_REDIRECTS is on.
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
    from .downloader import Answer

URL_LIMIT = 8000
"""Characters of a URL that is followed: RFC 9110, section 4.1, asks for 8000 octets at least."""

NOT_PUBLIC = "is no public address"
"""How the reason ends for which a redirect is refused that REP_ALLOW_PRIVATE_REDIRECTS allows."""


class RedirectPolicy:
    """The redirects of one attempt at a robots.txt.

    ``allow_private``: whether a public site may redirect to an address that is not.
    """

    def __init__(self, *, allow_private: bool) -> None:
        self._unrestricted: bool | None = allow_private or None
        """None: not known before the first redirect."""

    async def refusal(self, answer: Answer, target: str, seconds: float) -> str | None:
        """Why a redirect to ``target`` is not followed; None where it is.

        ``answer`` redirects there. The first one is that of the origin whose robots.txt is wanted.
        Names are resolved in so many seconds at most, and not at all where a proxy does that.
        """
        if self._unrestricted is None:
            self._unrestricted = await _is_private(answer, seconds)
        if self._unrestricted:
            return None
        host = _host_of(target)
        literal = literal_address(host)
        if is_local_name(host):
            return _refused(target, "this machine")
        if literal is not None:
            return None if is_public(literal) else _refused(target, str(literal))
        if _goes_by_proxy(answer, target):
            return None
        addresses = await addresses_of(host, seconds)
        if not addresses:
            if answer.from_cache:  # where there is no network, there are no names
                return None
            return f"redirect to {printable(target)} refused: its host cannot be resolved"
        private = next((each for each in addresses if not is_public(each)), None)
        return None if private is None else _refused(target, str(private))

    def response_refusal(self, answer: Answer) -> str | None:
        """Why what a redirect led to is not used: the address that the connection was made to.

        A name may resolve to another address for the connection than it did before.
        """
        address = answer.ip_address
        if self._unrestricted is not False or answer.by_proxy or address is None:
            return None
        return None if is_public(address) else _refused(answer.url, str(address))


def redirect_target(url: str, location: bytes) -> str | None:
    """Where a redirect leads; None where it may not be followed, whoever says so.

    A user name and a password in it are not sent on.
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


async def _is_private(answer: Answer, seconds: float) -> bool:
    """Whether the one that answered is not on the web itself.

    By the address of the connection, where the download handler tells it: a name that resolves to
    another address now was not asked there.
    """
    host = _host_of(answer.url)
    literal = literal_address(host)
    if is_local_name(host):
        return True
    if literal is not None:
        return not is_public(literal)
    if answer.by_proxy:
        return False
    if answer.ip_address is not None:
        return not is_public(answer.ip_address)
    addresses: tuple[Address, ...] = await addresses_of(host, seconds)
    return bool(addresses) and not any(map(is_public, addresses))


def _goes_by_proxy(answer: Answer, target: str) -> bool:
    """Whether the next request will go by a proxy, as this one did."""
    if not answer.by_system_proxy:
        return answer.by_proxy
    # As Scrapy's HttpProxyMiddleware has it: by scheme, and but for the hosts of no_proxy.
    return urlsplit(target).scheme in getproxies() and not proxy_bypass(_host_of(target))


def _host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def _refused(target: str, what: str) -> str:
    return f"redirect to {printable(target)} refused: {what} {NOT_PUBLIC}"
