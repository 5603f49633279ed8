"""Patterns against patterns: inclusion, overlap, examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep import RobotsTxt
from scrapy_rep.commands.patterns import covers, examples, may_overlap
from scrapy_rep.protocol.paths import pattern_of

PATTERNS = st.builds(
    str.__add__, st.sampled_from(["/", "*", "/a", "/b"]), st.text("ab*/?:$", max_size=5)
)
PATHS = st.text("ab/?:", max_size=6).map("/".__add__)


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


@given(PATTERNS, PATTERNS, PATHS)
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
