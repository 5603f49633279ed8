"""The priority queue of the scheduler: what it stores is Scrapy's, and nothing is lost."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from types import MethodType
from typing import Any

import pytest
import scrapy
from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.squeues import PickleFifoDiskQueue

from scrapy_rep.frontier import queue as module
from scrapy_rep.policies.gate import READY
from scrapy_rep.scrapy_internals import directory_of

from .doubles import FakeCrawl

OURS = "scrapy_rep.frontier.queue.OriginPriorityQueue"
DEFAULT = "scrapy.pqueues.DownloaderAwarePriorityQueue"
PLAIN = "scrapy.pqueues.ScrapyPriorityQueue"
URGENT = "scrapy_rep.frontier.queue.PriorityFirstQueue"

A, B = "http://a.example", "http://b.example"
SECURE = "https://a.example"

SCRAPY_CLEANS = scrapy.version_info >= (2, 15)
"""Scrapy 2.14 keeps the directories of empty queues. When it continues a crawl, it does not close
the files of empty queues of start requests, so that a garbage collection does."""
UNRAISABLE = "ignore:Exception ignored:pytest.PytestUnraisableExceptionWarning"

KINDS = pytest.mark.parametrize("kind", ["PickleFifo", "PickleLifo", "MarshalFifo", "MarshalLifo"])


class StoredCrawl(FakeCrawl):
    """A crawl with Scrapy's scheduler and JOBDIR. All requests are allowed."""

    def __init__(self, folder: Path, queue: str = OURS, kind: Any = "PickleFifo") -> None:
        name = kind if isinstance(kind, type) else f"scrapy.squeues.{kind}DiskQueue"
        super().__init__(
            {
                "JOBDIR": str(folder),
                "SCHEDULER_PRIORITY_QUEUE": queue,
                "SCHEDULER_DISK_QUEUE": name,
                "SCHEDULER_START_DISK_QUEUE": name,
                "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
                "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
            }
        )
        self.policies.gates = defaultdict(lambda: READY)
        crawler: Any = self.crawler
        crawler.engine.downloader.get_slot_key = lambda each: self.policies.address(each).host
        crawler.spider = crawler._create_spider("stored")
        self.scheduler = Scheduler.from_crawler(self.crawler)
        self.scheduler.open(crawler.spider)
        self.folder = folder

    def push(self, *urls: str, priority: int = 0, **meta: Any) -> None:
        for url in urls:
            assert self.scheduler.enqueue_request(Request(url, priority=priority, meta=meta))

    def read(self, most: int = 1000) -> Iterator[str]:
        """Remove requests, each of which ends at once. Yield their URLs."""
        while most:
            woken = self.engine.woken
            request = self.scheduler.next_request()
            if request is not None:
                most -= 1
                self.end(request)
                yield request.url
            elif self.engine.woken == woken:
                return

    def close(self) -> None:
        self.scheduler.close("finished")

    def finish(self) -> list[str]:
        """Remove all requests, and close. Returns their URLs."""
        found = [*self.read()]
        self.close()
        return found

    @property
    def files(self) -> list[str]:
        """What is left in the folder of the queue."""
        folder = self.folder / "requests.queue"
        states = ("active.json", module.INDEX)  # Scrapy leaves an index where it is
        return [path.name for path in folder.rglob("*") if path.name not in states]


@KINDS
@pytest.mark.filterwarnings(*[] if SCRAPY_CLEANS else [UNRAISABLE])
@pytest.mark.parametrize(
    ("first", "second"), [(OURS, OURS), (OURS, DEFAULT), (DEFAULT, OURS)], ids=["", "back", "from"]
)
def test_a_crawl_continues_with_the_queue_of_scrapy_and_the_other_way_round(
    tmp_path: Path, first: str, second: str, kind: str
) -> None:
    crawl = StoredCrawl(tmp_path, first, kind)
    for number in range(10):
        crawl.push(f"{A}/{number}", f"{SECURE}/{number}", f"{B}/{number}", f"http://{number}.test/")
        crawl.push(f"{B}/start/{number}", is_start_request=True)
        crawl.push(f"{B}/urgent/{number}", priority=number % 3)
    assert len(crawl.scheduler) == 60
    found = [*crawl.read(15)]
    crawl.close()
    again = StoredCrawl(tmp_path, second, kind)
    assert len(again.scheduler) == 45
    found += again.finish()
    assert len(found) == len(set(found)) == 60
    if SCRAPY_CLEANS or DEFAULT not in (first, second):
        assert again.files == []
    expected = [str(number) for number in range(10)]
    if kind.endswith("Lifo"):
        expected.reverse()
    for origin in (A, SECURE, f"{B}/start"):
        if (origin, kind[-4:]) != (SECURE, "Lifo"):
            numbers = [url.removeprefix(f"{origin}/") for url in found]
            assert [number for number in numbers if number.isdecimal()] == expected
    urgent = [int(url.rpartition("/")[2]) % 3 for url in found if "/urgent/" in url]
    assert urgent == sorted(urgent, reverse=True)


