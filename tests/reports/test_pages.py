"""The pages and the summaries of reports and surveys."""

from __future__ import annotations

import base64
import csv
import hashlib
import itertools
import re
import unicodedata
from collections.abc import Callable
from functools import cache
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from parsel import Selector
from scrapy import Request
from scrapy.http import Response

from scrapy_rep import Reason, Verdict
from scrapy_rep.logs import plural
from scrapy_rep.reports import pages, records
from scrapy_rep.reports.answers import REASONS
from scrapy_rep.reports.pages import percent, report_page, seconds, shown, survey_page
from scrapy_rep.reports.records import Deciding, OriginReport, Report, moment, utc
from testing import report_samples
from testing.hostile_texts import ATTACKS
from testing.report_samples import log, sent

AT = utc(report_samples.START)


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


def row_of(report: Report, origin: str) -> tuple[list[str], str]:
    """Return the cells of an origin, and its details."""
    page = tree_of(report_page(report))
    (body,) = page.xpath("//table[@class='origins']/tbody[tr/th/code[text()=$a]]", a=origin)
    (details,) = body.xpath(".//details")
    return [_text(cell) for cell in body.xpath("tr[1]/*")], _text(details)


def cards(report: Report) -> dict[str, list[str]]:
    """Return the paragraphs and list items of each answer, by the question."""
    page = tree_of(report_page(report))
    return {
        _text(card.find("h3")): [_text(each) for each in card.xpath(".//p | .//li")]
        for card in page.xpath("//article")
    }


DISALLOWED = "Was a disallowed page requested?"
EXCEPTIONS = "Were there exceptions, and who allowed them?"
WHO, EVIDENCE = "Who crawled, and what for?", "Where is the evidence?"
PACE = "Was the pace kept that sites asked for?"


def test_the_answers() -> None:
    found = cards(report_samples.report())
    assert [answer[0] for answer in found.values()] == [
        "catalog", "45 min", "14 sites", "No", "No", "Yes", "No site", "3 sites", "1 file"
    ]  # fmt: skip
    sha256 = report_samples.run().archive_sha256
    assert found[WHO][1:] == [
        "What for: not stated (REP_INTENDED_USES).",
        "catalogbot/1.2 (+https://bot.example/about); contact: https://bot.example/about",
        "scrapy-rep 0.1.0, Scrapy 2.19.0",
    ]
    assert found[EVIDENCE][1] == f"The archive is archive/catalog.warc.gz, SHA-256 {sha256}"


def test_the_answers_of_a_crawl_that_did_what_it_should_not() -> None:
    report = report_samples.troubled()
    found = cards(report)
    assert found[DISALLOWED] == [
        "Yes, 3",
        "337 requests were sent after a verdict that allows them.",
        "Exceptions: 1 request under an exception by mail; 3 requests with dont_obey_robotstxt.",
        "The record does not show each request that was sent.",
        "2 requests went to disallowed URLs.",
        "1 response came from disallowed URLs, because a browser or a download handler followed a "
        "redirect.",
        "2 by Disallow: /a, such as https://shop.example/a/1",
        "1 by Disallow: /a, such as https://news.example/a",
        "Not sent: at least 65 requests (16 %): 36 because of a rule of the robots.txt, 29 because "
        "the robots.txt was unreachable.",
        "By the record of the crawl itself, up to its last entry.",
    ]
    mine = ", ".join(f"https://news.example/a/mine/{number}" for number in range(3))
    assert found[EXCEPTIONS] == [
        "Yes",
        "3 requests to https://news.example, with dont_obey_robotstxt. Rule of the site: "
        f"Disallow: /a, line 2, group *. URLs: {mine}",
        "1 request to https://news.example, allowed by a local rule (they agreed (mail)). Rule of "
        "the site: Disallow: /a, line 2, group *. URL: https://news.example/a/ours",
    ]
    assert found[PACE][0] == "No, 2 gaps shorter than the delay that applied"
    assert (
        "news.example: asked 2 s, applied 2 s, smallest 0.4 s; of 26 gaps, 2 shorter than applied, "
        "2 shorter than asked."
    ) in found[PACE]
    cells, details = row_of(report, "https://shop.example")
    assert cells[1].endswith("Disallowed")
    assert "States of the robots.txt" in details
    assert "No robots.txt, status 404" in details
    text = text_of(report)
    assert "1 run did not end: the process was killed or still runs." in text
    assert "The file of run 2 is damaged: line 7 cannot be read." in text
    assert "120 requests to origins that are not listed. The totals are complete." in text


