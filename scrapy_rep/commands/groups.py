"""The groups of a robots.txt as a crawl understands them: merged, with their rules ranked."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.agents import tokens_of_line
from ..protocol.matcher import rank
from ..protocol.parser import records
from ..protocol.verdict import Rule
from .explain import MAX_LINE_LENGTH, pace_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..protocol.parser import RawRule
    from ..protocol.robotstxt import RobotsTxt
    from .agent_option import Agent
    from .policy import Policy

MAX_RULES = 100_000
"""Rules that are listed at most. In a file of the maximum size, the rules of each group may apply
to thousands of tokens in as many combinations."""


class MergedGroup(NamedTuple):
    """All groups that apply to the same crawlers (RFC 9309 §2.2.1)."""

    tokens: tuple[str, ...]
    rules: list[RawRule]
    """The rules as they are written. The position is the number of the line."""


def merged_groups(text: bytes, *, strict: bool) -> list[MergedGroup]:
    """Return the groups of a file. Tokens with the same rules are together."""
    parts: list[list[RawRule]] = []
    parts_of: dict[bytes, list[int]] = {}
    naming: dict[bytes, None] = {}
    is_naming = False
    for line, field, value in records(text, strict=strict):
        if field == b"user-agent":
            if not is_naming:
                naming, is_naming = {}, True
                parts.append([])
            for token in tokens_of_line(value):
                if token not in naming:
                    naming[token] = None
                    parts_of.setdefault(token, []).append(len(parts) - 1)
        elif field in (b"allow", b"disallow") and parts:
            is_naming = False
            if value:
                parts[-1].append((field == b"allow", value, line))
    tokens_of: dict[tuple[int, ...], list[str]] = {}
    for token, numbers in parts_of.items():
        tokens_of.setdefault(tuple(numbers), []).append(token.decode("ascii"))
    return [
        MergedGroup(tuple(tokens), [rule for number in numbers for rule in parts[number]])
        for numbers, tokens in tokens_of.items()
    ]


def group_records(
    policy: Policy, robots: RobotsTxt, agents: Sequence[Agent] | None, *, strict: bool
) -> Iterator[dict[str, Any]]:
    """Yield a record for each group, or for the group of each crawler."""
    groups = merged_groups(policy.text, strict=strict)
    left = MAX_RULES
    if agents is None:
        for group in groups:
            record = _record(robots, group, left, strict=strict)
            left -= len(record["rules"])
            yield record
        return
    for agent in agents:
        token = agent.group(robots)
        found = next((group for group in groups if token in group.tokens), MergedGroup((), []))
        record = _record(
            robots, found._replace(tokens=(token,) if token else ()), left, strict=strict
        )
        left -= len(record["rules"])
        yield {"agent": agent.name, **record}


def _record(robots: RobotsTxt, group: MergedGroup, left: int, *, strict: bool) -> dict[str, Any]:
    ranked = rank(group.rules, strict=strict)
    written = {line: (allow, value) for allow, value, line in group.rules}
    rules = [
        {
            "line": line,
            "allow": not disallow,
            "pattern": Rule.of(written[line][1], line, allow=not disallow).pattern,
            "normalized": pattern[:MAX_LINE_LENGTH],
            "length": -length,
        }
        for length, disallow, line, pattern in islice(ranked, max(left, 0))
    ]
    token = () if group.tokens in ((), ("*",)) else group.tokens[:1]
    applies = bool(group.tokens)
    return {
        "tokens": list(group.tokens),
        "rules": rules,
        "rules_left_out": len(ranked) - len(rules),
        "pace": pace_record(robots, token) if applies else None,
        "content_signal": _values(robots, "content-signal", token or "*") if applies else [],
        "content_usage": _values(robots, "content-usage", token or "*") if applies else [],
        "licenses": list(robots.licenses(token)),
    }


def _values(robots: RobotsTxt, name: str, user_agent: Iterable[str]) -> list[str]:
    values = robots.records(name, user_agent if isinstance(user_agent, (str, tuple)) else "*")
    return [value[:MAX_LINE_LENGTH] for value in values]
