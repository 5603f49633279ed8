"""``test``: a robots.txt against a file of expectations."""

from __future__ import annotations

import pytest

from scrapy_rep.commands import test as test_module
from testing.web import Page, Web
from tests.crawl.test_page_middleware import TRAINING

from .conftest import Cli, Run, write

ROBOTS = """\
User-agent: *
Disallow: /admin
Allow: /admin/open

User-agent: GPTBot
Disallow: /private

User-agent: CCBot
Disallow: /
"""
HOLDS = """\
# what has to stay
allow * /
disallow * /admin      # with a comment

ALLOW "Mozilla/5.0 (compatible; bingbot/2.0)" /admin/open
allow AdsBot-Google /admin   # ignores the group for *
disallow CCBot /anything#fragment
"""
FAILS = """\
disallow * /
allow CCBot /x
"""
SHOWN = """\
failed  line 1: disallow * /
        allowed: no rule matches, for *
failed  line 2: allow CCBot /x
        disallowed: line 9, Disallow: /, for ccbot
          7
          8 User-agent: CCBot
        > 9 Disallow: /
2 expectations: 0 hold, 2 failed.
"""


@pytest.fixture(autouse=True)
def files(run: Run) -> None:
    write(robots_txt=ROBOTS, holds_txt=HOLDS, fails_txt=FAILS)


def test_expectations(run: Run) -> None:
    done = run("test", "holds.txt", "--robots", "robots.txt")
    assert (done.out, done.err, done.code) == ("5 expectations hold.\n", "", 0)
    done = run("test", "fails.txt", "--robots", "robots.txt")
    assert [line.rstrip() for line in done.out.splitlines()] == SHOWN.splitlines()
    assert (done.code, done.err) == (1, "")
    for name in ("holds.txt", "fails.txt"):
        records = run("test", name, "--robots", "robots.txt", "--json").records
        assert {record["holds"] for record in records} == {name == "holds.txt"}
    assert records[1]["check"]["rule"]["line"] == 9


def test_a_purpose_stands_for_all_its_crawlers(run: Run) -> None:
    write(one_txt="allow ai-training /\n")
    done = run("test", "one.txt", "--robots", "robots.txt", "--json")
    failed = [record["expectation"] for record in done.records if not record["holds"]]
    assert failed == ["allow CCBot /"]
    assert len(done.records) > 5
    assert "may ignore robots.txt" in done.err or not done.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("alow x /",
         "write 'allow AGENT PATH', 'disallow AGENT PATH', 'grant USE PATH' or 'refuse"),
        ("refuse train-ai", "write 'allow AGENT PATH',"),
        ("allow train-ai x /", "write 'allow AGENT PATH',"),
        ("refuse train-ai a b /", "write 'allow AGENT PATH',"),
        ("refuse training /",
         "'training' is not a use: write train-ai, ai-use, search, ai-train, ai"),
        ("refuse tdm /", "'tdm' is not a use"),
        ("allow * admin", "'admin' is neither a path nor a URL: write '/admin'"),
        ("refuse search a/b.html", "'a/b.html' is neither a path nor a URL: write '/a/b.html'"),
        ("allow * index.html", "'index.html' is neither a path nor a URL: write '/index.html'"),
        ("allow Googlbot /x",
         "no known crawler has the product token 'Googlbot': write 'Googlebot'"),
        ("allow gpt-bot /x", "no known crawler has the product token 'gpt-bot': write 'GPTBot' if"),
        ("allow __usage_ai /x",
         "no use has the policy token '__usage_ai': write '__usage_ai-training'"),
        ("allow /", "write 'allow AGENT PATH'"),
        ("allow a b /", "write 'allow AGENT PATH'"),
        ("allow a mailto:x", "'mailto:x' is neither a path nor a URL"),
        ("allow a //", "'//' is neither a path nor a URL"),
        ("allow a http://[\x1b[2J", r"'http://[\x1b[2J' is neither a path nor a URL"),
    ],
)  # fmt: skip
def test_lines_that_are_refused(run: Run, line: str, message: str) -> None:
    write(bad_txt=f"# first\n{line}\n")
    done = run("test", "bad.txt", "--robots", "robots.txt")
    assert (done.code, done.out) == (2, "")
    assert f"bad.txt, line 2: {message}" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("agent", "code"),
    [("mybot", 0), ("Googlbot/1.0", 0), ("Pinterest", 0), ("Googlebot", 0), ("Googlbot", 2)],
)
def test_names_that_are_not_misspelled(run: Run, agent: str, code: int) -> None:
    write(one_txt=f"disallow {agent} /admin\n")
    assert run("test", "one.txt", "--robots", "robots.txt").code == code
    # A token of the file is not.
    write(robots_txt="User-agent: googlbot\nUser-agent: *\nDisallow: /admin")
    assert run("test", "one.txt", "--robots", "robots.txt").code == 0


