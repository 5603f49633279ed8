"""One line at the end of a crawl: how many requests were dropped, and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..logs import get_logger
from ..protocol.paths import origin_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.statscollectors import StatsCollector

    from ..protocol.verdict import Reason, Verdict

logger = get_logger(__name__)

MAX_KEPT = 10_000
"""How many sites, and how many verdicts, are kept. A crawl may have any number of them."""


class DropSummary:
    """The requests that one crawl has dropped."""

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats
        self._reasons: Counter[Reason] = Counter()
        self._verdicts: Counter[tuple[Reason, str, str]] = Counter()
        """How often each verdict was given on a site."""
        self._sites: set[str] = set()
        self._sent = 0
        """How many requests were dropped when their response had arrived."""

    def add(self, url: str, verdict: Verdict, *, was_sent: bool) -> None:
        """Count a request."""
        site = origin_of(url) or url[:100]
        self._sent += was_sent
        self._reasons[verdict.reason] += 1
        if len(self._sites) < MAX_KEPT:
            self._sites.add(site)
        if len(self._verdicts) < MAX_KEPT:
            self._verdicts[verdict.reason, site, str(verdict)] += 1

    def log(self, spider: Spider | None) -> None:
        """Log the line, if a request was dropped."""
        if not self._reasons:
            return
        ((reason, times),) = self._reasons.most_common(1)
        verdicts = {key: count for key, count in self._verdicts.items() if key[0] is reason}
        example = max(verdicts, key=verdicts.__getitem__, default=(reason, "…", "…"))
        dropped = self._reasons.total()
        count = self._stats.get_value
        files = count("robotstxt/request_count", 0) + count("robotstxt/tdmrep/request_count", 0)
        sent = max(count("downloader/request_count", 0) - files - self._sent, 0)
        logger.info(
            "Dropped %(dropped)d of %(all)d requests, on %(sites)s. Most by %(reason)s "
            "(%(times)d), such as on %(site)s: %(verdict)s. Exempt from robots.txt: %(exempt)d "
            "with dont_obey_robotstxt, %(excepted)d by exceptions in REP_LOCAL_RULES.",
            {
                "dropped": dropped,
                "all": dropped + sent,
                "sites": _sites(len(self._sites)),
                "reason": reason,
                "times": times,
                "site": example[1],
                "verdict": example[2],
                "exempt": count("robotstxt/exempt_count", 0),
                "excepted": count("robotstxt/local/allowed", 0),
            },
            extra={"spider": spider},
        )


def _sites(number: int) -> str:
    at_least = "at least " if number == MAX_KEPT else ""
    return f"{at_least}{number} site{'s' * (number != 1)}"
