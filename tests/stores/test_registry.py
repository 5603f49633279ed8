"""The forms of REP_STORE, the stores that they select, and how a message shows them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.settings import Settings
from scrapy_rep.stores import StoreError
from scrapy_rep.stores.fallback import FallbackStore
from scrapy_rep.stores.registry import open_store
from scrapy_rep.stores.sqlite import MemoryStore
from scrapy_rep.stores.urls import STORE_FORMS, find_form, store_forms, without_password

SQLITE, REDIS, MEMORY, PATH = STORE_FORMS


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("sqlite:///robots.db", SQLITE),
        ("sqlite:////folder/robots.db", SQLITE),
        ("sqlite:///", None),
        ("sqlite://robots.db", None),
        ("redis://h:6379/0", REDIS),
        ("rediss://h", REDIS),
        ("unix:///run/x.sock", REDIS),
        ("redis+cluster://h:7000", REDIS),
        ("rediss+cluster://h", REDIS),
        ("redis+sentinel://h:1,h:2/main", REDIS),
        ("rediss+sentinel://h/main/1", REDIS),
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
def test_the_url_selects_the_type(url: str, form: str | None) -> None:
    assert find_form(url) == form


def test_the_forms_are_listed() -> None:
    assert all(form in store_forms() for form in STORE_FORMS)


class OwnStore(MemoryStore):
    """A store of one's own."""

    def __init__(self, *, ttl: float) -> None:
        super().__init__(ttl=ttl)
        self.ttl = ttl


class ClosedStore(OwnStore):
    def open(self) -> None:
        raise StoreError("the server does not answer")


def own_store(ttl: float) -> OwnStore:
    return OwnStore(ttl=ttl)


OWN = "tests.stores.test_registry"


@pytest.mark.parametrize("source", [f"{OWN}.OwnStore", f"{OWN}.own_store", OwnStore, own_store])
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
        (lambda ttl: None, "a store needs shared, open, close, get, put, claim, release"),
        (ClosedStore, "the server does not answer"),
    ],
)
def test_a_value_without_a_usable_store_is_an_error(source: Any, message: str) -> None:
    with pytest.raises(StoreError, match=re.escape(message)):
        open_store(source, jobdir=None, ttl=5)


# Passwords


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:6379/0", "redis://h:6379/0"),
        ("redis://h/0?db=1#x", "redis://h/0?db=1#x"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        ("sqlite:////folder/robots.db", "sqlite:////folder/robots.db"),
        ("redis://user:pw@h", "redis://user:***@h"),
        ("redis+sentinel://u:pw@h:1,[::1]:2/a/1", "redis+sentinel://u:***@h:1,[::1]:2/a/1"),
        ("redis://pw@h", "redis://***@h"),  # a user name, which may be meant as a password
        ("redis://user:p@w@h/0", "redis://user:***@h/0"),
        ("redis://user:p:w@[::1]:1/0", "redis://user:***@[::1]:1/0"),
        ("unix://user:pw@/x.sock", "unix://user:***@/x.sock"),
        ("postgres://u:pw@h:1,[::1]:2,i/0", "postgres://u:***@h:1,[::1]:2,i/0"),
        # in the query
        ("unix:///x.sock?password=pw", "unix:///x.sock?password=***"),
        ("redis://h/0?db=1&password=pw&protocol=3", "redis://h/0?db=1&password=***"),
        ("redis://h/0?password=p#w", "redis://h/0?password=***"),
        ("redis://h/0?password=p@w", "redis://h/0?password=***"),
        ("redis://h/0?pass%77ord=pw", "redis://h/0?password=***"),
        ("redis://h/0?ssl_password=pw", "redis://h/0?ssl_password=***"),
        # not percent-encoded
        ("redis://:p#w@h/0", "redis://***"),
        ("redis://:p/w@h/0", "redis://***"),
        ("redis://:p?w@h/0", "redis://***"),
        ("redis://user#pw@h/0", "redis://***"),
        ("sqlite:////folder/a@b/robots.db", "sqlite://***"),
        # invalid
        ("redis://:pw/0", "redis://***"),
        ("redis://h:pw/0", "redis://***"),
        ("redis://h:\uff11\uff12/0", "redis://***"),  # full-width digits, which no port has
        ("redis:/:pw@h/0", "***"),
        (":pw@h/0", "***"),
        ("h?password=pw", "***"),
        ("mybot/1.0 (+https://bot.example)", "mybot/1.0 (+https://bot.example)"),
        ("nonsense", "nonsense"),
    ],
)
def test_without_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


PASSWORD = st.text("/?#@:&;=%[]\n ", max_size=4).map(lambda text: f"{text}Zk") | st.tuples(
    st.text("/?#@:&;=%[]", max_size=3), st.text("/?#@:&;=%[]", max_size=3)
).map(lambda ends: f"Zk{ends[0]}Zk{ends[1]}")


@given(
    PASSWORD,
    st.sampled_from(
        [
            "redis://:{}@h:6379/0",
            "redis://user:{}@h",
            "rediss://:{}@[::1]/0?db=1",
            "unix://:{}@/x.sock",
            "unix:///x.sock?password={}",
            "redis://h/0?db=1&password={}",
            "redis://h/0?password={}&db=1",
            "postgres://user:{}@h/db",
            "redis:/:{}@h",
        ]
    ),
)
def test_any_password_is_hidden(password: str, url: str) -> None:
    assert "Zk" not in without_password(url.format(password))