@pytest.mark.parametrize("sample", [report_samples.report, report_samples.troubled])
def test_page_and_terminal_say_the_same(sample: Callable[[], Report]) -> None:
    report = sample()
    lines = [line.split("\x1f")[-1] for line in pages.report_summary(report).splitlines()]
    shown_lines = [line for found in cards(report).values() for line in found]
    start = lines.index(shown_lines[0])
    assert lines[start : start + len(shown_lines)] == shown_lines
    page = tree_of(report_page(report))
    text = _text(page.find("body"))
    sentences, *tables = pages.report_summary(report).split("\n\n")
    for line in sentences.splitlines():
        assert " ".join(line.split("\x1f")[1].split()) in text
    (pace,) = (rows.splitlines()[1:] for rows in tables if rows.startswith("Time between"))
    (table,) = page.xpath("//table[contains(caption, 'gap is closest')]")
    cells = [[_text(cell) for cell in row] for row in table.iter("tr")]
    assert [line.replace(">", "").split("\x1f") for line in pace] == cells


def test_what_is_known_of_an_exception() -> None:
    report = report_samples.empty()
    report.totals.sent_exempt = 2  # to an origin that is not listed
    by_spider = "with dont_obey_robotstxt."
    assert cards(report)[EXCEPTIONS] == ["Yes", f"2 requests {by_spider}"]
    unknown = Deciding("exempt", sent=9, examples=["https://0.example/a"])
    free = Deciding("exempt", sent=1, detail=records.ALLOWED_ANYWAY)
    refused = Deciding("local-rule", False, detail="ours", dropped=1)
    report.origins = [
        OriginReport(f"https://{number}.example", "", deciding=[unknown, free, refused])
        for number in range(5)
    ]
    lines = cards(report)[EXCEPTIONS]
    assert lines[1:3] == [
        f"9 requests to https://0.example, {by_spider} Rule of the site: not known, the record has "
        "no robots.txt to judge by. Such as: https://0.example/a",
        f"1 request to https://0.example, {by_spider} Rule of the site: its robots.txt allows it.",
    ]
    assert lines[4:] == ["and 7 other exceptions"]


def test_a_page_without_rows_or_the_name_of_the_machine() -> None:
    report = report_samples.empty(report_samples.run(archive=None, machine="host-7"))
    text = text_of(report)
    assert "host-7" in records.json_text(report)
    assert "host-7" not in report_page(report)
    assert "The record has no two requests to one host to which a delay applied." in text
    assert "Files None is known." in text
    assert cards(not_shown())[PACE][0] == "Not known"


def test_the_states_in_their_order() -> None:
    """Amber is for those between the first and the last."""
    report = report_samples.empty()
    expected = {
        "rules": "Rules good", "empty": "Empty warn", "not-robots-txt": "Not a robots.txt warn",
        "challenge": "Challenge warn", "unavailable": "No robots.txt warn",
        "refused": "Refused warn", "redirect-loop": "Redirect loop warn",
        "disallowed": "All disallowed warn", "unreachable": "Unreachable bad",
        "unknown": "Not fetched plain",
    }  # fmt: skip
    report.origins = [OriginReport(f"https://{name}", name, name) for name in reversed(expected)]
    chips = tree_of(report_page(report)).xpath("//table[@class='origins']//span")
    found = [f"{_text(chip)} {chip.get('class')[6:]}" for chip in chips if chip.get("class")]
    assert found == list(reversed(expected.values()))
    states = ", ".join(f"1 {name.rpartition(' ')[0].lower()}" for name in expected.values())
    assert f"10 origins: {states}" in text_of(report)


def test_the_marks_of_an_origin_are_in_the_table_and_in_the_csv_file() -> None:
    made = log()
    sent(made, "https://e.example/", dont_obey_robotstxt=True)
    made.waited("https://h.example", "backoff", 1)
    paid = Request("https://p.example/", meta={"robotstxt": Verdict(True, Reason.NO_RULES)})
    made.answered(Response(paid.url, 402), paid)
    for _ in range(9):
        sent(made, "https://a.example/", Verdict(True, Reason.NO_RULES))
    sent(made, "https://d.example/", Verdict(False, Reason.VISIT_TIME))
    report = made.report()
    marks = {"d": "disallowed", "e": "exempt", "h": "held", "p": "paying", "a": ""}
    page = tree_of(report_page(report))
    links = page.xpath("//article/a/@data-mark")
    assert links == ["", "", "", "disallowed", "exempt", "", "held", "", ""]
    assert set(tree_of(report_page(report_samples.report())).xpath("//article/a/@data-mark")) == {
        ""
    }
    rows = page.xpath("//table[@class='origins']/tbody")
    assert [row.get("data-marks") for row in rows] == list(marks.values())
    assert [_text(row[0][1]) for row in rows] == [
        f"Not fetched {mark.capitalize()}".strip() for mark in marks.values()
    ]
    first, *lines = csv.DictReader(StringIO(records.csv_text(report)))
    assert (first["sent_disallowed"], first["state"], first["checked"]) == ("1", "unknown", "")
    assert [line["origin"][8] + line["marks"] for line in [first, *lines]] == [
        name + mark for name, mark in marks.items()
    ]
    checked = next(csv.DictReader(StringIO(records.csv_text(report_samples.report()))))
    assert (checked["status"], checked["checked"]) == ("503", "2026-11-22T08:30:05.100000+00:00")


