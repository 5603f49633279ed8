"""The origins of a crawl in memory: which are parsed, packed and removed, and that none changes."""

from __future__ import annotations

from dataclasses import fields
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_rep.crawl import file_table
from scrapy_rep.crawl.file_table import FileTable, pack, unpack
from scrapy_rep.origin import Origin, State, Tdm, UnreachablePolicy
from scrapy_rep.protocol.access import (
    AccessResult,
    Cancelled,
    CopyInfo,
    FetchResult,
    NotModified,
    Rules,
    Unavailable,
)
from scrapy_rep.protocol.access import Unreachable as Failed
from scrapy_rep.protocol.records import Pacing
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.tdmrep import TdmRep
from testing import generated
from testing.generated import questions

KEY = "https://www.example.com"
URL = f"{KEY}/robots.txt"
T = 1_700_000_000.123
POLICY = UnreachablePolicy()
ROBOTS = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 5\nSitemap: /map.xml\n"


def origin_after(*events: FetchResult, now: float = T) -> Origin:
    origin = Origin(KEY)
    for number, event in enumerate(events):
        origin.start_fetch(now + number)
        origin.apply(event, now + number)
    return origin


def rules(body: bytes, *, strict: bool = False) -> Rules:
    copy = CopyInfo(URL, '"1"', "Mon, 01 Jan 2026 00:00:00 GMT", 600, "0" * 64)
    return Rules(RobotsTxt.parse(body, strict=strict, url=URL), 200, copy, T + 600, body)


bodies = st.one_of(
    st.integers(0, 10**6).map(lambda seed: generated.files(1, seed).popitem()[1]),
    st.integers(0, 10**6).map(
        lambda seed: generated.files(1, seed).popitem()[1].decode("latin-1").encode("utf-16")
    ),
    st.binary(max_size=300),
)


@settings(max_examples=60)
@given(bodies, st.booleans())
def test_an_unpacked_file_gives_the_same_answers(body: bytes, strict: bool) -> None:
    origin = origin_after(rules(body, strict=strict))
    unpacked = unpack(pack(origin))
    before, after = origin.content, unpacked.content
    assert before is not None
    assert after is not None
    assert after == before
    assert after.__getstate__() == before.__getstate__()  # from which all else is derived
    assert Pacing.of(after, ("examplebot",)) == Pacing.of(before, ("examplebot",))
    for agent, url in [*questions("a", body[:5000], 5), ("examplebot", "/last"), ("*", "/a")]:
        assert after.matches(url, agent) == before.matches(url, agent)
        assert after.verdict(url, agent) == before.verdict(url, agent)
    question = (KEY + "/a", ("x",), T, POLICY)
    assert unpacked.verdict(*question) == origin.verdict(*question)


