from __future__ import annotations

import itertools
import json
import re
import unicodedata
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep import Reason
from scrapy_rep.reports import page as module
from scrapy_rep.reports.answers import REASONS
from scrapy_rep.reports.events import ReasonText
from scrapy_rep.reports.page import html_text
from scrapy_rep.reports.pages import asset
from scrapy_rep.reports.records import (
    EXEMPT,
    UNCHECKED,
    Counts,
    Deciding,
    Gaps,
    HostPace,
    OriginReport,
    Report,
    RobotsFile,
    RuleText,
    Timeline,
    TimeSlot,
    Version,
    json_text,
    utc,
)
from testing import report_samples
from testing.hostile_texts import ATTACKS

from .parsed_page import Parsed, tree_of

AT = utc(report_samples.START)


def text_of(report: Report) -> str:
    """Return what a reader sees, without the style and the script."""
    return _text(tree_of(html_text(report)).find("body"))


def _text(element: Any) -> str:
    for other in element.xpath(".//script | .//style"):
        other.drop_tree()
    return " ".join(" ".join(element.itertext()).split())


def row(report: Report, origin: str) -> list[str]:
    """Return the cells of an origin."""
    page = tree_of(html_text(report))
    (found,) = page.xpath(
        "//table[@class='origins']/tbody/tr[1][th/code[text()=$origin]]", origin=origin
    )
    return [_text(cell) for cell in found]


def details(report: Report, origin: str) -> str:
    """Return the details of an origin."""
    page = tree_of(html_text(report))
    (found,) = page.xpath("//tbody[tr/th/code[text()=$origin]]//details", origin=origin)
    return _text(found)


def cards(report: Report) -> dict[str, list[str]]:
    """Return the paragraphs and list items of each answer, by the question."""
    page = tree_of(html_text(report))
    return {
        _text(card.find("h3")): [_text(each) for each in card.xpath(".//p | .//li")]
        for card in page.xpath("//article")
    }


def test_the_answers() -> None:
    report = report_samples.report()
    answers = cards(report)
    sent, dropped = report.totals.sent, report.totals.dropped
    assert answers["Was a disallowed page requested?"] == [
        "No",
        f"Each of {sent:,} requests was sent after a verdict that allows it.",
        "By the record of the crawl itself.",
    ]
    assert answers["How many requests were sent?"][0] == f"{sent:,}"
    assert answers["How many were not sent, and why?"] == [
        f"{dropped} (14 %)",
        "412 a rule of the robots.txt",
        "29 the robots.txt was unreachable",
    ]
    assert answers["Was the pace kept that sites asked for?"] == [
        "Yes",
        "5 hosts had a delay, with 187 gaps between requests.",
        "Fastest: 1 s to jobs.example , asked 1 s.",
        "Slowest: 10.4 s to travel.example , asked 10 s.",
        "Fastest without a delay: 0.056 s to forum.example .",
    ]
    assert answers["Which sites were unreachable?"] == [
        "1",
        "29 requests were not sent because a robots.txt was unreachable.",
        "https://docs.example : status 503",
    ]


def test_the_answers_of_a_crawl_that_did_what_it_should_not() -> None:
    report = report_samples.troubled()
    answers = cards(report)
    first = answers["Was a disallowed page requested?"]
    assert first[0] == "Yes, 3"
    assert first[1].startswith("2 requests went to disallowed URLs. 1 response came from")
    assert (
        "3 requests were exempt (dont_obey_robotstxt), and not checked, such as "
        "https://news.example/mine"
    ) in first
    assert "2 by Disallow: /search , such as https://shop.example/search?q=a" in first
    pace = answers["Was the pace kept that sites asked for?"]
    assert pace[0] == "No, 4 gaps too short"
    assert "news.example : 4 of 41, smallest 0.4 s, asked 2 s" in pace
    text = text_of(report)
    assert "1 run did not end: the process was killed or still runs." in text
    assert "The file of run 2 is damaged: line 7 cannot be read." in text
    assert "120 requests went to origins that are not listed." in text
    assert "3 texts of robots.txt files: beyond the limits of the record." in text
    assert row(report, "https://shop.example")[1].endswith("Disallowed request")


@pytest.mark.parametrize(
    ("counts", "sent_is_known", "answer"),
    [
        (Counts(), True, "No"),
        (Counts(sent_exempt=1), True, "None that was checked"),
        (Counts(sent_unchecked=1), True, "Not known"),
        (Counts(), False, "Not known"),
        (Counts(sent_disallowed=1), False, "Yes, 1"),
        (Counts(final_url_disallowed=1), True, "Yes, 1"),
    ],
)
def test_whether_a_disallowed_page_was_requested(
    counts: Counts, sent_is_known: bool, answer: str
) -> None:
    report = report_samples.empty(report_samples.run(sent_is_known=sent_is_known))
    report.totals = counts
    assert cards(report)["Was a disallowed page requested?"][0] == answer


