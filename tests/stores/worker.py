"""A worker of a crawl: ``python -m tests.stores.worker STORE URL … NAME=VALUE …``.

The names are those of settings, and CLAIM_SECONDS.
"""

from __future__ import annotations

import sys

from scrapy.crawler import CrawlerProcess

from scrapy_rep.crawl import policy_store
from scrapy_rep.stores.claims import WAIT_MARGIN
from tests.crawl.conftest import SETTINGS, Visitor


def main(store: str, *arguments: str) -> None:
    urls = [each for each in arguments if "://" in each]
    settings = {**SETTINGS, "REP_STORE": store, "LOG_LEVEL": "WARNING", "CONCURRENT_REQUESTS": 8}
    for each in arguments:
        if "://" not in each:
            name, _, value = each.partition("=")
            settings[name] = value
    if "CLAIM_SECONDS" in settings:
        seconds = float(settings.pop("CLAIM_SECONDS"))
        policy_store.longest_fetch = lambda settings: seconds - WAIT_MARGIN  # type: ignore[attr-defined]
    process = CrawlerProcess(settings)
    process.crawl(Visitor, requests=urls)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
