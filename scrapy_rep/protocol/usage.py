"""What a site states about the use of its content: Content-Signal, Content-Usage, TDM reservation.

A statement maps the name of a use to True (granted) or False (refused). A name that is not in it is
unknown: neither granted nor refused. `vocabularies` has the names, and the versions that are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, islice, takewhile
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

from .matcher import TOO_COMPLEX, PatternIndex, matching
from .paths import pattern_of
from .vocabularies import (
    AI_USE,
    AIPREF,
    AIPREF_EARLIER,
    GRANTS,
    SAME_USE,
    SIGNALS,
    TDM,
    TRAIN_AI,
    USE,
    USE_LEVELS,
)

if TYPE_CHECKING:
    from .pages import PageDirectives
    from .robotstxt import RobotsTxt

Preferences: TypeAlias = Mapping[str, bool]
"""What is stated: the name of each use, and whether it is granted."""

Signals: TypeAlias = Mapping[str, bool | str]
"""What a Content-Signal states: as `Preferences`, and for ``use`` one of `USE_LEVELS`."""

Value = TypeVar("Value", bound=bool | str)

# Content-Signal (contentsignals.org), per line of a robots.txt or of a header:
#
#   value  = [ path 1*WS ] signal *( "," signal )     only in a robots.txt with a path
#   signal = name "=" ( "yes" / "no" ) / "use" "=" ( "immediate" / "reference" / "full" )
#
# White space around "=" is removed before this expression.
_SIGNAL = re.compile(
    r"""
    ( [A-Za-z][A-Za-z0-9_-]* ) = ( [A-Za-z]+ )
    """,
    re.VERBOSE | re.ASCII,
)
_SIGNAL_VALUES = {"yes": True, "no": False}

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

_EVERY_PATH: _Pattern = ("/", 0)
"""The pattern of a statement without a path."""


class _SignalLine(NamedTuple):
    """One Content-Signal as it was read."""

    path: bytes
    """Empty if the statement holds for every path."""
    stated: dict[str, bool | str]
    is_readable: bool
    """Whether all of the line was understood."""


def content_signals(line: str) -> dict[str, bool | str]:
    """Return what a Content-Signal header such as ``search=yes, ai-train=no`` states.

    Unreadable parts are skipped. A header has no path. Of one with a path only the refusals count.
    """
    path, stated, _ = _read_signals(line.encode("utf-8", "surrogatepass"))
    return _restrictions(stated) if path else stated


def parse_signal_rule(value: bytes) -> tuple[_Pattern, dict[str, bool | str]] | None:
    """Return path and signals of a Content-Signal record: ``[path] search=yes, ai-train=no``.

    None if no part of it is readable. A record without a path matches every path, with length 0.
    """
    path, stated, _ = _read_signals(value)
    if not stated:
        return None
    return pattern_of(path) if path else _EVERY_PATH, stated


def has_readable_signals(value: bytes) -> bool:
    """Return whether a Content-Signal record states something and all of it is readable."""
    line = _read_signals(value)
    return line.is_readable and bool(line.stated)


def has_known_signals(value: bytes) -> bool:
    """Return whether all names in a Content-Signal record are defined."""
    return _read_signals(value).stated.keys() <= {*SIGNALS, USE}


def _read_signals(value: bytes) -> _SignalLine:
    """Return path and signals of a Content-Signal.

    Text in front of a signal never turns a refusal into silence: if it is no path, the refusals of
    the line hold for every path, and its grants are skipped.
    """
    path, signals = _split_signal_path(value)
    stated: dict[str, bool | str] = {}
    is_readable, has_misplaced_text = True, False
    for number, part in enumerate(signals.decode("utf-8", "replace").split(",")):
        words = "=".join(side.strip() for side in part.split("=")).split()
        found = [signal for word in words if (signal := _signal(word))]
        if words and (not found or len(words) > 1):
            is_readable = False
            if number:
                continue
            has_misplaced_text = bool(found) or "/" in part
        for signal in found:
            combine(stated, signal)
    if has_misplaced_text:
        return _SignalLine(b"", _restrictions(stated), is_readable)
    return _SignalLine(path, stated, is_readable)


def _signal(word: str) -> dict[str, bool | str] | None:
    match = _SIGNAL.fullmatch(word)
    if not match:
        return None
    name, value = match[1].lower(), match[2].lower()
    if name == USE:
        return {name: value} if value in USE_LEVELS else None
    return {name: _SIGNAL_VALUES[value]} if value in _SIGNAL_VALUES else None


def _split_signal_path(value: bytes) -> tuple[bytes, bytes]:
    """Return the path of a Content-Signal, which may be empty, and the rest.

    A comma between them is no part of the path.
    """
    if not value.startswith((b"/", b"*")):
        return b"", value
    first, *rest = value.split(maxsplit=1)
    pieces = first.split(b",")
    end = next(
        (
            n
            for n, piece in enumerate(pieces)
            if n and (not piece or _signal(piece.decode("latin-1")))
        ),
        len(pieces),
    )
    return b",".join(pieces[:end]), b" ".join([b",".join(pieces[end:]), *rest])


def content_usage(value: str) -> dict[str, bool] | None:
    """Return what a Content-Usage dictionary such as ``train-ai=n, search=y`` states.

    None if it is no dictionary of RFC 9651. Keys are case-sensitive. Of duplicate keys the last
    holds. Values other than the tokens ``y`` and ``n`` state nothing. Labels that AIPREF does not
    define are listed.
    """
    members = _members(value)
    if members is None:
        return None
    return {key: _GRANTS[item] for key, item in members.items() if item in _GRANTS}


def _members(value: str) -> dict[str, str | None] | None:
    """Return the items of a dictionary of RFC 9651 as text, without parameters."""
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
    return members


def has_current_labels(value: bytes) -> bool:
    """Return whether a Content-Usage record has no label that only earlier drafts define."""
    return AIPREF_EARLIER.isdisjoint(_record_members(value))


def has_usage_names(value: bytes) -> bool:
    """Return whether a Content-Usage record has no label that only Content-Signal defines."""
    return _record_members(value).keys().isdisjoint(SAME_USE)


def has_usage_values(value: bytes) -> bool:
    """Return whether each label of AIPREF in a Content-Usage record has the value y or n."""
    members = _record_members(value)
    return all(members[label] in _GRANTS for label in AIPREF if label in members)


def _record_members(value: bytes) -> dict[str, str | None]:
    _, dictionary = _split_path(value)
    return _members(dictionary.decode("utf-8", "replace")) or {}


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
    return pattern_of(path) if path else _EVERY_PATH, usage_preferences(value) or {}


def _split_path(value: bytes) -> tuple[bytes, bytes]:
    path, *rest = value.split(maxsplit=1) if value.startswith(b"/") else (b"", value)
    return path, b"".join(rest)


class PathPreferences(Generic[Value]):
    """The preferences of one group for each path that it names."""

    def __init__(self, rules: Iterable[tuple[_Pattern, Mapping[str, Value]]]) -> None:
        self._by_pattern: dict[_Pattern, dict[str, Value]] = {}
        for pattern, stated in rules:
            combine(self._by_pattern.setdefault(pattern, {}), stated)
        self._ranked: list[tuple[_Pattern, dict[str, Value]]] = []
        """The same, the longest pattern first. Made with the index."""
        self._index: PatternIndex | None = None
        self._refusals: dict[str, Value] = {}
        """What any of them refuses."""

    def __bool__(self) -> bool:
        """Return whether there are preferences for any path."""
        return bool(self._by_pattern)

    @property
    def statements(self) -> Mapping[_Pattern, Mapping[str, Value]]:
        """What is stated for each pattern. The key is the pattern in comparable form, and its
        length: 0 for a statement without a path."""
        return self._by_pattern

    def of(self, path: str) -> dict[str, Value]:
        """Return the preferences for a path: all those of the longest pattern that matches it.

        If the comparison takes too many steps, nothing is granted. Each use is refused that is
        refused for any path.
        """
        if self._by_pattern.keys() == {_EVERY_PATH}:
            return dict(self._by_pattern[_EVERY_PATH])
        found = self._matching(path)
        return dict(self._refusals) if found is None else combined(stated for _, stated in found)

    def _matching(
        self, path: str, *, all_lengths: bool = False
    ) -> list[tuple[int, dict[str, Value]]] | None:
        """Return length and statement of the longest patterns that match a path, the longest first.

        With `all_lengths` those of all patterns that match. None if that takes too many steps.
        """
        index = self._index or self._build_index()
        first = index.first(path)
        if first == TOO_COMPLEX:
            return None
        length = self._ranked[first][0][1] if first < len(self._ranked) else 0
        rest: Iterable[tuple[_Pattern, dict[str, Value]]] = islice(self._ranked, first, None)
        if not all_lengths:
            rest = takewhile(lambda rule: rule[0][1] == length, rest)
        rules = list(rest)
        found = []
        for number in matching((pattern for (pattern, _), _ in rules), path):
            if number == TOO_COMPLEX:
                return None
            (_, pattern_length), stated = rules[number]
            found.append((pattern_length, stated))
        return found

    def _build_index(self) -> PatternIndex:
        self._ranked = sorted(self._by_pattern.items(), key=lambda rule: (-rule[0][1], rule[0][0]))
        self._index = PatternIndex([pattern for (pattern, _), _ in self._ranked])
        self._refusals = _restrictions(combined(self._by_pattern.values()))
        return self._index


class PathSignals(PathPreferences[bool | str]):
    """The Content-Signals of one group for each path that it names."""

    def of(self, path: str) -> dict[str, bool | str]:
        """Return the signals for a path: those of the longest pattern that matches it.

        A path in front never turns a refusal into silence. So if a name is not in this statement,
        it is refused if the next longer statement that has the name refuses it.
        """
        if len(self._by_pattern) == 1:
            return super().of(path)
        found = self._matching(path, all_lengths=True)
        if found is None:
            return dict(self._refusals)
        result: dict[str, bool | str] = {}
        decided: set[str] = set()
        for _, equal in groupby(found, key=lambda match: match[0]):
            stated = combined(statement for _, statement in equal)
            later = {name: value for name, value in stated.items() if name not in decided}
            result.update(_restrictions(later) if decided else later)
            decided.update(later)
        return result


def combined(statements: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """Return statements of equal weight as one. A use is refused if any of them refuses it."""
    result: dict[str, Value] = {}
    for statement in statements:
        combine(result, statement)
    return result


def combine(result: dict[str, Value], statement: Mapping[str, Value]) -> None:
    """Add one more statement of equal weight to `result`. The more restrictive value holds."""
    for name, value in statement.items():
        result[name] = min(value, result.get(name, value), key=_permissiveness)


def _permissiveness(value: bool | str) -> int:
    return USE_LEVELS.index(value) if isinstance(value, str) else value


def _restrictions(statement: Mapping[str, Value]) -> dict[str, Value]:
    """Return a statement without its grants: the uses that it refuses, and the limit of ``use``."""
    return {name: value for name, value in statement.items() if value is not True}


def of_response(signals: Sequence[str], usages: Sequence[str]) -> list[Signals]:
    """Return what the Content-Signal and the Content-Usage header lines of a response state."""
    # RFC 9651 §4.2: all lines of a field are one dictionary.
    usage = content_usage(", ".join(usages)) if usages else None
    return [*(content_signals(line) for line in signals), usage or {}]


def evaluated(
    statements: Iterable[Signals], tdm_reservation: bool | None = None
) -> dict[str, bool]:
    """Return what the statements of a site and of a response state together for one URL.

    The names are those of AIPREF, and `TDM`. A refusal in any statement wins. Names that AIPREF
    does not define, and that do not stand for one of its names, have no effect
    (draft-ietf-aipref-vocab: "any unknown labels MUST be ignored").
    """
    named: list[Preferences] = []
    for stated in statements:
        for name, value in stated.items():
            if use(name) in AIPREF and (value is False or (value is True and name in GRANTS)):
                named.append({use(name): value})
    if tdm_reservation is not None:
        named.append({TDM: not tdm_reservation})
    return combined(named)


def refusal_sources(
    stated: Iterable[tuple[str, Signals]], tdm_reservation: bool | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the sources that refuse each refused use, each once.

    `stated` are the statements that `evaluated` reads, each with a short text that names its
    source.
    """
    found: dict[str, dict[str, None]] = {}
    for source, statement in stated:
        for name, value in statement.items():
            if value is False and use(name) in AIPREF:
                found.setdefault(use(name), {})[source] = None
    if tdm_reservation:
        found[TDM] = {"tdm-reservation": None}
    return {name: tuple(sources) for name, sources in found.items()}