def test_a_damaged_record_does_not_answer() -> None:
    report = report_samples.report()
    report.runs[0].damage, report.runs[0].ended_at = "line 7 cannot be read", None
    answer = cards(report)["Was a disallowed page requested?"]
    assert answer[0] == "Not known"
    assert answer[-1] == "By the record of the crawl itself, up to its last entry."


def test_the_pace_is_not_known_without_what_was_sent() -> None:
    report = report_samples.report()
    report.runs[0].sent_is_known = False
    assert cards(report)["Was the pace kept that sites asked for?"][0] == "Not known"
    assert "In 1 run, the downloader does not show what it sends." in text_of(report)


def test_an_empty_report() -> None:
    text = text_of(report_samples.empty())
    for sentence in (
        "The record has no times.", "There are no origins.", "No rule decided.",
        "No site asked for a delay", "No site asked for one", "Each request of the spider was sent",
        "Nothing is left out.",
    ):  # fmt: skip
        assert sentence in text


def test_a_row_and_its_details() -> None:
    report = report_samples.report()
    assert row(report, "https://news.example") == [
        "https://news.example", "Has rules 200", "2026-11-22 09:00", "216 B", "1 warning", "325",
        "65", "324",
    ]  # fmt: skip
    text = details(report, "https://news.example")
    for part in (
        "robots.txt https://news.example/robots.txt",
        "Result Has rules, status 200",
        "Last checked 2026-11-22 09:00:01 UTC, from the site",
        "Pace asked for Crawl-delay: 2 Delay applied 2 s",
        "Disallow: /search line 3, group * disallowed 0 65 https://news.example/search?q=a",
        "no rule matches group * allowed",
        "Page directive noindex : 4 responses, such as https://news.example/item/2",
        "Use train-ai : granted by 0, refused by 12 responses",
        "Line 6: warning R203: 'disalow' is misspelled. Advice: write 'disallow:'.",
        "Disallow: /search 65 dropped Disallow: /cart Allow: /search/about 3 sent",
    ):
        assert part in text, part


