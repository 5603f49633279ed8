"""``lint``: lines that do not do what they seem to, and their corrections.

A finding quotes parts of a file only escaped and cut (`printable`). Names of files and URLs are
escaped here, for text, JSON, annotations of GitHub and SARIF 2.1.0.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
from msgspec import Struct

from .. import __version__
from ..atomic_write import write_atomically
from ..protocol.lint import fix, lint
from ..protocol.lint_codes import PAGE, Code, Severity, chosen_codes, codes_of
from ..protocol.printable import printable
from .context import STANDARD_INPUT, Context, archive_option, tool
from .output import CommandError, ExitCode, writing
from .sources import is_file, read_policies
from .texts import quantity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..protocol.lint import Finding

FORMATS = ("text", "json", "github", "sarif")

JSON_VERSION = 1
"""The version of the JSON. A new field does not change it. A field that changes or ends does."""

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"

_MAX_NAME = 1000
"""Characters of the name of a file that are shown."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}

# A workflow command is a line: "::" command *( name "=" property ) "::" data
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_ESCAPED_DATA = str.maketrans(_DATA)
_ESCAPED_PROPERTY = str.maketrans({**_DATA, ":": "%3A", ",": "%2C"})

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


class Correction(Struct):
    """The columns to replace, and the text to write."""

    column: int
    end_column: int
    text: str


class LintFinding(Struct, kw_only=True, tag_field="type", tag="finding"):
    """A finding. Lines and columns count from 1; ``end_column`` is the first one behind it."""

    version: int
    file: str
    line: int
    column: int
    end_column: int
    code: str
    name: str
    severity: str
    message: str
    advice: str
    documentation: str
    fixable: bool
    correction: Correction | None

    @classmethod
    def of(cls, name: str, found: Finding) -> LintFinding:
        """Return the record of a finding in a file. What is not printable is escaped."""
        columns = found.correction
        return cls(
            version=JSON_VERSION,
            file=name.encode("utf-8", "backslashreplace").decode(),
            line=found.line,
            column=found.column,
            end_column=found.end_column,
            code=found.code.code,
            name=found.code.short_name,
            severity=found.severity.value,
            message=found.message,
            advice=found.advice,
            documentation=found.code.documentation,
            fixable=found.is_fixable,
            correction=columns and Correction(*columns[:2], printable(columns.text)),
        )


@tool(
    "Report lines of a robots.txt that do not do what they seem to, or that other crawlers read "
    "otherwise. docs/reference/lint.md explains each code, such as R202 or missing-colon.",
    ("lint robots.txt", "a file"),
    ("lint robots.txt --fix", "correct the findings that have one safe correction"),
    ("lint example.com --ignore R206,R3", "the robots.txt of a site, without these findings"),
    ("lint robots.txt --format github", "annotate the lines of a pull request"),
    records=(LintFinding,),
    formats=FORMATS,
)
@click.argument("names", nargs=-1, required=True, metavar="ROBOTS...")
@click.option(
    "--select",
    multiple=True,
    metavar="CODE[,CODE]",
    help="Report only these findings: codes, beginnings of codes, or names.",
)
@click.option("--ignore", multiple=True, metavar="CODE[,CODE]", help="Leave out these findings.")
@click.option("--strict", is_flag=True, help="Read without corrections: mistakes are errors.")
@click.option(
    "--fix",
    "fixes",
    is_flag=True,
    help="Correct the files; standard input is written to standard output.",
)
@archive_option
def lint_tool(
    context: Context,
    names: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
    strict: bool,
    fixes: bool,
) -> int:
    """Lint files."""
    selected, ignored = _codes(select), _codes(ignore)
    if fixes:
        for name in names:
            if not is_file(name):
                raise CommandError(f"--fix corrects files, and {name} is not a file")
    found: list[tuple[str, Finding]] = []
    unknown = False
    for name, body in _bodies(names, context):
        if body is None:
            unknown = True
            continue
        if fixes:
            body = _fix(name, body, selected, ignored, context)
        findings = lint(body, strict=strict, select=selected, ignore=ignored)
        found += [(name, one) for one in findings]
    if not (fixes and STANDARD_INPUT in names):
        _write(found, context)
    if unknown:
        return ExitCode.UNKNOWN
    matters = any(finding.severity is not Severity.INFO for _, finding in found)
    return ExitCode.FOUND if matters else ExitCode.OK


def _codes(options: Sequence[str]) -> list[str]:
    names = [name for option in options for name in option.split(",")]
    try:
        codes_of(names)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return names


def _bodies(names: Sequence[str], context: Context) -> Iterator[tuple[str, bytes | None]]:
    """Yield each name with its robots.txt; None if a site does not answer."""
    others = [name for name in names if not is_file(name)]
    policies = dict(zip(others, read_policies(others, context), strict=True))
    for name in names:
        policy = policies.get(name)
        if policy is None:
            yield name, context.read_file(name)
            continue
        access = policy.access
        if access.is_unreachable:
            context.output.warn(access.problem)
            yield name, None
        elif policy.robots is None:
            context.output.note(f"{access.url} does not exist: status {access.status}")
        else:
            where = access.url if access.source != "archive" else name
            yield where, policy.text[1:] if policy.body is None else policy.body


