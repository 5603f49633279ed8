"""The rules of one crawler, compared with paths (RFC 9309 §2.2.1, §2.2.2)."""

from __future__ import annotations

from array import array
from itertools import islice
from typing import TYPE_CHECKING

from .lines import line_number
from .matcher import TOO_COMPLEX, PatternIndex, RankedRule, first_match, matching, rank
from .paths import ROBOTS_TXT
from .verdict import Reason, Rule, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .parser import GroupText, RawRule

_ROBOTS_TXT_VERDICT = Verdict(allowed=True, reason=Reason.NO_RULES)

_MAX_RULES_WITHOUT_INDEX = 100
"""Rules that may match the first path, from which on the index is built at once. It bounds the
work that is done in vain if a second path follows: about 0.2 ms."""


class GroupMatcher:
    """Compares the rules of one crawler with paths in the form of `paths.path_of`.

    A crawl compares most files with either one URL or very many. So the first path is compared with
    the few rules of the text that may match it. The second path builds an index.
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
        """Numbers the rules, the best first. None until the second path."""
        self.verdicts: list[Verdict | None] = []
        """The verdict of each rule by its number, None until it is needed. Then the verdict if no
        rule matches. The last is that of `TOO_COMPLEX`, which is -1."""
        self.allows: tuple[bool, ...] = ()
        """Whether each of these verdicts allows."""

    def verdict(self, path: str) -> Verdict:
        """Return the verdict for a path."""
        if path == ROBOTS_TXT:
            return _ROBOTS_TXT_VERDICT
        if not self._asked:
            self._asked = True
            rules = list(islice(self._rules_for(path), _MAX_RULES_WITHOUT_INDEX))
            few = len(rules) < _MAX_RULES_WITHOUT_INDEX
            verdict = self._only_verdict(path, rules) if few else None
            if verdict is not None:
                return verdict
        index = self.index or self._build_index()
        return self._verdict_of(index.first(path))

    def matching_rules(self, path: str) -> tuple[Rule, ...]:
        """Return the rules that match a path, the best first.

        Rules with the same pattern count as one (RFC 9309 §2.2.2), so they follow each other.
        """
        if path == ROBOTS_TXT:
            return ()
        rules = list(self._rules_for(path))
        same: dict[str, list[RankedRule]] = {}
        for rule in rules:
            for one in rank([rule], strict=self._strict):
                same.setdefault(one[3], []).append(one)
        patterns = [pattern for _, _, _, pattern in rank(rules, strict=self._strict)]
        positions: dict[int, None] = {}
        for number in matching(patterns, path):
            if number != TOO_COMPLEX:
                # Allow wins, then the longer one, then the first: as in `rank`.
                equal = sorted(same[patterns[number]], key=lambda one: (one[1], one[0], one[2]))
                positions.update((position, None) for _, _, position, _ in equal)
        lines = self._lines_at(positions)
        return tuple(self._rule_at(position, lines[position]) for position in positions)

    def _verdict_of(self, number: int) -> Verdict:
        """Return the verdict by the rule with a number."""
        verdict = self.verdicts[number]
        if verdict is None:
            verdict = self.verdicts[number] = self._decided_by(self._positions[number])
        return verdict

    def _only_verdict(self, path: str, rules: list[RawRule]) -> Verdict | None:
        """Return the verdict by a few rules; None if the comparison takes too many steps."""
        ranked = rank(rules, strict=self._strict)
        number = first_match([pattern for _, _, _, pattern in ranked], path)
        if number == TOO_COMPLEX:
            return None  # The index may skip the rules that take so many steps.
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

    def _rules_for(self, path: str) -> Iterable[RawRule]:
        return self._text.rules(path.encode("ascii"))

    def _rule_at(self, position: int, line: int) -> Rule:
        allow, value, _ = self._text.rule_at(position)
        return Rule.of(value, line, allow=allow)

    def _lines_at(self, positions: Iterable[int]) -> dict[int, int]:
        """Return the line numbers of many positions, in one pass over the text."""
        lines: dict[int, int] = {}
        line = end = 0
        for position in sorted(positions):
            line += self._text.text.count(b"\n", end, position + 1)
            lines[position], end = line, position + 1
        return lines

    def _decided_by(self, position: int) -> Verdict:
        rule = self._rule_at(position, line_number(self._text.text, position))
        return Verdict(rule.allow, Reason.RULES, rule, self._agent)

    def _too_complex(self) -> Verdict:
        return Verdict(False, Reason.TOO_COMPLEX, None, self._agent)

    def _undecided(self, ranked: list[RankedRule]) -> Verdict:
        reason = Reason.RULES if ranked or any(self._text.rules()) else Reason.NO_RULES
        return Verdict(True, reason, None, self._agent)
