"""Which rule decides about a path."""

from __future__ import annotations

import doctest

import pytest

from scrapy_rep.protocol import matcher
from scrapy_rep.protocol.lines import read
from scrapy_rep.protocol.matcher import (
    TOO_COMPLEX,
    GroupMatcher,
    PatternIndex,
    Steps,
    matches,
    matching,
)
from scrapy_rep.protocol.parser import GroupText, groups
from scrapy_rep.protocol.paths import path_of
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from testing.hostile import ALL, ATTACKS

from .answers import SITE, allowed


def test_the_example_of_the_index_is_right() -> None:
    result = doctest.testmod(matcher)
    assert result.attempted
    assert not result.failed


# Patterns with each kind of key and piece, and a path that each of them matches.
PATTERNS = [
    ("/*?u=/long", "/x?u=%2Flong"),  # in its encoded form
    ("/*.pdf$", "/a.pdf"),
    ("/a/*/b**c", "/a/1/b-c"),
    ("/exact$", "/exact"),
    ("/a/b*", "/a/b"),
    ("*x*y", "/1x2y"),
    ("/?u=:", "/?u=%3A"),
    ("/*?", "/b?c"),
    ("/a/", "/a/c"),
    ("/a", "/ab"),
]


@pytest.mark.parametrize("repeat", [0, 400])
@pytest.mark.parametrize(("pattern", "path"), PATTERNS)
def test_the_first_pattern_that_matches(pattern: str, path: str, repeat: int) -> None:
    # Many patterns make the index choose other keys, a long path other ways to find them.
    others = [f"/z*{number}*zz" for number in range(repeat)]
    patterns = [*others, *(one for one, _ in PATTERNS)]
    expected = patterns.index(pattern)
    index = PatternIndex(patterns)
    assert index.first(path) == expected
    assert next(matching(patterns, path)) == expected
    nothing = "/-" + "-" * 600
    assert index.first(nothing) == len(patterns)
    assert list(matching(patterns, nothing)) == []


def test_the_first_of_two_patterns_that_are_the_same_in_their_encoded_form() -> None:
    patterns = ["/a?u=%2F$", "/a?u=/$"]
    assert PatternIndex(patterns).first("/a?u=/") == next(matching(patterns, "/a?u=/")) == 0


def test_too_many_steps_end_the_matches() -> None:
    attack = ATTACKS["permutations"]
    lines = attack.body.removeprefix(ALL).decode().splitlines()
    patterns = [line.removeprefix("Disallow:") for line in lines]
    path = path_of(attack.url(2048))
    assert list(matching(["/", *patterns], path)) == [0, TOO_COMPLEX]
    assert PatternIndex(patterns).first(path) == TOO_COMPLEX
    assert RobotsTxt(attack.body).matches(path, "a") == ()
    # The steps do not matter if all patterns that are left allow.
    allows = [True] * len(patterns)
    assert PatternIndex(patterns, allows).first(path) == len(patterns)


def test_matches_name_the_rule_that_decides_where_the_comparison_of_all_takes_too_many_steps() -> (
    None
):
    """The index skips rules that cannot match: no path without a ``b`` matches one of these."""
    rules = [f"Disallow: /*{'a' * length}*{'b' * 30}*{length}b\n" for length in range(20, 420)]
    robots = RobotsTxt.parse(f"User-agent: *\n{''.join(rules)}Allow: /a\n".encode())
    url = "/" + "a" * 8000
    (rule,) = robots.matches(url, "a")
    assert rule == robots.verdict(url, "a").rule == Rule(True, "/a", 402)


SHOP = "/shop/item/42?size=m"

# Each pattern, and whether it matches SHOP.
SHOP_PATTERNS = [
    ("/", True),
    ("/shop", True),
    ("/shopping", False),
    ("/shop/item/42?size=m$", True),  # the whole path, without a star
    ("/shop/item$", False),
    ("/shop/*/42", True),
    ("/shop/*/43", False),
    ("/shop/*42?size=m$", True),
    ("/shop/*42$", False),
    ("/sh*p/**/42", True),  # two stars in a row
    ("/s*", True),
    ("/a*", False),  # fails at its first piece
    ("/shopping*cart", False),  # fails in the middle of its first piece
    ("/shopping*list", False),
    ("*", True),
    ("*item", True),
    ("*items", False),
    ("*size=m$", True),
    ("*" + "*".join(SHOP) + "*", True),  # many pieces
    ("*" + "*".join(SHOP) + "*x", False),
    ("/shop*nothing*42", False),  # a piece in the middle is nowhere
]


@pytest.mark.parametrize(("pattern", "expected"), SHOP_PATTERNS)
def test_a_pattern_matches_with_steps_and_without(pattern: str, expected: bool) -> None:
    steps = Steps.of(SHOP)
    assert matches(pattern, SHOP) is matches(pattern, SHOP, steps) is expected
    assert 0 < steps.left < Steps.of(SHOP).left


def test_a_comparison_counts_its_steps_below_zero() -> None:
    steps = Steps(200)
    matches("*" + "ba*" * 200, "/" + "ab" * 5_000, steps)
    assert steps.left < 0


def test_the_number_of_steps_does_not_grow_beyond_a_path_of_16_kib() -> None:
    assert Steps.of("").left < Steps.of("a" * 16_384).left == Steps.of("a" * 10**6).left


# The verdicts of one group, with an index and without one.


def group_of(rules: str) -> GroupMatcher:
    text = read(f"User-agent: a\n{rules}".encode())
    spans = groups(text, strict=False)[b"a"]
    return GroupMatcher("a", GroupText(text, spans, strict=False))


