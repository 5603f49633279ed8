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
        pytest.param(None, OriginPriorityQueue, id="Scrapy's default"),
        pytest.param(
            "scrapy.pqueues.DownloaderAwarePriorityQueue", OriginPriorityQueue, id="by its path"
        ),
        pytest.param(ScrapyPriorityQueue, PriorityFirstQueue, id="priorities across hosts"),
        pytest.param(PriorityFirstQueue, PriorityFirstQueue, id="ours"),
        pytest.param(OwnQueue, OwnQueue, id="the project's own"),
    ],
)
def test_the_add_on_replaces_the_queues_of_scrapy_only(written: Any, expected: type) -> None:
    settings = with_addon(**({} if written is None else {"SCHEDULER_PRIORITY_QUEUE": written}))
    assert load_object(settings["SCHEDULER_PRIORITY_QUEUE"]) is expected


def places(settings: Settings) -> dict[type, int | None]:
    written = settings.getdict("DOWNLOADER_MIDDLEWARES")
    return {load_object(middleware): place for middleware, place in written.items()}


@pytest.mark.parametrize(
    ("written", "ours", "kept"),
    [
        pytest.param({}, 100, {}, id="nothing written"),
        pytest.param({THEIRS: 700, "scrapy.Spider": None}, 100, {THEIRS: 700}, id="others stay"),
        pytest.param({OURS: 90}, 90, {}, id="ours by its path"),
        pytest.param({OURS: None}, None, {}, id="ours switched off by hand"),
        pytest.param({BUILT_IN: 350}, 350, {}, id="Scrapy's moved: its place is taken"),
        pytest.param({BUILT_IN: 0}, 0, {}, id="Scrapy's at 0"),
    ],
)
def test_addon_takes_the_place_of_the_built_in(
    written: dict[Any, int | None], ours: int | None, kept: dict[str, int]
) -> None:
    found = places(with_addon(DOWNLOADER_MIDDLEWARES=written))
    assert found[BuiltInMiddleware] is None
    assert found[RobotsTxtMiddleware] == ours
    for path, place in kept.items():
        assert found[load_object(path)] == place


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
        pytest.param({}, 40, id="nothing written"),
        pytest.param({"scrapy_rep.PageDirectivesMiddleware": 60}, 60, id="ours by its path"),
        pytest.param({PageDirectivesMiddleware: None}, None, id="ours switched off by hand"),
    ],
)
def test_addon_adds_the_spider_middleware(written: dict[Any, int | None], place: int) -> None:
    theirs = "scrapy.spidermiddlewares.depth.DepthMiddleware"
    settings = with_addon(SPIDER_MIDDLEWARES={theirs: 900, **written})
    found = settings.getdict("SPIDER_MIDDLEWARES").items()
    assert {load_object(middleware): place for middleware, place in found} == {
        load_object(theirs): 900,
        PageDirectivesMiddleware: place,
    }


@pytest.mark.parametrize(
    ("written", "handler"),
    [
        pytest.param({}, FTPDownloadHandler, id="nothing written"),
        pytest.param({"ftp": BuiltInHandler}, FTPDownloadHandler, id="Scrapy's, by its class"),
        pytest.param({"ftp": OtherHandler}, OtherHandler, id="another"),
        pytest.param({"ftp": None}, None, id="switched off"),
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
