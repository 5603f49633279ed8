"""Scrapy's JOBDIR: an interrupted crawl continues."""

from __future__ import annotations

import asyncio
import signal
from tempfile import mkdtemp

from testing.web import Page, Web

from .follower import Crawl, links
from .standard import RULES, Standard

REQUIREMENTS = ()

MANY = [f"/{number}" for number in range(60)]


async def after_three_interruptions_every_page_was_asked_for_once(web: Web) -> None:
    quick = web.site(RULES)
    paced = web.site(f"{RULES}Crawl-delay: 0.1\n", host="127.0.0.2")
    private = [f"/private{path}" for path in MANY]
    for site in (quick, paced):
        site.pages["/"] = Page(links(*MANY, *private))
        site.pages.update({path: Page(links(f"{path}/more"), delay=0.1) for path in MANY})
    settings = {"JOBDIR": mkdtemp(), "CONCURRENT_REQUESTS": 4}
    urls = [quick.url(), paced.url()]
    scraped: list[str] = []
    for number in (20, 50, 100):
        crawl = await Crawl.start(urls, settings)
        while len(quick.received) + len(paced.received) < number:
            assert crawl.process.returncode is None, "the crawl was over before its interruption"
            await asyncio.sleep(0.05)
        crawl.process.send_signal(signal.SIGINT)
        outcome = await crawl.end()
        assert outcome["stats"]["finish_reason"] == "shutdown", f"{outcome['stats']}"
        scraped += outcome["scraped"]
    last = await (await Crawl.start(urls, settings)).end()
    scraped += last["scraped"]
    wanted = sorted(["/", *MANY, *(f"{path}/more" for path in MANY)])
    for site in (quick, paced):
        assert site.page_paths == wanted, f"received: {site.page_paths}"
        assert site.robots_fetches == 1, f"{site.robots_fetches} fetches of robots.txt"
    assert sorted(scraped) == sorted([*quick.urls(*wanted), *paced.urls(*wanted)])


CHECKS = (
    *Standard(prepare=lambda _: {"JOBDIR": mkdtemp()}).checks,
    after_three_interruptions_every_page_was_asked_for_once,
)
