"""``show``: the groups of a robots.txt as a crawl understands them: merged, their rules ranked.

``diff`` compares two files in this form. Order, comments and spelling make no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import click
from msgspec import Struct
from rich.text import Text

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.lines import line_numbers
from ..protocol.matcher import rank
from ..protocol.parser import GroupText, groups
from ..protocol.paths import ROBOTS_TXT
from ..protocol.printable import printable
from ..protocol.records import CONTENT_SIGNAL, CONTENT_USAGE, Records, RecordValues
from ..protocol.usage import POLICY_PREFIX, POLICY_TOKENS
from ..protocol.verdict import Reason
from ..reports.answers import REASONS
from .context import Context, ExitCode, exit_code, tool
from .explain import Rule, lines_of_group, lines_text, stated_text
from .policy import Access, Policy, access_rows
from .sources import read_policies
from .texts import STYLES, Renderables, indented, listed, named_values, shown, table

MAX_RULES = 100_000
"""Rules that are listed at most. In a file of the maximum size, the rules of each group may apply
to thousands of tokens in as many combinations."""

MAX_SHOWN, MAX_VALUES, MAX_TOKENS = 200, 20, 50
"""Groups and rules, values, and product tokens that are shown as text. JSON has more."""

MAX_LISTED = 1000
"""Statements that the record of a difference lists. It counts the rest."""

MAX_CHANGES, MAX_NAMES = 50, 20
"""Statements and names of a difference that are shown as text. JSON has more."""

CLOSED = (Reason.UNREACHABLE, Reason.DISALLOWED_STATUS)
"""The states without rules in which everything is disallowed."""

OTHERS = "all other crawlers (*)"


class RankedRule(Rule, kw_only=True):
    """A rule. ``length``: the bytes that precedence compares; ``normalized``: the pattern in the
    form that is compared."""

    normalized: str
    length: int


class Group(Struct, kw_only=True):
    """What applies to the crawlers with some tokens. ``lines``: the user-agent lines above it.
    ``statements``: the values of other records, by their names. ``Pace`` has those of Crawl-delay,
    Request-rate and Visit-time."""

    tokens: list[str]
    lines: list[int] = []
    rules: list[RankedRule] = []
    rules_left_out: int = 0
    statements: dict[str, list[str]] = {}


class Show(Struct, kw_only=True, tag_field="type", tag="show"):
    """A robots.txt. ``statements`` stand outside of its groups, or above them if it has none."""

    version: int = 1
    origin: str | None
    robots_txt: Access
    groups: list[Group] = []
    statements: dict[str, list[str]] = {}


@tool(
    "Show a robots.txt as a crawl understands it: groups that name the same crawler merged, the "
    "rules in the order in which they win, delays, sitemaps, usage and licenses.",
    ("show example.com", "the robots.txt of a site"),
    ("show - --json < robots.txt", "a file from standard input, as JSON"),
    unknown="the robots.txt is unreachable",
    records=(Show,),
    reads_sites=True,
)
@click.argument("robots", metavar="ROBOTS")
def show_tool(context: Context, robots: str) -> int:
    (policy,) = read_policies([robots], context)
    context.show(record_of(policy), _listing)
    return ExitCode.UNKNOWN if policy.access.is_unreachable else ExitCode.OK


def record_of(policy: Policy) -> Show:
    robots = policy.robots
    record = Show(origin=policy.origin, robots_txt=policy.access)
    if robots is None:
        return record
    records = Records(policy.text, strict=False)
    record.groups = _merged(policy.text, records)
    params = [f"{'&'.join(row.parameters)} {row.path}" for row in robots.clean_params]
    record.statements = _stated(
        {} if record.groups else _usage(records.file, records.file),
        {"License": robots.licenses, "Sitemap": robots.sitemaps},
        {"Host": [robots.host or ""], "Clean-param": params},
        {"Noindex": robots.records("noindex")},
    )
    return record


def _merged(text: bytes, records: Records) -> list[Group]:
    """Return the groups of a file. Crawlers for which the same lines hold are together."""
    found: dict[object, Group] = {}
    line_of = line_numbers(text)
    left = MAX_RULES
    for token, spans in groups(text, strict=False).items():
        values = records.of(token)
        is_policy = token.startswith(POLICY_PREFIX.encode())  # which has nothing but rules
        pace = {"Pace": [values.pace]}
        statements = {} if is_policy else _stated(pace, _usage(values, records.file))
        key = tuple(spans), repr(statements)
        group = found.get(key)
        if group is None:
            lines = lines_of_group(text, token.decode())
            group = found[key] = Group(tokens=[], lines=lines, statements=statements)
            written = GroupText(text, spans, strict=False)
            ranked = rank(written.rules(), strict=False)
            group.rules_left_out = len(ranked[left:])
            for length, _, position, pattern in ranked[:left]:
                rule = written.rule_at(position, line_of(position))
                group.rules.append(RankedRule(**rule._asdict(), normalized=pattern, length=-length))
            left -= len(group.rules)
        group.tokens.append(token.decode("ascii"))
    return list(found.values())


def _stated(*parts: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the values that are not empty, by the names of their records."""
    found = {name: list(filter(None, values)) for part in parts for name, values in part.items()}
    return {name: values for name, values in found.items() if values}


