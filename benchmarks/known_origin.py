"""What the answer for a known origin costs, beside Scrapy's own middleware.

    python -m benchmarks.known_origin

Crawls a page of each of 20 origins on loopback, and then asks the middleware of that crawl about
new requests to them: once as they are, and once as they come in a crawl, where OffsiteMiddleware
has parsed their URL already. Each middleware in a process of its own, the best of several rounds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.utils.httpobj import urlparse_cached

from scrapy_rep import RobotsTxtMiddleware
from tests.crawl.web import Web

from .crawl_cost import MIDDLEWARES, ORIGINS, ROBOTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

ROUNDS = 15
PAGES = 200

FORMS = ("new request", "parsed by Offsite")


class Asker(Spider):
    """Sees every origin, and then times the answers about it."""

    name = "asker"
    costs: list[float] = []  # noqa: RUF012

    async def start(self) -> AsyncIterator[Any]:
        self.left = len(self.settings["ROOTS"])
        for root in self.settings["ROOTS"]:
            yield Request(f"{root}/articles/first.html")

    def parse(self, _: Response) -> None:
        self.left -= 1
        if not self.left:
            self.costs += [min(self._rounds(parsed=parsed)) for parsed in (False, True)]

    def _rounds(self, *, parsed: bool) -> Iterator[float]:
        """The seconds of one answer, on average, in each round."""
        find = self.crawler.get_downloader_middleware
        middleware: Any = find(RobotsTxtMiddleware) or find(BuiltInMiddleware)
        for number in range(ROUNDS):
            requests = [
                Request(f"{root}/articles/{number}/{page}.html")
                for page in range(PAGES)
                for root in self.settings["ROOTS"]
            ]
            if parsed:
                for request in requests:
                    urlparse_cached(request)
            began = time.perf_counter()
            for request in requests:
                try:
                    middleware.process_request(request).send(None)
                except StopIteration:
                    continue
                raise AssertionError("it waits for something")
            yield (time.perf_counter() - began) / len(requests)


def ask(middleware: str, roots: list[str]) -> None:
    """One crawl in this process; prints the seconds of an answer in each form."""
    process = AsyncCrawlerProcess(
        {"LOG_ENABLED": False, "ROOTS": roots, "TELNETCONSOLE_ENABLED": False}
        | MIDDLEWARES[middleware]
    )
    process.crawl(Asker)
    process.start()
    print(json.dumps(Asker.costs))


def main() -> None:
    """Print the cost of an answer by each middleware, and the ratio."""
    web = Web()
    roots = [web.site(ROBOTS, host=f"127.0.1.{number + 1}").root for number in range(ORIGINS)]
    costs: dict[str, list[float]] = {}
    for middleware in MIDDLEWARES:
        command = [sys.executable, "-m", "benchmarks.known_origin", "--ask", middleware, *roots]
        output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        costs[middleware] = json.loads(output.stdout)
    for form, ours, theirs in zip(FORMS, *costs.values(), strict=True):
        micro = f"ours {ours * 1e6:.2f} us, Scrapy's {theirs * 1e6:.2f} us"
        print(f"{form}: {micro}, ratio {ours / theirs:.2f}")
    web.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        ask(sys.argv[2], sys.argv[3:])
    else:
        main()
