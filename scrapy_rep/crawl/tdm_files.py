"""The TDM files of a crawl (REP_TDMREP): fetched, cached and stored like robots.txt files.

The fetch starts after that of the robots.txt of the origin, at the same time as the first page. No
request waits for it. Responses wait before the spider gets them, because the directives of a page
include the rule of the file. They wait for the first fetch only: if it fails, the file states
nothing until a later fetch succeeds, and later fetches run in the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

from ..logs import get_logger
from ..meta_keys import DONT_OBEY, IS_ROBOTSTXT_REQUEST
from ..origin import OriginFile, Resource, State
from ..protocol.access import Unreachable
from ..protocol.paths import origin_of
from ..protocol.tdmrep import TDM_FILE, TdmRep
from .file_cache import FileCache

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from ..frontier.clock import Clock
    from ..frontier.engine import Engine
    from ..origin import Origin
    from ..protocol.access import FetchResult
    from ..protocol.tdmrep import TdmRule
    from ..settings import Settings
    from .policy_cache import PolicyCache

logger = get_logger(__name__)


def _parse(body: bytes, *, strict: bool, url: str | None) -> TdmRep:  # noqa: ARG001
    return TdmRep.parse(body)


class TdmFile(OriginFile[TdmRep]):
    """The TDM file of one origin."""

    __slots__ = ()

    resource: ClassVar[Resource] = Resource("tdmrep.json", TDM_FILE, "robotstxt/tdmrep", _parse)


class TdmFiles(FileCache[TdmFile]):
    """The TDM files of one crawl."""

    def __init__(
        self,
        crawler: Crawler,
        settings: Settings,
        engine: Engine,
        clock: Clock,
        policies: PolicyCache,
    ) -> None:
        super().__init__(
            crawler, settings, engine, clock, policies.fetcher, policies.store, TdmFile
        )
        self._pages: dict[str, Request] = {}
        """The request for which the file of an origin is being fetched."""
        self._file_of: WeakKeyDictionary[Request, TdmFile] = WeakKeyDictionary()
        """The file for the response to a request. REP_CACHE_SIZE may remove it from memory before
        the spider gets the response."""
        self._policies = policies

    def prefetch(self, origin: Origin, request: Request) -> None:
        """Fetch the file of an origin for a request, if the request is allowed."""
        url = request.url
        is_of_origin = _has_file(origin.key) and origin_of(url) == origin.key
        if is_of_origin and self._allows(origin, request, url):
            self.get_or_fetch(origin.key, request)

    async def wait(self, request: Request, response: Response) -> bool:
        """Wait until the file for a response is known, but no longer than for its first fetch.

        Returns False if the spider closes first.
        """
        key = origin_of(response.url)
        if key is None or not _has_file(key):
            return True
        file = self.get_fresh(key)
        if file is None and not (
            request.meta.get(IS_ROBOTSTXT_REQUEST) or request.meta.get(DONT_OBEY)
        ):
            file = self.files.get(key)
            if file is not None and file.failures:
                self.get_or_fetch(key, request)  # in the background
            else:
                file = await self.wait_for(key, request, response)
                if file is None:
                    return False
        if file is not None:
            self._file_of[request] = file
        return True

    def rule(self, response: Response) -> TdmRule | None:
        """Return the rule for the URL of a response, if its file is known and has one."""
        file = self._file_of.get(response.request) if response.request is not None else None
        if file is None:
            file = self.files.get(origin_of(response.url) or "")
        if file is None or file.content is None:
            return None
        return file.content.rule(response.url)

    def is_wanted(self, key: str) -> bool:
        page = self._pages.get(key)
        is_awaited = page is not None and self._engine.is_active(page)  # its response will wait
        return is_awaited or super().is_wanted(key)

    async def _fetch(self, file: TdmFile, page: Request) -> None:
        self._pages[file.key] = page
        try:
            await super()._fetch(file, page)
        finally:
            del self._pages[file.key]

    async def may_fetch(self, page: Request, url: str) -> bool:
        """Whether the URL of a file, or a URL to which it redirects, is allowed by robots.txt."""
        key = origin_of(url)
        if key is None or self._policies.local_disallow(key, url) is not None:
            return False
        origin = self._policies.files.get(key)
        if origin is None or origin.state in (State.UNKNOWN, State.FETCHING):
            origin = await self._policies.wait_for(key, page)
        return origin is not None and self._allows(origin, page, url)

    def _allows(self, origin: Origin, page: Request, url: str) -> bool:
        return self._policies.verdict(origin, url, self._policies.tokens(page)).allowed

    def _on_result(
        self,
        file: TdmFile,
        page: Request,  # noqa: ARG002
        event: FetchResult | None,
        body: bytes | None,  # noqa: ARG002
    ) -> None:
        content = file.content
        if isinstance(event, Unreachable) and file.failures == 1:
            logger.info(
                "The tdmrep.json of %(origin)s is unreachable: %(failure)s. %(effect)s.",
                {
                    "origin": file.key,
                    "failure": event.failure.rstrip("."),
                    "effect": "It states nothing"
                    if content is None
                    else "Its last good copy is used",
                },
                extra={"spider": self._crawler.spider},
            )
        if file.state is State.FRESH and content is not None and content.problem:
            self._stats.inc_value("robotstxt/tdmrep/unreadable")
            logger.info(
                "The tdmrep.json of %(origin)s is not readable: %(problem)s.",
                {"origin": file.key, "problem": content.problem},
                extra={"spider": self._crawler.spider},
            )


def _has_file(key: str) -> bool:
    """Whether an origin can have a TDM file, which is for the web."""
    return key.startswith("http")
