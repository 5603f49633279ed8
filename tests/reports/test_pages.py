"""The pages and the summaries of reports and surveys."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import unicodedata
from functools import cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from parsel import Selector

from scrapy_rep import Reason
from scrapy_rep.reports import pages
from scrapy_rep.reports.answers import REASONS
from scrapy_rep.reports.pages import (
    asset,
    count,
    environment,
    link,
    moment,
    octets,
    percent,
    render,
    report_page,
    report_summary,
    seconds,
    shown,
    survey_page,
    survey_summary,
)
from scrapy_rep.reports.records import (
    ALLOWED_ANYWAY,
    EXEMPT,
    UNCHECKED,
    Counts,
    Deciding,
    OriginReport,
    Report,
    RobotsFile,
    RuleText,
    Run,
    Seen,
    Version,
    utc,
)
from testing import report_samples
from testing.hostile_texts import ATTACKS

if TYPE_CHECKING:
    from collections.abc import Iterator

AT = utc(report_samples.START)


class Parsed(HTMLParser):
    """The elements, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_pi = unknown_decl = handle_comment


def tree_of(text: str) -> Any:
    """Return the root element of a page, as lxml reads it."""
    return Selector(text=text, type="html", huge_tree=True).root


def text_of(report: Report) -> str:
    """Return what a reader sees, without the style and the script."""
    return _text(tree_of(report_page(report)).find("body"))


def _text(element: Any) -> str:
    for other in element.xpath(".//script | .//style"):
        other.drop_tree()
    return " ".join(" ".join(element.itertext()).split())


def row(report: Report, origin: str) -> list[str]:
    """Return the cells of an origin."""
    page = tree_of(report_page(report))
    (found,) = page.xpath(
        "//table[@class='origins']/tbody/tr[1][th/code[text()=$origin]]", origin=origin
    )
    return [_text(cell) for cell in found]


def details(report: Report, origin: str) -> str:
    """Return the details of an origin."""
    page = tree_of(report_page(report))
    (found,) = page.xpath("//tbody[tr/th/code[text()=$origin]]//details", origin=origin)
    return _text(found)


def cards(report: Report) -> dict[str, list[str]]:
    """Return the paragraphs and list items of each answer, by the question."""
    page = tree_of(report_page(report))
    return {
        _text(card.find("h3")): [_text(each) for each in card.xpath(".//p | .//li")]
        for card in page.xpath("//article")
    }


DISALLOWED = "Was a disallowed page requested?"
EXCEPTIONS = "Were there exceptions, and who allowed them?"
EVIDENCE = "Who crawled, and where is the evidence?"
PACE = "Was the pace kept that sites asked for?"


def test_the_answers() -> None:
    assert cards(report_samples.report()) == {
        DISALLOWED: [
            "No",
            "Each of 337 requests was sent after a verdict that allows it.",
            "By the record of the crawl itself.",
        ],
        "How many requests were sent?": [
            "337",
            "337 allowed; to 15 origins, with 15 requests for robots.txt files.",
            "Requests waited 118 times for the pace of a site (8 min 26 s in total), and 0 times "
            "for a robots.txt (0 s).",
        ],
        "How many were not sent, and why?": [
            "65 (16 %)",
            "36 a rule of the robots.txt",
            "29 the robots.txt was unreachable",
        ],
        EXCEPTIONS: ["No", "No request was exempt from the rules of its site."],
        PACE: [
            "Yes",
            "5 hosts had a delay, with 118 gaps between requests.",
            "Fastest: 1.05 s to jobs.example, asked 1 s.",
            "Slowest: 10.2 s to travel.example, asked 10 s.",
            "Fastest without a delay: 0.05 s to maps.example.",
        ],
        "Which sites were unreachable?": [
            "1",
            "29 requests were not sent because a robots.txt was unreachable.",
            "https://docs.example: status 503",
        ],
        EVIDENCE: [
            "catalog",
            "catalogbot/1.2 (+https://bot.example/about); contact: https://bot.example/about",
            "scrapy-rep 0.1.0, Scrapy 2.19.0",
            "Each robots.txt is in archive/catalog.warc.gz, SHA-256 "
            f"{report_samples.run().archive_sha256}",
            "To verify an archive, compare its hash with that of sha256sum FILE. warcio check -v "
            "FILE compares the hash of each record.",
            "The event logs of the crawl are the evidence: scrapy-rep report makes this report of "
            "them.",
        ],
    }


