"""Text from a site is escaped and cut before it is shown."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.lint import lint
from scrapy_rep.protocol.printable import cut, printable
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.verdict import MAX_PATTERN_LENGTH, Reason, Rule, Verdict


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/a b?c=é ツ \\x1b", "/a b?c=é ツ \\x1b"), ("\x00\t\n\r\x1f\x7f", r"\x00\t\n\r\x1f\x7f"),
        ("\x1b[31m\x07", r"\x1b[31m\x07"),  # a color, and BEL
        ("\x1b]0;title\x9c", r"\x1b]0;title\x9c"),  # OSC, and its C1 terminator
        ("\u200e\u200f\u061c\u202a\u202e", r"\u200e\u200f\u061c\u202a\u202e"),  # bidirectional
        ("\u2028\u2029\ufeff\u200b", r"\u2028\u2029\ufeff\u200b"),
        ("\ud800\udfff", r"\ud800\udfff"),
        ("\U000e0041", r"\U000e0041"),  # a tag, which nothing shows
        ("a" * 201, "a" * 199 + "…"), ("a" * 196 + "\x1b", "a" * 196 + r"\x1b"),
        ("a" * 197 + "\x1b", "a" * 197 + "…"),  # an escape is whole or not there
        ("\x1b" * 500_000, r"\x1b" * 49 + "…"),
    ],
)  # fmt: skip
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(st.characters(), max_size=60), st.integers(1, 50))
def test_the_result_is_printable_and_short(text: str, length: int) -> None:
    shown = printable(text, length)
    assert shown.isprintable()
    assert len(shown) <= length
    assert printable(shown, length) == shown
    shown.encode()  # no lone surrogate
    assert len(cut(text, length)) <= length


def test_str_of_verdicts() -> None:
    robots = RobotsTxt.parse(b"User-agent: mybot\nAllow: /private/a\nDisallow: /private")
    assert str(robots.verdict("/private/a", "mybot")) == "line 2, Allow: /private/a, for mybot"
    assert str(robots.verdict("/a", "mybot")) == "no rule matches"
    verdict = Verdict(False, Reason.RULES, Rule(False, "/\x1b[2J", 1), "a\x07")
    assert str(verdict) == r"line 1, Disallow: /\x1b[2J, for a\x07"


def test_a_verdict_with_a_long_pattern_is_small() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /" + "ツ*".encode() * 2000)
    for _ in range(2):
        verdict = robots.verdict("/" + "ツ" * 2000, "a")
        assert verdict.rule is not None
        assert len(verdict.rule.pattern) == MAX_PATTERN_LENGTH == 1000
        assert verdict.rule.pattern == "/" + "ツ*" * 499 + "…"
        assert len(pickle.dumps(verdict)) < 4000
        assert len(str(verdict)) < 250
    exact = RobotsTxt.parse(b"User-agent: *\nDisallow: /" + b"a" * 999)
    rule = exact.verdict("/" + "a" * 999, "a").rule
    assert rule is not None
    assert rule.pattern == "/" + "a" * 999


@pytest.mark.parametrize(
    "line",
    [
        b"Disallow: %b", b"%b: /", b"%b", b"%b %b", b"User-agent: %b", b"Sitemap: %b",
        b"Crawl-delay: %b", b"Request-rate: %b", b"Visit-time: %b", b"Content-Usage: %b",
        b"Content-Signal: %b", b"License: %b",
        b"User-agent: a%b\nDisallow: /\nUser-agent: b\nDisallow: /\nUser-agent: a%b\nDisallow: /",
        b"User-agent: *\nDisallow: /%b\nDisallow: /%b*",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "value", ["\x1b]0;a\x07", "\x9b\u202e\u2066", "\x7f", "x" * 5000, "http://a/" + "x" * 5000]
)
def test_lint_cuts_and_escapes_its_quotations(line: bytes, value: str) -> None:
    findings = lint(line.replace(b"%b", value.encode()))
    for finding in findings:
        assert str(finding).isprintable()
        assert len(str(finding)) < 1000
