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
from scrapy_rep.commands.crawlers import resolve
from scrapy_rep.commands.diff import (
    Comparison,
    Diff,
    Side,
    Steps,
    _side,
    covers,
    examples,
    may_overlap,
)
from scrapy_rep.commands.output import json_line
from scrapy_rep.commands.sources import of_file
from scrapy_rep.protocol.paths import pattern_of
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
        "diff", name, "-", "-s", "REP_RETRY_TIMES=0", "-s", "REP_TIMEOUT=1", stdin="User-agent: *\n"
    )
    assert f"note: {name} is not a file: it is taken for https://{name}\n" in done.err
    assert done.code == 3  # it has no https


# The comparison

LINES = st.lists(
    st.sampled_from(
        [
            "User-agent: a",
            "User-agent: b",
            "User-agent: *",
            "Disallow: /",
            "Disallow: /a",
            "Disallow: /a/b*",
            "Allow: /a/",
            "Allow: /*b$",
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


def side(text: str | bytes, url: str | None = None) -> Side:
    body = text.encode() if isinstance(text, str) else text
    return _side(of_file("robots.txt", body), url)


def compare(
    old: str | bytes, new: str | bytes, agents: Sequence[Agent] | None = None
) -> dict[str, Any]:
    return record_of(Comparison((side(old), side(new)), agents))


def record_of(comparison: Comparison) -> dict[str, Any]:
    access = of_file("robots.txt", b"").access
    record = Diff(old=access, new=access)
    comparison.compare(record)
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


@given(LINES)
def test_a_file_is_the_same_as_itself(lines: list[str]) -> None:
    record = compare("\n".join(lines), "\n".join(lines))
    assert record["same"] is True
    assert (record["severity"], record["crawlers"], record["file"]) == (None, [], [])


@given(LINES, st.integers(0, 1000))
def test_a_reformatted_file_is_the_same(lines: list[str], seed: int) -> None:
    assert compare("\n".join(lines), reformatted(lines, seed))["same"]


@given(LINES, LINES)
def test_symmetry(old: list[str], new: list[str]) -> None:
    one, other = ("\n".join(old), "\n".join(new))
    there, back = compare(one, other), compare(other, one)
    assert there["same"] == back["same"]
    assert there["severity"] == back["severity"]
    swapped = {"added": "removed", "removed": "added", None: None}
    for record, mirrored in zip(by_name(there), by_name(back), strict=True):
        assert record["names"] == mirrored["names"]
        assert record["group"] == swapped[mirrored["group"]]
        assert changes(record, swapped) == changes(mirrored, {name: name for name in swapped})


@given(LINES, LINES)
def test_files_that_are_the_same_have_the_same_verdicts(old: list[str], new: list[str]) -> None:
    one, other = ("\n".join(old), "\n".join(new))
    record = compare(one, other)
    before, after = RobotsTxt(one.encode()), RobotsTxt(other.encode())
    changed = {name for row in record["crawlers"] if row["rules"] for name in row["names"]}
    for name in ("a", "b", "*"):
        named = {name, "*"} if name not in {*before.agents, *after.agents} else {name}
        verdicts = [(before.allowed(path, name), after.allowed(path, name)) for path in PATHS]
        if not (changed & named):
            assert all(first == second for first, second in verdicts)
    for row in record["crawlers"]:
        for rule in row["rules"]:
            if rule["example"] is not None:
                for name in row["names"]:
                    assert before.allowed(rule["example"], name) != after.allowed(
                        rule["example"], name
                    )


def by_name(record: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [{**row, "names": name} for row in record["crawlers"] for name in row["names"]]
    return sorted(rows, key=lambda row: row["names"])


def changes(record: dict[str, Any], names: dict[Any, Any]) -> list[Any]:
    return sorted(
        (names[rule["change"]], rule["allow"], rule["pattern"]) for rule in record["rules"]
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("Disallow: /a\nDisallow: /b", "Disallow: /b\nDisallow: /a", id="order"),
        pytest.param("Disallow: /a", "Disallow: /a\nDisallow: /a/b", id="covered"),
        pytest.param("Disallow: /a", "Disallow: /a*", id="a star at the end"),
        pytest.param("Disallow: /a", "Disallow: /%61", id="encoded"),
        pytest.param("Disallow: /a[", "Disallow: /a%5B", id="another length"),
        pytest.param("", "Disallow:", id="no rule"),
        pytest.param("", "Allow: /", id="everything is allowed anyway"),
        pytest.param("Disallow: /a", "Disallow: /a\nAllow: /b", id="an allow of nothing"),
        pytest.param("Disallow: /", "Disallow: /\nDisallow: /robots.txt$", id="robots.txt"),
        pytest.param("Disallow: /*", "Disallow: /*\nAllow: /", id="a rule that never decides"),
        pytest.param("Allow: /\nDisallow: /", "", id="allow wins"),
    ],
)
def test_no_difference(old: str, new: str) -> None:
    start = "User-agent: *\n"
    assert compare(start + old, start + new)["same"]
    assert compare(start + new, start + old)["same"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "User-agent: a\nDisallow: /x\nUser-agent: b\nDisallow: /x",
            "User-agent: a\nUser-agent: b\nDisallow: /x",
            id="one group for two",
        ),
        pytest.param(
            "User-agent: *\nDisallow: /x",
            "User-agent: *\nDisallow: /x\nUser-agent: a\nDisallow: /x",
            id="a group that says the same as *",
        ),
        pytest.param("", "User-agent: a\nAllow: /", id="a group that allows everything"),
        pytest.param(
            "User-agent: a\nRequest-rate: 1/5\nRequest-rate: 1/9",
            "User-agent: a\nRequest-rate: 1/9\nRequest-rate: 1/5s",
            id="rates",
        ),
        pytest.param("Clean-param: a&b /x", "Clean-param: b&a /x", id="parameters"),
        pytest.param("Foo: bar", "", id="an unknown record"),
    ],
)
def test_no_difference_of_files(old: str, new: str) -> None:
    assert compare(old, new)["same"]
    assert compare(new, old)["same"]


@pytest.mark.parametrize(
    ("old", "new", "severity", "site"),
    [
        ("Disallow: /a", "Disallow: /", "high", ("part", "none")),
        ("Disallow: /", "Disallow:", "high", ("none", "all")),
        ("Disallow: /", "Disallow: /\nAllow: /a", "medium", ("none", "exceptions")),
        ("Disallow: /\nAllow: /a", "Disallow: /b", "high", ("exceptions", "part")),
        ("Disallow: /a", "Disallow: /b", "medium", ("part", "part")),
        ("Allow: /*\nDisallow: /ab", "Allow: /*", "medium", ("part", "all")),
    ],
)
def test_severity_of_rules(old: str, new: str, severity: str, site: tuple[str, str]) -> None:
    (row,) = compare("User-agent: *\n" + old, "User-agent: *\n" + new)["crawlers"]
    assert row["severity"] == severity
    changed = [(each["old"], each["new"]) for each in row["changes"]]
    assert changed == ([site] if site[0] != site[1] else [])


@pytest.mark.parametrize(
    ("line", "severity", "part"),
    [
        ("Crawl-delay: 5", "low", "pace"),
        ("Visit-time: 0600-0845", "low", "pace"),
        ("Content-Signal: ai-train=no", "medium", "Content-Signal"),
        ("Content-Usage: /a train-ai=n", "medium", "Content-Usage /a"),
        ("License: https://x.example/l", "medium", "License"),
    ],
)
def test_records_of_a_group(line: str, severity: str, part: str) -> None:
    start = "User-agent: a\nDisallow: /x\n"
    for old, new in ((start, start + line), (start + line, start)):
        record = compare(old, new)
        (row,) = record["crawlers"]
        assert (row["severity"], row["names"], row["rules"]) == (severity, ["a"], [])
        (change,) = row["changes"]
        assert change["record"] == part
        assert [change["old"] is None, change["new"] is None] == [old == start, new == start]


@pytest.mark.parametrize(
    "line", ["Sitemap: https://x.example/s", "Host: x.example", "Clean-param: a /", "Noindex: /a"]
)
def test_records_of_the_file(line: str) -> None:
    record = compare("", line)
    assert (record["severity"], record["crawlers"]) == ("low", [])
    (change,) = record["file"]
    assert (change["record"], change["old"]) == (line.partition(":")[0], None)
    assert change["new"]


def test_records_that_belong_to_one_of_two_tokens_with_the_same_rules() -> None:
    old = "User-agent: a\nCrawl-delay: 1\nUser-agent: b\nDisallow: /x"
    (row,) = compare(old, old.replace("1", "2"))["crawlers"]
    assert row["names"] == ["a"]


def test_groups_that_are_added_and_removed() -> None:
    star = "User-agent: *\nDisallow: /x\n"
    (row,) = compare(star, star + "User-agent: GPTBot\nDisallow: /")["crawlers"]
    assert (row["names"], row["group"], row["severity"]) == (["gptbot"], "added", "high")
    (row,) = compare(star + "User-agent: GPTBot\nDisallow: /", star)["crawlers"]
    assert (row["names"], row["group"], row["severity"]) == (["gptbot"], "removed", "high")


def test_crawlers_with_the_same_difference_are_together() -> None:
    old = "User-agent: a\nDisallow: /x\nUser-agent: b\nDisallow: /x\nDisallow: /x/y"
    new = "User-agent: a\nUser-agent: b\nDisallow: /"
    (row,) = compare(old, new)["crawlers"]
    assert row["names"] == ["a", "b"]


def test_only_the_crawlers_that_are_named() -> None:
    old = "User-agent: *\nDisallow: /x\nUser-agent: b\nDisallow: /x"
    new = "User-agent: *\nDisallow: /\nUser-agent: b\nDisallow: /x"
    agents = resolve(["b", "c", "AdsBot-Google"])
    (row,) = compare(old, new, agents)["crawlers"]
    assert row["names"] == ["c"]
    assert compare(old, new, resolve(["AdsBot-Google"]))["same"]


def test_relative_urls() -> None:
    url = "https://example.com/robots.txt"
    one, other = "Sitemap: /s.xml", "Sitemap: https://example.com/s.xml"
    assert record_of(Comparison((side(one, url), side(other, url)), None))["same"]


def test_too_many_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff_module, "MAX_RULES", 1)
    text = "User-agent: *\nDisallow: /a\nDisallow: /b"
    record = compare(text, text)
    assert (record["same"], record["complete"]) == (None, False)


