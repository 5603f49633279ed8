"""What a report (REP_REPORT) adds to the CPU time of a crawl.

Crawls 20 origins of 60 pages each on loopback, with and without a report in turn, in processes of
their own. The event log and the report of it are measured by themselves, since they are a small
part of a crawl: one percent of a crawl is within the noise of its CPU time. Compare the ratios of
the pairs: the speed of the machine changes over time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from scrapy import Request
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.clock import Clock
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from scrapy_rep.reports.event_log import CrawlLog
from scrapy_rep.reports.files import BackgroundFile
from scrapy_rep.reports.reading import read_reports
from scrapy_rep.reports.records import Run, json_text, utc
from scrapy_rep.settings import ROBOTSTXT, Settings
from testing.harness import Duration, Options, Parameter, Result, Row, call
from testing.web import Web

from .crawl_cost import ORIGINS, PAGES, ROBOTS, Visitor

DURATION = Duration(60, 15)
PARAMETERS = {
    "pairs": Parameter(10, 2, "pairs of crawls"),
    "rounds": Parameter(15, 5, "rounds of calls, of which the best counts"),
}
CALLS = 20_000


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
        run = Run("run", "visitor", "", "mybot", utc(0), utc(0))
        file = BackgroundFile(path)
        made = CrawlLog(run, Settings.read(ScrapySettings()), Clock(), file)

        def report() -> int:
            made.flush()
            file._thread.submit(int).result()  # after all writes
            return len(json_text(read_reports([path])))

        yield made, report


def calls(rounds: int) -> dict[str, float]:
    """Return the CPU seconds for a request, and for its part of the report."""
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
                made.disallowed(request.url, verdict)
            keep("dropped", began, CALLS)
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
        ],
        details,
    )