def test_the_answers_of_a_crawl_that_did_what_it_should_not() -> None:
    report = report_samples.troubled()
    answers = cards(report)
    assert answers[DISALLOWED] == [
        "Yes, 3",
        "2 requests went to disallowed URLs.",
        "1 response came from disallowed URLs, because a browser or a download handler followed a "
        "redirect. Dropped after that: 1.",
        "2 by Disallow: /a, such as https://shop.example/a/1",
        "1 by Disallow: /a, such as https://news.example/a",
        "By the record of the crawl itself, up to its last entry.",
    ]
    mine = ", ".join(f"https://news.example/a/mine/{number}" for number in range(3))
    assert answers[EXCEPTIONS] == [
        "Yes",
        "3 requests to https://news.example, allowed by the spider (dont_obey_robotstxt). Rule of "
        f"the site: Disallow: /a, line 2, group *. URLs: {mine}",
        "1 request to https://news.example, allowed by a local rule (they agreed (mail)). Rule of "
        "the site: Disallow: /a, line 2, group *. URL: https://news.example/a/ours",
    ]
    assert answers[PACE][0] == "No, 2 gaps too short"
    assert "news.example: 2 of 26, smallest 0.4 s, asked 2 s." in answers[PACE]
    text = text_of(report)
    assert "1 run did not end: the process was killed or still runs." in text
    assert "The file of run 2 is damaged: line 7 cannot be read." in text
    assert "120 requests to origins that are not listed: there are too many." in text
    assert row(report, "https://shop.example")[1].endswith("Disallowed request")


@pytest.mark.parametrize("report", [report_samples.report(), report_samples.troubled()])
def test_page_and_terminal_say_the_same(report: Report) -> None:
    lines = [line.split("\x1f")[-1] for line in report_summary(report).splitlines()]
    answers = [line for found in cards(report).values() for line in found]
    start = lines.index(answers[0])
    assert lines[start : start + len(answers)] == answers


@pytest.mark.parametrize(
    ("counts", "changes", "answer"),
    [
        (Counts(), {}, "No"),
        (Counts(sent_exempt=1), {}, "None that was checked"),
        (Counts(sent_unchecked=1), {}, "Not known"),
        (Counts(), {"sent_is_known": False}, "Not known"),
        (Counts(), {"damage": "line 7 cannot be read"}, "Not known"),
        (Counts(sent_disallowed=1), {"sent_is_known": False}, "Yes, 1"),
        (Counts(final_url_disallowed=1), {}, "Yes, 1"),
    ],
)
def test_whether_a_disallowed_page_was_requested(
    counts: Counts, changes: dict[str, Any], answer: str
) -> None:
    report = report_samples.empty(report_samples.run(**changes))
    report.totals = counts
    assert cards(report)[DISALLOWED][0] == answer


def test_what_is_known_of_an_exception() -> None:
    report = report_samples.empty()
    report.totals.sent_exempt = 2  # to an origin that is not listed
    by_spider = "allowed by the spider (dont_obey_robotstxt)."
    assert cards(report)[EXCEPTIONS] == ["Yes", f"2 requests, {by_spider}"]
    unknown = Deciding("exempt", sent=9, examples=["https://0.example/a"])
    free = Deciding("exempt", sent=1, detail=ALLOWED_ANYWAY)
    refused = Deciding("local-rule", False, detail="ours", dropped=1)
    report.origins = [
        OriginReport(f"https://{number}.example", "", deciding=[unknown, free, refused])
        for number in range(5)
    ]
    lines = cards(report)[EXCEPTIONS]
    assert lines[1:3] == [
        f"9 requests to https://0.example, {by_spider} Rule of the site: not known, its robots.txt "
        "was not in memory. Such as: https://0.example/a",
        f"1 request to https://0.example, {by_spider} Rule of the site: its robots.txt allows it.",
    ]
    assert lines[9:] == ["and 2 other exceptions"]


