"""``diff``: what two robots.txt files say differently.

The files are compared as ``show`` shows them. So the order of groups and rules, comments and
spelling make no difference.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from rich.text import Text

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.paths import ROBOTS_TXT
from ..protocol.printable import printable
from .context import Context, agent_option, archive_option, tool
from .crawlers import Agent, agents_of
from .explain import Answer, Rule, reason_text
from .inputs import input_options, urls_from
from .output import ExitCode, exit_code, json_line
from .show import Group, record_of, why_no_rules
from .sources import Access, access_rows, read_policies, target_of
from .texts import STYLES, WORDS, indented, named_values, quantity, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from .output import Output
    from .show import Show
    from .sources import Policy

MAX_LISTED = 1000
"""Rules and other changes of crawlers that a record lists. It counts the rest."""

MAX_EXAMPLES = 500
"""Rules whose effect is looked for."""

MAX_URL_CRAWLERS = 100
"""Crawlers for which URLs are checked."""

MAX_SHOWN, MAX_SHOWN_RULES = 20, 50
"""Names, changes and rules of a difference that are shown as text. JSON has more."""


class ChangedRule(Rule, kw_only=True):
    """A rule that was ``added`` or ``removed``, and a path whose verdict changes with it."""

    change: str
    example: str | None = None


class Change(Struct):
    """What both files state. null: nothing."""

    record: str
    old: str | None
    new: str | None


class Difference(Struct, kw_only=True):
    """The difference for some crawlers. ``left_out`` counts further rules and changes."""

    names: list[str] = []
    rules: list[ChangedRule] = []
    changes: list[Change] = []
    left_out: int = 0


class Diff(Struct, kw_only=True, tag_field="type", tag="diff"):
    """The difference of two files. ``same`` is null if it is not known."""

    version: int = 1
    old: Access
    new: Access
    same: bool | None = None
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
    "Say what two robots.txt files say differently: rules, pace, sitemaps, usage and licenses. "
    "The order of groups and rules, comments and spelling make no difference.",
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
    url_field: str | None,
) -> int:
    """Compare two files."""
    named = agents_of(agents, context) if agents else None
    # A local rule would apply to a site, and not to a file.
    context.scrapy_settings.set("REP_LOCAL_RULES", None, priority="cmdline")
    policies = read_policies([old, new], context)
    record = Diff(old=policies[0].access, new=policies[1].access)
    unknown = [
        each
        for each in (record.old, record.new)
        if each.state in ("unreachable", "disallowed-status")
    ]
    for access in unknown:
        context.output.note(access.problem)
    asked = [] if unknown else _compare(policies, named, record)
    context.output.show(record, _listing)
    code = exit_code([record.same])
    if source is None or unknown:
        return code
    given = urls_from(source, form=from_format, field=url_field)
    is_known = _write_urls(given, policies, asked, context)
    return code if is_known else ExitCode.UNKNOWN


class Crawlers(NamedTuple):
    """Crawlers to which the same groups apply."""

    names: list[str]
    agent: Agent
    """One of them."""
    old: Group
    new: Group


def _compare(
    policies: Sequence[Policy], agents: Sequence[Agent] | None, record: Diff
) -> list[Crawlers]:
    """Put the difference of two files into a record. Return the crawlers whose rules differ."""
    old, new = (record_of(policy, agents) for policy in policies)
    found: dict[bytes, Difference] = {}
    changed = []
    rules: dict[int, _Rules] = {}
    room, examples_left = MAX_LISTED, MAX_EXAMPLES
    is_cut = False
    for crawlers in _crawlers(old, new, agents):
        groups = (crawlers.old, crawlers.new)
        is_cut |= any(each.rules_left_out for each in groups)
        for each in groups:
            if id(each) not in rules:
                rules[id(each)] = _rules_of(each)
        difference, has_rules = _difference(*groups, rules, room)
        if has_rules:
            changed.append(crawlers)
        if not (has_rules or difference.changes or difference.left_out):
            continue
        for rule in difference.rules[:examples_left]:
            rule.example = _example(rule, crawlers.agent, policies)
        examples_left -= len(difference.rules[:examples_left])
        # Crawlers with the same difference share a record.
        key = msgspec.json.encode(difference)
        if key not in found:
            found[key] = difference
            room -= len(difference.rules) + len(difference.changes)
        found[key].names.extend(crawlers.names)
    record.crawlers = list(found.values())
    record.file = [
        *_changes("Sitemap", old.sitemaps, new.sitemaps),
        *_changes("Host", [old.host] if old.host else [], [new.host] if new.host else []),
        *_changes("Clean-param", old.clean_params, new.clean_params),
        *_changes("Noindex", old.noindex, new.noindex),
    ]
    is_same = not (record.crawlers or record.file)
    record.same = None if is_cut and is_same else is_same
    return changed


def _crawlers(old: Show, new: Show, agents: Sequence[Agent] | None) -> Iterable[Crawlers]:
    """Return the crawlers with the groups that apply to them in both files."""
    if agents is not None:
        pairs = zip(agents, old.groups, new.groups, strict=True)
        return [Crawlers([agent.name], agent, *groups) for agent, *groups in pairs]
    sides = [{name: group for group in each.groups for name in group.tokens} for each in (old, new)]
    nothing = Group(tokens=[])
    found: dict[tuple[int, int], Crawlers] = {}
    for name in dict.fromkeys([WILDCARD_AGENT, *sides[0], *sides[1]]):
        agent = Agent(name, () if name == WILDCARD_AGENT else (name,))
        one, two = (side.get(name) or side.get(WILDCARD_AGENT) or nothing for side in sides)
        crawlers = found.setdefault((id(one), id(two)), Crawlers([], agent, one, two))
        crawlers.names.append(name)
    return found.values()


_Rules = dict[tuple[object, ...], Rule]
"""The rules of a group by their meaning."""


def _rules_of(group: Group) -> _Rules:
    return {
        (rule.allow, rule.length, rule.normalized): rule
        for rule in group.rules
        if rule.normalized != f"{ROBOTS_TXT}$"  # which is always allowed
    }


def _difference(
    old: Group, new: Group, rules: Mapping[int, _Rules], room: int
) -> tuple[Difference, bool]:
    """Return what two groups say differently, without names, and whether rules differ.

    At most ``room`` rules and changes are listed. The time grows with the rules of the smaller
    group.
    """
    old_rules, new_rules = rules[id(old)], rules[id(new)]
    changes = []
    if old.pace != new.pace:
        before, after = (str(each.pace) if each.pace else None for each in (old, new))
        changes.append(Change("pace", before, after))
    changes += _changes("Content-Signal", old.content_signal, new.content_signal)
    changes += _changes("Content-Usage", old.content_usage, new.content_usage)
    changes += _changes("License", old.licenses, new.licenses)
    fewer, more = sorted((old_rules, new_rules), key=len)
    count = len(fewer) + len(more) - 2 * sum(map(more.__contains__, fewer))
    only = chain(_only(old_rules, new_rules, "removed"), _only(new_rules, old_rules, "added"))
    listed = list(islice(only, min(count, room)))
    shown_changes = changes[: room - len(listed)]
    left_out = count - len(listed) + len(changes) - len(shown_changes)
    return Difference(rules=listed, changes=shown_changes, left_out=left_out), count > 0


def _only(rules: _Rules, others: _Rules, change: str) -> Iterator[ChangedRule]:
    """Yield the rules that are not among others."""
    return (
        ChangedRule(**asdict(rule), change=change)
        for key, rule in rules.items()
        if key not in others
    )


def _changes(name: str, old: Iterable[str], new: Iterable[str]) -> list[Change]:
    """Return the values of a record that only one file has."""
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    removed = [Change(name, value, None) for value in before if value not in after]
    return removed + [Change(name, None, value) for value in after if value not in before]


def _example(rule: ChangedRule, agent: Agent, policies: Sequence[Policy]) -> str | None:
    """Return a path that a rule matches, if its verdict changes."""
    path = str(rule.normalized).removesuffix("$").replace("*", "")
    path = path if path.startswith("/") else f"/{path}"
    old, new = (agent.verdict(policy, path) for policy in policies)
    return None if old.allowed == new.allowed else path


def _write_urls(
    urls: Iterator[str],
    policies: Sequence[Policy],
    asked: Sequence[Crawlers],
    context: Context,
) -> bool:
    """Write the URLs whose verdict differs. Returns whether all are URLs. None is kept."""
    output = context.output
    checked = found = invalid = 0
    origins = {policy.origin for policy in policies if policy.origin}
    if len(asked) > MAX_URL_CRAWLERS:
        output.note(
            f"the URLs are checked for {MAX_URL_CRAWLERS} of {len(asked):,} crawlers: "
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
            for names, agent, *_ in asked[:MAX_URL_CRAWLERS]:
                old, new = (agent.verdict(policy, target.url) for policy in policies)
                if old.allowed != new.allowed:
                    found += 1
                    record = DiffUrl(
                        url=target.url,
                        names=names[:MAX_SHOWN],
                        names_left_out=len(names[MAX_SHOWN:]),
                        old=Answer.of(old),
                        new=Answer.of(new),
                    )
                    output.write(json_line(record) if output.as_json else _url_line(record, output))
            checked += 1
        except ValueError:
            invalid += 1
            output.note(f"{given} is not a URL with a robots.txt", "texts that are not URLs")
    output.flush()
    differ = "1 verdict differs" if found == 1 else f"{found:,} verdicts differ"
    output.note(f"{quantity(checked, 'URL')}: {differ}")
    return not invalid


# Texts


def _listing(record: Diff) -> Iterator[RenderableType]:
    """Yield the text of a record."""
    for name, access in (("Old", record.old), ("New", record.new)):
        (_, where), *rows = access_rows(access)
        yield named_values([(name, where), *rows])
        if access.state not in ("rules", "stale-copy"):
            yield why_no_rules(access)
    if record.same is not False:
        is_same = "They say" if record.same else "It is not known whether they say"
        yield Text(f"\n{is_same} the same.", style=STYLES[record.same])
        return
    for each in record.crawlers:
        yield Text(f"\n{_names(each.names)}", style="bold")
        rules = [_rule_line(rule) for rule in each.rules[:MAX_SHOWN_RULES]]
        left = len(each.rules[MAX_SHOWN_RULES:]) + each.left_out
        yield from map(indented, rules + [f"and {left:,} more"] * bool(left))
        yield from map(indented, shown(list(map(_change_line, each.changes)), MAX_SHOWN))
    if record.file:
        yield Text("\nall crawlers", style="bold")
        yield from map(indented, shown(list(map(_change_line, record.file)), MAX_SHOWN))


def _names(names: list[str], left_out: int = 0) -> str:
    named = ["all other crawlers (*)" if name == "*" else name for name in names]
    text = ", ".join(shown(named, MAX_SHOWN, left_out))
    return text.replace(", and ", " and ")


def _rule_line(rule: ChangedRule) -> Text:
    allows = rule.allow == (rule.change == "added")
    text = f"{'+' if rule.change == 'added' else '-'} {rule}"
    if rule.example is not None:
        text += f"  → {printable(rule.example, 80)} is {WORDS[allows]}"
    return Text(text, style=STYLES[allows])


def _change_line(change: Change) -> str:
    if change.old is None or change.new is None:
        return f"{'+' if change.old is None else '-'} {change.record}: {change.old or change.new}"
    return f"{change.record}: {change.new}; before, {change.old}"


def _url_line(record: DiffUrl, output: Output) -> str:
    verdict = output.styled(f"{WORDS[record.new.allowed]:<10}", STYLES[record.new.allowed])
    names = _names(record.names, record.names_left_out)
    was, why = WORDS[record.old.allowed], reason_text(record.new)
    return f"{verdict}  {printable(record.url, 400)}  was {was}, for {names}: {why}\n"
