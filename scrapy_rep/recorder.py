"""What happened in a crawl: its stats, its log lines, its summary, and the events of its report.

Each part of a crawl tells the :class:`Recorder` what it does. REP_REPORT adds the
:class:`Events` of :mod:`scrapy_rep.reports.event_log`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from .clock import Clock
from .exceptions import PageNotIndexable, RobotsTxtDisallowed, forbidden_by
from .logs import plural, spider_logger
from .origin import Origin, State
from .protocol import access
from .protocol.access import AccessResult, FetchResult, Unreachable
from .protocol.pacing import describe
from .protocol.printable import printable
from .protocol.verdict import Reason, Verdict
from .settings import DONT_OBEY, IS_ROBOTSTXT_REQUEST, ROBOTSTXT, Settings
from .stores import Entry


class Events:
    """The events of a crawl. This class keeps none: a crawl without REP_REPORT uses it."""

    def sent(self, request: Request, delay: float, broken: Verdict | None = None) -> None:
        """Log a request that has reached its download slot, from which nothing removes it.

        ``broken``: what the robots.txt in memory says about an exception.
        """

    def ended(self, request: Request) -> None:
        """Note that a request has ended which its site may have received."""

    def disallowed(self, url: str, verdict: Verdict, *, was_sent: bool = False) -> None:
        """Log a request that is not sent, or a response that came from a disallowed URL."""

    def waited(self, origin: str, kind: str, seconds: float) -> None:
        """Log a wait of the requests to an origin, or that it holds them back for so long."""

    def fetched(self, origin: Origin, event: FetchResult | Entry, body: bytes | None) -> None:
        """Log the result of a fetch. ``body`` is the file as it was received, if it was."""

    def paced(self, origin: Origin, pace: str, delay: float) -> None:
        """Log the pace that a site asks for, and the delay of its host."""

    def page(self, url: str, directives: Any, usage: Mapping[str, bool]) -> None:
        """Log the directives and uses of a response."""

    def page_dropped(self, url: str, names: Sequence[str], *, is_usage: bool = False) -> None:
        """Log an item or a request that is dropped because of directives, or of refused uses."""


class Recorder:
    """Records what happens in one crawl."""

    def __init__(self, crawler: Crawler, settings: Settings, clock: Clock, events: Events) -> None:
        assert crawler.stats is not None
        self._logger = spider_logger(__name__, crawler.spider)
        self.extra = {"spider": crawler.spider}
        self._settings = settings
        self._clock = clock
        self.stats = crawler.stats
        self.events = events
        self.count = crawler.stats.inc_value
        """Adds 1, or another number, to a stat."""
        self.logged: set[str] = set()
        """What is logged once in a crawl, and was. The caller adds it."""
        self._examples: dict[Reason, str] = {}
        """The first request that was dropped for each reason."""
        self._waiting: dict[str, int] = {}
        """How many requests wait, by the reason. One that has gone has 0."""

    def add_seconds(self, stat: str, seconds: float) -> None:
        self.stats.set_value(stat, round(self.stats.get_value(stat, 0) + seconds, 3))

    # Requests.

    def dropped(
        self, request: Request, verdict: Verdict, response: Response | None = None
    ) -> RobotsTxtDisallowed:
        """Record that a request, or the response to it, is dropped. Returns the exception."""
        request.meta[ROBOTSTXT] = verdict
        url = response.url if response else request.url
        self.count("robotstxt/forbidden")
        self.count(f"robotstxt/forbidden/{verdict.reason}")
        if verdict.reason is Reason.LOCAL_RULE:
            self.count("robotstxt/local/disallowed")
        self._logger.debug(
            "Forbidden by %(source)s: %(request)s (%(verdict)s)",
            {"source": forbidden_by(verdict), "request": response or request, "verdict": verdict},
        )
        self.events.disallowed(url, verdict, was_sent=response is not None)
        if verdict.reason not in self._examples:
            self._examples[verdict.reason] = f"{printable(url)} ({verdict})"
        return RobotsTxtDisallowed(url, verdict)

    def exempted(self, request: Request) -> None:
        """Record a request that starts, if it is exempt, or if a local rule allows it."""
        verdict = request.meta.get(ROBOTSTXT)  # None if a subclass sets no verdict
        if request.meta.get(DONT_OBEY):
            if not request.meta.get(IS_ROBOTSTXT_REQUEST):
                self.count("robotstxt/exempt_count")
        elif verdict is not None and verdict.reason is Reason.LOCAL_RULE:
            self.count("robotstxt/local/allowed")
            self._logger.debug(
                "Allowed by a local rule: %(request)s (%(verdict)s)",
                {"request": request, "verdict": verdict},
            )

    def final_url(self, request: Request, verdict: Verdict) -> None:
        """Record the verdict on the URL of a response, which is not the URL of its request."""
        request.meta[ROBOTSTXT] = verdict
        self.count("robotstxt/final_url")
        if not verdict.allowed:
            self.count("robotstxt/final_url/disallowed")

    def final_url_kept(self, request: Request, response: Response, verdict: Verdict) -> None:
        """Record that the spider gets a response whose URL is disallowed."""
        self.events.disallowed(response.url, verdict, was_sent=True)
        if "final URL" not in self.logged:
            self.logged.add("final URL")
            self._logger.warning(
                "%(request)s was redirected to %(url)s, which robots.txt disallows (%(verdict)s). "
                "The spider gets this page, with the verdict in response.meta['robotstxt']. The "
                "stat robotstxt/final_url/disallowed counts such pages. Set REP_CHECK_FINAL_URL = "
                "'drop' to drop them.",
                {"request": request, "url": response.url, "verdict": verdict},
            )

    def media_dropped(self, response: Response, statement: str) -> PageNotIndexable:
        """Record that a header drops a file of a media pipeline. Returns the exception."""
        self.count("robotstxt/noindex/media_dropped")
        self.events.page_dropped(response.url, ["noindex"])
        return PageNotIndexable(f"{printable(response.url)} says noindex ({printable(statement)})")

    def waited(self, origin: str | None, kind: str, seconds: float) -> None:
        """Record how long the requests of a queue have waited."""
        if origin is not None:
            self.events.waited(origin, kind, seconds)
        self.count(f"robotstxt/wait_count/{kind}")
        self.add_seconds(f"robotstxt/wait_seconds/{kind}", seconds)

    def waiting(self, requests: Mapping[str, int], sites: int = 0, reasons: str = "") -> None:
        """Record how many requests wait now, by the reason, and what for in words."""
        self._waiting = dict.fromkeys(self._waiting, 0) | dict(requests)
        for reason, number in self._waiting.items():
            self.stats.set_value(f"robotstxt/waiting/{reason}", number)
        if requests:
            waiting = plural(sum(requests.values()), "request")
            self._logger.info(
                "Waiting: %(requests)s of %(sites)s: %(reasons)s",
                {"requests": waiting, "sites": plural(sites, "site"), "reasons": reasons},
            )

    def held(
        self, host: str, origin: str | None, seconds: float, added: float, first: int | None
    ) -> None:
        """Record that a host has asked for fewer requests, and is held for so many seconds.

        ``added`` is how much longer that is than it was held before, and ``first`` the status if
        the last answer did not ask for that.
        """
        if first is not None:
            self._logger.info(
                "%(host)s asks for fewer requests: it answered with status %(status)d. No request "
                "to it starts for %(seconds)s s (REP_BACKOFF), and then one at a time until it "
                "gives another answer.",
                {"host": host, "status": first, "seconds": f"{seconds:.3g}"},
            )
        self.count("robotstxt/backoff_count")
        self.add_seconds("robotstxt/backoff_seconds", added)
        if origin is not None:
            self.events.waited(origin, "backoff", added)

    def held_long(self, host: str, seconds: float, left: int) -> None:
        """Record that each answer of an hour asked for fewer requests, and how many are left."""
        if left and host not in self.logged:
            self.logged.add(host)
            rest = timedelta(seconds=round(left * seconds))
            self._logger.warning(
                "%(host)s has asked for fewer requests for an hour. %(left)s left: at one in "
                "%(seconds)s s, that takes %(rest)s (hours:minutes:seconds). To change that, lower "
                "REP_MAX_BACKOFF, set REP_BACKOFF = False, or drop the host.",
                {
                    "host": host,
                    "left": plural(left, "request"),
                    "seconds": f"{seconds:g}",
                    "rest": rest,
                },
            )

    # Files.

    def fetched(self, origin: Origin, result: FetchResult | Entry, body: bytes | None) -> None:
        """Record the result of a fetch. ``body`` is the file as it was received, if it was.

        There is one line for each site without a robots.txt, and one for each outage.
        """
        is_outage = isinstance(result, Unreachable) and origin.state is State.UNREACHABLE
        if is_outage and origin.failures < 2:
            failure, effect = (origin.failure or "").rstrip("."), self._effect_of_outage(origin)
            self._logger.warning(
                "The robots.txt of %(origin)s is unreachable: %(failure)s. %(effect)s.",
                {"origin": origin.key, "failure": failure, "effect": effect},
            )
        elif origin.state is State.UNAVAILABLE:
            has_answer = origin.status is not None
            why = origin.unavailable.value if has_answer else access.TOO_MANY_REDIRECTS
            if why != origin.notes.logged_unavailable:
                origin.notes.logged_unavailable = why
                self._log_unavailable(origin)
        self.events.fetched(origin, result, body)

    def _effect_of_outage(self, origin: Origin) -> str:
        settings, failure, status = self._settings, origin.failure or "", origin.status or 0
        if origin.content is not None:
            return "Its last good copy is used"
        if settings.on_unreachable == "allow":
            return "All requests to the site are allowed, because REP_ON_UNREACHABLE is 'allow'"
        if settings.on_unreachable == "wait":
            seconds = origin.refresh_at - self._clock.steady()
            return (
                f"Requests to the site wait up to {settings.max_wait:g} s (REP_MAX_WAIT), then "
                f"they are dropped. The next attempt is in {seconds:.0f} s"
            )
        remedy = "REP_ON_UNREACHABLE = 'allow'"
        if failure == access.TOO_MANY_REDIRECTS:
            remedy = f"REP_ON_TOO_MANY_REDIRECTS = 'unavailable' or {remedy}"
        elif 200 <= status <= 299 and failure.endswith(access.NO_ROBOTS_TXT):
            remedy = f"REP_NOT_ROBOTS = 'unavailable' or {remedy}"
        elif 500 <= status <= 599:
            remedy = f"REP_5XX_AS_404_HOSTS = [{origin.host!r}] or {remedy}"
        return (
            "All requests to the site are disallowed (RFC 9309 §2.3.1.4) until a fetch succeeds, "
            f"for {settings.unreachable_days:g} days at most (REP_UNREACHABLE_DAYS): then they are "
            f"allowed. To allow them now, set {remedy}"
        )

    def _log_unavailable(self, origin: Origin) -> None:
        """Log that a site answers with something else than a robots.txt or a 404."""
        values = {"origin": origin.key, "status": origin.status, "url": origin.url}
        if origin.status is None:
            self._logger.warning(
                "The robots.txt of %(origin)s redirects more than five times, or in a loop (last "
                "%(url)s). All requests to the site are allowed (RFC 9309 §2.3.1.2). To change "
                "that, set REP_ON_TOO_MANY_REDIRECTS = 'unreachable'.",
                values,
            )
        elif origin.unavailable is AccessResult.NOT_ROBOTS_TXT:
            self._logger.warning(
                "The robots.txt of %(origin)s is not a robots.txt, but a page without rules, such "
                "as that of a login or an error (status %(status)s, %(url)s). All requests to the "
                "site are allowed. To change that, set REP_NOT_ROBOTS = 'unreachable'.",
                values,
            )
        elif origin.unavailable is AccessResult.CHALLENGE:
            self._logger.warning(
                "%(origin)s has a challenge for browsers instead of its robots.txt (status "
                "%(status)s, %(url)s). All requests to the site are allowed, but probably get the "
                "same challenge. Ask the owner of the site to let your crawler read robots.txt.",
                values,
            )
        elif origin.unavailable is AccessResult.REFUSED:
            self._logger.info(
                "%(origin)s refuses access to its robots.txt (status %(status)s, %(url)s). All "
                "requests to the site are allowed (RFC 9309 §2.3.1.3). To change that, set "
                "REP_DISALLOW_STATUSES.",
                values,
            )

    def paced(
        self, origin: Origin, agents: tuple[str, ...], delay: float, host_delay: float
    ) -> None:
        """Record the pace that a robots.txt sets for a crawler, and the delay that applies.

        ``delay`` is what it means, in seconds, and ``host_delay`` the longest one of its host.
        """
        content, obeys = origin.content, self._settings.obey_rate_limits
        text = describe(content, agents) if content else ""
        if content and text and obeys and text != origin.notes.logged_pace:
            origin.notes.logged_pace = text
            effects = [f"Requests to its host are at least {delay:g} s apart now"] if delay else []
            if content.visit_time(agents):
                effects.append(
                    "Outside its Visit-time, requests wait up to "
                    f"{self._settings.max_wait:g} s (REP_MAX_WAIT), then they are dropped"
                )
            effect = ". ".join(effects) or "This adds no delay at this time of day"
            self._logger.info(
                "The robots.txt of %(origin)s sets %(records)s. %(effect)s.",
                {"origin": origin.key, "records": text, "effect": effect},
            )
        self.events.paced(origin, text, host_delay)

    def unclear_agent(self, problem: str) -> None:
        """Record that the product token of a crawler is unclear."""
        self.count("robotstxt/ambiguous_user_agent_count")
        if "unclear agent" not in self.logged:
            self.logged.add("unclear agent")
            self._logger.warning(
                "The product token for robots.txt is unclear: %(problem)s. Set "
                "ROBOTSTXT_USER_AGENT to the product token of your crawler. The stat "
                "robotstxt/ambiguous_user_agent_count counts other user agents like this one.",
                {"problem": problem},
            )

    # The end of a crawl.

    def end(self) -> None:
        """Log what was dropped, what was exempt, and the requests of callers that did not start."""
        value = self.stats.get_value
        self.waiting({})
        if self._examples:
            self._log_drops()
        exempt = {
            "with dont_obey_robotstxt": value("robotstxt/exempt_count", 0),
            "by exceptions in REP_LOCAL_RULES": value("robotstxt/local/allowed", 0),
        }
        texts = [f"{plural(number, 'request')} {why}" for why, number in exempt.items() if number]
        if texts:
            self._logger.info(
                "Exempt from robots.txt: %(exempt)s. A report (REP_REPORT) lists them.",
                {"exempt": ", ".join(texts)},
            )
        abandoned = value("robotstxt/abandoned_count", 0)
        if abandoned:
            self._logger.warning(
                "%(count)s of media pipelines or other callers of engine.download_async "
                "could not start within %(seconds)s s after the crawl was stopped (REP_MAX_WAIT). "
                "The callers got an exception. The stat robotstxt/abandoned_count counts them.",
                {"count": plural(abandoned, "request"), "seconds": f"{self._settings.max_wait:g}"},
            )

    def _log_drops(self) -> None:
        value = self.stats.get_value
        sent = value("downloader/request_count", 0) - value("robotstxt/request_count", 0)
        sent -= value("robotstxt/tdmrep/request_count", 0)
        if self._settings.check_final_url == "drop":
            sent -= value("robotstxt/final_url/disallowed", 0)
        dropped, examples = value("robotstxt/forbidden", 0), self._examples
        numbers = Counter({each: value(f"robotstxt/forbidden/{each}", 0) for each in examples})
        reasons = numbers.most_common()
        self._logger.info(
            "Dropped %(dropped)d of %(all)s (%(reasons)s). Such as %(examples)s. LOG_LEVEL "
            "= 'DEBUG' logs each of them, and scrapy-rep check URL explains one.",
            {
                "dropped": dropped,
                "all": plural(dropped + max(sent, 0), "request"),
                "reasons": ", ".join(f"{reason}: {number:,}" for reason, number in reasons),
                "examples": "; ".join(examples[reason] for reason, _ in reasons),
            },
        )
