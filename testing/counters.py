"""Counters and queues of a crawl that are not empty after its end."""

from __future__ import annotations

from math import inf
from typing import Any

from scrapy.crawler import Crawler

from scrapy_rep import RobotsTxtMiddleware


def left_in_frontier(frontier: Any) -> dict[str, int]:
    """What must be 0 after the end of a crawl, by its name."""
    return {
        "requests in progress": len(frontier.in_progress),
        "requests that wait in the downloader": len(frontier.waiters),
        "requests to hosts": sum(host.active for host in frontier.hosts),
        "alarms": sum(host.alarm_at < inf for host in frontier.hosts),
        "requests beyond CONCURRENT_REQUESTS": len(frontier.engine.extra),
    }


def left_over(crawler: Crawler) -> list[str]:
    """The counters and queues that are not empty after the end of a crawl, as messages."""
    middleware: Any = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    frontier, store = middleware.frontier, middleware.crawl.store
    fetcher = middleware.crawl.fetches.fetcher
    reservations, permits = frontier._reservations, fetcher.limit
    limit = crawler.settings.getint("CONCURRENT_REQUESTS")
    scrapy_engine: Any = crawler.engine
    downloader = scrapy_engine.downloader
    left = {
        **left_in_frontier(frontier),
        "active": len(downloader.active),
        "in slots": sum(len(slot.active) for slot in downloader.slots.values()),
        "added to CONCURRENT_REQUESTS": downloader.total_concurrency - limit,
        "fetches": len(fetcher.in_progress),
        "responses that wait": len(fetcher.awaited),
        "claims and saves": len(store._loads) + store._saves if store is not None else 0,
        "reserved hosts": len(reservations._hosts) if reservations is not None else 0,
        "permits": len(permits.in_progress) + len(permits._waiting),
    }
    return [f"{count} are left: {name}" for name, count in left.items() if count]
