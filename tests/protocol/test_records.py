"""The records other than user-agent, allow and disallow."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.lint import lint
from scrapy_rep.protocol.parser import field_of
from scrapy_rep.protocol.record_reader import Records
from scrapy_rep.protocol.records import (
    CRAWL_DELAY,
    RECORD_TYPES,
    SITEMAP,
    CleanParam,
    RequestRate,
    Window,
)
from scrapy_rep.protocol.robotstxt import RobotsTxt

APART = b"""
Crawl-delay: 9
Content-Signal: search=yes, ai-train=no
User-agent: a
Crawl-delay: 1
User-agent: b
User-agent: B
Crawl-delay: 60
Request-rate: 1/10m 0600-0845
Request-rate: 2/1
Visit-time: 2200 0600
Content-Signal: ai-input=no
Disallow: /x
Crawl-delay: 61
User-agent: b
Crawl-delay: 62
Crawl-delay: soon
User-agent: c
Visit-time: tomorrow
"""


def test_records_end_a_run_of_user_agents_for_records_only() -> None:
    robots = RobotsTxt.parse(APART)
    assert [robots.crawl_delay(agent) for agent in ("a", "b", "c", "d")] == [1, 62, None, None]
    assert robots.request_rates("b") == (RequestRate(1, 600, Window(360, 525)), RequestRate(2, 1))
    assert robots.request_rate("b") == RequestRate(2, 1)
    assert robots.request_rate("a") is robots.request_rate("d") is None
    assert robots.request_rates("d") == ()
    assert robots.visit_time("b") == Window(1320, 360)
    assert robots.visit_time("c") is robots.visit_time("d") is None
    # Above any user-agent line, a Content-Signal holds for groups without one.
    assert robots.content_signals("/", "a") == {"search": True, "ai-train": False}
    assert robots.content_signals("/", "b") == {"ai-input": False}
    assert robots.content_signals("/", "d") == {"search": True, "ai-train": False}
    # Rules are not affected: for them, a and b are one run of user-agent lines.
    assert not robots.allowed("/x", "a")
    assert not robots.allowed("/x", "b")


def test_a_group_without_records_does_not_inherit_those_of_the_wildcard_group() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nCrawl-delay: 5\nUser-agent: a\nDisallow: /\n")
    assert robots.crawl_delay("a") is None
    assert robots.crawl_delay("b") == 5
    assert robots.crawl_delay(["b", "a"]) is None


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        ("10", 10), ("0", 0), ("0.5", 0.5), (".5", 0.5), ("1.", 1), ("nan", None), ("inf", None),
        ("-5", None), ("1e3", None), ("1_0", None), ("٣", None), ("", None), ("5 s", None),
        ("9" * 400, None), ("5 # seconds", 5),
    ],
)  # fmt: skip
def test_crawl_delay(value: str, delay: float | None) -> None:
    robots = RobotsTxt.parse(f"User-agent: *\nCrawl-delay: {value}".encode())
    assert robots.crawl_delay("a") == delay


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        ("1/10", (1, 10, None)), ("1/10s", (1, 10, None)), ("1/10M", (1, 600, None)),
        ("3/2h", (3, 7200, None)), ("1 / 1d", (1, 86400, None)),
        ("1/10m 0600-0845", (1, 600, (360, 525))), ("1/1 2300 0100", (1, 1, (1380, 60))),
        ("8/2m 07:00-21:00", (8, 120, (420, 1260))), ("1/1 07.00 21.00", (1, 1, (420, 1260))),
        ("1/1 07:00", None), ("1/1 25:00-26:00", None),
        ("0/10", None), ("1/0", None), ("1", None), ("1/10x", None), ("-1/10", None),
        ("1/10\u017f", None),  # a letter whose upper case is "S"
        ("1/10 0600", None), ("1/10 0660-0700", None), ("1/10 2500-0100", None), ("", None),
    ],
)  # fmt: skip
def test_request_rate(value: str, rate: tuple[int, int, Window | None] | None) -> None:
    robots = RobotsTxt.parse(f"User-agent: *\nRequest-rate: {value}".encode())
    assert robots.request_rate("a") == rate


@pytest.mark.parametrize(
    ("value", "window"),
    [
        ("0600-0845", (360, 525)), ("0600 0845", (360, 525)), ("0600 - 0845", (360, 525)),
        ("0000-2400", (0, 1440)), ("2200-0600", (1320, 360)), ("600-845", None),
        ("0600", None), ("0660-0700", None), ("0600-2401", None), ("06:00-08:45", (360, 525)),
        ("06.00 08:45", (360, 525)), ("0600-08.45", (360, 525)), ("06:60-08:45", None),
        ("6:00-8:45", None), ("06::00-08:45", None), ("06-08", None), ("06:00", None),
    ],
)  # fmt: skip
def test_visit_time(value: str, window: tuple[int, int] | None) -> None:
    robots = RobotsTxt.parse(f"User-agent: *\nVisit-time: {value}".encode())
    assert robots.visit_time("a") == window


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        (Window(360, 525), [360, 524.9], [359, 525, 0]),
        (Window(1320, 360), [1320, 1439, 0, 359], [360, 1319]),
        (Window(0, 1440), [0, 1439], []),
        (Window(600, 600), [0, 600, 1439], []),
    ],
)
def test_windows(window: Window, inside: list[float], outside: list[float]) -> None:
    assert all(window.contains(minute) for minute in inside)
    assert not any(window.contains(minute) for minute in outside)


OUTSIDE = """
Sitemap: https://other.example/s.xml
site-map: /relative.xml # here
Sitemap:
User-agent: *
Sitemap: http://[bad
Sitemap: https://other.example/s.xml
Host: www.example.com
Host: example.com
Clean-param: ref&sid /some*path
Clean-param: utm
Clean-param:
Noindex: /secret
Unknown: x
Disallow: /é
"""


def test_records_of_the_file() -> None:
    robots = RobotsTxt.parse(OUTSIDE.encode(), url="https://example.com/robots.txt")
    assert robots.sitemaps == ("https://other.example/s.xml", "https://example.com/relative.xml")
    assert robots.host == "www.example.com"
    assert robots.clean_params == (CleanParam(("ref", "sid"), "/some*path"), CleanParam(("utm",)))
    assert robots.noindex == ("/secret",)
    assert not robots.allowed("/é", "a")


def test_only_ascii_white_space_ends_a_parameter() -> None:
    body = "Clean-param: \x1c\nClean-param: a\xa0b\x1d \v/c\x85d\nClean-param: &"
    found = RobotsTxt.parse(body.encode()).clean_params
    assert found == (CleanParam(("\x1c",)), CleanParam(("a\xa0b\x1d",), "/c\x85d"), CleanParam(()))


def test_relative_sitemaps_are_not_resolved_without_a_url() -> None:
    robots = RobotsTxt.parse(OUTSIDE.encode())
    assert robots.sitemaps == ("https://other.example/s.xml", "/relative.xml", "http://[bad")
    assert RobotsTxt.parse(OUTSIDE.encode(), strict=True).sitemaps[0] == robots.sitemaps[0]


def test_a_file_without_records() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /")
    assert not robots.sitemaps + robots.noindex
    assert not robots.clean_params
    assert robots.host is None
    assert robots.crawl_delay("a") is None
    assert not robots.has_pacing
    assert not robots.has_usage
    assert RobotsTxt.parse(b"User-agent: a\nContent-Usage:").has_usage
    assert robots.content_signals("/", "a") == robots.content_usage("/", "a") == {}


USAGE = b"""
Content-Usage: bots=n
User-agent: *
Allow: /
Disallow: /private
Content-Usage: train-ai=n, search=y
Content-Usage: /open train-ai=y
Content-Usage: /open search=n
Content-Usage: /open train-ai=n
Content-Usage: /open/*.txt
Content-Usage: /bad train-ai=
Content-Usage: /x?u=/a search=y
User-agent: none
Disallow:
"""


@pytest.mark.parametrize(
    ("url", "agent", "stated"),
    [
        ("/", "a", {"train-ai": False, "search": True}),
        ("/private", "a", {}),
        ("/open", "a", {"train-ai": False, "search": False}),
        ("/open/a.txt", "a", {}),
        ("/bad", "a", {}),
        ("/x?u=%2Fa", "a", {"search": True}),
        ("/", "none", {}),
    ],
)
def test_content_usage_of_the_longest_path(url: str, agent: str, stated: dict[str, bool]) -> None:
    assert RobotsTxt.parse(USAGE).content_usage(url, agent) == stated


@pytest.mark.parametrize("name", ["crawl delay", "CrawlDelay", "Crawl Delay "])
def test_other_names_of_records(name: str) -> None:
    body = f"User-agent: *\n{name}: 7\nRequest rate: 1/5\nvisit TIME: 0600-0845".encode()
    robots = RobotsTxt.parse(body)
    assert robots.crawl_delay("a") == 7
    assert robots.request_rate("a") == RequestRate(1, 5)
    assert robots.visit_time("a") == Window(360, 525)
    assert robots.has_pacing
    strict = RobotsTxt.parse(body, strict=True)
    assert strict.crawl_delay("a") is None
    assert strict.request_rate("a") is None
    assert strict.visit_time("a") is None


def test_google_prefixes_apply_to_the_groups_of_records() -> None:
    robots = RobotsTxt.parse(b"User-agents: a\nCrawl-delay: 7\nSitemaps: http://h/s.xml\n\0")
    assert robots.crawl_delay("a") == 7
    assert robots.sitemaps == ("http://h/s.xml",)


def test_nul_octets_at_the_end_of_a_record_are_dropped() -> None:
    robots = RobotsTxt.parse(b"User-agent: a\0\nCrawl-delay: 7\0\0 # \0 why\nHost: h\0")
    assert robots.crawl_delay("a") == 7
    assert robots.host == "h"


SPELLINGS = [
    (row.field, spelling)
    for row in RECORD_TYPES
    for spelling in (row.field, *row.prefixes, *row.typos)
]


@pytest.mark.parametrize(("field", "spelling"), SPELLINGS)
def test_each_spelling_in_the_table_is_read(field: bytes, spelling: bytes) -> None:
    assert field_of(spelling) == field
    for name in (spelling, spelling.upper()):
        records = Records(b"\nUser-agent: a\n%b: 1/1" % name, strict=False)
        assert records.file._written or records.of(b"a")._written


def test_the_values_of_records_are_parsed_when_they_are_needed() -> None:
    records = Records(b"\nUser-agent: a\nCrawl-delay: 1\nCrawl-delay: x\nSitemap: /s", strict=True)
    assert not records.of(b"a")._combined
    assert [records.of(b"a").get(CRAWL_DELAY) for _ in range(2)] == [1, 1]
    assert records.of(b"a").get(SITEMAP) == ()  # it holds for the file
    assert records.file.get(SITEMAP) == ("/s",)
    assert records.of(b"b").get(CRAWL_DELAY) is None
    assert records.has_pacing
    assert not records.has_usage


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("Sitemap: /s", "error: the sitemap '/s' is no absolute URL; write its whole URL, such as"),
        (
            "Crawl-delay: {0}",
            "error: crawl-delay '{0}' cannot be read and is ignored; write seconds",
        ),
        (
            "Request-rate: 1",
            "error: request-rate '1' cannot be read and is ignored; write requests",
        ),
        (
            "Request-rate: 1/1 06:00-0800",
            "warning: the times of day of request-rate '1/1 06:00-080",
        ),
        ("Visit-time: 06:00-0800", "warning: the times of day of visit-time '06:00-0800' are not"),
        (
            "Content-Usage: /a\tA",
            "error: content-usage '/a\\tA' cannot be read, so nothing is stat",
        ),
    ],
)
def test_lint_reports_the_first_check_that_a_value_does_not_pass(line: str, finding: str) -> None:
    findings = lint(f"User-agent: *\n{line}".encode())
    assert [str(found)[: len(finding) + 8] for found in findings] == [f"line 2: {finding}"]


LICENSES = b"""
License: https://example.com/all.xml
License: /relative.xml # and a comment
License: https://example.com/all.xml
User-agent: a
License: https://other.example/a.xml
User-agent: b
License: http://[bad
License:
Disallow: /x
User-agent: a
License: https://other.example/more.xml
"""


@pytest.mark.parametrize(
    ("agent", "licenses"),
    [
        ("a", ("https://other.example/a.xml", "https://other.example/more.xml")),
        ("b", ("https://example.com/all.xml", "https://example.com/relative.xml")),
        ("c", ("https://example.com/all.xml", "https://example.com/relative.xml")),
    ],
)
def test_rsl_the_licenses_of_a_group_replace_those_above_all_groups(
    agent: str, licenses: tuple[str, ...]
) -> None:
    robots = RobotsTxt.parse(LICENSES, url="https://example.com/robots.txt")
    assert robots.licenses(agent) == licenses


def test_rsl_the_example_of_a_license_above_all_groups() -> None:
    body = b"License: https://your-website.com/license.xml\n\nUser-agent: Googlebot\nAllow: /\n"
    robots = RobotsTxt.parse(body)
    assert robots.licenses("Googlebot") == ("https://your-website.com/license.xml",)
    assert robots.licenses("mybot") == ("https://your-website.com/license.xml",)
    assert lint(body) == []


def test_relative_licenses_are_not_resolved_without_a_url() -> None:
    assert RobotsTxt.parse(b"License: /a.xml").licenses("a") == ("/a.xml",)
