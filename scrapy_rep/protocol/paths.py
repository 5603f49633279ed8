"""URLs and patterns in one comparable form (RFC 9309 §2.2.2), and origins (§2.3).

Both sides become ASCII text that is compared octet by octet:

1. ``%HH`` of an unreserved character is decoded, every other gets upper-case hex; a broken
   escape is literal, and nothing is decoded that would mend one;
2. what may not stand in a URL as it is, is percent-encoded;
3. a literal ``*`` or ``$`` of a URL is encoded, and so is a ``$`` that does not end a pattern:
   what is left of them in patterns is special.

Nearly all of what a crawl meets is in that form already, which one regular expression tells.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address
from string import ascii_letters, digits, hexdigits
from urllib.parse import unquote, urlsplit

from .printable import printable

_UNRESERVED = ascii_letters + digits + "-._~"
_RESERVED = "/!&()+,:;=?@"
# Escapes that stay as they are: in upper case, and of no unreserved character.
_FINAL_ESCAPE = "%(?:[01][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[BCDF]|[89A-F][0-9A-F])"

_PLAIN = f"[{re.escape(_UNRESERVED + _RESERVED)}]*"

plain_url = re.compile(
    rf"https?://[A-Za-z0-9.:-]*(/(?!robots\.txt\Z){_PLAIN}(?:{_FINAL_ESCAPE}{_PLAIN})*)"
).fullmatch
"""Matches absolute URLs whose path is in comparable form already, and is not /robots.txt."""

_PLAIN_PATTERN = re.compile(
    rf"(?:{_PLAIN}|\*)(?:(?:{_FINAL_ESCAPE}|\*){_PLAIN})*\$?".encode()
).fullmatch

_ASCII = bytes(range(128))
_AUTHORITY = re.compile("(?:https?|wss?|ftp)://[^/?#]*", re.IGNORECASE | re.ASCII).match
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_RESERVED_IN_PATH_QUERY = re.compile("[/:?@%]")
_RESERVED_IN_PATTERN_QUERY = re.compile("[/:?@]|%(?:2F|3A|3F|40)")
_ENCODED = str.maketrans({"/": "%2F", ":": "%3A", "?": "%3F", "@": "%40"})

_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https", "ftp": "ftp"}
_DEFAULT_PORTS = {"http": "80", "https": "443", "ftp": "21"}
# What nearly every URL begins with: it need not be parsed.
_PLAIN_ORIGIN = re.compile("(https?)://([A-Za-z0-9.:-]+)/").fullmatch
_WEB = re.compile("(?:http|ws)s?:", re.IGNORECASE | re.ASCII).match
# What `urlsplit` skips.
_UNSEEN = dict.fromkeys(map(ord, "\t\r\n"))
_C0_AND_SPACE = "".join(map(chr, range(33)))
_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*").fullmatch
# RFC 1035 §2.3.4; with the dot at the end.
_MAX_HOST_LENGTH = 254


def path_of(url: str) -> str:
    """Return the path and query of a URL in comparable form.

    The URL is absolute, with the scheme http, https, ws, wss or ftp, or a path that starts with
    ``/``. Raises ValueError for any other URL, and TypeError if it is not a str. Every URL that has
    an `origin_of` has a path, too.
    """
    try:
        plain = plain_url(url)
    except TypeError:
        raise _not_str(url) from None
    if plain:
        return plain[1]
    path = url if url.startswith("/") else _without_authority(url)
    path = path.partition("#")[0]
    if not path.startswith("/"):
        path = "/" + path
    # A lone surrogate is no character. It is compared all the same.
    octets = path.encode("utf-8", "surrogatepass").decode("latin-1")
    return _decode(octets).translate(_STEP_2).translate(_STEP_3)


def pattern_of(value: bytes) -> tuple[str, int]:
    """The comparable form of a rule's value, and its length for precedence.

    The length is that before step 2, but for octets above 127, which count three as in their
    encoded form: so the longer of two rules is the one that Google's matcher takes for longer.
    """
    if _PLAIN_PATTERN(value):
        return value.decode("ascii"), len(value)
    text = _decode(value.decode("latin-1"))
    length = len(text) + 2 * len(text.encode("latin-1").translate(None, _ASCII))
    pattern = text.translate(_STEP_2)
    return pattern[:-1].replace("$", "%24") + pattern[-1:], length


def encode_query(path: str) -> str:
    """``: / ? @`` after the first ``?`` percent-encoded: row 2 of the RFC's figure 4."""
    query = path.find("?") + 1
    return path[:query] + path[query:].translate(_ENCODED)


def path_has_reserved_query(path: str) -> bool:
    """Whether `encode_query` matters for a path: else no doubtful pattern can match it."""
    query = path.find("?") + 1
    return query > 0 and _RESERVED_IN_PATH_QUERY.search(path, query) is not None


def pattern_has_reserved_query(pattern: str) -> bool:
    """Whether a pattern's query holds one of ``: / ? @`` or its escape."""
    query = pattern.find("?") + 1
    return query > 0 and _RESERVED_IN_PATTERN_QUERY.search(pattern, query) is not None


def origin_of(url: str) -> str | None:
    """The origin whose robots.txt speaks for a URL: ``scheme://host[:port]`` in normal form.

    None for a scheme that has no robots.txt, and for a host or port that is none: `lacks_host`
    tells which.
    """
    plain = _plain_origin(url[: url.find("/", len("https://")) + 1])
    if plain is not None:
        return plain
    try:
        parts = urlsplit(url)
        return _origin(parts.scheme, parts.netloc)
    except ValueError:  # no IPv6 address, no IDN
        return None


