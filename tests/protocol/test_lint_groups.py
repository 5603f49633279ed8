"""Findings about rules that never decide, and about what is stated more than once."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_rep.protocol import lint_groups
from scrapy_rep.protocol.lint import Steps, lint
from scrapy_rep.protocol.matcher import one_star, sample_paths
from scrapy_rep.protocol.paths import pattern_has_reserved_query, pattern_of
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
        pytest.param("Disallow: /a\nDisallow: /a", {2: 1}, id="the same again"),
        pytest.param("Disallow: /ab\nAllow: /*a*b", {1: 2}, id="a longer pattern for more paths"),
        pytest.param("Disallow: /ab\nAllow: /a*b", {1: 2}, id="a star in the middle"),
        pytest.param("Disallow: /ab\nAllow: /b*a", {}, id="other paths"),
        pytest.param("Disallow: /a*c\nAllow: /a*b*c", {}, id="fewer paths"),
        pytest.param("Disallow: /a*b*c\nAllow: /a*c", {}, id="shorter, for more paths"),
        pytest.param("Disallow: /a*bc\nAllow: /a*b*c*", {1: 2}, id="stars in both"),
        pytest.param("Disallow: /a$\nAllow: /*a", {1: 2}, id="a single path"),
        pytest.param("Disallow: /a*$\nAllow: /**a", {1: 2}, id="a star at the end"),
        pytest.param("Disallow: /a\nAllow: /*a$", {}, id="only some of the paths"),
        pytest.param("Disallow: *\nAllow: /", {1: 2}, id="every path begins with a slash"),
        pytest.param("Disallow: *a\nAllow: /*a", {1: 2}, id="a slash in place of the star"),
        pytest.param("Disallow: */a\nAllow: /*/a", {}, id="a star that may match nothing"),
        pytest.param("Disallow: */a\nAllow: /*/a\nAllow: /a**", {1: 2}, id="two together"),
        pytest.param("Disallow: */a\nAllow: **/a", {1: 2}, id="two stars"),
        pytest.param("Disallow: *$\nAllow: /**", {1: 2}, id="a star and the end"),
        pytest.param("Disallow: /%61\nAllow: /a*", {1: 2}, id="encoded"),
        pytest.param("Disallow: /a$b\nAllow: /a%24*", {1: 2}, id="a dollar within"),
        pytest.param("Disallow: a\nAllow: /", {}, id="never matches: another finding"),
        pytest.param("Disallow:\nAllow: /a", {}, id="no rule"),
        pytest.param(
            "Allow: /a/index.html\nAllow: /a/index.html*", {}, id="it decides about the folder"
        ),
        pytest.param(
            "Allow: /a/index.html\nAllow: /a/index.html*\nAllow: /*a/*$",
            {1: 2}, id="nor about the folder",
        ),
        pytest.param("Disallow: /x?a=b\nAllow: /x*a=b", {1: 2}, id="a query"),
        pytest.param("Disallow: /x?u=/f\nAllow: /x*u=/f", {}, id="its encoded form as well"),
        pytest.param("Disallow: /x?u=/f\nAllow: /x?*******", {}, id="not compared"),
        pytest.param("Disallow: /%2Fb?c\nAllow: /*?%2F*", {}, id="encoded on one side"),
    ],
)  # fmt: skip
def test_rules_that_never_decide(rules: str, lines: dict[int, int]) -> None:
    expected = {line: f"line {winner + 1} does" for line, winner in lines.items()}
    assert dead(rules) == expected


@pytest.mark.parametrize(
    "rules",
    [
        "Disallow: /a\nAllow: /a\nUser-agent: b\nDisallow: /b",
        "Allow: /robots.txt$\nUser-agent: b\nDisallow: /b",
        "Allow: /robots.txt$\nAllow: /robots.txt$\nUser-agent: b\nAllow: /",
        "Allow: /robots.txt$\nCrawl-delay: 1\nUser-agent: b\nDisallow: /b",
        "Disallow: /a\nUser-agent: b\nAllow: /robots.txt$",
    ],
)
def test_the_advice_changes_no_verdict(rules: str) -> None:
    body = ALL + rules
    findings = lint(body.encode(), select=["never-decides"])
    assert findings
    lines = body.split("\n")
    for finding in findings:
        lines[finding.line - 1] = "Disallow:"
    for token in ("a", "b"):
        before, after = (RobotsTxt(text.encode()) for text in (body, "\n".join(lines)))
        for path in ("/", "/a", "/b", "/robots.txts"):
            assert before.allowed(path, token) == after.allowed(path, token)


@pytest.mark.parametrize("field", ["Allow", "Disallow"])
def test_rfc_no_rule_decides_about_robots_txt(field: str) -> None:
    assert dead(f"{field}: /robots.txt$") == {1: "/robots.txt is always allowed"}
    assert dead(f"{field}: /robots.txt") == {}


def test_a_rule_that_decides_for_one_of_several_groups_is_no_finding() -> None:
    rules = "User-agent: a\nUser-agent: b\nDisallow: /x\nUser-agent: b\nAllow: /x*"
    assert lint(rules.encode(), select=["R404"]) == []
    assert not RobotsTxt(rules.encode()).allowed("/x", "a")


def test_groups_that_share_too_many_rules_are_not_compared() -> None:
    run = "".join(f"User-agent: a{number}\n" for number in range(300))
    rules = "".join(f"Disallow: /{number}\n" for number in range(1000))
    apart = "".join(f"User-agent: a{number}\nDisallow: /1\n" for number in range(300))
    codes = {str(finding.code) for finding in lint((run + rules + apart).encode())}
    assert codes == {"R305", "R307", "R308"}


RULES = (ALL + "Disallow: /a\nDisallow: /b\nDisallow: /ab\nAllow: /*a*b\nAllow: /ab").encode()


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (10_000, [(4, "R404"), (6, "R404")]),
        (450, [(1, "R308"), (4, "R404")]),  # equal patterns are found without a comparison
        (50, [(1, "R308")]),
        (0, [(1, "R308")]),
    ],
)
def test_a_file_is_searched_within_its_steps(left: int, expected: list[tuple[int, str]]) -> None:
    found = lint(RULES, steps=Steps(left))
    assert [(one.line, str(one.code)) for one in found] == expected


def test_the_steps_of_several_files_are_shared() -> None:
    steps = Steps(10_000)
    counts = [len(lint(RULES, steps=steps, select=["R404"])) for _ in range(40)]
    assert counts[0] == 2
    assert counts[-1] == 0
    assert [str(one.code) for one in lint(RULES, steps=steps)] == ["R308"]


def test_a_comparison_that_takes_too_many_steps_is_no_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lint_groups, "_MAX_STEPS", 0)
    long = "a" * 600
    rules = "".join(f"Disallow: /*{n}*{long}{n}\n" for n in range(100))
    assert dead(rules + f"Disallow: /x?{long}/\nDisallow: /{long}") == {}


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


@settings(max_examples=500)
@given(rules, paths)
def test_a_rule_that_is_found_never_decides(rules: str, path: str) -> None:
    found = dead(rules)
    verdict = RobotsTxt.parse((ALL + rules).encode()).verdict(path, "a")
    assert verdict.rule is None or verdict.rule.line - 1 not in found


@settings(max_examples=500)
@given(rules)
@example("Disallow: /x?u=/f\nAllow: /x*u=/f")
@example("Allow: /index.html")
def test_a_rule_that_is_not_found_decides_about_a_path(rules: str) -> None:
    found = dead(rules)
    robots = RobotsTxt.parse((ALL + rules).encode())
    for rule in robots.groups[0].rules if robots.groups else ():
        if rule.line - 1 in found or not rule.pattern.startswith(("/", "*")):
            continue
        pattern = pattern_of(rule.pattern.encode())[0]
        if pattern_has_reserved_query(pattern):
            continue  # such a rule is found only where that is certain
        folder = pattern.rpartition("/")[0] + "/$"  # of an index page
        samples = [sample for one in (pattern, folder) for sample in sample_paths(one_star(one))]
        # No pattern has the letter Q, so it stands for what a star matches.
        verdicts = [robots.verdict(sample.replace("\0", "Q"), "a") for sample in samples]
        assert rule.line in {verdict.rule.line for verdict in verdicts if verdict.rule}
