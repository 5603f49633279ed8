"""scrapy-splash, with a service on loopback in the place of Splash.

It imports names that Scrapy 2.16 has no more. Its default slot policy calls a method of Scrapy's
downloader that Scrapy 2.14 has no more, and its spider middleware needs spiders without ``start``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .services import splash
from .standard import Standard

if TYPE_CHECKING:
    from scrapy import Request

    from testing.web import Web

REQUIREMENTS = ("scrapy-splash", "scrapy<2.16")


class RenderEverything:
    """Has every request rendered, those for robots.txt included."""

    def process_request(self, request: Request) -> None:
        if "_splash_processed" not in request.meta:
            request.meta["splash"] = {"endpoint": "render.html", "args": {"wait": 0}}


def prepare(web: Web) -> dict[str, Any]:
    """The settings of its documentation, but for the slot policy and the spider middleware."""
    return {
        "SPLASH_URL": splash(web).root,
        "SPLASH_SLOT_POLICY": "single_slot",
        "REQUEST_FINGERPRINTER_CLASS": "scrapy_splash.SplashRequestFingerprinter",
        "DOWNLOADER_MIDDLEWARES": {
            RenderEverything: 90,
            "scrapy_splash.SplashCookiesMiddleware": 723,
            "scrapy_splash.SplashMiddleware": 725,
            "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": 810,
        },
    }


CHECKS = Standard(prepare=prepare, rendering_agent="Splash").checks