# Readings that a setting turns on.


def training_refusals(
    robots: RobotsTxt, url: str, tokens: Iterable[str]
) -> list[tuple[str, Preferences]]:
    """Return a refusal of training for each group that disallows a URL (REP_TRAINING_TOKENS).

    `tokens` are product tokens in lower case. A group counts only if it names the token.
    """
    verdicts = ((token, robots.verdict(url, token)) for token in tokens)
    return [
        (f"robots.txt disallows it for {token}", {TRAIN_AI: False})
        for token, verdict in verdicts
        if not verdict.allowed and verdict.agent == token
    ]


def bing_refusals(directives: PageDirectives) -> list[tuple[str, Preferences]]:
    """Return what a page refuses as Bing reads it (REP_BING_USAGE).

    With noarchive, content is used neither in chat answers nor for training. With nocache, only
    URL, title and snippet are: the content itself is not.
    """
    flags = {"noarchive": directives.noarchive, "nocache": directives.nocache}
    refused = {TRAIN_AI: False, AI_USE: False}
    return [(f"{name}, as Bing reads it", refused) for name, stated in flags.items() if stated]


def use(name: str) -> str:
    """Return AIPREF's name for what a name refuses, or the given name if AIPREF has none."""
    return SAME_USE.get(name, name)


def refused(required: Iterable[str], preferences: Preferences) -> list[str]:
    """Return those of the required uses that are refused. Unknown uses are not refused."""
    return [name for name in required if preferences.get(use(name)) is False]
