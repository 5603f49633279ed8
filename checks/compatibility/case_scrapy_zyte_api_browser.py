"""scrapy-zyte-api in transparent mode where all pages are rendered by a browser."""

from __future__ import annotations

from .standard import Standard
from .zyte import fake_api, robots_txt_is_not_rendered

REQUIREMENTS = ("scrapy-zyte-api",)

STANDARD = Standard(
    {"ZYTE_API_AUTOMAP_PARAMS": {"browserHtml": True}},
    prepare=fake_api(),
)

CHECKS = (*STANDARD.checks, robots_txt_is_not_rendered(STANDARD))
