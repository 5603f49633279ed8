"""``diff``: files, sites, a store, and the URLs whose verdict differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_rep.commands import diff as diff_module
from testing.web import Page

from .conftest import ROBOTS, TIMEOUT, Run, forked, started, validate

if TYPE_CHECKING:
    from pathlib import Path

    from testing.web import Web

OLD = """\
User-agent: *
Disallow: /private/
Crawl-delay: 3

User-agent: gptbot
Disallow:
Content-Signal: ai-train=no
Sitemap: https://example.com/old.xml
"""
NEW = """\
User-agent: *
Disallow: /
Allow: /open/*
Sitemap: https://example.com/new.xml

User-agent: bingbot
Disallow: /private/
Crawl-delay: 3
License: https://example.com/license
"""
URLS = "/\n/open/x\nhttps://example.com/private/x\nmailto:x\n"

SHOWN = """\
old  old.txt
new  new.txt

high    all other crawlers (*)
        + line 2, Disallow: /  → / is disallowed
        now the whole site is disallowed, with exceptions; before, a part of the
        site is disallowed
        - pace: Crawl-delay: 3

high    gptbot (group removed)
        + line 2, Disallow: /  → / is disallowed
        now the whole site is disallowed, with exceptions; before, all of the
        site is allowed
        - Content-Signal: ai-train=no

medium  bingbot (group added)
        + License: https://example.com/license

low     all crawlers
        - Sitemap: https://example.com/old.xml
        + Sitemap: https://example.com/new.xml
"""


@pytest.fixture
def files(run: Run, tmp_path: Path) -> Path:
    """A folder with two files that differ, and URLs."""
    (tmp_path / "old.txt").write_text(OLD)
    (tmp_path / "new.txt").write_text(NEW)
    (tmp_path / "urls.txt").write_text(URLS)
    return tmp_path


@pytest.mark.usefixtures("files")
def test_text(run: Run) -> None:
    done = run("diff", "old.txt", "new.txt")
    assert [line.rstrip() for line in done.out.splitlines()] == SHOWN.splitlines()
    assert (done.code, done.err) == (1, "")
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.usefixtures("files")
def test_json(run: Run) -> None:
    done = run("diff", "old.txt", "new.txt", "--json", "--urls", "urls.txt")
    first, *flips = done.records
    validate(first, "diff")
    assert (first["same"], first["severity"], first["complete"]) == (False, "high", True)
    for flip in flips:
        validate(flip, "diff-url")
    assert [(flip["url"], flip["names"], flip["new"]["allowed"]) for flip in flips] == [
        ("/", ["*"], False),
        ("/", ["gptbot"], False),
        ("https://example.com/private/x", ["gptbot"], False),
    ]
    assert done.code == 3  # mailto:
    assert "mailto:x is not a URL" in done.err
    assert "3 URLs: 3 verdicts differ" in done.err


@pytest.mark.usefixtures("files")
def test_urls_as_text(run: Run, files: Path) -> None:
    (files / "urls.txt").write_text("/\n/open/x\n")
    done = run("diff", "old.txt", "new.txt", "--urls", "urls.txt", "-a", "gptbot")
    assert done.out.splitlines()[-1] == (
        "disallowed  /  was allowed, for GPTBot: line 2, Disallow: /, for *"
    )
    assert done.code == 1


def test_the_verdict_is_for_each_path_that_a_handler_may_send(run: Run, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("")
    (tmp_path / "new.txt").write_text("User-agent: *\nDisallow: /x$")
    (tmp_path / "urls.txt").write_text("/x;\n")
    done = run("diff", "old.txt", "new.txt", "--urls", "urls.txt", "--json")
    assert done.records[1]["new"]["detail"] == "a download handler may send /x"


def test_the_same_meaning(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("# a comment\r\n" + ROBOTS.replace("\n", "\r\n"))
    (tmp_path / "urls.txt").write_text("/\n/private\n")
    done = run("diff", "robots.txt", "other.txt", "--urls", "urls.txt")
    assert "They have the same meaning." in done.out
    assert (done.code, done.err) == (0, "note: 2 URLs: 0 verdicts differ\n")


def test_utf_16_is_no_binary_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "utf16.txt").write_bytes(ROBOTS.encode("utf-16"))
    assert run("diff", "robots.txt", "utf16.txt").code == 0


def test_hostile_text_is_escaped(run: Run, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("User-agent: *\nDisallow: /\x1b[2J\x07\nSitemap: \x1b[31m\n")
    done = run("diff", "robots.txt", "new.txt")
    assert "\x1b" not in done.out
    assert "\x07" not in done.out


def test_no_more_than_some_crawlers_are_asked_about_urls(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff_module, "MAX_URL_CRAWLERS", 1)
    (tmp_path / "old.txt").write_text("User-agent: a\nDisallow: /a\nUser-agent: b\nDisallow: /b")
    (tmp_path / "new.txt").write_text("")
    (tmp_path / "urls.txt").write_text("/a\n/b\n")
    done = run("diff", "old.txt", "new.txt", "--urls", "urls.txt", "--json")
    assert [record["url"] for record in done.records[1:]] == ["/a"]
    assert "checked for 1 of 2 crawlers" in done.err


def test_a_file_that_is_too_large_to_compare(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scrapy_rep.commands.diff.MAX_RULES", 1)
    done = run("diff", "robots.txt", "robots.txt")
    assert done.code == 3
    assert "It is not known whether" in done.out
    (tmp_path / "new.txt").write_text(ROBOTS + "Sitemap: https://example.com/other.xml")
    done = run("diff", "robots.txt", "new.txt")
    assert done.code == 1
    assert "The files are large" in done.out


@pytest.mark.no_cover  # Coverage would take most of the time.
def test_many_values_are_counted(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"Sitemap: https://example.com/{n}\n" for n in range(1500))
    rules = "".join(f"Disallow: /{n}/\n" for n in range(1500))
    (tmp_path / "new.txt").write_text(f"User-agent: *\n{rules}{lines}")
    (tmp_path / "old.txt").write_text("")
    done = run("diff", "old.txt", "new.txt")
    assert "and 1,450 more rules" in done.out
    assert "and 1,480 more\n" in done.out
    record = run("diff", "old.txt", "new.txt", "--json").record
    (row,) = record["crawlers"]
    assert sum(rule["example"] is not None for rule in row["rules"]) == 500
    validate(record, "diff")
    monkeypatch.setattr(diff_module, "MAX_LISTED", 1000)
    record = run("diff", "old.txt", "new.txt", "--json").record
    assert (len(record["crawlers"][0]["rules"]), record["crawlers"][0]["left_out"]) == (1000, 501)
    assert (record["file"], record["complete"]) == ([], False)


def test_sites(web: Web, tmp_path: Path) -> None:
    """One fork: a site and a file, with URLs of the site and of another one."""
    site = web.site(Page(b"", 404))
    (tmp_path / "new.txt").write_text("User-agent: *\nDisallow: /a\nSitemap: /s.xml")
    (tmp_path / "urls.txt").write_text(f"{site.url('/a')}\nhttps://example.com/a\n/a\n")
    done = forked("diff", site.url(), "new.txt", "--urls", "urls.txt", "--json", cwd=tmp_path)
    first, *flips = done.records
    assert first["old"]["state"] == "unavailable"
    assert first["file"] == [{"record": "Sitemap", "old": None, "new": site.url("/s.xml")}]
    assert [flip["url"] for flip in flips] == [site.url("/a"), "/a"]
    assert "https://example.com/a is a URL of another site" in done.err
    assert (done.code, site.robots_fetches) == (1, 1)
    site.pages["/robots.txt"] = Page(b"", 503)
    done = forked("diff", site.url(), "new.txt", "-s", "REP_RETRY_TIMES=0", cwd=tmp_path)
    assert done.code == 3
    assert "It is not known whether" in done.out
    assert "is unreachable" in done.err
    assert "Traceback" not in done.err


def test_a_broken_pipe_is_silent(tmp_path: Path) -> None:
    """rich writes at once, and has an exit code of its own for a broken pipe."""
    (tmp_path / "old.txt").write_text("")
    (tmp_path / "new.txt").write_text("User-agent: *\nDisallow: /")
    (tmp_path / "urls.txt").write_text("/a\n" * 20_000)
    arguments = ("diff", "old.txt", "new.txt", "--urls", "urls.txt")
    with started(*arguments, cwd=tmp_path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(TIMEOUT) == 141


def test_a_host_with_the_path_of_its_robots_txt_is_a_site(web: Web) -> None:
    site = web.site("User-agent: *\nDisallow: /private")
    name = site.url("/robots.txt").removeprefix("http://")
    done = forked(
        "diff", name, "-", "-s", "REP_RETRY_TIMES=0", "-s", "REP_TIMEOUT=1", stdin="User-agent: *\n"
    )
    assert f"note: {name} is not a file: it is taken for https://{name}\n" in done.err
    assert done.code == 3  # it has no https
