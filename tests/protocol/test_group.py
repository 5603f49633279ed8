"""The verdicts of one group, with an index and without one."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.group import GroupMatcher
from scrapy_rep.protocol.lines import read
from scrapy_rep.protocol.parser import LENIENT, GroupText, groups
from scrapy_rep.protocol.paths import path_of
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from testing.hostile import ALL, ATTACKS


def group_of(rules: str) -> GroupMatcher:
    text = read(f"User-agent: a\n{rules}".encode())
    spans = groups(text, strict=False)[b"a"]
    return GroupMatcher("a", GroupText(text, spans, LENIENT), strict=False)


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


def test_rules_that_take_too_many_steps_disallow() -> None:
    attack = ATTACKS["permutations"]
    group = group_of(attack.body.removeprefix(ALL).decode())
    expected = Verdict(False, Reason.TOO_COMPLEX, None, "a")
    assert [group.verdict(path_of(attack.url(2048))) for _ in range(3)] == [expected] * 3
