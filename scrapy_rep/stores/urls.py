"""The forms of REP_STORE, and how a message shows a value that may contain a password."""

from __future__ import annotations

import re
from urllib.parse import unquote_plus

HIDDEN = "***"

_HOST = r"(?:\[[0-9A-Fa-f:.]*\]|[^\[\]:,/?#@]*)(?::[0-9]*)?"
_URL = re.compile(
    rf"([^:/?#@]*://)([^/?#]*@)?({_HOST}(?:,{_HOST})*(?:/[^?#@]*)?)([?#].*)?", re.ASCII | re.DOTALL
)
_SCHEME = re.compile("[A-Za-z0-9+.-]+://")
_SECRET = re.compile("(?:pass|pwd|secret|token|credential)[^=&]*=", re.IGNORECASE)

STORE_FORMS = {
    "'sqlite:///path'": "sqlite:///.+",
    "'redis://host:port/db', 'redis+cluster://host:port', 'redis+sentinel://host:port/service'": (
        r"(?:unix|rediss?(?:\+(?:cluster|sentinel))?)://.+"
    ),
    "'memory://name' (a name of letters, digits, '-', '_' and '.')": "memory://[A-Za-z0-9._-]+",
    "'package.module.Class'": r"[^\W\d]\w*(?:\.[^\W\d]\w*)+",
}
"""The forms of REP_STORE, as messages show them, and the patterns that match a whole value."""


def find_form(url: str) -> str | None:
    """Return the form of a value of REP_STORE, or None if it has none."""
    forms = STORE_FORMS.items()
    return next((form for form, pattern in forms if re.fullmatch(pattern, url, re.DOTALL)), None)


def store_forms() -> str:
    """Return the forms of REP_STORE as one phrase, for error messages."""
    *others, last = STORE_FORMS
    return f"{', '.join(others)} or {last}"


def without_password(url: str) -> str:
    """Return ``url`` with :data:`HIDDEN` in place of everything that may be a password.

    If a character of a password may end the host, because it is not percent-encoded, only the
    scheme remains.
    """
    if (scheme := _SCHEME.match(url)) is None:
        return HIDDEN if "@" in url or _SECRET.search(url) else url
    parts = _URL.fullmatch(url)
    rest = unquote_plus(parts[4] or "") if parts is not None else "@"
    if (secret := _SECRET.search(rest)) is not None:
        rest = rest[: secret.end()] + HIDDEN
    elif "@" in rest:
        return scheme[0] + HIDDEN
    assert parts is not None
    name, colon, _ = (parts[2] or "").partition(":")
    user = f"{name}:{HIDDEN}@" if colon else f"{HIDDEN}@" if name else ""
    return f"{parts[1]}{user}{parts[3]}{rest}"
