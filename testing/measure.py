"""The peak memory of a process, and crawls in processes of their own."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.settings import Settings

from scrapy_rep import Addon


def peak() -> int:
    """Return the peak memory of this process in KiB."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # ru_maxrss would include the peak of the process that started this one.
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def forget_peak() -> None:
    """Make the present size of this process its peak, where the system can do that."""
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def process_on(loop: str, settings: dict[str, Any]) -> CrawlerProcess | AsyncCrawlerProcess:
    """A crawler process with the add-on.

    ``loop`` is ``asyncio``, ``default`` (the default reactor of Twisted) or ``none`` (no reactor).
    """
    values: dict[str, Any] = {
        "ADDONS": {Addon: 500},
        "REP_RETRY_TIMES": 0,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        **settings,
    }
    if loop == "none":
        values["TWISTED_REACTOR_ENABLED"] = False
    if loop == "default":
        values["TWISTED_REACTOR"] = None
    merged = Settings()
    merged.setdict(values, priority="project")
    return (CrawlerProcess if loop == "default" else AsyncCrawlerProcess)(merged)