def test_a_crawl_without_contact_and_archive() -> None:
    agent = "Scrapy/2.19.0 (+https://scrapy.org)"
    run = report_samples.run(archive=None, scrapy_settings={}, user_agent=agent)
    lines = cards(report_samples.empty(run))[EVIDENCE]
    assert f"{agent}; no contact" in lines
    assert "No archive was kept (REP_ARCHIVE)." in lines
    killed = report_samples.empty(report_samples.run(archive_sha256=None))
    text = "Each robots.txt is in archive/catalog.warc.gz, whose SHA-256 is not known"
    assert text in cards(killed)[EVIDENCE]


def test_the_pace_is_not_known_without_what_was_sent() -> None:
    report = report_samples.report()
    report.runs[0].sent_is_known = False
    assert cards(report)[PACE][0] == "Not known"
    assert "In 1 run, the downloader does not show what it sends." in text_of(report)


def test_an_empty_report() -> None:
    text = text_of(report_samples.empty())
    for sentence in (
        "There are no origins.", "No rule decided.",
        "No site asked for a delay", "No site asked for one", "Each request of the spider was sent",
        "Nothing is left out.",
    ):  # fmt: skip
        assert sentence in text


def test_the_states_in_their_order() -> None:
    """Amber is for those between the first and the last."""
    report = report_samples.empty()
    names = [
        "rules", "empty", "not-robots-txt", "challenge", "unavailable", "refused", "redirect-loop",
        "disallowed", "unreachable", "unknown",
    ]  # fmt: skip
    report.origins = [OriginReport(f"https://{name}", name, name) for name in reversed(names)]
    page = tree_of(report_page(report))
    rows = page.xpath("//table[@class='bars']/tbody/tr")
    assert [(_text(row[0]), *row.xpath(".//rect/@class")) for row in rows] == [
        ("Rules", "good"), ("Empty", "warn"), ("Not a robots.txt", "warn"), ("Challenge", "warn"),
        ("No robots.txt (404)", "warn"), ("Refused (401, 403)", "warn"), ("Redirect loop", "warn"),
        ("All disallowed", "warn"), ("Unreachable", "bad"), ("Not fetched", "plain"),
    ]  # fmt: skip


def test_the_title_says_source_and_date() -> None:
    def title(page: str) -> str:
        return _text(tree_of(page).find(".//title"))

    report = report_samples.report()
    assert title(report_page(report)) == "Crawl report: catalog, 2026-11-22"
    report.runs[0].written_at = utc(report_samples.START + 86_400)
    assert title(report_page(report)) == "Crawl report: catalog, 2026-11-22 to 2026-11-23"
    survey = report_samples.survey("a", "b")
    assert title(survey_page(survey)) == "Survey of robots.txt files: a, b, a to b"


def test_a_row_and_its_details() -> None:
    report = report_samples.report()
    assert row(report, "https://news.example") == [
        "https://news.example", "Rules 200", "2026-11-22 08:30:01 UTC", "216 B", "22", "3", "22",
    ]  # fmt: skip
    text = details(report, "https://news.example")
    for part in (
        "robots.txt https://news.example/robots.txt",
        "Result Rules, status 200",
        "Last checked 2026-11-22 08:30:01 UTC, from the site",
        "Pace asked for Crawl-delay: 2 Delay applied 2 s",
        "Disallow: /search line 3, group * disallowed 0 3 https://news.example/search?q=a",
        "no rule matches group * allowed",
        "Page directive noindex : 4 responses, such as https://news.example/item/0",
        "Use train-ai : granted by 0, refused by 4 responses",
        "Disallow: /search 3 dropped Disallow: /cart Allow: /search/about 1 sent",
    ):
        assert part in text, part


def test_the_states_of_a_robots_txt() -> None:
    text = details(report_samples.troubled(), "https://shop.example")
    assert "States of the robots.txt" in text
    assert "No robots.txt (404)" in text


def test_an_origin_of_which_little_is_known() -> None:
    report = report_samples.empty()
    report.origins = [
        OriginReport("https://a.example", "a.example"),
        OriginReport(
            "https://b.example",
            "b.example",
            state="unreachable",
            versions=[
                Version("unreachable", "rules", "site", AT, AT, 503, sha256="f" * 64, octets=9)
            ],
            deciding=[Deciding("rules", False, "f" * 64, "*", RuleText(False, "/", 2))],
        ),
    ]
    assert row(report, "https://a.example")[1:4] == ["Not fetched", *["\N{EN DASH}"] * 2]
    assert "Its robots.txt was not fetched." in details(report, "https://a.example")
    assert row(report, "https://b.example")[1:4] == [
        "Unreachable 503 (last good copy)", "2026-11-22 08:30:00 UTC", "9 B",
    ]  # fmt: skip
    assert "The report does not have the text of this file." in details(report, "https://b.example")


