"""The pyreqwest handler of scrapy-download-handlers-incubator."""

from __future__ import annotations

from .standard import Standard, http_handler

REQUIREMENTS = ("scrapy-download-handlers-incubator[pyreqwest]",)

HANDLER = "scrapy_download_handlers_incubator.PyreqwestDownloadHandler"

CHECKS = Standard(prepare=http_handler(HANDLER)).checks
