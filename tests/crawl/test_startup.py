"""Warnings at the start of a crawl, and the end of a crawl that cannot start."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.settings import default_settings

from scrapy_rep.exceptions import SettingError
from testing.web import Web

from .conftest import ALL, Crawl, make_crawler, numbers, our_warnings, run_crawler, scrapy

OURS = "scrapy_rep.RobotsTxtMiddleware"
ANSWERS = "scrapy_rep.AnswerMiddleware"
BUILT_IN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
BY_HAND: dict[str, Any] = {"ADDONS": {}, "ROBOTSTXT_OBEY": True}


TYPO = "The setting {} does not exist and is ignored. Did you mean {}?"
NAMED = "The User-Agent of this crawl has the name of {}, a crawler of {}: "
MISSING = "scrapy_rep.AnswerMiddleware is not enabled: "
BOTH = "Scrapy's own RobotsTxtMiddleware is also enabled: "
OFF = "ROBOTSTXT_OBEY is off, although scrapy-rep is enabled: this crawl ignores robots.txt"
SCRAPYS = default_settings.USER_AGENT
GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({}, None),
        ({**BY_HAND, "DOWNLOADER_MIDDLEWARES": {BUILT_IN: None, OURS: 100, ANSWERS: 990}}, None),
        ({**BY_HAND, "DOWNLOADER_MIDDLEWARES": {BUILT_IN: None, OURS: 100}}, MISSING),
        ({"REP_TIMOUT": 3}, TYPO.format("REP_TIMOUT", "REP_TIMEOUT")),
        ({"ROBOTSTXT_USERAGENT": "me"}, TYPO.format("ROBOTSTXT_USERAGENT", "ROBOTSTXT_USER_AGENT")),
        ({"REPORT": 1}, None),  # of another package
        ({"USER_AGENT": SCRAPYS}, "USER_AGENT has Scrapy's default value: "),
        ({"USER_AGENT": SCRAPYS, "ROBOTSTXT_USER_AGENT": "me"}, None),
        ({"USER_AGENT": "Googlebot/2.1 (+http://…)"}, NAMED.format("Googlebot", "Google")),
        ({"USER_AGENT": GPTBOT}, NAMED.format("GPTBot", "OpenAI")),
        ({"USER_AGENT": "Googlebot/2.1", "ROBOTSTXT_USER_AGENT": "Googlebot"}, None),
        ({"ROBOTSTXT_OBEY": False}, OFF),
        ({**BY_HAND, "DOWNLOADER_MIDDLEWARES": {OURS: 100, ANSWERS: 990}}, BOTH),
        ({"DOWNLOADER_MIDDLEWARES": {OURS: 543}}, None),
    ],
)
async def test_a_configuration_mistake_is_warned_about_once(
    web: Web, crawl: Crawl, settings: dict[str, Any], warning: str | None
) -> None:
    site = web.site(ALL)
    outcome = await crawl(site.urls("/a", "/b"), settings)
    assert site.page_paths == ["/a", "/b"]
    found = [text[: len(warning or "")] for text in outcome.warnings]
    assert found == ([warning] if warning else [])


async def test_user_agents_without_a_token_are_warned_about_once(web: Web, crawl: Crawl) -> None:
    site = web.site(ALL)
    requests = [
        Request(site.url(path), headers={"User-Agent": f"Mozilla/5.0 (X11) Firefox{path}"})
        for path in numbers(7)
    ]
    outcome = await crawl(requests)
    assert len(site.page_paths) == 7
    (warning,) = outcome.warnings
    assert "is the User-Agent of a browser, not of a crawler: only rules for * apply" in warning
    assert outcome.stats["robotstxt/ambiguous_user_agent_count"] == 7


async def test_an_unusable_setting_fails_the_crawl_with_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = "REP_BACKOFF is 'maybe': it must be True or False. The crawl does not start."
    by_hand = {**BY_HAND, "DOWNLOADER_MIDDLEWARES": {OURS: 100}}
    for settings in ({}, by_hand, {"ROBOTSTXT_OBEY": False}):  # at last the spider middleware alone
        crawler = make_crawler(Spider, {"REP_BACKOFF": "maybe", **settings})
        with pytest.raises(SettingError):
            await run_crawler(crawler, name="none")
        assert our_warnings(caplog) == [line]
        assert crawler.spider is None
        caplog.clear()
    gc.collect()


# In a process of its own

SPIDER = """
import scrapy

class One(scrapy.Spider):
    name = "one"
    start_urls = ["data:,x"]
    custom_settings = {"ADDONS": {"scrapy_rep.Addon": 500}}

    def parse(self, response):
        self.logger.info("it crawls")
"""


def test_scrapy_logs_one_line_and_exits_with_1(tmp_path: Path) -> None:
    """``test_stores`` has other stores that cannot be used, and ``test_settings`` other values."""
    (tmp_path / "spider.py").write_text(SPIDER, encoding="utf-8")
    store = "REP_STORE=sqlite:///spider.py"
    ended = scrapy("runspider", "spider.py", "-s", store, cwd=tmp_path)
    assert ended.returncode == 1
    (line,) = (line for line in ended.stderr.splitlines() if "ERROR" in line or "CRITICAL" in line)
    assert line.endswith("spider.py: file is not a database. The crawl does not start.")
    assert "Traceback" not in ended.stderr
    assert "it crawls" not in ended.stderr