def _usage(values: RecordValues, above: RecordValues) -> dict[str, Iterable[str]]:
    """Return what is stated about use in a group, or else above the groups."""
    signals = _statements_of(values, CONTENT_SIGNAL) or _statements_of(above, CONTENT_SIGNAL)
    return {"Content-Usage": _statements_of(values, CONTENT_USAGE), "Content-Signal": signals}


def _statements_of(values: RecordValues, kind: Any) -> list[str]:
    return [
        f"{path if length else ''} {stated_text(dict(sorted(stated.items())))}".strip()
        for (path, length), stated in values.get(kind).statements.items()
    ]


def _listing(record: Show) -> Renderables:
    yield named_values(access_rows(record.robots_txt))
    yield ""
    if record.robots_txt.state not in ("rules", "stale-copy"):
        yield Text(why_no_rules(record.robots_txt), style="yellow")
        return
    if not record.groups:
        yield "No group: everything is allowed."
    for group in record.groups[:MAX_SHOWN]:
        yield from _group(group)
    if len(record.groups) > MAX_SHOWN:
        yield f"and {len(record.groups) - MAX_SHOWN:,} more groups"
        yield ""
    yield from _statements(record)


def why_no_rules(access: Access) -> str:
    failure = f" ({printable(access.failure)})" if access.failure else ""
    effect = f"everything is {'disallowed' if access.state in CLOSED else 'allowed'}"
    text = REASONS[access.state]
    return f"{text[0].upper()}{text[1:]}{failure}: {effect}."


def _group(group: Any) -> Renderables:
    uses = [POLICY_TOKENS[token] for token in group.tokens if token in POLICY_TOKENS]
    about = f" (Disallow refuses {', '.join(uses)}, Allow grants it)" if uses else ""
    names = [OTHERS] if group.tokens == [WILDCARD_AGENT] else shown(group.tokens, MAX_TOKENS)
    yield Text(", ".join(names) + about, style="bold")
    if lines := lines_text(group.lines):
        yield f"Group: {lines}"
    if group.rules:
        heads = ("Line", "Rule", "Pattern", "Bytes")
        made = table(*heads, right=(0, 3), pad_edge=True, header_style="dim")
        for rule in group.rules[:MAX_SHOWN]:
            field = Text("Allow" if rule.allow else "Disallow", style=STYLES[rule.allow])
            pattern = printable(rule.pattern)
            if rule.normalized != rule.pattern:
                pattern += f"  = {printable(rule.normalized)}"
            made.add_row(str(rule.line), field, Text(pattern), str(rule.length))
        yield made
    else:
        yield "  no rules: everything is allowed"
    left = len(group.rules[MAX_SHOWN:]) + group.rules_left_out
    if left:
        yield f"  and {left:,} more rules"
    yield from _statements(group)
    yield ""


def _statements(stated: Group | Show) -> Renderables:
    rows = (listed(name, values, MAX_VALUES) for name, values in stated.statements.items())
    if stated.statements:
        yield named_values(chain.from_iterable(rows))


class Difference(Struct, kw_only=True):
    """What only OLD or NEW states to some crawlers; without ``names``, what stands outside of
    groups. ``left_out`` counts further statements."""

    names: list[str]
    removed: list[str]
    added: list[str]
    left_out: int


