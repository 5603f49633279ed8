from __future__ import annotations

import pytest

from scrapy_rep import Reason, Verdict
from scrapy_rep.protocol.local_rules import (
    LocalRule,
    LocalRules,
    parse_local_rules,
)

MEMBERS = parse_local_rules("Disallow: /members/\nAllow: /members/$\n", allow=False)
ARCHIVE = parse_local_rules("# by contract\n\nAllow: /archive/\nDisallow: /*.zip$", allow=True)
RULES = LocalRules(
    (LocalRule(MEMBERS, "by mail (owner)"), LocalRule(MEMBERS, "too late", 100)),
    (LocalRule(ARCHIVE, "by contract (owner)", 100),),
)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.com/members/1", False),
        ("/members/", None),  # the Allow line of the same rule
        ("/other", None),
        ("/robots.txt", None),
    ],
)
def test_a_disallow_decides_for_what_it_matches(url: str, allowed: bool | None) -> None:
    expected = None
    if allowed is not None:
        expected = Verdict(allowed, Reason.LOCAL_RULE, detail="by mail (owner)")
    assert RULES.disallowed(url, 0) == expected


@pytest.mark.parametrize(
    ("url", "is_excepted"),
    [("/archive/1", True), ("/archive/1.zip", True), ("/a.zip", False), ("/other", False)],
)
def test_an_exception_allows_what_it_matches(url: str, is_excepted: bool) -> None:
    verdict = RULES.excepted(url, 99)
    assert verdict == (
        Verdict(True, Reason.LOCAL_RULE, detail="by contract (owner)") if is_excepted else None
    )
    assert RULES.excepted(url, 100) is None  # out of date


def test_the_log_names_the_reason_and_who_gave_it() -> None:
    assert str(RULES.disallowed("/members/1", 0)) == "local-rule: by mail (owner)"


@pytest.mark.parametrize(
    ("text", "allow", "message"),
    [
        ("Disallow: /a\nfoo", False, "line 2 of the rules is neither 'Allow: PATTERN' nor"),
        ("User-agent: a", False, "line 1 of the rules is neither"),
        ("Crawl-delay: 5", False, "line 1 of the rules is neither"),
        ("\nDisallow:", False, "line 2 of the rules has no pattern; write '/'"),
        ("Disallow: a", False, "line 1 of the rules: the pattern 'a' never matches; write '/a'"),
        ("Allow: /", False, "the rules have no disallow line"),
        ("Disallow: /", True, "the rules have no allow line"),
        ("# nothing", True, "the rules have no allow line"),
        ("Allow: /\n" + "#" * 512_000, True, "nothing is read from here on"),
    ],
)
def test_other_lines_are_refused(text: str, allow: bool, message: str) -> None:
    with pytest.raises(ValueError, match="line") as error:
        parse_local_rules(text, allow=allow)
    assert message in str(error.value)
