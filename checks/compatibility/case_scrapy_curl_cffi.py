"""scrapy-curl-cffi, which imitates a browser and leaves decoding to Scrapy."""

from __future__ import annotations

from .bomb import gzip_bomb_stays_small
from .standard import Standard, http_handler

REQUIREMENTS = ("scrapy-curl-cffi[curl_cffi]", "curl_cffi")

STANDARD = Standard(
    {
        "CURL_CFFI_OPTIONS": {"impersonate": "chrome"},
        "DOWNLOADER_MIDDLEWARES": {
            "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
            "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
            "scrapy_curl_cffi.middlewares.CurlCffiMiddleware": 200,
            "scrapy_curl_cffi.middlewares.DefaultHeadersMiddleware": 400,
            "scrapy_curl_cffi.middlewares.UserAgentMiddleware": 500,
        },
    },
    prepare=http_handler("scrapy_curl_cffi.handlers.CurlCffiDownloadHandler"),
)

CHECKS = (*STANDARD.checks, gzip_bomb_stays_small(STANDARD))