def lacks_host(url: str) -> bool:
    """Whether a URL is of the web (http, https, ws, wss) and has no origin.

    Its host or port is none, even when it is percent-decoded. Who sends it to a proxy may have
    it fetched all the same, so it must not pass as a URL without a robots.txt does.
    """
    return _WEB(_without_unseen(url)) is not None and origin_of(url) is None


@lru_cache(maxsize=10_000)
def _plain_origin(start: str) -> str | None:
    """That of a URL that starts so, to its first slash; None where that takes the whole URL."""
    plain = _PLAIN_ORIGIN(start)
    return _origin(*plain.groups()) if plain else None


@lru_cache(maxsize=10_000)
def _origin(scheme: str, netloc: str) -> str | None:
    scheme = _SCHEMES.get(scheme, "")
    netloc = netloc.rpartition("@")[2]
    if netloc.startswith("["):
        address, _, port = netloc[1:].partition("]")
        host = f"[{IPv6Address(address).compressed}]" if port[:1] in ("", ":") else None
        port = port[1:]
    else:
        name, _, port = netloc.partition(":")
        host = _host(name)
    if not scheme or not host:
        return None
    # Leading zeros do not make another port.
    port = port.lstrip("0") or port[:1]
    if port in ("", _DEFAULT_PORTS[scheme]):
        return f"{scheme}://{host}"
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 65536):
        return None
    return f"{scheme}://{host}:{port}"


@lru_cache(maxsize=10_000)
def host_of(origin_of: str) -> str:
    """The host of an origin, without a port."""
    return urlsplit(origin_of).hostname or ""


def robots_txt_url(url: str) -> str:
    """Return the URL of the robots.txt whose rules apply to a URL (RFC 9309 §2.3).

    The URL is absolute, with the scheme http, https, ws, wss or ftp and a valid host. ``ws`` uses
    the robots.txt of ``http``, and ``wss`` that of ``https``. User names, passwords and default
    ports are removed. The host is in lower case and in ASCII.

    Raises ValueError for a URL that has no robots.txt, and TypeError if it is not a str.

    >>> robots_txt_url("https://Example.com:443/shop?page=2")
    'https://example.com/robots.txt'
    """
    if not isinstance(url, str):
        raise _not_str(url)
    origin = origin_of(url)
    if origin is None:
        raise ValueError(
            f"{_quoted(url)} has no robots.txt: pass an absolute URL with the scheme http, https, "
            "ws, wss or ftp and a valid host"
        )
    return f"{origin}/robots.txt"


def _without_authority(url: str) -> str:
    """Return what comes after the scheme, host and port of an absolute URL."""
    authority = _AUTHORITY(url)
    if authority is None:
        url = _without_unseen(url)
        authority = _AUTHORITY(url)
    if authority is None:
        raise ValueError(
            f"{_quoted(url)} is neither an absolute URL (http, https, ws, wss or ftp) nor a path "
            "that starts with '/'"
        )
    return url[authority.end() :]


def _without_unseen(url: str) -> str:
    """Return a URL without the characters that `urlsplit` ignores."""
    return url.translate(_UNSEEN).lstrip(_C0_AND_SPACE)


def _not_str(url: object) -> TypeError:
    return TypeError(f"a URL must be str, not {type(url).__name__}")


def _quoted(url: str) -> str:
    return f"'{printable(url)}'"


def _host(name: str) -> str | None:
    """A host in lower case, as A-labels, without a dot at the end. ValueError for no IDN."""
    if len(name) > _MAX_HOST_LENGTH:
        return None
    if "%" in name:
        # RFC 3986 §3.2.2: percent-encoded octets of a name are UTF-8.
        name = unquote(name, errors="strict")
    if not name.isascii():
        name = name.encode("idna").decode("ascii")
    name = name.lower().removesuffix(".")
    return name if _HOST(name) else None


def _decode(text: str) -> str:
    """Step 1."""
    if "%" not in text:
        return text
    if not _BROKEN_ESCAPE.search(text):
        return _ESCAPE.sub(lambda match: _STEP_1[match[0]], text)
    pieces: list[str] = []
    end = 0
    before = ""
    for match in _ESCAPE.finditer(text):
        between = text[end : match.start()]
        end = match.end()
        piece = _STEP_1[match[0]]
        before = (before + between)[-2:]
        if piece in hexdigits and _mends(before, piece, text[end : end + 1]):
            piece = match[0].upper()
        before = (before + piece)[-2:]
        pieces += (between, piece)
    return "".join([*pieces, text[end:]])


def _mends(before: str, digit: str, after: str) -> bool:
    """Whether a digit would complete an escape with what stands around it."""
    around = before[-2:] + digit + after
    return _ESCAPE.search(around) is not None


_STEP_1 = {
    f"%{first}{second}": chr(octet) if chr(octet) in _UNRESERVED else f"%{octet:02X}"
    for octet in range(256)
    for first in {f"{octet:02X}"[0], f"{octet:02x}"[0]}
    for second in {f"{octet:02X}"[1], f"{octet:02x}"[1]}
}
_STEP_2 = {
    octet: f"%{octet:02X}"
    for octet in range(256)
    if chr(octet) not in _UNRESERVED + _RESERVED + "%*$"
}
_STEP_3 = {ord("*"): "%2A", ord("$"): "%24"}