def test_the_states_of_a_robots_txt() -> None:
    text = details(report_samples.troubled(), "https://shop.example")
    assert "States of the robots.txt" in text
    assert "No robots.txt, status 404" in text


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
    assert (
        row(report, "https://a.example")[1:5]
        == ["Not fetched", "\N{EN DASH}"] + ["\N{EN DASH}"] * 2
    )
    assert "Its robots.txt was not fetched." in details(report, "https://a.example")
    assert row(report, "https://b.example")[1:5] == [
        "Unreachable 503 (last good copy)", "2026-11-22 08:30", "9 B", "\N{EN DASH}",
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
    page = tree_of(html_text(report))
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
    assert len(file_lines(report)) == module.MAX_LINES
    assert "280 more findings not shown" in text_of(report)


def many_files(number: int, text: str) -> Report:
    """Return a report of origins whose files differ in their first line only."""
    report = report_samples.empty()
    for each in range(number):
        version = Version("rules", "rules", "site", AT, AT, 200, sha256=str(each))
        host = f"{each}.example"
        report.origins.append(OriginReport(f"https://{host}", host, versions=[version]))
        report.files[str(each)] = RobotsFile(9, f"# {each}\n{text}")
    return report


def findings_of(report: Report) -> list[str]:
    page = tree_of(html_text(report))
    return [_text(each) for each in page.xpath("//table[@class='origins']/tbody/tr[1]/td[4]")]


def test_a_file_that_takes_long_to_check_is_not_checked() -> None:
    text = "User-agent: *\nDisallow: /" + "*a" * 8_000
    report = many_files(2, text)
    report.files["1"].text = "User-agent: *\nDisalow: /a\n"
    assert findings_of(report) == ["Not checked", "1 warning"]
    assert "The findings of 1 robots.txt: not checked, to make this page quickly." in text_of(
        report
    )


def test_all_files_together_are_checked_within_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []

    def lint(body: bytes) -> list[Any]:
        checked.append(body)
        return []

    monkeypatch.setattr(module, "lint", lint)
    monkeypatch.setattr(module, "MAX_LINT", 1_000)
    report = many_files(300, "#" * 90)
    found = findings_of(report)
    assert sum(map(len, checked)) <= 1_000
    assert found == ["None"] * len(checked) + ["Not checked"] * (300 - len(checked))
    assert f"The findings of {300 - len(checked)} robots.txt files: not" in text_of(report)


def test_details_that_are_too_long_leave_the_file_out(monkeypatch: pytest.MonkeyPatch) -> None:
    report = one_file("User-agent: *\nDisallow: /\n", 2)
    monkeypatch.setattr(module.Details, "max_of_one", 500)
    assert "The robots.txt is too long for this page." in text_of(report)


def test_many_rules_of_one_origin_are_summed_up() -> None:
    report = one_file("", *range(1, 1 + 50 + 3))
    report.origins[0].deciding_left_out = 4
    assert "7 requests by other rules and reasons." in text_of(report)


def test_what_does_not_fit_is_left_out_and_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    report = report_samples.troubled(30)
    monkeypatch.setattr(module, "MAX_DETAILS", 20_000)
    monkeypatch.setattr(module, "ROWS_TOGETHER", 8)
    del report.origins[20:]
    page = tree_of(html_text(report))
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
    assert set(REASONS) == {*Reason, EXEMPT, UNCHECKED} == {*get_args(ReasonText)} - {""}


@pytest.mark.no_cover  # Coverage would take most of the time.
def test_a_page_of_many_origins_is_small() -> None:
    assert len(html_text(report_samples.large(2_000)).encode()) < 4_500_000


def test_a_report_that_was_read_from_json_has_the_same_page() -> None:
    report = report_samples.troubled()
    read = msgspec.json.decode(json_text(report), type=Report)
    assert text_of(read) == text_of(report)


def test_each_link_leads_to_a_part_of_the_page() -> None:
    page = tree_of(html_text(report_samples.report()))
    links = page.xpath("//a/@href")
    parts = set(page.xpath("//@id"))
    assert [link for link in links if link.startswith("#") and link[1:] not in parts] == []
    assert [link for link in links if not link.startswith("#")] == [
        "https://datatracker.ietf.org/doc/html/draft-illyes-webbotauth-cbcp-01"
    ]


def test_each_table_has_headers_and_each_chart_a_text() -> None:
    page = tree_of(html_text(report_samples.troubled()))
    assert page.xpath("//th[not(@scope)]") == []
    assert page.xpath("//table[not(.//th)]") == []
    assert page.xpath("//svg[not(@aria-hidden='true') and not(title/text())]") == []
    levels = [int(each.tag[1]) for each in page.xpath("//h1 | //h2 | //h3 | //h4")]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


# What hostile sites send.


def names_of(text: str) -> set[str]:
    parsed = Parsed(text)
    return {*parsed.elements, *(f"@{name}" for name, _ in parsed.attributes)}


@cache
def usual_names() -> set[str]:
    return names_of(html_text(report_samples.troubled()))


@pytest.mark.parametrize("attack", [*ATTACKS, "all"])
def test_no_text_becomes_an_element_or_an_attribute(attack: str) -> None:
    hostile = html_text(report_samples.hostile(ATTACKS if attack == "all" else [attack]))
    usual = usual_names()
    assert names_of(hostile) <= usual
    tree = tree_of(hostile)
    found = {each.tag for each in tree.iter()} | {
        f"@{name.lower()}" for each in tree.iter() for name in each.attrib
    }
    assert found <= {name.lower() for name in usual}
    assert len(tree.xpath("//script")) == len(tree.xpath("//style")) == 1
    assert len(tree.xpath("//section")) == 6
    assert tree.xpath("//script/text()") == [str(asset("page.js"))]


def test_no_control_character_is_in_a_page() -> None:
    page = html_text(report_samples.hostile(ATTACKS))
    page.encode()
    allowed = {"\n", "\t"}
    for character in set(page) - allowed:
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}


def test_a_report_with_impossible_numbers_has_a_page() -> None:
    report = report_samples.troubled()
    for host in report.hosts:
        host.shortest_delay = host.longest_delay = 1e-9
    report.hosts[0].shortest_delay = report.hosts[1].paced_gaps.smallest = 1e12
    for found in (Gaps(2, 1), Gaps(2, None, 1)):
        report.hosts.append(HostPace("a", 2, AT, AT, shortest_delay=1, paced_gaps=found))
    first = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    last = datetime.max.replace(tzinfo=timezone(-timedelta(hours=14)))
    report.timeline = Timeline(
        1 << 33, [TimeSlot(last, 1 << 53, 1), TimeSlot(first, 1, 1, {"rules": 1})]
    )
    report.runs[0].started_at, report.runs[1].written_at = last, first
    report.origins[0].versions[0].last_at = first
    report.origins[0].deciding[1].rule = RuleText(False, "/", 1 << 53)
    page = html_text(report)
    assert not re.search(r"\b(nan|inf)\b", page.split("<main")[1].split("<script")[0])


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([10**18, -1, 1 << 53, 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-11-22"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@given(st.data())
def test_a_report_that_was_changed_has_a_page_or_is_refused(data: st.DataObject) -> None:
    record: Any = json.loads(json_text(report_samples.troubled(3)))
    for _ in range(data.draw(st.integers(1, 4))):
        holder: Any = record
        while True:
            key: Any = data.draw(
                st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder)))
            )
            if not isinstance(holder[key], dict | list) or not holder[key]:
                break
            if data.draw(st.booleans()):
                holder = holder[key]
            else:
                break
        holder[key] = data.draw(VALUES)
    try:
        report = msgspec.json.decode(json.dumps(record), type=Report)
    except msgspec.MsgspecError:
        return
    html_text(report)
