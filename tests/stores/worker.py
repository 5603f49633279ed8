"""A worker of a crawl: ``python -m tests.stores.worker STORE URL … NAME=VALUE …``.

The names are those of settings, CLAIM_SECONDS, and SPIDER, which is a Visitor otherwise.
"""

from __future__ import annotations

import sys

from scrapy.crawler import CrawlerProcess
from scrapy.utils.misc import load_object

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
    spider = load_object(settings.pop("SPIDER", Visitor))
    process = CrawlerProcess(settings)
    process.crawl(spider, requests=urls)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
