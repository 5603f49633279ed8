"""Logs what the robots.txt of a site says about the pace of a crawl, and what the crawl applies."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ..protocol.pacing import describe

if TYPE_CHECKING:
    from scrapy import Spider

    from ..origin import Origin
    from ..protocol.pacing import Pacing
    from ..settings import Settings

logger = logging.getLogger(__name__)


def log_pace(
    origin: Origin,
    pacing: Pacing,
    tokens: tuple[str, ...],
    *,
    settings: Settings,
    now: float,
    spider: Spider | None,
) -> None:
    """Log the pace of an origin once, and again if it changes.

    ``pacing`` is the pace for a crawler with these product tokens. ``now`` is in seconds.
    """
    if origin.robots is None or origin.is_pace_reported:
        return
    records = describe(origin.robots, tokens)
    is_known = origin.reported_pace == records
    origin.reported_pace, origin.is_pace_reported = records, True
    if is_known:
        return
    logger.info(
        "The robots.txt of %(origin)s sets %(records)s. Applied: %(applied)s.",
        {
            "origin": origin.key,
            "records": records,
            "applied": "; ".join(_applied(pacing, settings, now)),
        },
        extra={"spider": spider},
    )


def _applied(pacing: Pacing, settings: Settings, now: float) -> list[str]:
    applied = []
    seconds, max_delay = pacing.seconds_between(now), settings.max_delay
    if seconds > max_delay:
        applied.append(f"{max_delay:g} s between two requests, the maximum in REP_MAX_DELAY")
    elif pacing.delay or pacing.changes:
        at_this_hour = " at this hour" if len(pacing.changes) > 1 else ""
        applied.append(f"{seconds:g} s between two requests{at_this_hour}")
    if pacing.hours is not None:
        applied.append(
            f"requests wait up to {settings.max_wait:g} s (REP_MAX_WAIT) for the Visit-time, or "
            "are dropped"
        )
    return applied
