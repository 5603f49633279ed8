"""``diff``: what has changed in the meaning of a robots.txt.

Two files have the same meaning if they answer every question alike: whether a crawler may fetch a
URL, its pace, the use of the content, licenses, sitemaps. The order of groups and rules, comments
and spelling make no difference.

Two lists of rules are compared by what they decide. A rule that is in one list only makes no
difference if a stronger rule of its list covers it, or if the other list decides the same for all
of its paths. Rules that are in both lists make none: a path that they decide in both lists has the
same verdict. Patterns are in the comparable form of `protocol.paths`. The answers about them are
exact or on the safe side: `covers` may say False and `may_overlap` may say True where that is not
so, never the reverse.
"""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
import msgspec
from msgspec import UNSET, Struct
from rich.text import Text

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.matcher import matches, sample_paths
from ..protocol.paths import ROBOTS_TXT, pattern_has_reserved_query
from ..protocol.printable import printable
from ..protocol.records import CONTENT_SIGNAL, CONTENT_USAGE, RecordValues
from ..protocol.robotstxt import RobotsTxt
from .context import Context, agent_option, archive_option, tool
from .crawlers import Agent, agents_of
from .explain import MAX_LENGTH, Answer, Rule, pace_of, reason_text, stated_text
from .inputs import input_options, urls_from
from .output import ExitCode, exit_code, json_line
from .show import GroupList, MergedGroup
from .sources import Access, Policy, read_policies, target_of, time_text, verdict_of
from .texts import STYLES, WORDS, indented, quantity, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from ..protocol.matcher import RankedRule
    from .output import Output

T = TypeVar("T")

MAX_RULES = 500_000
"""Rules that are ranked and compared, counted for each two groups. In a file of the maximum size,
the rules of each group may apply to thousands of tokens in as many combinations."""

MAX_LISTED, MAX_EXAMPLES = 10_000, 500
"""Rules and other changes that a record lists, and those with an example. It counts the rest."""

MAX_URL_CRAWLERS = 100
"""Crawlers for which URLs are checked."""

MAX_SHOWN, MAX_SHOWN_RULES = 20, 50
"""Names, changes and rules of a difference that are shown as text. JSON has more."""

MAX_STEPS = 1_000_000
"""Comparisons of two patterns for a whole file. Rules that are left after them count as changed."""

_BYTES_PER_STEP = 16
"""Bytes of two patterns whose comparison counts as one more step."""

_FILLS = ("", "x", "x/x")
"""What stands for a star in an example of a path."""

SEVERITIES = ("high", "medium", "low")
"""How much a difference matters. high: the whole site is newly disallowed or allowed; medium: a
part of it, the use of its content, or licenses; low: the pace, and records that few read."""

NO_GROUP = MergedGroup()
_EVERYTHING_DISALLOWED = b"User-agent: *\nDisallow: /"


class ChangedRule(Rule, kw_only=True):
    """A rule that was ``added`` or ``removed``, and whether this ``allows`` or ``disallows``."""

    change: str
    effect: str = "allows"
    example: str | None = None


class Change(Struct):
    """What both files state. null: nothing. ``record`` may be ``site``: how much of it is allowed,
    which is ``all``, ``part``, ``exceptions`` or ``none``."""

    record: str
    old: str | None
    new: str | None


class Difference(Struct, kw_only=True):
    """The difference for some crawlers. ``group``: one that names them was added or removed."""

    severity: str
    names: list[str]
    group: str | None
    rules: list[ChangedRule] = []
    changes: list[Change] = []
    left_out: int = 0


class Diff(Struct, kw_only=True, tag_field="type", tag="diff"):
    """The difference of two files. ``same`` is null if it is not known. Unless ``complete``,
    differences may be missing, or listed that have no effect."""

    version: int = 1
    old: Access
    new: Access
    same: bool | None = None
    complete: bool = False
    severity: str | None = None
    crawlers: list[Difference] = []
    file: list[Change] = []


class DiffUrl(Struct, kw_only=True, tag_field="type", tag="diff-url"):
    """A URL whose verdict differs for some crawlers."""

    version: int = 1
    url: str
    names: list[str]
    names_left_out: int
    old: Answer
    new: Answer


