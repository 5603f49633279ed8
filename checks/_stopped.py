"""A crawl that a signal stops. ``python -m checks._stopped FOLDER ADDON PAGES ROOT...`` runs it.

The page at the path ``/n`` of a site leads to ``/2n`` and ``/2n+1`` of the next site.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response


class Doubling(Spider):
    """Follows the two links that each page stands for."""

    name = "doubling"
    roots: tuple[str, ...] = ()
    pages = 0

    async def start(self) -> AsyncIterator[Any]:
        yield self._request(1)

    def _request(self, number: int) -> Request:
        return Request(f"{self.roots[number % len(self.roots)]}/{number}")

    def parse(self, response: Response) -> Iterator[Any]:
        number = int(response.url.rpartition("/")[2])
        for following in (2 * number, 2 * number + 1):
            if following <= self.pages:
                yield self._request(following)


def main(folder: str, addon: str, pages: str, *roots: str) -> None:
    """Crawl, or go on with a crawl that was stopped."""
    settings: dict[str, Any] = {
        "ADDONS": {addon: 500} if addon else {},
        "CONCURRENT_REQUESTS": 8,
        "JOBDIR": folder,
        "LOG_LEVEL": "WARNING",
        "ROBOTSTXT_OBEY": bool(addon),
        "TELNETCONSOLE_ENABLED": False,
    }
    process = CrawlerProcess(settings)
    process.crawl(Doubling, roots=roots, pages=int(pages))
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
