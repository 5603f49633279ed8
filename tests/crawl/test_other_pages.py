"""A page, a refusal or a challenge in place of a robots.txt (PROTOCOL §4).

The tests judge by what the servers received, and by what the log says.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from scrapy_rep import Reason, RobotsTxt, RobotsTxtDisallowed, lint
from scrapy_rep.commands.sources import of_file
from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.protocol.lint import fix
from scrapy_rep.reports.survey import row_of
from testing.faults import ALLOWED, DISALLOWED, PATHS, RULES, outcome_of
from testing.web import Page, Site, Web, redirect, text

from .conftest import Crawl

pytestmark = pytest.mark.rule("A page instead of a robots.txt")
HTML = text("<!doctype html>\n<title>Log in</title>", Content_Type="text/html")
ANUBIS = Page('<html><script id="anubis_challenge">{}</script>')
CLOUDFLARE = Page("<html>", 403, {"cf-mitigated": "challenge"})

ANSWERS = {
    "a page": (HTML, Reason.NOT_ROBOTS_TXT),
    "a login": (redirect("/login"), Reason.NOT_ROBOTS_TXT),
    "HTML without a field": (Page("Hello"), Reason.NOT_ROBOTS_TXT),
    "a blank page": (text("<html><head></head><body></body></html>"), Reason.NOT_ROBOTS_TXT),
    "401": (Page(RULES, 401), Reason.REFUSED),
    "403": (Page(RULES, 403), Reason.REFUSED),
    "Cloudflare": (CLOUDFLARE, Reason.CHALLENGE),
    "Anubis": (ANUBIS, Reason.CHALLENGE),
}


def sites_of(web: Web) -> dict[str, Site]:
    return {name: web.site(page, {"/login": HTML}) for name, (page, _) in ANSWERS.items()}


@pytest.mark.rule("A challenge instead of a robots.txt", "401 and 403")
async def test_each_has_its_own_reason_and_everything_is_allowed(web: Web, crawl: Crawl) -> None:
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
        "": 8, "/not-robots-txt": 4, "/refused": 2, "/challenge": 2,
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
    assert [each.endswith(settings) for each in warnings] == [True] * 5


@pytest.mark.no_cover
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
        assert again == {"a page", "HTML without a field", "a blank page", "Anubis"}


# The same bytes have one reading: in a crawl, in the library and for the tools

HEAD, END = "<html><head></head><body>", "</body></html>"
ESCAPED = RULES.decode().replace("&", "&amp;").replace("<", "&lt;")
BODIES: dict[str, bytes | str] = {
    "rules": RULES,
    "no rules": b"User-agent: *\nDisallow:\n",
    "nothing": b"",
    "a text": b"Hello\n",
    "rules of a browser": f"{HEAD}<pre>{ESCAPED}</pre>{END}",
    "rules of a browser, cut": f"{HEAD}<pre>{ESCAPED}",
    "rules of a browser with a mark": f"{HEAD}<pre>\ufeff{ESCAPED}</pre>{END}",
    "rules of a browser in UTF-16": f"{HEAD}<pre>{ESCAPED}</pre>{END}".encode("utf-16"),
    "rules of a browser, without pre": f"{HEAD}{ESCAPED}{END}",
    "rules of a browser, longer than the limit":
        f"{HEAD}<pre>{ESCAPED}Disallow: /{'*' * SIZE_LIMIT}x\n</pre>{END}",
    "rules in HTML": f"<html><p>\n{ESCAPED}</p></html>",
    "a comment of a browser": f"{HEAD}<pre># nothing\n</pre>{END}",
    "a sitemap of a browser": f"{HEAD}<pre>Sitemap: https://a.example/map.xml\n</pre>{END}",
    "a page of a page": f"{HEAD}<pre>&lt;body&gt;&lt;pre&gt;{ESCAPED}</pre>{END}",
    "a blank page": HEAD + END,
    "a blank page, indented": "<!doctype html>\n<html>\n<head></head>\n<body>\n</body>\n</html>\n",
    "a blank page of a text": f"{HEAD}<pre>&nbsp;\n</pre>{END}",
    "an error of a browser": f"{HEAD}<pre>Cannot GET /robots.txt</pre>{END}",
    "an error without pre": f"{HEAD}Not found{END}",
    "the source of a page": f"{HEAD}<pre>&lt;!doctype html&gt;&lt;p&gt;a</pre>{END}",
    "a page": "<!doctype html><title>Log in</title>",
}  # fmt: skip


@pytest.mark.no_cover
async def test_every_part_reads_a_body_in_the_same_way(web: Web, crawl: Crawl) -> None:
    bodies = {name: body.encode() if isinstance(body, str) else body
              for name, body in BODIES.items()}  # fmt: skip
    sites = {name: web.site(text(body)) for name, body in bodies.items()}
    outcome = await crawl([url for site in sites.values() for url in site.urls(*PATHS)])
    strict = await crawl([site.url(PATHS[1]) for site in sites.values()],
                         {"REP_NOT_ROBOTS": "unreachable", "REP_RETRY_TIMES": 0})  # fmt: skip
    for name, body in bodies.items():
        is_page = any(word in name for word in ("a blank", "an error", "a page", "the source"))
        has_rules = name.startswith("rules")
        robots, policy = RobotsTxt.from_response(200, body), of_file(name, body)
        for path in PATHS:
            url = sites[name].url(path)
            response, failure = outcome.responses.get(url), outcome.failures.get(url)
            verdict = response.meta["robotstxt"] if response else failure.verdict  # type: ignore[union-attr]
            assert (name, verdict[:4]) == (name, robots.verdict(url, "testbot")[:4])
            assert (name, verdict[:4]) == (name, policy.verdict(url, ("testbot",))[:4])
            assert (name, verdict.reason is Reason.NOT_ROBOTS_TXT) == (name, is_page)
            assert (name, bool(verdict.rule)) == (name, has_rules and not verdict.allowed)
        assert (name, sites[name].url(PATHS[1]) in strict.responses) == (name, not is_page)
        state = "not-robots-txt" if is_page else "rules"
        assert (name, policy.access.state) == (name, state)
        assert (name, row_of(name, body).result) == (name, "empty" if body == b"" else state)
        codes = [str(finding.code) for finding in lint(body)]
        assert (name, codes == ["R109"]) == (name, is_page)
        assert (name, RobotsTxt(body).allowed(PATHS[0], "testbot")) == (name, not has_rules)
        assert fix(body) == body
