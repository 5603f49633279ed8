"""The report of a crawl (REP_REPORT), compared with what the sites received."""

from __future__ import annotations

import errno
import gzip
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from jsonschema import Draft202012Validator
from parsel import Selector
from scrapy import Request
from scrapy.http import Response

from scrapy_rep import RobotsTxtDisallowed, RobotsTxtMiddleware
from scrapy_rep.exceptions import SettingError
from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.reports import event_log, files
from scrapy_rep.reports.archive import read
from scrapy_rep.reports.reading import read_reports
from scrapy_rep.reports.records import OriginReport, Report
from scrapy_rep.stores.sqlite import SQLiteStore
from testing.redis_server import wait_until
from testing.web import Page, Site, Web, gaps, redirect, text
from tests.stores.worker import workers

from .conftest import EXEMPT, FOLLOWING, Crawl, InTurn, Visitor, numbers
from .test_local_rules import DETAIL, disallow, exception

LATER = ", by a robots.txt fetched after the request"
ROBOTS = "User-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.pdf$\n"


def reporting(folder: Path, **settings: Any) -> dict[str, Any]:
    return {"REP_REPORT": str(folder / "report.json"), **settings}


def report_in(folder: Path) -> Report:
    """The report in `report.json`, whose JSON is what the schema says."""
    path = folder / "report.json"
    Draft202012Validator(msgspec.json.schema(Report)).validate(json.loads(path.read_text()))
    return msgspec.json.decode(path.read_bytes(), type=Report)


Reported = Callable[..., Awaitable[Report]]


@pytest.fixture
def reported(crawl: Crawl, tmp_path: Path) -> Reported:
    """Crawl with these requests and settings. Returns the report."""

    async def run(requests: Any, settings: dict[str, Any] | None = None, **more: Any) -> Report:
        await crawl(requests, reporting(tmp_path, **(settings or {})), **more)
        return report_in(tmp_path)

    return run


def origin_in(report: Report, site: Site) -> OriginReport:
    (origin,) = (each for each in report.origins if each.origin == site.root)
    return origin


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


async def test_counts_are_those_of_the_server(web: Web, reported: Reported, tmp_path: Path) -> None:
    first = web.site(ROBOTS, {"/a": Page(b"", 500)})
    second = web.site(None, {"/d": redirect("/f")}, host="127.0.0.2")
    paths = ["/a", "/b", "/private/1", "/private/2", "/private/open", "/c.pdf"]
    exempt = [Request(url, meta=dict(EXEMPT)) for url in first.urls("/private/3", "/x")]
    requests = [*first.urls(*paths), *second.urls("/d", "/e.pdf"), *exempt]
    report = await reported(requests, {"RETRY_ENABLED": True, "RETRY_TIMES": 1})
    for site in (first, second):
        origin = origin_in(report, site)
        assert origin.counts.sent == len(site.page_paths)
        assert origin.counts.robots_txt == site.robots_fetches == 1
        (host,) = (host for host in report.hosts if host.host == site.host)
        assert host.requests == len(site.received)
        assert host.gaps == len(site.received) - 1
    assert [row for row in rows_of(origin_in(report, first)) if row[1] != "exempt"] == [
        (None, "rules", 3, 0),
        (2, "rules", 0, 2),
        (3, "rules", 1, 0),
        (4, "rules", 0, 1),
    ]
    assert rows_of(origin_in(report, second)) == [(None, "unavailable", 3, 0)]
    totals = report.totals
    assert (totals.sent_allowed, totals.sent_exempt) == (7, 2)
    assert (totals.sent_disallowed, totals.sent_unchecked, totals.final_url_disallowed) == (0, 0, 0)
    assert totals.dropped_for == {"rules": 3}
    (run,) = report.runs
    assert (run.spider, run.finish_reason, run.tokens) == ("visitor", "finished", ["testbot"])
    assert run.settings["REP_REPORT"] == repr([str(tmp_path / "report.json")])


