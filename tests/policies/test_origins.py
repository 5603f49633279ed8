"""The origins of a crawl in memory: which are parsed, packed and removed, and that none changes."""

from __future__ import annotations

from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_rep.origin import Origin, State, Tdm, UnreachablePolicy
from scrapy_rep.policies import origins
from scrapy_rep.policies.origins import OriginTable, pack, unpack
from scrapy_rep.protocol import access
from scrapy_rep.protocol.access import CopyInfo, FetchResult, NotModified, Rules, Unavailable
from scrapy_rep.protocol.pacing import Pacing
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.tdmrep import TdmRep
from testing.generated import questions
from tests.protocol.test_properties import bodies

KEY = "https://www.example.com"
URL = f"{KEY}/robots.txt"
T = 1_700_000_000.123
ROBOTS = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 5\nSitemap: /map.xml\n"


def origin_after(*events: FetchResult) -> Origin:
    origin = Origin(KEY)
    for number, event in enumerate(events):
        origin.start_fetch(T + number)
        origin.apply(event, T + number)
    return origin


def rules(body: bytes, *, strict: bool = False) -> Rules:
    copy = CopyInfo(URL, '"1"', "Mon, 01 Jan 2026 00:00:00 GMT", 600, "0" * 64)
    return Rules(RobotsTxt.parse(body, strict=strict, url=URL), 200, copy, T + 600, body)


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
    question = (KEY + "/a", ("x",), T, UnreachablePolicy())
    assert unpacked.verdict(*question) == origin.verdict(*question)


HISTORIES: dict[str, tuple[FetchResult, ...]] = {
    "nothing known": (),
    "rules": (rules(ROBOTS),),
    "not modified": (rules(ROBOTS), NotModified(T + 900)),
    "a failed refresh": (rules(ROBOTS), access.Unreachable("status 503", 503, URL)),
    "unavailable": (Unavailable(URL, T + 600, 404),),
    "disallowed": (Unavailable(URL, T + 600, 403, access.AccessResult.DISALLOWED, True),),
    "unreachable": (access.Unreachable("no\ud800 answer", None, URL, 30.0),),
    "cancelled": (access.Cancelled(),),
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_every_field_is_kept(history: tuple[FetchResult, ...]) -> None:
    origin = origin_after(*history)
    origin.redirects = (f"{KEY}/first",)
    origin.source = "store"
    origin.notes.logged_pace = "Crawl-delay: 5"
    unpacked = unpack(pack(origin))
    for each in fields(origin):
        assert getattr(unpacked, each.name) == getattr(origin, each.name)
    assert type(unpacked.state) is State
    assert unpacked.copy is None or type(unpacked.copy) is CopyInfo


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


class Table(OriginTable):
    """A table with the files that are in use."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self.in_use: set[str] = set()

    def evict_all(self, most: int | None = None) -> None:
        """Pack and remove the files that are not in use, and beyond another limit, if given."""
        self._most = self._most if most is None else most
        self.evict(self.in_use.__contains__)


def add(table: Table, *keys: str) -> None:
    """Add new origins whose files were fetched."""
    for key in keys:
        origin = table.find_or_add(key)
        origin.start_fetch(T)
        origin.apply(rules(b"User-agent: *\nDisallow: /private\n"), T)
        table.measure()
        table.evict_all()


def places(table: Table) -> tuple[str, str]:
    """The keys of the packed and of the parsed files."""
    return "".join(table)[: -len(table.parsed) or None], "".join(table.parsed)


def test_the_least_recently_used_are_packed_then_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "MAX_PARSED", 2)
    table = Table(4)
    add(table, *"abc")
    assert places(table) == ("a", "bc")
    assert table.get("a") is not None
    table.evict_all()
    assert places(table) == ("b", "ca")
    table.find_or_add("c")
    table.find_or_add("b")
    table.evict_all()
    assert places(table) == ("a", "cb")
    add(table, *"de")
    assert "".join(table) == "cbde"
    table.in_use.update("ce")
    table.evict_all(0)
    assert set(table) == {"c", "e"}
    table.in_use.clear()
    table.evict_all(1)
    assert "".join(table) == "e"


def test_the_bytes_of_packed_files_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MAX_PARSED", 1), ("MIN_PACKED_BYTES", 600), ("PACKED_BYTES", 1)):
        monkeypatch.setattr(origins, name, value)
    table = Table(100)
    keys = [str(number) for number in range(50)]
    add(table, *keys)
    assert 1 < len(table) < 10
    assert list(table) == keys[-len(table) :]
    assert table._packed_bytes == sum(map(len, table._packed.values())) <= 600
    table.in_use.update(table)
    add(table, "x", "y", "z")
    assert table.in_use < set(table)


def test_the_bytes_of_parsed_files_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(origins, "MAX_PARSED_BYTES", 1000)
    table = Table(10)
    add(table, *"abc")
    assert places(table) == ("", "abc")
    table.parsed["b"].tdm = Tdm(None, 2000, T)
    table.measure()
    table.evict_all()
    assert places(table) == ("ab", "c")
