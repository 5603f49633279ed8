"""Many origins, each with a fault of its own or none, and what must be true of a crawl of them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from scrapy import Request, Spider

from scrapy_rep import RobotsTxtDisallowed, RobotsTxtMiddleware

from .faults import (
    ALLOWED,
    DISALLOWED,
    HEAD,
    NAMES,
    PATHS,
    RULES,
    fault,
    length,
    meaning_of,
    raw,
    stall,
)
from .web import Page, redirect, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response
    from twisted.python.failure import Failure

    from .web import Misbehaviour, Site, Web

SETTINGS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 200,
    "DOWNLOAD_TIMEOUT": 3,
    "REP_TIMEOUT": 3,
}

GOOD = "has rules"
"""A robots.txt without a fault, which every third origin has."""


class SoakSpider(Spider):
    """Asks for everything at once and notes how often and in what each request ended."""

    name = "soak"

    def __init__(self, urls: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.urls = urls
        self.ends: defaultdict[str, list[str]] = defaultdict(list)

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield Request(
                url,
                callback=self.parse,
                errback=self.failed,
                cb_kwargs={"asked": url},
                dont_filter=True,
            )

    def parse(self, _: Response, asked: str) -> None:
        self.ends[asked].append("response")

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        disallowed = failure.check(RobotsTxtDisallowed)
        end = "disallowed" if disallowed else f"error: {type(failure.value).__name__}"
        self.ends[request.cb_kwargs["asked"]].append(end)


class Soak:
    """So many origins on a web, the URLs to ask for, and whether a crawl of them was right."""

    def __init__(self, web: Web, origins: int, seed: int) -> None:
        chance = random.Random(seed)
        self._sites: list[tuple[Site, str]] = []
        for number in range(origins):
            name = GOOD if number % 3 == 0 else chance.choice(NAMES)
            robots = text(RULES) if name == GOOD else fault(name)
            host = f"127.{1 + number // 60_000}.{number // 250 % 240}.{1 + number % 250}"
            self._sites.append((web.site(robots, host=host), name))
        for site, _ in self._sites:
            other, _ = chance.choice(self._sites)
            site.pages.update(_pages(chance, other))
        self.urls = [
            url for site, _ in self._sites for url in site.urls(*PATHS, "/faulty", "/moved")
        ]
        chance.shuffle(self.urls)

    def problems(self, spider: SoakSpider) -> list[str]:
        """What was wrong with a crawl; nothing, that is to say."""
        problems = [
            f"{url} ended in {spider.ends[url]}" for url in self.urls if len(spider.ends[url]) != 1
        ]
        late = self.late(spider)
        for site, name in self._sites:
            meaning = DISALLOWED if site.root in late else _meaning_of(name)
            pages = set(site.page_paths) & {*PATHS, "/faulty", "/moved"}
            if meaning == DISALLOWED and pages:
                problems.append(f"{site.root}, which {name}, received {pages}")
            if meaning != ALLOWED and "/private" in pages:
                problems.append(f"{site.root}, which {name}, received a disallowed page")
            if meaning in (ALLOWED, "rules") and "/public" not in pages:
                problems.append(f"{site.root}, which {name}, did not receive an allowed page")
        return problems

    def late(self, spider: SoakSpider) -> set[str]:
        """The origins that a busy machine kept from answering within REP_TIMEOUT."""
        middleware = spider.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        assert middleware is not None
        return {
            site.root
            for site, name in self._sites
            if _meaning_of(name) != DISALLOWED
            and "longer than" in (middleware.origins[site.root].failure or "")
        }

    @staticmethod
    def summary(spider: SoakSpider) -> Counter[str]:
        """How many requests ended in what."""
        return Counter(end for ends in spider.ends.values() for end in ends)


def _meaning_of(name: str) -> str:
    return "rules" if name == GOOD else meaning_of(name)


def _pages(chance: random.Random, other: Site) -> dict[str, Page | Misbehaviour]:
    faulty: list[Page | Misbehaviour] = [
        Page(status=500),
        raw(b""),
        raw(HEAD, reset=True),
        raw(HEAD + length(b"four") + b"2"),
        stall(),
        redirect("/private"),
    ]
    return {
        "/faulty": chance.choice(faulty),
        "/moved": redirect(other.url(chance.choice(PATHS))),
    }
