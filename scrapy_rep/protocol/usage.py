"""What a site states about the use of its content: Content-Signal, Content-Usage, TDM reservation.

A statement maps the name of a use to True (granted) or False (refused). A name that is not in it is
unknown: neither granted nor refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, takewhile
from typing import TypeAlias

from .matcher import TOO_COMPLEX, PatternIndex, matching
from .paths import pattern_of

Preferences: TypeAlias = Mapping[str, bool]
"""What is stated: the name of each use, and whether it is granted."""

TDM = "tdm"
"""The name of the use that a TDM reservation refuses."""

_SAME_USE = {"ai-train": "train-ai"}
"""Content-Signal's names for uses that have another name in AIPREF's vocabulary."""

# https://contentsignals.org: search=yes, ai-train=no
_SIGNAL = re.compile(
    r"""
    ( [A-Za-z][A-Za-z0-9_-]* ) [ \t]* = [ \t]* ( yes | no )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)

# Content-Usage is a dictionary of RFC 9651 (§3.2). Its grammar, with the numbers of its sections:
#
#   sf-dictionary  = dict-member *( OWS "," OWS dict-member )                                3.2
#   dict-member    = member-key ( parameters / "=" ( sf-item / inner-list ) )                3.2
#   inner-list     = "(" *SP [ sf-item *( 1*SP sf-item ) *SP ] ")" parameters                3.1.1
#   parameters     = *( ";" *SP parameter )     parameter = key [ "=" bare-item ]            3.1.2
#   key            = ( lcalpha / "*" ) *( lcalpha / DIGIT / "_" / "-" / "." / "*" )          3.1.2
#   sf-item        = bare-item parameters                                                    3.3
#   bare-item      = sf-integer / sf-decimal / sf-string / sf-token / sf-binary / sf-boolean
#                  / sf-date / sf-displaystring                                              3.3
_KEY = r"[a-z*][a-z0-9_\-.*]*"
_STRING = r'" (?: [\x20!\#-\[\]-~] | \\ ["\\] )* "'
_BARE_ITEM = rf"""(?:
    -? [0-9]{{1,12}} \. [0-9]{{1,3}} (?![0-9])               # sf-decimal
  | @? -? [0-9]{{1,15}} (?![0-9.])                           # sf-integer, sf-date
  | {_STRING}                                               # sf-string
  | [A-Za-z*] [!\#$%&'*+\-.^_`|~0-9A-Za-z:/]*               # sf-token
  | : [A-Za-z0-9+/=]* :                                     # sf-binary
  | \? [01]                                                 # sf-boolean
  | % " (?: [\x20!\#$&-~] | % [0-9a-f]{{2}} )* "            # sf-displaystring
)"""
_PARAMETERS = rf"(?: ; [ ]* {_KEY} (?: = {_BARE_ITEM} )? )*"
_ITEM = rf"{_BARE_ITEM} {_PARAMETERS}"
_INNER_LIST = rf"\( [ ]* (?: {_ITEM} (?: [ ]+ {_ITEM} )* [ ]* )? \)"
_MEMBER = re.compile(
    rf"""
    ( {_KEY} )
    (?: = (?: ( {_BARE_ITEM} ) | {_INNER_LIST} ) )?
    {_PARAMETERS}
    """,
    re.VERBOSE,
)
_COMMA = re.compile(r"[ \t]*,[ \t]*")
_GRANTS = {"y": True, "n": False}

_Pattern: TypeAlias = tuple[str, int]
"""A path pattern in comparable form, and its length (`paths.pattern_of`)."""


def content_signals(value: str) -> dict[str, bool]:
    """Return what a Content-Signal such as ``search=yes, ai-train=no`` states.

    Unreadable parts are skipped.
    """
    found = (_SIGNAL.fullmatch(part.strip()) for part in value.split(","))
    return {signal[1].lower(): signal[2].lower() == "yes" for signal in found if signal}


def content_usage(value: str) -> dict[str, bool] | None:
    """Return what a Content-Usage dictionary such as ``train-ai=n, search=y`` states.

    None if it is no dictionary of RFC 9651. Keys are case-sensitive. Of duplicate keys the last
    holds. Values other than the tokens ``y`` and ``n`` state nothing.
    """
    value = value.strip(" ")
    members: dict[str, str | None] = {}
    position = 0
    while position < len(value):
        member = _MEMBER.match(value, position)
        if not member:
            return None
        members[member[1]] = member[2]
        position = member.end()
        if position < len(value):
            comma = _COMMA.match(value, position)
            if not comma or comma.end() == len(value):
                return None
            position = comma.end()
    return {key: _GRANTS[item] for key, item in members.items() if item in _GRANTS}


