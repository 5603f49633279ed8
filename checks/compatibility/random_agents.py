"""The checks for middlewares that give each request a User-Agent at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testing.web import Web

from .crawling import Check, crawl
from .standard import Standard

RULES = "User-agent: *\nDisallow: /everyone\n\nUser-agent: testbot\nDisallow: /testbot\n"
PATHS = [f"/{number}" for number in range(40)]
COUNTED = "robotstxt/ambiguous_user_agent_count"


@dataclass(frozen=True)
class RandomAgents:
    """The checks for a ``middleware`` under further settings."""

    middleware: str
    settings: Mapping[str, Any]

    @property
    def checks(self) -> tuple[Check, ...]:
        """Return all checks."""
        return (
            *Standard(self._settings(400)).checks,
            self.the_rules_are_those_for_the_name_in_user_agent,
            self.one_warning_for_all_user_agents,
        )

    async def the_rules_are_those_for_the_name_in_user_agent(self, web: Web) -> None:
        """At the place that its documentation names, after ours."""
        site = web.site(RULES)
        outcome = await crawl(site.urls(*PATHS, "/everyone", "/testbot"), self._settings(400))
        assert list(outcome.failures) == site.urls("/testbot"), f"failed: {outcome.failures}"
        sent = {each.headers["user-agent"] for each in site.received}
        assert len(sent) > 5, f"sent: {sent}"
        assert not _ours(outcome.warnings), f"{_ours(outcome.warnings)}"

    async def one_warning_for_all_user_agents(self, web: Web) -> None:
        """At a place before ours, which sees them then."""
        site = web.site(RULES)
        outcome = await crawl(site.urls(*PATHS, "/everyone", "/testbot"), self._settings(50))
        assert list(outcome.failures) == site.urls("/everyone"), f"failed: {outcome.failures}"
        assert len(_ours(outcome.warnings)) == 1, f"{_ours(outcome.warnings)}"
        assert outcome.stats[COUNTED] > 5, f"{outcome.stats}"

    def _settings(self, place: int) -> dict[str, Any]:
        middlewares = {
            "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
            self.middleware: place,
        }
        return {**self.settings, "DOWNLOADER_MIDDLEWARES": middlewares}


def _ours(warnings: list[str]) -> list[str]:
    return [warning for warning in warnings if warning.startswith("scrapy_rep")]
