"""The table of the origins of a report, with the details of each, as HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..protocol.lint import Severity
from .elements import Html, code, h, shown
from .html_details import Details, state_text
from .quantities import ABSENT, count, moment, octets

if TYPE_CHECKING:
    from ..protocol.lint import Finding
    from .elements import Child
    from .model import OriginReport, Report, Version

MAX_ORIGINS = 10_000
"""The rows of the table. The rest of a report is summed up below it."""

MAX_DETAILS = 3_000_000
"""Octets of the details of all origins. A browser reads about 10 MB in a second, and 10,000 rows of
the table have about 4 MB."""

COLUMNS = (
    "Origin",
    "Status",
    "Checked",
    "Size",
    "Findings",
    "Allowed",
    "Dropped",
    "Delayed",
)


@dataclass(slots=True)
class Table:
    """The rows of the table, and what is left out of it."""

    rows: list[Html] = field(default_factory=list)
    origins_left_out: list[OriginReport] = field(default_factory=list)
    details_left_out: int = 0
    """Origins with a row, but without details."""


def table_of(report: Report) -> Table:
    """Return the rows of the origins, those with problems first."""
    origins = sorted(report.origins, key=_order)
    table = Table(origins_left_out=origins[MAX_ORIGINS:])
    details = Details(report, len(COLUMNS))
    room = MAX_DETAILS
    for origin in origins[:MAX_ORIGINS]:
        found = details.of(origin) if room else None
        if found is not None and len(found) <= room:
            room -= len(found)
        else:
            found, room = None, 0
            table.details_left_out += 1
        table.rows.append(h("tbody", _row(origin, details), found, data_state=origin.state))
    return table


def _order(origin: OriginReport) -> tuple[bool, bool, int, str]:
    counts = origin.counts
    is_problem = bool(counts.sent_disallowed or counts.final_url_disallowed)
    return (
        not is_problem,
        origin.state != "unreachable",
        -(counts.sent + counts.dropped),
        origin.origin,
    )


def _row(origin: OriginReport, details: Details) -> Html:
    version = origin.versions[-1] if origin.versions else None
    counts = origin.counts
    findings = details.findings(version)
    return h(
        "tr",
        h("th", code(origin.origin, 300), scope="row"),
        h("td", _status(origin, version)),
        h("td", moment(version.last_at, "%Y-%m-%d %H:%M") if version else ABSENT),
        _cell(
            octets(version.octets) if version and version.octets is not None else ABSENT, version
        ),
        _findings_cell(findings),
        h("td", counts.sent_allowed),
        h("td", counts.dropped),
        h("td", counts.delayed),
    )


def _cell(text: str, version: Version | None) -> Html:
    size = version.octets if version else None
    return h("td", text, data_value=-1 if size is None else size)


def _status(origin: OriginReport, version: Version | None) -> Child:
    status = h(
        "span", shown(state_text(origin.state), 60), class_=f"state {_state_class(origin.state)}"
    )
    counts = origin.counts
    warning = None
    if counts.sent_disallowed or counts.final_url_disallowed:
        warning = h("span", "Disallowed request", class_="state bad")
    number = f" {version.status}" if version and version.status is not None else None
    copy = " (last good copy)" if version and _uses_copy(version) else None
    return (status, number, copy, warning)


def _uses_copy(version: Version) -> bool:
    return version.result == "unreachable" and version.effect == "rules"


def _state_class(state: str) -> str:
    return {"rules": "good", "unavailable": "plain", "unknown": "plain"}.get(state, "warn")


def _findings_cell(findings: list[Finding] | None) -> Html:
    if findings is None:
        return h("td", ABSENT, data_value=-1)
    if not findings:
        return h("td", "None", data_value=0)
    numbers = [sum(each.severity is kind for each in findings) for kind in Severity]
    texts = [
        count(number, str(kind), "info" if kind is Severity.INFO else None)
        for kind, number in zip(Severity, numbers, strict=True)
        if number
    ]
    rank = 1_000_000 * numbers[0] + 1_000 * numbers[1] + numbers[2]
    return h("td", ", ".join(texts), data_value=rank)
