"""Records the outcome of each request of a crawl, and prints tables."""

from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure

from scrapy_rep import RobotsTxtDisallowed, Verdict


class ReportingSpider(Spider):
    """Records the outcome of each URL, and the reason, in `outcomes`.

    Requests need `errback=self.on_error`. After a call of `fail`, `scrapy crawl` exits with 1.
    """

    failed = False

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.on_download, signals.request_reached_downloader)
        return spider

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.outcomes: dict[str, tuple[str, str]] = {}

    def fail(self, message: str) -> None:
        self.logger.error(message)
        self.failed = True

    def on_download(self, request: Request) -> None:
        """Record an allowed request. The verdict is in its meta."""
        if not request.meta.get("dont_obey_robotstxt"):
            self.outcomes[request.url] = ("crawled", reason_of(request.meta.get("robotstxt")))

    def on_error(self, failure: Failure) -> None:
        """Record a request that is disallowed, or that failed."""
        error, url = failure.value, failure.request.url  # type: ignore[attr-defined]
        if isinstance(error, IgnoreRequest):
            verdict = error.verdict if isinstance(error, RobotsTxtDisallowed) else None
            self.outcomes[url] = ("dropped", reason_of(verdict))
        else:
            self.outcomes[url] = ("failed", type(error).__name__)

    def summary(self) -> str:
        urls, dropped = len(self.outcomes), sum("dropped" in row for row in self.outcomes.values())
        return f"{urls} URLs, {urls - dropped} allowed, {dropped} disallowed"


def reason_of(verdict: Verdict | None) -> str:
    """Return the rule that decided, or another reason if no rule matched."""
    if verdict is None:
        return ""  # robots.txt is not obeyed, or not by this package
    if verdict.rule is None and verdict.agent is not None:
        return f"no rule for {verdict.agent} matches"
    return str(verdict)


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table that fits the terminal. A row of one cell is a heading."""
    table = [[str(cell) for cell in row] for row in (head, *rows)]
    full = [row for row in table if len(row) > 1]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    too_wide = sum(widths) + 2 * len(widths) - 2 - get_terminal_size().columns
    widths[widths.index(max(widths))] -= max(0, too_wide)
    print(f"\n{title}\n")
    for row in (table[0], ["-" * width for width in widths], *table[1:]):
        cells = [
            cell.ljust(width) if len(cell) <= width else cell[: width - 1] + "…"
            for cell, width in zip(row, widths, strict=False)
        ]
        print("  ".join(cells).rstrip() if len(row) > 1 else f"\n{row[0]}")