@pytest.mark.parametrize(
    ("gaps", "widths", "parts"),
    [([300, 299], None, 10), ([300, 300], 11, 11), ([8_000, 3_000], 92, 92)],
)
def test_a_crawl_of_more_than_ten_minutes_has_a_time_axis(
    gaps: list[float], widths: int | None, parts: int
) -> None:
    made = log()
    for gap in (0, *gaps):
        made.clock.now += gap
        sent(made, "https://a.example/", Verdict(True, Reason.NO_RULES))
    report = made.report()
    timeline = report.timeline
    assert timeline is not None
    assert (len(timeline.requests), sum(timeline.requests)) == (parts, 3)
    assert timeline.seconds == (120 if sum(gaps) > 7_200 else 60)
    assert timeline.longest_gap == max(gaps)
    bars = tree_of(report_page(report)).xpath("//svg[@class='timeline']/rect")
    assert len(bars) == (widths or 0)


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
    cells, text = row_of(report, "https://news.example")
    assert cells == [
        "https://news.example", "Rules 200", "2026-11-22 08:30:01 UTC", "216 B", "22", "3", "22",
    ]  # fmt: skip
    for part in (
        "robots.txt https://news.example/robots.txt",
        "Result Rules, status 200",
        "Last checked 2026-11-22 08:30:01 UTC, from the site",
        "Pace asked for Crawl-delay: 2 Delay asked for 2 s Delay applied 2 s",
        "Disallow: /search line 3, group * disallowed 0 3 https://news.example/search?q=a",
        "no rule matches group * allowed",
        "Page directive noindex : 4 responses, such as https://news.example/item/0",
        "Use train-ai : granted by 0, refused by 4 responses",
        "Disallow: /search 3 dropped Disallow: /cart Allow: /search/about 1 sent",
    ):
        assert part in text, part


def version(result: str, status: int, sha256: str, size: int) -> records.Version:
    found: tuple[Any, ...] = (result, "rules", "site", status, None, [], None, sha256)
    return records.Version(*found, first_at=AT, last_at=AT, size=size)


def test_an_origin_of_which_little_is_known() -> None:
    report = report_samples.empty()
    fetched = version("unreachable", 503, "f" * 64, 9)
    report.origins = [
        OriginReport("https://a.example", "a.example"),
        OriginReport("https://b.example", "b.example", state="unreachable", versions=[fetched]),
    ]
    cells, details = row_of(report, "https://a.example")
    assert cells[1:4] == ["Not fetched", *["\N{EN DASH}"] * 2]
    assert "Its robots.txt was not fetched." in details
    cells, details = row_of(report, "https://b.example")
    assert cells[1:4] == ["Unreachable 503 (last good copy)", "2026-11-22 08:30:00 UTC", "9 B"]
    assert "The report does not have the text of this file." in details


def one_file(text: str, *lines: int) -> Report:
    """Return a report of one origin, whose file decided by some lines."""
    rules = [records.RuleText(False, "/", line) for line in lines]
    deciding = [Deciding("rules", False, "a", "*", rule, dropped=1) for rule in rules]
    versions = [version("rules", 200, "a", len(text))]
    report = report_samples.empty()
    report.origins = [OriginReport("https://a", "a", versions=versions, deciding=deciding)]
    report.files = {"a": records.RobotsFile(len(text), text)}
    return report


