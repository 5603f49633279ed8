"""A worker of a crawl: ``python -m tests.stores.worker STORE URL … NAME=VALUE …``.

The names are those of settings, and CLAIM_SECONDS.
"""

from __future__ import annotations

import sys

from scrapy.crawler import CrawlerProcess

from scrapy_rep.stores import claims
from tests.crawl.conftest import SETTINGS, Visitor


def main(store: str, *arguments: str) -> None:
    urls = [each for each in arguments if "://" in each]
    settings = {**SETTINGS, "REP_STORE": store, "LOG_LEVEL": "WARNING", "CONCURRENT_REQUESTS": 8}
    for each in arguments:
        if "://" not in each:
            name, _, value = each.partition("=")
            settings[name] = value
    if "CLAIM_SECONDS" in settings:
        claims.LEASE = float(settings.pop("CLAIM_SECONDS"))  # type: ignore[attr-defined]
    process = CrawlerProcess(settings)
    process.crawl(Visitor, requests=urls)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
