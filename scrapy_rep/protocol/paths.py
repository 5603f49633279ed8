"""URLs and patterns in one comparable form (RFC 9309 §2.2.2), and origins (§2.3).

URLs and patterns become ASCII text, which is compared byte by byte:

1. ``%HH`` of an unreserved character is decoded. Every other ``%HH`` gets upper-case hex. A broken
   escape is literal. An escape is not decoded if that would complete a broken one.
2. Characters that a URL cannot hold are percent-encoded.
3. In a URL ``*`` and ``$`` are encoded. In a pattern a ``$`` that is not the last character is
   encoded. The ones that remain are special.

Nearly all URLs of a crawl are in this form already. One regular expression checks this.

Handlers change URLs before they send them. So a request is allowed only if each path that a server
may receive is also allowed. The forms are those of Scrapy's own handlers and of browsers:

=================  ==================================================================
HTTP/1.1           drops an empty ``;`` or ``?`` and white space at the end, repeats a
                   ``//`` at the start (from Python 3.12.4 on)
HTTP/2             drops an empty ``?``, and ``;`` with all that follows in the last segment
aiohttp            removes dot segments, also encoded ones; decodes ``%21``, ``%2C`` and others;
                   encodes a broken escape; drops an empty ``?``
httpx              removes dot segments
browsers           remove dot segments, also encoded ones; read a backslash as a slash; drop white
                   space at the end
FTP                drops parameters and the query, and decodes all that is encoded
=================  ==================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from ipaddress import IPv6Address
from string import ascii_letters, digits, hexdigits
from urllib.parse import quote, unquote, unquote_to_bytes, urljoin, urlsplit

from .printable import LENGTH, cut, printable
from .verdict import Verdict

ROBOTS_TXT = "/robots.txt"
"""No rule disallows it: "The /robots.txt URI is implicitly allowed" (RFC 9309 §2.2.2)."""

_UNRESERVED = ascii_letters + digits + "-._~"
_RESERVED = "/!&()+,:;=?@"
# Escapes that step 1 does not change: in upper case, and not of an unreserved character.
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
_AUTHORITY = re.compile("(https?|wss?|ftp)://[^/?#]*", re.IGNORECASE | re.ASCII).match
_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_BROKEN_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_RESERVED_IN_QUERY = re.compile("[/:?@]|%(?:2F|3A|3F|40)")
_ENCODED = str.maketrans({"/": "%2F", ":": "%3A", "?": "%3F", "@": "%40"})

_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https", "ftp": "ftp"}
_DEFAULT_PORTS = {"http": "80", "https": "443", "ftp": "21"}
# Nearly every URL begins like this. It need not be parsed.
_PLAIN_ORIGIN = re.compile("(https?)://([A-Za-z0-9.:-]+)/").fullmatch
_WEB = re.compile("(?:http|ws)s?:", re.IGNORECASE | re.ASCII).match
# Characters that `urlsplit` ignores anywhere in a URL, for `str.translate`, and those before it.
_UNSEEN = dict.fromkeys(map(ord, "\t\r\n"))
_C0_AND_SPACE = "".join(map(chr, range(33)))
_HOST = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*").fullmatch
_MAX_CACHED_LENGTH = 300
"""The most characters of a cached scheme and authority: the longest host, and a port. A site can
send longer ones, with a user name or with zeros before the port."""


def is_robots_txt(url: str) -> bool:
    """Whether a URL that has an `origin_of` is that of its robots.txt, whatever its fragment is."""
    return ROBOTS_TXT in url and path_of(url) == ROBOTS_TXT


def path_of(url: str) -> str:
    """Return the path and query of a URL in comparable form.

    The URL is absolute, with the scheme http, https, ws, wss or ftp, or a path that starts with
    ``/``. Raises ValueError for any other URL, and TypeError if it is not a str. Every URL that has
    an `origin_of` also has a path.
    """
    try:
        plain = plain_url(url)
    except TypeError:
        raise TypeError(f"a URL must be str, not {type(url).__name__}") from None
    if plain:
        return plain[1]
    path = _split_authority(url)[1].partition("#")[0]
    if not path.startswith("/"):
        path = "/" + path
    # A lone surrogate is not a character, but it is also compared.
    text = path.encode("utf-8", "surrogatepass").decode("latin-1")
    return _decode(text).translate(_STEP_2).translate(_STEP_3)


def _split_authority(url: str) -> tuple[str, str]:
    """Return the scheme of a URL, and what follows its host and port, as `urlsplit` finds them.

    The scheme of a path is empty. Raises ValueError as `path_of` does.
    """
    if url.startswith("/"):
        return "", url
    authority = _AUTHORITY(url) or _AUTHORITY(_without_unseen(url))
    if authority is None:
        raise ValueError(
            f"'{printable(url)}' is neither an absolute URL (http, https, ws, wss or ftp) nor a "
            "path that starts with '/'"
        )
    return authority[1].lower(), authority.string[authority.end() :]


def pattern_of(value: bytes) -> tuple[str, int]:
    """Return the comparable form of a rule's value, and its length for precedence.

    The length is counted after step 1 alone. A byte above 127 counts three, as in its encoded
    form. So the longer of two rules is the one that is longer for Google's matcher.
    """
    if _PLAIN_PATTERN(value):
        return value.decode("ascii"), len(value)
    text = _decode(value.decode("latin-1"))
    length = len(text) + 2 * len(text.encode("latin-1").translate(None, _ASCII))
    pattern = text.translate(_STEP_2)
    return pattern[:-1].replace("$", "%24") + pattern[-1:], length


def encoded_pattern(value: bytes) -> bytes:
    """Return a rule's value in the form that also matches if a crawler compares it as it is.

    Google's matcher encodes what is not ASCII, and compares all other characters and escapes as
    they are written. So steps 1 and 2 are applied here, except for what is not ASCII, for NUL, at
    which Google ends the line, and for the apostrophe, which URLs may hold in either form.
    """
    return _decode(value.decode("latin-1")).translate(_STEP_2_OF_GOOGLE).encode("latin-1")


def encode_query(path: str) -> str:
    """Return a path or pattern with ``: / ? @`` after the first ``?`` percent-encoded.

    RFC 9309 §2.2.2, figure 4, row 2: a literal query matches its encoded form.
    """
    query = path.find("?") + 1
    return path[:query] + path[query:].translate(_ENCODED)


def has_reserved_query(path: str) -> bool:
    """Return whether the query of a path or pattern holds one of ``: / ? @`` or its escape.

    A path that does not match a pattern may do so after `encode_query` only if both queries do.
    """
    query = path.find("?") + 1
    return query > 0 and _RESERVED_IN_QUERY.search(path, query) is not None


def origin_of(url: str) -> str | None:
    """Return the origin whose robots.txt applies to a URL: ``scheme://host[:port]``, normalized.

    None if the scheme has no robots.txt, or if the host or port is invalid (see `lacks_host`).

    >>> origin_of("wss://user@Example.com.:443/feed")
    'https://example.com'
    """
    start = url[: url.find("/", len("https://")) + 1]
    plain = _plain_origin(start) if len(start) <= _MAX_CACHED_LENGTH else None
    if plain is not None:
        return plain
    try:
        parts = urlsplit(url)
        if "\\" in parts.netloc:  # a browser reads it as the end of the host
            return None
        return _origin(parts.scheme, parts.netloc.rpartition("@")[2])
    except ValueError:  # an invalid IPv6 address or IDN
        return None


def lacks_host(url: str) -> bool:
    """Return whether a URL has the scheme http, https, ws or wss, but no valid host or port.

    A proxy might fetch it. So it is disallowed, unlike a URL whose scheme has no robots.txt.
    """
    return _WEB(_without_unseen(url)) is not None and origin_of(url) is None


@lru_cache(maxsize=10_000)
def _plain_origin(start: str) -> str | None:
    """Return the origin of a URL from its start up to the slash; None if this is not enough."""
    plain = _PLAIN_ORIGIN(start)
    return _origin(*plain.groups()) if plain else None


def _origin(scheme: str, netloc: str) -> str | None:
    scheme = _SCHEMES.get(scheme, "")
    if netloc.startswith("["):
        address, _, port = netloc[1:].partition("]")
        if "%" in address:  # a zone does not belong to an origin
            return None
        host = f"[{IPv6Address(address).compressed}]" if port[:1] in ("", ":") else None
        port = port[1:]
    else:
        name, _, port = netloc.partition(":")
        host = _host(name)
    if not scheme or not host:
        return None
    # 0080 is port 80.
    port = port.lstrip("0") or port[:1]
    if port in ("", _DEFAULT_PORTS[scheme]):
        return f"{scheme}://{host}"
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 65536):
        return None
    return f"{scheme}://{host}:{port}"


@lru_cache(maxsize=10_000)
def host_of(origin: str) -> str:
    """Return the host of an origin, without the port.

    >>> host_of("https://example.com:8443")
    'example.com'
    """
    return urlsplit(origin).hostname or ""


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
        raise TypeError(f"a URL must be str, not {type(url).__name__}")
    origin = origin_of(url)
    if origin is None:
        raise ValueError(
            f"'{printable(url)}' has no robots.txt: pass an absolute URL with the scheme http, "
            "https, ws, wss or ftp and a valid host"
        )
    return origin + ROBOTS_TXT


def _without_unseen(url: str) -> str:
    return url.translate(_UNSEEN).lstrip(_C0_AND_SPACE)


def _host(name: str) -> str | None:
    """Return a host in lower case, as A-labels, without the last dot; None if it is invalid.

    Raises ValueError if it cannot be encoded as A-labels.
    """
    if len(name) > 254:  # RFC 1035 §2.3.4: 253 characters, and the dot at the end
        return None
    if "%" in name:
        # RFC 3986 §3.2.2: percent-encoded bytes of a name are UTF-8.
        name = unquote(name, errors="strict")
    if not name.isascii():
        name = name.encode("idna").decode("ascii")
    name = name.lower().removesuffix(".")
    return name if _HOST(name) else None


def _decode(text: str) -> str:
    """Apply step 1."""
    if "%" not in text:
        return text
    if not _BROKEN_ESCAPE.search(text):
        return _ESCAPE.sub(lambda match: _STEP_1[match[0]], text)
    pieces: list[str] = []
    end = 0
    for match in _ESCAPE.finditer(text):
        pieces.append(text[end : match.start()])
        end = match.end()
        piece = _STEP_1[match[0]]
        # A digit may complete a broken escape around it.
        around = "".join(pieces[-4:])[-2:] + piece + text[end : end + 1]
        if piece in hexdigits and _ESCAPE.search(around):
            piece = match[0].upper()
        pieces.append(piece)
    return "".join([*pieces, text[end:]])


_STEP_1 = {
    f"%{first}{second}": chr(byte) if chr(byte) in _UNRESERVED else f"%{byte:02X}"
    for byte in range(256)
    for first in {f"{byte:02X}"[0], f"{byte:02x}"[0]}
    for second in {f"{byte:02X}"[1], f"{byte:02x}"[1]}
}
_KEPT = _UNRESERVED + _RESERVED + "%*$"
_STEP_2 = {byte: f"%{byte:02X}" for byte in range(256) if chr(byte) not in _KEPT}
_STEP_2_OF_GOOGLE = {byte: _STEP_2[byte] for byte in _STEP_2 if 0 < byte < 128 and byte != ord("'")}
_STEP_3 = {ord("*"): "%2A", ord("$"): "%24"}


def resolve(reference: str, base: str | None) -> str | None:
    """Return a reference as an absolute URL, or as it is without a base. None if unreadable."""
    try:
        return urljoin(base, reference) if base else reference
    except ValueError:
        return None


# What download handlers send

_MAY_BE_DECODED = re.compile(
    "%(?:2[014]|2[6-9ACEF]|3[ABDF]|40|(?![0-9A-F]{2}))", re.IGNORECASE
).search
_ANY_ESCAPE = re.compile("%(?:[0-9A-F]{2})?", re.IGNORECASE)
_ENCODED_DOT = re.compile("%2E", re.IGNORECASE)
# What aiohttp decodes, by the escape, and what it makes of a broken escape.
_DECODED = {f"%{ord(character):02X}": character for character in "!$'()*,:@"} | {"%": "%25"}
_DECODED_IN_PATH = _DECODED | {"%2E": ".", "%26": "&", "%3B": ";", "%3D": "="}
_DECODED_IN_QUERY = _DECODED | {"%2F": "/", "%3F": "?"}
_ASCII_SPACE = " \t\n\r\v\f"
_FTP_SAFE = "/!$&'()*+,:;=?@"


def other_paths(url: str) -> tuple[str, ...]:
    """Return the other paths that a handler may send for a URL, in the form of `path_of`.

    Empty for most URLs: every handler sends the same path. Raises ValueError as `path_of` does.

    >>> other_paths("https://example.com/private;")
    ('/private',)
    >>> other_paths("https://example.com/a/../private")
    ('/private',)
    """
    # Nearly every URL of a crawl ends here: this is the hot path. Python finds one character faster
    # than two.
    last = url[-1:]
    if not (
        ";" in url
        or ("%" in url and (_MAY_BE_DECODED(url) or not url.startswith("http")))
        or " " in url
        or "\\" in url
        or "\t" in url
        or "\n" in url
        or "\r" in url
        or ("#" in url and "?#" in url)
        or last == "?"
        or last < " "
        or "/." in url
        or url.rfind("//") > len("https:")
    ):
        return ()
    scheme, rest = _split_authority(url)
    sent = rest.partition("#")[0].translate(_UNSEEN)
    forms = [_ftp(sent)] if scheme == "ftp" else _web(sent)
    paths = dict.fromkeys(path_of("/" + form.removeprefix("/")) for form in forms)
    paths.pop(path_of(url), None)
    return tuple(paths)


def verdict_as_sent(verdict_of: Callable[..., Verdict], url: str, *arguments: object) -> Verdict:
    """Return the verdict on a URL and on all paths that a handler may send for it.

    ``verdict_of`` returns the verdict on a URL or a path alone, with these further arguments. If it
    disallows another path, the verdict names that.
    """
    verdict = verdict_of(url, *arguments)
    if verdict.allowed:
        for path in other_paths(url):
            other = verdict_of(path, *arguments)
            if not other.allowed:
                detail = other.detail or cut(f"a download handler may send {path}", LENGTH)
                return other._replace(detail=detail)
    return verdict


def _web(sent: str) -> Iterator[str]:
    """Yield what the handlers for HTTP, and browsers, make of a path with its query."""
    for text in dict.fromkeys((sent, sent.rstrip(_ASCII_SPACE), sent.rstrip(_C0_AND_SPACE))):
        path, mark, query = text.partition("?")
        query_or_none = mark + query if query else ""
        yield path + query_or_none
        end = path.find(";", path.rfind("/") + 1)
        if end >= 0:
            yield path[:end] + query_or_none  # HTTP/2
        path_or_none = path[:-1] if 0 <= end == len(path) - 1 else path
        yield (path_or_none + query_or_none).rstrip(_ASCII_SPACE)  # HTTP/1.1
        if path.startswith("//"):
            yield "//" + path_or_none + query_or_none
        without_dots = _without_dots(path)
        yield without_dots + mark + query
        if path.endswith(("/.", "/..")):
            yield without_dots[:-1] + mark + query  # httpx
        yield _without_dots(_ENCODED_DOT.sub(".", path).replace("\\", "/")) + mark + query
        query_or_none = _replaced(query_or_none, _DECODED_IN_QUERY).replace(" ", "+")
        yield _without_dots(_replaced(path, _DECODED_IN_PATH)) + query_or_none


def _ftp(sent: str) -> str:
    folder, slash, name = sent.partition("?")[0].rpartition("/")
    path = folder + slash + name.partition(";")[0]
    try:
        raw = unquote(path, "latin-1").encode("latin-1")
    except UnicodeEncodeError:  # it is sent as UTF-8
        raw = unquote_to_bytes(path)
    return quote(raw, _FTP_SAFE)


def _without_dots(path: str) -> str:
    """Return a path without dot segments (RFC 3986 §5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    for segment in path[1:].split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if path.endswith(("/.", "/..")):
        kept.append("")
    return "/" + "/".join(kept)


def _replaced(text: str, decoded: dict[str, str]) -> str:
    return _ANY_ESCAPE.sub(lambda match: decoded.get(match[0].upper(), match[0]), text)
