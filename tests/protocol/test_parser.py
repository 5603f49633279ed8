"""Lines, records and groups."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.lines import read
from scrapy_rep.protocol.parser import (
    GroupText,
    Record,
    groups,
    parse_line,
    records,
)

from .answers import allowed


@pytest.mark.parametrize(
    ("line", "strict", "lenient"),
    [
        (b"Disallow: /a", (b"disallow", b"/a"), (b"disallow", b"/a")),
        (b"DISALLOW\t:\v/a \f# why", (b"disallow", b"/a"), (b"disallow", b"/a")),
        (b"Allow:", (b"allow", b""), (b"allow", b"")),
        (b"Sitemap: https://h/s.xml", (b"sitemap", b"https://h/s.xml"), "as strict"),
        (b"Crawl delay: 1", (b"crawl delay", b"1"), (b"crawl-delay", b"1")),
        (b"Sitemaps: /s", (b"sitemaps", b"/s"), (b"sitemap", b"/s")),
        (b"foo: bar: baz", (b"foo", b"bar: baz"), "as strict"),
        (b": /a", (b"", b"/a"), "as strict"),
        (b"Disallow /a", None, (b"disallow", b"/a")),  # exactly two words
        (b"Disallow /a /b", None, None),
        (b"Disallow", None, None),
        (b"# Disallow: /a", None, None),
        (b"", None, None),
    ],
)
def test_a_line_is_a_record_or_none(
    line: bytes, strict: tuple[bytes, bytes] | None, lenient: tuple[bytes, bytes] | str | None
) -> None:
    lenient = strict if isinstance(lenient, str) else lenient
    for expected, is_strict in ((strict, True), (lenient, False)):
        record = parse_line(line, 7, strict=is_strict)
        assert record == (Record(7, *expected) if expected else None)


def test_records_have_the_numbers_of_their_lines() -> None:
    text = read(b"# one\r\nUser-agent: a\r\r\nnothing here at all\nDisallow /b")
    assert list(records(text, strict=False)) == [(2, b"user-agent", b"a"), (5, b"disallow", b"/b")]
    assert list(records(text, strict=True)) == [(2, b"user-agent", b"a")]


RUNS = b"""
Disallow: /before
User-agent: a
User-agent: B/2 # b
Disallow: /ab
disalow: /typo
User-agent: *
Sitemap: /s
Crawl-delay: 1
User-agent: a
Allow: /all and a
Disallow:
User-agent: c
User-agent: a
Disallow: /c
"""


@pytest.mark.parametrize(
    ("token", "strict", "rules"),
    [
        (b"a", True, [(False, b"/ab"), (True, b"/all and a"), (False, b"/c")]),
        (b"a", False, [(False, b"/ab"), (False, b"/typo"), (True, b"/all and a"), (False, b"/c")]),
        (b"b", True, [(False, b"/ab")]),
        (b"*", True, [(True, b"/all and a")]),
        (b"c", True, [(False, b"/c")]),
    ],
)
def test_rfc_groups_of_a_token_are_one(
    token: bytes, strict: bool, rules: list[tuple[bool, bytes]]
) -> None:
    found = groups(RUNS, strict=strict)
    assert set(found) == {b"a", b"b", b"*", b"c"}
    group = GroupText(RUNS, found[token], strict)
    assert [(allow, value) for allow, value, _ in group.rules()] == rules
    for allow, value, position in group.rules():
        assert group.rule_at(position, 7) == (allow, value.decode(), 7)


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


@pytest.mark.parametrize("line", ["useragent: foobot", "user agent: foobot", "user-agent foobot"])
def test_google_typos_of_user_agent(line: str) -> None:
    assert not allowed(f"{line}\ndisallow: /", "/a")
    assert allowed(f"{line}\ndisallow: /", "/a", strict=True)


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
        ("user-agent: бот\ndisallow: /", "бот", True),
        ("user-agent:\ndisallow: /", "", True),
        ("user-agent: *\nallow: /\nuser-agent:\ndisallow: /", "mybot", True),
        ("disallow: /", "mybot", True),
        ("user-agent: *\ndisallow: /\nuser-agent: mybot\ndisallow:", "mybot", True),
        ("user-agent: *\ndisallow: /\nuser-agent: mybot", "mybot", True),
        ("user-agent: *\ndisallow: /", "*", False),
    ],
)
def test_groups_and_tokens(robots_txt: str, agent: str, expected: bool) -> None:
    assert allowed(robots_txt, "/", agent) is expected
