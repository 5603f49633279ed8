"""Downloader middlewares that break a law on purpose, so that the judge of a crawl is tested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep import RobotsTxtMiddleware

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

EVERY = 300
"""One of so many requests is affected."""


class Defect:
    """Breaks a law with some requests."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.count = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Defect:
        """Return the middleware of a crawl."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Break the law with some of the requests for pages."""
        if request.meta.get("dont_obey_robotstxt") or "/p" not in request.url:
            return
        self.count += 1
        if self.count % EVERY == 0:
            await self.break_law(request)

    async def break_law(self, request: Request) -> None:
        """Break the law with this request."""
        raise NotImplementedError


class Disobey(Defect):
    """Sends a request whatever the robots.txt says."""

    async def break_law(self, request: Request) -> None:
        request.meta["dont_obey_robotstxt"] = True


class Lose(Defect):
    """Never ends a request. The crawl is stuck then."""

    async def break_law(self, _: Request) -> None:
        await maybe_deferred_to_future(Deferred())


class Twice(Defect):
    """Ends a request twice."""

    async def break_law(self, request: Request) -> None:
        spider: Any = self.crawler.spider
        spider.ended.append(f"{request.cb_kwargs['number']} r")


class Forget(Defect):
    """Forgets a robots.txt, in memory and in the store."""

    async def break_law(self, request: Request) -> None:
        middleware: Any = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        cache = middleware.policies
        for key in tuple(cache.files):
            if key in request.url and not cache.files[key].in_flight:
                entry = await cache.store.store.get(key)
                if entry is not None:
                    await cache.store.store.put(key, entry._replace(expires_at=0, refresh_at=0))
                cache.files[key].expires_at = cache.files[key].refresh_at = 0


class Leak(Defect):
    """Keeps 300 KB for each affected request: one for each request."""

    async def break_law(self, _: Request) -> None:
        self.kept = [getattr(self, "kept", None), bytearray(b"x" * 1000 * EVERY)]


class Hurry(Defect):
    """Sets the delay of all hosts to zero."""

    async def break_law(self, _: Request) -> None:
        middleware: Any = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        for host in middleware.frontier.hosts.values():
            host.delay = 0.0


class Count(Defect):
    """Leaves a request in a counter of the engine."""

    async def break_law(self, request: Request) -> None:
        middleware: Any = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        middleware._engine._extra.add(request.copy())


class Fail(Defect):
    """Ends a request in an error."""

    async def break_law(self, request: Request) -> None:
        raise OSError(request.url)


DEFECTS: dict[str, type[Defect]] = {
    "disobey": Disobey,
    "lose": Lose,
    "twice": Twice,
    "forget": Forget,
    "leak": Leak,
    "hurry": Hurry,
    "count": Count,
    "fail": Fail,
}
