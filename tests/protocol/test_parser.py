"""Lines, records and groups."""

from __future__ import annotations

import pytest

from .test_robotstxt import allowed


@pytest.mark.rule("Other records between user-agent lines", "Other records")
def test_google_only_rules_end_a_group() -> None:
    robots_txt = """
user-agent: a
sitemap: https://example.com/sitemap.xml
crawl-delay: 5
unknown: x

user-agent: b
disallow: /
"""
    assert not allowed(robots_txt, "/", "a")
    assert not allowed(robots_txt, "/", "b")


@pytest.mark.rule("Misspelled names", "Longer names", "A missing colon")
@pytest.mark.parametrize(
    ("line", "lenient"),
    [
        ("dissallow: /a", True), ("dissalow: /a", True), ("disalow: /a", True),
        ("diasllow: /a", True), ("disallaw: /a", True), ("DISALLAW : /a", True),
        ("disallow /a", True), ("disallow\t/a # why", True), ("disallow /a b", False),
        ("disallowed: /a", True), ("Disallow all of: /a", True), ("disallowed /a", True),
        ("disallow /b: /a", True), ("dissallowing : /a", True), ("allow-not: /a", False),
        ("xdisallow: /a", False), ("disallow # x: /a", False),
        ("disallow", False), ("disallow =/a", False),
    ],
)  # fmt: skip
def test_google_typos(line: str, lenient: bool) -> None:
    assert allowed(f"user-agent: *\n{line}", "/a") is not lenient
    assert allowed(f"user-agent: *\n{line}", "/a", strict=True)


@pytest.mark.rule("Misspelled names", "Longer names")
@pytest.mark.parametrize("line", ["useragent: foobot", "user agent: foobot", "user-agent foobot"])
def test_google_typos_of_user_agent(line: str) -> None:
    assert not allowed(f"{line}\ndisallow: /", "/a")
    assert allowed(f"{line}\ndisallow: /", "/a", strict=True)


@pytest.mark.rule("User-agent lines", "Tokens with digits")
@pytest.mark.parametrize(
    ("robots_txt", "agent", "expected"),
    [
        ("user-agent: mybot/2.1\ndisallow: /", "mybot", False),
        ("user-agent: MyBot\ndisallow: /", "mYbOT", False),
        ("user-agent: my\ndisallow: /", "mybot", True),
        ("user-agent: mybot\ndisallow: /", "my", True),
        ("user-agent: * everyone\ndisallow: /", "mybot", False),
        ("user-agent: *bot\ndisallow: /", "mybot", True),
        ("user-agent: MJ12bot\ndisallow: /", "mj12bot", False),
        ("user-agent: MJ12bot/v1.4\ndisallow: /", "MJ12bot", False),
        ("user-agent: MJ13bot\ndisallow: /", "mj12bot", True),
        ("user-agent: mj\ndisallow: /", "mj12bot", True),
        ("user-agent: MJ12bot\ndisallow: /", "mj", False),
        ("user-agent: бот\ndisallow: /", "бот", True), ("user-agent:\ndisallow: /", "", True),
        ("user-agent: *\nallow: /\nuser-agent:\ndisallow: /", "mybot", True),
        ("disallow: /", "mybot", True),
        ("user-agent: *\ndisallow: /\nuser-agent: mybot\ndisallow:", "mybot", True),
        ("user-agent: *\ndisallow: /\nuser-agent: mybot", "mybot", True),
        ("user-agent: *\ndisallow: /", "*", False),
    ],
)  # fmt: skip
def test_groups_and_tokens(robots_txt: str, agent: str, expected: bool) -> None:
    assert allowed(robots_txt, "/", agent) is expected
