"""scrapy-zyte-api in transparent mode, with an API on loopback in the place of Zyte's."""

from __future__ import annotations

from .standard import Standard
from .zyte import fake_api, robots_txt_gives_no_cause_to_warn

REQUIREMENTS = ("scrapy-zyte-api",)

STANDARD = Standard(prepare=fake_api())

CHECKS = (*STANDARD.checks, robots_txt_gives_no_cause_to_warn(STANDARD))