def one_file(text: str, *lines: int) -> Report:
    """Return a report of one origin, whose file decided by some lines."""
    origin = OriginReport(
        "https://a.example",
        "a.example",
        versions=[Version("rules", "rules", "site", AT, AT, 200, sha256="a", octets=len(text))],
        deciding=[
            Deciding("rules", False, "a", "*", RuleText(False, "/", line), dropped=1)
            for line in lines
        ],
    )
    report = report_samples.empty()
    report.origins, report.files = [origin], {"a": RobotsFile(len(text), text)}
    return report


def file_lines(report: Report) -> list[tuple[str | None, str]]:
    page = tree_of(report_page(report))
    return [(item.get("value"), _text(item)) for item in page.xpath("//ol[@class='file']/li")]


def test_of_a_long_file_only_the_lines_around_the_deciding_ones_are_shown() -> None:
    text = "".join(f"Disallow: /{number}\n" for number in range(1, 301))
    report = one_file(text, 1, 100, 999)
    assert file_lines(report) == [
        ("1", "Disallow: /1 1 dropped"),
        ("2", "Disallow: /2"),
        ("3", "Disallow: /3"),
        ("98", "Disallow: /98"),
        ("99", "Disallow: /99"),
        ("100", "Disallow: /100 1 dropped"),
        ("101", "Disallow: /101"),
        ("102", "Disallow: /102"),
    ]
    assert "292 lines of 300 not shown." in text_of(report)


def test_a_long_file_that_did_not_decide_is_cut() -> None:
    report = one_file("Disallow: /\n" * 300)
    assert len(file_lines(report)) == pages.MAX_LINES


def test_details_that_are_too_long_leave_the_file_out(monkeypatch: pytest.MonkeyPatch) -> None:
    report = one_file("User-agent: *\nDisallow: /\n", 2)
    monkeypatch.setattr(pages.Details, "max_of_one", 500)
    assert "The robots.txt is too long for this page." in text_of(report)


def test_many_rules_of_one_origin_are_summed_up() -> None:
    report = one_file("", *range(1, 1 + 50 + 3))
    report.origins[0].deciding_left_out = 4
    assert "7 requests by other rules and reasons." in text_of(report)


def test_what_does_not_fit_is_left_out_and_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_samples.troubled(30)
    monkeypatch.setattr(pages, "MAX_DETAILS", 20_000)
    monkeypatch.setattr(pages, "ROWS_TOGETHER", 8)
    del report.origins[20:]
    page = tree_of(report_page(report))
    tables = page.xpath("//table[@class='origins']")
    assert [len(table.findall("tbody")) for table in tables] == [8, 8, 4]
    assert [_text(table.find("caption")) for table in tables] == [
        "Origins 1 to 8", "Origins 9 to 16", "Origins 17 to 20",
    ]  # fmt: skip
    names = page.xpath("//table[@class='origins']/tbody/tr/th/code/text()")
    assert set(names[:2]) == {"https://shop.example", "https://news.example"}
    with_details = len(page.xpath("//table[@class='origins']//details"))
    assert 2 <= with_details < 20
    text = text_of(report)
    assert f"The details of {20 - with_details} origins: not on this page" in text


def test_all_reasons_have_a_text() -> None:
    assert set(REASONS) == {*Reason, EXEMPT, UNCHECKED}


@pytest.mark.no_cover  # Coverage would take most of the time.
def test_a_page_of_many_origins_is_small() -> None:
    assert len(report_page(report_samples.large(2_000)).encode()) < 4_500_000


def test_each_link_leads_to_a_part_of_the_page() -> None:
    page = tree_of(report_page(report_samples.report()))
    links = page.xpath("//a/@href")
    parts = set(page.xpath("//@id"))
    assert [link for link in links if link.startswith("#") and link[1:] not in parts] == []
    assert [link for link in links if not link.startswith("#")] == [
        "https://datatracker.ietf.org/doc/html/draft-illyes-webbotauth-cbcp-01"
    ]


