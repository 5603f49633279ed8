"""A crawl with a report or an archive, in a process of its own.

``python -m tests.crawl.recorded_crawl JSON``: an object with the ``settings``, the ``roots`` of the
sites and the number of their ``pages``. Writes which modules of reports were imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from importlib import import_module
from subprocess import Popen
from typing import Any

from testing.measure import process_on
from testing.web import Site
from tests.test_workers import workers

from .conftest import Visitor


def recorded_crawl(
    sites: Iterable[Site], pages: int = 1, **settings: Any
) -> AbstractContextManager[list[Popen[str]]]:
    """Start the process of a crawl, which ends with the context."""
    values = {"settings": settings, "roots": [site.root for site in sites], "pages": pages}
    return workers([json.dumps(values)], module=__name__)


def main(settings: dict[str, Any], roots: list[str], pages: int) -> None:
    """Run the crawl. The event log is written several times a second."""
    if "REP_REPORT" in settings:
        import_module("scrapy_rep.reports.event_log").WRITE_INTERVAL = 0.1  # type: ignore[attr-defined]
    process = process_on("asyncio", {"LOG_LEVEL": "INFO", **settings})
    process.crawl(Visitor, requests=[f"{root}/{page}" for page in range(pages) for root in roots])
    process.start()
    names = ("scrapy_rep.crawl.middleware", "scrapy_rep.reports", "warcio")
    sys.stdout.write(" ".join(name for name in sorted(sys.modules) if name.startswith(names)))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