def test_too_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Steps.__init__, "__defaults__", (0,))
    old, new = "User-agent: *\nDisallow: /a", "User-agent: *\nDisallow: /a\nDisallow: /a/b"
    record = compare(old, new)
    assert (record["same"], record["complete"]) == (False, False)
    assert record["crawlers"][0]["rules"][0]["example"] is None


@pytest.mark.no_cover  # Coverage would take most of the time.
def test_a_hostile_pair_of_files_ends() -> None:
    many = "".join(f"User-agent: a{n}\nDisallow: /{n}*a*a$\n" for n in range(3000))
    other = many.replace("*a*a$", "*b")
    record = compare(many[:500_000], other[:500_000])
    assert record["same"] is False
    assert len(record["crawlers"]) <= diff_module.MAX_LISTED
    wide = "User-agent: *\n" + "".join(f"Disallow: /{n}/\n" for n in range(3000))
    record = compare(many[:500_000], wide)
    assert record["complete"] is False
    assert sum(len(row["rules"]) for row in record["crawlers"]) <= diff_module.MAX_LISTED
    deep = "User-agent: *\n" + "".join(f"Disallow: /{'*a' * (n % 50)}{n}\n" for n in range(2000))
    record = compare(deep, deep.replace("*a", "*b"))
    assert record["same"] is False


