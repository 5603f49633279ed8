"""``show``: the groups of a robots.txt as a crawl understands them: merged, their rules ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from msgspec import UNSET, Struct, UnsetType
from rich.text import Text

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.matcher import rank
from ..protocol.parser import GROUP_FIELDS, RULE_FIELDS, records_of_groups
from ..protocol.printable import printable
from ..protocol.records import CONTENT_SIGNAL, CONTENT_USAGE, LICENSE
from ..protocol.usage import POLICY_TOKENS
from ..protocol.verdict import Rule as ProtocolRule
from .context import Context, agent_option, archive_option, tool
from .crawlers import agents_of
from .explain import MAX_LENGTH, REASONS, Pace, Rule, by_group, line_text, pace_of
from .output import ExitCode
from .sources import Access, access_rows, read_policies
from .texts import STYLES, listed, named_values, shown, table

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from rich.console import RenderableType

    from ..protocol.matcher import RankedRule
    from ..protocol.parser import Record
    from ..protocol.robotstxt import RobotsTxt
    from .crawlers import Agent
    from .sources import Policy
    from .texts import Row

T = TypeVar("T")

MAX_RULES = 100_000
"""Rules that are listed at most. In a file of the maximum size, the rules of each group may apply
to thousands of tokens in as many combinations."""

MAX_SHOWN, MAX_VALUES, MAX_TOKENS = 200, 20, 50
"""Groups and rules, values, and product tokens that are shown as text. JSON has more."""


class Group(Struct, kw_only=True):
    """What applies to the crawlers with some tokens. With ``agent``, to that crawler."""

    agent: str | UnsetType = UNSET
    tokens: tuple[str, ...]
    rules: list[Rule]
    rules_left_out: int
    pace: Pace | None
    content_signal: list[str]
    content_usage: list[str]
    licenses: list[str]


class Show(Struct, kw_only=True, tag_field="type", tag="show"):
    """A robots.txt. ``content_signal`` and ``licenses`` stand above its groups."""

    version: int = 1
    origin: str | None
    robots_txt: Access
    groups: list[Group] = []
    content_signal: list[str] = []
    licenses: list[str] = []
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
    """Return the record of a robots.txt."""
    robots = policy.robots
    record = Show(origin=policy.origin, robots_txt=policy.access)
    if robots is not None:
        merged = GroupList.of(policy.text)
        record.groups = list(merged.records(robots, agents))
        record.content_signal = merged.above.values(CONTENT_SIGNAL.field)
        record.licenses = merged.above.values(LICENSE.field)
        record.sitemaps = tuple(robots.sitemaps)
        record.host = robots.host
        record.clean_params = tuple(
            f"{'&'.join(row.parameters)} {row.path}" for row in robots.clean_params
        )
        record.noindex = tuple(robots.noindex)
    return record


class MergedGroup(NamedTuple):
    """All groups that apply to the same crawlers (RFC 9309 §2.2.1)."""

    tokens: tuple[str, ...] = ()
    rules: tuple[Record, ...] = ()
    records: tuple[Record, ...] = ()
    """The other records for these crawlers."""

    def values(self, field: bytes) -> list[str]:
        """Return the values of a record, cut."""
        return [line_text(record.value) for record in self.records if record.field == field]

    def ranked(self) -> list[RankedRule]:
        """Return the rules in their order of precedence, with the number of their lines."""
        rules = ((field == b"allow", value, line) for line, field, value in self.rules)
        return rank(rules, strict=False)

    def listed(
        self, ranked: Iterable[RankedRule], of: Callable[..., T], **values: Any
    ) -> Iterator[T]:
        """Yield a record of each of these ranked rules, made by ``of`` with more ``values``."""
        written = {record.line: record.value for record in self.rules}
        for length, disallow, line, pattern in ranked:
            rule = ProtocolRule.of(written[line], line, allow=not disallow)
            yield of(**rule._asdict(), normalized=pattern[:MAX_LENGTH], length=-length, **values)


class GroupList(NamedTuple):
    """The groups of a file."""

    groups: list[MergedGroup]
    """In the order of the file. Tokens for which the same lines hold are together."""
    above: MergedGroup
    """The records above any user-agent line."""

    @classmethod
    def of(cls, text: bytes) -> GroupList:
        """Read the lines of a file, each of which begins with a LF."""
        rules = _runs(text, RULE_FIELDS, RULE_FIELDS)
        others = _runs(text, GROUP_FIELDS, {*RULE_FIELDS, *GROUP_FIELDS})
        parts: dict[bytes, tuple[dict[int, None], dict[int, None]]] = {}
        for kind, runs in enumerate((rules, others)):
            for number, (tokens, found) in enumerate(runs):
                for token in tokens or ():
                    numbers = parts.setdefault(token, ({}, {}))[kind]
                    if found or kind == 0:
                        numbers[number] = None
        names: dict[tuple[tuple[int, ...], ...], list[str]] = {}
        for token, lists in parts.items():
            names.setdefault(tuple(map(tuple, lists)), []).append(token.decode("ascii"))
        merged = [
            MergedGroup(
                tuple(same),
                tuple(record for number in of_rules for record in rules[number][1]),
                tuple(record for number in of_others for record in others[number][1]),
            )
            for (of_rules, of_others), same in names.items()
        ]
        above = [record for tokens, found in others if tokens is None for record in found]
        return cls(merged, MergedGroup(records=tuple(above)))

    @property
    def by_token(self) -> dict[str, MergedGroup]:
        """The groups by each token that they name."""
        return {token: group for group in self.groups for token in group.tokens}

    def records(self, robots: RobotsTxt, agents: Sequence[Agent] | None) -> Iterator[Group]:
        """Yield a record for each group, or for the group of each crawler."""
        left = MAX_RULES
        named: list[tuple[str | UnsetType, MergedGroup]] = [(UNSET, group) for group in self.groups]
        if agents is not None:
            by_token, named = self.by_token, []
            for agent in agents:
                token = agent.group(robots)
                group = MergedGroup() if token is None else by_token[token]
                tokens = () if token is None else (token,)
                named.append((agent.name, group._replace(tokens=tokens)))
        for name, group in named:
            ranked = group.ranked()
            own = () if group.tokens == (WILDCARD_AGENT,) else group.tokens[:1]
            signals, licenses = CONTENT_SIGNAL.field, LICENSE.field
            yield Group(
                agent=name,
                tokens=group.tokens,
                rules=list(group.listed(ranked[:left], Rule)),
                rules_left_out=len(ranked[left:]),
                pace=pace_of(robots, own) if group.tokens else None,
                content_signal=group.values(signals) or self.above.values(signals),
                content_usage=group.values(CONTENT_USAGE.field),
                licenses=group.values(licenses) or self.above.values(licenses),
            )
            left -= len(ranked[:left])


def _runs(
    text: bytes, fields: Container[bytes], ends: Container[bytes]
) -> list[tuple[list[bytes] | None, list[Record]]]:
    """Return the tokens of each run of user-agent lines, and the records with a value below it."""
    runs: list[tuple[list[bytes] | None, list[Record]]] = []
    for record, tokens in records_of_groups(text, strict=False, ends=ends):
        if not runs or runs[-1][0] is not tokens:
            runs.append((tokens, []))
        if record.field in fields and (record.value or fields is not RULE_FIELDS):
            runs[-1][1].append(record)
    return runs


def _listing(record: Show) -> Iterator[RenderableType]:
    """Yield the text of a record."""
    access = record.robots_txt
    yield named_values(access_rows(access))
    yield ""
    if access.state not in ("rules", "stale-copy"):
        text = REASONS[access.state]
        yield Text(f"{text[0].upper()}{text[1:]}.", style="yellow")
        if access.failure:
            yield Text(printable(access.failure))
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
    if group.tokens == ("*",):
        return "all other crawlers (*)"
    uses = [POLICY_TOKENS[token] for token in group.tokens if token in POLICY_TOKENS]
    about = f" (Disallow refuses {', '.join(uses)}, Allow grants it)" if uses else ""
    return ", ".join(shown(group.tokens, MAX_TOKENS)) + about
