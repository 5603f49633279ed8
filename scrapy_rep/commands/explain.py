"""Everything that there is to say about one URL and one crawler, as a record of ``check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.agents import tokens_of_line
from ..protocol.matcher import matching, rank
from ..protocol.parser import parse_line
from ..protocol.paths import path_of
from ..protocol.usage import evaluated
from ..protocol.verdict import Reason

if TYPE_CHECKING:
    from ..protocol.robotstxt import RobotsTxt
    from ..protocol.verdict import Rule, Verdict
    from .agent_option import Agent
    from .policy import Policy
    from .targets import Target

VERSION = 1
"""The version of the records. A field may be added without a new one."""

CONTEXT_LINES = 2
"""Lines before and after the deciding rule that are shown."""

MAX_LINE_LENGTH = 1000
"""Characters of a line that a record holds."""

MAX_OTHER_RULES = 1000
"""Other rules that match and are listed. The record says how many more there are."""


class Measured(NamedTuple):
    """A rule as it is compared with a path."""

    rule: Rule
    normalized: str
    """The pattern in comparable form. For an index page it may be that of its directory."""
    length: int
    """The octets that count for precedence."""

    def as_json(self) -> dict[str, Any]:
        """Return the rule as a record."""
        return {
            **rule_record(self.rule),
            "normalized": self.normalized[:MAX_LINE_LENGTH],
            "length": self.length,
        }


def brief(target: Target, agent: Agent, verdict: Verdict | None) -> dict[str, Any]:
    """Return the record of one verdict without its reasons. None: it is not known."""
    record = {"type": "check", "version": VERSION, "url": target.url, "agent": agent.name}
    if verdict is None:
        return {**record, **answer(None, "unknown" if target.is_valid else "invalid-url")}
    return {**record, **answer_of(verdict)}


def answer(allowed: bool | None, reason: str, detail: str | None = None) -> dict[str, Any]:
    """Return the part of a record that answers."""
    return {
        "allowed": allowed,
        "reason": reason,
        "detail": detail,
        "group": None,
        "rule": None,
    }


def answer_of(verdict: Verdict) -> dict[str, Any]:
    """Return the part of a record that answers, for a verdict."""
    found = answer(verdict.allowed, verdict.reason.value, verdict.detail)
    found["group"] = verdict.agent
    if verdict.rule is not None:
        found["rule"] = rule_record(verdict.rule)
    return found


def rule_record(rule: Rule) -> dict[str, Any]:
    """Return a rule as a record."""
    return {"line": rule.line, "allow": rule.allow, "pattern": rule.pattern}


def explain(
    target: Target, agent: Agent, policy: Policy | None, verdict: Verdict | None, *, strict: bool
) -> dict[str, Any]:
    """Return the record of one verdict with all its reasons.

    ``policy`` is None for a URL without a robots.txt, or if it is not known.
    """
    record = brief(target, agent, verdict)
    record |= {
        "given": target.given,
        "origin": target.origin,
        "path": path_of(target.url) if policy is not None and policy.robots else None,
        "tokens": list(agent.tokens),
        "ignores_wildcard": agent.ignores_wildcard,
        "ignores_robots_txt": agent.ignores_robots_txt,
        "context": [],
        "other_rules": [],
        "other_rules_left_out": 0,
        "pace": None,
        "usage": None,
        "licenses": [],
        "robots_txt": policy.access.as_json() if policy is not None else None,
    }
    if policy is None or policy.robots is None or verdict is None:
        return record
    robots, group = policy.robots, agent.group(policy.robots)
    # The verdict of a local rule names no group.
    record["group"] = group if verdict.reason is not Reason.LOCAL_RULE else None
    if group is not None:
        _add_rules(record, target, policy, robots, group, verdict, strict=strict)
    tokens = (group,) if group is not None and group != "*" else ()
    if group is None and (agent.ignores_wildcard or agent.ignores_robots_txt):
        return record
    record["pace"] = pace_record(robots, tokens)
    record["usage"] = usage_record(robots, target.url, tokens)
    record["licenses"] = list(robots.licenses(tokens))
    return record


def pace_record(robots: RobotsTxt, tokens: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the pace for a crawler, or None if none is stated."""
    delay, rates = robots.crawl_delay(tokens), robots.request_rates(tokens)
    hours = robots.visit_time(tokens)
    if delay is None and not rates and hours is None:
        return None
    return {
        "crawl_delay": delay,
        "request_rates": [str(rate) for rate in rates],
        "visit_time": None if hours is None else str(hours),
    }


