"""What the checks of workers and of Scrapy's own tests find in what they read."""

from types import SimpleNamespace
from typing import Any

import pytest

from checks import scrapy_suite, workers
from checks._worker_site import Kind, Received

HOSTS = {"plain": Kind(), "paced": Kind(delay=1), "late": Kind(robots=[503, 200])}
PAGES = [
    Received("plain", "/robots.txt", 0, 0.1, "w0", 200),
    Received("plain", "/1", 0.2, 0.3, "w0", 200),
    Received("paced", "/1", 0.2, 0.3, "w0", 200),
    Received("paced", "/2", 1.3, 1.4, "w1", 200),
    Received("late", "/robots.txt", 0, 0.1, "w0", 503),
    Received("late", "/robots.txt", 0.2, 0.3, "w0", 200),
]


def judged(*received: Received, **values: Any) -> dict[str, float]:
    """Return the figures that exceed their limit."""
    sites = {host: SimpleNamespace(kind=kind) for host, kind in HOSTS.items()}
    crawl: Any = SimpleNamespace(
        sites=SimpleNamespace(received=received, by_host=sites),
        expected={("plain", "/1"), ("paced", "/1"), ("paced", "/2")},
        reason="finished",
        twice=0,
        excused=[],
        silent=None,
    )
    vars(crawl).update(values)
    rows = [*workers._pages(crawl), *workers._politeness(crawl)]
    return {row.name: row.figure for row in rows if not row.ok}


def plain(path: str, start: float = 9, end: float = 10, status: int = 200) -> Received:
    return Received("plain", path, start, end, "w1", status)


def test_a_crawl_in_order_breaks_no_limit() -> None:
    assert judged(*PAGES) == {}


@pytest.mark.parametrize(
    ("received", "broken"),
    [
        ([plain("/1")], {"requested again": 1}),
        ([plain("/private/1")], {"disallowed and requested": 1}),
        ([plain("/robots.txt")], {"robots.txt requested again": 1}),
        ([Received("paced", "/404", 2.3, 2.4, "w1", 404)], {"below their Crawl-delay": 1}),
        ([plain("/404", 9 + n / 100, 10, 404) for n in range(9)], {"at once to a host": 9}),
        ([plain("/7", 9, 9.1, 429), plain("/7", 12.5, 12.6)], {"within a Retry-After": 1}),
    ],
)
def test_each_limit_is_seen(received: list[Received], broken: dict[str, float]) -> None:
    assert judged(*PAGES, *received) == broken


def test_a_page_that_was_only_refused_is_lost() -> None:
    refused = plain("/1", 0.2, 0.3, 429)
    assert judged(*(refused if each == PAGES[1] else each for each in PAGES)) == {
        "never requested": 1
    }


def test_an_event_excuses_what_its_worker_does_not_finish() -> None:
    again = [plain("/1"), plain("/robots.txt")]
    assert judged(*PAGES, *again, twice=1, excused=[(-1, 1, "w0")]) == {}
    assert judged(*PAGES, *again, twice=1, excused=[(-1, 1, "w1")]) == {
        "robots.txt requested again": 1
    }


def test_a_worker_that_stood_still_sends_nothing_before_redis_answers() -> None:
    own = [plain(f"/404/{number}", 20 + number / 10, 20 + number / 10, 404) for number in range(17)]
    assert judged(*PAGES, *own, silent=(19, 23, "w1")) == {"requested before it had renewed": 17}
    assert judged(*PAGES, *own, silent=(19, 23, "w0")) == {}


# What ``checks/scrapy_suite.py`` reads. The check itself needs a package index


OUTPUT = """\
.F.E [100%]
=========================== short test summary info ============================
FAILED tests/test_crawl.py::TestCrawl::test_delay - assert 0 == 1
FAILED tests/test_commands.py::TestHelp::test_bad[-m-no - value] - assert 0
ERROR tests/test_link.py::TestLink::test_hash
2 failed, 4778 passed, 431 skipped, 22 xfailed, 1 error in 800.57s (0:13:20)
"""
TOX = """\
[tox]
envlist = docs
[test-requirements]
deps =
    attrs
    sybil >= 1.3.0  # https://example.com/#1
[testenv]
deps =
    {[test-requirements]deps}
"""


def test_the_summary_of_pytest() -> None:
    count, failures = scrapy_suite.outcome(OUTPUT)
    assert count == 2 + 4778 + 22 + 1
    assert failures == {
        "tests/test_crawl.py::TestCrawl::test_delay": "assert 0 == 1",
        "tests/test_commands.py::TestHelp::test_bad[-m-no - value]": "assert 0",
        "tests/test_link.py::TestLink::test_hash": "",
    }


def test_the_requirements_of_scrapys_tests() -> None:
    requirements = scrapy_suite.requirements(TOX)
    assert requirements == ["attrs", "sybil >= 1.3.0", "pytest-timeout", "pytest-xdist"]


def test_a_test_is_expected_to_fail_with_any_parameters() -> None:
    assert scrapy_suite.expected("tests/test_engine.py::TestEngine::test_crawler[a]")
    assert not scrapy_suite.expected("tests/test_engine.py::TestEngine::test_crawler_itemerror")
