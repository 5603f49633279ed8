"""A page, a refusal or a challenge in place of a robots.txt (PROTOCOL §4).

The tests judge by what the servers received, and by what the log says.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from scrapy_rep import Reason, RobotsTxtDisallowed
from testing.faults import ALLOWED, DISALLOWED, PATHS, RULES, outcome_of
from testing.web import Page, Site, Web, redirect, text

from .conftest import Crawl

HTML = text("<!doctype html>\n<title>Log in</title>", Content_Type="text/html")
ANUBIS = Page('<html><script id="anubis_challenge">{}</script>')
CLOUDFLARE = Page("<html>", 403, {"cf-mitigated": "challenge"})

ANSWERS = {
    "a page": (HTML, Reason.NOT_ROBOTS_TXT),
    "a login": (redirect("/login"), Reason.NOT_ROBOTS_TXT),
    "HTML without a field": (Page("Hello"), Reason.NOT_ROBOTS_TXT),
    "401": (Page(RULES, 401), Reason.REFUSED),
    "403": (Page(RULES, 403), Reason.REFUSED),
    "Cloudflare": (CLOUDFLARE, Reason.CHALLENGE),
    "Anubis": (ANUBIS, Reason.CHALLENGE),
}


def sites_of(web: Web) -> dict[str, Site]:
    return {name: web.site(page, {"/login": HTML}) for name, (page, _) in ANSWERS.items()}


async def test_each_is_a_reason_of_its_own_and_everything_is_allowed(
    web: Web, crawl: Crawl
) -> None:
    sites = sites_of(web)
    outcome = await crawl([url for site in sites.values() for url in site.urls(*PATHS)])
    assert {name: outcome_of(site) for name, site in sites.items()} == dict.fromkeys(sites, ALLOWED)
    for name, site in sites.items():
        verdict = outcome.responses[site.url(PATHS[0])].meta["robotstxt"]
        assert (name, verdict.reason) == (name, ANSWERS[name][1])
        levels = [
            record.levelno
            for record in outcome.log.records
            if record.name.startswith("scrapy_rep") and site.root in record.getMessage()
            and record.levelno >= logging.INFO
        ]  # fmt: skip
        is_refusal = verdict.reason is Reason.REFUSED
        assert (name, levels) == (name, [logging.INFO if is_refusal else logging.WARNING])
    assert {name: outcome.stats.get(f"robotstxt/unavailable{name}") for name in
            ("", "/not-robots-txt", "/refused", "/challenge")} == {
        "": 7, "/not-robots-txt": 3, "/refused": 2, "/challenge": 2,
    }  # fmt: skip


async def test_a_page_is_unreachable_if_the_setting_says_so(web: Web, crawl: Crawl) -> None:
    sites = sites_of(web)
    urls = [url for site in sites.values() for url in site.urls(*PATHS)]
    outcome = await crawl(urls, {"REP_NOT_ROBOTS": "unreachable", "REP_RETRY_TIMES": 0})
    refused = dict.fromkeys(("401", "403", "Cloudflare"), ALLOWED)
    assert {name: outcome_of(site) for name, site in sites.items()} == {
        **dict.fromkeys(sites, DISALLOWED),
        **refused,
    }
    (page, anubis) = (outcome.failures[sites[name].url(PATHS[0])] for name in ("a page", "Anubis"))
    assert isinstance(page, RobotsTxtDisallowed)
    assert isinstance(anubis, RobotsTxtDisallowed)
    assert page.verdict[:2] == (False, Reason.UNREACHABLE)
    assert page.verdict.detail == "status 200, not a robots.txt"
    assert anubis.verdict.detail == "status 200, a challenge, not a robots.txt"
    warnings = [message for message in outcome.warnings if "is unreachable" in message]
    settings = "set REP_NOT_ROBOTS = 'unavailable' or REP_ON_UNREACHABLE = 'allow'."
    assert [each.endswith(settings) for each in warnings] == [True] * 4


@pytest.mark.parametrize("setting", ["unavailable", "unreachable"])
async def test_the_setting_holds_for_an_entry_of_an_earlier_crawl(
    web: Web, crawl: Crawl, tmp_path: Any, setting: str
) -> None:
    sites = {name: web.site(page) for name, (page, _) in ANSWERS.items() if name != "a login"}
    store = {"REP_STORE": f"sqlite:///{tmp_path}/robots.db", "REP_RETRY_TIMES": 0}
    for site in sites.values():
        await crawl([site.url(PATHS[0])], store)
    fetches = {name: site.robots_fetches for name, site in sites.items()}
    assert set(fetches.values()) == {1}
    urls = [site.url(PATHS[1]) for site in sites.values()]
    outcome = await crawl(urls, {**store, "REP_NOT_ROBOTS": setting})
    again = {name for name, site in sites.items() if site.robots_fetches > 1}
    if setting == "unavailable":
        assert not again
        for name, site in sites.items():
            verdict = outcome.responses[site.url(PATHS[1])].meta["robotstxt"]
            assert (name, verdict.reason) == (name, ANSWERS[name][1]), "the store keeps it"
    else:
        assert again == {"a page", "HTML without a field", "Anubis"}
