"""The text of ``test``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from ..protocol.printable import printable
from .check_output import STYLES, WORDS
from .check_text import context_lines, usage_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

_REASONS = {
    "no-rules": "no group applies, or it has no rules",
    "unavailable": "the robots.txt is unavailable, so that everything is allowed",
    "disallowed-status": "REP_DISALLOW_STATUSES has the status of the robots.txt",
    "too-complex": "the comparison takes too many steps",
    "unknown": "its robots.txt is not known",
}


def failure(record: dict[str, Any]) -> Iterator[RenderableType]:
    """Yield the text of an expectation that does not hold."""
    is_known = record["holds"] is not None
    text = Text("failed" if is_known else "unknown", style=STYLES[False if is_known else None])
    expectation = printable(record["expectation"], 400)
    yield text.append(f"  line {record['line']}: {expectation}", style="bold default")
    yield _row(_answer(record))
    if record["use"] is None:
        if record["context"]:
            yield from map(_row, context_lines(record))
        return
    for line in record["statements"]:
        yield _row(Text(f"  {line['line']} {printable(line['text'], 160)}", style="bold"))


def summary(counts: dict[bool | None, int]) -> Text:
    """Return the last line of the text."""
    total = sum(counts.values())
    if counts[True] == total:
        word = "expectation holds" if total == 1 else "expectations hold"
        return Text(f"{total:,} {word}.", style=STYLES[True])
    text = f"{total:,} expectation{'s' * (total != 1)}: {counts[True]:,} hold"
    text += f", {counts[False]:,} failed" if counts[False] else ""
    text += f", {counts[None]:,} not known" if counts[None] else ""
    return Text(f"{text}.")


def _answer(record: dict[str, Any]) -> Text:
    access = record["robots_txt"]
    if record["holds"] is None:
        failed = access["failure"] if access else None
        text = f"the robots.txt is unreachable: {failed}" if failed else _REASONS["unknown"]
        return Text(printable(text))
    if record["use"] is not None:
        if not record["allowed"]:
            return Text(f"the URL is disallowed: {_why(record)}; {_usage(record)}")
        return Text(_usage(record))
    return Text(f"{WORDS[record['allowed']]}: {_why(record)}")


def _usage(record: dict[str, Any]) -> str:
    if not record["usage"]:
        return "nothing is stated about the use of its content"
    return usage_text(record["usage"])


def _why(record: dict[str, Any]) -> str:
    rule = record["rule"]
    if rule is not None:
        field = "Allow" if rule["allow"] else "Disallow"
        return f"line {rule['line']}, {field}: {printable(rule['pattern'])}, for {record['group']}"
    if record["reason"] == "rules":
        return f"no rule matches, for {record['group']}"
    if record["reason"] == "no-rules" and record["detail"]:
        return printable(record["detail"])
    reason = _REASONS.get(record["reason"], record["reason"])
    return f"{reason}: {printable(record['detail'])}" if record["detail"] else reason


def _row(text: Text) -> RenderableType:
    return Padding(text, (0, 0, 0, 8), expand=False)
