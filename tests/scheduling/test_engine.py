"""What the package uses of Scrapy and is not public: listed, checked, and used in one place."""

from __future__ import annotations

import logging
import re
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.core.downloader import Slot
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.utils.test import get_crawler

from scrapy_rep.scheduling import engine as engine_module
from scrapy_rep.scheduling import features
from scrapy_rep.scheduling import slots as slots_module
from scrapy_rep.scheduling.engine import Engine
from scrapy_rep.scheduling.features import FEATURES, OF_SLOTS, OF_THROTTLER, REQUIRED, Feature
from scrapy_rep.scheduling.handlers import AIOHTTP_HANDLER
from scrapy_rep.scheduling.slots import DownloadSlots, PacedScopes, Slots, ThrottlingScopes
from tests.import_contracts import ROOT, attributes_used_in
from tests.throttler import Throttler

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

MODULE = Path(engine_module.__file__)
SLOTS_MODULE = Path(slots_module.__file__)


def dotted(path: str) -> set[str]:
    """Return the attributes of a path as the contract names them: ``slot.closing``."""
    names = path.split(".")
    return {f"{first.lstrip('_')}.{second}" for first, second in pairwise(names)}


USED = set().union(*map(dotted, (*REQUIRED, *FEATURES)))


def test_the_docstring_lists_the_attributes_that_are_checked() -> None:
    table = re.findall(r"^``([\w.]+)``", features.__doc__ or "", re.MULTILINE)
    assert table == [*REQUIRED, *FEATURES]


def test_the_contracts_list_the_attributes_that_are_checked() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    listed = [
        attribute
        for contract in tool["contracts"]
        if contract.get("owners", [""])[0].startswith("scrapy_rep.scheduling")
        for attribute in contract["attributes"]
    ]
    assert set(listed) == USED
    assert len(listed) == len(USED)


def test_every_attribute_of_the_list_is_used() -> None:
    assert attributes_used_in(MODULE) | attributes_used_in(SLOTS_MODULE) >= USED


def test_every_private_attribute_that_is_used_is_on_the_list() -> None:
    throttler: Any = Throttler()
    instances = (
        Engine(get_crawler()),
        DownloadSlots(None, 8),
        PacedScopes(throttler, None),
    )
    own: set[str] = set()
    for instance in instances:
        own |= {name for name in dir(instance) if name.startswith("_")}
    private = {
        name
        for name in attributes_used_in(MODULE) | attributes_used_in(SLOTS_MODULE)
        if "." not in name and name.startswith("_") and not name.startswith("__")
    }
    assert (
        private - own
        == {name for each in USED for name in [each.split(".")[1]] if name.startswith("_")} - own
    )


