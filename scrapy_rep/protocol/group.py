"""The group that holds for a crawler: from its lines to verdicts (RFC 9309 §2.2.1, §2.2.2)."""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING

from .lines import line_number
from .matcher import PatternIndex, RankedRule, first_match, rank
from .verdict import Reason, Rule, Verdict

if TYPE_CHECKING:
    from .parser import GroupText

ROBOTS_TXT = "/robots.txt"
_OF_ROBOTS_TXT = Verdict(allowed=True, reason=Reason.NO_RULES)

_FEW = 100


class Group:
    """Answers questions about paths in the form of `paths.path_of`.

    Most files are asked about one URL or about very many. So the first question is answered
    from the text, by the few rules that may match at all, and the second builds an index.
    """

    __slots__ = ("_agent", "_asked", "_index", "_positions", "_strict", "_text", "_verdicts")

    def __init__(self, agent: str | None, text: GroupText, *, strict: bool) -> None:
        self._agent = agent
        self._text = text
        self._strict = strict
        self._asked = False
        self._index: PatternIndex | None = None

    def verdict(self, path: str) -> Verdict:
        """What the group says about a path."""
        # "The /robots.txt URI is implicitly allowed" (§2.2.2).
        if path == ROBOTS_TXT:
            return _OF_ROBOTS_TXT
        index = self._index
        if index is None:
            return self._first_verdict(path)
        number = index.first(path)
        return self._verdicts[number] or self._new_verdict(number)

    def _first_verdict(self, path: str) -> Verdict:
        if not self._asked:
            self._asked = True
            rules = list(islice(self._text.rules(path.encode("ascii")), _FEW))
            if len(rules) < _FEW:
                ranked = rank(rules, strict=self._strict)
                number = first_match([pattern for _, _, _, pattern in ranked], path)
                if number == len(ranked):
                    return self._undecided(ranked)
                return self._decided_by(ranked[number][2])
        ranked = rank(self._text.rules(), strict=self._strict)
        self._index = PatternIndex([pattern for _, _, _, pattern in ranked])
        self._positions = array("I", [position for _, _, position, _ in ranked])
        self._verdicts: list[Verdict | None] = [None] * len(ranked)
        self._verdicts.append(self._undecided(ranked))
        return self.verdict(path)

    def _new_verdict(self, number: int) -> Verdict:
        verdict = self._verdicts[number] = self._decided_by(self._positions[number])
        return verdict

    def _decided_by(self, position: int) -> Verdict:
        allow, value, _ = self._text.rule_at(position)
        line = line_number(self._text.text, position)
        rule = Rule(allow, value.decode("utf-8", "replace"), line)
        return Verdict(allow, Reason.RULES, rule, self._agent)

    def _undecided(self, ranked: list[RankedRule]) -> Verdict:
        reason = Reason.RULES if ranked or any(self._text.rules()) else Reason.NO_RULES
        return Verdict(True, reason, None, self._agent)
