"""What a site says about the use of its content: Content-Signal, Content-Usage, TDM reservation.

All are statements by name, yes or no. A name that is not mentioned is unknown: neither granted
nor refused. Content-Usage is draft-ietf-aipref-attach, its value a dictionary of RFC 9651.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Preferences: TypeAlias = Mapping[str, bool]
"""What is stated, by its name; True where it is granted."""

TDM = "tdm"
"""The name under which a TDM reservation is found beside the others."""

_SAME_USE = {"ai-train": "train-ai"}
"""Content-Signal's name for a use, and the one that AIPREF's vocabulary has for it."""

_SIGNAL = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)[ \t]*=[ \t]*(yes|no)", re.IGNORECASE)

# RFC 9651 §3 and §4.2. A member is a key with an item, an inner list or nothing, which is true.
_KEY = r"[a-z*][a-z0-9_\-.*]*"
_STRING = r'"(?:[ !#-\[\]-~]|\\["\\])*"'
_BARE_ITEM = "|".join(
    [
        r"-?[0-9]{1,12}\.[0-9]{1,3}(?![0-9])",
        r"@?-?[0-9]{1,15}(?![0-9.])",
        _STRING,
        r"[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]*",
        r":[A-Za-z0-9+/=]*:",
        r"\?[01]",
        r'%"(?:[ !#$&-~]|%[0-9a-f]{2})*"',
    ]
)
_PARAMETERS = rf"(?:; *{_KEY}(?:=(?:{_BARE_ITEM}))?)*"
_ITEM = rf"(?:{_BARE_ITEM}){_PARAMETERS}"
_MEMBER = re.compile(
    rf"({_KEY})(?:=(?:({_BARE_ITEM})|\( *(?:{_ITEM}(?: +{_ITEM})* *)?\)))?{_PARAMETERS}"
)
_COMMA = re.compile(r"[ \t]*,[ \t]*")
_MEANS = {"y": True, "n": False}


def content_signals(value: str) -> dict[str, bool]:
    """A Content-Signal: ``search=yes, ai-train=no``; what cannot be read is skipped."""
    found = (_SIGNAL.fullmatch(part.strip()) for part in value.split(","))
    return {signal[1].lower(): signal[2].lower() == "yes" for signal in found if signal}


def content_usage(value: str) -> dict[str, bool] | None:
    """A Content-Usage dictionary; None if it is none, and then nothing at all is known.

    Keys are case-sensitive, the last of duplicates counts, and only the tokens ``y`` and ``n``
    say something.
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
    return {key: _MEANS[item] for key, item in members.items() if item in _MEANS}


def combined(statements: Iterable[Preferences]) -> dict[str, bool]:
    """Statements of equal weight as one: what any of them refuses is refused."""
    result: dict[str, bool] = {}
    for statement in statements:
        combine(result, statement)
    return result


def combine(result: dict[str, bool], statement: Preferences) -> None:
    """Add one more statement of the same weight."""
    for name, granted in statement.items():
        result[name] = result.get(name, True) and granted


def refusals(statements: Iterable[Preferences]) -> dict[str, bool]:
    """What any of the statements refuses."""
    return {name: False for name, granted in combined(statements).items() if not granted}


def of_response(signals: Sequence[str], usages: Sequence[str]) -> dict[str, bool]:
    """What a response states by the lines of its Content-Signal and its Content-Usage headers."""
    # RFC 9651 §4.2: the lines of a field are one dictionary.
    usage = content_usage(", ".join(usages)) if usages else None
    return combined([*(content_signals(line) for line in signals), usage or {}])


def evaluated(
    statements: Iterable[Preferences], tdm_reservation: bool | None = None
) -> dict[str, bool]:
    """What a site and a response state of one URL, each use by one name."""
    named = [{use(name): yes} for stated in statements for name, yes in stated.items()]
    if tdm_reservation is not None:
        named.append({TDM: not tdm_reservation})
    return combined(named)


def use(name: str) -> str:
    """The name of a use in AIPREF's vocabulary, where it has one for it."""
    return _SAME_USE.get(name, name)


def refused(required: Iterable[str], preferences: Preferences) -> list[str]:
    """Which of the required uses are refused; what is not mentioned is not."""
    return [name for name in required if preferences.get(use(name)) is False]