PATTERNS = st.builds(
    str.__add__, st.sampled_from(["/", "*", "/a", "/b"]), st.text("ab*/?:$", max_size=5)
)
RANDOM_PATHS = st.text("ab/?:", max_size=6).map("/".__add__)


@pytest.mark.parametrize(
    ("pattern", "other", "expected"),
    [
        ("/", "/a", True),
        ("/a", "/", False),
        ("/a", "/a$", True),
        ("/a$", "/a", False),
        ("/a", "/a/*.gif$", True),
        ("/*.gif", "/a/*.gif$", True),
        ("/*.gif$", "/a/*.gif", False),
        ("/a*", "/a", True),
        ("/a", "/a*", True),
        ("/", "*", True),
        ("/*", "*.gif", True),
        ("*", "/a", True),
        ("/*/a", "*/a", False),  # which also matches /a
        ("*/a", "/b/a", True),
        ("/x?", "/x?u=/feed", True),
        ("/x?u=", "/x?u=/feed", False),  # it is, but its query has a second spelling
    ],
)
def test_covers(pattern: str, other: str, expected: bool) -> None:
    assert covers(pattern, other) is expected


@pytest.mark.parametrize(
    ("pattern", "other", "expected"),
    [
        ("/a", "/b", False),
        ("/a", "/a/b", True),
        ("/a$", "/a/b", False),
        ("/*.gif$", "/a.png$", False),
        ("/*.gif$", "/*.png$", False),
        ("/*.gif$", "/a", True),
        ("/x?u=/a", "/x?u=/b", True),  # not told apart
    ],
)
def test_may_overlap(pattern: str, other: str, expected: bool) -> None:
    assert may_overlap(pattern, other) is expected
    assert may_overlap(other, pattern) is expected


@given(PATTERNS, PATTERNS, RANDOM_PATHS)
def test_they_agree_with_the_matcher(one: str, other: str, path: str) -> None:
    first, second = (pattern_of(value.encode())[0] for value in (one, other))
    if matches(one, path) and matches(other, path):
        assert may_overlap(first, second)
    if covers(first, second) and matches(other, path):
        assert matches(one, path)


@given(PATTERNS)
def test_examples_match(value: str) -> None:
    pattern = pattern_of(value.encode())[0]
    assert all(matches(value, path) for path in examples(pattern))


def matches(value: str, path: str) -> bool:
    return not RobotsTxt(b"User-agent: *\nDisallow: " + value.encode()).allowed(path, "mybot")
