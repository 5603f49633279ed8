"""``show``: the groups of a robots.txt as a crawl understands them: merged, their rules ranked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import click
from msgspec import Struct
from rich.text import Text

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.lines import line_numbers
from ..protocol.matcher import rank
from ..protocol.parser import GroupText, groups
from ..protocol.printable import printable
from ..protocol.records import CONTENT_SIGNAL, CONTENT_USAGE, Records, RecordValues
from ..protocol.usage import POLICY_PREFIX, POLICY_TOKENS
from ..protocol.verdict import Reason
from ..reports.answers import REASONS
from .context import Context, ExitCode, tool
from .explain import Rule, stated_text
from .policy import Access, Policy, access_rows
from .sources import read_policies
from .texts import STYLES, Renderables, listed, named_values, shown, table

MAX_RULES = 100_000
"""Rules that are listed at most. In a file of the maximum size, the rules of each group may apply
to thousands of tokens in as many combinations."""

MAX_SHOWN, MAX_VALUES, MAX_TOKENS = 200, 20, 50
"""Groups and rules, values, and product tokens that are shown as text. JSON has more."""

CLOSED = (Reason.UNREACHABLE, Reason.DISALLOWED_STATUS)
"""The states without rules in which everything is disallowed."""

OTHERS = "all other crawlers (*)"
"""The name of the group for ``*``."""


class RankedRule(Rule, kw_only=True):
    """A rule. ``length``: the bytes that precedence compares; ``normalized``: the pattern in the
    form that is compared."""

    normalized: str
    length: int


class Group(Struct, kw_only=True):
    """What applies to the crawlers with some tokens. ``statements``: the values of other records,
    by their names. ``Pace`` has those of Crawl-delay, Request-rate and Visit-time."""

    tokens: list[str]
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
)
@click.argument("robots", metavar="ROBOTS")
def show_tool(context: Context, robots: str) -> int:
    (policy,) = read_policies([robots], context)
    context.show(record_of(policy), _listing)
    return ExitCode.UNKNOWN if policy.access.is_unreachable else ExitCode.OK


def record_of(policy: Policy) -> Show:
    """Return the record of a robots.txt."""
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
            group = found[key] = Group(tokens=[], statements=statements)
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
    return {
        "Content-Usage": _statements_of(values, CONTENT_USAGE),
        "Content-Signal": _statements_of(values, CONTENT_SIGNAL)
        or _statements_of(above, CONTENT_SIGNAL),
    }


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
    """Return a sentence about a robots.txt without rules."""
    failure = f" ({printable(access.failure)})" if access.failure else ""
    effect = f"everything is {'disallowed' if access.state in CLOSED else 'allowed'}"
    text = REASONS[access.state]
    return f"{text[0].upper()}{text[1:]}{failure}: {effect}."


def _group(group: Any) -> Renderables:
    uses = [POLICY_TOKENS[token] for token in group.tokens if token in POLICY_TOKENS]
    about = f" (Disallow refuses {', '.join(uses)}, Allow grants it)" if uses else ""
    names = [OTHERS] if group.tokens == [WILDCARD_AGENT] else shown(group.tokens, MAX_TOKENS)
    yield Text(", ".join(names) + about, style="bold")
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
