from __future__ import annotations

from typing import Any

import pytest
from scrapy.core.downloader.handlers.ftp import FTPDownloadHandler as BuiltInHandler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

from scrapy_rep import Addon, PageDirectivesMiddleware, RobotsTxtMiddleware
from scrapy_rep.fetch.ftp import FTPDownloadHandler
from scrapy_rep.frontier.queue import OriginPriorityQueue, PriorityFirstQueue

BUILT_IN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
OURS = "scrapy_rep.RobotsTxtMiddleware"
THEIRS = "scrapy.downloadermiddlewares.retry.RetryMiddleware"


QUEUE = "SCHEDULER_PRIORITY_QUEUE"


class OwnQueue(ScrapyPriorityQueue):
    pass


class OtherHandler(BuiltInHandler):
    pass


def with_addon(**project: Any) -> Settings:
    settings = Settings()
    settings.setdict(project, priority="project")
    Addon().update_settings(settings)
    return settings


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, OriginPriorityQueue),
        ({QUEUE: "scrapy.pqueues.DownloaderAwarePriorityQueue"}, OriginPriorityQueue),
        ({QUEUE: ScrapyPriorityQueue}, PriorityFirstQueue),
        ({QUEUE: PriorityFirstQueue}, PriorityFirstQueue),
        ({QUEUE: OwnQueue}, OwnQueue),
    ],
)
def test_the_add_on_replaces_the_queues_of_scrapy_only(written: Any, expected: type) -> None:
    assert load_object(with_addon(**written)[QUEUE]) is expected


def places(settings: Settings, name: str = "DOWNLOADER_MIDDLEWARES") -> dict[type, int | None]:
    return {load_object(path): place for path, place in settings.getdict(name).items()}


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ({}, 100),
        ({"scrapy.Spider": None}, 100),
        ({OURS: 90}, 90),
        ({OURS: None}, None),  # switched off by hand
        ({BUILT_IN: 350}, 350),  # its place is taken
        ({BUILT_IN: 0}, 0),
    ],
)
def test_addon_takes_the_place_of_the_built_in(written: Any, ours: int | None) -> None:
    found = places(with_addon(DOWNLOADER_MIDDLEWARES={THEIRS: 700, **written}))
    assert found[BuiltInMiddleware] is None
    assert found[RobotsTxtMiddleware] == ours
    assert found[load_object(THEIRS)] == 700


@pytest.mark.parametrize(
    ("project", "robotstxt_obey"),
    [({}, True), ({"ROBOTSTXT_OBEY": False}, False), ({"ROBOTSTXT_OBEY": True}, True)],
    ids=["not set", "off", "on"],
)
def test_robotstxt_obey_is_turned_on_unless_the_project_says_otherwise(
    project: dict[str, bool], robotstxt_obey: bool
) -> None:
    assert with_addon(**project).getbool("ROBOTSTXT_OBEY") is robotstxt_obey


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ({}, 40),
        ({"scrapy_rep.PageDirectivesMiddleware": 60}, 60),
        ({PageDirectivesMiddleware: None}, None),  # switched off by hand
    ],
)
def test_addon_adds_the_spider_middleware(written: dict[Any, int | None], place: int) -> None:
    theirs = "scrapy.spidermiddlewares.depth.DepthMiddleware"
    found = places(with_addon(SPIDER_MIDDLEWARES={theirs: 900, **written}), "SPIDER_MIDDLEWARES")
    assert found == {load_object(theirs): 900, PageDirectivesMiddleware: place}


@pytest.mark.parametrize(
    ("written", "handler"),
    [
        ({}, FTPDownloadHandler),
        ({"ftp": BuiltInHandler}, FTPDownloadHandler),
        ({"ftp": OtherHandler}, OtherHandler),
        ({"ftp": None}, None),
    ],
)
def test_addon_takes_the_place_of_scrapys_handler_for_ftp(
    written: dict[str, type | None], handler: type | None
) -> None:
    settings = with_addon(DOWNLOAD_HANDLERS={"s3": None, **written})
    found = settings.getwithbase("DOWNLOAD_HANDLERS")
    assert (found["ftp"], found["s3"]) == (handler, None)


def test_a_setting_of_the_command_line_keeps_its_priority() -> None:
    settings = Settings()
    settings.set("DOWNLOADER_MIDDLEWARES", {THEIRS: 1}, priority="cmdline")
    Addon().update_settings(settings)
    assert settings.getpriority("DOWNLOADER_MIDDLEWARES") == 40
    assert places(settings)[RobotsTxtMiddleware] == 100


def test_the_repr_names_the_add_on() -> None:
    assert repr(Addon()) == "scrapy_rep.Addon()"  # Scrapy logs it: "Enabled addons"