@KINDS
@pytest.mark.parametrize("stop_after", [0, 1, 150])
def test_a_crawl_of_scrapys_plain_queue_continues(
    tmp_path: Path, kind: str, stop_after: int
) -> None:
    urls = [f"{origin}/{number}" for number in range(100) for origin in (A, SECURE, B)]
    crawl = StoredCrawl(tmp_path, PLAIN, kind)
    for number, url in enumerate(urls):
        crawl.push(url, priority=number // 100)
    crawl.close()
    second = StoredCrawl(tmp_path, OURS, kind)
    assert len(second.scheduler) == 300
    found = [*second.read(stop_after)]
    second.close()
    third = StoredCrawl(tmp_path, OURS, kind)
    assert len(third.scheduler) == 300 - len(found)
    found += third.finish()
    assert sorted(found) == sorted(urls)


class Counted(PickleFifoDiskQueue):  # type: ignore[misc, valid-type]
    """Counts the queues with open files, and how often files were opened."""

    opened = openings = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        Counted.opened += 1
        Counted.openings += 1
        assert Counted.opened <= 5 + 2, "Scrapy opens the queue of start requests for a moment"

    def close(self) -> None:
        super().close()
        Counted.opened -= 1


def test_few_queues_have_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "opened", 0)
    monkeypatch.setattr(Counted, "openings", 0)
    monkeypatch.setattr(module, "MAX_OPEN", 5)
    urls = [f"http://{host}.example/{number}" for number in range(3) for host in range(30)]
    crawl = StoredCrawl(tmp_path, OURS, Counted)
    crawl.push(*urls)
    assert Counted.openings == len(urls), "each push opens its own file, and no other"
    found = [*crawl.read(20)]
    crawl.close()
    assert Counted.opened == 0
    again = StoredCrawl(tmp_path, OURS, Counted)
    assert len(again.scheduler) == 70
    found += again.finish()
    assert sorted(found) == sorted(urls)
    assert again.files == []
    assert Counted.opened == 0


@KINDS
def test_looking_at_the_next_request_damages_no_file(tmp_path: Path, kind: str) -> None:
    crawl = StoredCrawl(tmp_path, OURS, kind)
    dqs: Any = crawl.scheduler.dqs
    expected = []
    for number in range(6):
        crawl.push(f"{A}/{number}" + "x" * (90 - 9 * number))
        expected.append(dqs.peek().url)
    assert set(expected) == {f"{A}/0{'x' * 90}"} if kind.endswith("Fifo") else len(set(expected))
    found = [*crawl.read()]
    assert dqs.peek() is None
    crawl.close()
    assert len({url[:18] for url in found}) == 6
    assert found == expected[::-1] or kind.endswith("Fifo")


@pytest.mark.parametrize("priority", [-1, 0, 1])
@pytest.mark.parametrize("comes_first", [True, False])
@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("ends_after", [2, 3])
def test_a_request_that_cannot_be_stored_stays_in_memory(
    tmp_path: Path, priority: int, comes_first: bool, starts: bool, ends_after: int
) -> None:
    crawl = StoredCrawl(tmp_path)
    order = [("1", 0), ("2", -2)]
    order.insert(0 if comes_first else 2, ("memory", priority))
    for path, each in order:
        meta = {"unreadable": lambda: None, "is_start_request": starts} if path == "memory" else {}
        crawl.push(f"{A}/{path}", priority=each, **meta)
    assert len(crawl.scheduler) == 3
    found = [*crawl.read(ends_after)]
    crawl.push(f"{A}/3")
    crawl.close()
    assert f"{A}/memory" in found
    again = StoredCrawl(tmp_path)
    found += again.finish()
    assert sorted(found) == [f"{A}/1", f"{A}/2", f"{A}/3", f"{A}/memory"]
    assert again.files == []


def test_a_queue_whose_files_are_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    crawl = StoredCrawl(tmp_path)
    crawl.push(f"{A}/1", f"{A}/2", f"{B}/1", f"{B}/2")
    crawl.close()
    (folder,) = (tmp_path / "requests.queue").glob("a.example*")
    for path in (*folder.rglob("q*"), *folder.rglob("info.json")):
        path.unlink()
    again = StoredCrawl(tmp_path)
    assert [*again.read()] == [f"{B}/1", f"{B}/2"]
    assert len(again.scheduler) == 0
    again.close()


