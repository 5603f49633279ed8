"""Removes the query parameters that a site declares irrelevant (Clean-param, Yandex).

    clean-param = name *("&" name) [1*WS path]

A name is case-sensitive. The record applies to pages that begin with the path, in which ``*`` is
any run of octets: "the * character is always implicitly appended to the end of the prefix".
Without a path the record applies to all pages.

Source: Yandex, "The Clean-param directive",
https://yandex.com/support/webmaster/en/robot-workings/clean-param
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from .matcher import TOO_COMPLEX, matching
from .paths import path_of, pattern_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .records import CleanParam

MAX_NAMES = 10_000
"""How many names of a file are read (ours). No file of the corpus has 20."""


class ParameterCleaner:
    """Removes the parameters that the Clean-param records of one file name."""

    __slots__ = ("_patterns",)

    def __init__(self, records: Iterable[CleanParam]) -> None:
        self._patterns: dict[str, list[str]] = {}
        """For each name, in comparable form, the paths below which it is removed."""
        named = (
            (name, record.path)
            for record in records
            if record.path[0] in "/*"
            for name in record.parameters
        )
        patterns: dict[str, str] = {}
        for name, path in islice(named, MAX_NAMES):
            if path not in patterns:
                # A "$" is no anchor for Yandex. With the "*" behind it, it is none here.
                patterns[path], _ = pattern_of(path.encode() + b"*")
            self._patterns.setdefault(_comparable(name), []).append(patterns[path])

    def clean(self, url: str) -> str:
        """Return a URL without these parameters.

        The order of the others, and the fragment, stay as they are. Raises ValueError as `path_of`
        does.
        """
        page = path_of(url).partition("?")[0]
        address, number_sign, fragment = url.partition("#")
        address, question_mark, query = address.partition("?")
        if not question_mark or not self._patterns:
            return url
        written = query.split("&")
        candidates: dict[str, list[str]] = {}
        for parameter in written:
            name = _name_of(parameter)
            if name in self._patterns:
                candidates[name] = self._patterns[name]
        if not candidates:
            return url
        removed = _matching_names(candidates, page)
        kept = [parameter for parameter in written if _name_of(parameter) not in removed]
        if len(kept) == len(written):
            return url
        rest = "&".join(kept)
        return address + (question_mark if rest else "") + rest + number_sign + fragment


def _matching_names(patterns: dict[str, list[str]], page: str) -> set[str]:
    """Return the names that have a pattern which matches a page.

    If the comparison takes too many steps, returns no name, so that the URL stays as it is.
    """
    names_of: dict[str, set[str]] = {}
    for name, of_name in patterns.items():
        for pattern in of_name:
            names_of.setdefault(pattern, set()).add(name)
    distinct = list(names_of)
    found: set[str] = set()
    for number in matching(distinct, page):
        if number == TOO_COMPLEX:
            return set()
        found |= names_of[distinct[number]]
    return found


def _name_of(parameter: str) -> str:
    return _comparable(parameter.partition("=")[0])


def _comparable(name: str) -> str:
    """Return a name in the form in which paths are compared, so that escapes do not matter."""
    return path_of("/" + name)
