"""The subcommand ``lint``, run as its users do."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scrapy_rep.commands.context import json_line
from scrapy_rep.commands.lint import LintFinding, excerpt, to_text
from scrapy_rep.protocol.lint import lint
from scrapy_rep.protocol.lint_codes import Code
from testing.web import Page, Web, redirect, text
from tests.protocol.test_properties import bodies

from .conftest import ROOT, Cli, Run, write

BODY = "User-agent: *\r\nDissallow private # ツ\r\nfoo: a\r\nSitemap: /a.xml\r\n".encode()
FIXED = "User-agent: *\r\nDisallow: private # ツ\r\nfoo: a\r\nSitemap: /a.xml\r\n".encode()


@pytest.fixture
def robots_txt(run: Run, tmp_path: Path) -> Path:
    write(robots_txt=BODY)
    return tmp_path / "robots.txt"


def lines_of(name: str) -> list[str]:
    return [
        f"{name}:2:1: warning R202 missing-colon: the colon is missing; write 'disallow:'",
        f"{name}:2:1: warning R203 misspelled-field: 'dissallow' is misspelled; write 'disallow:'",
        f"{name}:2:11: error R401 missing-slash: the pattern 'private' never matches; "
        "write '/private', as every path begins with a slash",
        f"{name}:3:1: info R206 unknown-field: unknown field 'foo', the line is skipped; "
        "remove it if it is a mistake",
        f"{name}:4:10: error R502 relative-url: the sitemap '/a.xml' is not an absolute URL; "
        "write its whole URL, such as https://example.com/sitemap.xml",
    ]


# The places in BODY, as they are shown below each of these lines.
SHOWN = [
    "    Dissallow private # ツ", "    ^^^^^^^^^",
    "    Dissallow private # ツ", "    ^^^^^^^^^",
    "    Dissallow private # ツ", "              ^^^^^^^",
    "    foo: a", "    ^^^",
    "    Sitemap: /a.xml", "             ^^^^^^",
]  # fmt: skip


@pytest.mark.usefixtures("robots_txt")
def test_a_file_as_text(run: Run) -> None:
    done = run("lint", "robots.txt")
    lines = done.out.splitlines()
    assert lines[::3] == lines_of("robots.txt")
    assert [line for number, line in enumerate(lines) if number % 3] == SHOWN
    assert done.code == 1
    assert done.err == (
        "note: 5 findings; --fix corrects 2; --fix --unsafe-fixes 1 more\n"
        "note: 'scrapy-rep rule R202 R203 R206 R401 R502' explains them\n"
    )
    done = run("lint", "robots.txt", "-q")
    assert (done.code, done.out.splitlines(), done.err) == (1, lines_of("robots.txt"), "")
    done = run("lint", "-", "-q", stdin=BODY)
    assert (done.code, done.out.splitlines()) == (1, lines_of("-"))


@pytest.mark.parametrize(
    ("line", "column", "end_column", "shown", "mark"),
    [
        ("Disallow: /ツ b", 11, 13, "Disallow: /ツ b", "          ^^^"),
        ("ツ: /a", 4, 6, "ツ: /a", "    ^^"),
        ("a\x1bb: c", 3, 4, "a\\x1bb: c", "     ^"),
        ("", 1, 1, "", "^"),
        ("x" * 80 + "y" + "z" * 99, 81, 82, f"…{'x' * 60}y{'z' * 37}…", " " * 61 + "^"),
        ("a" * 999, 1, 1000, "a" * 99 + "…", "^" * 100),
    ],
)
def test_the_place_of_a_finding(
    line: str, column: int, end_column: int, shown: str, mark: str
) -> None:
    assert excerpt(line, column, end_column) == (shown, mark)


@pytest.mark.usefixtures("robots_txt")
@pytest.mark.parametrize(
    ("arguments", "code", "found"),
    [
        (["--select", "R206"], 0, ["R206"]),
        (["--select", "missing-slash,R5"], 1, ["R401", "R502"]),
        (["--select", "R4", "--select", "R5", "--ignore", "relative-url"], 1, ["R401"]),
        (["--ignore", "R2,R4", "--ignore", "R5"], 0, []),
    ],
)
def test_codes(run: Run, arguments: list[str], code: int, found: list[str]) -> None:
    done = run("lint", "robots.txt", "--json", *arguments)
    assert (done.code, [record["code"] for record in done.records]) == (code, found)


@pytest.mark.usefixtures("robots_txt")
def test_json(run: Run) -> None:
    records = run("lint", "robots.txt", "--format", "json").records
    assert len(records) == 5
    assert records[1] == {
        "type": "finding", "version": 1, "file": "robots.txt",
        "line": 2, "column": 1, "end_column": 10,
        "code": "R203", "name": "misspelled-field", "severity": "warning",
        "message": "'dissallow' is misspelled", "advice": "write 'disallow:'", "is_fixable": True,
    }  # fmt: skip


# What a hostile file may try: to end the line, to begin a command, to move the cursor.
HOSTILE = b"User-agent: *\r\nDisallow: x\r\n::error::a%0A,b: \x1b[2J\xe2\x80\xae\r\nAllow: h::%\0"


@given(bodies, st.text(max_size=20))
@example(HOSTILE, "a\n::error::b,c:%\x1b[2J\u202e\udce9.txt")
@example(HOSTILE, "\x7f")
def test_every_file_and_name_is_escaped(body: bytes, name: str) -> None:
    for finding in lint(body):
        assert to_text(name, finding, "error").isprintable()
        line = json_line(LintFinding.of(name, finding)).rstrip()
        assert line.isprintable()
        assert json.loads(line)["message"] == finding.message


def test_fix(run: Run, robots_txt: Path) -> None:
    robots_txt.chmod(0o640)
    done = run("lint", "robots.txt", "--fix")
    assert (done.code, robots_txt.read_bytes()) == (1, FIXED)
    assert robots_txt.stat().st_mode & 0o777 == 0o640
    assert "note: robots.txt is corrected\n" in done.err
    assert [line.split()[2] for line in done.out.splitlines()[::3]] == ["R401", "R206", "R502"]
    done = run("lint", "robots.txt", "--fix")
    assert (done.code, "corrected" in done.err) == (1, False)


def test_unsafe_fixes(run: Run, robots_txt: Path) -> None:
    write(robots_txt="User-agent: *\nDisallow: a\nDisallow /b\n")
    done = run("lint", "robots.txt")
    assert done.code == 1
    assert done.err.startswith("note: 2 findings; --fix corrects 1; --fix --unsafe-fixes 1 more\n")
    assert run("lint", "robots.txt", "--fix").code == 1
    assert robots_txt.read_bytes() == b"User-agent: *\nDisallow: a\nDisallow: /b\n"
    assert run("lint", "robots.txt", "--fix", "--unsafe-fixes").code == 0
    assert robots_txt.read_bytes() == b"User-agent: *\nDisallow: /a\nDisallow: /b\n"


def test_diff(run: Run, robots_txt: Path) -> None:
    body = "User-agent: *\nDissallow: /a # \x1bツ\nAllow: a\n".encode()
    write(robots_txt=body)
    done = run("lint", "robots.txt", "--diff")
    assert done.out.splitlines()[3:] == [
        " User-agent: *", r"-Dissallow: /a # \x1bツ", r"+Disallow: /a # \x1bツ", " Allow: a", " ",
    ]  # fmt: skip
    assert (done.code, done.err) == (1, "")
    done = run("lint", "robots.txt", "--diff", "--unsafe-fixes", "--select", "R4")
    assert (done.code, "+Allow: /a\n" in done.out) == (1, True)
    assert robots_txt.read_bytes() == body
    done = run("lint", "robots.txt", "--diff", "--select", "R5")
    assert (done.code, done.out, done.err) == (0, "", "")
    done = run("lint", "robots.txt", "--select", "R5")
    assert (done.code, done.out, done.err) == (0, "", "note: 0 findings\n")
    write(robots_txt=b"\xef\xbb\xbfUser-agent: *\n")
    done = run("lint", "robots.txt", "--diff")
    assert (done.code, done.out) == (1, "robots.txt: only its encoding changes\n")


def test_folders(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "sites"
    (folder / "a").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "h.txt").write_bytes(BODY)
    assert run("lint", "sites", "-q").out.splitlines() == lines_of("sites/h.txt")
    (folder / "a" / "robots.txt").write_bytes(BODY)
    assert run("lint", "sites", "-q").out.splitlines() == lines_of("sites/a/robots.txt")
    assert run("lint", "sites", "--fix").code == 1
    assert (folder / "a" / "robots.txt").read_bytes() == FIXED
    assert (folder / "h.txt").read_bytes() == BODY


def test_known_crawlers(run: Run) -> None:
    write(robots_txt="User-agent: GPT-bot\nDisallow: /a")
    done = run("lint", "robots.txt", "-q")
    assert (done.code, "R311 similar-token" in done.out) == (1, True)


def test_rules_are_explained(run: Run) -> None:
    done = run("rule", "R202", "misspelled-field")
    assert done.out.startswith("R202 missing-colon\n\nWarning. `--fix` corrects it.\n")
    assert "\nR203 misspelled-field\n\n" in done.out
    assert (done.code, "##" in done.out) == (0, False)
    rows = [line.split() for line in run("rule").out.splitlines() if line]
    assert rows == [[str(code), str(code.severity), code.short_name] for code in Code]
    assert run("rule", "R999").code == 2


def test_a_file_that_cannot_be_written(
    run: Run, robots_txt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(28, "No space left on device")))
    done = run("lint", "robots.txt", "--fix")
    assert done.code == 2
    assert done.err == "scrapy-rep: cannot write robots.txt: No space left on device\n"
    assert [path.name for path in robots_txt.parent.iterdir()] == ["robots.txt"]
    assert robots_txt.read_bytes() == BODY


async def test_sites_and_files(web: Web, cli: Cli) -> None:
    site, missing, down = web.site(text(BODY)), web.site(), web.site(Page(b"", 503))
    write(robots_txt=BODY)
    done = await cli("lint", site.url("/a"), "robots.txt", "-q")
    assert done.out.splitlines() == [*lines_of(site.url("/robots.txt")), *lines_of("robots.txt")]
    assert done.code == 1
    done = await cli("lint", missing.root)
    assert (done.code, "info R709 unavailable: the site has no robots.txt: " in done.out) == (
        0,
        True,
    )
    done = await cli("lint", down.root, "robots.txt", "-q", "-s", "REP_RETRY_TIMES=0")
    assert (done.code, done.out.splitlines()) == (3, lines_of("robots.txt"))
    assert done.err.startswith(f"warning: {down.url('/robots.txt')} is unreachable: status 503\n")


@pytest.mark.parametrize(
    ("robots", "code", "found"),
    [
        (text("User-agent: *\nDisallow: /a"), 0, []),
        (Page("<!doctype html>Log in"), 1,
         ["R109", "page instead of its robots.txt: status 200, an"]),
        (Page("Please log in"), 1, ["R109", "status 200, an HTML page"]),
        (text("<p>Hello</p>"), 1, ["R109", "the file is a part of an HTML page"]),
        (Page("no", 403), 1, ["R701", "the site refuses access to its robots.txt: status 403"]),
        (Page("", 401), 1, ["R701", "status 401"]),
        (Page("", 403, {"cf-mitigated": "challenge"}), 1, ["R702", "has a challenge instead of"]),
        (Page("<html><div id='anubis_challenge'>"), 1, ["R702", "status 200, a challenge for"]),
        (redirect("/robots.txt"), 1, ["R703", "the site has no robots.txt: too many redirects"]),
        (text(""), 0, ["R708", "the file is empty: everything is allowed"]),
        (Page("Allow: /", headers={"Content-Type": "text/plain; charset=UTF-8"}), 1, ["R301"]),
        (Page("", headers={"Content-Type": 'Text/plain;charset="utf-8"'}), 0, ["R708"]),
        (Page("", headers={"Content-Type": "text/plain; charset=iso-8859-1"}), 1, ["R705", "R708"]),
        (text("", Cache_Control="max-age=86400"), 0, ["R708"]),
        (text("", Cache_Control="max-age=86401"), 1, ["R706", "for 86,401 seconds;", "R708"]),
        (text("", Cache_Control="max-age=99999999999999999999"), 1, ["R706", "R708"]),
    ],
)  # fmt: skip
async def test_the_answer_of_a_site(
    web: Web, cli: Cli, robots: Page, code: int, found: list[str]
) -> None:
    site = web.site(robots)
    done = await cli("lint", site.root, "-q")
    places = [done.out.find(each) for each in found]
    assert (done.code, -1 in places, places) == (code, False, sorted(places)), done
    codes = [each for each in found if re.fullmatch(r"R\d+", each)]
    assert done.out.count("/robots.txt:1:1: ") == len(codes)
    ignored = ["--ignore", ",".join(codes)] if codes else []
    assert (await cli("lint", site.root, "-q", *ignored)).out == ""


async def test_another_address(web: Web, cli: Cli) -> None:
    other = web.site("User-agent: *\nDisallow: a", host="127.0.0.2")
    site = web.site(redirect(other.url("/robots.txt")))
    done = await cli("lint", site.url("/blog/robots.txt"))
    assert [line.split()[2] for line in done.out.splitlines() if "robots.txt:" in line] == [
        "R704", "R707", "R401",
    ]  # fmt: skip
    assert f"no crawler reads {site.url('/blog/robots.txt')}; " in done.out
    assert f"the rules are those of {other.url('/robots.txt')}, to which" in done.out
    assert (done.code, site.paths, other.paths) == (1, ["/robots.txt"], ["/robots.txt"])
    done = await cli("lint", other.url("/robots.txt"), "-q")
    assert [line.split()[2] for line in done.out.splitlines()] == ["R401"]


def test_the_hook_runs_the_command() -> None:
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert "- id: scrapy-rep-lint\n" in hook
    assert "  entry: scrapy-rep lint\n" in hook
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'scrapy-rep = "scrapy_rep.commands.main:console"' in project
    for each in ('"click>=8.4"', '"msgspec>=0.20"', '"rich>=13"'):
        assert each in project
        assert each in hook
