"""Memory and time of a crawl of up to a million origins.

Starts a crawl, and gives its middleware one file of each new origin, as after a download. The files
are repeated until there are enough origins. At several numbers of origins it measures the memory,
and the time of three kinds of requests: to origins that are new, whose file needs no download here,
to one that was used just now, and to origins that have not been used for long.
"""

from __future__ import annotations

import gc
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import IgnoreRequest

from scrapy_rep import RobotsTxtDisallowed, RobotsTxtMiddleware
from scrapy_rep.origin import Origin
from scrapy_rep.protocol.access import CopyInfo, Rules
from testing.corpus import load
from testing.harness import Duration, Options, Parameter, Result, Row

DURATION = Duration(240, 15)
PARAMETERS = {
    "files": Parameter(2000, 300, "generated files"),
    "origins": Parameter(1_000_000, 10_000, "origins"),
}

FIRST = 1000
"""The number of origins at which the first figures are taken."""
SAMPLE = 500
"""Requests whose time is measured at each number of origins, of each kind."""
NEW, KNOWN, IDLE = "a new origin", "one used just now", "an origin not used for long"


class Figures(NamedTuple):
    """What was measured at a number of origins."""

    origins: int
    octets: float
    """The memory by which the crawl has grown, for each origin."""
    microseconds: dict[str, float]
    """The time of a request of each kind, median."""


def resident() -> int:
    """Return the memory of this process in octets."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0]) * 1024


def numbers_of_origins(most: int) -> Iterator[int]:
    """Yield 1,000, 2,000, 5,000, 10,000 and so on, up to ``most``."""
    for exponent in count():
        for factor in (1, 2, 5):
            number = FIRST * factor * 10**exponent
            if number >= most:
                yield most
                return
            yield number


class Files:
    """Replaces the fetcher of a crawl. Every origin has a file."""

    def __init__(self, bodies: list[bytes]) -> None:
        self._bodies = bodies
        self._count = count()

    async def fetch(self, origin: Origin, *_: object, **__: object) -> Rules:
        """Return the result of a fetch: the next file."""
        return self.next_for(origin)

    def next_for(self, origin: Origin) -> Rules:
        """Return the next file as that of an origin. No two origins share memory."""
        number = next(self._count)
        body = bytes(bytearray(self._bodies[number % len(self._bodies)]))
        url = origin.file_url
        content = origin.parse(body, strict=False, url=url)
        etag = f'"{number:x}-{len(body):x}"'
        digest = sha256(body).hexdigest()
        copy = CopyInfo(url, etag, "Mon, 02 Nov 2026 10:00:00 GMT", sha256=digest)
        # As if it came from a cache, so that the first page need not wait for the Crawl-delay.
        return Rules(content, 200, copy, time.time() + 80_000, body, from_cache=True)


class Meter(Spider):
    """Passes requests to the middleware, and measures."""

    name = "meter"
    bodies: list[bytes] = []  # noqa: RUF012
    most = 0
    figures: list[Figures] = []  # noqa: RUF012

    async def start(self) -> AsyncIterator[Any]:
        middleware: Any = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        files = Files(self.bodies)
        middleware.crawl.fetches.fetcher.fetch = files.fetch
        gc.collect()
        before = resident()
        chance = Random(9309)
        added = 0
        for number in numbers_of_origins(self.most):
            for each in range(added, number - SAMPLE):
                self._add(middleware, files, each)
            new = [await self._ask(middleware, each) for each in range(number - SAMPLE, number)]
            added = number
            gc.collect()
            octets = (resident() - before) / number
            last = self._known(middleware, number - 1)
            known = [await self._ask(middleware, last) for _ in range(SAMPLE)]
            oldest = [chance.randrange(max(number // 2, 1)) for _ in range(SAMPLE)]
            idle = [await self._ask(middleware, each) for each in oldest]
            times = {NEW: median(new), KNOWN: median(known), IDLE: median(idle)}
            self.figures.append(Figures(number, octets, {k: 1e6 * t for k, t in times.items()}))
        yield Request("data:,")

    def _add(self, middleware: Any, files: Files, number: int) -> None:
        """Add an origin after a fetch of its file and one verdict."""
        cache, now = middleware.policies, middleware.policies.now()
        origin = cache.files.find_or_add(_key(number))
        origin.start_fetch(now)
        origin.apply(files.next_for(origin), now)
        request = Request(f"{_key(number)}/some/page.html")
        cache.apply_pace(origin, request)
        cache.verdict(origin, request.url, ("scrapy",))
        cache.evict()

    async def _ask(self, middleware: Any, number: int) -> float:
        """Pass a request to the middleware. Returns the seconds."""
        request = Request(f"{_key(number)}/some/page.html")
        began = time.perf_counter()
        with suppress(RobotsTxtDisallowed):
            await middleware.process_request(request)
        took = time.perf_counter() - began
        middleware.process_exception(request, IgnoreRequest())  # it is not sent
        return took

    def _known(self, middleware: Any, number: int) -> int:
        """Return one of the last origins that has no Crawl-delay."""
        while middleware.origins[_key(number)].has_pacing:
            number -= 1
        return number

    def parse(self, response: Any) -> None:
        pass


def _key(number: int) -> str:
    return f"https://www.site-{number}.example"


def run(options: Options) -> Result:
    """Return the figures at each number of origins."""
    corpus = load(options.folder, files=options.number("files"))
    Meter.bodies = corpus.bodies
    Meter.most = options.number("origins")
    process = AsyncCrawlerProcess(
        {
            "ADDONS": {"scrapy_rep.Addon": 500},
            "LOG_LEVEL": "ERROR",
            "REP_MAX_WAIT": 1,  # no request waits for a Visit-time
            "TELNETCONSOLE_ENABLED": False,
        }
    )
    process.crawl(Meter)
    process.start()
    figures = Meter.figures
    rows = [
        row
        for each in figures
        for row in (
            Row(f"{each.origins:,} origins: memory of one", each.octets, "octets"),
            *(
                Row(f"  a request to {kind}", took, "us")
                for kind, took in each.microseconds.items()
            ),
        )
    ]
    return Result(
        [*rows, Row("memory of all", figures[-1].octets * figures[-1].origins / 2**20, "MiB")],
        [corpus.source],
    )
