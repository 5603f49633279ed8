"""What the tools get from sites: the policies of a crawl, from a real crawler."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from scrapy.settings import Settings
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import Addon, RobotsTxtMiddleware
from scrapy_rep.commands import session as session_module
from scrapy_rep.commands.context import CommandError
from scrapy_rep.commands.session import open_session, session_settings
from scrapy_rep.exceptions import SettingError
from testing.web import Page, Web, redirect, text
from tests.crawl.test_local_rules import disallow, exception

from .conftest import Cli, content, write

RULES = "User-agent: *\nDisallow: /x\n"
AT_ONCE = ("-s", "REP_RETRY_TIMES=0")
STORE = "sqlite:///store.sqlite"


async def checked(cli: Cli, *arguments: str, **settings: Any) -> tuple[int, list[dict[str, Any]]]:
    """The exit code and the records of ``check``."""
    done = await cli("check", *arguments, "--json", *AT_ONCE, settings=settings)
    return done.code, done.records


async def test_how_a_robots_txt_was_had(web: Web, cli: Cli) -> None:
    good = web.site(RULES)
    second = web.site(redirect(good.url("/robots.txt")))
    first = web.site(redirect(second.url("/robots.txt"), 302))
    for source in ("site", "store"):
        code, records = await checked(cli, first.url("/x"), "-a", "bot", REP_STORE=STORE)
        assert code == 1
        access = records[0]["robots_txt"]
        assert access["url"] == first.url("/robots.txt")
        assert access["final_url"] == good.url("/robots.txt")
        assert (access["status"], access["source"], access["state"]) == (200, source, "rules")
        assert access["fetched_at"] < access["expires_at"]
        assert records[0]["context"] == ["  1 User-agent: *", "> 2 Disallow: /x"]
    assert first.paths == second.paths == good.paths == ["/robots.txt"]  # never the page itself


async def test_each_result_of_a_fetch(web: Web, cli: Cli) -> None:
    sites = [web.site(RULES), web.site(), web.site(Page(b"", 403)), web.site(Page(b"", 503))]
    urls = [site.url(f"/x{number}") for number in range(20) for site in sites]  # two batches
    code, records = await checked(cli, *urls, REP_DISALLOW_STATUSES=[403])
    assert code == 3
    assert [record["url"] for record in records] == urls
    assert [
        (record["allowed"], record["reason"], record["robots_txt"]["state"])
        for record in records[-4:]
    ] == [
        (False, "rules", "rules"),
        (True, "unavailable", "unavailable"),
        (False, "disallowed-status", "disallowed-status"),
        (False, "unreachable", "unreachable"),
    ]
    assert records[3]["robots_txt"]["failure"] == "status 503"
    assert [site.robots_fetches for site in sites] == [1] * 4
    assert {record["agent"] for record in records} == {"testbot/1.0 (+https://example.com)"}


async def test_the_last_good_copy_of_a_site_that_is_down(web: Web, cli: Cli) -> None:
    site = web.site(text(RULES, Cache_Control="no-store"))
    settings = {"REP_STORE": STORE, "REP_TTL_RANGE": [0.001, 1]}
    await checked(cli, site.url("/x"), **settings)
    site.pages["/robots.txt"] = Page(b"", 503)
    code, records = await checked(cli, site.url("/x"), **settings)
    access = records[0]["robots_txt"]
    assert (code, access["state"], access["failure"]) == (1, "stale-copy", "status 503")
    assert records[0]["context"]


async def test_a_fresh_file(web: Web, cli: Cli) -> None:
    site = web.site(text(RULES, ETag='"1"'))

    async def check(*options: str) -> tuple[bool, str]:
        done = await cli("check", site.url("/x"), *AT_ONCE, "-s", f"REP_STORE={STORE}", *options)
        return done.out.startswith("allowed"), done.err

    assert await check() == (False, "")
    old = f"note: {site.url('/robots.txt')} is from the store, less than a minute old; "
    old += "--fresh asks the site\n"
    assert await check() == (False, old)
    assert await check("--fresh") == (False, "")
    assert [each.headers.get("if-none-match") for each in site.received] == [None, '"1"']
    # A failure leaves the copy and its entry.
    before = content("store.sqlite")
    site.pages["/robots.txt"] = Page(b"", 503)
    assert await check("--fresh") == (False, "")
    assert (content("store.sqlite"), await check()) == (before, (False, old))
    for answer, is_allowed in ((text("User-agent: *\nAllow: /"), True), (text(RULES), False)):
        site.pages["/robots.txt"] = answer
        assert await check("--fresh") == (is_allowed, "")
        assert await check() == (is_allowed, old)
    site.pages["/robots.txt"] = Page(b"", 404)
    assert await check("--fresh") == (True, "")
    site.pages["/robots.txt"] = Page(b"", 304)
    assert await check() == (True, old)


async def test_tools_that_read_sites_say_the_age_of_an_answer(web: Web, cli: Cli) -> None:
    site = web.site(RULES)
    write(x_txt="disallow * /x")
    tools = [
        ("check", site.url("/")), ("lint", site.root), ("show", site.root), ("view", site.url("/")),
        ("diff", site.root, site.root), ("test", "x.txt", "--robots", site.root),
    ]  # fmt: skip
    await cli("show", site.root, settings={"REP_STORE": STORE})
    for arguments in tools:
        done = await cli(*arguments, settings={"REP_STORE": STORE})
        assert "is from the store, less than a minute old" in done.err, arguments
        done = await cli(*arguments, "--fresh", settings={"REP_STORE": STORE})
        assert "store" not in done.err, arguments
    assert site.robots_fetches == 1 + len(tools)


async def test_scrapys_http_cache_is_named(web: Web, cli: Cli, tmp_path: Path) -> None:
    site = web.site(RULES)
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    for is_cached, source in ((False, "site"), (True, "http-cache")):
        settings["HTTPCACHE_IGNORE_MISSING"] = is_cached
        _, records = await checked(cli, site.url("/x"), **settings)
        assert records[0]["robots_txt"]["source"] == source


async def test_local_rules_count(web: Web, cli: Cli) -> None:
    site = web.site(RULES)
    write(local_toml=disallow(site.root, "/y") + exception(site.root, "/x/1"))
    urls = site.urls("/y", "/x/1", "/x/2")
    code, records = await checked(cli, *urls, REP_LOCAL_RULES="local.toml")
    assert code == 1
    assert [(record["allowed"], record["reason"]) for record in records] == [
        (False, "local-rule"),
        (True, "local-rule"),
        (False, "rules"),
    ]
    assert len(records[1]["other_rules"]) == 1


@pytest.mark.parametrize(
    ("status", "shown", "checked", "code"),
    [
        (200, "Fetched      status 200, from the site, 20", "disallowed", 0),
        (404, "The site has no robots.txt: everything is allowed.", "allowed", 0),
        (500, "was unreachable (status 500): everything is disallowed.", "disallowed", 3),
        (502, "Last attempt  status 502, from the site, 20", "disallowed", 3),
    ],
)
async def test_texts_of_sites(
    web: Web, cli: Cli, status: int, shown: str, checked: str, code: int
) -> None:
    site = web.site(Page(RULES.encode(), status))
    done = await cli("show", site.url("/page"), *AT_ONCE)
    assert (done.code, shown in done.out) == (code, True)
    done = await cli("check", site.url("/x"), "-a", "x", *AT_ONCE)
    assert done.out.startswith(f"{checked}  {site.url('/x')}\n")


@pytest.mark.parametrize("path", ["/x;", "/a/../x", "/./x", "/x?"])
async def test_the_verdict_is_that_of_the_crawl(web: Web, cli: Cli, path: str) -> None:
    """A handler may send another path than that of the URL."""
    site = web.site("User-agent: *\nDisallow: /x$", {"/page": Page(f'<a href="{path}">x</a>')})
    url = f"{site.root}{path}"
    code, (record,) = await checked(cli, url)
    assert (code, record["allowed"]) == (1, False)
    assert "a download handler may send /x" in record["detail"]
    viewed = await cli("view", url, "--json")
    assert (viewed.record["check"]["allowed"], viewed.record["page"]) == (False, None)
    links = (await cli("view", site.url("/page"), "--json")).record["page"]["links"]
    assert [link["allowed"] for link in links] == [False]
    assert site.page_paths == ["/page"]


async def test_a_host_with_a_port_is_asked_with_http_after_https(web: Web, cli: Cli) -> None:
    site, down = web.site(RULES), web.site(Page(b"", 500))
    names = [each.root.removeprefix("http://") for each in (site, down)]
    done = await cli("check", f"{names[0]}/x", f"{names[1]}/x", "--json", *AT_ONCE)
    assert [record["url"] for record in done.records] == [site.url("/x"), f"https://{names[1]}/x"]
    assert f"note: https://{names[0]} does not answer: {site.root} is used\n" in done.err
    assert f"note: https://{names[1]}/robots.txt is unreachable" in done.err
    assert (done.code, site.robots_fetches) == (3, 1)
    write(urls_txt=f"{names[0]}/x\n" * 100)
    done = await cli("check", "--from", "urls.txt", "--json", *AT_ONCE)
    assert {record["url"] for record in done.records} == {site.url("/x")}
    assert done.code == 1


async def test_a_tool_ends_if_a_component_has_ended_scrapy() -> None:
    session = object.__new__(session_module.Session)
    session._loop, session.ended = asyncio.get_running_loop(), Future()
    session.ended.set_result(None)
    with pytest.raises(CommandError, match="Scrapy ended before the tool did"):
        list(session.results([asyncio.sleep(0)]))


async def test_policies_that_close_early(web: Web, cli: Cli) -> None:
    """As at the end of a spider, while a robots.txt is on its way."""
    site = web.site(Page(RULES, delay=60))
    done = await cli("show", site.root, settings={"DOWNLOADER_MIDDLEWARES": {Closing: 50}})
    assert (done.code, "Scrapy ended before the tool did" in done.err) == (3, True)


class Closing:
    """Closes the policies soon after the first request."""

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        return cls(crawler)

    def process_request(self, request: Any) -> None:
        middleware = self.crawler.get_downloader_middleware(RobotsTxtMiddleware)
        call_later(0.1, deferred_from_coro, middleware.crawl.close())


async def test_without_the_middleware_it_says_so(cli: Cli) -> None:
    settings = {"DOWNLOADER_MIDDLEWARES": {"scrapy_rep.RobotsTxtMiddleware": None}}
    done = await cli("show", "https://x.example", settings=settings)
    assert (done.code, "RobotsTxtMiddleware is not enabled" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (None, "Scrapy ended at its start"),
        (SettingError("REP_TIMEOUT is 0"), r"\AREP_TIMEOUT is 0"),
        (CommandError("no"), r"\Ano"),
        (OSError("first"), r"Scrapy does not start with these settings: OSError: first"),
    ],
)
def test_how_scrapy_does_not_start(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, message: str
) -> None:
    monkeypatch.setattr(session_module, "run_crawl", Mock(side_effect=error))
    kinds = CommandError, SettingError
    with pytest.raises(kinds, match=message), open_session(Settings()):
        raise AssertionError


def test_the_addon_is_added_unless_it_is_there() -> None:
    assert session_settings(Settings())["ADDONS"] == {Addon: 500}
    for key in (Addon, "scrapy_rep.Addon"):
        settings = session_settings(Settings({"ADDONS": {key: 300}}))
        assert settings.getdict("ADDONS") == {key: 300}
    settings = session_settings(Settings({"ITEM_PIPELINES": {"no.such": 1}, "JOBDIR": "x"}))
    assert (settings.getdict("ITEM_PIPELINES"), settings["JOBDIR"]) == ({}, None)
    assert session_settings(Settings({"REP_REPORT": "a.json"}))["REP_REPORT"] is None
