from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.settings import Settings as ScrapySettings
from scrapy.statscollectors import StatsCollector
from scrapy.utils.test import get_crawler

from scrapy_rep.frontier.clock import Clock
from scrapy_rep.reports import archive as module
from scrapy_rep.reports.archive import Archive, read
from scrapy_rep.settings import Settings

from .test_warc_records import EXCHANGE

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def opened(path: Path, **settings: object) -> tuple[Archive, StatsCollector]:
    stats = StatsCollector(get_crawler())
    read_settings = Settings.read(ScrapySettings(settings))
    return Archive(str(path), "visitor", read_settings, stats, Clock()), stats


async def test_a_response_after_the_end_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.warc.gz"
    archive, stats = opened(path)
    archive.record(EXCHANGE)
    await archive.close()
    await archive.close()
    archive.record(EXCHANGE)
    assert stats.get_value("robotstxt/archive/exchange_count") == 1
    assert stats.get_value("robotstxt/archive/lost_count/too_late") == 1
    assert len(list(read(path))) == 1
    [message] = caplog.messages
    assert "after the spider had closed" in message


async def test_a_response_while_the_interpreter_ends_is_counted(tmp_path: Path) -> None:
    archive, stats = opened(tmp_path / "a.warc.gz")
    archive._file._thread.shutdown()
    archive.record(EXCHANGE)
    await archive.close()
    assert stats.get_value("robotstxt/archive/lost_count/too_slow") == 1


async def test_an_exchange_that_cannot_be_written_as_a_record_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    archive, stats = opened(path)
    archive.record(EXCHANGE._replace(sent_at=float("nan")))
    archive.record(EXCHANGE)
    await archive.close()
    assert stats.get_value("robotstxt/archive/lost_count/write_failed") == 1
    assert len(list(read(path))) == 1


def test_a_user_agent_in_octets(tmp_path: Path) -> None:
    settings = Settings.read(ScrapySettings({"USER_AGENT": b"b\xfcr/1"}))
    assert module._info("visitor", settings)["http-header-user-agent"] == "bür/1"
