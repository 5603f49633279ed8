"""Findings as text and JSON, also of hostile files."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.commands.lint import JSON_VERSION, LintFinding, to_text
from scrapy_rep.commands.output import json_line
from scrapy_rep.protocol.lint import Finding, lint
from tests.protocol.test_properties import bodies

BODY = "User-agent: *\n  Dissallow: /ツ\nfoo: a\nSitemap: /a".encode()

# What a hostile file may try: to end the line, to begin a command, to move the cursor.
HOSTILE = b"User-agent: *\r\nDisallow: x\r\n::error::a%0A,b: \x1b[2J\xe2\x80\xae\r\nAllow: h::%\0"
HOSTILE_NAME = "a\n::error::b,c:%\x1b[2J\u202e\udce9.txt"


def named(body: bytes, name: str = "robots.txt") -> list[tuple[str, Finding]]:
    return [(name, finding) for finding in lint(body)]


def test_json() -> None:
    first, second, _ = [json.loads(json_line(LintFinding.of(*one))) for one in named(BODY)]
    assert first == {
        "type": "finding",
        "version": JSON_VERSION,
        "file": "robots.txt",
        "line": 2,
        "column": 3,
        "end_column": 12,
        "code": "R203",
        "name": "misspelled-field",
        "severity": "warning",
        "message": "'dissallow' is misspelled",
        "advice": "write 'disallow:'",
        "fixable": True,
        "correction": {"column": 3, "end_column": 12, "text": "Disallow"},
    }
    assert (second["fixable"], second["correction"]) == (False, None)


def test_a_correction_is_escaped() -> None:
    finding = lint(b"User-agent: *\nAllow: http://a.example/\x1bb")[0]
    assert finding.correction is not None
    assert finding.correction.text == "/\x1bb"
    correction = LintFinding.of("a", finding).correction
    assert correction is not None
    assert correction.text == r"/\x1bb"


def test_hostile_files_and_names_are_escaped() -> None:
    check_escaped(HOSTILE, HOSTILE_NAME)


@given(bodies, st.text(max_size=20))
def test_every_file_and_name_is_escaped(body: bytes, name: str) -> None:
    check_escaped(body, name)


def check_escaped(body: bytes, name: str) -> None:
    findings = named(body, name)
    for one in findings:
        assert to_text(*one, "error").isprintable()
        line = json_line(LintFinding.of(*one)).rstrip()
        assert line.isprintable()
        assert json.loads(line)["message"] == one[1].message
