"""``show`` with a file: no network."""

from __future__ import annotations

from itertools import product
from string import ascii_lowercase

import pytest

from scrapy_rep.commands import show as show_module

from .conftest import Run, write

ROBOTS = """\
User-agent: B/2.0
Disallow:
License: https://example.com/license.xml
Sitemap: /map.xml
Host: www.example.com
Clean-param: ref&sid /shop
Noindex: /old
"""

SHOWN = """\
robots.txt  the file robots.txt

b
  no rules: everything is allowed

License      https://example.com/license.xml
Sitemap      /map.xml
Host         www.example.com
Clean-param  ref&sid /shop
Noindex      /old
"""


def test_groups_without_rules_and_other_records(run: Run) -> None:
    """The page on ``show`` has the text of rules, and of two groups that are one."""
    write(robots_txt=ROBOTS)
    done = run("show", "robots.txt")
    assert done.out == SHOWN
    assert (done.code, done.err) == (0, "")
    write(robots_txt="# nothing\n")
    assert "No group: everything is allowed." in run("show", "robots.txt").out


def test_the_number_of_rules_is_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show_module, "MAX_RULES", 250)
    agents = "".join(f"User-agent: a{chr(97 + number)}\n" for number in range(3))
    rules = "".join(f"Disallow: /{number}\n" for number in range(300))
    text = f"{agents}{rules}User-agent: aa\nDisallow: /x\n" + "".join(
        f"Sitemap: https://example.com/{number}\n" for number in range(30)
    )
    write(robots_txt=text)
    record = run("show", "robots.txt", "--json").record
    shown = [(len(group["rules"]), group["rules_left_out"]) for group in record["groups"]]
    assert shown == [(250, 51), (0, 300)]
    done = run("show", "robots.txt")
    assert "  and 101 more rules\n" in done.out
    assert "and 10 more\n" in done.out


def test_crawlers_with_the_same_rules_and_another_pace_stay_apart(run: Run) -> None:
    write(
        robots_txt="User-agent: a\nCrawl-delay: 1\nUser-agent: b\nCrawl-delay: 60\nDisallow: /x\n"
        "User-agent: c\nUser-agent: d\nDisallow: /y\n"
    )
    groups = run("show", "robots.txt", "--json").record["groups"]
    assert [(group["tokens"], group["statements"].get("Pace")) for group in groups] == [
        (["a"], ["Crawl-delay: 1"]),
        (["b"], ["Crawl-delay: 60"]),
        (["c", "d"], None),
    ]
    assert [len(group["rules"]) for group in groups] == [1, 1, 1]


def test_the_user_agent_lines_of_a_group(run: Run) -> None:
    agents = "".join(f"User-agent: a{letter}\n" for letter in "bcdefghijkl")
    write(robots_txt=f"User-agent: *\n\nUser-agent: B\nDisallow: /\n{agents}User-agent: *\nAllow:")
    done = run("show", "robots.txt")
    assert (
        f"{show_module.OTHERS}\nGroup: lines 1, 3, 5, 6, 7, 8, 9, 10, 11, 12 and 4 more\n"
        in done.out
    )
    assert "\nb\nGroup: lines 1 and 3\n" in done.out
    assert run("show", "robots.txt", "--json").record["groups"][1]["lines"] == [1, 3]
    done = run("check", "/", "-a", "b", "--robots", "robots.txt")
    assert "Group       lines 1 and 3\n" in done.out
    assert run("check", "/", "--robots", "robots.txt", "--json").record["group_lines"][:2] == [1, 3]


def test_records_above_all_groups(run: Run) -> None:
    above = "Content-Signal: ai-train=no\nLicense: https://example.com/l\n"
    groups = "User-agent: a\nContent-Signal: search=yes\nUser-agent: b\nLicense: /b\n"
    write(robots_txt=above)
    assert "Content-Signal  ai-train=no\nLicense         https://example.com/l\n" in (
        run("show", "robots.txt").out
    )
    write(robots_txt=above + groups)
    record = run("show", "robots.txt", "--json").record
    assert [group["statements"] for group in record["groups"]] == [
        {"Content-Signal": ["search=yes"]},
        {"Content-Signal": ["ai-train=no"]},
    ]
    assert record["statements"] == {"License": ["https://example.com/l", "/b"]}


def test_a_file_with_thousands_of_groups(run: Run) -> None:
    """Each group is read once, not once for each token."""
    groups = "".join(
        f"User-agent: {''.join(letters)}\nCrawl-delay: {number}\n"
        for number, letters in zip(range(400), product(ascii_lowercase, repeat=3))
    )
    write(robots_txt=f"{groups}Disallow: /\n")
    record = run("show", "robots.txt", "--json").record
    assert len(record["groups"]) == 400
    assert "and 200 more groups\n" in run("show", "robots.txt").out


def test_the_group_of_a_policy_token_says_what_its_rules_mean(run: Run) -> None:
    write(robots_txt="User-agent: __usage_ai-training\nDisallow: /art/\n")
    shown = run("show", "robots.txt").out
    assert "__usage_ai-training (Disallow refuses train-ai, Allow grants it)" in shown
    checked = run("check", "--robots", "robots.txt", "/art/1", "-a", "mybot").out
    text = " ".join(checked.split())
    assert "train-ai: refused; robots.txt, line 2, Disallow: /art/, for __usage_ai-training" in text


def test_a_page_in_place_of_a_robots_txt_is_not_shown_as_rules(run: Run) -> None:
    write(robots_txt="<!doctype html>\n<p>Log in")
    assert "another page instead of its robots.txt" in run("show", "robots.txt").out
    assert (
        "not-robots-txt" in run("check", "--robots", "robots.txt", "/", "-a", "mybot", "--json").out
    )
    assert "R109" in run("lint", "robots.txt").out
