from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from parsel import Selector

from scrapy_rep.reports import pages
from scrapy_rep.reports.pages import environment, link, render, shown
from scrapy_rep.reports.records import Gaps, HostPace, Timeline, TimeSlot, utc
from testing.hostile_texts import ATTACKS

from .parsed_page import Parsed


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
    assert [link(each) for each in ("#answers", *pages.LINKS)] == ["#answers", *pages.LINKS]
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


def test_bars() -> None:
    rows = [
        {"label": "<a>", "text": "4", "parts": [("sent", 3), ("broken", 1)]},
        {"label": "b", "text": "0", "parts": [("sent", 0), ("broken", 0)]},
    ]
    chart = "{% import 'charts.html' as charts %}{{ charts.bars('c', ('A', 'B'), rows) }}"
    made = of(chart, rows=rows)
    assert re.findall('<rect x="(.*?)" width="(.*?)".*?class="(.*?)"', made) == [
        ("0.00", "75.00", "sent"),
        ("75.00", "25.00", "broken"),
    ]
    assert '<th scope="row">&lt;a&gt;</th>' in made
    assert "rect" not in of(chart, rows=rows[1:])
    rows[1]["label"] = " "
    assert '<th scope="row">(empty)</th>' in of(chart, rows=rows)
    assert "<tbody>\n</tbody>" in of(chart, rows=[])


def drawn(macro: str, chart: object) -> Selector:
    """The chart as a macro of the templates draws it."""
    macros: Any = environment().get_template("charts.html").module
    return Selector(str(getattr(macros, macro)(chart)))


def test_a_timeline_is_stacked() -> None:
    reasons = {"rules": 3, "<b>\u202e": 1000, **dict.fromkeys("abcd", 1)}
    slots = [TimeSlot(utc(10), 2, 1, {"rules": 1}, 1), TimeSlot(utc(14), 2, 0, reasons)]
    page = drawn("timeline", Timeline(2, slots))
    assert page.css("path::attr(d)").getall() == [
        "M0.0 100.0h320.0v100.0h-320.0zM640.0 100.0h320.0v100.0h-320.0z",
        "M0.0 50.0h320.0v50.0h-320.0z",
        "M0.0 0.0h320.0v50.0h-320.0z",
    ]
    assert page.css(".y span::text").getall() == ["4", "2.0", "0"]
    assert page.css(".x span::text").getall() == ["00:00:10", "00:00:13", "00:00:16"]
    assert page.css("svg[role=img] title::text").get() == (
        "Requests over time. Pages requested: 4, Pages not requested: 1, robots.txt: 1. "
        "The table below has the numbers."
    )
    rows = [["".join(cell.css("::text").getall()) for cell in row.css("tr > *")]
            for row in page.css("tbody tr")]  # fmt: skip
    assert rows[0] == ["1970-01-01 00:00:10", "2", "1", "1", "1 rules"]
    assert rows[1][-1] == r"1,000 <b>\u202e, 3 rules, 1 a, 1 b, 1 c, and 1 other reason"


@pytest.mark.parametrize("seconds", [0, -9, 1e11])
def test_a_timeline_of_another_program_may_have_any_times(seconds: float) -> None:
    slots = [TimeSlot(utc(100), 1), TimeSlot(utc(100 + seconds), 1)]
    assert drawn("timeline", Timeline(1, slots)).css("path::attr(d)").get("").endswith("z")


def host(delay: float, gap: float, too_short: int = 0) -> HostPace:
    gaps = Gaps(1, gap, gap)
    return HostPace("a.example", 2, utc(0), utc(0), gaps, delay, delay, gaps, too_short)


def test_a_gap_as_long_as_the_delay_is_on_the_diagonal() -> None:
    page = drawn("scatter", [host(1, 1), host(10, 10), host(10, 1, too_short=3)])
    points = [
        (circle.attrib["cx"], circle.attrib["cy"], circle.attrib["class"])
        for circle in page.css("circle")
    ]
    assert points == [
        ("60.0", "260.0", "kept"), ("310.0", "10.0", "kept"), ("310.0", "260.0", "short"),
    ]  # fmt: skip
    assert page.css("text::text").getall()[:4] == ["1 s", "1 s", "10 s", "10 s"]
    assert "of 3 hosts." in page.css("title::text").get("")


@pytest.mark.parametrize("delay", [1e-9, 0.001, 1, 1e6, 1e12])
def test_any_delay_is_inside(delay: float) -> None:
    page = drawn("scatter", [host(delay, 1), host(1, delay), host(delay, delay)])
    for circle in page.css("circle"):
        assert 60 <= float(circle.attrib["cx"]) <= 310
        assert 10 <= float(circle.attrib["cy"]) <= 260
