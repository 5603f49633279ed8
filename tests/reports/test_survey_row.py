"""The facts that a survey takes from one file."""

from __future__ import annotations

import pytest
from msgspec import json

from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.reports.survey_row import MAX_NAMES, MAX_TEXT, Row, encode, row_of
from testing.hostile import HOSTILE


def of(body: bytes) -> Row:
    return row_of("a", body)


@pytest.mark.parametrize(
    ("rules", "extent"),
    [
        ("Disallow: /", "everything"),
        ("Disallow: *", "everything"),
        ("Disallow: /*", "everything"),
        ("Disallow: /\nDisallow: /a", "everything"),
        ("Disallow: /\nAllow: /a", "something"),
        ("Disallow: /*\nAllow: /", "something"),  # all but the page with the path "/"
        ("Disallow: /\nAllow: /", "nothing"),  # of two rules as long, allow wins
        ("Disallow: /\nAllow: /\nDisallow: /a", "something"),
        ("Disallow: /$", "something"),
        ("Disallow: /a", "something"),
        ("Disallow:", "nothing"),
        ("Allow: /a", "nothing"),
        ("Crawl-delay: 5", "nothing"),
    ],
)
def test_extents(rules: str, extent: str) -> None:
    row = of(f"User-agent: a\n{rules}\n".encode())
    assert getattr(row, extent) == ["a"]
    assert row.agents == len(row.everything + row.something + row.nothing) == 1


def test_groups_of_the_same_agent_are_merged() -> None:
    row = of(b"User-agent: a\nUser-agent: b\nDisallow: /\n\nUser-agent: B/2.0\nAllow: /x\n")
    assert (row.everything, row.something, row.nothing) == (["a"], ["b"], [])


def test_numbers() -> None:
    body = b"User-agent: *\nDisallow: /abc\nAllow: /\nSitemap: x\nSitemap: x\nSitemap:\n"
    row = of(body)
    assert (row.size, row.lines, row.groups, row.agents) == (len(body), 7, 1, 1)
    assert (row.rules, row.longest_pattern, row.sitemaps) == (2, 4, 2)


def test_a_site_without_a_file() -> None:
    row = row_of("https://a.example\n", None, 404, AccessResult.UNAVAILABLE)
    assert row.site == r"https://a.example\n"
    assert json.decode(encode(row), type=Row) == row
    assert set(json.decode(encode(row))) == {"site", "status", "result"}


@pytest.mark.parametrize(
    ("body", "features"),
    [
        (b"", {"nothing but white space", "no group"}),
        (b" \r\n\t\n", {"nothing but white space", "no group"}),
        (b"<p>\n<p>a: b", {"page of HTML", "no group", "findings of lint"}),
        (b"Sitemap: https://a.example/s", {"sitemap", "no group"}),
        (b"User-agent: *\nDisallow:", {"group for *", "nothing disallowed for *"}),
        (
            b"User-agent: a\nDisallow: /*b$",
            {"disallow", "group for a named agent", "pattern with *", "pattern that ends in $"},
        ),
        (b"User-agent: *\n" + b"#" * SIZE_LIMIT, {
            "group for *", "nothing disallowed for *", "more than 500 KiB", "findings of lint",
        }),
    ],
)  # fmt: skip
def test_features(body: bytes, features: set[str]) -> None:
    assert set(of(body).features) == features


def test_the_names_of_an_html_page_are_no_fields() -> None:
    assert of(b"<p>a: b").unknown_fields == []
    assert of(b"User-agent: *\n<p>a: b\n\xff: c").unknown_fields == ["<p>a", "\ufffd"]


def test_a_page_in_place_of_a_robots_txt_is_a_result_of_its_own() -> None:
    row = row_of("https://a.example", b"<!doctype html>\n<p>a: b", 200)
    assert row == Row(site="https://a.example", result="not-robots-txt", status=200)


def test_delays() -> None:
    delays = (b"0.5", b"1000000000", b"x", b"inf")
    body = b"User-agent: *\n" + b"".join(b"Crawl delay: %s\n" % each for each in delays)
    assert of(body).crawl_delays == [0.5, 1_000_000]


def test_a_policy_token_is_a_preference() -> None:
    row = of(b"User-agent: __usage_ai-training\nDisallow: /\nAllow: /a\n")
    assert row.preferences == ["__usage_ai-training: something disallowed"]


def test_preferences() -> None:
    row = of(
        b"User-agent: *\nContent-Signal: /a search=yes, ai-train=no, use=reference\n"
        b"Content-Signal: nothing\nContent-Usage: train-ai=n, search=y\nLicense: https://a/l"
    )
    assert row.preferences == [
        "Content-Signal: ai-train=no",
        "Content-Signal: search=yes",
        "Content-Signal: use=reference",
        "Content-Usage: search=y",
        "Content-Usage: train-ai=n",
    ]
    assert "license" in row.features


def test_findings() -> None:
    assert of(b"User-agent: *\nDisalow: /a").findings == ["R203 misspelled-field"]


def test_names_of_a_file_are_limited() -> None:
    agents = b"".join(b"User-agent: a%s\n" % _letters(number) for number in range(MAX_NAMES + 9))
    fields = b"".join(b"x%d: 1\n" % number for number in range(MAX_NAMES + 9))
    assert len(of(agents + b"Disallow: /").everything) == MAX_NAMES
    row = of(fields + b"y" * 1_000 + b": 1\n")
    assert len(row.unknown_fields) == MAX_NAMES
    assert max(map(len, of(b"a: b\n" + b"y" * 1_000 + b": 1\n").unknown_fields)) == MAX_TEXT


def _letters(number: int) -> bytes:
    return bytes(ord("a") + int(digit) for digit in str(number))


@pytest.mark.no_cover  # Coverage would take most of the time.
@pytest.mark.parametrize("name", list(HOSTILE)[::6])
def test_hostile_files(name: str) -> None:
    body = HOSTILE[name][0]
    assert of(body).size == len(body)
    assert len(encode(of(body))) < 10 << 20
