"""The report of a crawl (REP_REPORT), compared with what the sites received."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import msgspec
import pytest
from jsonschema import Draft202012Validator
from parsel import Selector
from scrapy import Request

from scrapy_rep import RobotsTxtMiddleware
from scrapy_rep.exceptions import SettingError
from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.reports import background_file, crawl_report
from scrapy_rep.reports.archive_reader import read
from scrapy_rep.reports.reading import read_reports
from scrapy_rep.reports.records import Report
from scrapy_rep.stores.sqlite import SQLiteStore
from testing.web import Page, gaps, redirect, text

from .conftest import Visitor, make_crawler, our_warnings, together
from .following import FOLLOWING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

    from scrapy_rep.reports.records import OriginReport
    from testing.web import Site, Web

    from .conftest import Crawl

ROOT = Path(__file__).parents[2]
LONGEST_WAIT = 60.0
"""Seconds that a test waits for another process at most."""

ROBOTS = "User-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.pdf$\n"


def reporting(folder: Path, **settings: Any) -> dict[str, Any]:
    return {"REP_REPORT": str(folder / "report.json"), **settings}


def report_in(folder: Path) -> Report:
    """The report in `report.json`, whose JSON is what the schema says."""
    path = folder / "report.json"
    Draft202012Validator(msgspec.json.schema(Report)).validate(json.loads(path.read_text()))
    return msgspec.json.decode(path.read_bytes(), type=Report)


def origin_in(report: Report, site: Site) -> OriginReport:
    (origin,) = (each for each in report.origins if each.origin == site.root)
    return origin


def logs_in(folder: Path) -> list[Path]:
    # Scrapy may remove folders of its queue meanwhile, which os.walk skips.
    found = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return sorted(path for path in found if path.name.endswith(".events.gz"))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


Row = tuple["int | None", str, int, int]


def rows_of(origin: OriginReport) -> list[Row]:
    """The line, the reason, and the numbers of sent and dropped requests of each row."""
    rows: list[Row] = [
        (row.rule.line if row.rule else None, row.reason, row.sent, row.dropped)
        for row in origin.deciding
    ]
    return sorted(rows, key=lambda row: (row[0] or 0, row[1], row[2]))


# What was requested, and why.


async def test_the_counts_are_those_of_the_server(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    first, second = web.site(ROBOTS), web.site(None, host="127.0.0.2")
    paths = ["/a", "/b", "/private/1", "/private/2", "/private/open", "/c.pdf"]
    exempt = [
        Request(url, meta={"dont_obey_robotstxt": True}) for url in first.urls("/private/3", "/x")
    ]
    outcome = await crawl(
        [*first.urls(*paths), *second.urls("/d", "/e.pdf"), *exempt], reporting(tmp_path)
    )
    report = report_in(tmp_path)
    for site in (first, second):
        origin = origin_in(report, site)
        assert origin.counts.sent == len(site.page_paths)
        assert origin.counts.robots_txt == site.robots_fetches == 1
        (host,) = (host for host in report.hosts if host.host == site.host)
        assert host.requests == len(site.received)
        assert host.gaps.count == len(site.received) - 1
    assert [row for row in rows_of(origin_in(report, first)) if row[1] != "exempt"] == [
        (None, "rules", 2, 0),
        (2, "rules", 0, 2),
        (3, "rules", 1, 0),
        (4, "rules", 0, 1),
    ]
    assert rows_of(origin_in(report, second)) == [(None, "unavailable", 2, 0)]
    totals = report.totals
    assert (totals.sent_allowed, totals.sent_exempt) == (5, 2)
    assert (totals.sent_disallowed, totals.sent_unchecked, totals.final_url_disallowed) == (0, 0, 0)
    assert totals.dropped_for == {"rules": len(outcome.failures)}
    (run,) = report.runs
    assert (run.spider, run.finish_reason, run.tokens) == ("visitor", "finished", ["testbot"])
    assert run.settings["REP_REPORT"] == repr([str(tmp_path / "report.json")])


async def test_exceptions_have_the_rule_that_they_break(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    site = web.site(ROBOTS)

    class Asker(Visitor):
        def parse(self, response: Response, **_: Any) -> Any:
            for path in ("/private/1", "/private/2", "/free"):
                yield response.follow(path, self.done, meta={"dont_obey_robotstxt": True})

        def done(self, response: Response) -> None:
            pass

    await crawl(site.urls("/a"), reporting(tmp_path), spider=Asker)
    rows = [row for row in origin_in(report_in(tmp_path), site).deciding if row.allowed is None]
    broken, free = sorted(rows, key=lambda row: -row.sent)
    assert (str(broken.rule), broken.agent, broken.detail) == ("Disallow: /private", "*", None)
    assert (broken.rule and broken.rule.line, broken.sent) == (2, 2)
    assert sorted(broken.examples) == site.urls("/private/1", "/private/2")
    assert (free.rule, free.detail, free.sent) == (None, "its robots.txt allows it", 1)


async def test_the_archive_is_named_with_its_hash(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    await crawl(web.site(ROBOTS).urls("/a"), reporting(tmp_path, REP_ARCHIVE=str(path)))
    (run,) = report_in(tmp_path).runs
    assert run.archive == str(path)
    assert run.archive_sha256 == sha256(path.read_bytes()).hexdigest()


async def test_retries_count_as_the_server_has_them(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(ROBOTS, {"/down": Page(b"", 503), "/moved": redirect("/here")})
    settings = {"RETRY_ENABLED": True, "RETRY_TIMES": 2}
    await crawl(site.urls("/down", "/moved"), reporting(tmp_path, **settings))
    assert site.page_paths == ["/down", "/down", "/down", "/here", "/moved"]
    assert report_in(tmp_path).totals.sent_allowed == 5


async def test_a_cached_page_is_not_sent(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(ROBOTS)
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    for sent in (2, 0):
        site.received.clear()
        await crawl(site.urls("/a", "/private"), reporting(tmp_path, **cache))
        report = report_in(tmp_path)
        assert report.totals.sent + report.totals.robots_txt == len(site.received) == sent
        assert report.totals.dropped == 1


class Overruling(RobotsTxtMiddleware):
    """Sends disallowed requests, as no middleware should."""

    def process_request_2(self, rp: Any, request: Request) -> None:
        if rp is not None:
            request.meta["robotstxt"] = self.policies.verdict(rp, request.url, ("testbot",))


class Forgetful:
    """Removes the verdicts of requests."""

    async def process_request(self, request: Request) -> None:
        request.meta.pop("robotstxt", None)


@pytest.mark.parametrize(
    ("middlewares", "counts"),
    [
        ({RobotsTxtMiddleware: None, Overruling: 100}, (1, 0)),
        ({Forgetful: 200}, (0, 1)),
    ],
)
async def test_a_disallowed_page_that_is_requested_is_found(
    web: Web, crawl: Crawl, tmp_path: Path, middlewares: dict[type, int], counts: tuple[int, int]
) -> None:
    site = web.site(ROBOTS)
    path = "/private/1" if counts[0] else "/a"
    await crawl(site.urls(path), reporting(tmp_path, DOWNLOADER_MIDDLEWARES=middlewares))
    assert site.page_paths == [path]
    totals = report_in(tmp_path).totals
    assert (totals.sent_disallowed, totals.sent_unchecked) == counts


@pytest.mark.parametrize(("mode", "dropped"), [("annotate", 0), ("drop", 1), ("ignore", None)])
async def test_final_urls(
    web: Web, crawl: Crawl, tmp_path: Path, mode: str, dropped: int | None
) -> None:
    site = web.site(ROBOTS, {"/a": redirect("/private/1"), "/b": redirect("/c")})
    settings = reporting(tmp_path, REP_CHECK_FINAL_URL=mode, **FOLLOWING)
    await crawl(site.urls("/a", "/b"), settings)
    report = report_in(tmp_path)
    assert report.totals.sent_allowed == 2
    assert report.totals.final_url_disallowed == (dropped is not None)
    assert report.totals.final_url_dropped == (dropped or 0)
    rows = [row for row in origin_in(report, site).deciding if row.final_url]
    assert [row.examples for row in rows] == ([] if dropped is None else [site.urls("/private/1")])


async def test_other_reasons(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    down = web.site(Page(b"", 503))
    closed = web.site("User-agent: *\nVisit-time: 0000-0001 \n", host="127.0.0.2")
    own = web.site(ROBOTS, host="127.0.0.3")
    rules = tmp_path / "rules.toml"
    rules.write_text(
        f'[[disallow]]\nsite = "{own.root}"\nrules = "Disallow: /mine"\n'
        'reason = "they asked"\ngiven_by = "mail"\n'
        f'[[exception]]\nsite = "{own.root}"\nrules = "Allow: /private/ok"\n'
        'reason = "they agreed"\ngiven_by = "call"\nuntil = 2999-01-01\n'
    )
    urls = [down.url("/a"), "http:///x", *own.urls("/mine/1", "/private/ok")]
    settings = reporting(tmp_path, REP_LOCAL_RULES=str(rules), REP_MAX_WAIT=1)
    await crawl([*urls, *closed.urls("/now")], settings)
    report = report_in(tmp_path)
    assert rows_of(origin_in(report, down)) == [(None, "unreachable", 0, 1)]
    assert origin_in(report, down).versions[0].failure == "status 503"
    assert rows_of(origin_in(report, own)) == [
        (None, "local-rule", 0, 1),
        (2, "local-rule", 1, 0),
    ]
    details = {row.detail for row in origin_in(report, own).deciding}
    assert details == {"they asked (mail)", "they agreed (call)"}
    reasons = dict(report.totals.dropped_for)
    visit = reasons.pop("visit-time", 0)
    assert visit == len(closed.page_paths) ^ 1  # the page was sent if it is that minute
    assert reasons == {"unreachable": 1, "invalid-host": 1, "local-rule": 1}


# What the sites said.


async def test_the_states_of_a_robots_txt(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    target = web.site(ROBOTS)
    site = web.site(redirect(target.url("/robots.txt")), host="127.0.0.2")
    await crawl(site.urls("/a"), reporting(tmp_path))
    report = report_in(tmp_path)
    (version,) = origin_in(report, site).versions
    digest = sha256(ROBOTS.encode()).hexdigest()
    assert (version.result, version.effect, version.source) == ("rules", "rules", "site")
    assert (version.status, version.octets, version.sha256) == (200, len(ROBOTS), digest)
    assert version.redirects == site.urls("/robots.txt")
    assert version.url == target.url("/robots.txt")
    assert version.expires_at is not None
    assert version.first_at < version.expires_at
    assert report.files[digest].text == ROBOTS
    # The redirect went to another origin, which got no request for a page.
    assert origin_in(report, target).counts.robots_txt == target.robots_fetches == 1
    assert origin_in(report, target).counts.sent == 0


async def test_directives_uses_and_demands(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    robots = "User-agent: *\nContent-Signal: ai-train=no, search=yes\n"
    page = Page("<html><head><meta name=robots content='noindex,nofollow'></head></html>")
    price = {"crawler-price": "USD 0.01", "Content-Length": "0"}
    site = web.site(robots, {"/n": page, "/paid": Page(b"", 402, price)})

    class Scraper(Visitor):
        def parse(self, response: Response, **_: Any) -> Any:
            yield {"url": response.url}
            if response.url.endswith("/n"):
                yield Request(response.urljoin("/next"))

    settings = reporting(tmp_path, REP_NOINDEX="drop", REP_NOFOLLOW="drop")
    settings["REP_INTENDED_USES"] = ["train-ai"]
    await crawl(site.urls("/n", "/paid", "/a"), settings, spider=Scraper)
    origin = origin_in(report_in(tmp_path), site)
    noindex, nofollow = origin.directives["noindex"], origin.directives["nofollow"]
    assert (noindex.responses, noindex.dropped) == (1, 1)
    assert (nofollow.responses, nofollow.dropped) == (1, 1)
    assert noindex.examples == nofollow.examples == site.urls("/n")
    assert (origin.usage["train-ai"].refused, origin.usage["train-ai"].dropped) == (3, 1)
    assert (origin.usage["search"].responses, origin.usage["search"].refused) == (3, 0)
    assert origin.terms["payment"].examples == site.urls("/paid")
    assert origin.terms["payment"].details == ["a payment (USD 0.01)"]


# The pace.


async def test_the_pace_is_that_of_the_server(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site("User-agent: *\nCrawl-delay: 0.3\n")
    outcome = await crawl(site.urls(*(f"/{number}" for number in range(5))), reporting(tmp_path))
    report = report_in(tmp_path)
    (host,) = report.hosts
    received = gaps(site)
    assert host.gaps.count == 1 + len(received) == 5, "the first page did not wait"
    assert (host.shortest_delay, host.longest_delay) == (0.3, 0.3)
    assert host.paced_gaps.count == 4
    assert host.too_short == 0
    assert host.paced_gaps.smallest is not None
    assert host.paced_gaps.smallest >= 0.3
    # A request arrives later than it is sent, by less than the time until its response.
    latencies = [response.meta["download_latency"] for response in outcome.responses.values()]
    tolerance = max(latencies) + site.received[1].at - site.received[0].at
    assert abs(host.paced_gaps.smallest - min(received)) <= tolerance
    assert host.gaps.median is not None
    low, high = min(received) - tolerance, max(received) + tolerance
    assert low <= host.gaps.median <= high
    origin = origin_in(report, site)
    (pace,) = origin.pace
    assert (pace.records, pace.local_delay, pace.applied) == ("Crawl-delay: 0.3", 0, 0.3)
    assert origin.counts.delayed == outcome.stats["robotstxt/wait_count/pace"]


async def test_a_pace_that_is_not_obeyed_is_listed(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site("User-agent: *\nCrawl-delay: 30\nRequest-rate: 1/20\n")
    await crawl(site.urls("/a", "/b"), reporting(tmp_path, REP_OBEY_RATE_LIMITS=False))
    report = report_in(tmp_path)
    (pace,) = origin_in(report, site).pace
    assert pace.records == "Crawl-delay: 30, Request-rate: 1/20s"
    assert pace.applied == 0
    assert report.hosts[0].longest_delay is None


# Bounds and bad input.


HOSTILE = "/private/\u202e<script>alert(1)</script>\x1b[2J" + "x" * 1000


async def test_hostile_texts_are_data_and_cut(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    robots = f"User-agent: *\nDisallow: {HOSTILE}\nDisallow: /private\n".encode()
    site = web.site(robots)
    await crawl([site.url(HOSTILE), site.url("/private/2")], reporting(tmp_path))
    octets = (tmp_path / "report.json").read_bytes()
    assert octets.isascii()
    assert b"\x1b" not in octets
    report = report_in(tmp_path)
    origin = origin_in(report, site)
    assert rows_of(origin) == [(2, "rules", 0, 1), (3, "rules", 0, 1)]
    rule = next(row.rule for row in origin.deciding if row.rule and row.rule.line == 2)
    assert rule.pattern == HOSTILE[:299] + "…"
    assert all(len(url) <= 300 for row in origin.deciding for url in row.examples)
    (file,) = report.files.values()
    assert file.text == robots.decode()


async def test_a_path_that_cannot_be_written_stops_the_crawl(
    web: Web, crawl: Crawl, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    site = web.site(ROBOTS)
    with pytest.raises(SettingError, match=r"^REP_REPORT is .*cannot be written"):
        await crawl(site.urls("/a"), {"REP_REPORT": str(tmp_path / "file/report.json")})
    assert site.received == []
    assert [record.levelname for record in caplog.records if "REP_REPORT is" in record.message] == [
        "ERROR"
    ]


async def test_a_full_disk_is_logged_once_and_the_crawl_goes_on(
    web: Web,
    crawl: Crawl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(background_file, "_write", fail)
    monkeypatch.setattr("os.fsync", fail)
    site = web.site(ROBOTS)
    outcome = await crawl(site.urls("/a", "/b"), reporting(tmp_path))
    assert len(outcome.responses) == 2
    assert outcome.stats["robotstxt/report_error_count"] >= 2
    (message,) = our_warnings(caplog)
    assert "No space left on device" in message
    assert "The crawl continues" in message
    (log,) = names_in(tmp_path)
    assert (tmp_path / log).stat().st_size == 0


# Which crawls have a report.


async def test_without_robots_txt_there_is_no_report(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    await crawl(web.site(ROBOTS).urls("/a"), reporting(tmp_path, ROBOTSTXT_OBEY=False))
    assert names_in(tmp_path) == []
    off = {"DOWNLOADER_MIDDLEWARES": {"scrapy_rep.RobotsTxtMiddleware": None}}
    await crawl(web.site(ROBOTS).urls("/a"), reporting(tmp_path, **off))
    assert names_in(tmp_path) == []


# Several runs.


async def test_spiders_of_one_process_have_their_own_reports(web: Web, tmp_path: Path) -> None:
    class Other(Visitor):
        name = "other"

    site = web.site(ROBOTS)
    settings = {"REP_REPORT": [f"{tmp_path}/%(name)s.json"]}
    crawlers = [make_crawler(spider, settings) for spider in (Visitor, Other)]
    await together(*crawlers, requests=[site.urls("/a", "/private"), site.urls("/b", "/c")])
    sent = {}
    for log in logs_in(tmp_path):
        report = read_reports([log])
        sent[report.runs[0].spider] = report.totals.sent
    assert sent == {"visitor": 1, "other": 2}


@contextmanager
def walkers(*all_arguments: dict[str, Any]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Crawls in processes of their own, which are killed at the end."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.crawl.report_worker", json.dumps(arguments)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )
        for arguments in all_arguments
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def log_with(folder: Path, sent: int, process: subprocess.Popen[bytes]) -> Path:
    """Wait until the log of a crawl that runs has so many requests."""
    until = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < until:
        for path in logs_in(folder):
            if not path.stat().st_size:
                continue
            report = read_reports([path])
            if report.totals.sent >= sent and report.runs[0].ended_at is None:
                return path
        assert process.poll() is None, "the crawl is over"
        time.sleep(0.05)
    raise AssertionError("no log has these requests")


def walk(site: Site, first: int, end: int, settings: dict[str, Any]) -> dict[str, Any]:
    return {"root": site.root, "numbers": [first, end], "settings": settings}


def test_a_killed_process_leaves_what_it_had(web: Web, tmp_path: Path) -> None:
    site = web.site(ROBOTS, {"*": Page(delay=0.05)})
    with walkers(walk(site, 0, 5000, reporting(tmp_path))) as (process,):
        path = log_with(tmp_path, 5, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    report = read_reports([path])
    assert not (tmp_path / "report.json").exists()
    (run,) = report.runs
    assert run.ended_at is None
    assert 5 <= report.totals.sent <= len(site.page_paths)
    origin = origin_in(report, site)
    assert 5 <= origin.counts.sent <= len(site.page_paths)
    assert origin.counts.robots_txt == 1


def test_the_logs_of_two_processes_add_up(web: Web, tmp_path: Path) -> None:
    """The last report replaces the first one. The logs have both."""
    site = web.site(ROBOTS, {"*": Page(delay=0.05)})
    both = [walk(site, start, start + 5000, reporting(tmp_path)) for start in (0, 5000)]
    with walkers(*both) as processes:
        until = time.monotonic() + LONGEST_WAIT
        while len(logs_in(tmp_path)) < 2 or site.robots_fetches < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        log_with(tmp_path, 3, processes[0])
        for process in processes:
            process.send_signal(signal.SIGINT)
            process.wait(LONGEST_WAIT)
    logs = logs_in(tmp_path)
    assert len(logs) == 2
    report = read_reports(logs)
    assert report.totals.sent == len(site.page_paths)
    assert report.totals.robots_txt == site.robots_fetches == 2
    assert origin_in(report, site).counts == report.totals
    assert report.hosts[0].requests == len(site.received)


def test_a_resumed_job_has_one_report(web: Web, tmp_path: Path) -> None:
    site = web.site(ROBOTS, {"*": Page(delay=0.05)})
    settings = reporting(tmp_path, JOBDIR=str(tmp_path / "job"))
    endless = walk(site, 0, 5000, settings)
    with walkers(endless) as (process,):
        log_with(tmp_path, 3, process)
        process.send_signal(signal.SIGINT)
        process.wait(LONGEST_WAIT)
    first = report_in(tmp_path)
    assert first.runs[0].finish_reason == "shutdown"
    assert first.totals.sent == len(site.page_paths)
    # A run of the same job that is killed.
    with walkers(endless) as (process,):
        log_with(tmp_path / "job", 3, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    shutil.rmtree(tmp_path / "job" / "requests.queue")  # Scrapy cannot read it after every kill
    before = read_reports(logs_in(tmp_path / "job"))
    received = len(site.page_paths)
    # The last run ends, since its first page is the last one.
    with walkers(walk(site, 9998, 9999, settings)) as (process,):
        process.wait(LONGEST_WAIT)
    report = report_in(tmp_path)
    assert [run.finish_reason for run in report.runs] == ["shutdown", None, "finished"]
    assert report.totals.sent == before.totals.sent + len(site.page_paths) - received
    assert {run.id for run in report.runs} > {run.id for run in before.runs}


async def test_a_damaged_log_of_a_job_is_named(
    web: Web, crawl: Crawl, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = web.site(ROBOTS)
    settings = reporting(tmp_path, JOBDIR=str(tmp_path / "job"))
    await crawl(site.urls("/a"), settings)
    (log,) = logs_in(tmp_path)
    log.write_bytes(log.read_bytes()[:-20])
    (log.parent / "other.events.gz").write_text("\x1b[2J")
    await crawl(site.urls("/b"), settings)
    messages = our_warnings(caplog)
    assert len(messages) == 2
    assert any("is damaged: the end after line" in message for message in messages)
    assert any("cannot read" in message and "other.events.gz" in message for message in messages)
    report = report_in(tmp_path)
    assert len(report.runs) == 2
    assert report.totals.sent >= 1


async def test_a_form_that_cannot_be_written_does_not_cost_the_others(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    class Blocker(Visitor):
        def parse(self, response: Response, **_: Any) -> Any:
            super().parse(response)
            (tmp_path / "report.html").mkdir()

    paths = [str(tmp_path / name) for name in ("report.html", "report.json")]
    outcome = await crawl(web.site(ROBOTS).urls("/a"), {"REP_REPORT": paths}, spider=Blocker)
    assert outcome.stats["robotstxt/report_error_count"] == 1
    assert report_in(tmp_path).totals.sent == 1


async def test_a_record_goes_through_the_store(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(text(ROBOTS, Cache_Control="max-age=3600"))
    settings = reporting(tmp_path, REP_STORE=f"sqlite:///{tmp_path}/robots.db")
    await crawl(site.urls("/a"), settings)
    await crawl(site.urls("/private"), settings)
    report = report_in(tmp_path)
    assert site.robots_fetches == 1
    origin = origin_in(report, site)
    (version,) = origin.versions
    assert (version.source, version.result, version.status) == ("store", "rules", 200)
    assert version.sha256 == sha256(ROBOTS.encode()).hexdigest()
    assert origin.counts.robots_txt == 0
    assert origin.deciding[0].sha256 == version.sha256
    assert report.files[version.sha256].text == ROBOTS


async def test_an_unexpected_error_is_logged_and_the_spider_closes(
    web: Web, crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crawl_report, "read_reports", Mock(side_effect=KeyError("origin")))
    outcome = await crawl(web.site(ROBOTS).urls("/a"), reporting(tmp_path))
    assert outcome.stats["robotstxt/report_error_count"] == 1


async def test_long_settings_are_cut(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    hosts = [f"{number}.{'x' * 50}.example" for number in range(20_000)]
    long = {"REP_5XX_AS_404": hosts, "USER_AGENT": "testbot/1.0 (" + "x" * 5_000 + ")"}
    await crawl(web.site(ROBOTS).urls("/a"), reporting(tmp_path, **long))
    (run,) = report_in(tmp_path).runs
    values = [run.settings["REP_5XX_AS_404"], run.scrapy_settings["USER_AGENT"], run.user_agent]
    assert [len(value) for value in values] == [300, 300, 300]


async def test_tdm_files_are_no_pages(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(ROBOTS, {"/.well-known/tdmrep.json": text("[]")})
    await crawl(site.urls("/a", "/private"), reporting(tmp_path, REP_TDMREP=True))
    counts = origin_in(report_in(tmp_path), site).counts
    assert (counts.sent, counts.dropped) == (1, 1)
    assert counts.sent + counts.robots_txt == len(site.received) == 3


async def test_report_store_and_archive_have_the_same_hash(
    web: Web, crawl: Crawl, tmp_path: Path
) -> None:
    long = ROBOTS.encode() + b"#" * SIZE_LIMIT
    wrapped = f"<html><head></head><body><pre>{ROBOTS}</pre></body></html>"
    moved = web.site(pages={"/moved.txt": text(ROBOTS + "# moved\n")})
    sites = [
        web.site(each)
        for each in (
            text(ROBOTS),
            Page(gzip.compress(ROBOTS.encode()), headers={"Content-Encoding": "gzip"}),
            Page(long),
            Page(wrapped),
            Page(ROBOTS.encode("utf-16")),
            Page(b""),
            redirect(moved.url("/moved.txt")),
        )
    ]
    database, warc = tmp_path / "store.sqlite", tmp_path / "a.warc.gz"
    settings = {"REP_STORE": f"sqlite:///{database}", "REP_ARCHIVE": str(warc)}
    await crawl([site.url("/a") for site in sites], reporting(tmp_path, **settings))
    report = report_in(tmp_path)
    store = SQLiteStore(database, ttl=1e9)
    stored = dict(store.entries())
    store.disconnect()
    archived = {each.origin: each.sha256 for each in read(warc) if each.status == 200}
    for site in sites:
        entry = stored[site.root]
        assert entry is not None
        assert entry.copy is not None
        (version,) = origin_in(report, site).versions
        assert version.sha256 == entry.copy.sha256 == archived[site.root]
        assert sha256(entry.body or b"").hexdigest() == version.sha256
    assert len({*archived.values()}) == 5, "the first two and the wrapped one have the same file"


# Its page

SCRIPT = "User-agent: *\nDisallow: /private\nDisallow: /<script>alert(1)</script>\n"


async def test_a_crawl_writes_its_page(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(SCRIPT)
    down = web.site(Page(b"", status=503), host="127.0.0.2")
    urls = [
        *site.urls("/a", "/private/1", "/<script>alert(1)</script>?\u202e"),
        *down.urls("/b"),
    ]
    exempt = Request(site.url("/private/2"), meta={"dont_obey_robotstxt": True})
    settings = {
        "REP_REPORT": [str(tmp_path / "report.html"), str(tmp_path / "report.json")],
        "REP_RETRY_TIMES": 0,
        "USER_AGENT": "mybot/1 (+https://bot.example/about)",
        "HTTPCACHE_ENABLED": False,
    }
    await crawl([*urls, exempt], settings)
    page = Selector((tmp_path / "report.html").read_text("utf-8"))
    assert page.css("article .answer::text").getall() == [
        "None that was checked", "2", "3 (60 %)", "Yes", "No site asked for one", "1", "visitor",
    ]  # fmt: skip
    assert page.css(".origins > tbody > tr > th > code::text").getall() == [down.root, site.root]
    assert page.css(".file mark::text").getall() == SCRIPT.splitlines()[1:]
    assert len(page.css("script")) == 1
    evidence = " ".join(page.css(".practice td p::text").getall())
    assert "The user agent has a URL or an e-mail address: mybot/1 (+https://bot" in evidence
    assert "Scrapy's HTTP cache is not on in all runs (HTTPCACHE_ENABLED)" in evidence
    (run,) = report_in(tmp_path).runs
    assert run.scrapy_settings["USER_AGENT"] == settings["USER_AGENT"]
    assert run.scrapy_settings["DUPEFILTER_CLASS"] == "scrapy.dupefilters.RFPDupeFilter"
    assert run.downloads["response_status_count/200"] > run.downloads["response_status_count/503"]
    assert run.downloads["request_method_count/GET"] == sum(
        number for name, number in run.downloads.items() if name.startswith("response_status")
    )