def usage_record(robots: RobotsTxt, url: str, tokens: tuple[str, ...]) -> dict[str, Any] | None:
    """Return what is stated about the use of a URL's content, or None if nothing is."""
    if not robots.has_usage:
        return None
    signals, usage = robots.content_signals(url, tokens), robots.content_usage(url, tokens)
    if not signals and not usage:
        return None
    return {
        "content_signal": signals,
        "content_usage": usage,
        "evaluated": evaluated([signals, usage]),
    }


def _add_rules(
    record: dict[str, Any],
    target: Target,
    policy: Policy,
    robots: RobotsTxt,
    group: str,
    verdict: Verdict,
    *,
    strict: bool,
) -> None:
    lines, path = policy.lines, path_of(target.url)
    tokens = () if group == "*" else (group,)
    matches = robots.matches(target.url, tokens)
    shown = matches[: MAX_OTHER_RULES + 1]
    measured = [_measure(rule, lines, path, strict=strict) for rule in shown]
    winner = None
    if verdict.rule is not None:
        record["context"] = _context(lines, verdict.rule.line, group, strict=strict)
        # It may be missing among the matches if their comparison was stopped.
        winner = next((one for one in measured if one.rule.line == verdict.rule.line), None)
        winner = winner or _measure(verdict.rule, lines, path, strict=strict)
        record["rule"] = winner.as_json()
        record["rule"]["is_directory_rule"] = _stands_for_directory(winner)
    others = [one for one in measured if one is not winner]
    record["other_rules"] = [{**one.as_json(), "why": _why_it_lost(one, winner)} for one in others]
    record["other_rules_left_out"] = len(matches) - len(shown)


def _measure(rule: Rule, lines: list[bytes], path: str, *, strict: bool) -> Measured:
    """Return a rule as the comparison with a path has used it."""
    value = rule.pattern.encode()
    if rule.line <= len(lines):
        line = parse_line(lines[rule.line - 1], rule.line, strict=strict)
        value = line.value if line is not None else value
    ranked = rank([(rule.allow, value, 0)], strict=strict)
    if not ranked:
        return Measured(rule, rule.pattern, len(rule.pattern))
    number = next(matching([pattern for *_, pattern in ranked], path), 0)
    length, _, _, pattern = ranked[number]
    return Measured(rule, pattern, -length)


def _stands_for_directory(measured: Measured) -> bool:
    """Whether a rule for ``/index.htm…`` matches as a rule for its directory (Google)."""
    return measured.normalized.endswith("/$") and "/index.htm" in measured.rule.pattern


def _why_it_lost(one: Measured, winner: Measured | None) -> str:
    if winner is None:
        return "overruled"  # a local rule decides, or the comparison was stopped
    if one.normalized == winner.normalized:
        return "repeated" if one.rule.allow == winner.rule.allow else "allow-wins"
    if one.length < winner.length:
        return "shorter"
    return "allow-wins" if winner.rule.allow and not one.rule.allow else "later"


def _context(lines: list[bytes], line: int, group: str, *, strict: bool) -> list[dict[str, Any]]:
    """Return the user-agent line of the group, and the lines around the deciding one."""
    numbers = set(range(max(line - CONTEXT_LINES, 1), min(line + CONTEXT_LINES, len(lines)) + 1))
    token = group.encode()
    for number in range(min(line, len(lines)), 0, -1):
        record = parse_line(lines[number - 1], number, strict=strict)
        is_agent = record is not None and record.field == b"user-agent"
        if record is not None and is_agent and token in tokens_of_line(record.value):
            numbers.add(number)
            break
    return [{"line": number, "text": _text(lines[number - 1])} for number in sorted(numbers)]


def _text(line: bytes) -> str:
    return line[: 4 * MAX_LINE_LENGTH].decode("utf-8", "replace")[:MAX_LINE_LENGTH]