def test_each_table_has_headers_and_each_chart_a_text() -> None:
    page = tree_of(report_page(report_samples.troubled()))
    assert page.xpath("//th[not(@scope)]") == []
    assert page.xpath("//table[not(.//th)]") == []
    assert page.xpath("//svg[not(@aria-hidden='true') and not(title/text())]") == []
    levels = [int(each.tag[1]) for each in page.xpath("//h1 | //h2 | //h3 | //h4")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


# Best practice

MET, NOT_MET, NOT_TOLD, NOT_USED = "Met", "Not met", "Not for a machine to tell", "Not used"

REP = "The Robots Exclusion Protocol is respected"
DIRECTIVES = "X-Robots-Tag is respected"
USER_AGENT = "The user agent identifies the crawler, with a URL that describes it"
SPEED = "The speed is limited, as the robots.txt asks"
FILE_CACHE = "Caching directives of robots.txt files are supported"
PAGE_CACHE = "Caching directives of pages are supported"
BACKOFF = "The crawler backs off when a site has errors (5xx)"
METHODS = "Pages are requested with GET"


class Point(NamedTuple):
    section: str
    title: str
    judgment: str
    evidence: list[str]


def points(report: Report) -> Iterator[Point]:
    for row in tree_of(report_page(report)).xpath("//table[@class='practice']/tbody/tr"):
        section, title, judgment, _ = (cell.text_content().strip() for cell in row)
        yield Point(section, title, judgment, [each.text_content() for each in row.xpath(".//p")])


def crawl(run: Run | None = None, **counts: int) -> Report:
    report = report_samples.empty(run or report_samples.run())
    totals: dict[str, Any] = counts
    report.totals = Counts(9, 9, **totals)
    return report


def test_each_section_of_the_draft_has_a_point() -> None:
    every = list(points(report_samples.report()))
    assert sorted({point.section for point in every}) == ["2.1", "2.2", "2.3", "2.4", "2.5", "2.6"]
    assert all(point.evidence for point in every)


def test_what_a_crawl_cannot_show_is_folded_away() -> None:
    report = report_samples.report()
    judged = {point.title for point in points(report) if point.judgment in (MET, NOT_MET)}
    assert judged == {REP, USER_AGENT, SPEED, BACKOFF, METHODS, FILE_CACHE, PAGE_CACHE}
    folded = tree_of(report_page(report)).xpath("//section[@id='practice']/details//tr/th")
    titles = {_text(each) for each in folded if each.get("scope") == "row"}
    assert titles == {point.title for point in points(report)} - judged


def noindex_crawl(responses: int, **settings: str) -> Report:
    report = crawl(report_samples.run(settings=settings))
    origin = OriginReport("https://a.example", "a.example", directives={"nosnippet": Seen(7)})
    if responses:
        origin.directives["noindex"] = Seen(responses, 1)
    report.origins.append(origin)
    return report


def with_header(header: str, *tokens: str) -> Report:
    run = report_samples.run(tokens=list(tokens), scrapy_settings={"USER_AGENT": header})
    return crawl(run)


def with_settings(**settings: str) -> Report:
    return crawl(report_samples.run(scrapy_settings=settings))


def downloads(**counts: int) -> Run:
    return report_samples.run(downloads=counts)


def not_shown(too_short: int) -> Report:
    """Return a crawl that does not show what it sends."""
    report = report_samples.report()
    report.runs[0].sent_is_known = False
    report.left_out.hosts = 3
    report.hosts[1].too_short = too_short
    return report


DROPS = {"REP_NOINDEX": "'drop'", "REP_NOFOLLOW": "'drop'"}
SEEN = (
    "4 responses had noindex or nofollow, in a header or in the page. 1 item or request was "
    "dropped because of it."
)
URL = "(+https://bot.example/about)"


@pytest.mark.parametrize(
    ("title", "report", "judgment", "evidence"),
    [
        (REP, crawl(), MET, "Each of 9 requests was sent after a verdict that allows it."),
        (REP, crawl(sent_disallowed=1), NOT_MET, "1 request went to disallowed URLs."),
        (REP, crawl(final_url_disallowed=2, final_url_dropped=1), NOT_MET,
         "2 responses came from disallowed URLs, because a browser or a download handler followed "
         "a redirect. Dropped after that: 1."),
        (REP, crawl(sent_exempt=2), NOT_TOLD,
         "2 requests had dont_obey_robotstxt and no check. The report does not know whether the "
         "sites agreed."),
        (DIRECTIVES, noindex_crawl(0), NOT_TOLD,
         "The record has no response with noindex or nofollow."),
        (DIRECTIVES, noindex_crawl(4), NOT_TOLD,
         f"{SEEN} The report does not know how the project uses the others."),
        (DIRECTIVES, noindex_crawl(4, **DROPS), MET,
         f"REP_NOINDEX and REP_NOFOLLOW are drop. {SEEN}"),
        (DIRECTIVES, noindex_crawl(0, REP_NOINDEX="'drop'"), NOT_TOLD,
         "The record has no response with noindex or nofollow."),
        (USER_AGENT, with_header(f"mybot/1 {URL}", "mybot"), MET, f"address: mybot/1 {URL}"),
        (USER_AGENT, with_header("mybot/1 (bot@bot.example)", "mybot"), MET, "(bot@bot.example)"),
        (USER_AGENT, with_header("mybot/1 (x@y@bot.example)", "mybot"), MET, "mybot/1"),
        (USER_AGENT, with_header("mybot/1", "mybot"), NOT_MET, "of its own: mybot/1"),
        (USER_AGENT, with_header(f"mybot/1 {'a' * 99_000}", "mybot"), NOT_MET, "mybot/1 aaa"),
        (USER_AGENT, with_header("Scrapy/2.19.0 (+https://scrapy.org)", "Scrapy"), NOT_MET,
         "of its own: Scrapy/2.19.0"),
        (USER_AGENT, with_header(f"1.0 {URL}"), NOT_MET,
         "A user agent has no product token, so no robots.txt can name it."),
        (USER_AGENT, with_settings(), NOT_TOLD, "does not have the header of the requests."),
        (SPEED, report_samples.report(), MET,
         "5 hosts had a delay. Of 118 gaps between requests, 0 were shorter than the delay."),
        (SPEED, report_samples.troubled(), NOT_MET, "were shorter than the delay."),
        (SPEED, crawl(), NOT_TOLD, "No robots.txt asked for a delay."),
        (SPEED, not_shown(0), NOT_TOLD, "3 requests are not in the record."),
        (SPEED, not_shown(1), NOT_MET, "The record does not show each request that was sent."),
        (FILE_CACHE, report_samples.report(), MET, "A robots.txt is used as long as"),
        (FILE_CACHE, crawl(report_samples.run(settings={"REP_CONDITIONAL_GET": "False"})), NOT_MET,
         "for robots.txt files"),
        (BACKOFF, crawl(downloads(**{"response_status_count/503": 2}), backoffs=1), MET,
         "Sites asked for fewer requests 1 time. 0 origins had an unreachable robots.txt at the "
         "end, and 0 requests were not sent because of one. Responses by status: 503: 2."),
        (BACKOFF, crawl(report_samples.run(settings={"REP_BACKOFF": "False"})), NOT_MET,
         "REP_BACKOFF is off."),
        (METHODS, crawl(downloads(**{"request_method_count/GET": 4})), MET, "method: GET: 4."),
        (METHODS, crawl(downloads(**{"request_method_count/POST": 1})), NOT_MET, "POST: 1."),
        (METHODS, crawl(downloads()), NOT_TOLD, "does not have the methods of requests."),
        (PAGE_CACHE, with_settings(), NOT_USED, "HTTP cache is not on"),
        (PAGE_CACHE, with_settings(HTTPCACHE_ENABLED="False"), NOT_USED, "HTTP cache is not on"),
        (PAGE_CACHE, with_settings(HTTPCACHE_ENABLED="True", HTTPCACHE_POLICY="x.DummyPolicy"),
         NOT_USED, "does not use caching directives"),
        (PAGE_CACHE, with_settings(HTTPCACHE_ENABLED="True", HTTPCACHE_POLICY="x.RFC2616Policy"),
         MET, "with the policy of RFC 2616"),
        (PAGE_CACHE, with_settings(HTTPCACHE_ENABLED="1", HTTPCACHE_POLICY="x.RFC2616Policy"),
         MET, "with the policy of RFC 2616"),
    ],
)  # fmt: skip
def test_a_practice(title: str, report: Report, judgment: str, evidence: str) -> None:
    (point,) = (point for point in points(report) if point.title == title)
    assert point.judgment == judgment
    assert evidence in " ".join(" ".join(point.evidence).split())


def test_what_sites_demanded() -> None:
    report = crawl()
    report.origins.append(OriginReport("https://a.example", "a.example"))
    report.origins[0].terms = {"payment": Seen(2), "other": Seen(5)}
    evidence = " ".join(text for point in points(report) for text in point.evidence)
    assert "2 responses demanded a payment, and 0 responses a license." in evidence


# Surveys


def test_a_row_without_a_name_has_a_header() -> None:
    rows = tree_of(survey_page(report_samples.survey(" ", "\t"))).xpath("//th[@scope='row']")
    assert {row.text for row in rows} == {"(empty)"}


def test_the_answers_and_the_lists() -> None:
    made = report_samples.survey("size", "crawl_delay")
    text = " ".join(" ".join(tree_of(survey_page(made)).itertext()).split())
    for part in (
        "This survey is not complete", "How many files are there? 2 among 2 sites.", "0 B", "UTC",
        "30 more are not shown.", "3 · 1 / 1 / 1",
    ):  # fmt: skip
        assert part in text
    assert "size\x1f0 B\x1f1 B\x1f2 B" in survey_summary(made)
    assert "crawl delay\x1f0 s\x1f1 s\x1f2 s" in survey_summary(made)
    assert "\nand 30 more" in survey_summary(made)


# What hostile sites send


def names_of(text: str) -> set[str]:
    """Return the elements and attributes of a page, as two parsers see them."""
    parsed = Parsed(text)
    tree = tree_of(text)
    names = {each.tag for each in tree.iter()}
    names |= {f"@{name}" for each in tree.iter() for name in each.attrib}
    names |= {*parsed.elements, *(f"@{name}" for name, _ in parsed.attributes)}
    return {name.lower() for name in names}


@cache
def usual_names() -> tuple[set[str], set[str]]:
    usual = report_page(report_samples.troubled())
    return names_of(usual), names_of(survey_page(report_samples.survey("a", "b", "c")))


@pytest.mark.parametrize("texts", [*([each, each] for each in ATTACKS), ATTACKS])
def test_no_text_becomes_an_element_or_an_attribute(texts: list[str]) -> None:
    """The rows of a survey, too, may come from another program."""
    report, other = (
        report_page(report_samples.hostile(texts)),
        survey_page(report_samples.survey(*texts)),
    )
    assert names_of(report) <= usual_names()[0]
    assert names_of(other) <= usual_names()[1]
    tree = tree_of(report)
    assert len(tree.xpath("//script")) == len(tree.xpath("//style")) == 1
    assert len(tree.xpath("//section")) == 6
    assert tree.xpath("//script/text()") == [str(asset("page.js"))]
    assert len(tree_of(other).xpath("//section")) == 7
    summary = survey_summary(report_samples.survey(*texts))
    assert len(summary.split("\n\n")) == 13
    for character in {*report, *other, *summary} - {"\n", "\t", "\x1f"}:
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}


