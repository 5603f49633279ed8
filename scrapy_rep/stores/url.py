"""URLs of stores: what of one may be shown.

RFC 3986, section 3, which Redis's client reads too: the authority ends at the first ``/``, ``?`` or
``#``. A password that holds one of them, and is not percent-encoded, is cut there; so wherever an
``@`` may come too late nothing is shown.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_plus

HIDDEN = "***"

_URL = re.compile(
    r"(?P<scheme>[^:/?#@]*://)(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<rest>.*)", re.DOTALL
)
_SECRET = re.compile("pass|pwd|secret|token|credential", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]*\]|[^\[\]:]*)(?::\d*)?")
_FILES = ("sqlite://", "unix://")


class _Parts(NamedTuple):
    scheme: str
    authority: str
    path: str
    options: str
    """What begins with ``?`` or ``#``, up to what may be a password."""
    secret: bool
    """Whether something came behind that."""

    @property
    def is_ambiguous(self) -> bool:
        """Whether there is an ``@`` behind the place where one can end a password."""
        in_path = "@" in self.path and (self.authority != "" or self.scheme not in _FILES)
        return in_path or "@" in self.options


def without_password(url: str) -> str:
    """``url`` as it may be shown: with stars in place of whatever may be a password."""
    parts = _parts(url)
    if parts is None:
        return HIDDEN if "@" in url or (_SECRET.search(url) and "=" in url) else url
    if parts.is_ambiguous:
        return parts.scheme + HIDDEN
    user, at, host = parts.authority.rpartition("@")
    if at:
        name, colon, _ = user.partition(":")
        user = f"{name}:{HIDDEN}" if colon else HIDDEN
    if not _HOST.fullmatch(host):  # what should be a port may be a password without its @
        host = f"{host.partition(':')[0]}:{HIDDEN}"
    return "".join(
        (parts.scheme, user, at, host, parts.path, parts.options, HIDDEN if parts.secret else "")
    )


def is_ambiguous(url: str) -> bool:
    """Whether a password in ``url`` may be cut, since it is not percent-encoded."""
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
        if equals and _SECRET.search(unquote_plus(name)):  # it may hold whatever follows
            return _Parts(scheme, authority, path, shown, secret=True)
        shown += part[len(name) + len(equals) :]
    return _Parts(scheme, authority, path, shown, secret=False)
