"""The wreq handler of scrapy-download-handlers-incubator."""

from __future__ import annotations

from .standard import Standard, http_handler

REQUIREMENTS = ("scrapy-download-handlers-incubator[wreq]",)

HANDLER = "scrapy_download_handlers_incubator.WreqDownloadHandler"

CHECKS = Standard(prepare=http_handler(HANDLER)).checks
