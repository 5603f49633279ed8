"""Crawls URLs one after the other and measures the peak memory of the process.

    python -m testing.measure LOOP URL URL ...

Prints a JSON list: by how many MiB the peak has grown with each two URLs.
"""

from __future__ import annotations

import json
import resource
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.settings import Settings

from scrapy_rep import Addon

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def peak() -> int:
    """Return the peak memory of this process in KiB."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # ru_maxrss would include the peak of the process that started this one.
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


class Measurer(Spider):
    """Requests its URLs one after the other."""

    name = "measurer"
    peaks: list[int] = []  # noqa: RUF012

    def __init__(self, urls: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = iter(urls)

    async def start(self) -> AsyncIterator[Any]:
        yield self._next()

    def _next(self) -> Request | None:
        self.peaks.append(peak())
        url = next(self.urls, None)
        return Request(url, callback=self._done, errback=self._done) if url else None

    def _done(self, _: object) -> Request | None:
        return self._next()


def main(loop: str, urls: list[str]) -> None:
    """Crawl the URLs and print the list."""
    process = process_on(loop, {"LOG_ENABLED": False, "REP_TIMEOUT": 5})
    process.crawl(Measurer, urls=urls)
    process.start()
    peaks = Measurer.peaks[::2]
    json.dump([(after - before) // 1024 for before, after in pairwise(peaks)], sys.stdout)


def process_on(loop: str, settings: dict[str, Any]) -> CrawlerProcess | AsyncCrawlerProcess:
    """A crawler process with the add-on.

    ``loop`` is ``asyncio``, ``default`` (the default reactor of Twisted) or ``none`` (no reactor).
    """
    values: dict[str, Any] = {
        "ADDONS": {Addon: 500},
        "REP_RETRY_TIMES": 0,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        **settings,
    }
    if loop == "none":
        values["TWISTED_REACTOR_ENABLED"] = False
    if loop == "default":
        values["TWISTED_REACTOR"] = None
    merged = Settings()
    merged.setdict(values, priority="project")
    return (CrawlerProcess if loop == "default" else AsyncCrawlerProcess)(merged)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
