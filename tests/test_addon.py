from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from scrapy import Spider
from scrapy.core.downloader.handlers.ftp import FTPDownloadHandler as BuiltInHandler
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltIn
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from scrapy_rep import Addon, AnswerMiddleware, PageDirectivesMiddleware, RobotsTxtMiddleware
from scrapy_rep.fetch.ftp import FTPDownloadHandler
from scrapy_rep.frontier.queue import OriginPriorityQueue, PriorityFirstQueue

BUILT_IN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
OURS = "scrapy_rep.RobotsTxtMiddleware"
THEIRS = "scrapy.downloadermiddlewares.retry.RetryMiddleware"
MIDDLEWARES, PAGES = "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"
QUEUE, HANDLERS = "SCHEDULER_PRIORITY_QUEUE", "DOWNLOAD_HANDLERS"


class OwnQueue(ScrapyPriorityQueue):
    pass


class OtherHandler(BuiltInHandler):
    pass


def loaded(value: Any) -> Any:
    """The value of a setting, with objects in place of their import paths."""
    if isinstance(value, dict):
        return {loaded(key): each for key, each in value.items()}
    return load_object(value) if isinstance(value, str) and "." in value else value


@pytest.mark.parametrize(
    ("name", "written", "expected"),
    [
        ("ROBOTSTXT_OBEY", None, True),
        ("ROBOTSTXT_OBEY", True, True),
        ("ROBOTSTXT_OBEY", False, False),
        (QUEUE, None, OriginPriorityQueue),
        (QUEUE, "scrapy.pqueues.DownloaderAwarePriorityQueue", OriginPriorityQueue),
        (QUEUE, ScrapyPriorityQueue, PriorityFirstQueue),
        (QUEUE, PriorityFirstQueue, PriorityFirstQueue),
        (QUEUE, OwnQueue, OwnQueue),
        (MIDDLEWARES, {Spider: 7}, {Spider: 7, BuiltIn: None, RobotsTxtMiddleware: 100}),
        (MIDDLEWARES, {Spider: None}, {Spider: None, BuiltIn: None, RobotsTxtMiddleware: 100}),
        (MIDDLEWARES, {OURS: 90}, {BuiltIn: None, RobotsTxtMiddleware: 90}),
        (MIDDLEWARES, {OURS: None}, {BuiltIn: None, RobotsTxtMiddleware: None}),
        (MIDDLEWARES, {BUILT_IN: 350}, {BuiltIn: None, RobotsTxtMiddleware: 350}),
        (MIDDLEWARES, {BUILT_IN: 0}, {BuiltIn: None, RobotsTxtMiddleware: 0}),
        (PAGES, {THEIRS: 900}, {RetryMiddleware: 900, PageDirectivesMiddleware: 40}),
        (PAGES, {"scrapy_rep.PageDirectivesMiddleware": 60}, {PageDirectivesMiddleware: 60}),
        (PAGES, {PageDirectivesMiddleware: None}, {PageDirectivesMiddleware: None}),
        (HANDLERS, {"s3": None}, {"s3": None, "ftp": FTPDownloadHandler}),
        (HANDLERS, {"ftp": BuiltInHandler}, {"ftp": FTPDownloadHandler}),
        (HANDLERS, {"ftp": OtherHandler}, {"ftp": OtherHandler}),
        (HANDLERS, {"ftp": None}, {"ftp": None}),
    ],
)
def test_what_the_add_on_makes_of_a_setting(name: str, written: Any, expected: Any) -> None:
    settings = Settings()
    settings.setdict({} if written is None else {name: written}, priority="project")
    Addon().update_settings(settings)
    found = settings.getdict(name) if isinstance(expected, dict) else settings[name]
    both = {AnswerMiddleware: 990} if name == MIDDLEWARES else {}
    assert loaded(found) == ({**expected, **both} if both else expected)


def test_a_setting_of_the_command_line_keeps_its_priority() -> None:
    settings = Settings()
    settings.set(MIDDLEWARES, {THEIRS: 1}, priority="cmdline")
    Addon().update_settings(settings)
    assert settings.getpriority(MIDDLEWARES) == 40
    assert loaded(settings.getdict(MIDDLEWARES))[RobotsTxtMiddleware] == 100


def test_what_does_not_change_is_not_set() -> None:
    settings = Settings()
    Addon().update_settings(settings)
    with patch.object(settings, "set") as set_:
        Addon().update_settings(settings)
    assert [call.args[0] for call in set_.call_args_list] == ["ROBOTSTXT_OBEY"]


def test_the_repr_names_the_add_on() -> None:
    assert repr(Addon()) == "scrapy_rep.Addon()"  # Scrapy logs it: "Enabled addons"


WITHOUT_ENGINE = """
import scrapy, scrapy.crawler, scrapy.core.scheduler, scrapy_rep
settings = {"ADDONS": {"scrapy_rep.Addon": 500}, "REP_REPORT": "r.json"}
settings |= {"TWISTED_REACTOR_ENABLED": False, "TELNETCONSOLE_ENABLED": False}
settings |= {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
crawler = scrapy.crawler.Crawler(type("Named", (scrapy.Spider,), {"name": "named"}), settings)
crawler.settings["TWISTED_REACTOR"] = None
crawler._apply_settings()
scrapy_rep.RobotsTxtMiddleware.from_crawler(crawler)
scheduler = scrapy.core.scheduler.Scheduler.from_crawler(crawler)
scheduler.open(scrapy.Spider("named"))
scheduler.enqueue_request(scrapy.Request("http://a.example/"))
assert scheduler.next_request() is not None
"""


def test_what_is_made_before_a_crawl_needs_neither_an_engine_nor_a_loop(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", WITHOUT_ENGINE], cwd=tmp_path, env=env, check=True)