# Templates


def of(template: str, **values: object) -> str:
    return environment().from_string(template).render(values)


@given(st.text() | st.sampled_from(ATTACKS))
def test_a_text_is_never_markup(text: str) -> None:
    parsed = Parsed(of('<p aria-label="{{ text }}">{{ text }}</p>', text=text))
    assert parsed.elements == ["p"]
    assert [name for name, _ in parsed.attributes] == ["aria-label"]
    assert parsed.text == parsed.attributes[0][1] == shown(text)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a\tb", "a\tb"),
        ("a\nb\r", r"a\nb\r"),
        ("\x00\x1b[2J", r"\x00\x1b[2J"),
        ("a\u202eb", r"a\u202eb"),
        ("\ud800", r"\ud800"),
        ("שלום", "שלום"),
        ("x" * 3_000, "x" * 1_999 + "…"),
        (12, "12"),
    ],
)
def test_each_value_is_cut_and_visible(text: object, result: str) -> None:
    assert of("{{ text }}", text=text) == result


def test_a_name_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        of("{{ nothing }}")


def test_links_lead_to_the_page_or_to_a_known_page() -> None:
    assert [link(each) for each in ("#summary", *pages.LINKS)] == ["#summary", *pages.LINKS]
    for target in ("https://evil.example/", "javascript:alert(1)", "", "//x"):
        with pytest.raises(ValueError, match="not a link of a page"):
            link(target)