@tool(
    "Say what differs in meaning between two robots.txt files: rules that gain or lose effect, "
    "pace, sitemaps, usage and licenses. The order of groups and rules, comments and spelling "
    "make no difference.",
    ("diff old.txt new.txt", "compare two files"),
    ("diff example.com robots.txt", "compare a site with a file that will replace its robots.txt"),
    ("diff example.com robots.txt --urls urls.txt", "also list the URLs whose verdict differs"),
    ("diff old.txt new.txt -a Googlebot -a ai-training", "compare what they say to some crawlers"),
    ("diff store:example.com example.com", "compare the copy in REP_STORE with the site"),
    ("diff archive:example.com@2026-03-01 example.com", "compare an archive with the site"),
    records=(Diff, DiffUrl),
)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@agent_option
@click.option(
    "--urls",
    "source",
    metavar="FILE",
    help="List the URLs of a file whose verdict differs; '-': standard input.",
)
@input_options
@archive_option
def diff_tool(
    context: Context,
    old: str,
    new: str,
    agents: Sequence[str],
    source: str | None,
    from_format: str | None,
    field: str | None,
) -> int:
    """Compare two files."""
    named = agents_of(agents, context) if agents else None
    policies = read_policies([old, new], context)
    record = Diff(old=policies[0].access, new=policies[1].access)
    unknown = [policy.access for policy in policies if policy.access.is_unreachable]
    for access in unknown:
        context.output.note(access.problem)
    comparison = None if unknown else Comparison(_sides(*policies), named)
    if comparison is not None:
        comparison.compare(record)
    context.output.show(record, _listing)
    code = exit_code([record.same])
    if source is None or comparison is None:
        return code
    origins = {policy.origin for policy in policies if policy.origin}
    given = urls_from(source, form=from_format, field=field)
    is_known = _write_urls(given, comparison, origins, context)
    return code if is_known else ExitCode.UNKNOWN


class Side(NamedTuple):
    """One of the two files."""

    policy: Policy
    """Without local rules."""
    robots: RobotsTxt
    groups: GroupList
    by_token: dict[str, MergedGroup]


def _sides(old: Policy, new: Policy) -> tuple[Side, Side]:
    """Return both files. The relative URLs of a file are those of the site it is compared with."""
    urls = [
        None if one.access.source == "file" else one.access.final_url or one.access.url
        for one in (old, new)
    ]
    return _side(old, urls[0] or urls[1]), _side(new, urls[1] or urls[0])


def _side(policy: Policy, url: str | None) -> Side:
    is_disallowed = policy.access.state == "disallowed-status"
    text = b"\n" + _EVERYTHING_DISALLOWED if is_disallowed else policy.text
    robots, groups = RobotsTxt(text[1:], url=url), GroupList.of(text)
    own = replace(policy, robots=robots, verdict=verdict_of(robots))
    return Side(own, robots, groups, groups.by_token)


class Crawlers(NamedTuple):
    """Crawlers for which the same lines hold in the old file, and the same in the new one."""

    names: list[str]
    agent: Agent
    """One of them."""
    groups: tuple[MergedGroup | None, MergedGroup | None]
    """The groups that apply to them. None: nothing in a file applies to them."""
    group: str | None
    """Whether a group that names them was ``added`` or ``removed``."""


