"""The difference in meaning between two robots.txt files, as a record of ``diff``.

Two files have the same meaning if they answer every question alike: whether a crawler may fetch a
URL, its pace, the use of the content, licenses, sitemaps. The order of groups and rules, comments
and spelling do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.matcher import rank
from ..protocol.record_reader import Records
from ..protocol.records import (
    CLEAN_PARAM,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    CRAWL_DELAY,
    HOST,
    NOINDEX,
    REQUEST_RATE,
    VISIT_TIME,
)
from ..protocol.robotstxt import RobotsTxt
from ..protocol.verdict import Rule
from .explain import MAX_LINE_LENGTH
from .groups import GroupList, MergedGroup
from .patterns import covers, examples
from .rule_changes import Steps, rule_changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..protocol.matcher import RankedRule
    from ..protocol.verdict import Verdict
    from .agent_option import Agent
    from .policy import Policy

VERSION = 1
"""The version of the records. A field may be added without a new one."""

MAX_RULES = 200_000
"""Rules of all groups that are ranked. In a file of the maximum size, the rules of each group may
apply to thousands of tokens in as many combinations."""

MAX_COMPARED_RULES = 500_000
"""Rules that are compared, counted for each two groups whose rules differ."""

MAX_LISTED = 1000
"""Rules, values and crawlers of a difference that are listed. The record counts the rest."""

MAX_LISTED_RULES = 10_000
"""Rules that are listed for all crawlers together."""

MAX_EXAMPLES = 500
"""Rules for which a path is looked for whose verdict changes."""

NO_GROUP = MergedGroup()
_EVERYTHING_DISALLOWED = b"User-agent: *\nDisallow: /"


class Severity(str, Enum):
    """How much a difference matters."""

    HIGH = "high"
    """The whole site is newly disallowed for a crawler, or newly allowed."""
    MEDIUM = "medium"
    """A part of the site, the use of its content, or its licenses."""
    LOW = "low"
    """The pace, sitemaps, and records that few crawlers read."""

    def __str__(self) -> str:
        return self.value


class Extent(str, Enum):
    """How much of a site a crawler may fetch."""

    ALL = "all"
    PART = "part"
    EXCEPTIONS = "exceptions"
    """Everything is disallowed, except for what some rules allow."""
    NONE = "none"

    @property
    def is_open(self) -> bool:
        """Whether the site as a whole is allowed."""
        return self in (Extent.ALL, Extent.PART)


class Side(NamedTuple):
    """One of the two files."""

    robots: RobotsTxt
    text: bytes
    """Its lines, each of which begins with a LF."""
    records: Records
    strict: bool

    @classmethod
    def of(cls, policy: Policy, *, url: str | None, strict: bool) -> Side:
        """Return the side of a policy that is known.

        ``url`` is that of the robots.txt, to resolve relative URLs.
        """
        body = policy.text[1:]
        if policy.access.state == "disallowed-status":
            body = _EVERYTHING_DISALLOWED
        robots = policy.robots
        if robots is None:
            robots = RobotsTxt(body, strict=strict)
        text = b"\n" + body
        return cls(robots, text, Records(text, strict=strict, url=url), strict)


@dataclass(frozen=True)
class Rules:
    """The rules of one group, as they are compared."""

    ranked: Sequence[RankedRule]
    written: Mapping[int, tuple[bool, bytes]]
    """Whether a rule allows, and its value as it is written, by line."""

    @cached_property
    def extent(self) -> Extent:
        """How much of the site is allowed."""
        for number, (_, disallow, _, pattern) in enumerate(self.ranked):
            if len(pattern.replace("*", "")) <= len("/$") and covers(pattern, "/"):
                stronger = self.ranked[:number]
                if disallow:
                    has_exceptions = any(not rule[1] for rule in stronger)
                    return Extent.EXCEPTIONS if has_exceptions else Extent.NONE
                return Extent.PART if any(rule[1] for rule in stronger) else Extent.ALL
        return Extent.PART if any(rule[1] for rule in self.ranked) else Extent.ALL


class Crawlers(NamedTuple):
    """Crawlers that have the same verdicts in the old file, and the same in the new one."""

    names: list[str]
    tokens: tuple[str, ...]
    """The product tokens of one of them."""
    agent: Agent | None
    """That crawler, if the user has named it."""
    old: MergedGroup | None
    """The group that applies to them in the old file. None: nothing in it applies to them."""
    new: MergedGroup | None


class Comparison:
    """The comparison of two files."""

    def __init__(self, old: Side, new: Side, agents: Sequence[Agent] | None) -> None:
        self._sides = (old, new)
        self._steps = Steps()
        self._rules_left = MAX_RULES
        self._rules_to_compare = MAX_COMPARED_RULES
        self._rules_to_list = MAX_LISTED_RULES
        self._examples_left = MAX_EXAMPLES
        self._ranked: dict[tuple[int, int], Rules] = {}
        self._is_cut = False
        self._group_of = [
            {
                token: group
                for group in GroupList.of(side.text, strict=side.strict).groups
                for token in group.tokens
            }
            for side in self._sides
        ]
        self.crawlers = list(self._of_agents(agents) if agents is not None else self._of_files())
        self.changed: list[Crawlers] = []
        """The crawlers whose verdicts may differ. Known after :meth:`record`."""

    def record(self) -> dict[str, Any]:
        """Return the difference, without what was compared."""
        found: list[dict[str, Any]] = []
        left = 0
        for crawlers in self.crawlers:
            if len(found) >= MAX_LISTED:
                left += len(crawlers.names)
                self._is_cut = True
                self.changed.append(crawlers)
                continue
            for difference in self._compare(crawlers):
                _add(found, difference)
        found.sort(key=lambda one: list(Severity).index(one["severity"]))
        file = self._compare_files()
        severities = [*(Severity(one["severity"]) for one in found), *[Severity.LOW] * bool(file)]
        return {
            "same": None if self._is_cut and not severities else not severities,
            "complete": not (self._is_cut or self._steps.are_used_up),
            "severity": min(severities, key=list(Severity).index).value if severities else None,
            "crawlers": found[:MAX_LISTED],
            "crawlers_left_out": left + sum(len(one["names"]) for one in found[MAX_LISTED:]),
            "file": file,
        }

    def _of_agents(self, agents: Iterable[Agent]) -> Iterator[Crawlers]:
        for agent in agents:
            groups: list[MergedGroup | None] = []
            for side, group_of in zip(self._sides, self._group_of, strict=True):
                group = group_of.get(agent.group(side.robots) or "", NO_GROUP)
                is_ignored = agent.ignores_wildcard and group is NO_GROUP
                groups.append(None if agent.ignores_robots_txt or is_ignored else group)
            yield Crawlers([agent.name], agent.tokens, agent, *groups)

    def _of_files(self) -> Iterator[Crawlers]:
        """Yield the crawlers that one of the files names, and all others."""
        found: dict[tuple[int, int], Crawlers] = {}
        old, new = (side.robots.agents for side in self._sides)
        for name in dict.fromkeys([WILDCARD_AGENT, *old, *new]):
            groups = [
                group_of.get(name) or group_of.get(WILDCARD_AGENT) or NO_GROUP
                for group_of in self._group_of
            ]
            key = (id(groups[0]), id(groups[1]))
            if key in found:
                found[key].names.append(name)
            else:
                tokens = () if name == WILDCARD_AGENT else (name,)
                found[key] = Crawlers([name], tokens, None, *groups)
        yield from found.values()

    def _rules(self, number: int, group: MergedGroup | None) -> Rules | None:
        """Return the rules of a group; None if the groups have too many rules."""
        if group is None:
            return _NO_RULES
        key = (number, id(group))
        rules = self._ranked.get(key)
        if rules is None:
            self._rules_left -= len(group.rules)
            if self._rules_left < 0:
                return None
            rules = self._ranked[key] = Rules(
                rank(group.rules, strict=self._sides[number].strict),
                {line: (allow, value) for allow, value, line in group.rules},
            )
        return rules

    def _compare(self, crawlers: Crawlers) -> Iterator[dict[str, Any]]:
        """Yield a record for those of the crawlers that have a difference."""
        old, new = self._rules(0, crawlers.old), self._rules(1, crawlers.new)
        if old is not None and new is not None:
            self._rules_to_compare -= len(old.ranked) + len(new.ranked)
        if old is None or new is None or self._rules_to_compare < 0:
            self._is_cut = True
            self.changed.append(crawlers)
            return
        changes = rule_changes(old.ranked, new.ranked, self._steps)
        number = len(changes.removed) + len(changes.added)
        listed = [
            *((old, rule, "removed") for rule in changes.removed[:MAX_LISTED]),
            *((new, rule, "added") for rule in changes.added[:MAX_LISTED]),
        ][: self._rules_to_list]
        rules = [self._rule(crawlers, *one) for one in listed]
        self._rules_to_list -= len(rules)
        site, is_site = None, False
        if number:
            self.changed.append(crawlers)
            extents = (old.extent, new.extent)
            site = {"old": extents[0].value, "new": extents[1].value}
            is_site = extents[0].is_open != extents[1].is_open
        for name in crawlers.names:
            before, after = (self._stated(number, name, crawlers) for number in (0, 1))
            usage = [*_usage("Content-Signal", before.signals, after.signals)]
            usage += _usage("Content-Usage", before.usage, after.usage)
            licenses = _values(before.licenses, after.licenses)
            if not number and before == after:
                continue
            severity = Severity.LOW
            if number or usage or licenses:
                severity = Severity.HIGH if is_site else Severity.MEDIUM
            yield {
                "severity": severity.value,
                "names": [name],
                "names_left_out": 0,
                "group": self._group_change(name, crawlers),
                "site": site,
                "rules": rules,
                "rules_left_out": number - len(rules),
                "pace": _pace_change(before.pace, after.pace),
                "usage": usage[:MAX_LISTED],
                "licenses": licenses,
            }

    def _stated(self, number: int, name: str, crawlers: Crawlers) -> Stated:
        """Return what a file states to a crawler besides its rules."""
        side, group = self._sides[number], (crawlers.old, crawlers.new)[number]
        if group is None:
            return _NOTHING
        token = (crawlers.agent.group(side.robots) or "") if crawlers.agent else name
        if token not in self._group_of[number]:
            token = WILDCARD_AGENT if WILDCARD_AGENT in self._group_of[number] else ""
        return Stated.of(side.records, token.encode())

    def _group_change(self, name: str, crawlers: Crawlers) -> str | None:
        """Return whether a group that names a crawler was added or removed."""
        tokens = crawlers.tokens if crawlers.agent else (name,)
        old, new = (any(token in group_of for token in tokens) for group_of in self._group_of)
        return None if old == new else "added" if new else "removed"

    def _rule(
        self, crawlers: Crawlers, rules: Rules, rule: RankedRule, change: str
    ) -> dict[str, Any]:
        _, disallow, line, pattern = rule
        return {
            "change": change,
            "line": line,
            "allow": not disallow,
            "pattern": Rule.of(rules.written[line][1], line, allow=not disallow).pattern,
            "effect": "allows" if disallow == (change == "removed") else "disallows",
            "example": self._example(crawlers, pattern),
        }

    def _example(self, crawlers: Crawlers, pattern: str) -> str | None:
        """Return a path whose verdict changes, or None if none of a few does."""
        self._examples_left -= 1
        if self._examples_left < 0:
            return None
        for path in examples(pattern):
            old, new = (verdict_for(side.robots, path, crawlers) for side in self._sides)
            if old.allowed != new.allowed:
                return path[:MAX_LINE_LENGTH]
        return None

    def _compare_files(self) -> list[dict[str, Any]]:
        """Return the differences of records that hold for all crawlers."""
        found = [_file_values(side.records) for side in self._sides]
        changes = {name: _values(values, found[1][name]) for name, values in found[0].items()}
        return [{"record": name, **values} for name, values in changes.items() if values]


def verdict_for(robots: RobotsTxt, url: str, crawlers: Crawlers) -> Verdict:
    """Return the verdict on a URL for these crawlers. Raises ValueError for no URL."""
    verdict = robots.verdict(url, crawlers.tokens)
    return crawlers.agent.apply(verdict) if crawlers.agent else verdict


class Stated(NamedTuple):
    """What a file states to one crawler besides its rules."""

    pace: dict[str, Any]
    signals: Mapping[tuple[str, int], Mapping[str, Any]]
    usage: Mapping[tuple[str, int], Mapping[str, Any]]
    licenses: frozenset[str]

    @classmethod
    def of(cls, records: Records, token: bytes) -> Stated:
        """Return what the groups of a token state, or without them the whole file."""
        values = records.of(token)
        hours = values.get(VISIT_TIME)
        return cls(
            {
                "crawl_delay": values.get(CRAWL_DELAY),
                "request_rates": sorted({str(rate) for rate in values.get(REQUEST_RATE)}),
                "visit_time": None if hours is None else str(hours),
            },
            (values.get(CONTENT_SIGNAL) or records.file.get(CONTENT_SIGNAL)).statements,
            values.get(CONTENT_USAGE).statements,
            frozenset(records.licenses(token)),
        )


_NO_PACE: dict[str, Any] = {"crawl_delay": None, "request_rates": [], "visit_time": None}
_NO_RULES = Rules((), {})
_NOTHING = Stated(_NO_PACE, {}, {}, frozenset())


def _pace_change(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any] | None:
    if old == new:
        return None
    return {
        "old": None if old == _NO_PACE else old,
        "new": None if new == _NO_PACE else new,
    }


def _file_values(records: Records) -> dict[str, Iterable[str]]:
    host = records.file.get(HOST)
    return {
        "Sitemap": records.sitemaps,
        "Host": [host] if host else [],
        "Clean-param": [
            f"{'&'.join(sorted(row.parameters))} {row.path}"
            for row in records.file.get(CLEAN_PARAM)
        ],
        "Noindex": records.file.get(NOINDEX),
    }


def _add(found: list[dict[str, Any]], difference: dict[str, Any]) -> None:
    """Add a difference. Crawlers with the same one share a record."""
    for other in found[:100]:
        if all(
            other[key] == value
            for key, value in difference.items()
            if key not in ("names", "names_left_out")
        ):
            room = MAX_LISTED - len(other["names"])
            names = difference["names"]
            other["names"] += names[:room]
            other["names_left_out"] += difference["names_left_out"] + len(names[room:])
            return
    found.append(difference)


def _usage(
    name: str,
    old: Mapping[tuple[str, int], Mapping[str, Any]],
    new: Mapping[tuple[str, int], Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if before != after:
            pattern, length = key
            yield {
                "record": name,
                "path": pattern[:MAX_LINE_LENGTH] if length else None,
                "old": None if before is None else dict(before),
                "new": None if after is None else dict(after),
            }


def _values(old: Iterable[str], new: Iterable[str]) -> dict[str, Any] | None:
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    removed = [value for value in before if value not in after]
    added = [value for value in after if value not in before]
    if not (removed or added):
        return None
    return {
        "removed": [value[:MAX_LINE_LENGTH] for value in removed[:MAX_LISTED]],
        "added": [value[:MAX_LINE_LENGTH] for value in added[:MAX_LISTED]],
        "left_out": len(removed[MAX_LISTED:]) + len(added[MAX_LISTED:]),
    }
