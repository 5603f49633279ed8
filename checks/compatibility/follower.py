"""A crawl in a process of its own that follows every link, for crawls that are interrupted or
share a queue.

``python -m checks.compatibility.follower FOLDER`` reads ``job.json`` there and writes
``outcome.json``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import Response
from twisted.python.failure import Failure

from testing.web import Page, Web

from .crawling import SETTINGS
from .standard import RULES

ROOT = Path(__file__).resolve().parents[2]

TIME_LIMIT = 120
"""Seconds for one crawl."""


class Follower(Spider):
    """Follows every link of its pages. An item is the URL of a page."""

    name = "follower"

    def __init__(self, urls: Sequence[str], outcome: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = urls
        self.outcome = outcome

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(url, callback=self.parse, errback=self.failed)

    def parse(self, response: Response) -> Any:
        self.outcome["scraped"].append(response.url)
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, callback=self.parse, errback=self.failed)

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        self.outcome["failed"].append(request.url)


class Crawl:
    """A running crawl."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process = process
        self.folder = folder

    @classmethod
    async def start(cls, urls: Sequence[str], settings: Mapping[str, Any]) -> Crawl:
        """Start to crawl from ``urls``."""
        folder = Path(mkdtemp())
        (folder / "job.json").write_text(json.dumps({"urls": urls, "settings": dict(settings)}))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "checks.compatibility.follower", str(folder)),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        return cls(process, folder)

    async def end(self) -> dict[str, Any]:
        """Wait for the end. Returns a dict with ``scraped``, ``failed`` and ``stats``."""
        try:
            await asyncio.wait_for(self.process.wait(), TIME_LIMIT)
        except asyncio.TimeoutError:
            self.process.kill()
            raise AssertionError(f"a crawl is not over after {TIME_LIMIT} s") from None
        path = self.folder / "outcome.json"
        assert path.exists(), "a crawl has ended without an outcome"
        outcome: dict[str, Any] = json.loads(path.read_text())
        return outcome


async def follow(urls: Sequence[str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Crawl in a process of its own. Returns the same as :meth:`Crawl.end`."""
    return await (await Crawl.start(urls, settings)).end()


def links(*paths: str) -> str:
    """Return a page with links to these paths."""
    return "".join(f'<a href="{path}">A page</a>' for path in paths)


async def check_links(web: Web, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check a crawl that finds allowed and disallowed pages by links only. Returns its outcome."""
    public, private = ["/1", "/2", "/3"], ["/private/1", "/private/2"]
    site = web.site(f"{RULES}Crawl-delay: 0.1\n", {"/": Page(links(*public, *private))})
    outcome = await follow([site.url()], settings)
    assert site.page_paths == ["/", *public], f"received: {site.paths}"
    assert sorted(outcome["failed"]) == site.urls(*private), f"failed: {outcome['failed']}"
    return outcome


def main(folder: str) -> None:
    """Run the crawl of a folder."""
    job = json.loads((Path(folder) / "job.json").read_text())
    outcome: dict[str, Any] = {"scraped": [], "failed": []}
    process = CrawlerProcess({**SETTINGS, "LOG_LEVEL": "INFO", **job["settings"]})
    crawler = process.create_crawler(Follower)
    process.crawl(crawler, urls=job["urls"], outcome=outcome)
    process.start()
    assert crawler.stats is not None
    stats = crawler.stats.get_stats().items()
    outcome["stats"] = {name: value for name, value in stats if isinstance(value, (int, str))}
    (Path(folder) / "outcome.json").write_text(json.dumps(outcome))


if __name__ == "__main__":
    main(*sys.argv[1:])