class Comparison:
    """The comparison of two files."""

    def __init__(self, sides: tuple[Side, Side], agents: Sequence[Agent] | None) -> None:
        self.sides = sides
        self._steps = Steps()
        self._rules_left = MAX_RULES
        self._room = MAX_LISTED
        self._examples_left = MAX_EXAMPLES
        self._ranked: dict[int, Sequence[RankedRule]] = {}
        self._is_cut = False
        self._crawlers = list(self._of_files() if agents is None else map(self._of_agent, agents))
        self.changed: list[Crawlers] = []
        """The crawlers whose verdicts may differ. Known after :meth:`compare`."""

    def compare(self, record: Diff) -> None:
        """Put the difference into a record."""
        found: dict[bytes, Difference] = {}
        for crawlers in self._crawlers:
            difference = self._compare(crawlers)
            if difference is not None:  # crawlers with the same difference share a record
                key = msgspec.json.encode(difference)
                found.setdefault(key, difference).names.extend(crawlers.names)
        record.crawlers = sorted(found.values(), key=lambda one: SEVERITIES.index(one.severity))
        old, new = (_file_values(side.robots) for side in self.sides)
        for name in old:
            record.file += self._listed(_values(name, old[name], new[name]))
        is_same = not (record.crawlers or record.file)
        record.same = None if self._is_cut and is_same else is_same
        record.complete = not self._is_cut and self._steps.left > 0
        if not is_same:
            record.severity = record.crawlers[0].severity if record.crawlers else "low"

    def _of_agent(self, agent: Agent) -> Crawlers:
        def group_of(side: Side) -> MergedGroup | None:
            group = side.by_token.get(agent.group(side.robots) or "")
            return group or (None if agent.ignores_unnamed else NO_GROUP)

        old, new = map(group_of, self.sides)
        return Crawlers([agent.name], agent, (old, new), self._change(agent.tokens))

    def _of_files(self) -> Iterable[Crawlers]:
        """Return the crawlers that one of the files names, and all others."""
        found: dict[tuple[int, int, str | None], Crawlers] = {}
        old, new = self.sides
        for name in dict.fromkeys([WILDCARD_AGENT, *old.by_token, *new.by_token]):
            one, two = (
                side.by_token.get(name) or side.by_token.get(WILDCARD_AGENT) or NO_GROUP
                for side in self.sides
            )
            agent = Agent(name, () if name == WILDCARD_AGENT else (name,))
            change = self._change((name,))
            crawlers = Crawlers([], agent, (one, two), change)
            found.setdefault((id(one), id(two), change), crawlers).names.append(name)
        return found.values()

    def _change(self, tokens: Iterable[str]) -> str | None:
        was, is_now = (not side.by_token.keys().isdisjoint(tokens) for side in self.sides)
        return None if was == is_now else "added" if is_now else "removed"

    def _ranked_rules(self, group: MergedGroup) -> Sequence[RankedRule]:
        if id(group) not in self._ranked:
            self._rules_left -= len(group.rules)
            self._ranked[id(group)] = group.ranked() if self._rules_left > 0 else ()
        return self._ranked[id(group)]

    def _compare(self, crawlers: Crawlers) -> Difference | None:
        """Return the difference for some crawlers, without their names."""
        groups = [group or NO_GROUP for group in crawlers.groups]
        old, new = map(self._ranked_rules, groups)
        self._rules_left -= len(old) + len(new)
        if self._rules_left < 0:
            self._is_cut = True
            self.changed.append(crawlers)
            return None
        removed, added = found = rule_changes(old, new, self._steps)
        changes: list[Change] = []
        severity = "low"
        if removed or added:
            self.changed.append(crawlers)
            was, is_now = _extent(old), _extent(new)
            changes += [Change("site", was, is_now)] if was != is_now else []
            severity = "medium" if (was in _IS_OPEN) == (is_now in _IS_OPEN) else "high"
        paces, *others = zip(*(self._stated(number, crawlers) for number in (0, 1)), strict=True)
        if paces[0] != paces[1]:
            changes.append(Change("pace", *(pace and str(pace) for pace in paces)))
        for name, (before, after) in zip(("Content-Signal", "Content-Usage"), others, strict=False):
            changes += _usage_changes(name, before, after)
        changes += _values("License", *others[-1])
        if severity == "low" and any(one.record != "pace" for one in changes):
            severity = "medium"
        if not changes and severity == "low":
            return None
        record = Difference(severity=severity, names=[], group=crawlers.group)
        for group, ranked, change in zip(groups, found, ("removed", "added"), strict=True):
            listed = self._listed(ranked)
            record.left_out += len(ranked) - len(listed)
            for rule in group.listed(listed, ChangedRule, change=change):
                rule.effect = "allows" if rule.allow == (change == "added") else "disallows"
                rule.example = self._example(crawlers, str(rule.normalized))
                rule.normalized = rule.length = UNSET
                record.rules.append(rule)
        record.changes = self._listed(changes)
        record.left_out += len(changes) - len(record.changes)
        return record

    def _listed(self, found: list[T]) -> list[T]:
        """Return the part that a record has room for."""
        listed = found[: max(self._room, 0)]
        self._room -= len(listed)
        self._is_cut |= len(listed) < len(found)
        return listed

    def _stated(self, number: int, crawlers: Crawlers) -> tuple[Any, ...]:
        """Return what a file states to some crawlers: pace, signals, usage, licenses."""
        side, group = self.sides[number], crawlers.groups[number]
        if group is None:
            return None, {}, {}, ()
        tokens = crawlers.agent.tokens
        pace = pace_of(side.robots, tokens)
        if pace is not None:
            pace.request_rates = tuple(sorted(set(pace.request_rates)))
        own, above = (
            RecordValues([record[1:] for record in one.records])
            for one in (group, side.groups.above)
        )
        return (
            pace,
            (own.get(CONTENT_SIGNAL) or above.get(CONTENT_SIGNAL)).statements,
            own.get(CONTENT_USAGE).statements,
            sorted(side.robots.licenses(tokens)),
        )

    def _example(self, crawlers: Crawlers, pattern: str) -> str | None:
        """Return a path whose verdict changes, or None if none of a few does."""
        self._examples_left -= 1
        if self._examples_left >= 0:
            for path in examples(pattern):
                old, new = (crawlers.agent.verdict(side.policy, path) for side in self.sides)
                if old.allowed != new.allowed:
                    return path[:MAX_LENGTH]
        return None


