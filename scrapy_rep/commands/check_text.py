"""The texts of ``check``: tables and the explanation of one verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from ..protocol.printable import printable
from ..protocol.verdict import Reason
from .access_text import describe_access
from .check_output import STYLES, WORDS
from .values_text import named_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from ..protocol.verdict import Verdict
    from .agent_option import Agent
    from .verdicts import Answered

MAX_URL = 400
"""Characters of a URL in a table."""

MAX_COLUMNS = 4
"""Crawlers, or URLs, that are columns of a matrix."""

_FIRST_COLUMN, _VERDICT_COLUMN = 15, 13
"""Characters that a column of a matrix needs at least, with the space behind it."""

MAX_OTHER_RULES = 10
"""Other rules that match and are shown. JSON has more."""

_REASONS = {
    "no-rules": "no group of the robots.txt applies to this crawler, or its group has no rules",
    "unavailable": "the robots.txt is unavailable, so that everything is allowed",
    "disallowed-status": "REP_DISALLOW_STATUSES has the status of the robots.txt",
    "unreachable": "the robots.txt is unreachable, so that everything is disallowed",
    "too-complex": "the comparison of the rules with the URL takes too many steps",
    "invalid-host": "the URL has no valid host",
    "invalid-url": "this is no URL",
    "unknown": "its robots.txt was not fetched",
}
_LOST = {
    "shorter": "is shorter",
    "allow-wins": "loses to an allow of the same length",
    "later": "comes later, with the same length",
    "repeated": "says the same",
    "overruled": "does not count here",
}


def word(allowed: bool | None) -> Text:
    """Return the word for an answer, in its color."""
    return Text(WORDS[allowed], style=STYLES[allowed])


def short_reason(verdict: Verdict | None) -> str:
    """Return the reason of a verdict in a few words."""
    if verdict is None:
        return "not known"
    if verdict.rule is None and verdict.reason is Reason.RULES:
        return "no rule matches"
    if verdict.reason is Reason.NO_RULES:
        return verdict.detail or "no group applies, or it has no rules"
    return str(verdict)


def table(answers: Sequence[Answered], agents: Sequence[Agent]) -> Table:
    """Return a table of URLs for one crawler."""
    made = _table()
    made.add_column("Verdict", no_wrap=True)
    made.add_column("URL", ratio=3, overflow="fold")
    made.add_column(f"Why, for {printable(agents[0].name, 40)}", ratio=2, overflow="fold")
    for target, _, (verdict,) in answers:
        allowed = None if verdict is None else verdict.allowed
        why = short_reason(verdict)
        made.add_row(word(allowed), Text(printable(target.url, MAX_URL)), Text(why))
    return made


def matrix(answers: Sequence[Answered], agents: Sequence[Agent], width: int) -> Table:
    """Return a table of URLs and crawlers. Either is in columns, if these fit into the width."""
    columns = min(MAX_COLUMNS, (width - _FIRST_COLUMN) // _VERDICT_COLUMN)
    made = _table()
    urls = [Text(printable(answered.target.url, MAX_URL)) for answered in answers]
    names = [Text(printable(agent.name, 60)) for agent in agents]
    cells = [
        [word(None if verdict is None else verdict.allowed) for verdict in answered.verdicts]
        for answered in answers
    ]
    if len(answers) == 1:
        made.add_column("Crawler", overflow="fold")
        made.add_column("Verdict", no_wrap=True)
        made.add_column(urls[0], overflow="fold", ratio=1)
        for name, cell, verdict in zip(names, cells[0], answers[0].verdicts, strict=True):
            made.add_row(name, cell, Text(short_reason(verdict)))
    elif len(agents) <= columns:
        made.add_column("URL", overflow="fold", ratio=1)
        for name in names:
            made.add_column(name, overflow="fold", min_width=10)
        for url, row in zip(urls, cells, strict=True):
            made.add_row(url, *row)
    elif len(answers) <= columns:
        made.add_column("Crawler", overflow="fold")
        for url in urls:
            made.add_column(url, overflow="fold", min_width=10)
        for name, *column in zip(names, *cells, strict=True):
            made.add_row(name, *column)
    else:
        made.add_column("Crawler", overflow="fold")
        made.add_column("Verdict", no_wrap=True)
        made.add_column("URL", overflow="fold", ratio=1)
        for url, row in zip(urls, cells, strict=True):
            for name, cell in zip(names, row, strict=True):
                made.add_row(name, cell, url)
            made.add_section()
    return made


def explanation(record: dict[str, Any]) -> Iterator[RenderableType]:
    """Yield the text of a record of ``check`` with all its reasons."""
    yield _headline(record)
    if record["context"]:
        yield Text()
        yield from context_lines(record)
    yield Text()
    yield named_values(_rows(record))


def _headline(record: dict[str, Any]) -> Text:
    text = word(record["allowed"])
    text.stylize("bold")
    return text.append(f"  {printable(record['url'], MAX_URL)}", style="not bold default")


def context_lines(record: dict[str, Any]) -> Iterator[Text]:
    """Yield the lines of a file around the rule that decides."""
    rule = record["rule"]
    width = len(str(record["context"][-1]["line"]))
    before = None
    for line in record["context"]:
        if before is not None and line["line"] > before + 1:
            yield Text(f"  {'⋮':>{width}}", style="dim")
        before = line["line"]
        is_rule = line["line"] == rule["line"]
        text = Text(f"{'>' if is_rule else ' '} {before:>{width}} ", style="dim")
        style = f"bold {STYLES[rule['allow']]}" if is_rule else "not dim"
        yield text.append(printable(line["text"], 160), style=style)


def _rows(record: dict[str, Any]) -> Iterator[tuple[str, Text]]:
    yield "Why", Text(_why(record))
    yield "Crawler", Text(_crawler(record))
    others = record["other_rules"]
    for number, rule in enumerate(others[:MAX_OTHER_RULES]):
        text = f"{_rule(rule)} {_LOST[rule['why']]} ({_octets(rule['length'])})"
        yield "" if number else "Also matches", Text(text)
    left = len(others[MAX_OTHER_RULES:]) + record["other_rules_left_out"]
    if left:
        yield "", Text(f"and {left:,} more")
    if record["path"] is not None:
        yield "Compared", Text(_compared(record))
    if record["pace"]:
        yield "Pace", Text(pace_text(record["pace"]))
    if record["usage"]:
        yield "Usage", Text(usage_text(record["usage"]))
    for license_url in record["licenses"][:3]:
        yield "License", Text(printable(license_url))
    if record["robots_txt"]:
        yield from describe_access(record["robots_txt"])


def _why(record: dict[str, Any]) -> str:
    rule, reason = record["rule"], record["reason"]
    detail = printable(record["detail"]) if record["detail"] else ""
    if reason == "local-rule":
        return f"a rule of REP_LOCAL_RULES decides: {detail}"
    if rule is not None:
        matches = "is the only rule that matches"
        if record["other_rules"]:
            matches = "is the longest rule that matches"
        if rule.get("is_directory_rule"):
            matches += ", as the rule for its directory"
        return f"{_rule(rule)} {matches} ({_octets(rule['length'])})"
    if reason == "rules":
        return "no rule of the group matches"
    if reason == "no-rules" and detail:
        return detail
    text = _REASONS[reason]
    return f"{text}: {detail}" if detail else text


def _crawler(record: dict[str, Any]) -> str:
    name, group = printable(record["agent"]), record["group"]
    if record["robots_txt"] is None:
        return name
    if group is None:
        return f"{name}: no group applies"
    if group == "*":
        return f"{name}, by the group for all other crawlers (*)"
    return name if name.lower() == group else f"{name}, by the group for {printable(group)}"


def _compared(record: dict[str, Any]) -> str:
    path, rule = printable(record["path"], 160), record["rule"]
    if rule is None or "normalized" not in rule:
        return path
    return f"{path} with {printable(rule['normalized'], 160)}"


def _rule(rule: dict[str, Any]) -> str:
    field = "Allow" if rule["allow"] else "Disallow"
    return f"line {rule['line']}, {field}: {printable(rule['pattern'])}"


def _octets(length: int) -> str:
    return f"{length} octet{'s' * (length != 1)}"


def pace_text(pace: dict[str, Any]) -> str:
    """Return the pace of a record as a phrase."""
    parts = []
    if pace["crawl_delay"] is not None:
        parts.append(f"Crawl-delay: {pace['crawl_delay']:g}")
    parts += [f"Request-rate: {rate}" for rate in pace["request_rates"][:3]]
    if pace["visit_time"]:
        parts.append(f"Visit-time: {pace['visit_time']}")
    return ", ".join(parts)


def usage_text(usage: dict[str, Any]) -> str:
    """Return the usage of a record as a phrase."""
    evaluated = usage["evaluated"]
    parts = [f"{name}: {'granted' if value else 'refused'}" for name, value in evaluated.items()]
    for field, name in (("content_signal", "Content-Signal"), ("content_usage", "Content-Usage")):
        if usage[field]:
            stated = ", ".join(f"{key}={_stated(value)}" for key, value in usage[field].items())
            parts.append(f"{name}: {printable(stated)}")
    return "; ".join(parts)


def _stated(value: bool | str) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"


def _table() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
