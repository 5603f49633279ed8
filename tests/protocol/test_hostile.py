"""What is hostile is answered like anything else; ``benchmarks/hostile.py`` says how fast."""

from __future__ import annotations

import tracemalloc

import pytest

from scrapy_rep.protocol.agents import product_tokens
from scrapy_rep.protocol.pacing import Pacing
from scrapy_rep.protocol.robotstxt import RobotsTxt

from .hostile import HEADERS, HOSTILE, LIMIT, LONG_URL, RECORDS


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_answered_the_same_every_time(name: str) -> None:
    body, url = HOSTILE[name]
    robots = RobotsTxt.parse(body)
    first = robots.verdict(url, "a-bad")
    assert [robots.verdict(url, "a-bad") for _ in range(9)] == [first] * 9
    assert robots.allowed(url, "a-bad") is first.allowed


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_do_not_fill_the_memory(name: str) -> None:
    body, url = HOSTILE[name]
    tracemalloc.start()
    try:
        robots = RobotsTxt.parse(body)
        robots.verdict(url, "a-bad")
        robots.verdict(url, "a-bad")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 20 * LIMIT


@pytest.mark.parametrize("name", RECORDS)
def test_hostile_records_are_read(name: str) -> None:
    robots = RobotsTxt.parse(RECORDS[name], url="https://example.com/robots.txt")
    pacing = Pacing.of(robots, ("a-bad",))
    assert pacing is None or len(pacing.rates) <= 1
    assert robots.crawl_delay("a-bad") in (None, 1)
    assert len(set(robots.sitemaps)) == len(robots.sitemaps)
    assert robots.content_usage(LONG_URL, "a-bad").get("train-ai") is (
        False if name == "Content-Usage" else None
    )


@pytest.mark.parametrize("header", HEADERS)
def test_long_headers_give_one_token_at_most(header: str) -> None:
    assert len(product_tokens(header)) <= 1
    assert len(product_tokens("Mozilla/5.0 (" + header)) <= 1
