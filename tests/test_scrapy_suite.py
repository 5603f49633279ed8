"""What ``checks/scrapy_suite.py`` reads. The check itself needs a package index."""

from __future__ import annotations

from checks import scrapy_suite

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
