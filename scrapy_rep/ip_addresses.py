"""IP addresses in the hosts of URLs: in which spellings they stand there, and which are public."""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from unicodedata import normalize
from urllib.parse import unquote

Address = IPv4Address | IPv6Address

_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052 §2.1: ends in the IPv4 address
_GLOBAL_UNICAST = IPv6Network("2000::/3")  # RFC 4291 §2.4, as far as IANA has assigned it
_NUMBERS = re.compile("(?:0x)?[0-9a-f]+(?:[.](?:0x)?[0-9a-f]+){0,3}")


def is_public(address: Address) -> bool:
    """Return whether an address is a globally routable unicast address."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast
    address = IPv6Address(int(address))  # without the zone
    in_ipv6 = address.ipv4_mapped or address.sixtofour  # RFC 4291 §2.5.5.2, RFC 3056
    if in_ipv6 is not None or address in _NAT64:
        return is_public(in_ipv6 or IPv4Address(int(address) & 0xFFFF_FFFF))
    return address in _GLOBAL_UNICAST and address.is_global


def literal_address(host: str) -> Address | None:
    """Return the IP address that a host stands for, in any spelling; None for a host name.

    As ``inet_aton`` reads it: at most four numbers, each decimal, octal (``0177``) or hexadecimal
    (``0x7f``). ``127.1`` and ``2130706433`` are 127.0.0.1.
    """
    host = _plain(host).partition("%")[0]  # an IPv6 zone
    if ":" in host:
        try:
            return ip_address(host.strip("[]"))
        except ValueError:
            return None
    try:
        return IPv4Address(socket.inet_aton(host)) if _NUMBERS.fullmatch(host) else None
    except OSError:
        return None


def plain_address(host: str) -> str | None:
    """Return the usual spelling of the IP address that a host stands for; None for a host name.

    An IPv6 address that contains an IPv4 address (RFC 4291 §2.5.5.2) is that address.
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
