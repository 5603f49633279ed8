"""RepRobotParser answers the questions that Scrapy asks of every parser."""

from __future__ import annotations

import pytest
from scrapy.robotstxt import RobotParser
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.test import get_crawler

from scrapy_rep import RepRobotParser

FILE = "User-agent: *\nDisallow: /\nAllow: /page\nUser-agent: UnicödeBöt\nDisallow: /Käyttäjä:"


def parse(body: bytes) -> RepRobotParser:
    return RepRobotParser.from_crawler(None, body)


@pytest.mark.parametrize(
    ("body", "agent", "url", "allowed"),
    [
        (b"", "*", "https://h/anything", True),
        (b"GIF89a\xd3\x00\xfe\x00\xa2", "*", "https://h/anything", True),
        (FILE.encode(), "*", "https://h/page", True),
        (FILE.encode(), "*", "https://h/other", False),
        (FILE.encode(), "UnicödeBöt", "https://h/other", True),
        (FILE.encode(), "UnicödeBöt", "https://h/K%C3%A4ytt%C3%A4j%C3%A4:", False),
        (FILE.encode(), "UnicödeBöt", "https://h/Käyttäjä:", False),
        (b"<body><pre>User-agent: *\nDisallow: /\n</pre>", "*", "https://h/a", False),
    ],
)
def test_allowed(body: bytes, agent: str, url: str, allowed: bool) -> None:
    parser = parse(body)
    assert parser.allowed(url, agent) is allowed
    assert parser.allowed(url.encode(), agent.encode()) is allowed


def test_crawl_delay() -> None:
    parser = parse(b"User-agent: *\nDisallow: /private\nCrawl-delay: 10\n")
    assert parser.crawl_delay("*") == 10.0
    assert parse(b"User-agent: *\nDisallow: /private\n").crawl_delay("*") is None


def test_scrapy_builds_it_from_a_crawler() -> None:
    body = b"User-agent: *\nDissallow: /\n"
    parser = build_from_crawler(RepRobotParser, get_crawler(), body)
    assert isinstance(parser, RobotParser)
    assert not parser.allowed("https://h/", "*")
