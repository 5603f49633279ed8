from __future__ import annotations

import pytest

from scrapy_rep import Reason, Verdict
from scrapy_rep.protocol.local_rules import LocalRule, LocalRules, parse_local_rules

MEMBERS = parse_local_rules("Disallow: /members/\nAllow: /members/$\n", allow=False)
ARCHIVE = parse_local_rules("# by contract\n\nAllow: /archive/\nDisallow: /*.zip$", allow=True)
RULES = LocalRules(
    (LocalRule(MEMBERS, "by mail (owner)"), LocalRule(MEMBERS, "too late", 100)),
    (LocalRule(ARCHIVE, "by contract (owner)", 100),),
)


@pytest.mark.parametrize(
    ("url", "is_disallowed", "is_excepted"),
    [
        ("https://example.com/members/1", True, False),
        ("/members/", False, False),  # the Allow line of the same rule
        ("/archive/1", False, True), ("/archive/1.zip", False, True), ("/a.zip", False, False),
        ("/other", False, False), ("/robots.txt", False, False),
    ],
)  # fmt: skip
def test_a_rule_decides_for_what_it_matches(
    url: str, is_disallowed: bool, is_excepted: bool
) -> None:
    disallowed = Verdict(False, Reason.LOCAL_RULE, detail="by mail (owner)")
    excepted = Verdict(True, Reason.LOCAL_RULE, detail="by contract (owner)")
    assert RULES.disallowed(url, 0) == (disallowed if is_disallowed else None)
    assert RULES.excepted(url, 99) == (excepted if is_excepted else None)
    assert RULES.excepted(url, 100) is None  # out of date
    assert str(disallowed) == "local-rule: by mail (owner)"


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
)  # fmt: skip
def test_other_lines_are_refused(text: str, allow: bool, message: str) -> None:
    with pytest.raises(ValueError, match="line") as error:
        parse_local_rules(text, allow=allow)
    assert message in str(error.value)
