"""The records other than user-agent, allow and disallow."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.pacing import Pacing, describe
from scrapy_rep.protocol.parser import TYPOS, field_of
from scrapy_rep.protocol.records import MAX_CLEAN_PARAM_NAMES as MAX_NAMES
from scrapy_rep.protocol.records import RECORD_TYPES, CleanParam, Records, RequestRate, VisitTime
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


@pytest.mark.rule("Other records", "Content-Signal", "Groups of these records")
def test_records_end_a_run_of_user_agents_for_records_only() -> None:
    robots = RobotsTxt.parse(APART)
    assert [robots.crawl_delay(agent) for agent in ("a", "b", "c", "d")] == [1, 62, None, None]
    assert robots.request_rates("b") == (
        RequestRate(1, 600, VisitTime(360, 525)),
        RequestRate(2, 1),
    )
    assert robots.request_rate("b") == RequestRate(2, 1)
    assert robots.request_rate("a") is robots.request_rate("d") is None
    assert robots.request_rates("d") == ()
    assert robots.visit_time("b") == VisitTime(1320, 360)
    assert robots.visit_time("c") is robots.visit_time("d") is None
    # Above any user-agent line, a Content-Signal holds for groups without one.
    assert robots.content_signals("/", "a") == {"search": True, "ai-train": False}
    assert robots.content_signals("/", "b") == {"ai-input": False}
    assert robots.content_signals("/", "d") == {"search": True, "ai-train": False}
    # Rules are not affected: for them, a and b are one run of user-agent lines.
    assert not robots.allowed("/x", "a")
    assert not robots.allowed("/x", "b")


@pytest.mark.rule("Groups of these records")
def test_a_group_without_records_does_not_inherit_those_of_the_wildcard_group() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nCrawl-delay: 5\nUser-agent: a\nDisallow: /\n")
    assert robots.crawl_delay("a") is None
    assert robots.crawl_delay("b") == 5
    assert robots.crawl_delay(["b", "a"]) is None


@pytest.mark.rule("Crawl-delay")
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


@pytest.mark.rule("Request-rate")
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
def test_request_rate(value: str, rate: tuple[int, int, VisitTime | None] | None) -> None:
    robots = RobotsTxt.parse(f"User-agent: *\nRequest-rate: {value}".encode())
    assert robots.request_rate("a") == rate


@pytest.mark.rule("Visit-time")
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


@pytest.mark.rule("Sitemap", "Host, Noindex", "Clean-param")
def test_records_of_the_file() -> None:
    robots = RobotsTxt.parse(OUTSIDE.encode(), url="https://example.com/robots.txt")
    assert robots.sitemaps == ("https://other.example/s.xml", "https://example.com/relative.xml")
    assert robots.host == "www.example.com"
    assert robots.clean_params == (CleanParam(("ref", "sid"), "/some*path"), CleanParam(("utm",)))
    assert robots.records("noindex") == ("/secret",)
    assert not robots.allowed("/é", "a")


def test_only_ascii_white_space_ends_a_parameter() -> None:
    body = "Clean-param: \x1c\nClean-param: a\xa0b\x1d \v/c\x85d\nClean-param: &"
    found = RobotsTxt.parse(body.encode()).clean_params
    assert found == (CleanParam(("\x1c",)), CleanParam(("a\xa0b\x1d",), "/c\x85d"), CleanParam(()))


@pytest.mark.rule("Sitemap")
def test_relative_sitemaps_are_not_resolved_without_a_url() -> None:
    robots = RobotsTxt.parse(OUTSIDE.encode())
    assert robots.sitemaps == ("https://other.example/s.xml", "/relative.xml", "http://[bad")
    assert RobotsTxt.parse(OUTSIDE.encode(), strict=True).sitemaps[0] == robots.sitemaps[0]
    assert RobotsTxt.parse(b"License: /a.xml").licenses == ("/a.xml",)


def test_a_file_without_records() -> None:
    robots = RobotsTxt.parse(b"User-agent: *\nDisallow: /")
    assert not robots.sitemaps
    assert not robots.clean_params
    assert robots.host is None
    assert robots.crawl_delay("a") is None
    assert not robots.has_pacing
    assert not robots.has_usage
    assert RobotsTxt.parse(b"User-agent: a\nContent-Usage:").has_usage
    assert robots.content_signals("/", "a") == robots.content_usage("/", "a") == {}


@pytest.mark.rule("Spellings of other records")
@pytest.mark.parametrize("name", ["crawl delay", "CrawlDelay", "Crawl Delay "])
def test_other_names_of_records(name: str) -> None:
    body = f"User-agent: *\n{name}: 7\nRequest rate: 1/5\nvisit TIME: 0600-0845".encode()
    robots = RobotsTxt.parse(body)
    assert robots.crawl_delay("a") == 7
    assert robots.request_rate("a") == RequestRate(1, 5)
    assert robots.visit_time("a") == VisitTime(360, 525)
    assert robots.has_pacing
    strict = RobotsTxt.parse(body, strict=True)
    assert strict.crawl_delay("a") is None
    assert strict.request_rate("a") is None
    assert strict.visit_time("a") is None


@pytest.mark.rule("Longer names")
def test_google_prefixes_apply_to_the_groups_of_records() -> None:
    robots = RobotsTxt.parse(b"User-agents: a\nCrawl-delay: 7\nSitemaps: http://h/s.xml\n\0")
    assert robots.crawl_delay("a") == 7
    assert robots.sitemaps == ("http://h/s.xml",)


@pytest.mark.rule("NUL bytes")
def test_nul_bytes_at_the_end_of_a_record_are_dropped() -> None:
    robots = RobotsTxt.parse(b"User-agent: a\0\nCrawl-delay: 7\0\0 # \0 why\nHost: h\0")
    assert robots.crawl_delay("a") == 7
    assert robots.host == "h"


SPELLINGS = [
    *((row.field, row.field) for row in RECORD_TYPES),
    (b"sitemap", b"site-map"),
    *((field, spelling) for spelling, field in TYPOS.items()),
]


@pytest.mark.parametrize(("field", "spelling"), SPELLINGS)
def test_each_spelling_in_the_table_is_read(field: bytes, spelling: bytes) -> None:
    assert field_of(spelling) == field
    for name in (spelling, spelling.upper()):
        records = Records(b"\nUser-agent: a\n%b: 1/1" % name, strict=False)
        assert records.file._written or records.of(b"a")._written


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


@pytest.mark.rule("License")
@pytest.mark.parametrize("agent", ["a", "b", "c", "*", "", ["b", "a"]])
def test_rsl_a_license_is_for_every_crawler(agent: str | list[str]) -> None:
    robots = RobotsTxt.parse(LICENSES, url="https://example.com/robots.txt")
    names = ("example.com/all", "example.com/relative", "other.example/a", "other.example/more")
    assert robots.licenses == tuple(f"https://{name}.xml" for name in names)


@pytest.mark.rule("License")
def test_rsl_a_license_ends_no_run_of_user_agents() -> None:
    lines = "User-agent: a\nLicense: https://h/l.xml\nUser-agent: b\nCrawl-delay: 9"
    robots = RobotsTxt.parse(lines.encode())
    assert (robots.crawl_delay("a"), robots.crawl_delay("b")) == (9, 9)


HOUR = 3600


def pacing_of(*lines: str) -> Pacing | None:
    body = "\n".join(["User-agent: a", *lines])
    return Pacing.of(RobotsTxt.parse(body.encode()), ("a",))


@pytest.mark.parametrize(
    ("lines", "hour", "between", "until"),
    [
        (["Crawl-delay: 2"], 0, 2, 0), (["Request-rate: 1/10"], 0, 10, 0),
        (["Crawl-delay: 2", "Request-rate: 1/10"], 0, 10, 0),  # the slower holds
        (["Request-rate: 1/10 0600-0845", "Request-rate: 1/3"], 7, 10, 0),
        (["Request-rate: 1/10 0600-0845", "Request-rate: 1/3"], 9, 3, 0),
        (["Request-rate: 1/10 0600-0845"], 9, 0, 0),
        (["Visit-time: 0600-0845"], 5, 0, HOUR), (["Visit-time: 0600-0845"], 7, 0, 0),
        (["Visit-time: 0600-0845"], 9, 0, 21 * HOUR), (["Visit-time: 2200-0200"], 1, 0, 0),
    ],
)  # fmt: skip
def test_the_seconds_between_two_requests_and_until_the_visit_time(
    lines: list[str], hour: int, between: float, until: float
) -> None:
    pacing = pacing_of(*lines)
    assert pacing is not None
    assert pacing.seconds_between(hour * HOUR) == between
    assert pacing.seconds_until_visit_time(hour * HOUR) == until


def test_a_group_that_states_no_pace_has_none() -> None:
    assert pacing_of("Disallow: /") is None
    assert pacing_of("Crawl-delay: 0", "Request-rate: 0/1") is None


windows = st.one_of(
    st.just(""),
    st.tuples(*[st.sampled_from([0, 1, 60, 359, 360, 720, 1439, 1440])] * 2).map(
        lambda times: " " + "-".join(f"{time // 60:02}{time % 60:02}" for time in times)
    ),
)


@pytest.mark.rule("Request-rate")
@given(st.lists(st.tuples(st.integers(1, 9), windows), max_size=6))
def test_each_minute_the_slowest_rate_of_its_windows_holds(stated: list[tuple[int, str]]) -> None:
    lines = [f"Request-rate: 1/{seconds}{window}" for seconds, window in stated]
    body = "\n".join(["User-agent: a", *lines]).encode()
    rates = RobotsTxt.parse(body).request_rates("a")
    pacing = pacing_of(*lines, "Crawl-delay: 0.5")
    assert pacing is not None
    for minute in (0, 0.5, 1, 59.9, 60, 358, 359, 360, 500, 720, 1438.9, 1439, 1439.9):
        holding = [
            rate.seconds for rate in rates if rate.window is None or rate.window.contains(minute)
        ]
        assert pacing.seconds_between(minute * 60) == max([0.5, *holding])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["Crawl-delay: 0"], ""),
        (["Crawl-delay: 2.50"], "Crawl-delay: 2.5"),
        (["Request-rate: 1/10 2200-0045", "Visit-time: 0600-2400"],
         "Request-rate: 1/10s from 22:00 to 00:45 UTC, Visit-time: 06:00 to 24:00 UTC"),
        ([f"Request-rate: 1/{seconds}" for seconds in range(1, 100)],
         "Request-rate: 1/1s, Request-rate: 1/2s, Request-rate: 1/3s, and 96 more"),
    ],
)  # fmt: skip
def test_the_pace_as_text(lines: list[str], words: str) -> None:
    body = "\n".join(["User-agent: a", *lines])
    assert describe(RobotsTxt.parse(body.encode()), ("a",)) == words


SITE = "https://www.example.com"


def canonicalize(records: str, url: str) -> str:
    return RobotsTxt.parse(records.encode()).canonicalize(url)


# https://yandex.com/support/webmaster/en/robot-workings/clean-param
BOOK = "User-agent: Yandex\nClean-param: ref /some_dir/get_book.pl"
TWO_FORUMS = "Clean-param: s&ref /forum*/showthread.php"
TWO_SCRIPTS = "Clean-param: s /forum/index.php\nClean-param: s /forum/showthread.php"


@pytest.mark.rule("Clean-param")
@pytest.mark.parametrize(
    ("records", "url", "expected"),
    [
        # Yandex' examples
        (BOOK, "/some_dir/get_book.pl?ref=site_1&book_id=123", "/some_dir/get_book.pl?book_id=123"),
        (BOOK, "/other/get_book.pl?ref=site_1", "/other/get_book.pl?ref=site_1"),
        ("User-agent: Yandex\nClean-param: utm", "/any/page?utm=1", "/any/page"),  # no path
        ("Clean-param: s /forum/showthread.php", "/forum/showthread.php5?s=1",  # a prefix
         "/forum/showthread.php5"),
        ("Clean-param: sid /index.php", "/index.php?page=1&sid=2564126ebdec301c607e5df",
         "/index.php?page=1"),
        (TWO_FORUMS, "/forum_old/showthread.php?s=681498605&t=8243&ref=1311",
         "/forum_old/showthread.php?t=8243"),
        (TWO_FORUMS, "/news/showthread.php?s=1&t=8243", "/news/showthread.php?s=1&t=8243"),
        (TWO_SCRIPTS, "/forum/showthread.php?s=681498b9&t=8243", "/forum/showthread.php?t=8243"),
        ("Clean-param: sid&sort /forum/*.php", "/forum/a/b.php?sort=up&page=2&sid=1",
         "/forum/a/b.php?page=2"),
        ("Clean-param: someTrash&otherTrash", "/?otherTrash=1&q=a&someTrash", "/?q=a"),
        ("Clean-param: someTrash", "/?sometrash=1", "/?sometrash=1"),  # case-sensitive
        # Other cases
        ("Clean-param: a", "/x?b=2&a=1&c=3&a=4&b=1#part?a=1", "/x?b=2&c=3&b=1#part?a=1"),
        ("Clean-param: a", "/x?a", "/x"),
        ("Clean-param: a", "/x#?a=1", "/x#?a=1"),  # no query
        ("Clean-param: a", "/x?b=%41&&c=+#", "/x?b=%41&&c=+#"),  # not a character changes
        ("Clean-param: a", "/x?b=1;a=2", "/x?b=1;a=2"),  # Yandex names "&" alone
        ("Clean-param: a", "/x?b=1?a=2&a=3", "/x?b=1?a=2"),
        ("Clean-param: %61", "/x?a=1", "/x"),  # escapes are compared as in paths
        ("Clean-param: a[]&ö", "/x?a%5B%5D=1&%c3%b6=2&a%5b%5d=3&z=4", "/x?z=4"),
        ("Clean-param: a /é*z", "/%C3%A9/z?a=1", "/%C3%A9/z"),
        ("Clean-param: a x", "/x?a=1", "/x?a=1"),  # no path begins so
        ("Clean-param: a /x$", "/x?a=1", "/x?a=1"),  # "$" is no anchor for Yandex
        ("Clean-param: a /x$", "/x$y?a=1", "/x$y"),
        ("Clean-param: a /*y", "/x?b=y&a=1", "/x?b=y&a=1"),
        ("Clean-param: a /p\nClean-param: b /p\nClean-param: c", "/p?a&b&c&d", "/p?d"),
        ("User-agent: other\nClean-param: a\nUser-agent: *\nDisallow:", "/x?a", "/x"),  # for all
        ("", "/x?a=1", "/x?a=1"),
    ],
)  # fmt: skip
def test_yandex_what_is_removed(records: str, url: str, expected: str) -> None:
    assert canonicalize(records, SITE + url) == SITE + expected
    assert canonicalize(records, url) == expected


def test_names_beyond_the_limit_are_not_read() -> None:
    records = "Clean-param: " + "&".join(f"n{number}" for number in range(MAX_NAMES + 1))
    assert canonicalize(records, f"/?n{MAX_NAMES - 1}=1") == "/"
    assert canonicalize(records, f"/?n{MAX_NAMES}=1") == f"/?n{MAX_NAMES}=1"


def test_what_takes_too_many_steps_leaves_the_url_as_it_is() -> None:
    paths = [f"/{'*a' * 40}*{number}" for number in range(9_000)]
    records = "\n".join(f"Clean-param: sid {path}" for path in paths)
    url = "/" + "a" * 2000 + "?sid=1"
    assert canonicalize(records, url) == url


HOSTILE = {
    "64 KB of names": b"Clean-param: " + b"a&" * 32_000 + b"b /",
    "a path of 64 KB": b"Clean-param: a /" + b"*a" * 32_000,
    "20,000 lines": b"".join(b"Clean-param: a&n%d /%d*/x\n" % (n, n) for n in range(20_000)),
    "broken escapes": b"Clean-param: %zz&%2&a%C3 /%zz*%\nClean-param: a /%2",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.no_cover
def test_no_file_and_no_url_raises(body: bytes) -> None:
    robots = pickle.loads(pickle.dumps(RobotsTxt.parse(body)))
    assert robots.canonicalize("/?kept=1") == "/?kept=1"
    for url in ("/" + "a" * 5000 + "?" + "a=1&" * 5000, f"{SITE}/1/x?a&%zz=%&\ud800=1&a%C3=2"):
        once = robots.canonicalize(url)
        assert pickle.loads(pickle.dumps(robots)).canonicalize(once) == once
