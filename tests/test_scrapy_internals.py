"""What Scrapy does not promise: listed, checked, in one place, and tested with Scrapy itself."""

from __future__ import annotations

import logging
import re
from math import inf
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.downloadermiddlewares.httpproxy import HttpProxyMiddleware

from scrapy_rep import scrapy_internals as module
from scrapy_rep.clock import Clock
from scrapy_rep.scrapy_internals import ATTRIBUTES, INTERNALS, MAX_EXTRA, Engine, proxy_keys
from testing.web import Web
from tests.crawl.conftest import EXEMPT, travel
from tests.frontier.doubles import FakeScrapyEngine
from tests.import_contracts import attributes_used_in

TESTS = {
    **dict.fromkeys(
        [*ATTRIBUTES.values(), "request_reached_downloader"], "test_a_request_in_scrapys_engine"
    ),
    "cached_response": "test_the_cache_answers_for_no_origin_that_is_unreachable",
    "_auth_proxy": "test_a_proxy_gets_no_credentials_of_another",
    "Response.__init__": "test_other_middlewares_receive_one_response",
    "method": "test_a_middleware_that_fails_is_named_with_one_traceback",
    "crawler.spider": "test_scrapy_logs_one_line_and_exits_with_1",
    "requests.queue": "test_a_crawl_continues_with_the_queue_of_scrapy_and_the_other_way_round",
    "handle_httpstatus_all": "test_callers_get_directives_and_noindex_drops_files",
}
"""The tests that fail when Scrapy changes what it does not promise."""


def test_few_things_are_used_that_scrapy_does_not_promise_each_with_a_test() -> None:
    assert list(TESTS) == list(INTERNALS)
    assert len(INTERNALS) <= 12
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    assert all(f"def {name}(" in tests for name in TESTS.values())
    used = attributes_used_in(Path(module.__file__))
    own: Any = Engine(SimpleNamespace())  # type: ignore[arg-type]
    private = {name for name in used if re.fullmatch(r"_[a-z]\w*", name)} - set(dir(own))
    listed = {part for name in (*INTERNALS, *ATTRIBUTES) for part in name.split(".")}
    assert private <= listed | {"_scheme_proxy"}


async def test_a_request_in_scrapys_engine(web: Web) -> None:
    """Before it is sent, when its response arrives, then, and when the spider closes."""
    site, seen = web.site(), list[tuple[object, ...]]()
    request = Request(site.url("/"), meta=dict(EXEMPT))

    def note() -> None:
        request.headers["X-Late"] = "sent"
        is_full = spider.engine.needs_backout()
        engine.exclude(request)
        capacity = is_full, spider.engine.needs_backout()
        engine.include(request)
        keys = [key in request.meta for key in ("download_slot", "download_latency")]
        state = engine.is_closing, engine.is_active(request), engine.seconds_unsent(request)
        seen.append((*state, *capacity, *keys))

    async with travel({"CONCURRENT_REQUESTS": 1, "DOWNLOAD_DELAY": 0.1}) as spider:
        connect, engine = spider.crawler.signals.connect, Engine(spider.crawler)
        engine.open()
        connect(note, signals.request_reached_downloader)
        connect(note, signals.headers_received)
        assert engine.own_delay_left("127.0.0.1") == 0
        await spider.engine.download_async(request)
        spider.engine.downloader.slots["127.0.0.1"].delay = 1000
        assert 400 < engine.own_delay_left("127.0.0.1") <= 1500  # varied by half
        await Clock().sleep(0.1)  # now the engine does nothing
        connect(note, signals.scheduler_empty)
        connect(note, signals.spider_closed)
        engine.wake()
        await Clock().sleep(0.01)
    assert list(dict.fromkeys(seen)) == [
        (False, True, 0.1 / 4, True, False, True, False),
        (False, True, 0, True, False, True, True),
        (False, False, inf, False, False, True, True),
        (True, False, inf, True, True, True, True),
    ]
    assert site.received[-1].headers["x-late"] == "sent"


def test_a_proxy_gets_no_credentials_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://b.example")
    middleware, kept = HttpProxyMiddleware(), []
    for meta in ({"proxy": "http://me:secret@a.example"}, {}):
        page = Request("http://site.example/", meta=meta)
        middleware.process_request(page)
        kept.append({key: page.meta[key] for key in proxy_keys(page)})
        other = page.replace(meta={**kept[-1], "proxy": "http://c.example"})
        middleware.process_request(other)
        assert "Proxy-Authorization" not in other.headers
    assert kept == [dict.fromkeys(("proxy", "_auth_proxy"), "http://a.example"), {}]


def opened(scrapy: FakeScrapyEngine, without: str = "") -> Engine:
    """Our view of an engine of Scrapy, which may lack an attribute."""
    crawler: Any = SimpleNamespace(engine=scrapy, spider=Spider("test"))
    if without.startswith("engine"):
        owner, _, last = without.rpartition(".")
        delattr(attrgetter(owner)(crawler), last)
    engine = Engine(crawler)
    engine.open()
    return engine


def requests(number: int) -> list[Request]:
    return [Request(f"http://a.example/{each}") for each in range(number)]


@pytest.mark.parametrize("path", ["", *ATTRIBUTES])
def test_one_warning_says_what_is_missing_and_what_happens_then(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    scrapy = FakeScrapyEngine()
    engine = opened(scrapy, path)
    warnings = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    if not path:
        assert warnings == []
        return
    (warning,) = warnings
    assert f"Missing: {path} ({INTERNALS[ATTRIBUTES[path]]})." in warning
    (request,) = requests(1)
    engine.wake()
    engine.exclude(request)
    engine.include(request)
    assert not engine.is_closing
    assert engine.is_active(request) is (path == "engine.downloader.active")
    assert engine.seconds_unsent(request) == (0 if path == "engine.downloader.slots" else inf)
    assert engine.own_delay_left("a.example") == 0
    assert len(engine.active) == len(engine.extra) == 0
    assert bool(scrapy.woken) is (path != "engine._slot.nextcall")


def test_excluded_requests_occupy_no_slot() -> None:
    """A crawl may change its own limit meanwhile."""
    scrapy, (first, second, third) = FakeScrapyEngine(), requests(3)
    engine = opened(scrapy)
    scrapy.downloader.active = {first, second, third}
    assert engine.exclude(first)
    assert not engine.exclude(first)
    scrapy.downloader.total_concurrency = 3
    engine.exclude(second)
    assert scrapy.downloader.total_concurrency == 5
    assert len(engine.active) - len(engine.extra) == 1
    for request in (first, first, second, third):
        engine.include(request)
    assert scrapy.downloader.total_concurrency == 3
    scrapy.downloader.total_concurrency = 0  # no limit
    engine.exclude(third)
    assert scrapy.downloader.total_concurrency == 0


def test_the_excluded_requests_are_bounded() -> None:
    scrapy = FakeScrapyEngine()
    engine = opened(scrapy)
    excluded = [engine.exclude(request) for request in requests(MAX_EXTRA + 1)]
    assert excluded == [True] * MAX_EXTRA + [False]
    assert scrapy.downloader.total_concurrency == 16 + MAX_EXTRA
