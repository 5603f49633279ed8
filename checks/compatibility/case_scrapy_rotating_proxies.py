"""scrapy-rotating-proxies, with proxies on loopback."""

from __future__ import annotations

from typing import Any

from testing.web import Web

from .services import proxy
from .standard import PUBLIC, RULES, Standard

REQUIREMENTS = ("scrapy-rotating-proxies",)


def prepare(web: Web) -> dict[str, Any]:
    """The settings for six proxies."""
    return {
        "ROTATING_PROXY_LIST": [proxy(web, f"127.0.1.{number}").root for number in range(1, 7)],
        "DOWNLOADER_MIDDLEWARES": {
            "rotating_proxies.middlewares.RotatingProxyMiddleware": 610,
            "rotating_proxies.middlewares.BanDetectionMiddleware": 620,
        },
    }


STANDARD = Standard(prepare=prepare)


async def a_robots_txt_over_the_limit_does_not_make_proxies_dead(web: Web) -> None:
    site = web.site(RULES + "# nothing\n" * 200_000)
    outcome = await STANDARD.crawl(web, [*site.urls(*PUBLIC), site.url("/private/1")])
    assert site.page_paths == PUBLIC, f"received: {site.paths}"
    counted = {name: value for name, value in outcome.stats.items() if "proxies/" in name}
    assert "proxies/dead" not in counted, f"{counted}"
    exceptions = outcome.stats.get("downloader/exception_count", 0)
    assert exceptions == 1, f"{exceptions} exceptions, one of them of the disallowed page"


CHECKS = (*STANDARD.checks, a_robots_txt_over_the_limit_does_not_make_proxies_dead)
