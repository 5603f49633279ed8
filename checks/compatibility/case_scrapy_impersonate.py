"""scrapy-impersonate, which imitates a browser and decodes by itself."""

from __future__ import annotations

from .bomb import gzip_bomb_stays_small
from .standard import Standard, http_handler

REQUIREMENTS = ("scrapy-impersonate",)

STANDARD = Standard(
    meta={"impersonate": "chrome"},
    prepare=http_handler("scrapy_impersonate.ImpersonateDownloadHandler"),
)

CHECKS = (*STANDARD.checks, gzip_bomb_stays_small(STANDARD))