async def test_exceptions_have_the_rule_that_they_break(web: Web, reported: Reported) -> None:
    site = web.site(ROBOTS)
    urls = site.urls("/private/1", "/private/2", "/free")
    then = {site.url("/a"): [Request(url, meta=dict(EXEMPT)) for url in urls]}
    origin = origin_in(await reported(site.urls("/a"), spider=InTurn, then=then), site)
    rows = [row for row in origin.deciding if row.allowed is None]
    broken, free = sorted(rows, key=lambda row: -row.sent)
    assert (str(broken.rule), broken.agent, broken.detail) == ("Disallow: /private", "*", None)
    assert (broken.rule and broken.rule.line, broken.sent) == (2, 2)
    assert sorted(broken.examples) == site.urls("/private/1", "/private/2")
    assert (free.rule, free.detail, free.sent) == (None, "its robots.txt allows it", 1)


async def test_a_cached_page_is_not_sent(web: Web, reported: Reported, tmp_path: Path) -> None:
    site = web.site(ROBOTS)
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path / "cache")}
    for sent in (2, 0):
        site.received.clear()
        report = await reported(site.urls("/a", "/private"), cache)
        assert report.totals.sent + report.totals.robots_txt == len(site.received) == sent
        assert report.totals.dropped == 1


class Overruling(RobotsTxtMiddleware):
    """Sends disallowed requests, as no middleware should."""

    async def process_request(self, request: Request) -> Request | None:
        with suppress(RobotsTxtDisallowed):
            return await super().process_request(request)
        return None


class Forgetful:
    """Removes the verdicts of requests."""

    async def process_request(self, request: Request) -> None:
        request.meta.pop("robotstxt", None)


@pytest.mark.parametrize(
    ("middlewares", "counts"),
    [({RobotsTxtMiddleware: None, Overruling: 100}, (1, 0)), ({Forgetful: 200}, (0, 1))],
)
async def test_a_disallowed_page_that_is_requested_is_found(
    web: Web, reported: Reported, middlewares: dict[type, int], counts: tuple[int, int]
) -> None:
    site = web.site(ROBOTS)
    path = "/private/1" if counts[0] else "/a"
    totals = (await reported(site.urls(path), {"DOWNLOADER_MIDDLEWARES": middlewares})).totals
    assert site.page_paths == [path]
    assert (totals.sent_disallowed, totals.sent_unchecked) == counts


@pytest.mark.parametrize(("mode", "is_checked"), [("annotate", 1), ("drop", 1), ("ignore", 0)])
async def test_final_urls(web: Web, reported: Reported, mode: str, is_checked: int) -> None:
    site = web.site(ROBOTS, {"/a": redirect("/private/1"), "/b": redirect("/c")})
    report = await reported(site.urls("/a", "/b"), {"REP_CHECK_FINAL_URL": mode, **FOLLOWING})
    assert report.totals.sent_allowed == 2
    assert report.totals.final_url_disallowed == is_checked
    rows = [row for row in origin_in(report, site).deciding if row.final_url]
    assert [row.examples for row in rows] == [site.urls("/private/1")] * is_checked


async def test_other_reasons(web: Web, reported: Reported, tmp_path: Path) -> None:
    down = web.site(Page(b"", 503))
    closed = web.site("User-agent: *\nVisit-time: 0000-0001 \n", host="127.0.0.2")
    own = web.site(ROBOTS, host="127.0.0.3")
    rules = tmp_path / "rules.toml"
    rules.write_text(disallow(own.root, "/mine") + exception(own.root, "/private/ok"))
    urls = [down.url("/a"), "http:///x", *own.urls("/mine/1", "/private/ok")]
    urls += closed.urls("/now")
    report = await reported(urls, {"REP_LOCAL_RULES": str(rules), "REP_MAX_WAIT": 1})
    assert rows_of(origin_in(report, down)) == [(None, "unreachable", 0, 1)]
    assert origin_in(report, down).versions[0].failure == "status 503"
    assert rows_of(origin_in(report, own)) == [(None, "local-rule", 0, 1), (2, "local-rule", 1, 0)]
    assert [row.detail for row in origin_in(report, own).deciding] == [DETAIL] * 2
    reasons = dict(report.totals.dropped_for)
    visit = reasons.pop("visit-time", 0)
    assert visit == len(closed.page_paths) ^ 1  # the page was sent if it is that minute
    assert reasons == {"unreachable": 1, "invalid-host": 1, "local-rule": 1}