def test_a_new_directory_never_is_that_of_another_queue(tmp_path: Path) -> None:
    crawl = StoredCrawl(tmp_path)
    for slot in (None, "a.example", "b.example", "one"):
        for origin in (A, SECURE, B):
            meta: dict[str, Any] = {"download_slot": slot} if slot else {}
            crawl.push(f"{origin}/{slot}/1", f"{origin}/{slot}/2", **meta)
            crawl.push(f"{origin}/{slot}/3", dont_obey_robotstxt=True, **meta)
    dqs: Any = crawl.scheduler.dqs
    assert len(dqs.names) == 24
    crawl.close()
    again = StoredCrawl(tmp_path)
    assert len(again.scheduler) == len({*again.finish()}) == 36


# What an earlier crawl has left


@pytest.mark.parametrize("with_index", [True, False])
@pytest.mark.parametrize("state", ["null", "{}", '{"a.example": null}', "[7, null]", None])
def test_the_directories_count_whatever_the_state_says(
    tmp_path: Path, state: str | None, with_index: bool
) -> None:
    crawl = StoredCrawl(tmp_path)
    crawl.push(f"{A}/1", f"{A}/2", f"{B}/1", f"{SECURE}/1")
    crawl.push(f"{A}/urgent", priority=5)
    crawl.close()
    folder = tmp_path / "requests.queue"
    if state is None:
        (folder / "active.json").unlink()
    else:
        (folder / "active.json").write_text(state)
    if not with_index:
        (folder / module.INDEX).unlink()
    again = StoredCrawl(tmp_path)
    assert len({*again.finish()}) == 5
    assert again.files == []


@KINDS
def test_a_renamed_callback_costs_only_its_requests(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = StoredCrawl(tmp_path, OURS, kind)
    spider: Any = crawl.crawler.spider
    spider.parse_old = MethodType(lambda *_: None, spider)
    spider.parse_old.__func__.__name__ = "parse_old"
    crawl.push(f"{A}/1", f"{B}/1")
    for url in (f"{A}/2", f"{A}/3", "http://c.example/"):
        crawl.scheduler.enqueue_request(Request(url, callback=spider.parse_old))
    crawl.push(f"{A}/4")
    crawl.close()
    again = StoredCrawl(tmp_path, OURS, kind)
    assert sorted(again.read()) == [f"{A}/1", f"{A}/4", f"{B}/1"]
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3
    assert len(again.scheduler) == 0
    again.close()
    assert again.files == []


@KINDS
@pytest.mark.filterwarnings(UNRAISABLE)  # queuelib does not close it
@pytest.mark.parametrize("with_index", [True, False])
def test_a_damaged_file_costs_only_its_requests(
    tmp_path: Path, kind: str, with_index: bool, caplog: pytest.LogCaptureFixture
) -> None:
    crawl = StoredCrawl(tmp_path, OURS, kind)
    crawl.push(f"{A}/1", f"{A}/2", f"{B}/1")
    crawl.push(f"{A}/3", priority=1)
    crawl.close()
    folder = tmp_path / "requests.queue"
    (damaged,) = (folder / directory_of("a.example")).glob("0")
    (damaged / "info.json" if damaged.is_dir() else damaged).write_bytes(b"{")
    if not with_index:
        (folder / module.INDEX).unlink()
    again = StoredCrawl(tmp_path, OURS, kind)
    found = sorted(again.read())
    if kind.endswith("Fifo") and not with_index:  # its size is read from its records
        assert (found, caplog.records) == ([f"{A}/1", f"{A}/2", f"{A}/3", f"{B}/1"], [])
    else:
        assert found == [f"{A}/3", f"{B}/1"]
        assert [record.levelname for record in caplog.records] == ["ERROR"] * with_index
    assert len(again.scheduler) == 0
    again.close()
    caplog.clear()  # the errors have the file
    gc.collect()


@KINDS
@pytest.mark.filterwarnings(*[] if SCRAPY_CLEANS else [UNRAISABLE])
@pytest.mark.parametrize("second", [PLAIN, URGENT])
def test_a_crawl_by_priority_continues_with_scrapys_plain_queue(
    tmp_path: Path, kind: str, second: str
) -> None:
    crawl = StoredCrawl(tmp_path, URGENT, kind)
    for number in range(10):
        crawl.push(f"{A}/{number}", f"{B}/{number}", priority=number % 3)
    found = [*crawl.read(5)]
    crawl.close()
    again = StoredCrawl(tmp_path, second, kind)
    assert len(again.scheduler) == 15
    found += again.finish()
    assert len(found) == len({*found}) == 20
    priorities = [int(url.rpartition("/")[2]) % 3 for url in found]
    assert priorities == sorted(priorities, reverse=True)
    numbers = [url for url in found[5:] if url.startswith(A)]
    of_one = [int(url[-1]) for url in numbers if int(url[-1]) % 3 == 0]
    assert of_one == sorted(of_one, reverse=kind.endswith("Lifo"))


def test_slots_and_hosts_with_unusual_names_are_stored(tmp_path: Path) -> None:
    crawl = StoredCrawl(tmp_path)
    host = ".".join(["a" * 54] * 4)
    crawl.push(f"http://{host}/1", f"https://{host}/2")
    crawl.push(f"{A}/1", f"{A}/2", download_slot=5)
    crawl.push(f"{B}/1", download_slot="語" * 90)
    crawl.close()
    again = StoredCrawl(tmp_path)
    assert len({*again.finish()}) == 5


def test_the_files_of_a_process_leave_room_for_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_open_files_limit", lambda: 0)
    crawl = StoredCrawl(tmp_path)
    for priority in range(9):
        crawl.push(f"{A}/{priority}", f"{B}/{priority}", priority=priority)
    dqs: Any = crawl.scheduler.dqs
    assert len(dqs.opened) == 4
    oldest, *others = dqs.opened
    crawl.push(f"{A}/again", priority=-oldest[1].priority)
    assert [*dqs.opened] == [*others, oldest]
    assert len({*crawl.finish()}) == 19


@pytest.mark.parametrize("with_index", [True, False])
def test_many_queues_are_read_while_the_crawl_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_index: bool
) -> None:
    monkeypatch.setattr(Counted, "openings", 0)
    monkeypatch.setattr(module, "MAX_OPEN", 5)
    urls = [f"http://{host}.example/{number}" for number in range(2) for host in range(50)]
    crawl = StoredCrawl(tmp_path, OURS, Counted)
    crawl.push(*urls)
    crawl.close()
    if not with_index:
        (tmp_path / "requests.queue" / module.INDEX).unlink()
    monkeypatch.setattr(module, "READ_SECONDS", 0)
    monkeypatch.setattr(Counted, "openings", 0)
    again = StoredCrawl(tmp_path, OURS, Counted)
    assert len(again.scheduler) == (100 if with_index else 50), "a queue counts as one request"
    assert Counted.openings == 0
    again.close()
    third = StoredCrawl(tmp_path, OURS, Counted)
    monkeypatch.setattr(module, "READ_SECONDS", 1)
    third.clock.advance(0)
    assert len(third.scheduler) == 100
    assert Counted.openings == (0 if with_index else 50)
    assert sorted(third.finish()) == sorted(urls)
    assert third.files == []


