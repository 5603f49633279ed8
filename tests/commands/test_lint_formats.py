"""Findings as text, JSON, annotations of GitHub and SARIF, also of hostile files."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.commands.lint import (
    JSON_VERSION,
    SARIF_SCHEMA,
    LintFinding,
    to_github,
    to_sarif,
    to_text,
)
from scrapy_rep.commands.output import json_line
from scrapy_rep.protocol.lint import Code, Finding, lint
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
        "documentation": "docs/reference/lint.md#r203-misspelled-field",
        "fixable": True,
        "correction": {"column": 3, "end_column": 12, "text": "Disallow"},
    }
    assert (second["fixable"], second["correction"]) == (False, None)


def test_github() -> None:
    assert list(to_github(named(BODY, "a,b:c%/robots.txt"))) == [
        "::warning file=a%2Cb%3Ac%25/robots.txt,line=2,endLine=2,col=3,endColumn=12,"
        "title=R203 misspelled-field::'dissallow' is misspelled; write 'disallow:'",
        "::notice file=a%2Cb%3Ac%25/robots.txt,line=3,endLine=3,col=1,endColumn=4,"
        "title=R206 unknown-field::unknown field 'foo', the line is skipped; remove it if it is a "
        "mistake",
        "::error file=a%2Cb%3Ac%25/robots.txt,line=4,endLine=4,col=10,endColumn=12,"
        "title=R502 relative-url::the sitemap '/a' is no absolute URL; write its whole URL, such "
        "as https://example.com/sitemap.xml",
    ]


def test_sarif() -> None:
    document = json.loads(to_sarif(named(BODY, "sites/ä b/robots.txt"), version="1.2.3"))
    check_sarif(document)
    run = document["runs"][0]
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [str(code) for code in Code]
    first = run["results"][0]
    assert first["ruleId"] == run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "R203"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "sites/%C3%A4%20b/robots.txt"}
    assert place["region"] == {"startLine": 2, "startColumn": 3, "endLine": 2, "endColumn": 12}
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {"deletedRegion": place["region"], "insertedContent": {"text": "Disallow"}}
    ]
    assert [result["level"] for result in run["results"]] == ["warning", "note", "error"]
    assert "fixes" not in run["results"][1]


def test_sarif_has_no_correction_that_cannot_be_shown() -> None:
    finding = lint(b"User-agent: *\nVisit-time: 06:00\t08:00")[0]
    assert finding.correction is not None
    assert finding.correction.text == "0600\t0800"
    result = json.loads(to_sarif([("a", finding)], version="1"))["runs"][0]["results"][0]
    assert "fixes" not in result
    correction = LintFinding.of("a", finding).correction
    assert correction is not None
    assert correction.text == r"0600\t0800"


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("robots.txt", "robots.txt"),
        ("/a b/%.txt", "/a%20b/%25.txt"),
        ("a:b#c?d", "a%3Ab%23c%3Fd"),
        ("\udce9", "%E9"),
        ("https://h:80/robots.txt?a=%20&b", "https://h:80/robots.txt?a=%20&b"),
        ("https://h/\n<a>", "https://h/%0A%3Ca%3E"),
    ],
)
def test_sarif_names_files_as_uris(name: str, uri: str) -> None:
    document = json.loads(to_sarif(named(b"foo", name), version="1"))
    place = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri


def test_no_findings() -> None:
    assert list(to_github([])) == []
    check_sarif(json.loads(to_sarif([], version="1")))


def test_hostile_files_and_names_are_escaped() -> None:
    check_escaped(HOSTILE, HOSTILE_NAME)
    github = list(to_github(named(HOSTILE, HOSTILE_NAME)))
    assert github[0].startswith(r"::error file=a\n%3A%3Aerror%3A%3Ab%2Cc%3A%25\x1b[2J\u202e\udce9")


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
    for line in to_github(findings):
        assert line.isprintable()
        command = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line)
        assert command
        properties = [one.partition("=")[0] for one in command[2].split(",")]
        assert properties == ["file", "line", "endLine", "col", "endColumn", "title"]
    document = to_sarif(findings, version="1")
    assert document.isascii()
    check_sarif(json.loads(document))


LEVELS = {"none", "note", "warning", "error"}


def check_sarif(document: Any) -> None:
    """What SARIF 2.1.0 requires of what is written (sections 3.13 to 3.57)."""
    assert (document["$schema"], document["version"]) == (SARIF_SCHEMA, "2.1.0")
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert all(rule["defaultConfiguration"]["level"] in LEVELS for rule in rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in LEVELS
        assert result["message"]["text"]
        places = [location["physicalLocation"] for location in result["locations"]]
        regions = [place["region"] for place in places]
        artifacts = [place["artifactLocation"] for place in places]
        for fix in result.get("fixes", ()):
            for change in fix["artifactChanges"]:
                artifacts.append(change["artifactLocation"])
                regions += [each["deletedRegion"] for each in change["replacements"]]
        for artifact in artifacts:
            # RFC 3986: no spaces, controls or quotation marks, and each "%" is an escape.
            uri = r"(?:[!#$&-;=?-Z\[\]_a-z~]|%[0-9A-Fa-f]{2})*"
            assert re.fullmatch(uri, artifact["uri"]), artifact
        for region in regions:
            assert region["startLine"] == region["endLine"] >= 1
            assert 1 <= region["startColumn"] <= region["endColumn"]
