"""The TDM files of a crawl (REP_TDMREP): each is fetched once, and again when it has expired.

The first page of an origin starts the fetch. Its response, and those that arrive meanwhile, wait
for it, because the directives of a page include the rule of the file. If it fails, the file states
nothing until a later fetch succeeds. Later fetches run in the background.
"""

from __future__ import annotations

from functools import partial

from scrapy import Request
from scrapy.http import Response

from ..closing import Closing
from ..logs import get_logger
from ..origin import OriginFile, Tdm
from ..policies.policies import Policies
from ..protocol.access import FetchResult, Rules, Unavailable, Unreachable, retry_interval
from ..protocol.paths import origin_of
from ..protocol.tdmrep import TDM_FILE, TdmRep
from ..recorder import Recorder
from ..settings import DONT_OBEY, IS_ROBOTSTXT_REQUEST
from .fetches import Fetches

logger = get_logger(__name__)


class TdmFile(OriginFile):
    """The TDM file of one origin, while it is fetched."""

    __slots__ = ()

    name, path, stats = "tdmrep.json", TDM_FILE, "robotstxt/tdmrep"

    @staticmethod
    def parse(body: bytes, **_: object) -> TdmRep:
        return TdmRep.parse(body)


class TdmFiles:
    """The TDM files of one crawl. What is known of them is in :attr:`.Origin.tdm`."""

    def __init__(
        self, policies: Policies, fetches: Fetches, closing: Closing, recorder: Recorder
    ) -> None:
        self._policies = policies
        self._fetches = fetches
        self._closing = closing
        self._recorder = recorder

    async def wait(self, request: Request, response: Response) -> bool:
        """Wait until the file for a response is known, but no longer than for its first fetch.

        Returns False if the spider closes first.
        """
        key, origins = origin_of(response.url), self._policies.origins
        if key is None or not key.startswith("http"):  # such a file is for the web
            return True
        origin = origins.get(key)
        if not (request.meta.get(IS_ROBOTSTXT_REQUEST) or request.meta.get(DONT_OBEY)):
            if origin is None or origin.tdm is None:
                fetcher = self._fetches.fetcher
                with fetcher.waiting(key, request, response):
                    self._fetch(key, request)
                    await fetcher.ended(key + TDM_FILE)
                    origin = origins.get(key)
                if origin is None or origin.tdm is None:
                    return not self._closing.has_begun
            elif self._policies.now() >= origin.tdm.expires_at:
                self._fetch(key, request)
        if origin is not None:
            self._policies.origin_for[request] = origin
        return True

    def _fetch(self, key: str, page: Request) -> None:
        """Start a fetch for a page, unless one is in progress or the spider is closing."""
        if not self._closing.may_wait(page):
            return
        file, fetcher = TdmFile(key), self._fetches.fetcher
        fetch = partial(fetcher.fetch, file, page, may_fetch=self._fetches.verdict_on)
        fetcher.start(file, fetch, partial(self._finish, file))

    def _finish(self, file: TdmFile, event: FetchResult) -> None:
        origin, problem = self._policies.origins.get(file.key), None
        if origin is None or file.is_cancelled:
            return
        if isinstance(event, Unreachable):
            known = origin.tdm or Tdm()
            failures = known.failures + 1
            retry_at = self._policies.now() + (event.retry_after or retry_interval(failures))
            origin.tdm = known._replace(expires_at=retry_at, failures=failures)
            if failures == 1:
                has_copy = known.content is not None
                effect = "Its last good copy is used" if has_copy else "It states nothing"
                problem = f"unreachable: {event.failure.rstrip('.')}. {effect}"
        elif isinstance(event, Rules):
            origin.tdm = Tdm(event.content, len(event.body), event.expires_at)
            if event.content.problem:
                self._recorder.count("robotstxt/tdmrep/unreadable")
                problem = f"not readable: {event.content.problem}"
        elif isinstance(event, Unavailable):
            origin.tdm = Tdm(expires_at=event.expires_at)
        self._fetches.evict()
        if problem is not None:
            logger.info(
                "The tdmrep.json of %(origin)s is %(problem)s.",
                {"origin": file.key, "problem": problem},
                extra=self._recorder.extra,
            )
