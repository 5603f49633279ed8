"""The URLs that the user gives, as URLs that a crawl could request."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..protocol.paths import lacks_host, origin_of

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://").match
# "mailto:x", but not "example.com:8080/x".
_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d+(?:[/?#]|\Z))").match

# How Python reads an octet of an argument or a file that is not UTF-8.
_NOT_UTF_8 = re.compile("[\udc80-\udcff]")

DEFAULT_SCHEME = "https"
"""The scheme of a URL that is given without one."""


class Target(NamedTuple):
    """One URL that was given."""

    given: str
    url: str
    origin: str | None
    """The origin whose robots.txt applies; None if there is none."""
    is_valid: bool = True
    """False: nothing can be said about it. A URL whose scheme has no robots.txt is valid."""

    @property
    def has_default_scheme(self) -> bool:
        """Whether the URL was given without a scheme."""
        return self.url != self.given


def target_of(given: str, *, in_file: bool = False) -> Target:
    """Return what a text stands for.

    Octets that are not UTF-8 are percent-encoded. ``in_file``: the rules are those of a file, so
    that a path is enough.

    >>> target_of("example.com/x").url
    'https://example.com/x'
    """
    if not given.isascii():
        given = _NOT_UTF_8.sub(lambda octet: f"%{ord(octet[0]) - 0xDC00:02X}", given)
    url = given
    if not given.startswith(("https://", "http://")):
        if given.startswith("/") and not given.startswith("//"):
            return Target(given, given, None, is_valid=in_file)
        url = with_scheme(given)
    origin = origin_of(url)
    return Target(given, url, origin, is_valid=origin is not None or not lacks_host(url))


def with_scheme(given: str) -> str:
    """Return a URL with the scheme https, unless it has one.

    >>> with_scheme("example.com:8080")
    'https://example.com:8080'
    >>> with_scheme("mailto:robots@example.com")
    'mailto:robots@example.com'
    """
    if _SCHEME(given) or _OTHER_SCHEME(given):
        return given
    return f"{DEFAULT_SCHEME}://{given.lstrip('/')}"
