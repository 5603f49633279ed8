"""Warnings at the start of a crawl, and the end of a crawl that cannot start."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.settings import default_settings

from scrapy_rep.exceptions import SettingError
from testing.web import Web

from .conftest import Crawl, make_crawler, our_warnings, run_crawler

OURS = "scrapy_rep.RobotsTxtMiddleware"
BUILT_IN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
BY_HAND: dict[str, Any] = {"ADDONS": {}, "ROBOTSTXT_OBEY": True}


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        pytest.param({}, None, id="the add-on"),
        pytest.param(
            {**BY_HAND, "DOWNLOADER_MIDDLEWARES": {BUILT_IN: None, OURS: 100}}, None, id="by hand"
        ),
        pytest.param(
            {"REP_TIMOUT": 3},
            "The setting REP_TIMOUT does not exist and is ignored. Did you mean REP_TIMEOUT?",
            id="misspelled",
        ),
        pytest.param(
            {"ROBOTSTXT_USERAGENT": "me"},
            "The setting ROBOTSTXT_USERAGENT does not exist and is ignored. "
            "Did you mean ROBOTSTXT_USER_AGENT?",
            id="one of Scrapy's, misspelled",
        ),
        pytest.param({"REPORT": 1}, None, id="of another package"),
        pytest.param(
            {"REP_INTENDED_USES": ["train_ai", "search"]},
            "REP_INTENDED_USES has train_ai, which no vocabulary defines: no page refuses it. "
            "Did you mean train-ai?",
            id="a misspelt use",
        ),
        pytest.param(
            {"REP_INTENDED_USES": ["train-ai", "ai-use", "search", "tdm", "ai-train", "ai-input"]},
            None,
            id="every use",
        ),
        pytest.param(
            {"USER_AGENT": default_settings.USER_AGENT},
            "USER_AGENT has Scrapy's default value: ",
            id="Scrapy's default user agent",
        ),
        pytest.param(
            {"USER_AGENT": default_settings.USER_AGENT, "ROBOTSTXT_USER_AGENT": "me"},
            None,
            id="a token for robots.txt",
        ),
        pytest.param(
            {"USER_AGENT": "Googlebot/2.1 (+http://www.google.com/bot.html)"},
            "The User-Agent of this crawl has the name of Googlebot, a crawler of Google: ",
            id="the name of a known crawler",
        ),
        pytest.param(
            {"USER_AGENT": "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"},
            "The User-Agent of this crawl has the name of GPTBot, a crawler of OpenAI: ",
            id="the name of a known crawler in a comment",
        ),
        pytest.param(
            {"USER_AGENT": "Googlebot/2.1", "ROBOTSTXT_USER_AGENT": "Googlebot"},
            None,
            id="the operator of a known crawler",
        ),
        pytest.param(
            {"ROBOTSTXT_OBEY": False},
            "ROBOTSTXT_OBEY is off, although scrapy-rep is enabled: this crawl ignores robots.txt",
            id="nothing is obeyed",
        ),
        pytest.param(
            {**BY_HAND, "DOWNLOADER_MIDDLEWARES": {OURS: 100}},
            "Scrapy's own RobotsTxtMiddleware is also enabled: ",
            id="both",
        ),
        pytest.param({"DOWNLOADER_MIDDLEWARES": {OURS: 543}}, None, id="in the middle"),
    ],
)
async def test_a_configuration_mistake_is_warned_about_once(
    web: Web,
    crawl: Crawl,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
    warning: str | None,
) -> None:
    site = web.site("User-agent: *\nDisallow:\n")
    await crawl(site.urls("/a", "/b"), settings)
    assert site.page_paths == ["/a", "/b"]
    found = our_warnings(caplog)
    assert [text[: len(warning or "")] for text in found] == ([warning] if warning else [])


def user_agents(names: int) -> list[dict[str, str]]:
    return [{"User-Agent": f"Mozilla/5.0 (X11) Firefox/{number}"} for number in range(names)]


async def test_user_agents_without_a_product_token_are_counted_and_warned_about_once(
    web: Web, crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    site = web.site("User-agent: *\nDisallow:\n")
    requests = [
        Request(site.url(f"/{number}"), headers=headers)
        for number, headers in enumerate(user_agents(7))
    ]
    outcome = await crawl(requests)
    assert len(site.page_paths) == 7
    (warning,) = our_warnings(caplog)
    assert "is the User-Agent of a browser, not of a crawler: only rules for * apply" in warning
    assert outcome.stats["robotstxt/ambiguous_user_agent_count"] == 7


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({}, id="the add-on"),
        pytest.param({**BY_HAND, "DOWNLOADER_MIDDLEWARES": {OURS: 100}}, id="by hand"),
        pytest.param({"ROBOTSTXT_OBEY": False}, id="the spider middleware alone"),
    ],
)
async def test_an_unusable_setting_fails_the_crawl_with_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture, settings: dict[str, Any]
) -> None:
    crawler = make_crawler(Spider, {"REP_BACKOFF": "maybe", **settings})
    with pytest.raises(SettingError):
        await run_crawler(crawler, name="none")
    assert our_warnings(caplog) == [
        "REP_BACKOFF is 'maybe': it must be True or False. The crawl does not start."
    ]
    assert crawler.spider is None
    gc.collect()


# In a process of its own

SPIDER = """
import scrapy

class One(scrapy.Spider):
    name = "one"
    start_urls = ["data:,x"]

    def parse(self, response):
        self.logger.info("it crawls")
"""


def run(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parent.parent.parent)
    return subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, str(directory)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_scrapy_crawl_logs_one_line_and_exits_with_1(tmp_path: Path) -> None:
    setting = "ADDONS = {'scrapy_rep.Addon': 500}"
    (tmp_path / "spider.py").write_text(SPIDER, encoding="utf-8")
    settings = ("SPIDER_MODULES = ['spider']", "ROBOTSTXT_OBEY = True", "REP_TIMEOUT = 'soon'")
    (tmp_path / "project.py").write_text("\n".join([*settings, setting]), encoding="utf-8")
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = project\n", encoding="utf-8")
    ended = run(tmp_path, "-m", "scrapy", "crawl", "one")
    assert ended.returncode == 1
    (line,) = (line for line in ended.stderr.splitlines() if "ERROR" in line or "CRITICAL" in line)
    assert line.endswith(
        "REP_TIMEOUT is 'soon': it must be a number of seconds above 0. The crawl does not start."
    )
    assert "Traceback" not in ended.stderr
    assert "it crawls" not in ended.stderr
