"""``check`` with a file: no network."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from .conftest import ROBOTS, Done, Run, validate


def check(run: Run, *arguments: str, agent: str = "mybot") -> Done:
    return run("check", "--robots", "robots.txt", "-a", agent, *arguments)


CLOSED = "User-agent: *\nDisallow: /"

EXPLANATION = """\
disallowed  /private/page

  2 Disallow: /private
  3 Allow: /private/press/
> 4 Disallow: /private/p
  5 Crawl-delay: 5
  6 Content-Signal: ai-train=no

Why           line 4, Disallow: /private/p is the longest rule that matches
Crawler       mybot, by the group for *
Also matches  line 2, Disallow: /private
Pace          Crawl-delay: 5
Usage         train-ai: refused; Content-Signal: ai-train=no
robots.txt    the file robots.txt
"""


def test_one_url_is_explained(run: Run) -> None:
    done = check(run, "/private/page")
    assert done.out == EXPLANATION
    assert (done.code, done.err) == (1, "")


def test_the_json_of_one_url(run: Run) -> None:
    done = check(run, "/private/p%61ge", "--json")
    record = done.record
    validate(record, "check")
    assert done.code == 1
    assert record["rule"] == {"line": 4, "allow": False, "pattern": "/private/p"}
    assert [rule["line"] for rule in record["other_rules"]] == [2]
    assert record["context"][1:3] == ["  3 Allow: /private/press/", "> 4 Disallow: /private/p"]
    assert record["pace"] == "Crawl-delay: 5"
    assert record["usage"]["evaluated"] == {"train-ai": False}
    assert record["robots_txt"]["source"] == "file"


def test_several_answers_are_lines(run: Run) -> None:
    done = check(run, "/private/x", "https://example.com/", "mailto:a@b.example")
    assert done.out.splitlines() == [
        "disallowed /private/x  line 2, Disallow: /private, for *",
        "allowed    https://example.com/  no rule matches",
        "allowed    mailto:a@b.example  this scheme has no robots.txt",
    ]
    assert (done.code, done.err) == (1, "note: 3 answers: 2 allowed, 1 disallowed, 0 unknown\n")
    done = check(run, "/a", "-a", "otherbot")
    assert done.out.splitlines() == [
        "allowed    /a  mybot: no rule matches",
        "disallowed /a  otherbot: line 9, Disallow: /, for otherbot",
    ]


@pytest.mark.parametrize(
    ("agent", "text", "url", "code", "why"),
    [
        ("mybot", "", "/", 0, "no rule for this crawler"),
        ("mybot", "User-agent: mybot\nDisallow:", "/", 0, "no rule for this crawler"),
        ("mybot", "User-agent: mybot\nDisallow: /a", "/", 0, "no rule matches"),
        ("mybot", CLOSED, "/robots.txt", 0, "no rule for this crawler"),
        ("mybot", f"{CLOSED}a", "/a", 1, "is the only rule that matches"),
        (
            "mybot",
            "User-agent: *\nAllow: /d/index.html\nDisallow: /d",
            "/d/",
            0,
            "is the longest rule that matches",
        ),
        ("AdsBot-Google", CLOSED, "/a", 0, "AdsBot-Google ignores the group for *"),
        (
            "Googlebot-Image",
            "User-agent: Googlebot\nDisallow: /a",
            "/a",
            1,
            "Googlebot-Image, by the group for googlebot",
        ),
    ],
)
def test_reasons(
    run: Run, tmp_path: Path, agent: str, text: str, url: str, code: int, why: str
) -> None:
    (tmp_path / "robots.txt").write_text(text)
    done = check(run, url, agent=agent)
    assert (done.code, why in " ".join(done.out.split())) == (code, True)
    record = check(run, url, "--json", agent=agent).record
    validate(record, "check")
    assert record["allowed"] is not bool(code)


def test_the_default_crawler_is_that_of_the_settings(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["check", "--robots", "robots.txt", "/a"]
    done = run(*arguments, "-s", "ROBOTSTXT_USER_AGENT=otherbot")
    assert (done.code, done.err) == (1, "")
    done = run(*arguments)  # outside of a project
    assert "*, by the group for *" in " ".join(done.out.split())
    assert (done.code, done.err) == (0, "")
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = project\n")
    monkeypatch.setenv("SCRAPY_SETTINGS_MODULE", "json")  # a module without settings
    done = run(*arguments)
    assert "warning: Scrapy is the default name of every Scrapy crawler" in done.err


def test_a_url_with_a_password(run: Run) -> None:
    done = check(run, "http://user:password@example.com/a", "--json")
    assert done.records[0]["url"] == "http://example.com/a"
    assert "password" not in done.out + done.err


def test_a_url_without_a_scheme(run: Run) -> None:
    done = check(run, "example.com/a", "b.example", "c.example", "d.example", "e.example", "--json")
    assert done.records[0]["url"] == "https://example.com/a"
    assert done.err.splitlines() == [
        "note: example.com/a has no scheme: it is taken for https://example.com/a",
        "note: b.example has no scheme: it is taken for https://b.example",
        "note: c.example has no scheme: it is taken for https://c.example",
        "note: 2 more: URLs without a scheme",
    ]


def test_what_a_site_sends_is_escaped_and_cut(run: Run, tmp_path: Path) -> None:
    evil = "/\x1b[2J\u202e[red]" + "x" * 3000
    (tmp_path / "robots.txt").write_text(
        f"User-agent: *\nDisallow: {evil}\nCrawl-delay: 1\nContent-Signal: \x1b[1m=no\n"
        "License: https://example.com/\x1b[2J\nSitemap: \x1b]0;x\x07\n"
    )
    in_lines = check(run, evil, "/b")
    for done in (check(run, evil), run("show", "robots.txt"), in_lines):
        assert "\x1b" not in done.out + done.err
        assert "\u202e" not in done.out
        assert "[red]" in done.out  # no markup
        assert len(done.out) < 5000
        assert done is in_lines or max(map(len, done.out.splitlines())) <= 80
    record = check(run, evil, "--json").record
    validate(record, "check")
    assert len(record["rule"]["pattern"]) <= 1000


def test_500_kib_of_rules(run: Run, tmp_path: Path) -> None:
    rules = "".join(f"Disallow: /a{'*' * (number % 3)}{number}\n" for number in range(40_000))
    body = f"User-agent: *\nDisallow: /a\n{rules}"
    assert len(body) > 512_000
    (tmp_path / "robots.txt").write_text(body)
    done = check(run, "/a12345", "--json")
    validate(done.record, "check")
    assert done.record["rule"]["line"] > 1000
    assert done.record["context"]
    assert check(run, "/a12345").code == 1
    shown = run("show", "robots.txt")
    assert "more rules" in shown.out
    assert len(shown.out.splitlines()) < 300


def test_an_octet_that_is_not_utf_8_is_percent_encoded(run: Run, tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /%E9$\n")
    (tmp_path / "urls.txt").write_bytes(b"/\xe9\nhttps://example.com/\xe9\n/\xe9x\n")
    done = check(run, "--from", "urls.txt", "--json")
    assert [record["allowed"] for record in done.records] == [False, False, True]
    assert done.records[0]["url"] == "/%E9"
    assert check(run, "/\udce9").code == 1


# Files with URLs.


def test_urls_of_a_file_get_brief_records(run: Run, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("https://example.com/ü\nmailto:x\n//[bad/\n")
    done = check(run, "/private/x", "--from", "urls.txt", "--json")
    assert [record["allowed"] for record in done.records] == [False, True, True, False]
    for record in done.records:
        validate(record, "check")
        assert "context" not in record
    assert done.records[0]["rule"] == {"line": 2, "allow": False, "pattern": "/private"}
    assert done.records[1]["url"] == "https://example.com/ü"
    assert done.records[3]["reason"] == "invalid-host"


@pytest.mark.parametrize(
    ("url", "reason"),
    [("//[bad/", "invalid-host"), ("http://[bad/", "invalid-host"), ("ex ample", "invalid-host")],
)
def test_a_url_that_is_none(run: Run, url: str, reason: str) -> None:
    """A crawl drops it. It is invalid all the same, which is more than a disallow."""
    done = check(run, url, "--json")
    assert (done.code, done.record["reason"], done.record["allowed"]) == (3, reason, False)
    assert check(run, url, "/private").code == 3


def test_a_file_without_urls(run: Run, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("# nothing\n")
    (tmp_path / "urls.jsonl").write_text("")
    for name in ("urls.txt", "urls.jsonl"):
        done = check(run, "--from", name)
        assert (done.code, done.out, done.err) == (0, "", "note: there are no URLs to check\n")


def test_a_long_file_is_lines(run: Run, tmp_path: Path) -> None:
    urls = [f"/private/{number}" for number in range(9_000)]
    (tmp_path / "urls.txt").write_text("\n".join([*urls, "https://[bad/"]))
    done = check(run, "--from", "urls.txt", "-a", "otherbot")
    lines = done.out.splitlines()
    assert lines[0] == "disallowed /private/0  mybot: line 2, Disallow: /private, for *"
    assert len(lines) == 18_002
    assert done.err == "note: 18,002 answers: 0 allowed, 18,002 disallowed, 0 unknown\n"
    assert len(check(run, "--from", "urls.txt", "--json").records) == 9_001


def test_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def given(text: str) -> None:
        raw: Any = io.BytesIO(text.encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(raw)))

    given("/private/a\n/b\n")
    done = check(run, "--from", "-", "--json")
    assert [record["allowed"] for record in done.records] == [False, True]
    given(ROBOTS)
    assert run("check", "--robots", "-", "/private", "-a", "x", "--json").record["allowed"] is False
    given(ROBOTS)
    assert len(run("show", "-", "--json").record["groups"]) == 2


def test_what_was_read_before_an_error_is_written(run: Run, tmp_path: Path) -> None:
    lines = "".join(f'{{"url": "/{number}"}}\n' for number in range(500))
    (tmp_path / "urls.jsonl").write_text(f"{lines}broken\n")
    done = check(run, "--from", "urls.jsonl", "--json")
    assert done.code == 2
    assert "cannot read urls.jsonl as URLs: line 501: " in done.err
    assert len(done.records) >= 448


@pytest.mark.parametrize("obeys", [None, False, True])
def test_a_project_that_obeys_nothing_is_told_so(run: Run, obeys: bool | None) -> None:
    project = Settings()
    if obeys is not None:
        project.set("ROBOTSTXT_OBEY", obeys, priority="project")
    done = run("check", "--robots", "robots.txt", "-a", "mybot", "/a", settings=project)
    assert ("a crawl of this project ignores all of this" in done.err) is (obeys is False)
