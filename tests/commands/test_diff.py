"""``diff``: files, sites, and the comparison of what two files state."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep import RobotsTxt
from scrapy_rep.commands import show as show_module
from scrapy_rep.commands.context import json_line
from scrapy_rep.commands.show import Diff, _compare
from scrapy_rep.commands.sources import of_file
from testing.web import Page, Web

from .conftest import ROBOTS, Cli, Run, write


def diff(run: Run, old: str | bytes, new: str | bytes, *options: str, code: int = 1) -> Any:
    """The record of two files, or the text with ``--format text``."""
    write(robots_txt=old, new_txt=new)
    done = run("diff", "robots.txt", "new.txt", *(options or ("--json",)))
    assert (done.code, done.err) == (code, "")
    return done.out if options else done.record


def test_text_fits_and_is_escaped(run: Run) -> None:
    """The page on ``diff`` has the text of two files."""
    new = "User-agent: *\nDisallow: /\x1b[2J\x07\nSitemap: \x1b[31m\n"
    shown = diff(run, ROBOTS, new, "--format", "text")
    assert not {"\x1b", "\x07"} & {*shown}
    assert max(map(len, shown.splitlines())) <= 80
    for text in ("\nall other crawlers (*)\n", "- Pace: Crawl-delay: 5", "\nall crawlers\n"):
        assert text in shown


def test_the_same_meaning(run: Run) -> None:
    other = "# a comment\r\n" + ROBOTS.replace("\n", "\r\n")
    assert "They say the same." in diff(run, ROBOTS, other, "--format", "text", code=0)
    assert diff(run, ROBOTS, ROBOTS.encode("utf-16"), code=0)["same"] is True


def test_what_is_listed_is_limited_in_all(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many crawlers there are, each with a group of its own."""
    monkeypatch.setattr(show_module, "MAX_LISTED", 60)
    names = [first + second for first in ascii_lowercase[:12] for second in ascii_lowercase[:25]]
    groups = "".join(f"User-agent: {name}\nDisallow: /{name}*b\n" for name in names)
    wide = "User-agent: *\n" + "".join(f"Disallow: /{n}/\n" for n in range(300))
    rows = diff(run, groups, wide)["differences"]
    assert sum(len(row["names"]) for row in rows) == 301
    listed = [len(row["removed"]) + len(row["added"]) for row in rows]
    assert sum(listed) == 60
    for number, row in zip(listed, rows, strict=True):
        assert number + row["left_out"] in (300, 301)
    assert "and 250 more\n" in diff(run, groups, wide, "--format", "text")
    monkeypatch.setattr(show_module, "MAX_RULES", 1)
    assert diff(run, wide, wide, code=3)["same"] is None


async def test_sites(web: Web, cli: Cli) -> None:
    site = web.site(Page(b"", 404))
    write(new_txt="User-agent: *\nSitemap: https://x/s")
    done = await cli("diff", site.url(), "new.txt", "--json")
    assert done.record["old"]["state"] == "unavailable"
    (row,) = done.record["differences"]
    assert row == {"names": [], "removed": [], "added": ["Sitemap: https://x/s"], "left_out": 0}
    assert (done.code, site.robots_fetches) == (1, 1)
    site.pages["/robots.txt"] = Page(b"", 503)
    done = await cli("diff", site.url(), "new.txt", "-s", "REP_RETRY_TIMES=0")
    assert done.code == 3
    assert "It is not known whether" in done.out
    assert "is unreachable" in done.err
    # A host with the path of its robots.txt is a site.
    site.pages["/robots.txt"] = Page(b"User-agent: *\nSitemap: https://x/s")
    name = site.url("/robots.txt").removeprefix("http://")
    done = await cli("diff", name, "new.txt", "-s", "REP_RETRY_TIMES=0")
    assert f"note: {name} is not a file: it is taken for https://{name}\n" in done.err
    assert f"does not answer: {site.root} is used\n" in done.err
    assert done.code == 0


# The comparison

