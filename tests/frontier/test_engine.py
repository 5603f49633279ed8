"""What the package uses of Scrapy's engine and is not public: listed, checked, and in one place."""

from __future__ import annotations

import logging
import re
import sys
from collections import deque
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from twisted.internet.defer import Deferred

from scrapy_rep.frontier import engine as module
from scrapy_rep.frontier.engine import ATTRIBUTES, MAX_EXTRA, Engine, start_queues
from tests.import_contracts import ROOT, attributes_used_in

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

PUBLIC = {"slot.queue", "slot.transferring"}
"""What is used of a download slot."""

USED = {
    f"{first.lstrip('_')}.{second}"
    for path in ATTRIBUTES
    for first, second in pairwise(path.split("."))
}


def test_few_attributes_are_used() -> None:
    assert len(ATTRIBUTES) <= 8


def test_the_contract_lists_the_attributes_that_are_checked() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (contract,) = [
        each for each in tool["contracts"] if each.get("owners") == ["scrapy_rep.frontier.engine"]
    ]
    assert contract["attributes"] == sorted(USED | PUBLIC)


def test_every_private_attribute_that_is_used_is_on_the_list() -> None:
    used = attributes_used_in(Path(module.__file__))
    own: Any = Engine(SimpleNamespace())  # type: ignore[arg-type]
    assert used >= USED
    private = {name for name in used if re.fullmatch(r"_[a-z]\w*", name)}
    assert private - set(dir(own)) == {"_process_queue", "_slot", "_start_queues"}
    others = Path(module.__file__).with_name("queue.py")
    assert attributes_used_in(others).isdisjoint({"_start_queues", "_sqfactory"})


class Downloader:
    """What is used of Scrapy's downloader."""

    def __init__(self, total_concurrency: Any = 16) -> None:
        self.active: set[Request] = set()
        self.slots: dict[str, Any] = {}
        self.total_concurrency = total_concurrency
        self.processed: list[Any] = []
        self._process_queue = self.processed.append


class Fake:
    """An engine of Scrapy, which may lack an attribute, and ours."""

    def __init__(self, without: str = "", *, total_concurrency: Any = 16) -> None:
        self.steps = 0
        self.downloader = Downloader(total_concurrency)
        self.slot: Any = SimpleNamespace(
            nextcall=SimpleNamespace(schedule=self._step), closing=None
        )
        crawler: Any = SimpleNamespace(
            engine=SimpleNamespace(_slot=self.slot, downloader=self.downloader),
            spider=Spider("test"),
        )
        if without.startswith("engine"):
            *names, last = without.split(".")
            owner = crawler
            for name in names:
                owner = getattr(owner, name)
            delattr(owner, last)
        self.crawler, self.engine = crawler, Engine(crawler)

    def _step(self) -> None:
        self.steps += 1

    def warnings(self, caplog: pytest.LogCaptureFixture) -> list[str]:
        """Open the engine, and return what it warns about."""
        caplog.clear()
        self.engine.open()
        return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def requests(number: int) -> list[Request]:
    return [Request(f"http://a.example/{each}") for each in range(number)]


def test_nothing_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    assert Fake().warnings(caplog) == []


@pytest.mark.parametrize("path", ATTRIBUTES)
def test_one_warning_says_what_is_missing_and_what_happens_then(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(path)
    if path == "queue._start_queues":
        monkeypatch.setattr(module, "ScrapyPriorityQueue", lambda *_: None)
    (warning,) = fake.warnings(caplog)
    assert f"Missing: {path} ({ATTRIBUTES[path]})." in warning
    engine, (request,) = fake.engine, requests(1)
    engine.wake()
    engine.exclude(request)
    engine.include(request)
    assert not engine.is_closing
    assert not engine.is_active(request)
    assert not engine.is_held(request)
    assert engine.take_held(request) is None
    assert not engine.has_only("any")
    queue: Any = SimpleNamespace()
    assert start_queues(queue) == {}
    assert engine.shows_active is (path != "engine.downloader.active")
    assert (engine.downloads, engine.extra) == (0, 0)
    assert bool(fake.steps) is (path != "engine._slot.nextcall")


@pytest.mark.parametrize("path", ["engine", "engine._slot", "engine.downloader"])
def test_one_warning_says_all_that_is_missing(path: str, caplog: pytest.LogCaptureFixture) -> None:
    (warning,) = Fake(path).warnings(caplog)
    expected = [each for each in ATTRIBUTES if each.startswith(path)]
    assert [each for each in ATTRIBUTES if each in warning] == expected


def test_a_concurrency_that_is_no_number_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    (warning,) = Fake(total_concurrency=None).warnings(caplog)
    assert "engine.downloader.total_concurrency" in warning


def test_nothing_is_used_before_the_spider_is_opened() -> None:
    crawler: Any = SimpleNamespace(engine=None)
    engine = Engine(crawler)
    engine.wake()
    assert not engine.is_closing
    assert not engine.active


@pytest.fixture
def fake() -> Fake:
    fake = Fake()
    fake.engine.open()
    return fake


def test_excluded_requests_occupy_no_slot(fake: Fake) -> None:
    first, second, third = requests(3)
    fake.downloader.active = {first, second, third}
    assert fake.engine.exclude(first)
    assert not fake.engine.exclude(first)
    fake.engine.exclude(second)
    assert fake.downloader.total_concurrency == 18
    assert (fake.engine.downloads, fake.engine.extra) == (1, 2)
    for request in (first, first, second, third):
        fake.engine.include(request)
    assert fake.downloader.total_concurrency == 16


def test_a_crawl_may_change_its_own_limit(fake: Fake) -> None:
    first, second, third = requests(3)
    fake.engine.exclude(first)
    fake.downloader.total_concurrency = 3
    fake.engine.exclude(second)
    assert fake.downloader.total_concurrency == 5
    fake.engine.include(first)
    fake.engine.include(second)
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


def test_whether_a_request_waits_for_the_delay_of_the_crawl(fake: Fake) -> None:
    held, sent, early = requests(3)
    slot = SimpleNamespace(active={held, sent}, transferring={sent})
    fake.downloader.slots["a.example"] = slot
    for request in (held, sent):
        request.meta["download_slot"] = "a.example"
    found = [fake.engine.is_held(request) for request in (held, sent, early)]
    assert found == [True, False, False]
    fake.downloader.active = {held, sent, early}
    assert fake.engine.transfers == 1


def test_a_request_in_a_slot_is_taken_out_and_put_back(fake: Fake) -> None:
    first, held, sent = requests(3)
    entries = [(each, Deferred[Any]()) for each in (first, held)]
    slot = SimpleNamespace(active={first, held, sent}, transferring={sent}, queue=deque(entries))
    fake.downloader.slots["a.example"] = slot
    for request in (first, held, sent):
        request.meta["download_slot"] = "a.example"
    assert fake.engine.take_held(sent) is None
    download = fake.engine.take_held(held)
    assert download is entries[1][1]
    assert fake.engine.take_held(held) is None
    assert list(slot.queue) == entries[:1]
    fake.engine.put_held(held, download)
    assert list(slot.queue) == entries
    assert fake.downloader.processed == [slot]


def test_whether_only_requests_of_a_kind_are_left(fake: Fake) -> None:
    first, second = requests(2)
    assert not fake.engine.has_only("robots")
    fake.downloader.active = {first, second}
    first.meta["robots"] = True
    assert not fake.engine.has_only("robots")
    second.meta["robots"] = True
    assert fake.engine.has_only("robots")