def usage_preferences(value: bytes) -> dict[str, bool] | None:
    """Return what a Content-Usage record states for its path. None if it is unreadable."""
    _, dictionary = _split_path(value)
    return content_usage(dictionary.decode("utf-8", "replace"))


def parse_usage_rule(value: bytes) -> tuple[_Pattern, dict[str, bool]]:
    """Return the path and the preferences of a Content-Usage record: ``[path] train-ai=n``.

    An unreadable dictionary states nothing, so everything is unknown for its path. A record without
    a path matches every path, with length 0.
    """
    path, _ = _split_path(value)
    return pattern_of(path) if path else ("/", 0), usage_preferences(value) or {}


def _split_path(value: bytes) -> tuple[bytes, bytes]:
    path, *rest = value.split(maxsplit=1) if value.startswith(b"/") else (b"", value)
    return path, b"".join(rest)


class PathPreferences:
    """The preferences of one group for each path that it names."""

    def __init__(self, rules: Iterable[tuple[_Pattern, Preferences]]) -> None:
        self._by_pattern: dict[_Pattern, dict[str, bool]] = {}
        for pattern, stated in rules:
            combine(self._by_pattern.setdefault(pattern, {}), stated)
        self._ranked: list[tuple[_Pattern, dict[str, bool]]] = []
        """The same, the longest pattern first. Made with the index."""
        self._index: PatternIndex | None = None
        self._refusals: dict[str, bool] = {}
        """What any of them refuses."""

    def __bool__(self) -> bool:
        """Return whether there are preferences for any path."""
        return bool(self._by_pattern)

    def of(self, path: str) -> dict[str, bool]:
        """Return the preferences for a path: all those of the longest pattern that matches it.

        If the comparison takes too many steps, nothing is granted. Each use is refused that is
        refused for any path.
        """
        index = self._index or self._build_index()
        first = index.first(path)
        if first == TOO_COMPLEX:
            return dict(self._refusals)
        length = self._ranked[first][0][1] if first < len(self._ranked) else 0
        rest = islice(self._ranked, first, None)
        equal = list(takewhile(lambda rule: rule[0][1] == length, rest))
        found: list[dict[str, bool]] = []
        for number in matching((pattern for (pattern, _), _ in equal), path):
            if number == TOO_COMPLEX:
                return dict(self._refusals)
            found.append(equal[number][1])
        return combined(found)

    def _build_index(self) -> PatternIndex:
        self._ranked = sorted(self._by_pattern.items(), key=lambda rule: (-rule[0][1], rule[0][0]))
        self._index = PatternIndex([pattern for (pattern, _), _ in self._ranked])
        self._refusals = refusals(self._by_pattern.values())
        return self._index


def combined(statements: Iterable[Preferences]) -> dict[str, bool]:
    """Return statements of equal weight as one. A use is refused if any of them refuses it."""
    result: dict[str, bool] = {}
    for statement in statements:
        combine(result, statement)
    return result


def combine(result: dict[str, bool], statement: Preferences) -> None:
    """Add one more statement of equal weight to `result`."""
    for name, granted in statement.items():
        result[name] = result.get(name, True) and granted


def refusals(statements: Iterable[Preferences]) -> dict[str, bool]:
    """Return the uses that any of the statements refuses."""
    return {name: False for name, granted in combined(statements).items() if not granted}


def of_response(signals: Sequence[str], usages: Sequence[str]) -> dict[str, bool]:
    """Return what the Content-Signal and the Content-Usage header lines of a response state."""
    # RFC 9651 §4.2: all lines of a field are one dictionary.
    usage = content_usage(", ".join(usages)) if usages else None
    return combined([*(content_signals(line) for line in signals), usage or {}])


def evaluated(
    statements: Iterable[Preferences], tdm_reservation: bool | None = None
) -> dict[str, bool]:
    """Return what the statements of a site and of a response state together for one URL.

    Each use has one name in the result, as `use` returns it.
    """
    named = [{use(name): granted} for stated in statements for name, granted in stated.items()]
    if tdm_reservation is not None:
        named.append({TDM: not tdm_reservation})
    return combined(named)


def use(name: str) -> str:
    """Return AIPREF's name for a use, or the given name if AIPREF has none."""
    return _SAME_USE.get(name, name)


def refused(required: Iterable[str], preferences: Preferences) -> list[str]:
    """Return those of the required uses that are refused. Unknown uses are not refused."""
    return [name for name in required if preferences.get(use(name)) is False]
