"""Crawls of many origins with a random mix of all faults, in random order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from testing.soak import VARIANTS, Soak, SoakSpider, circumstances, logged

from .conftest import make_crawler, run_crawler

if TYPE_CHECKING:
    from pathlib import Path

    from testing.web import Web

ORIGINS = 25

NAMES = [
    pytest.param(name, marks=pytest.mark.each_loop if name == "everything" else ())
    for name in VARIANTS
]


@pytest.mark.parametrize("name", NAMES)
async def test_soak(name: str, web: Web, tmp_path: Path) -> None:
    """``python -m checks soak`` crawls thousands of origins."""
    soak = Soak(web, ORIGINS, seed=list(VARIANTS).index(name))
    with circumstances(VARIANTS[name], soak, tmp_path / "robots.db") as settings, logged() as log:
        settings |= {"DOWNLOAD_TIMEOUT": 8, "REP_TIMEOUT": 2}
        crawler = make_crawler(SoakSpider, settings)
        await run_crawler(crawler, urls=soak.urls)
    assert soak.problems(crawler, log) == []
    assert {"response", "disallowed"} < set(soak.summary(crawler))