_IS_OPEN = ("all", "part")


def _extent(ranked: Sequence[RankedRule]) -> str:
    """Return how much of a site some rules allow."""
    for number, (_, disallow, _, pattern) in enumerate(ranked):
        if len(pattern.replace("*", "")) <= len("/$") and covers(pattern, "/"):
            has_others = any(rule[1] != disallow for rule in ranked[:number])
            if disallow:
                return "exceptions" if has_others else "none"
            return "part" if has_others else "all"
    return "part" if any(rule[1] for rule in ranked) else "all"


def _file_values(robots: RobotsTxt) -> dict[str, Iterable[str]]:
    return {
        "Sitemap": robots.sitemaps,
        "Host": [robots.host] if robots.host else [],
        "Clean-param": [
            f"{'&'.join(sorted(row.parameters))} {row.path}" for row in robots.clean_params
        ],
        "Noindex": robots.noindex,
    }


def _values(name: str, old: Iterable[str], new: Iterable[str]) -> list[Change]:
    """Return the values of a record that only one file has."""
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    removed = [Change(name, value[:MAX_LENGTH], None) for value in before if value not in after]
    return removed + [
        Change(name, None, value[:MAX_LENGTH]) for value in after if value not in before
    ]


def _usage_changes(
    name: str,
    old: Mapping[tuple[str, int], Mapping[str, Any]],
    new: Mapping[tuple[str, int], Mapping[str, Any]],
) -> Iterator[Change]:
    for path, length in dict.fromkeys([*old, *new]):
        before, after = (_stated_text(each.get((path, length))) for each in (old, new))
        if before != after:
            yield Change(f"{name} {path[:MAX_LENGTH]}" if length else name, before, after)


def _stated_text(stated: Mapping[str, Any] | None) -> str | None:
    return None if stated is None else stated_text(dict(sorted(stated.items())))


def _write_urls(
    urls: Iterator[str], comparison: Comparison, origins: set[str], context: Context
) -> bool:
    """Write the URLs whose verdict differs. Returns whether all are URLs. None is kept."""
    output = context.output
    checked = found = invalid = 0
    crawlers = comparison.changed[:MAX_URL_CRAWLERS]
    if len(comparison.changed) > MAX_URL_CRAWLERS:
        output.note(
            f"the URLs are checked for {MAX_URL_CRAWLERS} of {len(comparison.changed):,} crawlers: "
            "name some with -a"
        )
    for given in urls:
        target = target_of(given, in_file=True)
        if origins and target.origin is not None and target.origin not in origins:
            text = f"{given} is a URL of another site: it is not checked"
            output.note(text, "URLs of other sites")
            continue
        try:
            if not target.is_valid:
                raise ValueError(given)
            for each in crawlers:
                old, new = (
                    each.agent.verdict(side.policy, target.url) for side in comparison.sides
                )
                if old.allowed != new.allowed:
                    found += 1
                    record = DiffUrl(
                        url=target.url,
                        names=each.names[:MAX_SHOWN],
                        names_left_out=len(each.names[MAX_SHOWN:]),
                        old=Answer.of(old),
                        new=Answer.of(new),
                    )
                    output.write(json_line(record) if output.as_json else _url_line(record, output))
            checked += 1
        except ValueError:
            invalid += 1
            output.note(f"{given} is not a URL with a robots.txt", "texts that are no URLs")
    output.flush()
    differ = "1 verdict differs" if found == 1 else f"{found:,} verdicts differ"
    output.note(f"{quantity(checked, 'URL')}: {differ}")
    return not invalid


