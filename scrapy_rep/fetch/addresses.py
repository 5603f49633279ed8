"""Which addresses are public, so that a site on the web may redirect a crawler to them. No I/O.

The special-purpose address registries of IANA (RFC 6890) decide. IPv4 addresses are also found in
the IPv6 addresses that contain them.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
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
_SHARED = IPv4Network("100.64.0.0/10")  # RFC 6598: networks behind a carrier's NAT


def is_public(address: Address) -> bool:
    """Return whether an address is a globally routable unicast address."""
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and address not in _SHARED
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
        *high, low = (_number(part) for part in host.split("."))
    except ValueError:
        return None
    if len(high) > 3 or any(part > 0xFF for part in high) or low >= 1 << (8 * (4 - len(high))):
        return None
    value = low
    for place, part in enumerate(high):
        value += part << (8 * (3 - place))
    return IPv4Address(value)


def is_local_name(host: str) -> bool:
    """Return whether a host name always means this machine."""
    return f".{_plain(host)}".endswith(".localhost")  # RFC 6761 §6.3


def _plain(host: str) -> str:
    # IDNA maps full-width characters and the full stops of other scripts to ASCII (RFC 5895).
    host = normalize("NFKC", unquote(host)).replace("\u3002", ".")
    return host.strip().rstrip(".").lower()


def _number(text: str) -> int:
    if not (text.isascii() and text.isalnum()) or len(text) > 16:
        raise ValueError(text)
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)
