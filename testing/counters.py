"""What a crawl has left behind: nothing, if every counter is back where it began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_rep import RobotsTxtMiddleware

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


def left_over(crawler: Crawler) -> list[str]:
    """What is still counted, waits or is under way after the end of a crawl."""
    middleware: Any = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    admission, engine = middleware._admission, middleware._engine
    scrapy_engine: Any = crawler.engine
    downloader = scrapy_engine.downloader
    left = {
        "parked": admission.parked,
        "waiting": len(admission._waiting),
        "under way": len(admission._under_way),
        "lines": sum(len(host.lines) for host in admission.hosts.values()),
        "excluded": len(engine._excluded),
        "counted": len(engine._counted),
        "active": len(downloader.active),
        "in slots": sum(len(slot.active) for slot in downloader.slots.values()),
        "fetches": len(middleware._policies._fetches),
        "places": len(middleware._policies._fetch_limit._under_way),
    }
    return [f"{count} are left: {name}" for name, count in left.items() if count]