# After a process was killed


def killed(crawl: StoredCrawl, tmp_path: Path) -> Path:
    """Return a copy of the folder of a crawl that has not closed its files."""
    folder = tmp_path / "killed"
    copytree(crawl.folder, folder)
    return folder


@KINDS
@pytest.mark.parametrize("zeros", [0, 5, 4096])
@pytest.mark.parametrize("torn", [0, 1, 3], ids=["whole", "torn", "more torn"])
def test_a_killed_crawl_loses_nothing_that_was_saved(
    tmp_path: Path, kind: str, torn: int, zeros: int
) -> None:
    crawl = StoredCrawl(tmp_path / "job", OURS, kind)
    dqs: Any = crawl.scheduler.dqs
    urls = [f"{origin}/{number}" for origin in (A, B) for number in range(10)]
    crawl.push(*urls)
    crawl.push(f"{A}/start", is_start_request=True)
    gone = {*crawl.read(5)}
    dqs.save()
    crawl.push(f"{A}/late")
    folder = killed(crawl, tmp_path)
    stored = folder / "requests.queue" / directory_of("b.example") / "0"
    file = stored / "q00000" if stored.is_dir() else stored
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - torn] + bytes(zeros))
    again = StoredCrawl(folder, OURS, kind)
    again.push(f"{B}/new")
    found = [*again.read()]
    found.remove(f"{B}/new")
    assert len(found) == len({*found})
    assert not {*found} & gone
    lost = {*urls, f"{A}/start"} - gone - {*found}
    assert len(lost) == (1 if torn else 0)
    assert all(url.startswith(B) for url in lost)
    again.close()
    assert again.files == []
    crawl.close()


@pytest.mark.filterwarnings(*[] if SCRAPY_CLEANS else [UNRAISABLE])
def test_a_killed_crawl_leaves_a_state_for_scrapys_queue(tmp_path: Path) -> None:
    crawl = StoredCrawl(tmp_path / "job")
    dqs: Any = crawl.scheduler.dqs
    crawl.push(f"{A}/1", f"{A}/2", f"{B}/1")
    dqs.save()
    again = StoredCrawl(killed(crawl, tmp_path), DEFAULT)
    assert len({*again.finish()}) == 3
    crawl.close()
    gc.collect()
