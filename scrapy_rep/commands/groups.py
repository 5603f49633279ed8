"""The groups of a robots.txt as a crawl understands them: merged, with their rules ranked."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..protocol.agents import WILDCARD_AGENT, tokens_of_line
from ..protocol.matcher import rank
from ..protocol.parser import records
from ..protocol.records import CONTENT_SIGNAL, CONTENT_USAGE, GROUP_FIELDS, LICENSE
from ..protocol.verdict import Rule
from .explain import MAX_LINE_LENGTH, pace_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..protocol.parser import RawRule
    from ..protocol.robotstxt import RobotsTxt
    from .agent_option import Agent

    _Records: TypeAlias = list[tuple[bytes, bytes]]
    """Fields and values."""

MAX_RULES = 100_000
"""Rules that are listed at most. In a file of the maximum size, the rules of each group may apply
to thousands of tokens in as many combinations."""


class MergedGroup(NamedTuple):
    """All groups that apply to the same crawlers (RFC 9309 §2.2.1)."""

    tokens: tuple[str, ...] = ()
    rules: tuple[RawRule, ...] = ()
    """The rules as they are written. The position is the number of the line."""
    records: tuple[tuple[bytes, bytes], ...] = ()
    """Fields and values of the other records for these crawlers."""

    def values(self, field: bytes) -> list[str]:
        """Return the values of a record, cut."""
        return [_text(value) for name, value in self.records if name == field]


class GroupList(NamedTuple):
    """The groups of a file."""

    groups: list[MergedGroup]
    """In the order of the file. Tokens for which the same lines hold are together."""
    above: MergedGroup
    """The records above any user-agent line."""

    @classmethod
    def of(cls, text: bytes, *, strict: bool) -> GroupList:
        """Read the lines of a file, each of which begins with a LF."""
        rules: list[list[RawRule]] = []
        others: list[_Records] = []
        above: _Records = []
        parts: dict[str, tuple[dict[int, None], dict[int, None]]] = {}
        names_rules = names_others = False  # whether a user-agent line continues the one above it
        for line, field, value in records(text, strict=strict):
            if field == b"user-agent":
                if not names_rules:
                    rules.append([])
                if not names_others:
                    others.append([])
                names_rules = names_others = True
                for token in tokens_of_line(value):
                    of_rules, of_others = parts.setdefault(token.decode("ascii"), ({}, {}))
                    of_rules[len(rules) - 1] = of_others[len(others) - 1] = None
            elif field in (b"allow", b"disallow"):
                names_rules = names_others = False
                if value and rules:
                    rules[-1].append((field == b"allow", value, line))
            elif field in GROUP_FIELDS:
                names_others = False  # as `record_reader` reads them
                (others[-1] if others else above).append((field, value))
        tokens: dict[tuple[tuple[int, ...], ...], list[str]] = {}
        for name, (of_rules, of_others) in parts.items():
            filled = tuple(number for number in of_others if others[number])
            tokens.setdefault((tuple(of_rules), filled), []).append(name)
        merged = [
            MergedGroup(
                tuple(names),
                tuple(rule for number in with_rules for rule in rules[number]),
                tuple(record for number in with_others for record in others[number]),
            )
            for (with_rules, with_others), names in tokens.items()
        ]
        return cls(merged, MergedGroup(records=tuple(above)))


def group_records(
    listed: GroupList, robots: RobotsTxt, agents: Sequence[Agent] | None, *, strict: bool
) -> Iterator[dict[str, Any]]:
    """Yield a record for each group, or for the group of each crawler."""
    left = MAX_RULES
    if agents is None:
        for group in listed.groups:
            record = _record(listed, robots, group, left, strict=strict)
            left -= len(record["rules"])
            yield record
        return
    group_of = {token: group for group in listed.groups for token in group.tokens}
    for agent in agents:
        token = agent.group(robots)
        group = MergedGroup() if token is None else group_of[token]._replace(tokens=(token,))
        record = _record(listed, robots, group, left, strict=strict)
        left -= len(record["rules"])
        yield {"agent": agent.name, **record}


def _record(
    listed: GroupList, robots: RobotsTxt, group: MergedGroup, left: int, *, strict: bool
) -> dict[str, Any]:
    ranked = rank(group.rules, strict=strict)
    written = {line: value for _, value, line in group.rules}
    rules = [
        {
            "line": line,
            "allow": not disallow,
            "pattern": Rule.of(written[line], line, allow=not disallow).pattern,
            "normalized": pattern[:MAX_LINE_LENGTH],
            "length": -length,
        }
        for length, disallow, line, pattern in islice(ranked, max(left, 0))
    ]
    token = () if group.tokens == (WILDCARD_AGENT,) else group.tokens[:1]
    signals = CONTENT_SIGNAL.field
    return {
        "tokens": list(group.tokens),
        "rules": rules,
        "rules_left_out": len(ranked) - len(rules),
        "pace": pace_record(robots, token) if group.tokens else None,
        "content_signal": group.values(signals) or listed.above.values(signals),
        "content_usage": group.values(CONTENT_USAGE.field),
        "licenses": group.values(LICENSE.field) or listed.above.values(LICENSE.field),
    }


def _text(value: bytes) -> str:
    return value[: 4 * MAX_LINE_LENGTH].decode("utf-8", "replace")[:MAX_LINE_LENGTH]
