"""What the policies of a crawl say of its origins, and which of these stay in memory."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.origin import Action, Origin
from scrapy_rep.policies.policies import Policies
from scrapy_rep.protocol.access import CopyInfo, Rules, Unreachable
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.settings import Settings
from testing.clock import FakeClock

ORIGIN = "http://a.example"
AGENT = ("*",)
BODY = b"User-agent: *\nCrawl-delay: 60\n"
DOWN = Unreachable("status 503", 503)


def rules(clock: FakeClock, lifetime: float = 2) -> Rules:
    robots = RobotsTxt.parse(BODY)
    return Rules(robots, 200, CopyInfo(f"{ORIGIN}/robots.txt"), clock.time() + lifetime, BODY)


class Crawl:
    """The policies of a crawl on a fake clock."""

    def __init__(self, **settings: Any) -> None:
        self.clock = FakeClock()
        read = Settings.read(ScrapySettings(settings))
        self.policies = Policies(read, self.clock, Mock(), None)

    def answer(self, key: str, event: Any) -> Origin:
        """Return an origin after the answer to a fetch."""
        origin, now = self.policies.origins.find_or_add(key), self.policies.now()
        origin.start_fetch(now)
        origin.apply(event, now)
        origin.notes.answer(self.clock.monotonic(), 0)
        return origin


@pytest.mark.parametrize(
    ("delay", "seconds", "action"),
    [
        (0, 1.7, Action.NONE),
        (0, 2, Action.FETCH),
        pytest.param(60, 119.9, Action.NONE, id="a delay longer than the lifetime"),
        pytest.param(60, 120, Action.FETCH, id="for two requests to the host at most"),
    ],
)
def test_an_answer_that_expires_before_its_delay_ends_is_used_once(
    delay: float, seconds: float, action: Action
) -> None:
    crawl = Crawl()
    origin = crawl.answer(ORIGIN, rules(crawl.clock))
    crawl.clock.advance(seconds)
    assert crawl.policies.next_action(origin, delay) is action
    origin.notes.use()
    crawl.clock.advance(2)
    assert crawl.policies.next_action(origin, delay) is Action.FETCH


def test_an_unreachable_origin_keeps_the_delay_that_is_known() -> None:
    crawl = Crawl()
    assert crawl.policies.delay(crawl.answer(ORIGIN, rules(crawl.clock)), AGENT) == 60
    crawl.clock.advance(9)
    assert crawl.policies.delay(crawl.answer(ORIGIN, DOWN), AGENT) == 60, "that of its good copy"
    assert crawl.policies.delay(crawl.answer("http://b.example", DOWN), AGENT) is None


def test_a_request_makes_its_origin_the_last_one_used() -> None:
    crawl = Crawl()
    for key in "abc":
        crawl.answer(key, rules(crawl.clock))
    assert crawl.policies.fresh("a") is not None
    assert list(crawl.policies.origins) == ["b", "c", "a"]
    crawl.clock.advance(2)
    assert crawl.policies.fresh("b") is None
    assert list(crawl.policies.origins) == ["b", "c", "a"]
