"""What a survey takes from one robots.txt: numbers, features, agents, findings and preferences."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.lines import SIZE_LIMIT, read
from ..protocol.lint import lint
from ..protocol.listing import list_groups
from ..protocol.parser import records
from ..protocol.records import RECORD_TYPES, parse_delay
from ..protocol.usage import parse_signal_rule, parse_usage_rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..protocol.verdict import Rule

MAX_AGENTS = 5_000
"""Agents of one file that are counted, and preferences and unknown fields. The most agents that we
have seen in a file are 1,100."""

MAX_DELAY = 1_000_000
"""Seconds. A longer Crawl-delay counts as one of this length."""

KNOWN_FIELDS = frozenset(
    ["user-agent", "allow", "disallow", *(row.field.decode() for row in RECORD_TYPES)]
)
"""The fields that this package reads."""


class Extent(Enum):
    """How much of a site is disallowed for an agent."""

    EVERYTHING = "everything"
    """A rule disallows every path, and no rule allows any."""
    SOMETHING = "something"
    """Rules disallow some paths, or all but some."""
    NOTHING = "nothing"
    """No rule disallows a path."""


@dataclass(slots=True)
class Facts:
    """The facts about one file."""

    numbers: dict[str, int]
    """Sizes and numbers, such as ``rules``."""
    features: set[str] = field(default_factory=set)
    """What the file has, such as ``sitemap``."""
    agents: dict[str, Extent] = field(default_factory=dict)
    """The agents that the file names, in lower case."""
    delays: list[int] = field(default_factory=list)
    """The valid Crawl-delays in milliseconds."""
    unknown_fields: set[str] = field(default_factory=set)
    codes: set[str] = field(default_factory=set)
    """The codes of the findings of lint."""
    preferences: set[str] = field(default_factory=set)
    """Usage preferences, such as ``Content-Signal: ai-train=no``."""


class _Rules(NamedTuple):
    """A summary of rules. The lengths are those of patterns that match every path."""

    disallow_all: int = 0
    allow_all: int = 0
    disallows_some: bool = False
    allows_some: bool = False

    @property
    def extent(self) -> Extent:
        # RFC 9309 §2.2.2: the longer pattern wins, and allow if both have the same length.
        if self.disallow_all > self.allow_all:
            is_whole = not (self.allows_some or self.allow_all)
            return Extent.EVERYTHING if is_whole else Extent.SOMETHING
        return Extent.SOMETHING if self.disallows_some else Extent.NOTHING


def facts_of(body: bytes) -> Facts:
    """Return the facts about a robots.txt. No content raises an error."""
    text = read(body)
    groups = list(list_groups(text, strict=False))
    rules = [rule for group in groups for rule in group.rules]
    facts = Facts(
        {
            "size": len(body),
            "lines": text.count(b"\n") if text.strip() else 0,
            "groups": len(groups),
            "rules": len(rules),
            "longest-pattern": max((len(rule.pattern) for rule in rules), default=0),
        }
    )
    facts.agents = _agents((group.agents, group.rules) for group in groups)
    facts.numbers["agents"] = len(facts.agents)
    facts.numbers["sitemaps"] = _add_records(facts, text)
    facts.codes = {finding.code.code for finding in lint(body)}
    facts.features |= _features(facts, body, text, rules)
    return facts


def _agents(groups: Iterable[tuple[Sequence[str], Sequence[Rule]]]) -> dict[str, Extent]:
    found: dict[str, _Rules] = {}
    for agents, rules in groups:
        summary = _summary(rules)
        for agent in agents:
            known = found.get(agent)
            if known is not None:
                found[agent] = _both(known, summary)
            elif len(found) < MAX_AGENTS:
                found[agent] = summary
    return {agent: rules.extent for agent, rules in found.items()}


def _summary(rules: Iterable[Rule]) -> _Rules:
    disallow_all = allow_all = 0
    disallows_some = allows_some = False
    for rule in rules:
        length = len(rule.pattern) if rule.pattern.rstrip("*") in ("", "/") else 0
        if rule.allow:
            allow_all = max(allow_all, length)
            allows_some = allows_some or not length
        else:
            disallow_all = max(disallow_all, length)
            disallows_some = disallows_some or not length
    return _Rules(disallow_all, allow_all, disallows_some, allows_some)


def _both(one: _Rules, other: _Rules) -> _Rules:
    return _Rules(
        max(one.disallow_all, other.disallow_all),
        max(one.allow_all, other.allow_all),
        one.disallows_some or other.disallows_some,
        one.allows_some or other.allows_some,
    )


def _add_records(facts: Facts, text: bytes) -> int:
    """Add what the records say. Returns the number of sitemaps."""
    sitemaps = 0
    for _, name, value in records(text, strict=False):
        known = name.decode("utf-8", "replace")
        if known not in KNOWN_FIELDS:
            if len(facts.unknown_fields) < MAX_AGENTS:
                facts.unknown_fields.add(known)
            continue
        if not value:
            continue
        facts.features.add(known)
        match known:
            case "sitemap":
                sitemaps += 1
            case "crawl-delay":
                delay = parse_delay(value)
                if delay is not None:
                    facts.delays.append(round(min(delay, MAX_DELAY) * 1000))
            case "content-signal":
                rule = parse_signal_rule(value)
                stated = () if rule is None else rule[1].items()
                _add_preferences(facts, "Content-Signal", stated)
            case "content-usage":
                _add_preferences(facts, "Content-Usage", parse_usage_rule(value)[1].items())
    return sitemaps


def _add_preferences(facts: Facts, name: str, stated: Iterable[tuple[str, bool | str]]) -> None:
    words = ("y", "n") if name == "Content-Usage" else ("yes", "no")
    for label, value in islice(stated, MAX_AGENTS - len(facts.preferences)):
        text = value if isinstance(value, str) else words[not value]
        facts.preferences.add(f"{name}: {label}={text}")


def _features(facts: Facts, body: bytes, text: bytes, rules: Sequence[Rule]) -> set[str]:
    features = set()
    if not text.strip():
        features.add("empty")
    elif not facts.features and text.lstrip().startswith(b"<"):
        features.add("html")
        facts.unknown_fields.clear()  # parts of a page in front of a colon
    if len(body) > SIZE_LIMIT:
        features.add("too-large")
    if facts.numbers["groups"] == 0:
        features.add("no-group")
    if any("*" in rule.pattern for rule in rules):
        features.add("star")
    if any(rule.pattern.endswith("$") for rule in rules):
        features.add("end-anchor")
    if set(facts.agents) - {WILDCARD_AGENT}:
        features.add("names-an-agent")
    everyone = facts.agents.get(WILDCARD_AGENT)
    if everyone is not None:
        features |= {"wildcard-group", f"disallows-{everyone.value}-for-all"}
    if facts.codes:
        features.add("findings")
    return features
