"""``diff``: files, sites, the URLs whose verdict differs, and the comparison of rules."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep import RobotsTxt
from scrapy_rep.commands import diff as diff_module
from scrapy_rep.commands import show as show_module
from scrapy_rep.commands.crawlers import resolve
from scrapy_rep.commands.diff import Diff, _compare
from scrapy_rep.commands.output import json_line
from scrapy_rep.commands.sources import of_file
from testing.web import Page

from .conftest import ROBOTS, TIMEOUT, Run, forked, started, validate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scrapy_rep.commands.crawlers import Agent
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
Old  the file old.txt
New  the file new.txt

all other crawlers (*)
        - line 2, Disallow: /private/
        + line 3, Allow: /open/*
        + line 2, Disallow: /  → / is disallowed
        - pace: Crawl-delay: 3

gptbot
        + line 3, Allow: /open/*
        + line 2, Disallow: /  → / is disallowed
        - Content-Signal: ai-train=no

bingbot
        + License: https://example.com/license

all crawlers
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
    assert first["same"] is False
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
    assert "They say the same." in done.out
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


def test_many_rules_and_values_are_counted(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff_module, "MAX_LISTED", 60)
    monkeypatch.setattr(diff_module, "MAX_EXAMPLES", 50)
    lines = "".join(f"Sitemap: https://example.com/{n}\n" for n in range(70))
    rules = "".join(f"Disallow: /{n}/\n" for n in range(70))
    (tmp_path / "new.txt").write_text(f"User-agent: *\n{rules}{lines}")
    (tmp_path / "old.txt").write_text("")
    done = run("diff", "old.txt", "new.txt")
    assert "and 20 more\n" in done.out
    assert "and 50 more\n" in done.out
    record = run("diff", "old.txt", "new.txt", "--json").record
    validate(record, "diff")
    (row,) = record["crawlers"]
    assert (len(row["rules"]), row["left_out"]) == (60, 10)
    assert sum(rule["example"] is not None for rule in row["rules"]) == 50
    monkeypatch.setattr(show_module, "MAX_RULES", 1)
    assert run("diff", "new.txt", "new.txt").code == 3


def test_what_is_listed_is_limited_in_all(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many crawlers there are, each with a group of its own."""
    monkeypatch.setattr(diff_module, "MAX_LISTED", 60)
    names = [
        f"{first}{second}" for first in "abcdefghijkl" for second in "abcdefghijklmnopqrstuvwxy"
    ]
    groups = "".join(f"User-agent: {name}\nDisallow: /{name}*b\n" for name in names)
    wide = "User-agent: *\n" + "".join(f"Disallow: /{n}/\n" for n in range(300))
    (tmp_path / "old.txt").write_text(groups)
    (tmp_path / "new.txt").write_text(wide)
    record = run("diff", "old.txt", "new.txt", "--json").record
    rows = record["crawlers"]
    assert sum(len(row["names"]) for row in rows) == 301
    assert sum(len(row["rules"]) for row in rows) == 60
    assert all(len(row["rules"]) + row["left_out"] in (300, 301) for row in rows)


def test_sites(web: Web, tmp_path: Path) -> None:
    """One fork: a site and a file, with URLs of the site and of another one."""
    site = web.site(Page(b"", 404))
    (tmp_path / "new.txt").write_text("User-agent: *\nDisallow: /a\nSitemap: https://x/s")
    (tmp_path / "urls.txt").write_text(f"{site.url('/a')}\nhttps://example.com/a\n/a\n")
    done = forked("diff", site.url(), "new.txt", "--urls", "urls.txt", "--json", cwd=tmp_path)
    first, *flips = done.records
    assert first["old"]["state"] == "unavailable"
    assert first["file"] == [{"record": "Sitemap", "old": None, "new": "https://x/s"}]
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
    """rich flushes the file, and has an exit code of its own for a broken pipe."""
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
        "diff", name, "-", "-s", "REP_RETRY_TIMES=0", stdin="User-agent: *\nDisallow: /private\n"
    )
    assert f"note: {name} is not a file: it is taken for https://{name}\n" in done.err
    assert f"does not answer: {site.root} is used\n" in done.err
    assert done.code == 0


# The comparison

LINES = st.lists(
    st.sampled_from(
        [
            "User-agent: a",
            "User-agent: b",
            "User-agent: *",
            "Disallow: /",
            "Disallow: /a",
            "Allow: /a/b",
            "Disallow: /*b$",
            "Disallow: /*?x",
            "Allow: /index.html",
            "Disallow:",
            "Crawl-delay: 5",
            "Request-rate: 1/5",
            "Visit-time: 0600-0845",
            "Content-Signal: ai-train=no",
            "Content-Usage: /a train-ai=n",
            "License: https://x.example/l",
            "Sitemap: https://x.example/s",
        ]
    ),
    max_size=14,
)
PATHS = ["/", "/a", "/a/", "/a/b", "/a/bc", "/b", "/ab", "/?x", "/a?x", "/index.html", "/c"]


def compare(old: str, new: str, agents: Sequence[Agent] | None = None) -> dict[str, Any]:
    policies = [of_file("robots.txt", text.encode()) for text in (old, new)]
    record = Diff(old=policies[0].access, new=policies[1].access)
    _compare(policies, agents, record)
    found: dict[str, Any] = json.loads(json_line(record))
    return found


