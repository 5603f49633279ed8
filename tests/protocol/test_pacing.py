"""The pace that a robots.txt asks for, at a time of day."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.pacing import Pacing
from scrapy_rep.protocol.records import RequestRate
from scrapy_rep.protocol.robotstxt import RobotsTxt

HOUR = 3600


def pacing_of(*lines: str) -> Pacing | None:
    body = "\n".join(["User-agent: a", *lines])
    return Pacing.of(RobotsTxt.parse(body.encode()), ("a",))


@pytest.mark.parametrize(
    ("lines", "hour", "seconds"),
    [
        (["Crawl-delay: 2"], 0, 2),
        (["Request-rate: 1/10"], 0, 10),
        (["Request-rate: 5/1m"], 0, 12),
        (["Crawl-delay: 2", "Request-rate: 1/10"], 0, 10),  # the slower holds
        (["Crawl-delay: 20", "Request-rate: 1/10"], 0, 20),
        (["Request-rate: 1/10 0600-0845", "Request-rate: 1/3"], 7, 10),
        (["Request-rate: 1/10 0600-0845", "Request-rate: 1/3"], 9, 3),
        (["Request-rate: 1/10 0600-0845"], 9, 0),
        (["Request-rate: 1/9", "Request-rate: 1/3"], 0, 9),
        (["Request-rate: 1/3", "Request-rate: 1/9"], 0, 9),
        (["Visit-time: 0600-0845"], 0, 0),
    ],
)
def test_the_seconds_between_two_requests(lines: list[str], hour: int, seconds: float) -> None:
    pacing = pacing_of(*lines)
    assert pacing is not None
    assert pacing.seconds_between(hour * HOUR) == seconds


@pytest.mark.parametrize(
    ("hours", "hour", "seconds"),
    [("0600-0845", 5, HOUR), ("0600-0845", 7, 0), ("0600-0845", 9, 21 * HOUR), ("2200-0200", 1, 0)],
)
def test_the_seconds_until_the_visit_time(hours: str, hour: int, seconds: float) -> None:
    pacing = pacing_of(f"Visit-time: {hours}")
    assert pacing is not None
    assert pacing.seconds_until_welcome(hour * HOUR) == seconds


def test_who_is_asked_for_nothing_has_no_pace() -> None:
    assert pacing_of("Disallow: /") is None
    assert pacing_of("Crawl-delay: 0", "Request-rate: 0/1") is None


def test_of_the_rates_in_a_window_the_slowest_is_kept() -> None:
    pacing = pacing_of(*["Request-rate: 1/5", "Request-rate: 1/7", "Request-rate: 1/6"] * 3)
    assert pacing is not None
    assert pacing.rates == (RequestRate(1, 7),)
