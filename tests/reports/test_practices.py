from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from scrapy_rep.reports.page import html_text
from scrapy_rep.reports.records import Counts, OriginReport, Report, Run, Seen
from testing import report_samples

from .parsed_page import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterable

MET, NOT_MET, NOT_TOLD = "Met", "Not met", "Not for a machine to tell"

REP = "The Robots Exclusion Protocol is respected"
DIRECTIVES = "X-Robots-Tag is respected"
USER_AGENT = "The user agent identifies the crawler, with a URL that describes it"
SPEED = "The speed is limited, as the robots.txt asks"
FILE_CACHE = "Caching directives of robots.txt files are supported"
PAGE_CACHE = "Caching directives of pages are supported"


class Point(NamedTuple):
    section: str
    title: str
    judgment: str
    evidence: list[str]


def points(report: Report) -> Iterable[Point]:
    for row in tree_of(html_text(report)).xpath("//table[@class='practice']/tbody/tr"):
        section, title, judgment, _ = (cell.text_content().strip() for cell in row)
        yield Point(section, title, judgment, [each.text_content() for each in row.xpath(".//p")])


def found(report: Report) -> dict[str, Point]:
    return {point.title: point for point in points(report)}


def crawl(run: Run | None = None, **counts: int) -> Report:
    report = report_samples.empty(run or report_samples.run())
    totals: dict[str, Any] = counts
    report.totals = Counts(9, 9, **totals)
    return report


def test_each_section_of_the_draft_has_a_point() -> None:
    every = list(points(report_samples.report()))
    assert sorted({point.section for point in every}) == ["2.1", "2.2", "2.3", "2.4", "2.5", "2.6"]
    assert all(point.evidence for point in every)


def test_what_a_crawl_cannot_show_is_not_judged() -> None:
    judged = {
        point.title for point in points(report_samples.report()) if point.judgment != NOT_TOLD
    }
    assert judged == {REP, USER_AGENT, SPEED, FILE_CACHE, PAGE_CACHE}


@pytest.mark.parametrize(
    ("report", "judgment", "evidence"),
    [
        (crawl(), MET, "Each of 9 requests was sent after a verdict that allows it."),
        (crawl(sent_disallowed=1), NOT_MET, "1 request went to disallowed URLs."),
        (
            crawl(final_url_disallowed=2, final_url_dropped=1),
            NOT_MET,
            "2 responses came from disallowed URLs, because a browser or a download handler "
            "followed a redirect. Dropped after that: 1.",
        ),
        (
            crawl(sent_exempt=2),
            NOT_TOLD,
            "2 requests had dont_obey_robotstxt and no check. The report does not know whether "
            "the sites agreed.",
        ),
    ],
)
def test_robots_txt(report: Report, judgment: str, evidence: str) -> None:
    point = found(report)[REP]
    assert point.judgment == judgment
    assert point.evidence[-1].strip() == evidence


@pytest.mark.parametrize(
    ("settings", "responses", "judgment", "evidence"),
    [
        ({}, 0, NOT_TOLD, "The record has no response with noindex or nofollow."),
        (
            {},
            4,
            NOT_TOLD,
            "4 responses had noindex or nofollow, in a header or in the page. 1 item or request "
            "was dropped because of it. The report does not know how the project uses the others.",
        ),
        (
            {"REP_NOINDEX": "'drop'", "REP_NOFOLLOW": "'drop'"},
            4,
            MET,
            "REP_NOINDEX and REP_NOFOLLOW are drop. 4 responses had noindex or nofollow, in a "
            "header or in the page. 1 item or request was dropped because of it.",
        ),
        (
            {"REP_NOINDEX": "'drop'"},
            0,
            NOT_TOLD,
            "The record has no response with noindex or nofollow.",
        ),
    ],
)  # fmt: skip
def test_page_directives(
    settings: dict[str, str], responses: int, judgment: str, evidence: str
) -> None:
    report = crawl(report_samples.run(settings=settings))
    origin = OriginReport("https://a.example", "a.example")
    origin.directives["nosnippet"] = Seen(7)
    if responses:
        origin.directives["noindex"] = Seen(responses, 1)
    report.origins.append(origin)
    point = found(report)[DIRECTIVES]
    assert (point.judgment, " ".join(point.evidence)) == (judgment, evidence)


