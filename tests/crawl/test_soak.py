"""Crawls of many origins with a random mix of all faults, judged by the laws of the soak."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from scrapy.utils.reactor import is_reactor_installed

from checks._soak import VARIANTS, Mix, origins, poison, requests_to
from checks._soak_laws import Crawl, broken_laws, late_origins
from checks._soak_server import Server
from checks._soak_worker import Notes, SoakWorker, observed
from testing.counters import left_over
from testing.web import Web

from .conftest import make_crawler, run_crawler

ORIGINS = 25


@pytest.mark.rule("Random crawls and faults")
@pytest.mark.parametrize(
    "name",
    [
        # It has small limits, by priority, and a poisoned store.
        pytest.param("everything", marks=pytest.mark.each_loop),
        "errors",
    ],
)
async def test_soak(name: str, web: Web, tmp_path: Path) -> None:
    """``python -m checks soak`` crawls thousands of origins."""
    variant, seed, notes, server = VARIANTS[name], list(VARIANTS).index(name), Notes(), Server()
    mix = Mix() if name == "everything" else Mix(hostile=ORIGINS)  # such rules take long
    made = origins(ORIGINS, seed, web.listen(server.answer_all, "0.0.0.0"), mix)
    server.origins = {origin.host: origin for origin in made}
    requests = requests_to(made, seed)
    asked = [(number, made[at].root + path) for number, (at, path) in enumerate(requests)]
    settings: dict[str, Any] = {"CONCURRENT_REQUESTS": 200, "DOWNLOAD_TIMEOUT": 8, "REP_TIMEOUT": 2}
    if variant.has_store:
        settings["REP_STORE"] = f"sqlite:///{tmp_path}/robots.db"
    if variant.poisoned_store:
        roots = [origin.root for origin in made]
        poison(tmp_path / "robots.db", roots, random.Random(seed))
    with observed(notes.note, store_retry_interval=0), variant.applied():
        crawler = make_crawler(SoakWorker, {**settings, **variant.settings})
        await run_crawler(crawler, asked=asked, say=notes.note)
    notes.note(*(f"P {problem}" for problem in left_over(crawler)))
    crawl = Crawl(
        made,
        requests,
        notes.ends,
        server.records.as_json(),
        notes.unreachable,
        notes.failures,
        problems=notes.problems,
        # Without a reactor, Scrapy's client repeats a request whose connection ends.
        is_cached=not variant.evicts and is_reactor_installed(),
    )
    laws, _ = broken_laws(crawl)
    assert {law: broken for law, broken in laws.items() if broken} == {}
    # A busy machine answers too late, and an injected error ends a fetch.
    excuses = ("longer than", "unforeseen")
    assert [late for late in late_origins(crawl) if not any(each in late for each in excuses)] == []
    assert [error for error in notes.errors if "Timeout" not in error] == []
    assert {"r", "d"} < set(notes.ends.values())
    assert server.records.pages >= list(notes.ends.values()).count("r") > 0