# Rules


class Steps:
    """The number of comparisons that are left."""

    def __init__(self, number: int = MAX_STEPS) -> None:
        self.left = number

    def use(self, one: str, two: str) -> bool:
        """Count one comparison of two patterns, and return whether there was one left."""
        self.left -= 1 + (len(one) + len(two)) // _BYTES_PER_STEP
        return self.left > 0


def rule_changes(
    old: Sequence[RankedRule], new: Sequence[RankedRule], steps: Steps
) -> tuple[list[RankedRule], list[RankedRule]]:
    """Return the rules whose loss and whose gain changes verdicts. Both lists are ranked."""
    key = itemgetter(0, 1, 3)  # all but the line
    old_keys, new_keys = set(map(key, old)), set(map(key, new))
    removed = [rule for rule in old if key(rule) not in new_keys]
    added = [rule for rule in new if key(rule) not in old_keys]
    return (
        [rule for rule in removed if _has_effect(rule, old, new, added, steps)],
        [rule for rule in added if _has_effect(rule, new, old, removed, steps)],
    )


def _has_effect(
    rule: RankedRule,
    own: Sequence[RankedRule],
    other: Sequence[RankedRule],
    only_other: Sequence[RankedRule],
    steps: Steps,
) -> bool:
    """Return whether a rule of one list decides paths that the other list may decide otherwise."""
    length, disallow, _, pattern = rule
    if pattern == f"{ROBOTS_TXT}$":  # which is always allowed
        return False
    strength = (length, disallow)
    for one in own:
        if one[:2] >= strength:
            break
        if not steps.use(one[3], pattern):
            return True
        if covers(one[3], pattern):
            return False
    # Where this rule decides, no stronger rule of both lists matches. So the other list decides by
    # a stronger rule of its own, or by a weaker one.
    deciding = [one for one in only_other if one[:2] < strength]
    deciding += (one for one in other if one[:2] >= strength)
    for _, other_disallow, _, other_pattern in deciding:
        if not steps.use(other_pattern, pattern):
            return True
        if other_disallow == disallow:
            if covers(other_pattern, pattern):
                return False
        elif may_overlap(other_pattern, pattern):
            return True
    return disallow


def covers(pattern: str, other: str) -> bool:
    """Return whether a pattern matches every path that another pattern matches.

    >>> covers("/a", "/a/*.gif$"), covers("/a$", "/a")
    (True, False)
    """
    if pattern == other:
        return True
    # Most patterns of a file differ before their first star. This check is fast.
    before, star, _ = pattern.partition("*")
    if not other.startswith((before if star else pattern.removesuffix("$"), "*")):
        return False
    if pattern_has_reserved_query(other):
        # It also matches paths with another spelling of its query.
        other = other[: other.find("?") + 1]
    # A star of the other pattern is any text, so a star of this one must match all of it.
    return all(matches(pattern, path) for path in sample_paths(other))


def may_overlap(pattern: str, other: str) -> bool:
    """Return False if no path matches both patterns.

    >>> may_overlap("/a", "/b*"), may_overlap("/*.gif$", "/a")
    (False, True)
    """
    head, other_head = _head(pattern), _head(other)
    if not (head.startswith(other_head) or other_head.startswith(head)):
        return False
    if pattern_has_reserved_query(pattern) or pattern_has_reserved_query(other):
        return True
    for one, two in ((pattern, other), (other, pattern)):
        if "*" not in one and one.endswith("$"):
            return matches(two, one[:-1])
    if pattern.endswith("$") and other.endswith("$"):
        tail, other_tail = (each[:-1].rpartition("*")[2] for each in (pattern, other))
        return tail.endswith(other_tail) or other_tail.endswith(tail)
    return True


def examples(pattern: str) -> Iterator[str]:
    """Yield a few paths that a pattern matches.

    >>> list(examples("/*.gif$"))
    ['/.gif', '/x.gif', '/x/x.gif']
    """
    for fill in _FILLS:
        path = pattern.removesuffix("$").replace("*", fill)
        yield path if path.startswith("/") else f"/{path}"
        if "*" not in pattern:
            if not pattern.endswith("$"):
                yield f"{path}x"
            return


