"""The TDM file of an origin (REP_TDMREP), judged by what the server received."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testing.clock import FakeClock
from testing.faults import answer_when
from testing.web import Misbehaviour, Page, Site, Web, gaps, redirect, text

from .conftest import Crawl, Disturber, Outcome, in_turn
from .test_local_rules import disallow

pytestmark = pytest.mark.rule("TDM files")
TDM = "/.well-known/tdmrep.json"
ON = {"REP_TDMREP": True}
POLICY = "https://provider.example/policies/policy.json"
RULES = [
    {"location": "/free/", "tdm-reservation": 0},
    {"location": "/", "tdm-reservation": 1, "tdm-policy": POLICY},
]


def tdmrep(rules: Any = RULES, **headers: str) -> Page:
    return text(json.dumps(rules), **headers)


def site_with(web: Web, file: Page | Misbehaviour, robots: Any = "", **pages: Any) -> Site:
    return web.site(robots, {TDM: file, **{f"/{name}": page for name, page in pages.items()}})


def stated(outcome: Outcome) -> dict[str, tuple[bool | None, str | None]]:
    """The reservation and the policy of each response, by its path."""
    found = {}
    for url, response in outcome.responses.items():
        directives = response.meta["page_directives"]
        found["/" + url.split("/", 3)[3]] = directives.tdm_reservation, directives.tdm_policy
    return found


async def test_one_file_is_fetched_for_ten_pages(web: Web, crawl: Crawl) -> None:
    site = site_with(web, tdmrep())
    paths = [f"/{number}" for number in range(9)]
    outcome = await crawl(site.urls(*paths, "/free/"), ON)
    assert sorted(site.paths) == sorted(["/robots.txt", TDM, *paths, "/free/"])
    assert stated(outcome) == {**dict.fromkeys(paths, (True, POLICY)), "/free/": (False, None)}
    for response in outcome.responses.values():
        is_free = response.url.endswith("/free/")
        assert response.meta["robotstxt_usage"] == {"tdm": is_free}


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        (Page(b"", 404), None),
        (Page(b"", 403), None),
        (Page("<html>Not found</html>"), "its JSON is invalid or too long"),
        (tdmrep(RULES[1]), "it is not a JSON array"),
        (tdmrep([1, None, [], "x"]), "4 of its rules are unreadable"),
        (tdmrep([{"location": "/" + "x" * 10_000_000, "tdm-reservation": 1}]), "its JSON is"),
    ],
    ids=["404", "403", "HTML", "object", "elements", "10 MB"],
)
async def test_a_file_that_states_nothing(
    web: Web, crawl: Crawl, file: Page, problem: str | None
) -> None:
    site = site_with(web, file)
    outcome = await crawl(site.urls("/1", "/2", "/3"), ON)
    assert site.paths.count(TDM) == 1
    assert stated(outcome) == dict.fromkeys(["/1", "/2", "/3"], (None, None))
    assert outcome.stats.get("robotstxt/tdmrep/unreadable", 0) == (problem is not None)
    assert outcome.stats.get("robotstxt/tdmrep/unavailable", 0) == (problem is None)
    line = f"The tdmrep.json of {site.root} is not readable: {problem}"
    assert any(line in message for message in outcome.log.messages) == (problem is not None)
    assert outcome.warnings == []


@pytest.mark.rule("TDM files and robots.txt")
@pytest.mark.parametrize("is_local", [False, True])
async def test_a_disallowed_file_is_not_fetched(
    web: Web, crawl: Crawl, tmp_path: Path, is_local: bool
) -> None:
    closed, rules = "User-agent: *\nDisallow: /.well-known/", tmp_path / "rules.toml"
    site = site_with(web, tdmrep(), "" if is_local else closed)
    rules.write_text(disallow(site.root, "/.well-known/"))
    settings = {**ON, "REP_LOCAL_RULES": str(rules) if is_local else None}
    outcome = await crawl(site.urls("/1", "/2"), settings)
    assert TDM not in site.paths
    assert stated(outcome) == dict.fromkeys(["/1", "/2"], (None, None))
    assert is_local or outcome.stats["robotstxt/tdmrep/disallowed"] == 1


async def test_nothing_is_fetched_where_no_page_is_allowed(web: Web, crawl: Crawl) -> None:
    site = site_with(web, tdmrep(), "User-agent: *\nDisallow: /\nAllow: /.well-known/")
    await crawl(site.urls("/1", "/2"), ON)
    assert site.paths == ["/robots.txt"]


@pytest.mark.rule("TDM files and robots.txt")
async def test_a_redirect_obeys_the_robots_txt_of_its_target(web: Web, crawl: Crawl) -> None:
    allowing = site_with(web, tdmrep())
    forbidding = site_with(web, tdmrep(), "User-agent: *\nDisallow: /.well-known/")
    first = site_with(web, redirect(allowing.url(TDM)))
    second = site_with(web, redirect(forbidding.url(TDM)))
    own = site_with(web, redirect("/tdm"), "User-agent: *\nDisallow: /tdm", tdm=tdmrep())
    outcome = await crawl([first.url("/1"), second.url("/2"), own.url("/3")], ON)
    assert stated(outcome) == {"/1": (True, POLICY), "/2": (None, None), "/3": (None, None)}
    assert allowing.paths == ["/robots.txt", TDM]
    assert forbidding.paths == ["/robots.txt"]
    assert sorted(own.paths) == sorted(["/robots.txt", TDM, "/3"])
    assert outcome.stats["robotstxt/tdmrep/redirect_count"] == 3


async def test_an_unreachable_file_states_nothing_and_is_not_waited_for_again(
    web: Web, crawl: Crawl, clock: FakeClock
) -> None:
    def is_due() -> bool:  # the second answer: when the page was requested that waits for none
        return site.paths.count(TDM) == 1 or "/3" in site.paths

    def wait() -> None:
        clock.now += 61

    site = site_with(web, in_turn(Page(b"", 503), tdmrep(), once=is_due))
    then = {"then": [wait] * 2, "next_urls": site.urls("/2", "/3")}
    outcome = await crawl(site.urls("/1"), ON, spider=Disturber, **then)
    assert stated(outcome)["/1"] == stated(outcome)["/2"] == (None, None)
    assert site.paths.count(TDM) == 2
    assert site.robots_fetches == 1
    assert outcome.stats["robotstxt/tdmrep/unreachable"] == 1
    assert outcome.stats["robotstxt/tdmrep/request_count"] == 2
    assert outcome.warnings == []
    line = f"The tdmrep.json of {site.root} is unreachable: status 503. It states nothing."
    assert [each for each in outcome.log.messages if "is unreachable" in each] == [line]


async def test_pages_are_requested_while_the_file_is_fetched(web: Web, crawl: Crawl) -> None:
    file = answer_when(lambda: len(site.page_paths) == 21, tdmrep())  # the file and the pages
    site = site_with(web, file)
    paths = [f"/{number:02}" for number in range(20)]
    outcome = await crawl(site.urls(*paths), {**ON, "CONCURRENT_REQUESTS": 4})
    assert stated(outcome) == dict.fromkeys(paths, (True, POLICY))


async def test_the_delay_of_the_site_applies(web: Web, crawl: Crawl) -> None:
    site = site_with(web, tdmrep(), "User-agent: *\nCrawl-delay: 0.3")
    outcome = await crawl(site.urls("/1", "/2"), ON)
    assert site.paths[0] == "/robots.txt"
    assert sorted(site.paths[1:]) == [TDM, "/1", "/2"]
    assert min(gaps(site)) > 0.28
    assert stated(outcome) == dict.fromkeys(["/1", "/2"], (True, POLICY))
