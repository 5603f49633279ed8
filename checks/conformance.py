"""Verdicts compared with Google's matcher, or with a slow one.

A folder of files may contain the verdicts of Google's own matcher. For other files, and for
generated ones, the verdicts of :mod:`testing.reference` are used, a slow matcher that shares no
code with the package.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from scrapy_rep.protocol.robotstxt import RobotsTxt
from testing import corpus, reference
from testing.corpus import Expected, load
from testing.harness import Duration, Options, Parameter, Result, Row

DURATION = Duration(60, 8)
PARAMETERS = {
    "files": Parameter(1000, 100, "generated files"),
    "questions": Parameter(20, 10, "questions for each file"),
}


def run(options: Options) -> Result:
    """Count the verdicts that differ, and the verdicts that name another line."""
    files, rows, source = load(
        options.folder, files=options.number("files"), questions=options.number("questions")
    )
    by_file = defaultdict(list)
    for row in rows:
        by_file[row.file].append(row)
    differing = []
    other_lines = []
    disallowed = 0
    for name, questions in by_file.items():
        robots = RobotsTxt.parse(files[name])
        for row, expected in _expectations(files[name], questions):
            verdict = robots.verdict(row.url, row.agent)
            line = verdict.rule.line if verdict.rule else 0
            disallowed += not expected.allowed
            if verdict.allowed != expected.allowed:
                differing.append(f"{row.file} {row.agent} {row.url} -> {verdict}")
            elif not expected.allowed and line != expected.line:
                said = f"{row.file} {row.agent} {row.url} -> line {line}"
                other_lines.append(f"{said}, not {expected.line}")
    return Result(
        [
            Row(f"verdicts, about {source}", len(rows), "verdicts"),
            Row("verdicts that differ", len(differing), "verdicts", 0),
            Row("disallowed", disallowed, "verdicts"),
            # Two spellings of a rule are one rule here, but two rules for Google's matcher.
            Row("disallowed, another line named", len(other_lines), "verdicts"),
        ],
        differing + other_lines,
    )


def _expectations(body: bytes, rows: list[corpus.Row]) -> Iterator[tuple[corpus.Row, Expected]]:
    """Yield each question with its known answer, or with that of the slow matcher."""
    groups = {} if rows[0].expected else reference.read_groups(body, strict=False)
    for row in rows:
        if row.expected:
            yield row, row.expected
            continue
        path = reference.url_form(row.url)
        rules = groups.get(row.agent.lower(), groups.get("*", []))
        # Always allowed, whatever the rules are.
        rule = None if path == "/robots.txt" else reference.decide(rules, path, strict=False)
        yield row, Expected(rule.allow if rule else True, rule.line if rule else 0)