UNSTATED = "nothing is stated for __usage_ai-training"
USES = """\
User-agent: *
Content-Signal: /art ai-train=no, search=yes

User-agent: GPTBot
Content-Usage: train-ai=y
"""


@pytest.mark.parametrize(
    ("robots", "expectation", "holds", "why"),
    [
        (USES, "refuse train-ai /art/1", True, ""),
        (USES, "refuse ai-train /art/1", True, ""),
        (USES, "refuse train-ai * https://example.com/art/1", True, ""),
        (USES, "grant search /art/1", True, ""),
        (USES, "grant train-ai GPTBot /art/1", True, ""),
        (USES, "refuse train-ai GPTBot /art/1", False,
         "train-ai: granted; Content-Usage: train-ai=yes"),
        (USES, "grant train-ai /art/1", False, "train-ai: refused; "),
        (USES, "refuse search /art/1", False, "search: granted; "),
        (USES, "refuse train-ai /news", False, "nothing is stated about any use"),
        (USES, "grant ai-use /art/1", False, "Content-Signal: ai-train=no, search=yes"),
        # A policy token is judged by its own group.
        (TRAINING, "disallow __usage_ai-training /art/1", True, ""),
        (TRAINING, "allow __usage_ai-training /art/free/1", True, ""),
        (TRAINING, "allow __usage_ai-training /art/1", False,
         "line 5, Disallow: /art/, for __usage_ai-t"),
        # The group of everyone has no part in it, and what is not stated is not granted.
        (TRAINING, "disallow __usage_ai-training /shut/", False, UNSTATED),
        (TRAINING, "allow __usage_ai-training /news", False, UNSTATED),
        (TRAINING, "disallow * /shut/", True, ""),
        (TRAINING, "allow * /art/1", True, ""),
        # Not even in a file without rules.
        ("#", "allow __usage_ai-training /art/1", False, UNSTATED),
        ("#", "disallow __usage_ai-training /shut/", False, UNSTATED),
        ("#", "allow * /art/1", True, ""),
    ],
)  # fmt: skip
def test_expectations_about_a_use(
    run: Run, robots: str, expectation: str, holds: bool, why: str
) -> None:
    write(robots_txt=robots, expected_txt=expectation)
    done = run("test", "expected.txt", "--robots", "robots.txt")
    assert (done.code, done.err) == (0 if holds else 1, "")
    assert why in " ".join(done.out.split())
    (record,) = run("test", "expected.txt", "--robots", "robots.txt", "--json").records
    written = expectation.replace("train-ai * ", "train-ai ")
    assert (record["holds"], record["expectation"]) == (holds, written)


def test_a_file_has_a_limit(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_module, "MAX_EXPECTATIONS", 1)
    done = run("test", "fails.txt", "--robots", "robots.txt")
    assert (done.code, "fails.txt has more than 1 expectations" in done.err) == (2, True)


async def test_sites(web: Web, cli: Cli) -> None:
    site, gone = web.site(ROBOTS), web.site(Page(b"", 404))
    write(x_txt=f"disallow * /admin\nallow * {gone.url('/x')}\nallow CCBot /")
    done = await cli("test", "x.txt", "--robots", site.root, "--json")
    assert [record["holds"] for record in done.records] == [True, True, False]
    assert done.code == 1
    assert (site.paths, gone.paths) == (["/robots.txt"], [])  # it holds for every URL
    site.pages["/robots.txt"] = Page(b"", 503)
    done = await cli("test", "x.txt", "--robots", site.root, "-s", "REP_RETRY_TIMES=0")
    assert done.code == 3
    assert "robots.txt is unreachable: status 503" in done.out
    assert "3 expectations: 0 hold, 3 not known." in done.out
