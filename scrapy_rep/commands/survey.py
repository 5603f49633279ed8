"""``survey``: the state of robots.txt over many sites."""

from __future__ import annotations

import argparse
import json
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..reports.survey import VERSION
from .exits import CommandError, ExitCode
from .survey_comparison import differences
from .survey_inputs import Inputs
from .survey_workers import default_processes, survey_of

if TYPE_CHECKING:
    from .context import Context

DESCRIPTION = (
    "Count what the robots.txt files of many sites have: statuses, sizes, rules, agents, delays, "
    "sitemaps, findings of lint, AI agents and usage preferences."
)
EXAMPLES = (
    ("survey robots/", "all files below a folder; its subfolders are counted apart, too"),
    ("survey robots.tar.xz --json > 2026.json", "a tar file, as JSON"),
    ("survey sqlite:///store.sqlite", "the store of a crawl"),
    ("survey robots.tar.xz --compare 2025.json", "what has changed since another survey"),
    ("survey robots.tar.xz --html survey.html", "a page with charts, too"),
)

MAX_OTHER = 64 << 20
"""Octets of the other survey of a comparison that are read."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument(
        "input",
        nargs="+",
        metavar="DIR|TAR|STORE|ARCHIVE",
        help="a folder, a tar file ('-': standard input), the URL of a store, or a WARC file",
    )
    parser.add_argument(
        "--depth",
        type=_number(0),
        default=1,
        metavar="N",
        help="folder names that make a stratum; 0: none; default: 1",
    )
    parser.add_argument("--compare", metavar="FILE", help="another survey, as --json wrote it")
    parser.add_argument("--html", metavar="FILE", help="write a page with charts, too")
    parser.add_argument(
        "--processes",
        type=_number(1),
        metavar="N",
        help="processes that count; default: one for each core",
    )


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    other = _read_survey(arguments.compare) if arguments.compare else None
    if arguments.html:
        _check_writable(arguments.html)
    inputs = Inputs(arguments.input, arguments.depth, context)
    with context.output.progress("files") as done:
        survey, is_complete = survey_of(
            inputs.samples(), arguments.processes or default_processes(), done
        )
    record = {
        "type": "survey",
        "version": VERSION,
        "made_at": _now(),
        "complete": is_complete and not inputs.problems,
        "problems": inputs.problems,
        **survey.as_json(),
    }
    if other is not None:
        record["differences"] = differences(record["total"], other["total"])
    if context.output.as_json:
        context.output.record(record)
    else:
        from .survey_text import survey_text

        context.output.print(*survey_text(record))
    if arguments.html:
        _write_page(arguments.html, record, context)
    if not is_complete:
        context.output.note("interrupted: this is what was counted until then")
        return ExitCode.INTERRUPTED
    return ExitCode.UNKNOWN if inputs.problems else ExitCode.OK


def _number(least: int) -> Any:
    def number(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and least <= int(text[:6]) <= 1000):
            raise argparse.ArgumentTypeError(f"it must be a number from {least} to 1,000")
        return int(text[:6])

    return number


def _now() -> str:
    return datetime.fromtimestamp(time.time(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _read_survey(name: str) -> dict[str, Any]:
    """Read the JSON form of a survey. Raises CommandError."""
    try:
        with Path(name).open("rb") as file:
            text = file.read(MAX_OTHER)
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror or error}") from None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        raise CommandError(f"{name} is not the JSON of a survey") from None
    if not isinstance(record, dict) or record.get("type") != "survey":
        raise CommandError(f"{name} is not the JSON of a survey")
    if record.get("version") != VERSION:
        raise CommandError(f"{name} is a survey of another version than {VERSION}")
    if not isinstance(record.get("total"), dict):
        raise CommandError(f"{name} is not the JSON of a survey")
    return record


def _check_writable(name: str) -> None:
    """Raise CommandError if a file cannot be written, before the work begins."""
    try:
        with Path(name).open("ab"):
            pass
    except OSError as error:
        raise CommandError(f"cannot write {name}: {error.strerror or error}") from None


def _write_page(name: str, record: dict[str, Any], context: Context) -> None:
    from ..reports.survey_html import render

    try:
        Path(name).write_text(render(record), "utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {name}: {error.strerror or error}") from None
    context.output.note(f"the page is {name}")