MANY = "\n".join(f"Disallow: /{number}" for number in range(200))


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("Disallow: /x", "/x/y", Verdict(False, Reason.RULES, Rule(False, "/x", 2), "a")),
        ("Disallow: /\nAllow: /x", "/x", Verdict(True, Reason.RULES, Rule(True, "/x", 3), "a")),
        ("Disallow: /x", "/y", Verdict(True, Reason.RULES, None, "a")),
        ("Disallow: x", "/y", Verdict(True, Reason.RULES, None, "a")),
        ("Disallow:", "/y", Verdict(True, Reason.NO_RULES, None, "a")),
        ("", "/y", Verdict(True, Reason.NO_RULES, None, "a")),
        (MANY, "/150", Verdict(False, Reason.RULES, Rule(False, "/150", 152), "a")),
        ("Disallow: /", "/robots.txt", Verdict(True, Reason.NO_RULES)),
    ],
)
def test_each_question_has_the_same_verdict(rules: str, path: str, expected: Verdict) -> None:
    group = group_of(rules)
    assert [group.verdict(path) for _ in range(3)] == [expected] * 3


def test_the_second_question_builds_the_index() -> None:
    group = group_of("Disallow: /x\nAllow: /x/y")
    assert group.verdict("/robots.txt").allowed
    assert group.verdict("/x").rule == Rule(False, "/x", 2)
    indexes = [group.index]
    assert group.verdict("/x").rule == Rule(False, "/x", 2)
    indexes.append(group.index)
    assert group.verdict("/x/y").rule == Rule(True, "/x/y", 3)
    indexes.append(group.index)
    assert [index is not None for index in indexes] == [False, True, True]
    assert indexes[1] is indexes[2]
    assert group.allows == (True, False, True, False)  # two rules, none matches, too complex


def test_a_first_question_about_many_rules_builds_the_index() -> None:
    group = group_of(MANY.replace("/", "/*"))
    assert not group.verdict("/7").allowed
    assert group.index is not None


# Google, "URL matching based on path values": pattern, what matches, what does not.
GOOGLE_PATHS = [
    ("/", ["/", "/any/valid/URL"], []),
    ("/*", ["/", "/any/valid/URL"], []),
    ("/$", ["/"], ["/any"]),
    (
        "/fish",
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html",
         "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    (
        "/fish*",
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html",
         "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    (
        "/fish/",
        ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
        ["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
    ),
    (
        "/*.php",
        ["/index.php", "/filename.php", "/folder/filename.php",
         "/folder/filename.php?parameters", "/folder/any.php.file.html", "/filename.php/"],
        ["/", "/windows.PHP"],
    ),
    (
        "/*.php$",
        ["/filename.php", "/folder/filename.php"],
        ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"],
    ),
    (
        "/fish*.php",
        ["/fish.php", "/fishheads/catfish.php?parameters"],
        ["/Fish.PHP"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "matching", "others"), GOOGLE_PATHS)
def test_google_paths(pattern: str, matching: list[str], others: list[str]) -> None:
    robots_txt = f"User-agent: *\nDisallow: {pattern}\n"
    for path in matching:
        assert not allowed(robots_txt, SITE + path), path
    for path in others:
        assert allowed(robots_txt, SITE + path), path


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("allow: /p\ndisallow: /", "/page", True),
        ("allow: /folder\ndisallow: /folder", "/folder/page", True),
        ("allow: /page\ndisallow: /*.htm", "/page.htm", False),
        ("allow: /page\ndisallow: /*.ph", "/page.php5", True),
        ("allow: /$\ndisallow: /", "/", True),
        ("allow: /$\ndisallow: /", "/page.htm", False),
    ],
)
def test_google_precedence(rules: str, path: str, expected: bool) -> None:
    assert allowed(f"user-agent: *\n{rules}", SITE + path) is expected


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ("disallow: a", "/a", True),
        ("disallow: $", "/", True),
        ("disallow: *a", "/xa", False),
        ("disallow: /%2F", "/%2f", False),
        ("disallow: /%2F", "//", True),
        ("disallow: /?a%26b", "/?a&b", True),
        ("disallow: /a+b", "/a%2Bb", True),
        ("disallow: /a b", "/a%20b", False),
        ("disallow: /a b", "/a+b", True),
        ("disallow: /*/feed/", "/x?u=/feed/", False),
        ("disallow: /x?u=*/a", "/x?u=https%3A%2F%2Fh%2Fa", False),
        ("disallow: /x?u=*/a$", "/x?u=h%2Fa", False),
        ("disallow: /x?u=/a\nallow: /x?u=", "/x?u=%2Fa", False),
        ("disallow: /x?u=/a", "/x?u=b", True),
        ("disallow: /%", "/%", False),
        ("disallow: /%2", "/%2", False),
        ("disallow: /%zz", "/%zz", False),
        ("disallow: /%252F", "/%2F", True),
        ("disallow: /a/../b", "/b", True),
        ("disallow: //a", "//a", False),
        ("disallow: /a*b*c", "/abc", False),
        ("disallow: /a*b*c$", "/abcx", True),
        ("disallow: /a*ba$", "/aba", False),
        ("disallow: /ab*ba$", "/aba", True),
        ("disallow: /a*$", "/abc", False),
        ("disallow: /a**", "/abc", False),
        ("disallow: /%41", "/A", False),
        ("disallow: /robots.txt", "/robots.txt", True),
        ("disallow: /", "/robots.txt?", False),
        ("disallow: /", "/%72obots.txt", True),
        ("disallow: /a", "/b#/a", True),
    ],
)
def test_matching(rules: str, path: str, expected: bool) -> None:
    assert allowed(f"user-agent: *\n{rules}", path) is expected
    assert allowed(f"user-agent: *\n{rules}", SITE + path) is expected
