"""URLs of stores, without their passwords.

By RFC 3986 §3, which the Redis client follows, the authority of a URL ends at the first ``/``,
``?`` or ``#``. A password that contains one of them and is not percent-encoded is cut there. So
if an ``@`` comes after that place, the whole URL is hidden.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_plus

HIDDEN = "***"
"""Replaces a password."""

_URL = re.compile(
    r"(?P<scheme>[^:/?#@]*://)(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<rest>.*)", re.DOTALL
)
_SECRET = re.compile("pass|pwd|secret|token|credential", re.IGNORECASE)
_ONE_HOST = r"(?:\[[0-9A-Fa-f:.]*\]|[^\[\]:,]*)(?::[0-9]*)?"
_HOST = re.compile(rf"{_ONE_HOST}(?:,{_ONE_HOST})*")
"""One host, or the nodes of a cluster or of Sentinel."""
_FILE_SCHEMES = ("sqlite://", "unix://")
"""The path of these URLs is that of a file, which may contain an ``@``."""


class _Parts(NamedTuple):
    scheme: str
    authority: str
    path: str
    options: str
    """The query and the fragment, up to the value that may be a password."""
    has_secret: bool
    """Whether the query or the fragment has such a value."""

    @property
    def is_ambiguous(self) -> bool:
        """Whether an ``@`` behind the authority may be the end of a password."""
        in_path = "@" in self.path and (self.authority != "" or self.scheme not in _FILE_SCHEMES)
        return in_path or "@" in self.options


def without_password(url: str) -> str:
    """Return ``url`` with :data:`HIDDEN` in place of everything that may be a password."""
    parts = _parts(url)
    if parts is None:
        return HIDDEN if "@" in url or (_SECRET.search(url) and "=" in url) else url
    if parts.is_ambiguous:
        return parts.scheme + HIDDEN
    user, at, host = parts.authority.rpartition("@")
    if at:
        name, colon, _ = user.partition(":")
        user = f"{name}:{HIDDEN}" if colon else HIDDEN
    if not _HOST.fullmatch(host):  # an invalid port may be a password without its @
        host = f"{host.partition(':')[0]}:{HIDDEN}"
    return "".join(
        (
            parts.scheme,
            user,
            at,
            host,
            parts.path,
            parts.options,
            HIDDEN if parts.has_secret else "",
        )
    )


def is_ambiguous(url: str) -> bool:
    """Return whether a password in ``url`` may be cut because it is not percent-encoded."""
    parts = _parts(url)
    return parts is not None and parts.is_ambiguous


def _parts(url: str) -> _Parts | None:
    found = _URL.fullmatch(url)
    if found is None:
        return None
    scheme, authority, path, rest = found.groups()
    shown = ""
    for part in re.split("(?<=[?&;#])", rest):
        name, equals, _ = part.partition("=")
        shown += name + equals
        if equals and _SECRET.search(unquote_plus(name)):
            # All that follows may belong to the password.
            return _Parts(scheme, authority, path, shown, has_secret=True)
        shown += part[len(name) + len(equals) :]
    return _Parts(scheme, authority, path, shown, has_secret=False)
