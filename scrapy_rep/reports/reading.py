"""Reads JSON reports and part files, and merges them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .codec import RecordError, from_json, iso, to_json
from .merging import merge
from .model import VERSION, Report
from .part_format import PART, parse_part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

REPORT = "report"
"""The value of ``type`` in a JSON report."""


class ReportError(ValueError):
    """A file is no report that can be used. The message names the file."""


def read_reports(
    paths: Sequence[str | Path], note: Callable[[str], object] = lambda _: None
) -> Report:
    """Return the report of one or more files, merged.

    Each file is a part file or a JSON report. ``note`` gets a sentence for each file that is
    damaged, and for each that is not used because another file has the same run. Raises
    :class:`ReportError`.
    """
    if not paths:
        raise ReportError("there is no file to read")
    return merge_reports([(path, read_report(path)) for path in paths], note)


def merge_reports(
    found: Sequence[tuple[str | Path, Report]], note: Callable[[str], object]
) -> Report:
    """Return one report of all that was found in files. It changes these reports.

    ``note`` is that of :func:`read_reports`. Raises :class:`ReportError` for files that have only
    some of their runs in common.
    """
    for name, report in found:
        for run in report.runs:
            if run.damage is not None:
                note(f"{name} is damaged: {run.damage}. The rest of it is used")
    # Reports of several runs come before the parts of these runs, and the latest part of a run
    # before the others.
    found = sorted(found, key=lambda one: (-len(one[1].runs), -_written_at(one[1])))
    used: list[Report] = []
    known: set[str] = set()
    for name, report in found:
        runs = {run.id for run in report.runs}
        if runs <= known:
            note(f"{name} is not used: another file has the same run")
        elif runs & known:
            raise ReportError(f"{name} has some, but not all runs of another file: leave one out")
        else:
            known |= runs
            used.append(report)
    # In the order of time, so that the last state of a robots.txt is the latest.
    first, *others = sorted(used, key=_written_at)
    for other in others:
        merge(first, other)
    return first


def read_report(path: str | Path) -> Report:
    """Return the report that one file has. Raises :class:`ReportError`."""
    try:
        octets = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = error.strerror if isinstance(error, OSError) else error
        raise ReportError(f"cannot read {path}: {problem or error}") from None
    try:
        return _parse(octets)
    except RecordError as error:
        raise ReportError(f"{path} is no report of a crawl: {error}") from None


def document(report: Report, now: float | None = None) -> dict[str, Any]:
    """Return the JSON form of a report. ``schemas/report.schema.json`` describes it."""
    generated_at = iso(time.time() if now is None else now)
    head = {"type": REPORT, "version": VERSION, "generated_at": generated_at}
    return head | to_json(report)


def _parse(octets: bytes) -> Report:
    first, _, rest = octets.partition(b"\n")
    found = _json(first)
    if not (isinstance(found, dict) and found.get("type") == PART):
        found = _json(octets)
    if not isinstance(found, dict) or found.get("type") not in (REPORT, PART):
        raise RecordError("it is neither a JSON report nor a part file")
    if found.get("version") != VERSION:
        version = str(found.get("version"))[:20]
        raise RecordError(f"its version is {version}, and this is a reader of version {VERSION}")
    if found["type"] == PART:
        return parse_part(found, rest)
    report = from_json(Report, found)
    if not report.runs:
        raise RecordError("it has no run")
    return report


def _json(octets: bytes) -> object:
    try:
        return json.loads(octets)
    except (ValueError, RecursionError):
        return None


def _written_at(report: Report) -> float:
    return max(run.written_at for run in report.runs)