def _head(pattern: str) -> str:
    """Return a text with which every path begins that a pattern matches."""
    if pattern_has_reserved_query(pattern):
        pattern = pattern[: pattern.find("?") + 1]
    return pattern.removesuffix("$").partition("*")[0]


# Texts

_STYLES = {"high": "bold red", "medium": "yellow", "low": "cyan"}
_EXTENTS = {
    "all": "all of the site is allowed",
    "part": "a part of the site is disallowed",
    "exceptions": "the whole site is disallowed, with exceptions",
    "none": "the whole site is disallowed",
}
_STATES = {
    "unavailable": "unavailable, everything is allowed",
    "not-robots-txt": "not a robots.txt, everything is allowed",
    "refused": "refused, everything is allowed",
    "challenge": "a challenge, everything is allowed",
    "disallowed-status": "a status of REP_DISALLOW_STATUSES",
    "unreachable": "unreachable",
    "stale-copy": "unreachable, the last good copy",
}


def _listing(record: Diff) -> Iterator[RenderableType]:
    """Yield the text of a record."""
    yield _source("old", record.old)
    yield _source("new", record.new)
    if record.same is not False:
        is_same = "They have" if record.same else "It is not known whether they have"
        yield Text(f"\n{is_same} the same meaning.", style=STYLES[record.same])
        return
    for each in record.crawlers:
        group = f" (group {each.group})" if each.group else ""
        yield _heading(each.severity, _names(each.names), group)
        rules = [_rule_line(rule) for rule in each.rules[:MAX_SHOWN_RULES]]
        left = len(each.rules[MAX_SHOWN_RULES:]) + each.left_out
        yield from map(indented, rules + [f"and {left:,} more rules"] * bool(left))
        yield from map(indented, shown(list(map(_change_line, each.changes)), MAX_SHOWN))
    if record.file:
        yield _heading("low", "all crawlers")
        yield from map(indented, shown(list(map(_change_line, record.file)), MAX_SHOWN))
    if not record.complete:
        yield "The files are large: differences may be missing, or listed that have no effect."


def _source(name: str, access: Access) -> Text:
    notes = [_STATES[access.state]] if access.state in _STATES else []
    if access.status is not None:
        notes.append(f"status {access.status}")
    at = time_text(access.fetched_at)
    if access.source == "store":
        notes.append(f"in the store since {at}")
    elif access.source == "archive":
        notes.append(f"in the archive, requested at {at}")
    text = Text(f"{name}  ", style="bold").append(printable(access.url), style="not bold")
    return text.append(f"  ({', '.join(notes)})" if notes else "", style="not bold")


def _heading(severity: str, names: str, group: str = "") -> Text:
    text = Text(f"\n{severity:<6}", style=_STYLES[severity])
    return text.append(f"  {names}", style="bold default").append(group, style="not bold default")


def _names(names: list[str], left_out: int = 0) -> str:
    named = ["all other crawlers (*)" if name == "*" else name for name in names]
    text = ", ".join(shown(named, MAX_SHOWN, left_out))
    return text.replace(", and ", " and ")


def _rule_line(rule: ChangedRule) -> Text:
    allows = rule.effect == "allows"
    text = f"{'+' if rule.change == 'added' else '-'} {rule}"
    if rule.example is not None:
        text += f"  → {printable(rule.example, 80)} is {WORDS[allows]}"
    return Text(text, style=STYLES[allows])


def _change_line(change: Change) -> str:
    if change.record == "site":
        return f"now {_EXTENTS[change.new or '']}; before, {_EXTENTS[change.old or '']}"
    if change.old is None or change.new is None:
        return f"{'+' if change.old is None else '-'} {change.record}: {change.old or change.new}"
    return f"{change.record}: {change.new}; before, {change.old}"


def _url_line(record: DiffUrl, output: Output) -> str:
    verdict = output.styled(f"{WORDS[record.new.allowed]:<10}", STYLES[record.new.allowed])
    names = _names(record.names, record.names_left_out)
    was, why = WORDS[record.old.allowed], reason_text(record.new)
    return f"{verdict}  {printable(record.url, 400)}  was {was}, for {names}: {why}\n"
