"""The forms of REP_STORE, and the stores that they select."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.exceptions import SettingError
from scrapy_rep.settings import Settings
from scrapy_rep.stores import StoreError, open_store, registry
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.registry import STORE_TYPES, StoreType, find_type, store_forms

if TYPE_CHECKING:
    from scrapy_rep.stores import Store

SQLITE, REDIS, MEMORY = STORE_TYPES


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
