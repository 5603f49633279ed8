"""Which rule decides about a path."""

from __future__ import annotations

import doctest

import pytest

from scrapy_rep.protocol import matcher
from scrapy_rep.protocol.matcher import TOO_COMPLEX, PatternIndex, first_match, matching, rank
from scrapy_rep.protocol.paths import path_of
from testing.hostile import ALL, ATTACKS

from .answers import SITE, allowed


def test_the_example_of_the_index_is_right() -> None:
    result = doctest.testmod(matcher)
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize(
    ("rules", "ranked"),
    [
        ([(False, b"/a"), (False, b"/ab"), (True, b"/b")], ["-/ab", "+/b", "-/a"]),
        ([(False, b"/a"), (False, b"/b")], ["-/a", "-/b"]),  # in the order of the file
        ([(False, b"/a"), (True, b"/a"), (True, b"/a")], ["+/a"]),  # one rule, and allow wins
        ([(False, b"/%61")], ["-/a"]),
        ([(False, b"a"), (False, b"$")], []),  # no path begins so
        ([(True, b"/d/index.htm")], ["+/d/index.htm", "+/d/$"]),
        ([(False, b"/d/index.htm")], ["-/d/index.htm"]),
        ([(True, b"/index.html/x")], ["+/index.html/x"]),
    ],
)
def test_rules_in_their_order_of_precedence(
    rules: list[tuple[bool, bytes]], ranked: list[str]
) -> None:
    raw = [(allow, value, position) for position, (allow, value) in enumerate(rules)]
    found = rank(raw, strict=False)
    assert ["+-"[disallow] + pattern for _, disallow, _, pattern in found] == ranked
    assert len(rank(raw, strict=True)) == len([one for one in ranked if one != "+/d/$"])


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
    assert index.first(path) == first_match(patterns, path) == expected
    assert next(matching(patterns, path)) == expected
    nothing = "/-" + "-" * 600
    assert index.first(nothing) == first_match(patterns, nothing) == len(patterns)
    assert list(matching(patterns, nothing)) == []


def test_a_reserved_query_that_matches_in_neither_form() -> None:
    assert list(matching(["/?u=/a", "/?u=:", "/"], "/?u=/b")) == [2]
    assert first_match(["/?u=/a", "/?u=:"], "/?u=/b") == 2


def test_the_first_of_two_patterns_that_are_the_same_in_their_encoded_form() -> None:
    patterns = ["/a?u=%2F$", "/a?u=/$"]
    assert PatternIndex(patterns).first("/a?u=/") == first_match(patterns, "/a?u=/") == 0


def test_all_patterns_that_match_in_their_order() -> None:
    assert list(matching(["/a/b", "/c", "/a", "/*b$", "/"], "/a/b")) == [0, 2, 3, 4]


def test_too_many_steps_end_the_matches() -> None:
    attack = ATTACKS["permutations"]
    lines = attack.body.removeprefix(ALL).decode().splitlines()
    patterns = [line.removeprefix("Disallow:") for line in lines]
    path = path_of(attack.url(2048))
    assert list(matching(["/", *patterns], path)) == [0, TOO_COMPLEX]
    assert first_match(patterns, path) == TOO_COMPLEX
    assert PatternIndex(patterns).first(path) == TOO_COMPLEX
    # The steps do not matter if all patterns that are left allow.
    allows = [True] * len(patterns)
    assert PatternIndex(patterns, allows).first(path) == len(patterns)


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
