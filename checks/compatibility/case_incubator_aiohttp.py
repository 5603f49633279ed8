"""The aiohttp handler of scrapy-download-handlers-incubator."""

from __future__ import annotations

from .standard import Standard, http_handler

REQUIREMENTS = ("scrapy-download-handlers-incubator", "aiohttp")

HANDLER = "scrapy_download_handlers_incubator.AiohttpDownloadHandler"

CHECKS = Standard(prepare=http_handler(HANDLER)).checks
