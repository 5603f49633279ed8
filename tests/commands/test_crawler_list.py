"""The list of well-known crawlers, and the page of the documentation that shows it."""

from __future__ import annotations

import json
import re

from scrapy_rep.commands.crawler_list import CrawlerRow, crawler_record, crawler_rows
from scrapy_rep.commands.crawlers import Compliance, Purpose, crawler_named, well_known_crawlers
from testing.crawlers_page import END, PAGE, START, page


def rows(*names: str) -> list[CrawlerRow]:
    return crawler_rows(crawler for name in names if (crawler := crawler_named(name)))


def test_rows() -> None:
    assert rows("Applebot", "AdsBot-Google", "Google-Safety", "FacebookBot", "Bytespider") == [
        ("Applebot", "Apple", "search, ai-use", "Applebot, Googlebot, *", "follows", "2026-09-22"),
        ("AdsBot-Google", "Google", "ads", "AdsBot-Google", "follows", "2026-10-02"),
        ("Google-Safety", "Google", "other", "none", "ignores", "2026-10-02"),
        ("FacebookBot", "Meta", "ai-training", "FacebookBot, *", "follows, says a list",
         "2026-08-22"),
        ("Bytespider", "ByteDance", "ai-training", "Bytespider, *", "unknown", "2026-08-22"),
    ]  # fmt: skip


def test_every_crawler_has_a_row_and_a_record() -> None:
    crawlers = well_known_crawlers()
    assert [row.name for row in crawler_rows(crawlers)] == [crawler.name for crawler in crawlers]
    records = [json.loads(json.dumps(crawler_record(crawler))) for crawler in crawlers]
    assert [record["name"] for record in records] == [crawler.name for crawler in crawlers]
    assert len({tuple(record) for record in records}) == 1


def test_record() -> None:
    crawler = crawler_named("AdsBot-Google-Mobile-Apps")
    assert crawler is not None
    assert crawler_record(crawler) == {
        "name": "AdsBot-Google-Mobile-Apps",
        "operator": "Google",
        "tokens": ["AdsBot-Google-Mobile-Apps", "AdsBot-Google"],
        "purposes": ["ads"],
        "robots_txt": "follows",
        "ignores_wildcard": True,
        "user_triggered": False,
        "note": "Retired.",
        "source": {
            "url": "https://developers.google.com/crawling/docs/crawlers-fetchers/"
            "google-special-case-crawlers",
            "seen": "2026-02-11",
            "kind": "operator",
        },
    }


def test_the_page_has_the_table() -> None:
    """If this fails: python -m testing.crawlers_page."""
    text = PAGE.read_text("utf-8")
    assert START in text
    assert END in text
    assert page(text) == text
    assert len(re.findall(r"^\| `", text.partition(START)[2], re.MULTILINE)) == len(
        well_known_crawlers()
    )


def test_the_page_explains_every_purpose_and_value() -> None:
    text = PAGE.read_text("utf-8")
    for value in (*Purpose, *Compliance):
        assert f"| `{value}` |" in text
