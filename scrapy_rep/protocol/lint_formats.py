"""Findings as text, as JSON, as annotations of GitHub, and as SARIF 2.1.0.

A finding quotes parts of a file only escaped and cut (`printable`). Names of files and URLs are
escaped here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from .lint_codes import PAGE, Code, Severity
from .printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .lint_findings import Finding

Findings: TypeAlias = "Iterable[tuple[str, Finding]]"
"""Pairs of the name of a file, or its URL, and a finding in it."""

JSON_VERSION = 1
"""The version of the JSON. A new field does not change it. A field that changes or ends does."""

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"

_MAX_NAME = 1000
"""Characters of the name of a file that are shown."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_GITHUB_LEVELS = {**_LEVELS, Severity.INFO: "notice"}

# A workflow command is a line: "::" command *( name "=" property ) "::" data
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_ESCAPED_DATA = str.maketrans(_DATA)
_ESCAPED_PROPERTY = str.maketrans({**_DATA, ":": "%3A", ",": "%2C"})


def to_text(findings: Findings) -> Iterator[str]:
    """Yield a line for each finding: ``robots.txt:2:1: warning R202 missing-colon: …``."""
    for name, found in findings:
        code = f"{found.code} {found.code.short_name}"
        place = f"{printable(name, _MAX_NAME)}:{found.line}:{found.column}"
        yield f"{place}: {found.severity} {code}: {found.message}; {found.advice}"


def to_json(findings: Findings) -> Iterator[str]:
    """Yield a line of JSON Lines for each finding, in ASCII."""
    for name, found in findings:
        yield json.dumps(to_dict(name, found))


def to_dict(name: str, found: Finding) -> dict[str, Any]:
    """Return a finding as JSON types.

    ``version`` is `JSON_VERSION`. Lines and columns count from 1. ``end_column`` is the first
    column after the finding. ``correction`` is null, or the columns to replace and the text to
    write. The text is cut and escaped if it holds what is not printable.
    """
    correction = found.correction
    return {
        "type": "finding",
        "version": JSON_VERSION,
        "file": name.encode("utf-8", "backslashreplace").decode(),
        "line": found.line,
        "column": found.column,
        "end_column": found.end_column,
        "code": found.code.code,
        "name": found.code.short_name,
        "severity": found.severity.value,
        "message": found.message,
        "advice": found.advice,
        "documentation": found.code.documentation,
        "fixable": found.is_fixable,
        "correction": None
        if correction is None
        else {
            "column": correction.column,
            "end_column": correction.end_column,
            "text": printable(correction.text),
        },
    }


def to_github(findings: Findings) -> Iterator[str]:
    """Yield a workflow command of GitHub Actions for each finding. It annotates the line.

    ``::warning file=robots.txt,line=2,endLine=2,col=1,endColumn=9,title=R202 missing-colon::…``
    """
    for name, found in findings:
        end = max(found.end_column, found.column)
        properties = {
            "file": printable(name, _MAX_NAME),
            "line": found.line,
            "endLine": found.line,
            "col": found.column,
            "endColumn": end,
            "title": f"{found.code} {found.code.short_name}",
        }
        written = ",".join(
            f"{key}={str(value).translate(_ESCAPED_PROPERTY)}" for key, value in properties.items()
        )
        data = f"{found.message}; {found.advice}".translate(_ESCAPED_DATA)
        yield f"::{_GITHUB_LEVELS[found.severity]} {written}::{data}"


def to_sarif(findings: Findings, *, version: str) -> str:
    """Return all findings as one document of SARIF 2.1.0, in ASCII.

    `version` is the version of this package.
    """
    codes = list(Code)
    driver = {
        "name": "scrapy-rep",
        "semanticVersion": version,
        "rules": [_sarif_rule(code) for code in codes],
    }
    numbers = {code: number for number, code in enumerate(codes)}
    results = [_sarif_result(name, found, numbers[found.code]) for name, found in findings]
    document = {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
        ],
    }
    return json.dumps(document, indent=2)


def _sarif_rule(code: Code) -> dict[str, Any]:
    return {
        "id": code.code,
        "name": code.short_name,
        "shortDescription": {"text": code.summary},
        "fullDescription": {"text": f"{code.summary} {code.why}"},
        "help": {
            "text": f"{code.why} {code.instead}",
            "markdown": f"{code.why}\n\n{code.instead}\n\nSee `{PAGE}`.",
        },
        "defaultConfiguration": {"level": _LEVELS[code.severity]},
    }


def _sarif_result(name: str, found: Finding, number: int) -> dict[str, Any]:
    artifact = {"uri": _uri(name)}
    result: dict[str, Any] = {
        "ruleId": found.code.code,
        "ruleIndex": number,
        "level": _LEVELS[found.severity],
        "message": {"text": f"{found.message}; {found.advice}"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": artifact,
                    "region": _region(found.line, found.column, found.end_column),
                }
            }
        ],
    }
    correction = found.correction
    if correction is not None and correction.text.isprintable():
        replacement = {
            "deletedRegion": _region(found.line, correction.column, correction.end_column),
            "insertedContent": {"text": correction.text},
        }
        result["fixes"] = [
            {
                "description": {"text": found.advice},
                "artifactChanges": [{"artifactLocation": artifact, "replacements": [replacement]}],
            }
        ]
    return result


def _region(line: int, column: int, end_column: int) -> dict[str, int]:
    return {"startLine": line, "startColumn": column, "endLine": line, "endColumn": end_column}


def _uri(name: str) -> str:
    """Return the name of a file as a relative URI. A URL is kept. Other characters are encoded."""
    octets = name.encode("utf-8", "surrogateescape")
    safe = "/:?=&%~+@!$'()*,;[]" if "://" in name else "/~"
    return quote(octets, safe=safe)
