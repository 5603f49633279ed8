"""What a site states about the use of its content: Content-Signal, Content-Usage, TDM reservation.

A statement maps the name of a use to True (granted) or False (refused). A name that is not in it is
unknown: neither granted nor refused.

When a new version of a vocabulary is published, change its row in `VOCABULARIES` and its row on the
conformance page. A test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Generic, TypeAlias, TypeVar

from .matcher import TOO_COMPLEX, matching
from .paths import pattern_of
from .verdict import Verdict

VOCABULARIES = (
    ("AIPREF vocabulary", "draft-ietf-aipref-vocab-08", "2026-09-13", "draft"),
    ("Content-Usage", "draft-ietf-aipref-attach-05", "2026-08-18", "draft"),
    ("Content-Signal", "with a path and `use`", "2026-07", "vendor"),
    (
        "`__usage_` tokens",
        "draft-kelley-aipref-training-preference-signal-00",
        "2026-10-30",
        "draft",
    ),
    ("RSL", "1.0", "2025-12-10", "vendor"),
    ("Robots-Tag", "draft-illyes-repext-03", "2026-04-18", "draft"),
    ("TDM reservation", "TDMRep", "2024-05", "report"),
    ("noml", "noml.info", "2023-10", "vendor"),
    ("crawler-price", "Cloudflare pay per crawl", "2026-04-23", "vendor"),
    ("PAYMENT-REQUIRED", "x402 2.0", "2025-12-09", "vendor"),
)
"""The documents that define how a site states what may be done with its content: name, version, day
or month in ISO 8601, and status (a draft, a report of a W3C Community Group, or a vendor's own)."""

TRAIN_AI, AI_USE, SEARCH = AIPREF = ("train-ai", "ai-use", "search")
"""The labels of AIPREF. They are case-sensitive (draft-ietf-aipref-vocab)."""

POLICY_PREFIX = "__usage_"
"""The beginning of the policy tokens, which stand for a use in place of a crawler."""
POLICY_TOKENS = {"__usage_ai-training": TRAIN_AI}
"""The policy tokens in user-agent lines, and the use that the rules of their groups are about."""

AIPREF_EARLIER = frozenset(
    ["ai", "ai-output", "all", "bots", "genai", "inference", "tdm", "train-genai"]
)
"""Labels that only earlier drafts of AIPREF define. They are listed, and evaluated for nothing."""

AI_TRAIN, AI_INPUT = ("ai-train", "ai-input")
USE, USE_LEVELS = "use", ("immediate", "reference", "full")
"""The name that takes one of these: how much may be used, the most restrictive level first."""
LEVELS = tuple(f"{USE}={level}" for level in USE_LEVELS)
"""The uses that a crawl may intend, in the same order. A statement refuses those behind its own."""

_ORDER = (False, True, *USE_LEVELS)  # from the most restrictive value of a name to the least
_UNRESTRICTED = (True, USE_LEVELS[-1])  # the values that refuse nothing

TDM = "tdm"
"""The name of the use that a TDM reservation refuses. No label of AIPREF is evaluated as it."""

SAME_USE = {AI_TRAIN: TRAIN_AI, AI_INPUT: AI_USE}
"""Content-Signal's names, and AIPREF's names for what they refuse."""

REQUIRABLE = (*AIPREF, TDM, AI_TRAIN, AI_INPUT, *LEVELS)
"""The uses that a crawl may intend (REP_INTENDED_USES)."""

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
_SIGNAL = re.compile("([A-Za-z][A-Za-z0-9_-]*)=([A-Za-z]+)")
# The path ends at white space, or at a comma before a signal or before nothing.
_SIGNAL_PATH = re.compile(
    rb"""
    [/*] (?: [^\s,] | , (?!
        (?: [a-z][a-z0-9_-]* = (?: yes | no | immediate | reference | full ) )? (?: [\s,] | \Z )
    ) )*
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SIGNAL_VALUES = {"yes": True, "no": False}

# Content-Usage is a dictionary of RFC 9651 (§3.2). The expressions have the names of its grammar.
# What has a "." behind it is no sf-integer, but an sf-decimal.
#
#   sf-dictionary = dict-member *( OWS "," OWS dict-member )
_KEY = r"[a-z*][a-z0-9_\-.*]*"  # §3.1.2
_STRING = r'" (?: [\x20!\#-\[\]-~] | \\ ["\\] )* "'
_BARE_ITEM = rf"""(?:                                       # §3.3
    -? [0-9]{{1,12}} \. [0-9]{{1,3}} (?![0-9])               # sf-decimal
  | @? -? [0-9]{{1,15}} (?![0-9.])                           # sf-integer, sf-date
  | {_STRING}                                               # sf-string
  | [A-Za-z*] [!\#$%&'*+\-.^_`|~0-9A-Za-z:/]*               # sf-token
  | : [A-Za-z0-9+/=]* :                                     # sf-binary
  | \? [01]                                                 # sf-boolean
  | % " (?: [\x20!\#$&-~] | % [0-9a-f]{{2}} )* "            # sf-displaystring
)"""
_PARAMETERS = rf"(?: ; [ ]* {_KEY} (?: = {_BARE_ITEM} )? )*"  # §3.1.2
_ITEM = rf"{_BARE_ITEM} {_PARAMETERS}"  # §3.3
_INNER_LIST = rf"\( [ ]* (?: {_ITEM} (?: [ ]+ {_ITEM} )* [ ]* )? \)"  # §3.1.1
_MEMBER = re.compile(  # §3.2
    rf"( {_KEY} ) (?: = (?: ( {_BARE_ITEM} ) | {_INNER_LIST} ) )? {_PARAMETERS}", re.VERBOSE
)
_COMMA = re.compile(r"[ \t]*,[ \t]*")
_GRANTS = {"y": True, "n": False}

_Pattern: TypeAlias = tuple[str, int]
"""What `pattern_of` returns; for a statement without a path, `_EVERY_PATH`."""
_EVERY_PATH: _Pattern = ("/", 0)


def content_signals(line: str) -> dict[str, bool | str]:
    """Return what a Content-Signal header such as ``search=yes, ai-train=no`` states.

    Unreadable parts are skipped. A header has no path. Of one with a path only the refusals count.
    """
    path, stated, _ = _read_signals(line.encode("utf-8", "surrogatepass"))
    return _restrictions(stated) if path else stated


def parse_signal_rule(value: bytes) -> tuple[_Pattern, dict[str, bool | str]] | None:
    """Return the path and the signals of a Content-Signal record. None if no part is readable."""
    path, stated, _ = _read_signals(value)
    if not stated:
        return None
    return pattern_of(path) if path else _EVERY_PATH, stated


def has_unreadable_signal(value: bytes) -> bool:
    """Return whether a Content-Signal record states nothing, or a part of it is not defined."""
    _, stated, is_readable = _read_signals(value)
    return not is_readable or not stated or not stated.keys() <= {SEARCH, AI_INPUT, AI_TRAIN, USE}


def _read_signals(value: bytes) -> tuple[bytes, dict[str, bool | str], bool]:
    """Return the path of a Content-Signal, its signals, and whether all of it was understood.

    The path is empty if the statement holds for every path. Text in front of a signal never turns a
    refusal into silence: if it is no path, the refusals of the line hold for every path, and its
    grants are skipped.
    """
    found_path = _SIGNAL_PATH.match(value)
    path = found_path[0] if found_path else b""
    signals = value[len(path) :].lstrip(b", \t\v\f") if path else value
    understood: list[dict[str, bool | str]] = []
    is_readable, has_misplaced_text = True, False
    for number, part in enumerate(signals.decode("utf-8", "replace").split(",")):
        words = "=".join(side.strip() for side in part.split("=")).split()
        found = [signal for word in words if (signal := _signal(word))]
        if words and (not found or len(words) > 1):
            is_readable = False
            if number:
                continue
            has_misplaced_text = bool(found) or "/" in part
        understood += found
    stated = combined(understood)
    if has_misplaced_text:
        return b"", _restrictions(stated), is_readable
    return path, stated, is_readable


def _signal(word: str) -> dict[str, bool | str] | None:
    match = _SIGNAL.fullmatch(word)
    if not match:
        return None
    name, value = match[1].lower(), match[2].lower()
    if name == USE:
        return {name: value} if value in USE_LEVELS else None
    return {name: _SIGNAL_VALUES[value]} if value in _SIGNAL_VALUES else None


def content_usage(value: str) -> dict[str, bool]:
    """Return what a Content-Usage dictionary such as ``train-ai=n, search=y`` states.

    What is not a dictionary of RFC 9651 states nothing. Keys are case-sensitive. Of duplicate keys
    the last holds. Only the tokens ``y`` and ``n`` state something. Other labels are listed, too.
    """
    members = _members(value) or {}
    return {key: _GRANTS[item] for key, item in members.items() if item in _GRANTS}


def _members(value: str) -> dict[str, str | None] | None:
    """Return the items of a dictionary of RFC 9651 as text, without parameters. None for others."""
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


def has_unreadable_usage(value: bytes) -> bool:
    """Return whether a Content-Usage record is no dictionary, or has a label without y or n."""
    members = _members(_split_usage(value)[1])
    return members is None or any(members.get(label, "y") not in _GRANTS for label in AIPREF)


def has_other_label(value: bytes) -> bool:
    """Return whether a Content-Usage record has a label of an earlier draft or Content-Signal."""
    members = _members(_split_usage(value)[1]) or {}
    return bool((AIPREF_EARLIER | SAME_USE.keys()) & members.keys())


def parse_usage_rule(value: bytes) -> tuple[_Pattern, dict[str, bool]]:
    """Return the path and the preferences of a Content-Usage record: ``[path] train-ai=n``.

    An unreadable dictionary states nothing, so everything is unknown for its path.
    """
    path, text = _split_usage(value)
    return pattern_of(path) if path else _EVERY_PATH, content_usage(text)


def _split_usage(value: bytes) -> tuple[bytes, str]:
    path, *rest = value.split(maxsplit=1) if value.startswith(b"/") else (b"", value)
    return path, b"".join(rest).decode("utf-8", "replace")


class PathPreferences(Generic[Value]):
    """The preferences of one group for each path that it names."""

    def __init__(self, rules: Iterable[tuple[_Pattern, Mapping[str, Value]]]) -> None:
        stated: dict[_Pattern, list[Mapping[str, Value]]] = {}
        for pattern, statement in rules:
            stated.setdefault(pattern, []).append(statement)
        self.statements = {pattern: combined(equal) for pattern, equal in stated.items()}
        """What is stated for each pattern, whose length is 0 for a statement without a path."""
        self._ranked = sorted(stated, key=lambda pattern: (-pattern[1], pattern[0]))

    def __bool__(self) -> bool:
        return bool(self.statements)

    def of(self, path: str) -> dict[str, Value]:
        """Return the preferences for a path: all those of the longest pattern that matches it."""
        return next(iter(self._matching(path)), {})

    def _matching(self, path: str) -> list[dict[str, Value]]:
        """Return what the patterns of each length state that match a path, the longest first.

        If the comparison takes too many steps, nothing is granted, and each use is refused that is
        refused for any path.
        """
        found: list[_Pattern] = []
        for number in matching((pattern for pattern, _ in self._ranked), path):
            if number == TOO_COMPLEX:
                return [_restrictions(combined(self.statements.values()))]
            found.append(self._ranked[number])
        equal = groupby(found, key=itemgetter(1))
        return [combined(self.statements[pattern] for pattern in patterns) for _, patterns in equal]


class PathSignals(PathPreferences[bool | str]):
    """The Content-Signals of one group for each path that it names."""

    def of(self, path: str) -> dict[str, bool | str]:
        """Return the signals for a path: those of the longest pattern that matches it.

        A path in front never turns a refusal into silence. So if a name is not in this statement,
        it is refused if the next longer statement that has the name refuses it.
        """
        result: dict[str, bool | str] = {}
        decided: set[str] = set()
        for stated in self._matching(path):
            later = {key: value for key, value in stated.items() if key not in decided}
            result.update(_restrictions(later) if decided else later)
            decided.update(later)
        return result


def combined(statements: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """Return statements of equal weight as one: of each use, the more restrictive value."""
    result: dict[str, Value] = {}
    for statement in statements:
        for name, value in statement.items():
            result[name] = min(value, result.get(name, value), key=_ORDER.index)
    return result


def _restrictions(statement: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in statement.items() if value not in _UNRESTRICTED}


def evaluated(
    statements: Iterable[Signals], tdm_reservation: bool | None = None
) -> dict[str, bool]:
    """Return what the statements of a site and of a response state together for one URL.

    The names are those of AIPREF, `LEVELS` and `TDM`. A refusal in any statement wins. Names that
    AIPREF does not define, and that do not stand for one of its names, have no effect
    (draft-ietf-aipref-vocab: "any unknown labels MUST be ignored").
    """
    named = [_named(name, value) for stated in statements for name, value in stated.items()]
    if tdm_reservation is not None:
        named.append({TDM: not tdm_reservation})
    return combined(named)


def _named(name: str, value: bool | str) -> Preferences:
    if isinstance(value, str):  # of USE
        last = USE_LEVELS.index(value)
        return {level: number <= last for number, level in enumerate(LEVELS)}
    # AI input is only a part of AI use: "ai-input=yes" grants nothing that AIPREF has a name for.
    is_known = use_of(name) in (*AIPREF, *LEVELS) and not (value and name == AI_INPUT)
    return {use_of(name): value} if is_known else {}


def policy_statements(policies: Mapping[str, Verdict]) -> list[tuple[str, Preferences]]:
    """Return what `RobotsTxt.usage_policies` states, each with a short text that names its source.

    A `Disallow` that decides refuses the use of its token, and an `Allow` that decides grants it.
    """
    return [
        (f"robots.txt, {verdict}", {POLICY_TOKENS[token]: verdict.allowed})
        for token, verdict in policies.items()
    ]


def use_of(name: str) -> str:
    """Return AIPREF's name for what a name refuses, or the given name if AIPREF has none."""
    return SAME_USE.get(name, name)


def refused(required: Iterable[str], preferences: Preferences) -> list[str]:
    """Return those of the required uses that are refused. Unknown uses are not refused."""
    return [name for name in required if preferences.get(use_of(name)) is False]