def test_a_page_runs_and_loads_nothing_else() -> None:
    made = render("base.html", title="<a>", description='"b', sections=[("answers", "Answers")],
                  script_name="page.js")  # fmt: skip
    assert made.startswith('<!DOCTYPE html>\n<html lang="en" dir="ltr">')
    assert "<title>&lt;a&gt;</title>" in made
    found = [
        re.findall(f"<{name}>(.*?)</{name}>", made, re.DOTALL)[0] for name in ("style", "script")
    ]
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in found]
    assert (
        "content",
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'",
    ) in Parsed(made).attributes


def test_an_asset_cannot_end_its_element() -> None:
    with pytest.raises(ValueError, match="has an end tag"):
        pages.asset("templates/base.html")


BARS = "{% import 'charts.html' as charts %}{{ charts.bars('c', ('A', 'B'), rows, whole) }}"
ROWS = [
    {"label": "<a>", "text": "4", "parts": [("sent", 3), ("broken", 1)]},
    {"label": " ", "text": "0", "parts": [("sent", 0), ("broken", 0)]},
    {"label": "c", "text": "1", "parts": [("sent", 1)]},
]


def test_bars() -> None:
    made = of(BARS, rows=ROWS, whole=None)
    assert re.findall('<rect x="(.*?)" width="(.*?)".*?class="(.*?)"', made) == [
        ("0.00", "75.00", "sent"),
        ("75.00", "25.00", "broken"),
        ("0.00", "25.00", "sent"),
    ]
    assert '<th scope="row">&lt;a&gt;</th>' in made
    assert '<th scope="row">(empty)</th>' in made
    assert re.findall("<span>(.*?)</span>", made) == ["0", "2", "4"]


