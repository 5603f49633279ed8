"""Crawls pages one after the other, with a report: ``python -m tests.crawl.report_worker JSON``.

The JSON object has the ``settings`` of the crawl, the ``root`` of the site, and the ``numbers`` of
the first page and of the one after the last.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

from scrapy_rep.reports import crawl_report
from testing.measure import process_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class Walker(Spider):
    """Requests each page when it has the one before."""

    name = "walker"

    def __init__(self, root: str, numbers: list[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = [f"{root}/{number}" for number in range(*numbers)]

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.urls[0])

    def parse(self, response: Response) -> Iterator[Request]:
        after = self.urls.index(response.url) + 1
        if after < len(self.urls):
            yield Request(self.urls[after])


def main(arguments: dict[str, Any]) -> None:
    """Crawl. The event log is written several times a second."""
    crawl_report.WRITE_INTERVAL = 0.1
    process = process_on("asyncio", {"LOG_LEVEL": "INFO", **arguments["settings"]})
    process.crawl(Walker, root=arguments["root"], numbers=arguments["numbers"])
    process.start()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
