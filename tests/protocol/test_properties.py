"""Laws that hold for every file and every URL, and agreement with the slow reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from scrapy_rep.protocol import matcher, usage
from scrapy_rep.protocol.agents import parse_user_agent, product_tokens
from scrapy_rep.protocol.lines import SIZE_LIMIT, read
from scrapy_rep.protocol.lint import lint
from scrapy_rep.protocol.matcher import PatternIndex, Steps, matching
from scrapy_rep.protocol.parser import GroupText, groups, has_rules, list_groups
from scrapy_rep.protocol.paths import origin_of, path_of, pattern_of
from scrapy_rep.protocol.records import parse_delay, parse_request_rate, parse_visit_time
from scrapy_rep.protocol.robotstxt import RobotsTxt
from testing import reference

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

TOKENS = ["a", "b", "a-b", "mj12", "x", "k", "s"]

# Letters and digits that str.lower(), str.upper(), int() or a case-insensitive expression take for
# ASCII: a long s, a Kelvin sign, a dotted I, a full-width 1, a superscript 2.
LOOKALIKES = ["\u017f", "\u212a", "\u0130", "\uff11", "\u00b2"]

counts = st.one_of(st.integers(2, 4), st.integers(5, 20))

pieces = st.sampled_from(
    [
        *"/ab*$?=&:@#% 'é[~.",
        "%2F", "%2f", "%61", "%41", "%3A", "%3a", "%40", "%24", "%2A", "%7E", "%E3%83%84", "%",
        "%4", "%zz", "%25", ";", "/.", "/..", "%2e", "/index.htm", "/index.html", "//", "+", "%20",
        "\x00", "\x1c", "ツ",
        *LOOKALIKES,
    ]
)  # fmt: skip
# Runs of what is special, and so pieces between stars that are empty.
runs = st.builds(str.__mul__, st.sampled_from(["*", "$", "%", "/", "?", "*$", "%%", "a"]), counts)
values = st.lists(st.one_of(pieces, pieces, pieces, runs), max_size=8).map("".join)
patterns = st.one_of(values.map("/".__add__), values, values.map("*".__add__))
paths = values.map("/".__add__)
agents = st.sampled_from(
    ["a", "A", "b", "*", "* x", "*x", "a/2.1", "a-b", "mj12", "MJ12/3", "", "é", "aé", "x y",
     "k", "S", *LOOKALIKES, "a\u212a", "mj\uff112"]
)  # fmt: skip
strings = st.one_of(
    st.text(max_size=30), st.text(st.sampled_from([*"aks1/:(-. ", *LOOKALIKES]), max_size=12)
)

# Values of records that are no rules, many of them valid but for one character.
numbers = st.sampled_from(["0", "1", "10", ".5", "1.", "\uff11", "\u00b2", ""])
times = st.sampled_from(["0600", "06:00", "08.45", "2400", "0\uff1100", "060\u00b2"])
windows = st.builds("{}{}{}".format, times, st.sampled_from(["-", " - ", " ", ""]), times)
whole_numbers = st.sampled_from(["1", "10", "1", "0", "\uff11"])
rates = st.builds(
    "{}/{}{}{}".format,
    whole_numbers,
    whole_numbers,
    st.sampled_from(["", "S", "m", "x", "\u017f", "\u212a"]),
    st.one_of(st.just(""), st.just(""), windows.map(" ".__add__)),
)
statements = st.builds(
    "{}{}={}".format,
    st.sampled_from(["", "", "/ ", "/a ", "\u017f "]),
    st.sampled_from(["search", "\u017fearch", "ai-train", "train-ai", "use", "u\u017fe", "K"]),
    st.sampled_from(["yes", "No", "ye\u017f", "y", "n", "full", "\uff11", "%", ""]),
)
uses = st.lists(statements, min_size=1, max_size=3).map(", ".join)
spaces = st.sampled_from(["", " ", "\t", " \v\f"])
ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n", " # c: d\n", "#\n"])
fields = st.sampled_from(
    [
        ("User-agent", agents), ("user-agent", agents), ("useragent", agents),
        ("user agent", agents), ("Allow", patterns), ("Disallow", patterns),
        ("disallow", patterns), ("ALLOW", patterns), ("Dissallow", patterns),
        ("User-agents", agents), ("Disallowed", patterns), ("Allow x", patterns),
        ("diasllow", patterns), ("Crawl-delay", numbers), ("Sitemap", patterns),
        ("foo", patterns), ("Clean-param", values), ("Content-usage", values),
        ("Content-usage", uses), ("Content-signal", uses), ("Request-rate", values),
        ("Request-rate", rates), ("Visit-time", values), ("Visit-time", windows),
        ("Di\u017fallow", patterns), ("U\u017fer-agent", agents), ("foo\u212a", patterns),
    ]
)  # fmt: skip
separators = st.sampled_from([":", ": ", " : ", ":\t", " "])


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A line, mostly one that means something."""
    field, value = draw(fields)
    return draw(spaces) + field + draw(separators) + draw(value) + draw(spaces) + draw(ends)