def test_of_a_long_file_the_first_lines_are_shown() -> None:
    report = one_file("".join(f"Disallow: /{number}\n" for number in range(1, 1001)), 3, 100, 999)
    lines = tree_of(report_page(report)).xpath("//ol[@class='file']/li")
    assert len(lines) == 300
    marked = [_text(line) for line in lines if line.find("mark") is not None]
    assert marked == ["Disallow: /3 1 dropped", "Disallow: /100 1 dropped"]
    assert "700 lines of 1,000 not shown." in text_of(report)
    report = one_file("", 1)
    report.origins[0].deciding_left_out = 4
    text = text_of(report)
    assert "4 requests by other rules and reasons." in text
    assert "The file is empty." in text


def test_what_does_not_fit_is_left_out_and_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_samples.troubled(30)
    monkeypatch.setattr(pages, "MAX_DETAILS", 20_000)
    page = tree_of(report_page(report))
    names = page.xpath("//table[@class='origins']/tbody/tr/th/code/text()")
    assert set(names[:2]) == {"https://shop.example", "https://news.example"}
    with_details = len(page.xpath("//table[@class='origins']//details"))
    assert 2 <= with_details < 20
    omitted = f"The details of {30 - with_details} origins: not on this page"
    assert omitted in text_of(report)


def test_all_reasons_have_a_text() -> None:
    assert set(REASONS) == {*Reason, records.EXEMPT, records.UNCHECKED}


def test_links_tables_charts_and_headings_are_sound() -> None:
    page = tree_of(report_page(report_samples.troubled()))
    parts = {f"#{part}" for part in page.xpath("//@id")}
    assert {link for link in page.xpath("//a/@href") if link not in parts} == pages.LINKS
    assert page.xpath("//th[not(@scope)]") == []
    assert page.xpath("//table[not(.//th)]") == []
    assert page.xpath("//svg[not(@aria-hidden='true') and not(title/text())]") == []
    levels = [int(each.tag[1]) for each in page.xpath("//h1 | //h2 | //h3 | //h4")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


# The run


def not_shown() -> Report:
    """Return a crawl that does not show what it sends."""
    report = report_samples.report()
    report.runs[0].sent_is_known = False
    return report


@pytest.mark.parametrize(
    ("tokens", "agent", "answer"),
    [
        (["mybot"], "mybot/1 (+https://bot.example/about)", "contact: https://bot.example/about"),
        (["mybot"], "mybot/1 (x@y@bot.example)", "contact: y@bot.example"),
        (["mybot"], f"mybot/1 {'a' * 9_000}", "no contact"),
        (["Scrapy"], "Scrapy/2.19.0 (+https://scrapy.org)", "no contact"),
        ([], "1.0 (+https://bot.example/about)", "contact: https://bot.example/about"),
    ],
)
def test_who_crawled(tokens: list[str], agent: str, answer: str) -> None:
    run = report_samples.run(tokens=tokens, scrapy_settings={"USER_AGENT": agent})
    report = report_samples.empty(run)
    assert cards(report)[WHO][2].endswith(f"; {answer}")
    (kind,) = tree_of(report_page(report)).xpath("//article[@id='who']/p/@class")
    assert kind == ("answer plain" if tokens and answer != "no contact" else "answer warn")


# Surveys


def test_the_answers_and_the_lists() -> None:
    made = report_samples.survey("size", "crawl_delay")
    text = " ".join(" ".join(tree_of(survey_page(made)).itertext()).split())
    for part in (
        "This survey is not complete", "How many files are there? 2 among 2 sites.", "0 B", "UTC",
        "30 more are not shown.", "3 · 1 / 1 / 1",
    ):  # fmt: skip
        assert part in text
    assert "size\x1f0 B\x1f1 B\x1f2 B" in pages.survey_summary(made)
    assert "crawl delay\x1f0 s\x1f1 s\x1f2 s" in pages.survey_summary(made)
    assert "\nand 30 more" in pages.survey_summary(made)
    rows = tree_of(survey_page(report_samples.survey(" ", "\t"))).xpath("//th[@scope='row']")
    assert {row.text for row in rows} == {"(empty)"}


def test_the_bars_of_a_survey_run_to_the_largest() -> None:
    made = report_samples.survey("a", "b", "c")
    numbers = (40, 10, 5)
    made.sites = made.files = 200
    made.figures["features"] = [
        {"name": name, "number": number, "share": number / 200}
        for name, number in zip("abc", numbers, strict=True)
    ]
    page = tree_of(survey_page(made))
    (table,) = page.xpath("//table[@class='bars'][caption='Files with']")
    assert table.xpath(".//rect/@width") == ["100.00", "25.00", "12.50"]
    assert table.xpath(".//td[@class='axis']//span/text()") == ["0", "10 %", "20 %"]


def test_the_status_of_a_site_without_a_robots_txt_is_its_own() -> None:
    report = report_samples.empty()
    for status in (404, 410):
        versions = [version("unavailable", status, "", 0)]
        key = f"https://{status}.example"
        report.origins.append(OriginReport(key, key, state="unavailable", versions=versions))
        cells, details = row_of(report, key)
        assert cells[1] == f"No robots.txt {status}"
        assert f"Result No robots.txt, status {status}" in details


# What hostile sites send


def names_of(text: str) -> set[str]:
    """Return the elements and attributes of a page. checks/ compares them in a browser, too."""
    tree = tree_of(text)
    names = {str(each.tag) for each in tree.iter()}
    return names | {f"@{name}" for each in tree.iter() for name in each.attrib}


@cache
def usual_names() -> tuple[set[str], set[str]]:
    usual = report_page(report_samples.troubled())
    return names_of(usual), names_of(survey_page(report_samples.survey("a", "b", "c")))


@pytest.mark.parametrize("first", range(0, len(ATTACKS), 5))
@pytest.mark.no_cover
def test_no_text_becomes_an_element_or_an_attribute(first: int) -> None:
    """A page has five texts. Each is in two origins, one of which keeps some of its fields.

    The rows of a survey, too, may come from another program.
    """
    texts = [text for text in ATTACKS[first : first + 5] for _ in range(2)]
    report, other = (
        report_page(report_samples.hostile(texts)),
        survey_page(report_samples.survey(*texts)),
    )
    assert names_of(report) <= usual_names()[0]
    assert names_of(other) <= usual_names()[1]
    tree = tree_of(report)
    assert len(tree.xpath("//script")) == len(tree.xpath("//style")) == 1
    assert len(tree.xpath("//section")) == 5
    assert tree.xpath("//script/text()") == [str(pages.asset("page.js"))]
    assert len(tree_of(other).xpath("//section")) == 7
    summary = pages.survey_summary(report_samples.survey(*texts))
    assert len(summary.split("\n\n")) == 11
    for character in {*report, *other, *summary} - {"\n", "\t", "\x1f"}:
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}