HISTORIES: dict[str, tuple[FetchResult, ...]] = {
    "nothing known": (),
    "rules": (rules(ROBOTS),),
    "not modified": (rules(ROBOTS), NotModified(T + 900)),
    "a failed refresh": (rules(ROBOTS), Failed("status 503", 503, URL)),
    "unavailable": (Unavailable(URL, T + 600, 404),),
    "disallowed": (Unavailable(URL, T + 600, 403, AccessResult.DISALLOWED, from_cache=True),),
    "unreachable": (Failed("no\ud800 answer", None, URL, 30.0),),
    "cancelled": (Cancelled(),),
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_every_field_is_kept(history: tuple[FetchResult, ...]) -> None:
    origin = origin_after(*history)
    origin.redirects = (f"{KEY}/first",)
    origin.answered_at = -inf
    origin.source = "store"
    origin.reported_pace = "Crawl-delay: 5"
    unpacked = unpack(pack(origin))
    assert _values(unpacked) == _values(origin)
    assert type(unpacked.state) is State
    assert unpacked.copy is None or type(unpacked.copy) is CopyInfo


def _values(origin: Origin) -> dict[str, object]:
    return {each.name: getattr(origin, each.name) for each in fields(origin)}


def test_a_tdm_file() -> None:
    body = b'[{"location": "/*.jpg", "tdm-reservation": 1, "tdm-policy": "/p"}, {"location": 1}]'
    origin, content = Origin(KEY), TdmRep.parse(body)
    origin.tdm = Tdm(content, len(body), T)
    unpacked = unpack(pack(origin))
    assert unpacked.tdm is not None
    assert unpacked.tdm.content is not None
    assert unpacked.tdm.content.rule("/cat.jpg") == content.rule("/cat.jpg") is not None
    assert unpacked.tdm.content.rule("/cat.png") is None
    assert unpacked.tdm.content.problem == "1 of its rules are unreadable"


# Which origins are parsed, packed and removed


@pytest.fixture
def in_use() -> set[str]:
    return set()


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the limits of new tables."""

    def set_limits(**values: int) -> None:
        for name, value in values.items():
            monkeypatch.setattr(file_table, name, value)

    return set_limits


class Table(FileTable):
    """A table with the files that are in use."""

    def __init__(self, most: int, in_use: set[str]) -> None:
        super().__init__(most)
        self.in_use = in_use

    def evict_all(self, reserve: int = 0) -> None:
        """Pack and remove the files that are not in use."""
        self.evict(self.in_use.__contains__, reserve)


def add(table: Table, *keys: str, body: bytes = ROBOTS) -> None:
    """Add new origins whose files were fetched."""
    for key in keys:
        origin = table.find_or_add(key)
        origin.start_fetch(T)
        origin.apply(rules(body), T)
        table.count(origin)
        table.evict_all()


def parsed(table: Table) -> str:
    return "".join(table.parsed)


def packed(table: Table) -> str:
    return "".join(table)[: -len(table.parsed) or None]


def test_the_least_recently_used_files_are_packed(limits: Any, in_use: set[str]) -> None:
    limits(MAX_PARSED=2)
    table = Table(10, in_use)
    add(table, *"abc")
    assert (packed(table), parsed(table)) == ("a", "bc")
    assert table.find("a") is not None
    table.evict_all()
    assert (packed(table), parsed(table)) == ("b", "ca")
    table.find_or_add("c")
    table.find_or_add("b")
    table.evict_all()
    assert (packed(table), parsed(table)) == ("a", "cb")


def test_the_least_recently_used_files_are_removed(limits: Any, in_use: set[str]) -> None:
    limits(MAX_PARSED=2)
    table = Table(4, in_use)
    add(table, *"abcde")
    assert "".join(table) == "bcde"
    table.evict_all(reserve=3)
    assert "".join(table) == "e"


def test_files_in_use_are_kept(limits: Any, in_use: set[str]) -> None:
    limits(MAX_PARSED=2)
    table = Table(4, in_use)
    add(table, *"abcd")
    in_use.update("ad")
    table.evict_all(reserve=4)
    assert set(table) == {"a", "d"}
    in_use.clear()
    table.evict_all(reserve=4)
    assert not table


def test_the_octets_of_packed_files_are_limited(limits: Any, in_use: set[str]) -> None:
    limits(MAX_PARSED=1, MIN_PACKED_OCTETS=600, PACKED_OCTETS=1)
    table = Table(100, in_use)
    keys = [str(number) for number in range(50)]
    add(table, *keys)
    assert 1 < len(table) < 10
    assert list(table) == keys[-len(table) :]
    assert table._packed_octets == sum(map(len, table._packed.values())) <= 600
    in_use.update(table)
    add(table, "x", "y", "z")
    assert in_use < set(table)


def test_the_octets_of_parsed_files_are_limited(limits: Any, in_use: set[str]) -> None:
    limits(MAX_PARSED_OCTETS=1000)
    table = Table(10, in_use)
    add(table, *"abc")
    assert parsed(table) == "abc"
    table.parsed["b"].tdm = Tdm(None, 2000, T)
    table.count(table.parsed["b"])
    table.evict_all()
    assert (packed(table), parsed(table)) == ("ab", "c")
