"""Which addresses are public, so that a site on the web may redirect a crawler to them. No I/O.

The special-purpose address registries of IANA (RFC 6890) decide. IPv4 addresses are also found in
the IPv6 addresses that contain them.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from socket import inet_aton
from unicodedata import normalize
from urllib.parse import unquote

Address = IPv4Address | IPv6Address

# RFC 3056; RFC 6052 §2.1; RFC 2765 §2.1; RFC 4291 §2.5.5. Each with the number of bits that follow
# the IPv4 address.
_IPV4_IN_IPV6 = (
    (IPv6Network("2002::/16"), 80),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("::/96"), 0),
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # RFC 4291 §2.4, as far as IANA has assigned it
_NUMBERS = re.compile("(?:0x)?[0-9a-f]+(?:[.](?:0x)?[0-9a-f]+){0,3}")


def is_public(address: Address) -> bool:
    """Return whether an address is a globally routable unicast address."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast
    address = IPv6Address(int(address))  # without the zone
    for network, shift in _IPV4_IN_IPV6:
        if address in network:
            return is_public(IPv4Address((int(address) >> shift) & 0xFFFF_FFFF))
    return address in _GLOBAL_UNICAST and address.is_global


def literal_address(host: str) -> Address | None:
    """Return the IP address that a host stands for; None for a host name.

    Recognizes every spelling that a resolver reads as an address, as ``inet_aton`` does: at most
    four numbers, each decimal, octal (``0177``) or hexadecimal (``0x7f``). ``127.1`` and
    ``2130706433`` are 127.0.0.1.
    """
    host = _plain(host).partition("%")[0]  # an IPv6 zone
    if ":" in host:
        try:
            return ip_address(host.strip("[]"))
        except ValueError:
            return None
    try:
        return IPv4Address(inet_aton(host)) if _NUMBERS.fullmatch(host) else None
    except OSError:
        return None


def plain_address(host: str) -> str | None:
    """Return the usual spelling of the IP address that a host stands for; None for a host name.

    An IPv6 address that contains an IPv4 address (RFC 4291 §2.5.5.2) is that address.

    >>> plain_address("0x7f.1")
    '127.0.0.1'
    >>> plain_address("[::ffff:127.0.0.1]")
    '127.0.0.1'
    """
    address = literal_address(host)
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or f"[{address}]")
    return None if address is None else str(address)


def is_local_name(host: str) -> bool:
    """Return whether a host name always means this machine."""
    return f".{_plain(host)}".endswith(".localhost")  # RFC 6761 §6.3


def _plain(host: str) -> str:
    # IDNA maps full-width characters and the full stops of other scripts to ASCII (RFC 5895).
    host = normalize("NFKC", unquote(host)).replace("\u3002", ".")
    return host.strip().rstrip(".").lower()