LINES = st.lists(
    st.sampled_from(
        [
            "User-agent: a", "User-agent: b", "User-agent: *", "Disallow: /", "Disallow: /a",
            "Allow: /a/b", "Disallow: /*b$", "Disallow: /*?x", "Allow: /index.html", "Disallow:",
            "Crawl-delay: 5", "Request-rate: 1/5", "Visit-time: 0600-0845",
            "Content-Signal: ai-train=no", "Content-Usage: /a train-ai=n",
            "License: https://x.example/l", "Sitemap: https://x.example/s",
        ]
    ),
    max_size=14,
)  # fmt: skip
PATHS = ["/", "/a", "/a/", "/a/b", "/a/bc", "/b", "/ab", "/?x", "/a?x", "/index.html", "/c"]


def compare(old: str, new: str) -> dict[str, Any]:
    policies = [of_file("robots.txt", text.encode()) for text in (old, new)]
    record = Diff(old=policies[0].access, new=policies[1].access)
    _compare(policies, record)
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
    assert (record["same"], record["differences"]) == (True, [])


@given(LINES, LINES)
def test_what_is_not_listed_has_the_same_verdicts(old: list[str], new: list[str]) -> None:
    one, other = ("\n".join(old), "\n".join(new))
    record = compare(one, other)
    assert record["same"] == compare(other, one)["same"]
    before, after = RobotsTxt(one.encode()), RobotsTxt(other.encode())
    changed = {
        name
        for row in record["differences"]
        if any(text.startswith("line ") for text in (*row["removed"], *row["added"]))
        for name in row["names"]
    }
    for name in ("a", "b", "*"):
        named = {name, "*"} if name not in {*before.agents, *after.agents} else {name}
        verdicts = [(before.allowed(path, name), after.allowed(path, name)) for path in PATHS]
        if not (changed & named):
            assert all(first == second for first, second in verdicts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("*\nDisallow: /a\nDisallow: /b", "*\nDisallow: /b\nDisallow: /a"),
        ("*\nDisallow: /a", "*\nDisallow: /%61"),
        ("*", "*\nDisallow:"),
        ("*\nDisallow: /a", "*\nDisallow: /a\nDisallow: /robots.txt$"),
        ("a\nDisallow: /x\nUser-agent: b\nDisallow: /x", "a\nUser-agent: b\nDisallow: /x"),
        # A group that says the same as *, and an unknown record.
        ("*\nDisallow: /x", "*\nDisallow: /x\nUser-agent: a\nDisallow: /x"),
        ("*\nFoo: bar", "*"),
    ],
)
def test_no_difference(old: str, new: str) -> None:
    start = "User-agent: "
    assert compare(start + old, start + new)["same"]
    assert compare(start + new, start + old)["same"]


TRAINING = "User-agent: __usage_ai-training\n"


@pytest.mark.parametrize(
    ("everyone", "rules"),
    [("Disallow: /", "Disallow: /"), ("Disallow: /a", "Disallow: /a"), ("Allow: /", "Allow: /")],
)
def test_a_policy_token_never_falls_back_to_everyone(everyone: str, rules: str) -> None:
    start = f"Content-Signal: search=yes\nUser-agent: *\n{everyone}\nCrawl-delay: 5\n"
    for old, new, place in (
        (start, start + TRAINING + rules, "added"),
        (start + TRAINING + rules, start, "removed"),
    ):
        (row,) = compare(old, new)["differences"]
        assert row["names"] == ["__usage_ai-training"]
        assert [text.rpartition(", ")[2] for text in row[place]] == [rules]
    # A group without rules states nothing.
    assert compare(start, f"{start}{TRAINING}Disallow:\nCrawl-delay: 9")["same"]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("Crawl-delay: 5", "Pace"),
        ("Visit-time: 0600-0845", "Pace"),
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
    for old, new, place in ((start, start + line, "added"), (start + line, start, "removed")):
        (row,) = compare(old, new)["differences"]
        assert row["names"] in (["a"], [])
        (text,) = row["added"] + row["removed"]
        assert text.startswith(f"{part}: ")
        assert row[place] == [text]
