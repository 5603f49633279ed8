"""The page of a crawl (REP_REPORT with .html)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parsel import Selector
from scrapy import Request

from scrapy_rep.reports.reading import read_reports
from testing.web import Page

if TYPE_CHECKING:
    from pathlib import Path

    from testing.web import Web

    from .conftest import Crawl

ROBOTS = "User-agent: *\nDisallow: /private\nDisallow: /<script>alert(1)</script>\n"


async def test_a_crawl_writes_its_page(web: Web, crawl: Crawl, tmp_path: Path) -> None:
    site = web.site(ROBOTS)
    down = web.site(Page(b"", status=503), host="127.0.0.2")
    urls = [
        *site.urls("/a", "/private/1", "/<script>alert(1)</script>?\u202e"),
        *down.urls("/b"),
    ]
    exempt = Request(site.url("/private/2"), meta={"dont_obey_robotstxt": True})
    settings = {
        "REP_REPORT": [str(tmp_path / "report.html"), str(tmp_path / "report.json")],
        "REP_RETRY_TIMES": 0,
        "USER_AGENT": "mybot/1 (+https://bot.example/about)",
        "HTTPCACHE_ENABLED": False,
    }
    await crawl([*urls, exempt], settings)
    text = (tmp_path / "report.html").read_text("utf-8")
    page = Selector(text)
    assert page.css("article .answer::text").getall() == [
        "None that was checked", "2", "3 (60 %)", "No site asked for one", "1",
    ]  # fmt: skip
    assert page.css(".origins > tbody > tr > th > code::text").getall() == [down.root, site.root]
    assert page.css(".file mark::text").getall() == ROBOTS.splitlines()[1:]
    assert len(page.css("script")) == 1
    evidence = " ".join(page.css(".practice td p::text").getall())
    assert "The user agent has a URL or an e-mail address: mybot/1 (+https://bot" in evidence
    assert "Scrapy's HTTP cache is off (HTTPCACHE_ENABLED), or" in evidence
    (run,) = read_reports([tmp_path / "report.json"]).runs
    assert run.scrapy_settings["USER_AGENT"] == settings["USER_AGENT"]
    assert run.scrapy_settings["DUPEFILTER_CLASS"] == "scrapy.dupefilters.RFPDupeFilter"
    assert run.downloads["response_status_count/200"] > run.downloads["response_status_count/503"]
    assert run.downloads["request_method_count/GET"] == sum(
        number for name, number in run.downloads.items() if name.startswith("response_status")
    )
