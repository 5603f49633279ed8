"""The TDM file of an origin, which reserves the rights to text and data mining for its pages.

It is a JSON array of rules. The first one whose location matches decides::

    [
        {"location": "/press/", "tdm-reservation": 0},
        {"location": "/", "tdm-reservation": 1, "tdm-policy": "https://example.com/policy.json"}
    ]

A location is a pattern as in a robots.txt, with ``*`` and ``$``.

Source: TDMRep (W3C Community Group, 2024-05), "TDM File on the Origin Server".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .lines import SIZE_LIMIT
from .matcher import TOO_COMPLEX, PatternIndex
from .paths import path_of, pattern_of

TDM_FILE = "/.well-known/tdmrep.json"

_RESERVATIONS = {0: False, 1: True, "0": False, "1": True}
"""The values of ``tdm-reservation``. "Other values are considered protocol errors"."""

# Printable characters that UTF-8 can encode. RFC 9110 §4.1 recommends support for URIs of at least
# 8000 bytes.
_POLICY = re.compile("[^\x00-\x20\x7f-\x9f\ud800-\udfff]{1,8000}")


class TdmRule(NamedTuple):
    """What a TDM file states for the pages that its location matches."""

    location: str
    reservation: bool
    """Whether the rights to text and data mining are reserved."""
    policy: str | None = None
    """The URL of the terms, as the site wrote it."""


class TdmRep:
    """A parsed TDM file. Unreadable rules are skipped. A file that is not JSON states nothing.

    >>> tdmrep = TdmRep.parse(b'[{"location": "/*.jpg", "tdm-reservation": 1}]')
    >>> tdmrep.rule("https://example.com/cat.jpg")
    TdmRule(location='/*.jpg', reservation=True, policy=None)
    """

    __slots__ = ("_index", "_rules", "problem")

    def __init__(self, rules: Iterable[TdmRule], problem: str | None = None) -> None:
        located: dict[str, TdmRule] = {}
        for rule in rules:
            pattern, _ = pattern_of(rule.location.encode("utf-8", "surrogatepass"))
            located.setdefault(pattern, rule)
        self._rules = tuple(located.values())
        self._index = PatternIndex(tuple(located))
        self.problem = problem
        """What is wrong with the file, in words; None if all of it is readable."""

    @classmethod
    def parse(cls, body: bytes) -> TdmRep:
        """Parse the body of a response that was successful. It raises for no body.

        A file of more than 500 KiB, the limit of a robots.txt, states nothing.
        """
        problem = None
        try:
            # int() raises for more than 4300 digits.
            elements = json.loads(body[:SIZE_LIMIT].decode("utf-8-sig", "replace"), parse_int=float)
        except (ValueError, RecursionError):
            elements, problem = [], "its JSON is invalid or too long"
        if not isinstance(elements, list):
            elements, problem = [], "it is not a JSON array"
        found = [_rule(element) for element in elements]
        if None in found:
            problem = f"{found.count(None)} of its rules are unreadable"
        return cls(filter(None, found), problem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what `pickle` keeps: the rules, and nothing that is derived from them."""
        return TdmRep, (self._rules, self.problem)

    def rule(self, url: str) -> TdmRule | None:
        """Return the rule that decides about a URL of the origin; None if none matches.

        If the comparison takes too many steps, everything is reserved that any rule reserves.
        Raises ValueError as `path_of` does.
        """
        number = self._index.first(path_of(url))
        if number == TOO_COMPLEX:
            return TdmRule("*", True) if any(rule.reservation for rule in self._rules) else None
        return self._rules[number] if number < len(self._rules) else None


def _rule(element: object) -> TdmRule | None:
    if not isinstance(element, dict):
        return None
    location, reservation = element.get("location"), element.get("tdm-reservation")
    if not isinstance(location, str) or not location.startswith(("/", "*")):
        return None
    # True is not a number here, but it equals 1.
    if type(reservation) not in (float, str) or reservation not in _RESERVATIONS:
        return None
    policy = element.get("tdm-policy")
    policy = policy.strip(" \t\n\r") if isinstance(policy, str) else ""
    policy = policy if _POLICY.fullmatch(policy) else None
    return TdmRule(location, _RESERVATIONS[reservation], policy)
