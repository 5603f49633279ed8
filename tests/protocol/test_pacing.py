"""The pace that a robots.txt states, at a time of day."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.pacing import Pacing, describe
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
        (["Request-rate: 1/10 2200-0400"], 23, 10),  # around midnight
        (["Request-rate: 1/10 2200-0400"], 3, 10),
        (["Request-rate: 1/10 2200-0400"], 5, 0),
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
    assert pacing.seconds_until_visit_time(hour * HOUR) == seconds


def test_a_group_that_states_no_pace_has_none() -> None:
    assert pacing_of("Disallow: /") is None
    assert pacing_of("Crawl-delay: 0", "Request-rate: 0/1") is None


def test_the_slowest_rate_of_a_window_holds() -> None:
    pacing = pacing_of(*["Request-rate: 1/5", "Request-rate: 1/7", "Request-rate: 1/6"] * 3)
    assert pacing == Pacing(0, (0,), (7,))


windows = st.one_of(
    st.just(""),
    st.tuples(*[st.sampled_from([0, 1, 60, 359, 360, 720, 1439, 1440])] * 2).map(
        lambda times: " " + "-".join(f"{time // 60:02}{time % 60:02}" for time in times)
    ),
)


@given(st.lists(st.tuples(st.integers(1, 9), windows), max_size=6))
def test_at_each_minute_the_slowest_rate_of_its_windows_holds(
    stated: list[tuple[int, str]],
) -> None:
    lines = [f"Request-rate: 1/{seconds}{window}" for seconds, window in stated]
    body = "\n".join(["User-agent: a", *lines]).encode()
    rates = RobotsTxt.parse(body).request_rates("a")
    pacing = pacing_of(*lines, "Crawl-delay: 0.5")
    assert pacing is not None
    for minute in (0, 0.5, 1, 59.9, 60, 358, 359, 360, 500, 720, 1438.9, 1439, 1439.9):
        holding = [
            rate.seconds for rate in rates if rate.window is None or rate.window.contains(minute)
        ]
        assert pacing.seconds_between(minute * 60) == max([0.5, *holding])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], ""),
        (["Crawl-delay: 0"], ""),
        (["Crawl-delay: 2.50"], "Crawl-delay: 2.5"),
        (["Request-rate: 5/1m"], "Request-rate: 5/60s"),
        (
            ["Request-rate: 1/10 2200-0045", "Visit-time: 0600-2400"],
            "Request-rate: 1/10s from 22:00 to 00:45 UTC, Visit-time: 06:00 to 24:00 UTC",
        ),
        (
            [f"Request-rate: 1/{seconds}" for seconds in range(1, 100)],
            "Request-rate: 1/1s, Request-rate: 1/2s, Request-rate: 1/3s, and 96 more",
        ),
    ],
)
def test_the_pace_as_text(lines: list[str], words: str) -> None:
    body = "\n".join(["User-agent: a", *lines])
    assert describe(RobotsTxt.parse(body.encode()), ("a",)) == words
