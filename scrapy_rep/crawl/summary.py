"""One line at the end of a crawl: how many requests were dropped, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..logs import get_logger
from ..protocol.paths import origin_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.statscollectors import StatsCollector

    from ..protocol.verdict import Verdict

logger = get_logger(__name__)

MAX_KEPT = 10_000
"""How many verdicts are kept, each with its site. A crawl may have any number of them."""


class DropSummary:
    """The requests that one crawl has dropped."""

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats
        self._drops: dict[tuple[str | None, Verdict], int] = {}
        """How often each verdict was given on a site."""
        self._sent = 0
        """How many requests were dropped when their response had arrived."""

    def add(self, url: str, verdict: Verdict, *, was_sent: bool) -> None:
        """Count a request."""
        self._sent += was_sent
        key, drops = (origin_of(url), verdict), self._drops
        if key in drops or len(drops) < MAX_KEPT:
            drops[key] = drops.get(key, 0) + 1

    def log(self, spider: Spider | None) -> None:
        """Log the line, if a request was dropped."""
        if not self._drops:
            return
        count = self._stats.get_value
        dropped = count("robotstxt/forbidden", 0)
        reasons = {verdict.reason for _, verdict in self._drops}
        times, reason = max((count(f"robotstxt/forbidden/{each}", 0), each) for each in reasons)
        site, verdict = max(
            (key for key in self._drops if key[1].reason is reason), key=self._drops.__getitem__
        )
        files = count("robotstxt/request_count", 0) + count("robotstxt/tdmrep/request_count", 0)
        sent = max(count("downloader/request_count", 0) - files - self._sent, 0)
        logger.info(
            "Dropped %(dropped)d of %(all)d requests, on %(sites)s. Most by %(reason)s "
            "(%(times)d), such as on %(site)s: %(verdict)s. Exempt from robots.txt: %(exempt)d "
            "with dont_obey_robotstxt, %(excepted)d by exceptions in REP_LOCAL_RULES.",
            {
                "dropped": dropped,
                "all": dropped + sent,
                "sites": self._sites(),
                "reason": reason,
                "times": times,
                "site": site or "URLs without a valid host",
                "verdict": verdict,
                "exempt": count("robotstxt/exempt_count", 0),
                "excepted": count("robotstxt/local/allowed", 0),
            },
            extra={"spider": spider},
        )

    def _sites(self) -> str:
        number = len({site for site, _ in self._drops})
        at_least = "at least " if len(self._drops) == MAX_KEPT else ""
        return f"{at_least}{number} site{'s' * (number != 1)}"
