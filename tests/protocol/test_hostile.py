"""Hostile files get the same verdicts every time. ``benchmarks/hostile.py`` measures the time."""

from __future__ import annotations

from itertools import permutations

import pytest

from scrapy_rep.protocol.agents import product_tokens
from scrapy_rep.protocol.pacing import Pacing
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.verdict import Reason
from testing.hostile import ALL, ATTACKS, HEADERS, HOSTILE, LIMIT, LONG_URL, RECORDS
from tests.conftest import traced_memory

NO_COVER = pytest.mark.no_cover
"""Coverage would take most of the time of the tests with these files."""

LARGEST = (
    "both forms without stars", "reserved queries", "numbers before a star", "distinct stars",
    "wildcards", "ended", "literals", "agents", "UTF-16", "permutations of pairs",
)  # fmt: skip
"""Of each kind of index the file whose index is largest. To trace memory or to list all rules that
match takes long."""


@NO_COVER
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_have_the_same_verdict_every_time(name: str) -> None:
    body, url = HOSTILE[name]
    robots = RobotsTxt.parse(body, url=url)
    first = robots.verdict(url, "a-bad")  # without an index, while it is made, and with it
    assert [robots.verdict(url, "a-bad") for _ in range(2)] == [first] * 2
    assert robots.allowed(url, "a-bad") is first.allowed
    if name in LARGEST:
        assert next(iter(robots.matches(url, "a-bad")), None) == first.rule
        assert {agent for group in robots.groups for agent in group.agents} == set(robots.agents)
        assert set(robots.records("disallow", "a-bad")) <= set(robots.records("disallow"))
        assert len(repr(robots)) < 300


@NO_COVER
@pytest.mark.parametrize("name", LARGEST)
def test_hostile_files_do_not_fill_the_memory(name: str) -> None:
    body, url = HOSTILE.get(name) or (ATTACKS[name].body, ATTACKS[name].url(2048))
    with traced_memory() as traced:
        robots = RobotsTxt.parse(body)
        robots.verdict(url, "a-bad")
        robots.verdict(url, "a-bad")
        held, _ = traced()
    assert held < 20 * LIMIT


@NO_COVER
@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_have_the_same_verdict_every_time(name: str) -> None:
    attack = ATTACKS[name]
    robots = RobotsTxt.parse(attack.body)
    for length in (60, 2048, 16_384):
        first = robots.verdict(attack.url(length), "a")
        assert robots.verdict(attack.url(length), "a") == first
        assert first.reason in (Reason.RULES, Reason.TOO_COMPLEX)
        assert not (first.allowed and first.reason is Reason.TOO_COMPLEX)


def test_a_first_question_that_takes_too_many_steps_is_asked_of_the_index() -> None:
    rules = b"".join(b"Disallow: /*%sb\n" % (b"a" * length) for length in range(104, 120))
    robots = RobotsTxt.parse(ALL + rules)
    url = "/" + "a" * 60_000 + "c"
    assert [robots.verdict(url, "a").allowed for _ in range(3)] == [True] * 3


@pytest.mark.rule("Steps for one URL")
def test_usage_that_takes_too_many_steps_to_find_is_refused() -> None:
    attack = ATTACKS["permutations"]
    lines = attack.body.replace(b"Disallow:", b"Content-Usage:").split(b"\n")[1:]
    for number, expected in {1000: {"ai-use": True}, 11_000: {"search": False}}.items():
        body = ALL + b" train-ai=y\n".join(lines[:number])
        robots = RobotsTxt.parse(body + b" search=n\nContent-Usage: ai-use=y\n")
        for _ in range(2):
            assert robots.content_usage(attack.url(2048), "a") == expected
    # The longest pattern is found, but there are too many others of its length.
    same = ["".join(pieces) for pieces in permutations("abcdefgh")][:20_000]
    rules = "".join(f"Content-Usage: /*{'*'.join(piece)} {piece}=y\n" for piece in same[:9000])
    robots = RobotsTxt.parse(ALL + rules.encode() + b"Content-Usage: /a ai-use=n\n")
    assert robots.content_usage("/" + "abcdefgh" * 250, "a") == {"ai-use": False}


@NO_COVER
@pytest.mark.parametrize("name", RECORDS)
def test_hostile_records_are_read(name: str) -> None:
    robots = RobotsTxt.parse(RECORDS[name], url="https://example.com/robots.txt")
    pacing = Pacing.of(robots, ("a-bad",))
    assert pacing is None or len(pacing.seconds) <= 24 * 60
    assert robots.crawl_delay("a-bad") in (None, 1)
    assert len(set(robots.sitemaps)) == len(robots.sitemaps)
    assert robots.content_usage(LONG_URL, "a-bad").get("train-ai") is (
        False if name == "Content-Usage" else None
    )


@pytest.mark.parametrize("header", HEADERS)
def test_long_headers_have_at_most_one_token(header: str) -> None:
    assert len(product_tokens(header)) <= 1
    assert len(product_tokens("Mozilla/5.0 (" + header)) <= 1
