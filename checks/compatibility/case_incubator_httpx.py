"""The httpx handler of scrapy-download-handlers-incubator."""

from __future__ import annotations

from .standard import Standard, http_handler

REQUIREMENTS = ("scrapy-download-handlers-incubator[httpx]",)

HANDLER = "scrapy_download_handlers_incubator.HttpxDownloadHandler"

CHECKS = Standard(prepare=http_handler(HANDLER)).checks
