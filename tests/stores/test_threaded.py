"""Calls of a store in threads. They end on each event loop, also if they were cancelled."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep.clock import Clock
from scrapy_rep.stores import StoreError
from scrapy_rep.stores.sqlite import SQLiteStore


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "robots.db", ttl=60)


async def test_all_calls_end_first(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that was cancelled ends nevertheless."""
    done, proceed = list[str](), threading.Event()
    monkeypatch.setattr(store, "disconnect", lambda: done.append("disconnected"))

    def slow() -> None:
        proceed.wait(300)
        done.append("slow")

    call = deferred_from_coro(store._run(slow))
    call.addErrback(lambda _: None)
    await Clock().sleep(0.05)
    call.cancel()
    closing = deferred_from_coro(store.close())
    await Clock().sleep(0.05)
    assert done == []
    proceed.set()
    await maybe_deferred_to_future(closing)
    assert done == ["slow", "disconnected"]


async def test_a_call_times_out(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_rep.stores.threaded.CALL_TIMEOUT", 0.05)
    proceed = threading.Event()
    with pytest.raises(StoreError, match=r"not answered for 0\.05 s"):
        await store._run(proceed.wait, 300)
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store._run(divmod, 7, 2)
    proceed.set()