def reformatted(lines: Sequence[str], seed: int) -> str:
    """The same file in another form: comments, case, spaces, empty lines, encoded characters."""
    chance = random.Random(seed)
    written = []
    for line in lines:
        name, _, value = line.partition(":")
        value = value.strip().replace("/a", chance.choice(["/a", "/%61"]))
        name = chance.choice([name, name.upper(), name.lower()])
        space = chance.choice(["", " ", "\t "])
        written.append(f"{space}{name}{space}:{space}{value}{chance.choice(['', ' # why'])}")
        written += chance.choice([[], [""], ["# a comment", ""]])
    return chance.choice(["", "\ufeff"]) + chance.choice(["\n", "\r\n"]).join(written)


@given(LINES, st.integers(0, 1000))
def test_a_reformatted_file_is_the_same(lines: list[str], seed: int) -> None:
    record = compare("\n".join(lines), reformatted(lines, seed))
    assert (record["same"], record["crawlers"], record["file"]) == (True, [], [])


@given(LINES, LINES)
def test_what_is_not_listed_has_the_same_verdicts(old: list[str], new: list[str]) -> None:
    one, other = ("\n".join(old), "\n".join(new))
    record = compare(one, other)
    assert record["same"] == compare(other, one)["same"]
    before, after = RobotsTxt(one.encode()), RobotsTxt(other.encode())
    changed = {name for row in record["crawlers"] if row["rules"] for name in row["names"]}
    for name in ("a", "b", "*"):
        named = {name, "*"} if name not in {*before.agents, *after.agents} else {name}
        verdicts = [(before.allowed(path, name), after.allowed(path, name)) for path in PATHS]
        if not (changed & named):
            assert all(first == second for first, second in verdicts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("*\nDisallow: /a\nDisallow: /b", "*\nDisallow: /b\nDisallow: /a", id="order"),
        pytest.param("*\nDisallow: /a", "*\nDisallow: /%61", id="encoded"),
        pytest.param("*", "*\nDisallow:", id="no rule"),
        pytest.param("*\nDisallow: /a", "*\nDisallow: /a\nDisallow: /robots.txt$", id="itself"),
        pytest.param(
            "a\nDisallow: /x\nUser-agent: b\nDisallow: /x",
            "a\nUser-agent: b\nDisallow: /x",
            id="one group for two",
        ),
        pytest.param(
            "*\nDisallow: /x",
            "*\nDisallow: /x\nUser-agent: a\nDisallow: /x",
            id="a group that says the same as *",
        ),
        pytest.param("*\nFoo: bar", "*", id="an unknown record"),
    ],
)
def test_no_difference(old: str, new: str) -> None:
    start = "User-agent: "
    assert compare(start + old, start + new)["same"]
    assert compare(start + new, start + old)["same"]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("Crawl-delay: 5", "pace"),
        ("Visit-time: 0600-0845", "pace"),
        ("Content-Signal: ai-train=no", "Content-Signal"),
        ("Content-Usage: /a train-ai=n", "Content-Usage"),
        ("License: https://x.example/l", "License"),
        ("Sitemap: https://x.example/s", "Sitemap"),
        ("Host: x.example", "Host"),
        ("Clean-param: a /", "Clean-param"),
        ("Noindex: /a", "Noindex"),
    ],
)
def test_other_records(line: str, part: str) -> None:
    start = "User-agent: a\nDisallow: /x\n"
    for old, new in ((start, start + line), (start + line, start)):
        record = compare(old, new)
        rows = record["crawlers"] or [{"names": ["a"], "rules": [], "changes": record["file"]}]
        (row,) = rows
        assert (row["names"], row["rules"]) == (["a"], [])
        (change,) = row["changes"]
        assert change["record"] == part
        assert [change["old"] is None, change["new"] is None] == [old == start, new == start]


def test_records_that_belong_to_one_of_two_tokens_with_the_same_rules() -> None:
    old = "User-agent: a\nCrawl-delay: 1\nUser-agent: b\nDisallow: /x"
    (row,) = compare(old, old.replace("1", "2"))["crawlers"]
    assert row["names"] == ["a"]


def test_crawlers_with_the_same_difference_are_together() -> None:
    old = "User-agent: a\nDisallow: /x\nUser-agent: b\nDisallow: /x\nDisallow: /y"
    new = "User-agent: a\nDisallow: /x\nUser-agent: b\nDisallow: /x\nDisallow: /y\n"
    sites = "User-agent: a\nUser-agent: b\nCrawl-delay: 1"
    (row,) = compare(old, new + sites)["crawlers"]
    assert row["names"] == ["a", "b"]


def test_only_the_crawlers_that_are_named() -> None:
    old = "User-agent: *\nDisallow: /x\nUser-agent: b\nDisallow: /x"
    new = "User-agent: *\nDisallow: /\nUser-agent: b\nDisallow: /x"
    (row,) = compare(old, new, resolve(["b", "c", "AdsBot-Google"]))["crawlers"]
    assert row["names"] == ["c"]
    assert compare(old, new, resolve(["AdsBot-Google"]))["same"]