def test_bars_of_shares_run_to_100_percent() -> None:
    made = of(BARS, rows=ROWS, whole=8)
    assert re.findall(' width="(.*?)" height="1"', made) == ["37.50", "12.50", "12.50"]
    assert re.findall("<span>(.*?)</span>", made) == ["0", "50 %", "100 %"]


def test_fewer_than_three_bars_are_a_sentence() -> None:
    assert of(BARS, rows=ROWS[:2], whole=None).split() == [
        "<p>&lt;a&gt;:",
        "4;",
        "(empty):",
        "0.</p>",
    ]


@pytest.mark.parametrize(
    ("number", "end"), [(1, 2), (3, 4), (5, 10), (10, 20), (41, 100), (200, 200)]
)
def test_an_axis_ends_at_a_round_number(number: int, end: int) -> None:
    assert pages.round_up(number) == end


# Numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (count(0, "gap"), "0 gaps"), (count(1, "gap"), "1 gap"), (count(1200, "gap"), "1,200 gaps"),
        (count(2, "page was", "pages were"), "2 pages were"),
        (percent(0, 0), "\N{EN DASH}"), (percent(0, 5), "0 %"), (percent(5, 5), "100 %"),
        (percent(1, 3), "33 %"), (percent(1, 20), "5.0 %"), (percent(1, 100_000), "< 0.1 %"),
        (percent(99_999, 100_000), "> 99.9 %"),
        (octets(0), "0 B"), (octets(1_023), "1,023 B"), (octets(4_300), "4.2 KiB"),
        (octets(512_000), "500 KiB"),
        (moment(utc(0)), "1970-01-01 00:00:00 UTC"),
        *((seconds(number), text) for number, text in (
            (0, "0 s"), (0.0001, "< 0.001 s"), (0.05, "0.05 s"), (0.25, "0.25 s"), (0.9999, "1 s"),
            (1, "1 s"), (2.345, "2.35 s"), (59.96, "60 s"), (99.97, "100 s"), (100, "1 min 40 s"),
            (119.9, "2 min"), (3_600, "1 h"), (7_500, "2 h 5 min"), (86_400, "1 d"),
            (100_000, "1 d 3 h"), (float("nan"), "unknown"), (float("inf"), "unknown"), (-5, "0 s"),
        )),
    ],
)  # fmt: skip
def test_numbers_and_times(text: str, expected: str) -> None:
    assert text == expected