class Diff(Struct, kw_only=True, tag_field="type", tag="diff"):
    """The difference of two files. ``same`` is null if it is not known."""

    version: int = 1
    old: Access
    new: Access
    same: bool | None = None
    differences: list[Difference] = []


@tool(
    "Say what two robots.txt files say differently: rules, pace, sitemaps, usage and licenses. "
    "The order of groups and rules, comments and spelling make no difference.",
    ("diff old.txt new.txt", "compare two files"),
    ("diff example.com robots.txt", "compare a site with a file that will replace its robots.txt"),
    found="the files say different things",
    unknown="a site is unreachable",
    records=(Diff,),
    reads_sites=True,
)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
def diff_tool(context: Context, old: str, new: str) -> int:
    policies = read_policies([old, new], context)
    record = Diff(old=policies[0].access, new=policies[1].access)
    unknown = [each for each in (record.old, record.new) if each.state in CLOSED]
    for access in unknown:
        context.note(access.problem)
    if not unknown:
        _compare(policies, record)
    context.show(record, _differences)
    return exit_code([record.same])


def _compare(policies: Sequence[Policy], record: Diff) -> None:
    old, new = map(record_of, policies)
    parts: list[Group | Show] = [*old.groups, *new.groups, old, new]
    stated = {id(part): _meanings(part) for part in parts}  # many crawlers may share a large group
    room = MAX_LISTED
    for names, *both in (*_crawlers(old, new), ([], old, new)):
        one, two = (stated.get(id(part), {}) for part in both)
        removed = [text for key, text in one.items() if key not in two]
        added = [text for key, text in two.items() if key not in one]
        if removed or added:
            left_out = max(len(removed) + len(added) - room, 0)
            removed, added = removed[:room], added[: max(room - len(removed), 0)]
            room -= len(removed) + len(added)
            found = Difference(names=names, removed=removed, added=added, left_out=left_out)
            record.differences.append(found)
    is_cut = any(group.rules_left_out for group in (*old.groups, *new.groups))
    record.same = None if is_cut and not record.differences else not record.differences


def _crawlers(old: Show, new: Show) -> Iterable[tuple[list[str], Group, Group]]:
    """Return names of crawlers, with the groups that apply to them in both files."""
    sides = [{name: group for group in each.groups for name in group.tokens} for each in (old, new)]
    nothing = Group(tokens=[])
    found: dict[tuple[int, int], tuple[list[str], Group, Group]] = {}
    for name in dict.fromkeys([WILDCARD_AGENT, *sides[0], *sides[1]]):
        # A policy token never falls back to "*".
        others = name if name.startswith(POLICY_PREFIX) else WILDCARD_AGENT
        one, two = (side.get(name) or side.get(others) or nothing for side in sides)
        found.setdefault((id(one), id(two)), ([], one, two))[0].append(name)
    return found.values()


def _meanings(part: Group | Show) -> Mapping[object, str]:
    """Return what a group states, or a file outside of its groups, as text by its meaning."""
    found: dict[object, str] = {
        (rule.allow, rule.length, rule.normalized): str(rule)
        for rule in (part.rules if isinstance(part, Group) else ())
        if rule.normalized != f"{ROBOTS_TXT}$"  # which is always allowed
    }
    texts = (f"{name}: {value}" for name, each in part.statements.items() for value in each)
    return found | {text: text for text in texts}


def _differences(record: Diff) -> Renderables:
    for name, access in (("Old", record.old), ("New", record.new)):
        (_, where), *rows = access_rows(access)
        yield named_values([(name, where), *rows])
        if access.state not in ("rules", "stale-copy"):
            yield why_no_rules(access)
    if record.same is not False:
        is_same = "They say" if record.same else "It is not known whether they say"
        yield Text(f"\n{is_same} the same.", style=STYLES[record.same])
        return
    styles = {"-": STYLES[False], "+": STYLES[True]}
    for each in record.differences:
        named = [OTHERS if name == WILDCARD_AGENT else name for name in each.names]
        names = ", ".join(shown(named or ["all crawlers"], MAX_NAMES)).replace(", and ", " and ")
        yield Text(f"\n{names}", style="bold")
        lines = [f"- {text}" for text in each.removed] + [f"+ {text}" for text in each.added]
        for line in shown(lines, MAX_CHANGES, each.left_out):
            yield indented(Text(line, style=styles.get(line[0], "")))
