"""Workers of one crawl: processes that share a store.

A worker is ``python -m tests.stores.worker STORE URL … NAME=VALUE …``. The names are those of
settings, WRITE_INTERVAL of the event log, and SPIDER, which is a Visitor otherwise.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from scrapy.crawler import CrawlerProcess
from scrapy.utils.misc import load_object

from tests.crawl.conftest import SETTINGS, Visitor

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT = 60
"""Seconds after which a process hangs. Each takes a few on a machine that is not busy."""


@contextmanager
def workers(*arguments: Sequence[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """Start a process for each list of arguments, and kill those that still run at the end."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", __name__, *each],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for each in arguments
    ]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.communicate()


def main(store: str, *arguments: str) -> None:
    urls = [each for each in arguments if "://" in each]
    settings = {**SETTINGS, "REP_STORE": store, "LOG_LEVEL": "WARNING", "CONCURRENT_REQUESTS": 8}
    for each in arguments:
        if "://" not in each:
            name, _, value = each.partition("=")
            settings[name] = value
    if "WRITE_INTERVAL" in settings:
        interval = float(settings.pop("WRITE_INTERVAL"))
        vars(import_module("scrapy_rep.reports.event_log"))["WRITE_INTERVAL"] = interval
    spider = load_object(settings.pop("SPIDER", Visitor))
    process = CrawlerProcess(settings)
    process.crawl(spider, requests=urls)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
