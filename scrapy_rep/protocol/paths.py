"""URLs and patterns in one comparable form (RFC 9309 §2.2.2), and origins (§2.3).

Both sides become ASCII text that can be compared octet by octet:

1. ``%HH`` of an unreserved character is decoded, every other gets upper-case hex;
2. what no URL may hold as it is, is percent-encoded;
3. a literal ``*`` or ``$`` of a URL is encoded, so that in patterns they stay free to be special.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from string import hexdigits
from urllib.parse import quote

_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_KEPT = "/%!&()+,:;=?@~"

# Escapes that are in their final form: upper-case, and of no unreserved character.
_FINAL = (
    "%(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF]|[89A-F][0-9A-F])"
)
# An absolute URL whose path is in its comparable form already.
_PLAIN_URL = re.compile(
    r"https?://[A-Za-z0-9.:-]*"
    rf"(/[A-Za-z0-9\-._~!&()+,/:;=?@]*(?:{_FINAL}[A-Za-z0-9\-._~!&()+,/:;=?@]*)*)"
).fullmatch
_PLAIN_PATTERN = re.compile(
    rf"[A-Za-z0-9\-._~!&()+,/:;=?@*]*(?:{_FINAL}[A-Za-z0-9\-._~!&()+,/:;=?@*]*)*\$?".encode()
).fullmatch
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")

_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_RESERVED = re.compile("[/:?@]")
_ENCODED = str.maketrans({"/": "%2F", ":": "%3A", "?": "%3F", "@": "%40"})
_QUERY_DOUBTFUL = re.compile("[/:?@]|%(?:2F|3A|3F|40)")

_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}
_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https", "ftp": "ftp"}
_HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")


def path_of(url: str) -> str:
    """The comparable form of the path and query of an absolute URL, or of a path."""
    try:
        plain = _PLAIN_URL(url)
    except TypeError:
        raise TypeError(f"a URL is text, not {url!r}") from None
    if plain:
        return plain[1]
    if not url.startswith("/"):
        authority = _AUTHORITY.match(url)
        if authority:
            url = url[authority.end() :]
        if not url.startswith("/"):
            url = "/" + url
    url = url.partition("#")[0]
    octets = _decode_unreserved(url).encode("utf-8", "surrogatepass")
    return quote(octets, safe=_KEPT)


def pattern_of(value: bytes) -> tuple[str, int]:
    """The comparable form of a rule's value, and its length for precedence."""
    if _PLAIN_PATTERN(value):
        return value.decode("ascii"), len(value)
    text = _decode_unreserved(value.decode("latin-1"))
    octets = text.encode("latin-1")
    length = len(octets) if text.isascii() else sum(3 if octet > 127 else 1 for octet in octets)
    pattern = quote(octets, safe=_KEPT + "*$")
    if "$" in pattern:
        pattern = pattern[:-1].replace("$", "%24") + pattern[-1]
    return pattern, length


def encode_query(path: str) -> str:
    """``: / ? @`` after the first ``?`` percent-encoded, for row 2 of the RFC's figure 4."""
    query = path.find("?") + 1
    if not _RESERVED.search(path, query):
        return path
    return path[:query] + path[query:].translate(_ENCODED)


def has_doubtful_query(pattern: str) -> bool:
    """Whether a pattern's query holds one of ``: / ? @`` or its escape."""
    mark = pattern.find("?")
    return mark >= 0 and _QUERY_DOUBTFUL.search(pattern, mark + 1) is not None


def origin(url: str) -> str | None:
    """The origin whose robots.txt speaks for a URL: ``scheme://host[:port]`` in its normal form.

    None for a scheme that has no robots.txt and for a host that is none.
    """
    scheme, colon, rest = url.partition("://")
    if not colon:
        return None
    return origin_of(scheme, re.split(r"[/?#]", rest, maxsplit=1)[0])


def origin_of(scheme: str, netloc: str) -> str | None:
    """The same out of a URL's first two parts."""
    scheme = _SCHEMES.get(scheme.lower(), "")
    host, port = _split_netloc(netloc)
    if not scheme or not host:
        return None
    if port in ("", str(_DEFAULT_PORTS[scheme])):
        return f"{scheme}://{host}"
    if not port.isdecimal() or not port.isascii() or int(port) > 65535:
        return None
    number = int(port)
    return f"{scheme}://{host}" + ("" if number == _DEFAULT_PORTS[scheme] else f":{number}")


def robots_txt_url(origin: str) -> str:
    """Where the robots.txt of an origin is."""
    return origin + "/robots.txt"


def _split_netloc(netloc: str) -> tuple[str | None, str]:
    netloc = netloc.rpartition("@")[2]
    if netloc.startswith("["):
        host, _, port = netloc[1:].partition("]")
        try:
            return f"[{IPv6Address(host).compressed}]", port.removeprefix(":")
        except ValueError:
            return None, port
    host, _, port = netloc.partition(":")
    host = host.lower()
    try:
        if not host.isascii():
            host = host.encode("idna").decode("ascii")
    except UnicodeError:
        return None, port
    host = host.removesuffix(".")
    return (host if _HOST.fullmatch(host) else None), port


def _decode_unreserved(text: str) -> str:
    if "%" not in text:
        return text
    if _BROKEN_ESCAPE.search(text):
        return _decode_beside_broken(text)
    return _ESCAPE.sub(lambda match: _NORMAL[match[0]], text)


def _decode_beside_broken(text: str) -> str:
    """The same where a broken escape stands: nothing may be decoded that would mend it."""
    pieces: list[str] = []
    end = 0
    for match in _ESCAPE.finditer(text):
        pieces.append(text[end : match.start()])
        end = match.end()
        normal = _NORMAL[match[0]]
        if normal in hexdigits:
            before = "".join(pieces[-4:])[-2:]
            after = text[end : end + 1]
            if before[:1] == "%" and before[1:] and before[1:] in hexdigits or (
                before[-1:] == "%" and after and after in hexdigits
            ):
                normal = match[0].upper()
        pieces.append(normal)
    pieces.append(text[end:])
    return "".join(pieces)


def _normal_escapes() -> dict[str, str]:
    normal = {}
    for octet in range(256):
        character = chr(octet)
        upper = f"%{octet:02X}"
        form = character if character in _UNRESERVED else upper
        for first in {upper[1], upper[1].lower()}:
            for second in {upper[2], upper[2].lower()}:
                normal[f"%{first}{second}"] = form
    return normal


_NORMAL = _normal_escapes()
