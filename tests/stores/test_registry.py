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
    ("form", "urls"),
    [
        (SQLITE, ["sqlite:///robots.db", "sqlite:////folder/robots.db"]),
        (REDIS, ["redis://h:6379/0", "rediss://h", "unix:///run/x.sock", "redis+cluster://h:7000",
                 "rediss+cluster://h", "redis+sentinel://h:1,h:2/main", "rediss+sentinel://h/a/1"]),
        (PATH, ["package.module.Class", "package.function"]),
        (MEMORY, ["memory://a.b-c_1"]),
        (None, ["sqlite:///", "sqlite://robots.db", "redis+other://h", "package.1", "package.",
                "redis://", "redis:/h", "redis", "postgres://h/db"]),
        (None, ["memory://", "memory://a/b", "memory://a b", "memory://a\n"]),
    ],
)  # fmt: skip
def test_the_url_selects_the_type(form: str | None, urls: list[str]) -> None:
    assert {url: find_form(url) for url in urls} == dict.fromkeys(urls, form)


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
    "url",
    [
        "redis://h:6379/0", "redis://h/0?db=1#x", "redis://[::1]:6379/0", "nonsense",
        "sqlite:////folder/robots.db", "mybot/1.0 (+https://bot.example)",
    ],
)  # fmt: skip
def test_a_url_without_a_password_is_shown_as_it_is(url: str) -> None:
    assert without_password(url) == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
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
        ("redis://h/0?ssl_password=pw", "redis://h/0?ssl_password=***"),
        *((f"redis://h/0?{query}", "redis://h/0?password=***")
          for query in ("password=p#w", "password=p@w", "pass%77ord=pw")),
        # not percent-encoded, or invalid, such as with full-width digits, which no port has
        *((f"redis://{rest}", "redis://***")
          for rest in (":p#w@h/0", ":p/w@h/0", ":p?w@h/0", "user#pw@h/0", ":pw/0", "h:pw/0",
                       "h:\uff11\uff12/0")),
        ("sqlite:////folder/a@b/robots.db", "sqlite://***"),
        *((text, "***") for text in ("redis:/:pw@h/0", ":pw@h/0", "h?password=pw")),
    ],
)  # fmt: skip
def test_without_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


PASSWORD = st.text("/?#@:&;=%[]\n ", max_size=4).map(lambda text: f"{text}Zk") | st.tuples(
    st.text("/?#@:&;=%[]", max_size=3), st.text("/?#@:&;=%[]", max_size=3)
).map(lambda ends: f"Zk{ends[0]}Zk{ends[1]}")


@given(
    PASSWORD,
    st.sampled_from(
        [
            "redis://:{}@h:6379/0", "redis://user:{}@h", "rediss://:{}@[::1]/0?db=1",
            "unix://:{}@/x.sock", "unix:///x.sock?password={}", "redis://h/0?db=1&password={}",
            "redis://h/0?password={}&db=1", "postgres://user:{}@h/db", "redis:/:{}@h",
        ]
    ),
)  # fmt: skip
def test_any_password_is_hidden(password: str, url: str) -> None:
    assert "Zk" not in without_password(url.format(password))
