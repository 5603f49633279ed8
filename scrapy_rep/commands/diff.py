"""``diff``: what two robots.txt files say differently.

The files are compared as ``show`` shows them. So the order of groups and rules, comments and
spelling make no difference.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from rich.text import Text

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.paths import ROBOTS_TXT
from ..protocol.printable import printable
from ..protocol.verdict import Rule
from .context import Context, tool
from .output import exit_code
from .show import Group, record_of, why_no_rules
from .sources import Access, access_rows, read_policies
from .texts import STYLES, indented, named_values, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias

    from rich.console import RenderableType

    from .show import Show
    from .sources import Policy

MAX_LISTED = 1000
"""Changes that a record lists. It counts the rest."""

MAX_SHOWN, MAX_NAMES = 50, 20
"""Changes and names of a difference that are shown as text. JSON has more."""


class Change(Struct, frozen=True):
    """A rule, or another statement, that was ``added`` or ``removed``. Only rules have a line."""

    change: str
    record: str
    value: str
    line: int | None = None


class Difference(Struct, kw_only=True):
    """The difference for some crawlers; without ``names``, of the rest of the files. ``left_out``
    counts further changes."""

    names: list[str]
    changes: tuple[Change, ...]
    left_out: int


class Diff(Struct, kw_only=True, tag_field="type", tag="diff"):
    """The difference of two files. ``same`` is null if it is not known."""

    version: int = 1
    old: Access
    new: Access
    same: bool | None = None
    differences: list[Difference] = []


_Statements: TypeAlias = "dict[tuple[object, ...], tuple[str, str, int | None]]"
"""Records, their values and lines, by their meaning."""


@tool(
    "Say what two robots.txt files say differently: rules, pace, sitemaps, usage and licenses. "
    "The order of groups and rules, comments and spelling make no difference.",
    ("diff old.txt new.txt", "compare two files"),
    ("diff example.com robots.txt", "compare a site with a file that will replace its robots.txt"),
    records=(Diff,),
)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
def diff_tool(context: Context, old: str, new: str) -> int:
    """Compare two files."""
    policies = read_policies([old, new], context)
    record = Diff(old=policies[0].access, new=policies[1].access)
    unknown = [
        each
        for each in (record.old, record.new)
        if each.state in ("unreachable", "disallowed-status")
    ]
    for access in unknown:
        context.output.note(access.problem)
    if not unknown:
        _compare(policies, record)
    context.output.show(record, _listing)
    return exit_code([record.same])


def _compare(policies: Sequence[Policy], record: Diff) -> None:
    """Put the difference of two files into a record."""
    old, new = map(record_of, policies)
    pairs = [*_crawlers(old, new), ([], old, new)]
    # Many crawlers may share a large group, which is read once.
    parts: dict[int, Any] = {id(each): each for _, *both in pairs for each in both}
    stated = {key: _stated(each) for key, each in parts.items()}
    found: dict[tuple[object, ...], Difference] = {}
    room = MAX_LISTED
    for names, *both in pairs:
        one, two = (stated[id(each)] for each in both)
        fewer, more = sorted((one, two), key=len)
        count = len(one) + len(two) - 2 * sum(map(more.__contains__, fewer))
        if not count:
            continue
        only = chain(_only(one, two, "removed"), _only(two, one, "added"))
        changes = tuple(islice(only, min(count, room)))
        left_out = count - len(changes)
        # Crawlers with the same difference share a record.
        key = (bool(names), changes, left_out)
        if key not in found:
            found[key] = Difference(names=[], changes=changes, left_out=left_out)
            room -= len(changes)
        found[key].names += names
    record.differences = list(found.values())
    is_cut = any(group.rules_left_out for group in (*old.groups, *new.groups))
    record.same = None if is_cut and not found else not found


def _crawlers(old: Show, new: Show) -> Iterable[tuple[list[str], Group, Group]]:
    """Return names of crawlers, with the groups that apply to them in both files."""
    sides = [{name: group for group in each.groups for name in group.tokens} for each in (old, new)]
    nothing = Group(tokens=[])
    found: dict[tuple[int, int], tuple[list[str], Group, Group]] = {}
    for name in dict.fromkeys([WILDCARD_AGENT, *sides[0], *sides[1]]):
        one, two = (side.get(name) or side.get(WILDCARD_AGENT) or nothing for side in sides)
        found.setdefault((id(one), id(two)), ([], one, two))[0].append(name)
    return found.values()


def _stated(part: Group | Show) -> _Statements:
    """Return what a group states, or what a file states outside of its groups."""
    if isinstance(part, Group):
        found: _Statements = {
            (rule.allow, rule.length, rule.normalized): (
                "Allow" if rule.allow else "Disallow",
                rule.pattern,
                rule.line,
            )
            for rule in part.rules
            if rule.normalized != f"{ROBOTS_TXT}$"  # which is always allowed
        }
        values: dict[str, Iterable[str]] = {
            "Pace": [part.pace] if part.pace else [],
            "Content-Signal": part.content_signal,
            "Content-Usage": part.content_usage,
            "License": part.licenses,
        }
    else:
        found = {}
        values = {
            "Sitemap": part.sitemaps,
            "Host": [part.host] if part.host else [],
            "Clean-param": part.clean_params,
            "Noindex": part.noindex,
        }
    pairs = ((name, value) for name, each in values.items() for value in each)
    return found | {pair: (*pair, None) for pair in pairs}


def _only(one: _Statements, other: _Statements, change: str) -> Iterator[Change]:
    """Yield what only one of two groups states."""
    return (Change(change, *stated) for key, stated in one.items() if key not in other)


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
    for each in record.differences:
        named = ["all other crawlers (*)" if name == "*" else name for name in each.names]
        names = ", ".join(shown(named or ["all crawlers"], MAX_NAMES)).replace(", and ", " and ")
        yield Text(f"\n{names}", style="bold")
        yield from map(indented, map(_line, each.changes[:MAX_SHOWN]))
        left = len(each.changes[MAX_SHOWN:]) + each.left_out
        if left:
            yield indented(f"and {left:,} more")


def _line(change: Change) -> Text:
    sign = "+" if change.change == "added" else "-"
    if change.line is None:
        return Text(f"{sign} {change.record}: {printable(change.value)}")
    allow = change.record == "Allow"
    style = STYLES[allow == (sign == "+")]
    return Text(f"{sign} {Rule(allow, change.value, change.line)}", style=style)