@pytest.mark.parametrize(
    ("header", "tokens", "judgment"),
    [
        ("mybot/1 (+https://bot.example/about)", ["mybot"], MET),
        ("mybot/1 (bot@bot.example)", ["mybot"], MET),
        ("mybot/1 (x@y@bot.example)", ["mybot"], MET),
        ("mybot/1", ["mybot"], NOT_MET),
        (f"mybot/1 {'a' * 99_000}", ["mybot"], NOT_MET),
        ("Scrapy/2.19.0 (+https://scrapy.org)", ["Scrapy"], NOT_MET),
        ("1.0 (+https://bot.example/about)", [], NOT_MET),
    ],
)
def test_user_agent(header: str, tokens: list[str], judgment: str) -> None:
    run = report_samples.run(tokens=tokens, scrapy_settings={"USER_AGENT": header})
    point = found(crawl(run))[USER_AGENT]
    assert point.judgment == judgment
    assert header[:500] in point.evidence[0]


def test_the_user_agent_is_not_judged_without_the_header() -> None:
    run = report_samples.run(scrapy_settings={})
    point = found(crawl(run))[USER_AGENT]
    assert point.judgment == NOT_TOLD
    assert point.evidence[-1].endswith("does not have the header of the requests.")


def test_speed() -> None:
    point = found(report_samples.report())[SPEED]
    assert point.judgment == MET
    assert point.evidence[0] == (
        "5 hosts had a delay. Of 187 gaps between requests, 0 were shorter than the delay."
    )
    assert found(report_samples.troubled())[SPEED].judgment == NOT_MET
    point = found(crawl())[SPEED]
    assert point.judgment == NOT_TOLD


def test_the_speed_of_a_crawl_that_does_not_show_what_it_sends() -> None:
    report = report_samples.report()
    report.runs[0].sent_is_known = False
    report.limits.hosts_left_out = 3
    point = found(report)[SPEED]
    assert point.judgment == NOT_TOLD
    assert point.evidence[-2] == "3 requests are not in the record."
    report.hosts[1].too_short = 1
    assert found(report)[SPEED].judgment == NOT_MET


def test_robots_txt_caching() -> None:
    assert found(report_samples.report())[FILE_CACHE].judgment == MET
    run = report_samples.run(settings={"REP_CONDITIONAL_GET": "False"})
    assert found(crawl(run))[FILE_CACHE].judgment == NOT_MET


@pytest.mark.parametrize(
    ("settings", "judgment"),
    [
        ({}, NOT_TOLD),
        ({"HTTPCACHE_ENABLED": "False"}, NOT_MET),
        ({"HTTPCACHE_ENABLED": "True", "HTTPCACHE_POLICY": "x.DummyPolicy"}, NOT_MET),
        ({"HTTPCACHE_ENABLED": "True", "HTTPCACHE_POLICY": "x.RFC2616Policy"}, MET),
        ({"HTTPCACHE_ENABLED": "1", "HTTPCACHE_POLICY": "x.RFC2616Policy"}, MET),
    ],
)
def test_page_caching(settings: dict[str, str], judgment: str) -> None:
    run = report_samples.run(scrapy_settings=settings)
    assert found(crawl(run))[PAGE_CACHE].judgment == judgment


def test_what_sites_demanded() -> None:
    report = crawl()
    report.origins.append(OriginReport("https://a.example", "a.example"))
    report.origins[0].terms = {"payment": Seen(2), "other": Seen(5)}
    evidence = " ".join(text for point in points(report) for text in point.evidence)
    assert "2 responses demanded a payment, and 0 responses a license." in evidence
