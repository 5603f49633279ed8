"""The group that holds for a crawler: from its lines to verdicts (RFC 9309 §2.2.1, §2.2.2)."""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING

from .lines import line_number
from .matcher import TOO_COMPLEX, PatternIndex, RankedRule, first_match, rank
from .verdict import Reason, Rule, Verdict

if TYPE_CHECKING:
    from .parser import GroupText, RawRule

ROBOTS_TXT = "/robots.txt"
_OF_ROBOTS_TXT = Verdict(allowed=True, reason=Reason.NO_RULES)

_FEW = 100


class GroupMatcher:
    """Answers questions about paths in the form of `paths.path_of`.

    Most files are asked about one URL or about very many. So the first question is answered
    from the text, by the few rules that may match at all, and the second builds an index.
    """

    __slots__ = (
        "_agent",
        "_asked",
        "_positions",
        "_strict",
        "_text",
        "allows",
        "index",
        "verdicts",
    )

    def __init__(self, agent: str | None, text: GroupText, *, strict: bool) -> None:
        self._agent = agent
        self._text = text
        self._strict = strict
        self._asked = False
        self.index: PatternIndex | None = None
        """Numbers its rules, best first, from the second question on."""
        self.verdicts: list[Verdict | None] = []
        """By these numbers; then that no rule matches, last (`TOO_COMPLEX`) that it is unknown."""
        self.allows: tuple[bool, ...] = ()
        """The same in short."""

    def verdict(self, path: str) -> Verdict:
        """What the group says about a path."""
        # "The /robots.txt URI is implicitly allowed" (§2.2.2).
        if path == ROBOTS_TXT:
            return _OF_ROBOTS_TXT
        if not self._asked:
            self._asked = True
            rules = list(islice(self._text.rules(path.encode("ascii")), _FEW))
            verdict = self._only_verdict(path, rules) if len(rules) < _FEW else None
            if verdict is not None:
                return verdict
        index = self.index or self._build_index()
        return self.verdict_of(index.first(path))

    def verdict_of(self, number: int) -> Verdict:
        """The verdict by the rule with a number."""
        verdict = self.verdicts[number]
        if verdict is None:
            verdict = self.verdicts[number] = self._decided_by(self._positions[number])
        return verdict

    def _only_verdict(self, path: str, rules: list[RawRule]) -> Verdict | None:
        ranked = rank(rules, strict=self._strict)
        number = first_match([pattern for _, _, _, pattern in ranked], path)
        if number == TOO_COMPLEX:
            return None  # What the index skips may be what took so long.
        if number == len(ranked):
            return self._undecided(ranked)
        return self._decided_by(ranked[number][2])

    def _build_index(self) -> PatternIndex:
        ranked = rank(self._text.rules(), strict=self._strict)
        self.allows = (*(not disallow for _, disallow, _, _ in ranked), True, False)
        self.index = PatternIndex([pattern for _, _, _, pattern in ranked], self.allows)
        self._positions = array("I", [position for _, _, position, _ in ranked])
        self.verdicts = [*[None] * len(ranked), self._undecided(ranked), self._too_complex()]
        return self.index

    def _decided_by(self, position: int) -> Verdict:
        allow, value, _ = self._text.rule_at(position)
        line = line_number(self._text.text, position)
        return Verdict(allow, Reason.RULES, Rule.of(value, line, allow=allow), self._agent)

    def _too_complex(self) -> Verdict:
        return Verdict(False, Reason.TOO_COMPLEX, None, self._agent)

    def _undecided(self, ranked: list[RankedRule]) -> Verdict:
        reason = Reason.RULES if ranked or any(self._text.rules()) else Reason.NO_RULES
        return Verdict(True, reason, None, self._agent)
