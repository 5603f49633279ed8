"""What the package uses of Scrapy's engine and is not public: listed, checked, and in one place."""

from __future__ import annotations

import logging
import re
from math import inf
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider

from scrapy_rep import scrapy_internals as module
from scrapy_rep.scrapy_internals import ATTRIBUTES, MAX_EXTRA, Engine, start_queues
from tests.import_contracts import attributes_used_in


def test_every_private_attribute_that_is_used_is_one_of_few_on_a_list() -> None:
    assert len(ATTRIBUTES) <= 8
    used = attributes_used_in(Path(module.__file__))
    own: Any = Engine(SimpleNamespace())  # type: ignore[arg-type]
    private = {name for name in used if re.fullmatch(r"_[a-z]\w*", name)} - set(dir(own))
    assert private <= {part for path in ATTRIBUTES for part in path.split(".")}


class Fake:
    """An engine of Scrapy, which may lack an attribute, and ours."""

    def __init__(self, without: str = "") -> None:
        self.steps = 0
        self.downloader: Any = SimpleNamespace(active=set(), slots={}, total_concurrency=16)
        self.slot: Any = SimpleNamespace(nextcall=SimpleNamespace(schedule=self.step), closing=None)
        crawler: Any = SimpleNamespace(
            engine=SimpleNamespace(_slot=self.slot, downloader=self.downloader),
            spider=Spider("test"),
        )
        if without.startswith("engine"):
            owner, _, last = without.rpartition(".")
            delattr(attrgetter(owner)(crawler), last)
        self.crawler, self.engine = crawler, Engine(crawler)

    def step(self) -> None:
        self.steps += 1


def requests(number: int) -> list[Request]:
    return [Request(f"http://a.example/{each}") for each in range(number)]


@pytest.mark.parametrize("path", ["", *ATTRIBUTES])
def test_one_warning_says_what_is_missing_and_what_happens_then(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(path)
    if path == "queue._start_queues":
        monkeypatch.setattr(module, "ScrapyPriorityQueue", lambda *_: None)
    fake.engine.open()
    warnings = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    if not path:
        assert warnings == []
        return
    (warning,) = warnings
    assert f"Missing: {path} ({ATTRIBUTES[path]})." in warning
    engine, (request,) = fake.engine, requests(1)
    engine.wake()
    engine.exclude(request)
    engine.include(request)
    assert not engine.is_closing
    assert engine.is_active(request) is (path == "engine.downloader.active")
    assert engine.seconds_unsent(request) == (0 if path == "engine.downloader.slots" else inf)
    queue: Any = SimpleNamespace()
    assert start_queues(queue) == {}
    assert len(engine.active) == len(engine.extra) == 0
    assert bool(fake.steps) is (path != "engine._slot.nextcall")


@pytest.fixture
def fake() -> Fake:
    fake = Fake()
    fake.engine.open()
    return fake


def test_excluded_requests_occupy_no_slot(fake: Fake) -> None:
    """A crawl may change its own limit meanwhile."""
    first, second, third = requests(3)
    fake.downloader.active = {first, second, third}
    assert fake.engine.exclude(first)
    assert not fake.engine.exclude(first)
    fake.downloader.total_concurrency = 3
    fake.engine.exclude(second)
    assert fake.downloader.total_concurrency == 5
    assert len(fake.engine.active) - len(fake.engine.extra) == 1
    for request in (first, first, second, third):
        fake.engine.include(request)
    assert fake.downloader.total_concurrency == 3
    fake.downloader.total_concurrency = 0  # no limit
    fake.engine.exclude(third)
    assert fake.downloader.total_concurrency == 0


def test_the_excluded_requests_are_bounded(fake: Fake) -> None:
    *some, last = requests(MAX_EXTRA + 1)
    assert all(fake.engine.exclude(request) for request in some)
    assert not fake.engine.exclude(last)
    assert fake.downloader.total_concurrency == 16 + MAX_EXTRA


@pytest.mark.parametrize("state", ["open", "closing", "closed"])
def test_the_engine_is_woken_while_the_spider_is_open(fake: Fake, state: str) -> None:
    if state == "closed":
        fake.crawler.engine._slot = None
    elif state == "closing":
        fake.slot.closing = object()
    fake.engine.wake()
    assert fake.steps == (state == "open")
    assert fake.engine.is_closing is (state == "closing")