# Templates


def of(template: str, **values: object) -> str:
    return pages.environment().from_string(template).render(values)


@given(st.text() | st.sampled_from(ATTACKS))
def test_a_text_is_never_markup(text: str) -> None:
    (element,) = tree_of(of('<p aria-label="{{ text }}">{{ text }}</p>', text=text)).find("body")
    assert (element.tag, element.attrib.keys()) == ("p", ["aria-label"])
    assert (element.text or "") == element.get("aria-label") == shown(text)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a\tb\n\x1b[2J\ud800", "a\tb\\n\\x1b[2J\\ud800"),
        ("שלום", "שלום"),
        ("x" * 3_000, "x" * 1_999 + "…"),
        (12, "12"),
    ],
)
def test_each_value_is_cut_and_visible(text: object, result: str) -> None:
    assert of("{{ text }}", text=text) == result


def test_links_lead_to_the_page_or_to_a_known_page() -> None:
    assert [pages.link(each) for each in ("#summary", *pages.LINKS)] == ["#summary", *pages.LINKS]
    for target in ("https://evil.example/", "javascript:alert(1)", "", "//x"):
        with pytest.raises(ValueError, match="not a link of a page"):
            pages.link(target)


def test_a_mistake_in_a_template_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        of("{{ nothing }}")
    with pytest.raises(ValueError, match="has an end tag"):
        pages.asset("templates/base.html")


def test_a_page_runs_and_loads_nothing_else() -> None:
    values = {"title": "<a>", "description": '"b', "script_name": "page.js"}
    made = pages.render("base.html", sections=[("answers", "Answers")], **values)
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
    ) in [("content", each.get("content")) for each in tree_of(made).iter("meta")]


# Numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (plural(2, "page was", "pages were"), "2 pages were"),
        *((plural(number, "gap"), text) for number, text in (
            (0, "0 gaps"), (1, "1 gap"), (1200, "1,200 gaps"),
        )),
        *((percent(*shares), text) for text, *shares in (
            ("\N{EN DASH}", 0, 0), ("0 %", 0, 5), ("100 %", 5, 5), ("33 %", 1, 3), ("5.0 %", 1, 20),
            ("< 0.1 %", 1, 100_000), ("> 99.9 %", 99_999, 100_000),
        )),
        *((pages.size(number), text) for number, text in (
            (0, "0 B"), (1_023, "1,023 B"), (4_300, "4.2 KiB"), (512_000, "500 KiB"),
        )),
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
