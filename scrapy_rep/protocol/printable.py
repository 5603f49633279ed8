"""Text from a site, made safe to show in a log, on a terminal or in a report.

A site can send any characters: escape sequences that change a terminal, controls that reverse the
direction of the text, half a megabyte in one value.
"""

from __future__ import annotations

import re
from itertools import accumulate

LENGTH = 200
"""Characters of one text that are shown by default. It fits on two lines of a terminal."""

ELLIPSIS = "…"
"""Replaces the end of a text that is cut."""

_CREDENTIALS = re.compile(r"\b((?:https?|wss?|ftp)://)[^/?#\s]*@", re.IGNORECASE).sub


def printable(text: str, length: int = LENGTH) -> str:
    r"""Return a text with at most `length` characters, all of them printable.

    Control characters, line separators, bidirectional and other invisible formatting characters,
    and lone surrogates become escapes as in `repr`. A text that is too long ends in an ellipsis. A
    backslash is not escaped.

    >>> print(printable("/\x1b[2J"))
    /\x1b[2J
    >>> print(printable("/private", length=5))
    /pri…
    """
    if len(text) <= length and text.isprintable():
        return text
    pieces = [
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text[:length]
    ]
    if len(text) > length or sum(map(len, pieces)) > length:
        room = length - len(ELLIPSIS)
        kept = sum(end <= room for end in accumulate(map(len, pieces)))
        pieces[kept:] = [ELLIPSIS]
    return "".join(pieces)


def quoted(value: bytes, length: int = LENGTH) -> str:
    """Return bytes of a file in quotation marks, cut and escaped."""
    return f"'{printable(value.decode('utf-8', 'replace'), length)}'"


def without_credentials(text: str) -> str:
    """Return a URL, or a text with URLs, without the user names and passwords of its URLs.

    >>> without_credentials("<GET https://user:password@example.com/a@b>")
    '<GET https://example.com/a@b>'
    """
    return _CREDENTIALS(r"\1", text) if "@" in text else text


def cut(text: str, length: int) -> str:
    """Return a text with at most `length` characters. A longer one ends in an ellipsis."""
    return text if len(text) <= length else text[: length - len(ELLIPSIS)] + ELLIPSIS
