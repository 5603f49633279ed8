"""``diff``: what two robots.txt files say differently.

The files are compared as ``show`` shows them. So the order of groups and rules, comments and
spelling make no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import click
from msgspec import Struct
from rich.text import Text

from ..protocol.agents import WILDCARD_AGENT
from ..protocol.paths import ROBOTS_TXT
from ..protocol.usage import POLICY_PREFIX
from .context import Context, exit_code, tool
from .policy import Access, Policy, access_rows
from .show import CLOSED, OTHERS, Group, Show, record_of, why_no_rules
from .sources import read_policies
from .texts import STYLES, Renderables, indented, named_values, shown

MAX_LISTED = 1000
"""Statements that a record lists. It counts the rest."""

MAX_SHOWN, MAX_NAMES = 50, 20
"""Statements and names of a difference that are shown as text. JSON has more."""


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


_Statements: TypeAlias = "Mapping[object, str]"
"""Statements as text, by their meaning."""


@tool(
    "Say what two robots.txt files say differently: rules, pace, sitemaps, usage and licenses. "
    "The order of groups and rules, comments and spelling make no difference.",
    ("diff old.txt new.txt", "compare two files"),
    ("diff example.com robots.txt", "compare a site with a file that will replace its robots.txt"),
    found="the files say different things",
    unknown="a site is unreachable",
    records=(Diff,),
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
    context.show(record, _listing)
    return exit_code([record.same])


def _compare(policies: Sequence[Policy], record: Diff) -> None:
    """Put the difference of two files into a record."""
    old, new = map(record_of, policies)
    pairs = [*_crawlers(old, new), ([], old, new)]
    # Many crawlers may share a large group, which is read once.
    parts: dict[int, Any] = {id(part): part for _, *both in pairs for part in both}
    stated = {key: _stated(part) for key, part in parts.items()}
    room = MAX_LISTED
    for names, *both in pairs:
        one, two = (stated[id(part)] for part in both)
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


def _stated(part: Group | Show) -> _Statements:
    """Return what a group states, or what a file states outside of its groups."""
    found: dict[object, str] = {
        (rule.allow, rule.length, rule.normalized): str(rule)
        for rule in (part.rules if isinstance(part, Group) else ())
        if rule.normalized != f"{ROBOTS_TXT}$"  # which is always allowed
    }
    texts = (f"{name}: {value}" for name, each in part.statements.items() for value in each)
    return found | {text: text for text in texts}


def _listing(record: Diff) -> Renderables:
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
        for line in shown(lines, MAX_SHOWN, each.left_out):
            yield indented(Text(line, style=styles.get(line[0], "")))
