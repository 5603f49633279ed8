"""Which rule decides about a path."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.matcher import TOO_COMPLEX, PatternIndex, Steps, matches, matching
from scrapy_rep.protocol.paths import path_of
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.verdict import Rule
from testing.hostile import ALL, ATTACKS

from .test_robotstxt import SITE, allowed

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


def test_of_many_keys_those_in_the_path_are_found() -> None:
    index = PatternIndex([f"/*{number:05}*a" for number in range(20_000)])
    assert index.first("/x12345x/a") == 12_345
    assert index.first("/x1234/a") == 20_000


def test_matches_name_the_rule_that_decides_where_the_comparison_of_all_takes_too_many_steps() -> (
    None
):
    """The index skips rules that cannot match: no path without a ``b`` matches one of these."""
    rules = [f"Disallow: /*{'a' * length}*{'b' * 30}*{length}b\n" for length in range(20, 420)]
    robots = RobotsTxt.parse(f"User-agent: *\n{''.join(rules)}Allow: /a\n".encode())
    url = "/" + "a" * 8000
    (rule,) = robots.matches(url, "a")
    assert rule == robots.verdict(url, "a").rule == Rule(True, "/a", 402)


@pytest.mark.rule("Steps for one URL")
def test_a_comparison_counts_its_steps_below_zero() -> None:
    steps = Steps(200)
    matches("*" + "ba*" * 200, "/" + "ab" * 5_000, steps)
    assert steps.left < 0


@pytest.mark.rule("Steps for one URL")
def test_the_number_of_steps_does_not_grow_beyond_a_path_of_16_kib() -> None:
    assert Steps.of("").left < Steps.of("a" * 16_384).left == Steps.of("a" * 10**6).left


# Google, "URL matching based on path values": pattern, what matches, what does not.
FISH = (
    ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads", "/fishheads/yummy.html",
     "/fish.php?id=anything"],
    ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
)  # fmt: skip
GOOGLE_PATHS = [
    ("/", ["/", "/any/valid/URL"], []),
    ("/*", ["/", "/any/valid/URL"], []),
    ("/$", ["/"], ["/any"]),
    ("/fish", *FISH),
    ("/fish*", *FISH),
    ("/fish/", ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
     ["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"]),
    ("/*.php", ["/index.php", "/filename.php", "/folder/filename.php", "/filename.php/",
                "/folder/filename.php?parameters", "/folder/any.php.file.html"],
     ["/", "/windows.PHP"]),
    ("/*.php$", ["/filename.php", "/folder/filename.php"],
     ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"]),
    ("/fish*.php", ["/fish.php", "/fishheads/catfish.php?parameters"], ["/Fish.PHP"]),
]  # fmt: skip


@pytest.mark.rule("*, $ and #", "Examples of the RFC and of Google")
@pytest.mark.parametrize(("pattern", "matching", "others"), GOOGLE_PATHS)
def test_google_paths(pattern: str, matching: list[str], others: list[str]) -> None:
    robots_txt = f"User-agent: *\nDisallow: {pattern}\n"
    for path in matching:
        assert not allowed(robots_txt, SITE + path), path
    for path in others:
        assert allowed(robots_txt, SITE + path), path


@pytest.mark.rule("Allow and Disallow", "Length of a pattern", "Examples of the RFC and of Google")
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


@pytest.mark.rule("/robots.txt")
@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("a", "/a", True), ("$", "/", True), ("*a", "/xa", False), ("/%2F", "/%2f", False),
        ("/%2F", "//", True), ("/?a%26b", "/?a&b", True), ("/a+b", "/a%2Bb", True),
        ("/a b", "/a%20b", False), ("/a b", "/a+b", True), ("/*/feed/", "/x?u=/feed/", False),
        ("/x?u=*/a", "/x?u=https%3A%2F%2Fh%2Fa", False), ("/x?u=*/a$", "/x?u=h%2Fa", False),
        ("/x?u=/a\nallow: /x?u=", "/x?u=%2Fa", False), ("/x?u=/a", "/x?u=b", True),
        ("/%", "/%", False), ("/%2", "/%2", False), ("/%zz", "/%zz", False),
        ("/%252F", "/%2F", True), ("/a/../b", "/b", True), ("//a", "//a", False),
        ("/a*b*c", "/abc", False), ("/a*b*c$", "/abcx", True), ("/a*ba$", "/aba", False),
        ("/ab*ba$", "/aba", True), ("/a*$", "/abc", False), ("/a**", "/abc", False),
        ("/%41", "/A", False), ("/robots.txt", "/robots.txt", True), ("/", "/robots.txt?", False),
        ("/", "/%72obots.txt", True), ("/a", "/b#/a", True),
    ],
)  # fmt: skip
def test_matching(pattern: str, path: str, expected: bool) -> None:
    assert allowed(f"user-agent: *\ndisallow: {pattern}", path) is expected
    assert allowed(f"user-agent: *\ndisallow: {pattern}", SITE + path) is expected
