"""Findings about rules that never decide, and about what is stated more than once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.lint import lint
from scrapy_rep.protocol.robotstxt import RobotsTxt

from .test_properties import paths, patterns

ALL = "User-agent: *\n"


def dead(rules: str) -> dict[int, str]:
    """Return the lines of the rules that never decide, from 1, with the reason."""
    findings = lint((ALL + rules).encode(), select=["never-decides"])
    return {finding.line - 1: finding.message.partition(": ")[2] for finding in findings}


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        pytest.param("Disallow: /a\nAllow: /a", {1: 2}, id="allow wins"),
        pytest.param("Disallow: /a\nAllow: /%61", {1: 2}, id="another spelling"),
        pytest.param("Disallow: /a*c\nAllow: /a*b*c", {}, id="fewer paths"),
        pytest.param("Disallow: /a*\nAllow: /a", {2: 1}, id="a star at the end"),
        pytest.param("Disallow: /a*$\nAllow: /a**", {1: 2}, id="a star and the end"),
        pytest.param("Disallow: /a*b\nAllow: /a***b", {1: 2}, id="several stars"),
        pytest.param("Disallow: /a\nAllow: /*a$", {}, id="only some of the paths"),
        pytest.param("Disallow: a\nAllow: /", {}, id="never matches: another finding"),
        pytest.param(
            "Allow: /a/index.html\nAllow: /a/index.html*", {}, id="it decides about the folder"
        ),
        pytest.param(
            "Allow: /a/index.html\nAllow: /a/index.html*\nAllow: /a/$",
            {3: 1}, id="the folder has a rule of its own",
        ),
        pytest.param("Disallow: /x?u=/f\nAllow: /x?u=/f", {1: 2}, id="a query"),
    ],
)  # fmt: skip
def test_rules_that_never_decide(rules: str, lines: dict[int, int]) -> None:
    expected = {line: f"line {winner + 1} does" for line, winner in lines.items()}
    assert dead(rules) == expected


def test_a_rule_that_decides_for_one_of_several_groups_is_no_finding() -> None:
    rules = "User-agent: a\nUser-agent: b\nDisallow: /x\nUser-agent: b\nAllow: /x*"
    assert lint(rules.encode(), select=["R404"]) == []
    assert not RobotsTxt(rules.encode()).allowed("/x", "a")


rules = st.lists(
    st.tuples(
        st.sampled_from(["Allow", "Disallow"]),
        st.one_of(
            patterns.map(lambda text: text.replace("#", "").replace("\0", "")),
            st.lists(st.sampled_from([*"//**ab$?", "/index.html"]), max_size=7).map("".join),
        ),
    ),
    max_size=8,
).map(lambda found: "".join(f"{field}: {value}\n" for field, value in found))


@given(rules, paths)
def test_a_rule_that_is_found_never_decides(rules: str, path: str) -> None:
    found = dead(rules)
    verdict = RobotsTxt.parse((ALL + rules).encode()).verdict(path, "a")
    assert verdict.rule is None or verdict.rule.line - 1 not in found