class Bare:
    """A component with some of the attributes of Scrapy's."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


def make_engine(
    without: str | None = None, handler: str = "builtins.object", *, throttled: bool = False
) -> Engine:
    """Return an engine with all attributes that are used but one.

    It has download slots, or a throttler.
    """

    def slot() -> Any:
        made = Slot(8, 0, 0)
        if without is None or not without.startswith("slot."):
            return made
        names = {"active", "concurrency", "delay", "queue", "transferring"}
        return Bare(**{name: getattr(made, name) for name in names - {without.split(".")[1]}})

    nextcall = SimpleNamespace(schedule=lambda: None)
    handlers = Bare(
        download_request_async=None, _schemes={"http": handler}, _handlers={}, _lazy=True
    )
    downloader = Bare(
        active=set(),
        needs_backout=lambda: False,
        total_concurrency=16,
        handlers=handlers,
    )
    queue: Any = DownloaderAwarePriorityQueue.__new__(DownloaderAwarePriorityQueue)
    queue._downloader_interface = SimpleNamespace(stats=lambda names: [(0, each) for each in names])
    queue.pqueues = {"busy.example": [1], "other.example": [2, 3]}
    scheduler = Bare(mqs=queue, dqs=None)
    engine = Bare(
        _slot=Bare(scheduler=scheduler, nextcall=nextcall, closing=None),
        _start=None,
        scraper=Bare(slot=None),
        downloader=downloader,
    )
    roots: dict[str, Any] = {"engine": engine, "downloader": downloader, "queue": queue}
    if throttled:
        real = Throttler(concurrency=4, delay=2)
        real_scope = real.get_scope_manager("x")
        scope = Bare(
            get_base_delay=real_scope.get_base_delay,
            set_base_delay=real_scope.set_base_delay,
            get_concurrency=real_scope.get_concurrency,
            set_concurrency=real_scope.set_concurrency,
            _jitter=0.5,
            _next_allowed_time=None,
        )
        throttler = Bare(
            acquire=real.acquire,
            release=real.release,
            get_applied_scopes=lambda request: ["x"],
            get_scope_manager=lambda name: scope,
        )
        roots |= {"throttler": throttler, "scope": scope}
        vars(downloader).update(
            _in_download_handler=set(), _download_handler_slots_full=lambda: True
        )
        vars(engine).update(_throttler_needs_backout=lambda: True, _throttler_waiting=set())
    else:
        vars(downloader).update(
            domain_concurrency=8,
            slots={},
            _get_slot=lambda request: ("key", slot()),
            get_slot_key=lambda request: "key",
            _process_queue=lambda slot: None,
        )
    if without is not None and not without.startswith("slot."):
        root, *names, last = without.split(".")
        owner = roots[root]
        for name in names:
            owner = getattr(owner, name)
        delattr(owner, last)
    crawler: Any = SimpleNamespace(engine=engine, spider=Spider("test"))
    if throttled:
        crawler.throttler = roots["throttler"]
    return Engine(crawler)


def warnings(engine: Engine, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    engine.open(lambda scheduler: scheduler)
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("throttled", [False, True])
def test_nothing_is_missing(caplog: pytest.LogCaptureFixture, throttled: bool) -> None:
    assert warnings(make_engine(throttled=throttled), caplog) == []


@pytest.mark.parametrize(
    ("path", "throttled"),
    [
        (path, throttled)
        for path, feature in FEATURES.items()
        if not path.startswith(("handler.", "connector."))
        for throttled, unused in ((False, OF_THROTTLER), (True, OF_SLOTS))
        if feature not in unused
    ],
)
def test_one_warning_names_what_is_missing_and_what_is_off(
    path: str, caplog: pytest.LogCaptureFixture, throttled: bool
) -> None:
    engine = make_engine(path, throttled=throttled)
    [warning] = warnings(engine, caplog)
    assert path in warning
    assert FEATURES[path].value in warning
    assert engine._available <= set(Feature) - {FEATURES[path]}
    engine.wake()
    is_seen = throttled and FEATURES[path] is not Feature.SCOPES
    assert engine.slots.limits(Request("data:,")) == ((4, 2) if is_seen else (8, 0))
    assert not engine.is_closing
    assert not engine._waits_for_refreshes
    engine._widen_pools(1)


@pytest.mark.parametrize(
    ("path", "throttled", "expected"),
    [
        (None, False, DownloadSlots),
        ("slot.queue", False, Slots),
        (None, True, PacedScopes),
        ("scope._jitter", True, ThrottlingScopes),
        ("throttler.release", True, Slots),
    ],
)
def test_the_limits_of_hosts_are_those_of_the_slots_or_of_the_throttler(
    path: str | None, throttled: bool, expected: type
) -> None:
    engine = make_engine(path, throttled=throttled)
    engine.open(lambda scheduler: scheduler)
    assert type(engine.slots) is expected


def test_a_queue_of_scrapy_returns_only_requests_that_may_be_read() -> None:
    engine = make_engine()
    engine.open(lambda scheduler: scheduler)
    queue = engine._slot.scheduler.mqs
    queue._last_selected_slot = None
    engine.readable = lambda names: [name for name in names if name != "busy.example"]
    assert queue.pop() == 3
    engine.readable = lambda names: []
    assert queue.pop() is None


def test_excluded_requests_use_up_no_capacity_beside_a_throttler() -> None:
    engine = make_engine(throttled=True)
    engine.open(lambda scheduler: scheduler)
    scrapy, downloader = engine._engine, engine._downloader
    requests = [Request(f"http://example.com/{number}") for number in range(32)]
    excluded, others = requests[:16], requests[16:]
    downloader.active.update(excluded)
    downloader._in_download_handler.update(excluded)
    for request in excluded:
        engine.exclude(request)
    scrapy._throttler_waiting.update(others[1:])
    assert not scrapy._throttler_needs_backout()
    scrapy._throttler_waiting.update(others)
    assert scrapy._throttler_needs_backout()
    downloader._in_download_handler.update(others[1:])
    assert not downloader._download_handler_slots_full()
    downloader._in_download_handler.update(others)
    assert downloader._download_handler_slots_full()


@pytest.mark.parametrize("name", ["_throttler_needs_backout", "_download_handler_slots_full"])
def test_what_scrapy_does_not_find_full_is_not_full(name: str) -> None:
    engine = make_engine(throttled=True)
    owner = engine._engine if name == "_throttler_needs_backout" else engine._downloader
    setattr(owner, name, lambda: False)  # for instance, there is no limit
    engine.open(lambda scheduler: scheduler)
    engine._downloader.total_concurrency = 0
    assert not getattr(owner, name)()


def test_a_request_that_the_throttler_holds_has_not_ended() -> None:
    engine = make_engine(throttled=True)
    engine.open(lambda scheduler: scheduler)
    request = Request("http://example.com/")
    assert not engine.is_active(request)
    engine._engine._throttler_waiting.add(request)
    assert engine.is_active(request)
    assert engine.is_held(request)
    assert engine.active == (request,)
    assert not engine.has_reached_slot(request)
    request.meta["download_slot"] = "example.com"
    assert engine.has_reached_slot(request)


def test_a_throttler_with_another_interface_is_not_used() -> None:
    def refuse(name: str) -> None:
        raise TypeError

    engine = make_engine(throttled=True)
    engine._throttler.get_scope_manager = refuse
    engine.open(lambda scheduler: scheduler)
    assert type(engine.slots) is Slots


def test_a_concurrency_that_is_no_number_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    engine = make_engine()
    engine._downloader.total_concurrency = None
    [warning] = warnings(engine, caplog)
    assert Feature.EXCLUDE.value in warning


@pytest.mark.parametrize("attribute", ["_pool_size_total", "_session"])
def test_an_aiohttp_handler_that_differs_is_noticed(
    attribute: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scrapy.core.downloader.handlers._aiohttp")
    assert warnings(make_engine(handler=AIOHTTP_HANDLER), caplog) == []
    real = features._set_by_constructors
    monkeypatch.setattr(features, "_set_by_constructors", lambda value: real(value) - {attribute})
    [warning] = warnings(make_engine(handler=AIOHTTP_HANDLER), caplog)
    assert Feature.WIDEN.value in warning
    assert f"handler.{attribute}" in warning
