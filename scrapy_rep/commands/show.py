"""``show``: the groups of a robots.txt as a crawl understands them: merged, their rules ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import UNSET, Struct, UnsetType
from rich.text import Text

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.printable import printable
from ..protocol.records import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    CRAWL_DELAY,
    LICENSE,
    REQUEST_RATE,
    VISIT_TIME,
    Records,
    RecordValues,
)
from ..protocol.usage import POLICY_TOKENS
from .context import Context, agent_option, archive_option, tool
from .crawlers import agents_of
from .explain import REASONS, Groups, Pace, Rule, by_group, stated_text
from .output import ExitCode
from .sources import Access, access_rows, read_policies
from .texts import STYLES, listed, named_values, shown, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .crawlers import Agent
    from .sources import Policy
    from .texts import Row

MAX_RULES = 100_000
"""Rules that are listed at most. In a file of the maximum size, the rules of each group may apply
to thousands of tokens in as many combinations."""

MAX_SHOWN, MAX_VALUES, MAX_TOKENS = 200, 20, 50
"""Groups and rules, values, and product tokens that are shown as text. JSON has more."""


class Group(Struct, kw_only=True):
    """What applies to the crawlers with some tokens. With ``agent``, to that crawler."""

    agent: str | UnsetType = UNSET
    tokens: list[str]
    rules: list[Rule] = []
    rules_left_out: int = 0
    pace: Pace | None = None
    content_signal: list[str] = []
    content_usage: list[str] = []
    licenses: tuple[str, ...] = ()


class Show(Struct, kw_only=True, tag_field="type", tag="show"):
    """A robots.txt. ``content_signal`` and ``licenses`` stand above its groups."""

    version: int = 1
    origin: str | None
    robots_txt: Access
    groups: list[Group] = []
    content_signal: list[str] = []
    licenses: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    host: str | None = None
    clean_params: tuple[str, ...] = ()
    noindex: tuple[str, ...] = ()


@tool(
    "Show a robots.txt as a crawl understands it: groups that name the same crawler merged, the "
    "rules in the order in which they win, delays, sitemaps, usage and licenses.",
    ("show example.com", "the robots.txt of a site"),
    ("show robots.txt -a mybot", "what a file says to one crawler"),
    ("show - --json < robots.txt", "a file from standard input, as JSON"),
    ("show archive:example.com@2026-03-01 --archive crawl.warc.gz", "what a site said on a day"),
    records=(Show,),
)
@click.argument("robots", metavar="ROBOTS")
@agent_option
@archive_option
def show_tool(context: Context, robots: str, agents: Sequence[str]) -> int:
    """Show a robots.txt."""
    named = agents_of(agents, context) if agents else None
    (policy,) = read_policies([robots], context)
    record = record_of(policy, named)
    context.output.show(record, _listing)
    return ExitCode.UNKNOWN if policy.access.is_unreachable else ExitCode.OK


def record_of(policy: Policy, agents: Sequence[Agent] | None) -> Show:
    """Return the record of a robots.txt. ``agents``: show only the groups of these crawlers."""
    robots = policy.robots
    record = Show(origin=policy.origin, robots_txt=policy.access)
    if robots is None:
        return record
    groups, records = Groups(policy.text), Records(policy.text, strict=False)
    if agents is None:
        record.groups = _merged(groups, records)
    else:
        for agent in agents:
            token = agent.group(robots)
            group = Group(tokens=[]) if token is None else _stated(records, token)
            group.agent = agent.name
            if token is not None:
                _add_rules(group, groups.rules(token), MAX_RULES)
            record.groups.append(group)
    record.content_signal = _statements_of(records.file, CONTENT_SIGNAL)
    record.licenses = records.file.get(LICENSE)
    record.sitemaps = robots.sitemaps
    record.host = robots.host
    record.clean_params = tuple(
        f"{'&'.join(row.parameters)} {row.path}" for row in robots.clean_params
    )
    record.noindex = robots.noindex
    return record


def _merged(groups: Groups, records: Records) -> list[Group]:
    """Return the groups of a file. Crawlers for which the same lines hold are together."""
    found: dict[tuple[object, bytes], Group] = {}
    left = MAX_RULES
    for token, spans in groups.spans.items():
        name = token.decode("ascii")
        group = _stated(records, name)
        group.tokens = []
        same = found.setdefault((tuple(spans), msgspec.json.encode(group)), group)
        same.tokens.append(name)
        if same is group:
            _add_rules(group, groups.rules(name), left)
            left -= len(group.rules)
    return list(found.values())


def _add_rules(group: Group, rules: list[Rule], most: int) -> None:
    group.rules, group.rules_left_out = rules[:most], len(rules[most:])


def _stated(records: Records, token: str) -> Group:
    """Return the group of a product token, without its rules."""
    values = records.of(token.encode())
    signals = _statements_of(values, CONTENT_SIGNAL)
    return Group(
        tokens=[token],
        pace=Pace.of(values.get(CRAWL_DELAY), values.get(REQUEST_RATE), values.get(VISIT_TIME)),
        content_signal=signals or _statements_of(records.file, CONTENT_SIGNAL),
        content_usage=_statements_of(values, CONTENT_USAGE),
        licenses=values.get(LICENSE) or records.file.get(LICENSE),
    )


def _statements_of(values: RecordValues, kind: Any) -> list[str]:
    return [
        f"{path if length else ''} {stated_text(dict(sorted(stated.items())))}".strip()
        for (path, length), stated in values.get(kind).statements.items()
    ]


def _listing(record: Show) -> Iterator[RenderableType]:
    """Yield the text of a record."""
    yield named_values(access_rows(record.robots_txt))
    yield ""
    if record.robots_txt.state not in ("rules", "stale-copy"):
        yield Text(why_no_rules(record.robots_txt), style="yellow")
        return
    if not record.groups:
        yield "No group: everything is allowed."
        above = _statements(record)
        if above:
            yield named_values(above)
    for group in record.groups[:MAX_SHOWN]:
        yield from _group(group)
    if len(record.groups) > MAX_SHOWN:
        yield f"and {len(record.groups) - MAX_SHOWN:,} more groups"
        yield ""
    rows = [
        *listed("Sitemap", record.sitemaps, MAX_VALUES),
        *listed("Host", [record.host] if record.host else [], 1),
        *listed("Clean-param", record.clean_params, MAX_VALUES),
        *listed("Noindex", record.noindex, MAX_VALUES),
    ]
    if rows:
        yield named_values(rows)


def why_no_rules(access: Access) -> str:
    """Return a sentence about a robots.txt without rules."""
    text = REASONS[access.state]
    failure = f" ({printable(access.failure)})" if access.failure else ""
    return f"{text[0].upper()}{text[1:]}{failure}."


def _group(group: Any) -> Iterator[RenderableType]:
    yield Text(_heading(group), style="bold")
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
    elif group.tokens:
        yield "  no rules: everything is allowed"
    left = len(group.rules[MAX_SHOWN:]) + group.rules_left_out
    if left:
        yield f"  and {left:,} more rules"
    rows: list[Row] = [("Pace", str(group.pace))] if group.pace else []
    rows += listed("Content-Usage", group.content_usage, MAX_VALUES) + _statements(group)
    if rows:
        yield named_values(rows)
    yield ""


def _statements(stated: Group | Show) -> list[Row]:
    return [
        *listed("Content-Signal", stated.content_signal, MAX_VALUES),
        *listed("License", stated.licenses, MAX_VALUES),
    ]


def _heading(group: Group) -> str:
    if group.agent:
        token = group.tokens[0] if group.tokens else None
        allowed = "" if token else ", everything is allowed"
        return by_group(group.agent, token) + allowed
    if group.tokens == [WILDCARD_AGENT]:
        return "all other crawlers (*)"
    uses = [POLICY_TOKENS[token] for token in group.tokens if token in POLICY_TOKENS]
    about = f" (Disallow refuses {', '.join(uses)}, Allow grants it)" if uses else ""
    return ", ".join(shown(group.tokens, MAX_TOKENS)) + about
