"""A crawl with an archive, in a process of its own: ``python -m tests.crawl.archive_crawl JSON``.

The JSON object has the URLs and the settings.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess

from scrapy_rep import Addon

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Visitor(Spider):
    """Requests the pages of all sites."""

    name = "visitor"

    def __init__(self, urls: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = urls

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url)

    def parse(self, _: Any, **__: Any) -> None:
        """Use nothing of a page."""


def main(arguments: str) -> None:
    """Run the crawl, and write which modules of the archive were imported."""
    values = json.loads(arguments)
    settings = {
        "ADDONS": {Addon: 500},
        "TELNETCONSOLE_ENABLED": False,
        "USER_AGENT": "testbot/1.0 (+https://example.com/testbot)",
        "REP_RETRY_TIMES": 0,
        **values["settings"],
    }
    process = AsyncCrawlerProcess(settings)
    process.crawl(Visitor, urls=values["urls"])
    process.start()
    names = ("scrapy_rep.reports", "warcio")
    sys.stdout.write(" ".join(name for name in sorted(sys.modules) if name.startswith(names)))


if __name__ == "__main__":
    main(sys.argv[1])
