"""The niquests handler of scrapy-download-handlers-incubator."""

from __future__ import annotations

from .standard import Standard, http_handler

REQUIREMENTS = ("scrapy-download-handlers-incubator[niquests]",)

HANDLER = "scrapy_download_handlers_incubator.NiquestsDownloadHandler"

KNOWN_FAULTS = {
    "a_live_site_is_crawled_beside_silent_ones": "no page of the live site is received, with "
    "Scrapy's own middleware neither"
}

CHECKS = Standard(prepare=http_handler(HANDLER)).checks
