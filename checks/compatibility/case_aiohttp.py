"""Scrapy's own aiohttp handler, whose pool is widened for robots.txt files."""

from __future__ import annotations

from .standard import Standard, http_handler

REQUIREMENTS = ("aiohttp",)

HANDLER = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"

CHECKS = Standard(prepare=http_handler(HANDLER)).checks
