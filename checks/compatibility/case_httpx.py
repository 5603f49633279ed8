"""Scrapy's own httpx handler, which has a pool of connections of its own."""

from __future__ import annotations

from .standard import Standard, http_handler

REQUIREMENTS = ("httpx[http2]",)

HANDLER = "scrapy.core.downloader.handlers._httpx.HttpxDownloadHandler"

CHECKS = Standard(prepare=http_handler(HANDLER)).checks
