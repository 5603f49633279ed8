"""The checks that most cases share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from scrapy.utils.misc import load_object

from testing.faults import stall
from testing.web import Site, Web

from .crawling import CannotRunError, Check, Outcome, crawl

RULES = "User-agent: *\nDisallow: /private\n"
DELAY = 0.5
"""The Crawl-delay of a site, in seconds."""

PUBLIC = [f"/public/{number}" for number in range(8)]
PRIVATE = [f"/private/{number}" for number in range(8)]


def no_preparation(_: Web) -> dict[str, Any]:
    """Settings of a plugin that needs no server of its own."""
    return {}


def http_handler(path: str) -> Callable[[Web], dict[str, Any]]:
    """The settings for a download handler, where it can be imported."""

    def prepare(_: Web) -> dict[str, Any]:
        try:
            load_object(path)
        except (ImportError, NameError, AttributeError) as error:
            raise CannotRunError(f"there is no {path}: {error}") from None
        return {"DOWNLOAD_HANDLERS": {"http": path, "https": path}}

    return prepare


@dataclass(frozen=True)
class Standard:
    """The checks under the settings of a plugin, with the meta of its requests."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Web], Mapping[str, Any]] = no_preparation
    """Starts the services that the plugin needs, and returns the settings that name them."""
    ignored_paths: tuple[str, ...] = ("/favicon.ico",)
    """The paths that a browser requests by itself."""
    rendering_agent: str | None = None
    """The User-Agent of the service that renders pages for the plugin, if there is one."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """Return all checks."""
        checks = (
            self.disallowed_pages_are_never_received,
            self.allowed_pages_are_scraped_once,
            self.robots_txt_is_fetched_once_per_origin,
            self.crawl_delay_is_kept,
            self.a_live_site_is_crawled_beside_silent_ones,
        )
        return checks if self.rendering_agent is None else (*checks, self.only_pages_are_rendered)

    async def disallowed_pages_are_never_received(self, web: Web) -> None:
        sites, _ = await self._crawl_three_sites(web)
        private = [path for site in sites for path in site.paths if path in PRIVATE]
        assert not private, f"received: {private}"

    async def allowed_pages_are_scraped_once(self, web: Web) -> None:
        sites, outcome = await self._crawl_three_sites(web)
        for site in sites:
            assert self.page_paths(site) == sorted(PUBLIC), f"received: {self.page_paths(site)}"
        wanted = sorted(url for site in sites for url in site.urls(*PUBLIC))
        scraped = Counter({url: len(responses) for url, responses in outcome.responses.items()})
        assert sorted(scraped.elements()) == wanted, f"scraped: {scraped}, {outcome.failures}"

    async def robots_txt_is_fetched_once_per_origin(self, web: Web) -> None:
        sites, _ = await self._crawl_three_sites(web)
        fetches = [site.robots_fetches for site in sites]
        assert fetches == [1] * len(sites), f"fetched: {fetches}"

    async def crawl_delay_is_kept(self, web: Web) -> None:
        site = web.site(f"User-agent: *\nCrawl-delay: {DELAY}\n")
        await self.crawl(web, site.urls(*PUBLIC[:4]))
        assert self.page_paths(site) == PUBLIC[:4], f"received: {self.page_paths(site)}"
        moments = [each.at for each in site.received if each.path not in self.ignored_paths]
        gaps = [later - sooner for sooner, later in pairwise(moments)]
        # A millisecond less: the clocks of the two threads are read at different moments.
        assert min(gaps) > DELAY - 0.001, f"seconds between requests: {gaps}"

    async def a_live_site_is_crawled_beside_silent_ones(self, web: Web) -> None:
        silent = [web.site(stall(), host=f"127.0.0.{number}") for number in range(11, 31)]
        live = web.site(RULES)
        paths = sorted(f"/{number}" for number in range(30))
        urls = [*(site.url() for site in silent), *live.urls(*paths)]
        settings = {"CONCURRENT_REQUESTS": 8, "REP_TIMEOUT": 3}
        outcome = await self.crawl(web, urls, settings)
        received = self.page_paths(live)
        failures = {
            url: outcome.failures[url] for url in live.urls(*paths) if url in outcome.failures
        }
        assert received == paths, f"received {len(received)} of 30: {failures}"

    async def only_pages_are_rendered(self, web: Web) -> None:
        site = web.site(RULES)
        await self.crawl(web, site.urls(*PRIVATE, *PUBLIC))
        agent = self.rendering_agent
        rendered = {each.path for each in site.received if each.headers["user-agent"] == agent}
        assert rendered == set(PUBLIC), f"rendered: {rendered}"
        assert site.robots_fetches == 1, f"received: {site.paths}"

    async def crawl(
        self, web: Web, urls: list[str], settings: Mapping[str, Any] | None = None
    ) -> Outcome:
        """Crawl under the settings of the plugin and these."""
        merged = {**self.settings, **self.prepare(web), **(settings or {})}
        return await crawl(urls, merged, meta=self.meta)

    def page_paths(self, site: Site) -> list[str]:
        """Return the requested pages of a site, sorted."""
        return [path for path in site.page_paths if path not in self.ignored_paths]

    async def _crawl_three_sites(self, web: Web) -> tuple[list[Site], Outcome]:
        sites = [web.site(RULES, host=f"127.0.0.{number}") for number in (1, 2, 3)]
        urls = [url for site in sites for url in site.urls(*PRIVATE, *PUBLIC)]
        return sites, await self.crawl(web, urls)
