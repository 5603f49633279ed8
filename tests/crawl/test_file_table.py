"""The files of a crawl in memory: which are parsed, packed and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.crawl import file_table
from scrapy_rep.crawl.file_table import FileTable
from scrapy_rep.protocol.access import CopyInfo, Rules
from scrapy_rep.protocol.robotstxt import RobotsTxt

from .conftest import our_warnings

if TYPE_CHECKING:
    from testing.web import Web

    from .conftest import Clock, Crawl

T = 1_700_000_000.0
BODY = b"User-agent: *\nDisallow: /private\n"


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
        self.in_use = in_use.__contains__

    def evict_all(self, reserve: int = 0) -> None:
        """Pack and remove the files that are not in use."""
        self.evict(self.in_use, reserve)


def table_of(most: int, in_use: set[str]) -> Table:
    return Table(most, in_use)


def add(table: Table, *keys: str, body: bytes = BODY) -> None:
    """Add new origins whose files were fetched."""
    for key in keys:
        origin = table.find_or_add(key)
        origin.start_fetch(T)
        copy = CopyInfo(f"{key}/robots.txt")
        origin.apply(Rules(RobotsTxt.parse(body), 200, copy, T + 600, body), T)
        table.count(origin)
        table.evict_all()


def parsed(table: Table) -> str:
    return "".join(table.parsed)


def packed(table: Table) -> str:
    return "".join(table)[: -len(table.parsed) or None]


def test_the_least_recently_used_files_are_packed(limits: Any, in_use: set[str]) -> None:
    limits(MAX_PARSED=2)
    table = table_of(10, in_use)
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
    table = table_of(4, in_use)
    add(table, *"abcde")
    assert "".join(table) == "bcde"
    table.evict_all(reserve=3)
    assert "".join(table) == "e"


def test_files_in_use_are_kept(limits: Any, in_use: set[str]) -> None:
    limits(MAX_PARSED=2)
    table = table_of(4, in_use)
    add(table, *"abcd")
    in_use.update("ad")
    table.evict_all(reserve=4)
    assert set(table) == {"a", "d"}
    in_use.clear()
    table.evict_all(reserve=4)
    assert not table


def test_the_octets_of_packed_files_are_limited(limits: Any, in_use: set[str]) -> None:
    limits(MAX_PARSED=1, MIN_PACKED_OCTETS=600, PACKED_OCTETS=1)
    table = table_of(100, in_use)
    keys = [str(number) for number in range(50)]
    add(table, *keys)
    assert 1 < len(table) < 10
    assert list(table) == keys[-len(table) :]
    assert table._packed_octets == sum(map(len, table._packed.values())) <= 600
    in_use.update(table)
    add(table, "x", "y", "z")
    assert in_use < set(table)


# In a crawl


async def test_packed_origins_answer_as_before(
    web: Web, crawl: Crawl, limits: Any, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    limits(MAX_PARSED=1)
    sites = [web.site(BODY) for _ in range(4)]
    sites.append(web.site(None))
    urls = [site.url(path) for path in ("/1", "/private", "/2") for site in sites]
    outcome = await crawl(urls, {"CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1})
    assert len(outcome.middleware.origins) == 5
    assert [site.paths.count("/robots.txt") for site in sites] == [1] * 5
    for site in sites[:4]:
        assert sorted(site.page_paths) == ["/1", "/2"]
    assert sorted(sites[4].page_paths) == ["/1", "/2", "/private"]
    assert not our_warnings(caplog)
