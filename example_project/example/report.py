"""Notes what becomes of the URLs of a crawl, and prints tables of it."""

from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure

from scrapy_rep import RobotsTxtDisallowed, Verdict


class ReportingSpider(Spider):
    """Keeps what became of each URL, and why, in `outcomes`.

    The errback of its requests is `not_crawled`. After a `fault`, `scrapy crawl` exits with 1.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Any:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.allowed, signals.request_reached_downloader)
        return spider

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.outcomes: dict[str, tuple[str, str]] = {}
        self.failed = False

    def fault(self, message: str) -> None:
        self.logger.error(message)
        self.failed = True

    def allowed(self, request: Request) -> None:
        """Note a request that robots.txt allows. Its verdict is in its meta."""
        if not request.meta.get("dont_obey_robotstxt"):
            self.outcomes[request.url] = ("crawled", why(request.meta.get("robotstxt")))

    def not_crawled(self, failure: Failure) -> None:
        """Note a request that robots.txt disallows, or that failed."""
        error, url = failure.value, failure.request.url  # type: ignore[attr-defined]
        if isinstance(error, RobotsTxtDisallowed):
            self.outcomes[url] = ("dropped", why(error.verdict))
        elif isinstance(error, IgnoreRequest):  # by another middleware
            self.outcomes[url] = ("dropped", "")
        else:
            self.outcomes[url] = ("failed", type(error).__name__)

    def count(self) -> str:
        dropped = sum(outcome == "dropped" for outcome, _ in self.outcomes.values())
        urls = len(self.outcomes)
        return f"{urls} URLs, {urls - dropped} allowed, {dropped} disallowed"


def why(verdict: Verdict | None) -> str:
    """Return the rule that decided, or the reason if there was none."""
    if verdict is None:
        return ""  # robots.txt is not obeyed, or not by this package
    if verdict.rule is None and verdict.agent is not None:
        return f"no rule for {verdict.agent} matches"
    return str(verdict)


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print columns that fit the terminal. A row of one cell is a heading."""
    table = [[str(cell) for cell in row] for row in (head, *rows)]
    full = [row for row in table if len(row) > 1]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    too_wide = sum(widths) + 2 * len(widths) - 2 - get_terminal_size().columns
    widths[widths.index(max(widths))] -= max(0, too_wide)
    print(f"\n{title}\n")
    for row in (table[0], ["-" * width for width in widths], *table[1:]):
        cells = (cut(cell, width).ljust(width) for cell, width in zip(row, widths, strict=False))
        print("  ".join(cells).rstrip() if len(row) > 1 else f"\n{row[0]}")


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