# What the sites said.


async def test_a_robots_txt_from_the_site_and_from_the_store(
    web: Web, reported: Reported, tmp_path: Path
) -> None:
    target = web.site(text(ROBOTS, Cache_Control="max-age=3600"))
    site = web.site(redirect(target.url("/robots.txt")), host="127.0.0.2")
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.db"}
    for source in ("site", "store"):
        report = await reported(site.urls("/a", "/private"), settings)
        origin = origin_in(report, site)
        (version,) = origin.versions
        digest = sha256(ROBOTS.encode()).hexdigest()
        assert (version.result, version.effect, version.source) == ("rules", "rules", source)
        assert (version.status, version.size, version.sha256) == (200, len(ROBOTS), digest)
        assert version.redirects == (site.urls("/robots.txt") if source == "site" else [])
        assert version.url == target.url("/robots.txt")
        assert version.expires_at is not None
        assert version.first_at < version.expires_at
        assert report.files[digest].text == ROBOTS
        assert {row.sha256 for row in origin.deciding} == {digest}
        assert origin.counts.robots_txt == (source == "site")
        # The redirect went to another origin, which got no request for a page.
        assert report.totals.robots_txt == 2 * (source == "site")
        assert report.totals.sent == 1
    assert site.robots_fetches == target.robots_fetches == 1


async def test_directives_and_uses(web: Web, reported: Reported) -> None:
    robots = "User-agent: *\nContent-Signal: ai-train=no, search=yes\n"
    page = Page("<html><head><meta name=robots content='noindex,nofollow'></head></html>")
    site = web.site(robots, {"/n": page})

    class Scraper(Visitor):
        def parse(self, response: Response, **_: Any) -> Any:
            yield {"url": response.url}
            if response.url.endswith("/n"):
                yield Request(response.urljoin("/next"))

    drops = {"REP_NOINDEX": "drop", "REP_NOFOLLOW": "drop", "REP_INTENDED_USES": ["train-ai"]}
    report = await reported(site.urls("/n", "/a"), drops, spider=Scraper)
    found = origin_in(report, site).statements
    assert {each.name: (each.responses, each.refused, each.dropped) for each in found} == {
        "noindex": (1, 0, 1), "nofollow": (1, 0, 1), "train-ai": (2, 2, 1), "search": (2, 0, 0),
    }  # fmt: skip
    examples = [each.examples for each in found if each.kind == "directive"]
    assert examples == [site.urls("/n")] * 2


# The pace.


