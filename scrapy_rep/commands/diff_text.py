"""The text of ``diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from ..protocol.printable import printable
from .check_output import STYLES, WORDS
from .check_text import pace_text, short_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from .flips import Flip

MAX_NAMES = 20
"""Crawlers with the same differences that are shown. JSON has more."""

MAX_RULES = 50
"""Rules of a difference that are shown. JSON has more."""

MAX_VALUES = 20
"""Values of a record that are shown. JSON has more."""

_SEVERITIES = {"high": "bold red", "medium": "yellow", "low": "cyan"}
_EXTENTS = {
    "all": "all of the site is allowed",
    "part": "a part of the site is disallowed",
    "exceptions": "the whole site is disallowed, with exceptions",
    "none": "the whole site is disallowed",
}
_STATES = {
    "unavailable": "unavailable, everything is allowed",
    "disallowed-status": "a status of REP_DISALLOW_STATUSES",
    "unreachable": "unreachable",
    "stale-copy": "unreachable, the last good copy",
}


def listing(record: dict[str, Any]) -> Iterator[RenderableType]:
    """Yield the text of a record of ``diff``."""
    for name in ("old", "new"):
        yield _source(name, record[name])
    yield Text()
    if record["same"]:
        yield Text("They have the same meaning.", style="green")
        return
    if record["same"] is None:
        yield Text("It is not known whether they have the same meaning.", style="yellow")
        return
    for number, crawlers in enumerate(record["crawlers"]):
        if number:
            yield Text()
        yield from _crawlers(crawlers)
    if record["crawlers_left_out"]:
        yield Text(f"and {record['crawlers_left_out']:,} more crawlers")
    if record["file"]:
        if record["crawlers"]:
            yield Text()
        yield _heading("low", "all crawlers")
        for change in record["file"]:
            yield from _values(change["record"], change)
    if not record["complete"]:
        yield Text("The files are large: some rules may be listed that make no difference.")


def flip_line(flip: Flip) -> Text:
    """Return the text of a URL whose verdict differs."""
    old, new = WORDS[flip.old.allowed], flip.new.allowed
    text = Text(f"{WORDS[new]:<10}", style=STYLES[new])
    names = _names(flip.crawlers.names, 0)
    text.append(f"  {printable(flip.url, 400)}", style="default")
    return text.append(f"  was {old}, for {names}: {short_reason(flip.new)}", style="default")


def _source(name: str, access: dict[str, Any]) -> Text:
    text = Text(f"{name}  ", style="bold").append(printable(access["url"]), style="not bold")
    notes = [_STATES[access["state"]]] if access["state"] in _STATES else []
    if access["status"] is not None:
        notes.append(f"status {access['status']}")
    at = (access["fetched_at"] or "").replace("T", " ").replace("Z", " UTC")
    if access["source"] == "store":
        notes.append(f"in the store since {at}")
    elif access["source"] == "archive":
        notes.append(f"in the archive, requested at {at}")
    return text.append(f"  ({', '.join(notes)})" if notes else "", style="not bold")


def _heading(severity: str, names: str, group: str | None = None) -> Text:
    text = Text(f"{severity:<6}", style=_SEVERITIES[severity])
    text.append(f"  {names}", style="bold default")
    return text.append(f" (group {group})" if group else "", style="not bold default")


def _names(names: list[str], left_out: int) -> str:
    shown = [
        "all other crawlers (*)" if name == "*" else printable(name, 60)
        for name in names[:MAX_NAMES]
    ]
    left = len(names) - len(shown) + left_out
    return ", ".join(shown) + (f" and {left:,} more" if left else "")


def _crawlers(record: dict[str, Any]) -> Iterator[RenderableType]:
    names = _names(record["names"], record["names_left_out"])
    yield _heading(record["severity"], names, record["group"])
    site = record["site"]
    if site is not None and site["old"] != site["new"]:
        yield _row(f"now {_EXTENTS[site['new']]}; before, {_EXTENTS[site['old']]}")
    for rule in record["rules"][:MAX_RULES]:
        yield _rule(rule)
    left = len(record["rules"][MAX_RULES:]) + record["rules_left_out"]
    if left:
        yield _row(f"and {left:,} more rules")
    if record["pace"] is not None:
        old, new = (
            pace_text(pace) if pace else "not stated"
            for pace in (record["pace"]["old"], record["pace"]["new"])
        )
        yield _row(f"pace: {new}; before, {old}")
    for usage in record["usage"][:MAX_VALUES]:
        path = f" {printable(usage['path'])}" if usage["path"] else ""
        old, new = _stated(usage["old"]), _stated(usage["new"])
        yield _row(f"{usage['record']}{path}: {new}; before, {old}")
    if record["licenses"]:
        yield from _values("License", record["licenses"])


def _rule(rule: dict[str, Any]) -> RenderableType:
    sign = "+" if rule["change"] == "added" else "-"
    field = "Allow" if rule["allow"] else "Disallow"
    text = f"{sign} line {rule['line']}, {field}: {printable(rule['pattern'])}"
    allows = rule["effect"] == "allows"
    if rule["example"] is not None:
        text += f"  → {printable(rule['example'], 80)} is {WORDS[allows]}"
    return _row(Text(text, style=STYLES[allows]))


def _values(name: str, values: dict[str, Any]) -> Iterator[RenderableType]:
    rows = [
        f"{sign} {name}: {printable(value)}"
        for sign, key in (("-", "removed"), ("+", "added"))
        for value in values[key]
    ]
    yield from map(_row, rows[:MAX_VALUES])
    left = len(rows[MAX_VALUES:]) + values["left_out"]
    if left:
        yield _row(f"and {left:,} more: {name}")


def _stated(stated: dict[str, Any] | None) -> str:
    if not stated:
        return "not stated"
    parts = (
        f"{name}={value if isinstance(value, str) else 'yes' if value else 'no'}"
        for name, value in sorted(stated.items())
    )
    return printable(", ".join(parts))


def _row(text: str | Text) -> RenderableType:
    shown = Text(text) if isinstance(text, str) else text
    return Padding(shown, (0, 0, 0, 8), expand=False)
