"""scrapy-zyte-smartproxy, with a proxy on loopback in the place of Zyte's."""

from __future__ import annotations

from typing import Any

from testing.web import Web

from .services import proxy
from .standard import Standard

REQUIREMENTS = ("scrapy-zyte-smartproxy",)


def prepare(web: Web) -> dict[str, Any]:
    """The settings of its documentation."""
    headers = {"X-Crawlera-Version": "1", "Zyte-Request-Id": "1"}
    return {
        "ZYTE_SMARTPROXY_ENABLED": True,
        "ZYTE_SMARTPROXY_APIKEY": "none",
        "ZYTE_SMARTPROXY_URL": proxy(web, "127.0.1.1", headers).root,
        "DOWNLOADER_MIDDLEWARES": {"scrapy_zyte_smartproxy.ZyteSmartProxyMiddleware": 610},
    }


CHECKS = Standard(prepare=prepare).checks
