"""The page of a report: one HTML file, which loads nothing and needs no script.

Its sentences and charts are in ``templates/report.html`` and the templates that it imports. The
script adds sorting and filtering to the table of origins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from ..protocol.lint import lint
from . import answers, practices
from .pages import render, render_text, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..protocol.lint import Finding
    from .records import HostPace, OriginReport, Report, Version

MAX_DETAILS = 3_000_000
"""Characters of the details of all origins. A browser reads about 10 MB in a second, and 10,000
rows of the table have about 4 MB."""

MAX_DETAILS_OF_ONE = 60_000
"""Characters of the details of one origin. Beyond it, its robots.txt is left out."""

MAX_LINT = 2_000_000
MAX_LINT_OF_ONE = 100_000
"""Octets of robots.txt files that are checked for findings, and of one of them."""

STAR_COST = 20
"""The octets for which a ``*`` counts: rules with stars are compared with each other."""

MAX_LINES = 80
"""Lines of a robots.txt that are shown. Of a longer file, only those around the deciding lines are.
"""

CONTEXT = 2
"""Lines before and after a deciding line."""

ROWS_TOGETHER = 200
"""The rows of one table of origins. A browser lays out a table when it becomes visible."""

SECTIONS = (
    ("answers", "Answers"),
    ("charts", "Charts"),
    ("origins", "Origins"),
    ("practice", "Best practice"),
    ("runs", "Runs"),
    ("limits", "What is left out"),
)


def html_text(report: Report) -> str:
    """Return the page of a report."""
    spiders = ", ".join(dict.fromkeys(shown(run.spider, 100) for run in report.runs[:100]))
    disallowed = [
        each
        for origin in report.origins
        for each in origin.deciding
        if each.allowed is False and (each.sent or each.final_url)
    ]
    return render(
        "report.html",
        title=f"Crawl report: {spiders}",
        description="What the robots.txt files of the sites said, and what the crawl did.",
        script_name="page.js",
        report=report,
        sections=SECTIONS,
        obedience=answers.obedience(report).value,
        disallowed=sorted(disallowed, key=lambda each: -(each.sent + each.final_url)),
        unreachable=answers.unreachable(report),
        pace=answers.pace(report),
        frequent=answers.frequent(report),
        rows_together=ROWS_TOGETHER,
        details=Details(report),
        judged=practices.judged(report),
        agents=practices.user_agents(report),
    )


def summary(report: Report) -> str:
    """Return the summary of a report for a terminal, as ``templates/summary.html`` describes it."""
    return render_text(
        "summary.html",
        report=report,
        obedience=answers.obedience(report).value,
        unreachable=answers.unreachable(report),
        pace=answers.pace(report),
    )


class File(NamedTuple):
    """A robots.txt of an origin."""

    sha256: str
    is_last: bool
    lines: list[str] | str | None
    """None if the report does not have its text. It is empty if the file is."""
    decided: dict[int, tuple[int, int]]
    """The requests that each line decided, by its number: sent and dropped."""
    shown: Sequence[int]
    """The numbers of the lines that are shown."""


class Details:
    """The details of origins, within the limits of a page. Many origins may have the same file."""

    max_of_one = MAX_DETAILS_OF_ONE

    def __init__(self, report: Report) -> None:
        self._files = report.files
        self._hosts = {host.host: host for host in report.hosts}
        self._found: dict[str, list[Finding] | None] = {}
        self._lint_room = MAX_LINT
        self._room = MAX_DETAILS
        self.omitted = 0
        """The origins without details."""

    @property
    def unchecked(self) -> int:
        """The files that were not checked for findings."""
        return sum(found is None for found in self._found.values())

    def host(self, name: str) -> HostPace | None:
        """Return the pace of a host."""
        return self._hosts.get(name)

    def fitted(self, make: Callable[..., Markup], *values: Any) -> Markup:
        """Return the details of an origin; nothing if the page has no room for them."""
        details = make(*values, self) if self._room else Markup()
        if not self._room or len(details) > self._room:
            self._room = 0
            self.omitted += 1
            return Markup()
        self._room -= len(details)
        return details

    def text(self, sha256: str | None) -> str | None:
        """Return the text of a robots.txt, if the report has it."""
        file = self._files.get(sha256) if sha256 is not None else None
        return file.text if file is not None else None

    def findings(self, version: Version | None) -> list[Finding] | None:
        """Return the findings of a robots.txt; None if there is none, or if it is not checked."""
        sha256 = version.sha256 if version else None
        text = self.text(sha256)
        if sha256 is None or text is None:
            return None
        if sha256 not in self._found:
            self._found[sha256] = None
            cost = len(text) + STAR_COST * text.count("*")
            if cost <= min(self._lint_room, MAX_LINT_OF_ONE):
                self._lint_room -= cost
                self._found[sha256] = lint(text.encode("utf-8", "surrogatepass"))
        return self._found[sha256]

    def files(self, origin: OriginReport) -> Iterator[File]:
        """Yield the files of an origin: the last one, and earlier ones that decided."""
        last = next((each.sha256 for each in reversed(origin.versions) if each.sha256), None)
        numbers: dict[str | None, dict[int, tuple[int, int]]] = {last: {}}
        for each in origin.deciding:
            if each.rule is not None:
                decided = numbers.setdefault(each.sha256, {})
                sent, dropped = decided.get(each.rule.line, (0, 0))
                sent += each.sent + each.final_url
                decided[each.rule.line] = sent, dropped + each.dropped
        for sha256, decided in numbers.items():
            if sha256 is not None:
                text = self.text(sha256)
                lines = (
                    None if text is None else text.removesuffix("\n").split("\n") if text else []
                )
                yield File(sha256, sha256 == last, lines, decided, _shown(lines or [], decided))


def _shown(lines: Sequence[str], decided: dict[int, tuple[int, int]]) -> Sequence[int]:
    """Return the numbers of the lines of a file that are shown."""
    numbers = range(1, len(lines) + 1)
    if len(lines) <= MAX_LINES:
        return numbers
    near = {
        number + offset
        for number in sorted(decided)[:MAX_LINES]
        for offset in range(-CONTEXT, CONTEXT + 1)
    }
    return sorted(near.intersection(numbers)) or numbers[:MAX_LINES]
