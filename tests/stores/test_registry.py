"""The forms of REP_STORE, and the stores that they select."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.exceptions import SettingError
from scrapy_rep.settings import Settings
from scrapy_rep.stores import FallbackStore, StoreError, open_store, registry
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.registry import STORE_TYPES, StoreType, find_type, store_forms

if TYPE_CHECKING:
    from scrapy_rep.stores import Store

SQLITE, REDIS, CLUSTER, SENTINEL, MEMORY, PATH = STORE_TYPES


@pytest.mark.parametrize(
    ("url", "store_type"),
    [
        ("sqlite:///robots.db", SQLITE),
        ("sqlite:////folder/robots.db", SQLITE),
        ("sqlite:///", None),
        ("sqlite://robots.db", None),
        ("redis://h:6379/0", REDIS),
        ("rediss://h", REDIS),
        ("unix:///run/x.sock", REDIS),
        ("redis+cluster://h,i:7000", CLUSTER),
        ("rediss+cluster://h", CLUSTER),
        ("redis+sentinel://h,i:26379/name/0", SENTINEL),
        ("rediss+sentinel://h/name", SENTINEL),
        ("unix+cluster://h", None),
        ("redis+other://h", None),
        ("package.module.Class", PATH),
        ("package.function", PATH),
        ("package.1", None),
        ("package.", None),
        ("redis://", None),
        ("redis:/h", None),
        ("memory://a.b-c_1", MEMORY),
        ("memory://", None),
        ("memory://a/b", None),
        ("memory://a b", None),
        ("memory://a\n", None),
        ("postgres://h/db", None),
        ("redis", None),
    ],
)
def test_the_url_selects_the_type(url: str, store_type: StoreType | None) -> None:
    assert find_type(url) is store_type


def test_an_unknown_url_is_an_error_that_lists_the_forms() -> None:
    with pytest.raises(StoreError, match=re.escape(f"it must be {store_forms()}")):
        open_store("postgres://h/db", jobdir=None, ttl=60)
    for store_type in STORE_TYPES:
        assert store_type.form in store_forms()


def test_one_row_adds_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, float]] = []

    def open_other(url: str, ttl: float) -> Store:
        opened.append((url, ttl))
        return MemoryStore()

    other = StoreType("'other://name'", re.compile("other://.+"), open_other)
    monkeypatch.setattr(registry, "STORE_TYPES", (*STORE_TYPES, other))
    settings = Settings.read(ScrapySettings({"REP_STORE": "other://x"}))
    assert isinstance(open_store(settings.store, jobdir=None, ttl=5), MemoryStore)
    assert opened == [("other://x", 5)]
    with pytest.raises(SettingError, match=r"must be None, 'sqlite:///path', .* or 'other://name'"):
        Settings.read(ScrapySettings({"REP_STORE": "another://x"}))


class OwnStore(MemoryStore):
    """A store of one's own, which may fail."""

    opens = True

    def __init__(self, *, ttl: float) -> None:
        super().__init__(ttl=ttl)
        self.ttl = ttl

    def open(self) -> None:
        if not self.opens:
            raise StoreError("the server does not answer")


def own_store(ttl: float) -> OwnStore:
    return OwnStore(ttl=ttl)


@pytest.mark.parametrize(
    "source",
    [
        "tests.stores.test_registry.OwnStore",
        "tests.stores.test_registry.own_store",
        OwnStore,
        own_store,
    ],
)
async def test_a_class_or_a_function_returns_the_store(source: Any) -> None:
    settings = Settings.read(ScrapySettings({"REP_STORE": source}))
    store = open_store(settings.store, jobdir=None, ttl=5)
    assert isinstance(store, FallbackStore)
    assert type(store._store).__name__ == "OwnStore"
    assert store._store.ttl == 5  # type: ignore[attr-defined]
    assert (await store.claim("http://a.example", 1)).claimed


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("scrapy_rep.missing.Store", "No module named 'scrapy_rep.missing'"),
        ("scrapy_rep.stores.Missing", "has no attribute 'Missing'"),
        (lambda ttl: None, "a store needs shared, open, close, get, put, claim, renew, release"),
    ],
)
def test_a_path_without_a_store_is_an_error(source: Any, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        open_store(source, jobdir=None, ttl=5)


def test_a_store_that_cannot_be_opened_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OwnStore, "opens", False)
    with pytest.raises(StoreError, match="the server does not answer"):
        open_store(OwnStore, jobdir=None, ttl=5)
