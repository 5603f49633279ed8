"""What a report (REP_REPORT) adds to the CPU time of a crawl.

Crawls 20 origins of 60 pages each on loopback, with and without a report in turn, in processes of
their own. Then crawls one page of each of many origins, without a report. The event log and the
report of it are measured by themselves, since they are a small part of a crawl: one percent of a
crawl is within the noise of its CPU time. Compare the ratios of the pairs: the speed of the machine
changes over time.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.frontier.clock import Clock
from scrapy_rep.meta_keys import ROBOTSTXT
from scrapy_rep.origin import Origin
from scrapy_rep.protocol.access import CopyInfo, Rules
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from scrapy_rep.reports.background_file import BackgroundFile, new_file
from scrapy_rep.reports.event_log import CrawlLog
from scrapy_rep.reports.reading import read_reports
from scrapy_rep.reports.records import Run, json_text, utc
from scrapy_rep.settings import Settings
from testing.harness import Duration, Parameter, Result, Row
from testing.processes import call
from testing.web import Web

from . import first_request
from .crawl_cost import ORIGINS, PAGES, ROBOTS, Visitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testing.harness import Options

DURATION = Duration(60, 15)
PARAMETERS = {
    "pairs": Parameter(10, 2, "pairs of crawls"),
    "rounds": Parameter(15, 5, "rounds of calls, of which the best counts"),
    "origins": Parameter(400, 100, "origins of a crawl of one page each"),
}
CALLS = 20_000
NEW_ORIGINS = 2000


def crawl(report: str | None, roots: list[str]) -> tuple[float, int]:
    """Crawl in this process. Returns the CPU seconds and the number of pages."""
    settings: dict[str, Any] = {
        "LOG_ENABLED": False,
        "ROOTS": roots,
        "TELNETCONSOLE_ENABLED": False,
        "CONCURRENT_REQUESTS": 32,
        "ADDONS": {"scrapy_rep.Addon": 500},
        "REP_REPORT": report,
    }
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(Visitor)
    process.crawl(crawler)
    before = time.process_time()
    process.start()
    seconds = time.process_time() - before
    assert crawler.stats is not None
    return seconds, crawler.stats.get_value("downloader/response_status_count/200") - ORIGINS


@contextmanager
def log() -> Iterator[tuple[CrawlLog, Callable[[], int]]]:
    """Yield an event log in a file, and the function that makes the report of it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "crawl.events.gz")
        descriptor, _ = new_file(str(path))
        run = Run("run", "visitor", "", "mybot", utc(0), utc(0))
        file = BackgroundFile(descriptor)
        made = CrawlLog(run, Settings.read(ScrapySettings()), Clock(), file)

        def report() -> int:
            made.flush()
            while file.waiting:
                time.sleep(0.001)
            return len(json_text(read_reports([path])))

        yield made, report


def new_origins(rounds: int) -> float:
    """Return the CPU seconds of the report for an origin with a robots.txt and one page."""
    body = ROBOTS.encode()
    costs = []
    for _ in range(rounds):
        found = []
        for number in range(NEW_ORIGINS):
            key = f"http://{number}.example"
            # As the fetcher makes it, with and without a report.
            copy = CopyInfo(f"{key}/robots.txt", sha256=sha256(body).hexdigest())
            origin = Origin(key)
            event = Rules(RobotsTxt.parse(body), 200, copy, time.time() + 3600, body)
            origin.start_fetch(time.time())
            origin.apply(event, time.time())
            robots = Request(copy.url, meta={"is_robotstxt_request": True})
            page = Request(f"{key}/1", meta={ROBOTSTXT: Verdict(True, Reason.RULES, None, "*")})
            found.append((origin, event, robots, page))
        with log() as (made, report):
            began = time.process_time()
            for origin, event, robots, page in found:
                made.sent(robots, 0)
                made.fetched(origin, event, body)
                made.paced(origin, ("mybot",), 0, 0)
                made.sent(page, 0)
            report()
            costs.append((time.process_time() - began) / NEW_ORIGINS)
    return min(costs)


def calls(rounds: int) -> dict[str, float]:
    """Return the CPU seconds for a request, for its part of the report, and for a new origin."""
    roots = [f"http://{number}.example" for number in range(ORIGINS)]
    requests = [
        Request(
            f"{roots[number % ORIGINS]}/articles/{number}.html",
            # Each request has a verdict of its own, as in a crawl.
            meta={ROBOTSTXT: Verdict(True, Reason.RULES, Rule(True, "/articles/", 4), "*")},
        )
        for number in range(CALLS)
    ]
    verdict = Verdict(False, Reason.RULES, Rule(False, "/private/", 2), "*")
    best: dict[str, float] = {}

    def keep(name: str, began: float, number: int) -> None:
        seconds = (time.process_time() - began) / number
        best[name] = min(seconds, best.get(name, seconds))

    for _ in range(rounds):
        with log() as (made, report):
            began = time.process_time()
            for request in requests:
                made.sent(request, 0)
            keep("sent", began, CALLS)
            began = time.process_time()
            report()
            keep("query", began, CALLS)
            began = time.process_time()
            for request in requests:
                made.dropped(request.url, verdict)
            keep("dropped", began, CALLS)
    best["new origin"] = new_origins(rounds)
    return best


def run(options: Options) -> Result:
    """Return the medians, with each pair as a detail."""
    web = Web()
    sites = [web.site(ROBOTS, host=f"127.0.1.{number + 1}") for number in range(ORIGINS)]
    roots = [site.root for site in sites]
    with_report: list[float] = []
    without: list[float] = []
    details = []
    with TemporaryDirectory() as folder:
        path = str(Path(folder, "%(name)s-%(time)s.json"))
        for pair in range(options.number("pairs")):
            order = [(path, with_report), (None, without)]
            for report, seconds in order if pair % 2 else reversed(order):
                took, pages = call(crawl, report, roots)
                assert pages == ORIGINS * PAGES, pages
                seconds.append(took)
                for site in sites:
                    site.received.clear()
            one, other = with_report[-1], without[-1]
            ratio = one / other
            details.append(f"pair {pair + 1}: {one:.3f} s, without {other:.3f} s, {ratio:.3f}")
    single = [
        web.site(ROBOTS, host=f"127.0.{2 + number // 250}.{1 + number % 250}").root
        for number in range(options.number("origins"))
    ]
    new_origin = median(
        call(first_request.crawl, "ours", single, False) / len(single)
        for _ in range(options.number("pairs"))
    )
    web.close()
    found = call(calls, options.number("rounds"))
    request = median(without) / (ORIGINS * PAGES)
    ratios = [one / other for one, other in zip(with_report, without, strict=True)]
    return Result(
        [
            Row("CPU of a crawl with a report, median", median(with_report), "s"),
            Row("the same without", median(without), "s"),
            Row("median ratio", median(ratios), "ratio"),
            Row("a request of a crawl without a report", request * 1e6, "us"),
            Row("the report, for a request that is sent", found["sent"] * 1e6, "us"),
            Row("the report, for one that is dropped", found["dropped"] * 1e6, "us"),
            Row("the report at the end, for each request", found["query"] * 1e6, "us"),
            Row("share of a request", (found["sent"] + found["query"]) / request * 100, "%", 1),
            Row("a new origin with one page, without a report", new_origin * 1e6, "us"),
            Row("the report, for a new origin", found["new origin"] * 1e6, "us"),
            Row("share of a new origin", found["new origin"] / new_origin * 100, "%"),
        ],
        details,
    )
