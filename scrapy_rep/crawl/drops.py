"""Requests and responses that are dropped: counted, logged and recorded."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from scrapy import Request

from ..exceptions import RobotsTxtDisallowed
from ..protocol.verdict import Reason

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from ..protocol.verdict import Verdict
    from .recorder import Recorder

logger = logging.getLogger(__name__)


def record_drop(
    crawler: Crawler,
    recorder: Recorder | None,
    dropped: Request | Response,
    url: str,
    verdict: Verdict,
) -> RobotsTxtDisallowed:
    """Record that a request or a response is dropped. Returns the exception.

    ``url`` is the disallowed URL.
    """
    stats = crawler.stats
    assert stats is not None
    stats.inc_value("robotstxt/forbidden")
    stats.inc_value(f"robotstxt/forbidden/{verdict.reason}")
    if verdict.reason is Reason.LOCAL_RULE:
        stats.inc_value("robotstxt/local/disallowed")
    logger.debug(
        "Forbidden by robots.txt: %(request)s (%(verdict)s)",
        {"request": dropped, "verdict": verdict},
        extra={"spider": crawler.spider},
    )
    if recorder is not None:
        if isinstance(dropped, Request):
            recorder.dropped(url, verdict)
        else:
            recorder.final_url_disallowed(url, verdict, dropped=True)
    return RobotsTxtDisallowed(url, verdict)
