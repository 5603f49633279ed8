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
from scrapy import Spider
from scrapy.core.downloader import Slot
from scrapy.utils.test import get_crawler

from scrapy_rep.scheduling import engine as engine_module
from scrapy_rep.scheduling.engine import FEATURES, REQUIRED, Engine, Feature
from scrapy_rep.scheduling.handlers import AIOHTTP_HANDLER
from tests.import_contracts import ROOT, attributes_used_in

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

MODULE = Path(engine_module.__file__)


def dotted(path: str) -> set[str]:
    """Return the attributes of a path as the contract names them: ``slot.closing``."""
    names = path.split(".")
    return {f"{first.lstrip('_')}.{second}" for first, second in pairwise(names)}


USED = set().union(*map(dotted, (*REQUIRED, *FEATURES)))


def test_the_docstring_lists_the_attributes_that_are_checked() -> None:
    assert MODULE.read_text().startswith('"""')
    table = re.findall(r"^``([\w.]+)``", engine_module.__doc__ or "", re.MULTILINE)
    assert table == [*REQUIRED, *FEATURES]


def test_the_contract_lists_the_attributes_that_are_checked() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = next(
        each for each in tool["contracts"] if each.get("owner") == "scrapy_rep.scheduling.engine"
    )
    assert set(contract["attributes"]) == USED
    assert len(contract["attributes"]) == len(USED)


def test_every_attribute_of_the_list_is_used() -> None:
    assert attributes_used_in(MODULE) >= USED


def test_every_private_attribute_that_is_used_is_on_the_list() -> None:
    own = {name for name in vars(Engine) if name.startswith("_")}
    own |= set(vars(Engine(get_crawler())))
    private = {
        name
        for name in attributes_used_in(MODULE)
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


def make_engine(without: str | None = None, handler: str = "builtins.object") -> Engine:
    """Return an engine with all attributes that are used but one."""

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
        domain_concurrency=8,
        slots={},
        _get_slot=lambda request: ("key", slot()),
        get_slot_key=lambda request: "key",
        _process_queue=lambda slot: None,
        handlers=handlers,
    )
    engine = Bare(
        _slot=Bare(scheduler=object(), nextcall=nextcall, closing=None),
        _start=None,
        scraper=Bare(slot=None),
        downloader=downloader,
    )
    if without is not None and not without.startswith("slot."):
        root, *names, last = without.split(".")
        owner = {"engine": engine, "downloader": downloader}[root]
        for name in names:
            owner = getattr(owner, name)
        delattr(owner, last)
    crawler: Any = SimpleNamespace(engine=engine, spider=Spider("test"))
    return Engine(crawler)


def warnings(engine: Engine, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    engine.open(lambda scheduler: scheduler)
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_nothing_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings(make_engine(), caplog) == []


@pytest.mark.parametrize(
    "path", [path for path in FEATURES if not path.startswith(("handler.", "connector."))]
)
def test_one_warning_names_what_is_missing_and_what_is_off(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make_engine(path)
    [warning] = warnings(engine, caplog)
    assert path in warning
    assert FEATURES[path].value in warning
    assert engine._available <= set(Feature) - {FEATURES[path]}
    engine.wake()
    assert engine.slot_limits(Any) == (8, 0)  # type: ignore[arg-type]
    assert not engine.is_closing
    assert not engine._waits_for_refreshes
    engine._widen_pools(1)


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
    real = engine_module._set_by_constructors
    monkeypatch.setattr(
        engine_module, "_set_by_constructors", lambda value: real(value) - {attribute}
    )
    [warning] = warnings(make_engine(handler=AIOHTTP_HANDLER), caplog)
    assert Feature.WIDEN.value in warning
    assert f"handler.{attribute}" in warning