def _fix(
    name: str, body: bytes, select: Sequence[str], ignore: Sequence[str], context: Context
) -> bytes:
    fixed = fix(body, [code.code for code in chosen_codes(select, ignore)])
    if name == STANDARD_INPUT:
        with writing():
            sys.stdout.buffer.write(fixed)
    elif fixed != body:
        with writing(name):
            write_atomically(Path(name), fixed)
        context.output.note(f"{name} is corrected")
    return fixed


def _write(found: list[tuple[str, Finding]], context: Context) -> None:
    output = context.output
    if output.as_json:
        for name, finding in found:
            output.record(LintFinding.of(name, finding))
    elif output.form == "github":
        output.write("".join(f"{line}\n" for line in to_github(found)))
    elif output.form == "sarif":
        output.write(to_sarif(found, version=__version__) + "\n")
    else:
        for name, finding in found:
            severity = output.styled(str(finding.severity), _STYLES[finding.severity])
            output.write(f"{to_text(name, finding, severity)}\n")
        if found:
            output.flush()
            fixable = sum(finding.is_fixable for _, finding in found)
            advice = f"; --fix corrects {fixable:,}" if fixable else ""
            output.note(f"{quantity(len(found), 'finding')}{advice}")


def to_text(name: str, found: Finding, severity: str) -> str:
    """Return a finding as a line: ``robots.txt:2:1: warning R202 missing-colon: …``."""
    place = f"{printable(name, _MAX_NAME)}:{found.line}:{found.column}"
    code = f"{found.code} {found.code.short_name}"
    return f"{place}: {severity} {code}: {found.message}; {found.advice}"


def to_github(findings: Iterable[tuple[str, Finding]]) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions for each finding. It annotates the line.

    ``::warning file=robots.txt,line=2,endLine=2,col=1,endColumn=9,title=R202 missing-colon::…``
    """
    for name, found in findings:
        properties = {
            "file": printable(name, _MAX_NAME),
            "line": found.line,
            "endLine": found.line,
            "col": found.column,
            "endColumn": max(found.end_column, found.column),
            "title": f"{found.code} {found.code.short_name}",
        }
        written = ",".join(
            f"{key}={str(value).translate(_ESCAPED_PROPERTY)}" for key, value in properties.items()
        )
        data = f"{found.message}; {found.advice}".translate(_ESCAPED_DATA)
        yield f"::{_LEVELS[found.severity].replace('note', 'notice')} {written}::{data}"


def to_sarif(findings: Iterable[tuple[str, Finding]], *, version: str) -> str:
    """Return all findings as one document of SARIF 2.1.0, in ASCII.

    `version` is the version of this package.
    """
    codes = list(Code)
    rules = [
        {
            "id": code.code,
            "name": code.short_name,
            "shortDescription": {"text": code.summary},
            "fullDescription": {"text": f"{code.summary} {code.why}"},
            "help": {"text": code.why, "markdown": f"{code.why}\n\nSee `{PAGE}`."},
            "defaultConfiguration": {"level": _LEVELS[code.severity]},
        }
        for code in codes
    ]
    driver = {"name": "scrapy-rep", "semanticVersion": version, "rules": rules}
    results = [_sarif_result(name, one, codes.index(one.code)) for name, one in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_result(name: str, found: Finding, number: int) -> dict[str, Any]:
    def region(column: int, end_column: int) -> dict[str, int]:
        line = found.line
        return {
            "startLine": line, "startColumn": column, "endLine": line, "endColumn": end_column
        }  # fmt: skip

    artifact = {"uri": _uri(name)}
    place = {
        "artifactLocation": artifact,
        "region": region(found.column, found.end_column),
    }
    result: dict[str, Any] = {
        "ruleId": found.code.code,
        "ruleIndex": number,
        "level": _LEVELS[found.severity],
        "message": {"text": f"{found.message}; {found.advice}"},
        "locations": [{"physicalLocation": place}],
    }
    if found.correction is not None and found.correction.text.isprintable():
        column, end_column, text = found.correction
        replacement = {
            "deletedRegion": region(column, end_column),
            "insertedContent": {"text": text},
        }
        change = {"artifactLocation": artifact, "replacements": [replacement]}
        result["fixes"] = [{"description": {"text": found.advice}, "artifactChanges": [change]}]
    return result


def _uri(name: str) -> str:
    """Return the name of a file as a relative URI. A URL is kept. Other characters are encoded."""
    safe = "/:?=&%~+@!$'()*,;[]" if "://" in name else "/~"
    return quote(name.encode("utf-8", "surrogateescape"), safe=safe)
