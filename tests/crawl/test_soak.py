"""Everything at once: many origins with a random mix of all faults, in random order."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .conftest import make_crawler, run_crawler
from .soak import SETTINGS, Soak, SoakSpider

if TYPE_CHECKING:
    import pytest

    from .web import Web


async def test_soak(web: Web, caplog: pytest.LogCaptureFixture) -> None:
    """The same with thousands of origins is ``python -m benchmarks.soak``."""
    caplog.set_level(logging.WARNING)
    soak = Soak(web, 150, seed=9309)
    settings = {**SETTINGS, "DOWNLOAD_TIMEOUT": 1, "REP_TIMEOUT": 1, "LOG_LEVEL": "WARNING"}
    crawler = make_crawler(SoakSpider, settings)
    await run_crawler(crawler, urls=soak.urls)
    spider = crawler.spider
    assert isinstance(spider, SoakSpider)
    assert soak.problems(spider) == []
    assert len(soak.late(spider)) < 15
    assert not [record.getMessage() for record in caplog.records if record.levelno > 30]
    assert {"response", "disallowed"} < set(soak.summary(spider))
