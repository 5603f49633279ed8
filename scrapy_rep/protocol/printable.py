"""Text from a site as it may be shown: in a log, on a terminal, in a report.

A pattern, a header or a Location may hold any characters: escape sequences that a terminal
obeys, controls that reverse what a reader sees, half a megabyte of stars.
"""

from __future__ import annotations

LENGTH = 200
"""Characters of one text that are shown, unless the caller says otherwise."""

ELLIPSIS = "…"
"""What stands for the rest of a text that was cut."""


def printable(text: str, length: int = LENGTH) -> str:
    r"""Return a text in at most `length` characters, all of which a terminal may print.

    Control characters, line separators, bidirectional and other invisible formatting characters,
    and lone surrogates become escapes as in `repr`: ``\x1b``, ``\u202e``. A text that is too long
    ends in an ellipsis. A backslash stays as it is.
    """
    if len(text) <= length and text.isprintable():
        return text
    pieces = [_escape(character) for character in text[:length]]
    if len(text) > length or sum(map(len, pieces)) > length:
        kept, room = 0, length - len(ELLIPSIS)
        while kept < len(pieces) and len(pieces[kept]) <= room:
            room -= len(pieces[kept])
            kept += 1
        pieces[kept:] = [ELLIPSIS]
    return "".join(pieces)


def cut(text: str, length: int) -> str:
    """Return a text in at most `length` characters, with an ellipsis where that is not all."""
    return text if len(text) <= length else text[: length - len(ELLIPSIS)] + ELLIPSIS


def _escape(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