async def test_the_pace_is_that_of_the_server(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site("User-agent: *\nCrawl-delay: 0.3\n")
    outcome = await crawl(site.urls(*numbers(5)), reporting(tmp_path))
    report = report_in(tmp_path)
    (host,) = report.hosts
    received = gaps(site)
    assert host.gaps == len(received) == 4, "the first page did not wait"
    assert (host.asked, host.applied, host.below_applied) == (0.3, 0.3, 0)
    assert host.smallest_gap is not None
    assert host.smallest_gap >= 0.3
    # A request arrives later than it is sent, by less than the time until its response.
    latencies = [response.meta["download_latency"] for response in outcome.responses.values()]
    tolerance = max(latencies) + site.received[1].at - site.received[0].at
    assert abs(host.smallest_gap - min(received)) <= tolerance
    origin = origin_in(report, site)
    pace = origin.pace
    assert pace is not None
    assert (pace.records, pace.asked, pace.applied) == ("Crawl-delay: 0.3", 0.3, 0.3)
    assert origin.counts.delayed == outcome.stats["robotstxt/wait_count/pace"]


# Bounds and bad input.


async def test_a_path_that_cannot_be_written_stops_the_crawl(
    web: Web, crawl: Crawl, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    site = web.site(ROBOTS)
    with pytest.raises(SettingError, match=r"^REP_REPORT is .*cannot be written"):
        await crawl(site.urls("/a"), {"REP_REPORT": str(tmp_path / "file/report.json")})
    assert site.received == []
    levels = [each.levelname for each in caplog.records if "REP_REPORT is" in each.message]
    assert levels == ["ERROR"]


async def test_a_full_disk_is_logged_once_and_the_crawl_goes_on(
    web: Web, crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(files, "_write", fail)
    monkeypatch.setattr("os.fsync", fail)
    site = web.site(ROBOTS)
    outcome = await crawl(site.urls("/a", "/b"), reporting(tmp_path))
    assert len(outcome.responses) == 2
    assert outcome.stats["robotstxt/report_error_count"] >= 2
    (message,) = outcome.warnings
    assert "No space left on device" in message
    assert "The crawl continues" in message
    (log,) = names_in(tmp_path)
    assert (tmp_path / log).stat().st_size == 0


# Which crawls have a report.


async def test_no_report_without_robots_txt(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    middlewares = {"scrapy_rep.RobotsTxtMiddleware": None}
    for off in ({"ROBOTSTXT_OBEY": False}, {"DOWNLOADER_MIDDLEWARES": middlewares}):
        await crawl(web.site(ROBOTS).urls("/a"), reporting(tmp_path, **off))
        assert names_in(tmp_path) == []


# How a crawl ends.


def test_a_killed_process_leaves_what_it_had(web: Web, tmp_path: Path) -> None:
    site = web.site(ROBOTS, {"*": Page(delay=0.05)})

    def logs() -> list[Path]:
        return [path for path in tmp_path.glob("*.events.gz") if path.stat().st_size]

    settings = reporting(tmp_path, CONCURRENT_REQUESTS=1, WRITE_INTERVAL=0.1)
    arguments = [f"{name}={value}" for name, value in settings.items()]
    with workers(["", *arguments, *site.urls(*numbers(1000))]) as (process,):
        wait_until(lambda: logs() and read_reports(logs()).totals.sent >= 5, "the event log")
        assert process.poll() is None, "the crawl is over"
    report = read_reports(logs())
    assert not (tmp_path / "report.json").exists()
    (run,) = report.runs
    assert run.ended_at is None
    assert 5 <= report.totals.sent <= len(site.page_paths) + 1, "the last one may not have arrived"
    assert report.totals.robots_txt == 1


async def test_a_report_that_cannot_be_made_does_not_keep_the_crawl_open(
    web: Web, crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Blocker(Visitor):
        def parse(self, response: Response, **_: Any) -> Any:
            (tmp_path / "report.html").mkdir(exist_ok=True)

    paths = [str(tmp_path / name) for name in ("report.html", "report.json")]
    site = web.site(ROBOTS)
    outcome = await crawl(site.urls("/a"), {"REP_REPORT": paths}, spider=Blocker)
    assert outcome.stats["robotstxt/report_error_count"] == 1
    assert report_in(tmp_path).totals.sent == 1, "one form does not cost the other"
    monkeypatch.setattr(event_log, "read_reports", Mock(side_effect=KeyError("origin")))
    outcome = await crawl(site.urls("/a"), reporting(tmp_path))
    assert outcome.stats["robotstxt/report_error_count"] == 1


async def test_long_settings_are_cut(web: Web, reported: Reported) -> None:
    hosts = [f"{number}.{'x' * 50}.example" for number in range(100)]
    long = {"REP_5XX_AS_404_HOSTS": hosts, "USER_AGENT": "testbot/1.0 (" + "x" * 5_000 + ")"}
    (run,) = (await reported(web.site(ROBOTS).urls("/a"), long)).runs
    assert len(run.settings["REP_5XX_AS_404_HOSTS"]) == 300
    assert len(run.scrapy_settings["USER_AGENT"]) == len(run.user_agent) == 300


async def test_tdm_files_are_no_pages(web: Web, reported: Reported) -> None:
    site = web.site(ROBOTS, {"/.well-known/tdmrep.json": text("[]")})
    report = await reported(site.urls("/a", "/private"), {"REP_TDMREP": True})
    counts = origin_in(report, site).counts
    assert (counts.sent, counts.dropped) == (1, 1)
    assert counts.sent + counts.robots_txt == len(site.received) == 3


async def test_report_store_and_archive_have_the_same_hash(
    web: Web, reported: Reported, tmp_path: Path
) -> None:
    long = ROBOTS.encode() + b"#" * SIZE_LIMIT
    wrapped = f"<html><head></head><body><pre>{ROBOTS}</pre></body></html>"
    moved = web.site(pages={"/moved.txt": text(ROBOTS + "# moved\n")})
    packed = Page(gzip.compress(ROBOTS.encode()), headers={"Content-Encoding": "gzip"})
    files = [text(ROBOTS), packed, Page(long), Page(wrapped), Page(ROBOTS.encode("utf-16"))]
    files += [Page(b""), redirect(moved.url("/moved.txt"))]
    sites = [web.site(file) for file in files]
    database, warc = tmp_path / "store.sqlite", tmp_path / "a.warc.gz"
    settings = {"REP_STORE": f"sqlite:///{database}", "REP_ARCHIVE": str(warc)}
    report = await reported([site.url("/a") for site in sites], settings)
    (run,) = report.runs
    assert (run.archive, run.archive_sha256) == (str(warc), sha256(warc.read_bytes()).hexdigest())
    store = SQLiteStore(database, ttl=1e9)
    stored = dict(store.entries())
    store.disconnect()
    archived = {each.origin: each.sha256 for each in read(warc, print) if each.status == 200}
    for site in sites:
        entry = stored[site.root]
        assert entry is not None
        assert entry.copy is not None
        (version,) = origin_in(report, site).versions
        assert version.result == ("rules" if entry.body else "empty")
        assert version.sha256 == entry.copy.sha256 == archived[site.root]
        assert sha256(entry.body or b"").hexdigest() == version.sha256
    assert len({*archived.values()}) == 5, "the first two and the wrapped one have the same file"


# Its page

SCRIPT = "User-agent: *\nDisallow: /private\nDisallow: /<script>alert(1)</script>\n"


async def test_a_crawl_writes_its_page(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(SCRIPT)
    down = web.site(Page(b"", status=503), host="127.0.0.2")
    urls = [*site.urls("/a", "/private/1", "/<script>alert(1)</script>?\u202e"), *down.urls("/b")]
    exempt = Request(site.url("/private/2"), meta=dict(EXEMPT))
    settings = {
        "REP_REPORT": [str(tmp_path / "report.html"), str(tmp_path / "report.json")],
        "REP_RETRY_TIMES": 0,
        "USER_AGENT": "mybot/1 (+https://bot.example/about)",
        "HTTPCACHE_ENABLED": False,
    }
    await crawl([*urls, exempt], settings)
    page = Selector((tmp_path / "report.html").read_text("utf-8"))
    first, *others = (each.xpath("string()").get() for each in page.css("article .answer"))
    assert re.fullmatch(f"No, except 1 request with dont_obey_robotstxt({LATER})?", first or "")
    assert others == [
        "2", "3 (60 %)", "Yes", "No site asked for one", "1", "None that is listed", "visitor",
    ]  # fmt: skip
    assert page.css(".file mark::text").getall() == SCRIPT.splitlines()[1:]
    assert len(page.css("script")) == 1
    evidence = " ".join(page.css(".practice td p::text").getall())
    assert "The user agent has a URL or an e-mail address: mybot/1 (+https://bot" in evidence
    assert "Scrapy's HTTP cache is not on in all runs (HTTPCACHE_ENABLED)" in evidence
    (run,) = report_in(tmp_path).runs
    assert run.downloads["response_status_count/200"] > run.downloads["response_status_count/503"]
    assert "request_method_count/GET" in run.downloads