texts: SearchStrategy[bytes] = st.lists(lines(), max_size=12).map(lambda ls: "".join(ls).encode())
bodies = st.one_of(
    texts,
    texts.map(b"User-agent: *\n".__add__),
    st.binary(max_size=200),
    texts.map(lambda text: text.decode().encode("utf-16")),
)


marks = st.sampled_from([b"", b"\xef", b"\xef\xbb", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"])


@given(st.lists(marks, max_size=3).map(b"".join), bodies, st.booleans())
def test_the_text_of_a_file_is_read_as_the_file_is(mark: bytes, body: bytes, strict: bool) -> None:
    robots = RobotsTxt(mark + body, strict=strict)
    assert robots.text is not None
    assert RobotsTxt(robots.text, strict=strict) == robots


@pytest.mark.rule("Comments and white space", "Allow and Disallow")
@settings(max_examples=250)
@given(bodies, paths, st.sampled_from(["", *TOKENS]), st.booleans())
@example(b"User-agent: *\nAllow: /a \nDisallow: /a%20", "/a%20b", "", False)
@example(b"User-agent: *\nDisallow: /%%36%31", "/%%361", "", False)
@example(b"User-agent: *\nDisallow: /?u=/a", "/?u=%2Fa", "", False)
@example(b"User-agent: *\nAllow: /index.html\nDisallow: /", "/", "", False)
@example(b"User-agent: *\nDisallow: /", "/robots.txt", "", False)
def test_agrees_with_the_reference(body: bytes, url: str, token: str, strict: bool) -> None:
    robots = RobotsTxt.parse(body, strict=strict)
    expected = reference.answer(body, url, token, strict=strict)
    for _ in range(3):  # without an index, while it is made, and with it
        verdict = robots.verdict(url, token)
        assert (verdict.allowed, verdict.agent) == (expected.allowed, expected.agent)
        assert (verdict.rule.line if verdict.rule else None) == expected.line
        assert robots.allowed(url, token) is verdict.allowed


@given(st.lists(patterns, max_size=30), paths)
@example(["a*"], "/")
@example(["********x"], "/")
def test_the_index_finds_what_a_walk_over_the_patterns_finds(values: list[str], url: str) -> None:
    forms = list(dict.fromkeys(pattern_of(value.encode())[0] for value in values if value))
    index = PatternIndex(forms)
    path = path_of(url)
    found = [number for number, form in enumerate(forms) if reference.matches_either(form, path)]
    assert list(matching(forms, path)) == found
    assert index.first(path) == min(found, default=len(forms))
    long = path + "c" * 20_000 + path  # long, so that all keys are searched at once
    assert index.first(long) == next(matching(forms, long), len(forms))


@pytest.mark.rule("Steps for one URL")
@given(
    st.lists(st.tuples(patterns, st.booleans()), max_size=60),
    paths,
    st.integers(0, 150),
)
def test_without_steps_no_forbidden_path_is_allowed(
    rules: list[tuple[str, bool]], url: str, steps: int
) -> None:
    stated = {pattern_of(value.encode())[0]: allow for value, allow in rules if value}
    forms, allows = list(stated), (*stated.values(), True, False)
    path = path_of(url)
    expected = next(matching(forms, path), len(forms))
    index = PatternIndex(forms, allows)
    assert index.first(path) == expected
    found = index.first(path, Steps(steps))
    assert allows[expected] or not allows[found]
    assert found != matcher.TOO_COMPLEX or not all(stated.values())


@given(st.one_of(values, st.text(max_size=20)))
def test_the_forms_are_those_of_the_reference_and_their_own_form(text: str) -> None:
    assume(not any("\ud800" <= character <= "\udfff" for character in text))
    assert path_of("/" + text) == reference.url_form("/" + text)
    value = text.replace("#", "").encode()
    assert pattern_of(value) == reference.pattern_form(value)
    path = path_of("http://example.com/" + text)
    assert path == path_of(path)
    pattern, _ = pattern_of(value)
    assert pattern == pattern_of(pattern.encode())[0]


@pytest.mark.rule("Comments and white space", "User-agent lines", "Tokens with digits")
@given(bodies, st.booleans())
def test_groups_are_what_reading_line_by_line_gives(body: bytes, strict: bool) -> None:
    text = read(body)
    expected = reference.read_groups(body, strict=strict)
    found = groups(text, strict=strict)
    assert {token.decode() for token in found} == set(expected)
    for token, spans in found.items():
        rules = [(allow, value) for allow, value, _ in GroupText(text, spans, strict).rules()]
        assert rules == [(rule.allow, rule.value) for rule in expected[token.decode()]]


@given(bodies)
@example(b"Disallow: /a\nUser-agent: $$\nDisallow: /b")
def test_a_file_has_rules_if_a_group_has(body: bytes) -> None:
    listed = list_groups(read(body), strict=False)
    assert has_rules(read(body)) is any(group.rules for group in listed)


@given(bodies, st.booleans())
@example(b"User-agent: mj12\nDisallow: /a\nUser-agent: mj\nDisallow: /b", False)
def test_the_groups_that_are_listed_are_those_that_are_used(body: bytes, strict: bool) -> None:
    robots = RobotsTxt.parse(body, strict=strict)
    used = reference.read_groups(body, strict=strict)
    assert set(robots.agents) <= set(used)
    for agent in robots.agents:
        rules = [
            rule
            for group in robots.groups
            # A group that is listed for "mj12" applies to "mj", too.
            if any(agent in reference.tokens_of_line(each.encode()) for each in group.agents)
            for rule in group.rules
        ]
        assert [rule.line for rule in rules] == [rule.line for rule in used[agent]]
        assert [rule.allow for rule in rules] == [rule.allow for rule in used[agent]]
        assert robots.verdict("/", agent).agent == agent
        values = [value.decode("utf-8", "replace") for _, value, _ in used[agent]]
        written = robots.records("allow", agent) + robots.records("disallow", agent)
        assert sorted(filter(None, written)) == sorted(values)


@given(bodies, paths, st.sampled_from(["", *TOKENS]), st.booleans())
@example(b"User-agent: *\nAllow: /a \nDisallow: /a%20", "/a%20b", "", False)
def test_the_first_matching_rule_decides(body: bytes, url: str, token: str, strict: bool) -> None:
    robots = RobotsTxt.parse(body, strict=strict)
    found = robots.matches(url, token)
    assert next(iter(found), None) == robots.verdict(url, token).rule
    assert len({rule.line for rule in found}) == len(found)
    used = reference.read_groups(body, strict=strict)
    group = used.get(token) or (used.get("*") if token not in used else None) or []
    path = path_of(url)
    expected = {
        rule.line
        for rule in group
        if path != "/robots.txt" and reference.decide([rule], path, strict=strict)
    }
    assert {rule.line for rule in found} == expected


@settings(max_examples=150)
@given(bodies, strings, strings)
def test_nothing_raises(body: bytes, url: str, agent: str) -> None:
    robots = RobotsTxt.parse(body, url="https://example.com/robots.txt")
    robots.verdict(f"/{url}", agent), robots.matches(f"http://{url}", agent)
    robots.crawl_delay(agent), robots.request_rate(agent), robots.visit_time(agent)
    robots.content_signals(f"/{url}", agent), robots.content_usage(f"/{url}", agent)
    assert all(isinstance(url, str) for url in robots.licenses)
    upper_case = url.encode("utf-8", "surrogatepass").upper().decode("utf-8", "surrogatepass")
    assert robots.records(url) == robots.records(f" {upper_case} ")
    assert set(robots.records(url, agent)) <= set(robots.records(url))
    assert str(robots) in repr(robots)
    assert all(isinstance(sitemap, str) for sitemap in robots.sitemaps)
    assert all(str(finding) for finding in lint(body))
    origin_of(url)
    origin_of("http://" + agent)
    parse_user_agent(agent)
    assert all(token.isascii() and token == token.lower() for token in product_tokens(agent))


@settings(max_examples=150)
@given(rates, windows, numbers)
def test_numbers_units_and_times_are_ascii(rate: str, window: str, delay: str) -> None:
    for value, parse in (
        (rate, parse_request_rate),
        (window, parse_visit_time),
        (delay, parse_delay),
    ):
        assert value.isascii() or parse(value.encode()) is None


@given(uses)
def test_names_and_values_of_signals_are_ascii(value: str) -> None:
    for stated in (usage.content_signals(value), usage.content_usage(value)):
        assert all(f"{name}{state}".isascii() for name, state in stated.items())


@pytest.mark.rule("Size limit")
@settings(max_examples=20)
@given(st.binary(max_size=40), st.binary(max_size=40), st.sampled_from([b"x", b"\n", b"\r", b"/"]))
def test_bytes_after_the_limit_change_nothing(end: bytes, beyond: bytes, byte: bytes) -> None:
    filler = b"User-agent: *\nDisallow: /a\n" + b"#" * 511_960
    body = (filler + b"\nDisallow: /b" + end)[:SIZE_LIMIT].ljust(SIZE_LIMIT, b"c") + byte
    assert read(body) == read(body + beyond)
