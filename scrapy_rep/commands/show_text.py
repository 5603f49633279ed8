"""The text of ``show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from ..protocol.printable import printable
from .access_text import describe_access
from .check_output import STYLES
from .check_text import pace_text
from .values_text import named_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

MAX_GROUPS = 200
"""Groups that are shown. JSON has all of them."""

MAX_RULES = 200
"""Rules of a group that are shown. JSON has more."""

MAX_VALUES = 20
"""Sitemaps and other values that are shown. JSON has all of them."""

MAX_TOKENS = 50
"""Product tokens of a group that are shown. JSON has all of them."""

_STATES = {
    "unavailable": "The robots.txt is unavailable: everything is allowed.",
    "disallowed-status": "REP_DISALLOW_STATUSES has this status: everything is disallowed.",
    "unreachable": "The robots.txt is unreachable: everything is disallowed.",
}


def listing(record: dict[str, Any]) -> Iterator[RenderableType]:
    """Yield the text of a record of ``show``."""
    access = record["robots_txt"]
    yield named_values(describe_access(access))
    yield Text()
    if access["state"] in _STATES:
        yield Text(_STATES[access["state"]], style="yellow")
        if access["failure"]:
            yield Text(printable(access["failure"]))
        return
    if not record["groups"]:
        yield Text("No group: everything is allowed.")
        for name, field in (("Content-Signal", "content_signal"), ("License", "licenses")):
            if record[field]:
                yield named_values(_values(name, record[field]))
    for group in record["groups"][:MAX_GROUPS]:
        yield from _group(group)
    if len(record["groups"]) > MAX_GROUPS:
        yield Text(f"and {len(record['groups']) - MAX_GROUPS:,} more groups")
        yield Text()
    rows = [
        *_values("Sitemap", record["sitemaps"]),
        *_values("Host", [record["host"]] if record["host"] else []),
        *_values(
            "Clean-param",
            [f"{'&'.join(row['parameters'])} {row['path']}" for row in record["clean_params"]],
        ),
        *_values("Noindex", record["noindex"]),
    ]
    if rows:
        yield named_values(rows)


def _group(group: dict[str, Any]) -> Iterator[RenderableType]:
    yield Text(_heading(group), style="bold")
    if group["rules"]:
        yield _rules(group["rules"][:MAX_RULES])
    elif group["tokens"]:
        yield Text("  no rules: everything is allowed")
    left = len(group["rules"][MAX_RULES:]) + group["rules_left_out"]
    if left:
        yield Text(f"  and {left:,} more rules")
    rows = [("Pace", Text(pace_text(group["pace"])))] if group["pace"] else []
    rows += _values("Content-Signal", group["content_signal"])
    rows += _values("Content-Usage", group["content_usage"])
    rows += _values("License", group["licenses"])
    if rows:
        yield named_values(rows)
    yield Text()


def _heading(group: dict[str, Any]) -> str:
    tokens = group["tokens"]
    names = ", ".join(map(printable, tokens[:MAX_TOKENS]))
    if len(tokens) > MAX_TOKENS:
        names += f" and {len(tokens) - MAX_TOKENS:,} more"
    if tokens == ["*"]:
        names = "all other crawlers (*)"
    if "agent" not in group:
        return names
    agent = printable(group["agent"])
    if not tokens:
        return f"{agent}: no group applies, everything is allowed"
    return agent if agent.lower() == names else f"{agent}, by the group for {names}"


def _rules(rules: Sequence[dict[str, Any]]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, header_style="dim")
    made.add_column("Line", justify="right")
    made.add_column("Rule", no_wrap=True)
    made.add_column("Pattern", overflow="fold")
    made.add_column("Octets", justify="right")
    for rule in rules:
        field = Text("Allow" if rule["allow"] else "Disallow", style=STYLES[rule["allow"]])
        pattern = printable(rule["pattern"])
        if rule["normalized"] != rule["pattern"]:
            pattern += f"  = {printable(rule['normalized'])}"
        made.add_row(str(rule["line"]), field, Text(pattern), str(rule["length"]))
    return made


def _values(name: str, values: Sequence[str]) -> list[tuple[str, Text]]:
    rows = [
        ("" if number else name, Text(printable(value)))
        for number, value in enumerate(values[:MAX_VALUES])
    ]
    if len(values) > MAX_VALUES:
        rows.append(("", Text(f"and {len(values) - MAX_VALUES:,} more")))
    return rows
