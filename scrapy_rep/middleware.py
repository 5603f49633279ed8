"""The downloader middleware: request → origin → verdict → IgnoreRequest.

A request knocks here; the middleware asks the origin's policy; if there is none yet, one fetch is
made and everyone who waits gets its answer; the policy says yes or no and why.
"""

from __future__ import annotations

import logging
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.exceptions import IgnoreRequest, NotConfigured

from .origin import Origin, Patience
from .pace import Pace
from .policies import Policies
from .protocol.agents import identify
from .protocol.paths import origin as origin_of
from .protocol.verdict import Reason, Verdict
from .settings import obeys, settings_of
from .waiting import Engine, WaitingRoom, WayBack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser
    from typing_extensions import Self

    from .protocol.pacing import Pacing

logger = logging.getLogger(__name__)


class RobotsTxtDisallowed(IgnoreRequest):
    """A request was dropped for the robots.txt of its site. ``verdict`` says why."""

    def __init__(self, url: str, verdict: Verdict) -> None:
        self.url = url
        self.verdict = verdict
        super().__init__(url, verdict)

    def __str__(self) -> str:
        return f"Forbidden by robots.txt: {_because(self.verdict)}"


class RobotsTxtMiddleware:
    """Obeys robots.txt for every request of a crawl.

    Leaves the :class:`~scrapy_rep.Verdict` at ``request.meta["robotstxt"]``; a request that is
    disallowed ends in :class:`RobotsTxtDisallowed`, which reaches its errback.
    """

    def __init__(self, crawler: Crawler) -> None:
        if not obeys(crawler):
            raise NotConfigured
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._settings = settings = settings_of(crawler)
        self._patience = Patience(settings.unreachable == "allow", settings.unreachable_days)
        self._now = time.time
        self._engine = Engine(crawler)
        self._way_back = WayBack(crawler, self._engine)
        self._policies = Policies(crawler, settings, self._engine, self._way_back, self._now)
        self._hours = WaitingRoom(self._engine, settings.max_waiting)
        self._pace: Pace | None = None
        if settings.obey_crawl_delay:
            turn = self._policies.turn if settings.shared_pace else None
            self._pace = Pace(crawler, settings, self._engine, self._way_back, self._now, turn)
        self._slowest: set[str] = set()
        self._tokens = lru_cache(maxsize=256)(self._identify)
        self._engine.watch(self._give_up, self._policies.give_up_refreshes)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Raises NotConfigured where ROBOTSTXT_OBEY is off."""
        return cls(crawler)

    @property
    def origins(self) -> Mapping[str, Origin]:
        """What is known of each origin, by its normal form ``scheme://host[:port]``. Read-only."""
        return self._policies.origins

    async def process_request(self, request: Request) -> Request | None:
        """Let the request pass, or raise :class:`RobotsTxtDisallowed`.

        Returns a request that has to wait where too many do already, and goes back to the
        scheduler.
        """
        if request.meta.get("dont_obey_robotstxt"):
            return None
        key = origin_of(request.url)
        if key is None:  # a scheme without robots.txt, or no host: Scrapy will say what is wrong
            return None
        origin = self._policies.settled(key)
        if origin is None:
            settled = await self._policies.settle(key, request)
            if isinstance(settled, Request):
                return settled
            origin = settled
        self.process_request_2(origin, request)
        if self._pace is None:
            return None
        pacing = origin.pacing(self._tokens_of(request)) if origin.states_pace else None
        if pacing is None and not self._pace.governs(origin):
            return None
        seconds = 0.0
        if pacing is not None:
            if pacing.hours is not None:
                later = await self._come_in_time(request, origin, pacing)
                if later is not None:
                    return later
            seconds = self._capped(origin, pacing.seconds_between(self._now()))
        if not self._pace.keep(origin, seconds):
            return await self._way_back.to_the_end(request)
        return None

    def process_request_2(self, rp: Origin | RobotParser | None, request: Request) -> None:
        """Ask what is known, and raise :class:`RobotsTxtDisallowed` if it is a no.

        The name of this half, and a parser in the place of the origin, are those of Scrapy's own
        middleware, for what builds on it.
        """
        if rp is None:
            return
        if isinstance(rp, Origin):
            tokens = self._tokens_of(request)
            verdict = rp.verdict(request.url, tokens, self._now(), self._patience)
        else:
            agent: Any = self._settings.user_agent(request.headers.get(b"User-Agent"))
            verdict = Verdict(rp.allowed(request.url, agent), Reason.RULES)
        request.meta["robotstxt"] = verdict
        if not verdict.allowed:
            raise self._disallowed(request, verdict)

    async def _come_in_time(
        self, request: Request, origin: Origin, pacing: Pacing
    ) -> Request | None:
        """Wait for the Visit-time to begin, if that is not too long; as in process_request."""
        seconds = pacing.seconds_until_welcome(self._now())
        if seconds > self._settings.max_wait:
            verdict = request.meta["robotstxt"]._replace(
                allowed=False, reason=Reason.VISIT_TIME, rule=None
            )
            request.meta["robotstxt"] = verdict
            raise self._disallowed(request, verdict)
        if not seconds:
            return None
        if not self._hours.has_place(origin.key):
            return await self._way_back.to_the_end(request)
        await self._hours.wait(origin.key, seconds)
        return self._way_back.if_crowded(request)

    def _tokens_of(self, request: Request) -> tuple[str, ...]:
        headers = request.headers
        return self._tokens(
            headers[b"User-Agent"] if headers and b"User-Agent" in headers else None
        )

    def _identify(self, header: bytes | None) -> tuple[str, ...]:
        user_agent = self._settings.user_agent(header)
        tokens, doubt = identify(user_agent)
        if doubt is not None:
            logger.warning(
                "The user agent %(agent)r is read as %(tokens)s for robots.txt: %(doubt)s. "
                "ROBOTSTXT_USER_AGENT can name the product token.",
                {"agent": user_agent, "tokens": list(tokens), "doubt": doubt.value},
                extra={"spider": self._crawler.spider},
            )
        return tokens

    def _give_up(self) -> None:
        """The spider is closing: whoever waits goes back to the scheduler."""
        self._policies.give_up()
        self._hours.call_all()
        if self._pace is not None:
            self._pace.flush()

    def _disallowed(self, request: Request, verdict: Verdict) -> RobotsTxtDisallowed:
        self._stats.inc_value("robotstxt/forbidden")
        self._stats.inc_value(f"robotstxt/forbidden/{verdict.reason}")
        logger.debug(
            "Forbidden by robots.txt: %(request)s (%(because)s)",
            {"request": request, "because": _because(verdict)},
            extra={"spider": self._crawler.spider},
        )
        return RobotsTxtDisallowed(request.url, verdict)

    def _capped(self, origin: Origin, seconds: float) -> float:
        """The pace that an origin asks for, as far as it is granted."""
        most = self._settings.max_delay
        if seconds > most and origin.key not in self._slowest:
            self._slowest.add(origin.key)
            logger.info(
                "%(origin)s asks for %(seconds)g s between two requests: REP_MAX_DELAY makes it "
                "%(most)g s.",
                {"origin": origin.key, "seconds": seconds, "most": most},
                extra={"spider": self._crawler.spider},
            )
        return min(seconds, most)


def _because(verdict: Verdict) -> str:
    if verdict.rule is None:
        return str(verdict.reason)
    field = "Allow" if verdict.rule.allow else "Disallow"
    return f"line {verdict.rule.line}, {field}: {verdict.rule.pattern}, for {verdict.agent}"
