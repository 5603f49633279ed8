"""The row that a survey takes from one file."""

from __future__ import annotations

from itertools import islice, product
from string import ascii_lowercase

import pytest
from msgspec import json

from scrapy_rep.protocol.access import AccessResult
from scrapy_rep.reports.survey import MAX_NAMES, MAX_TEXT, Row, encode, row_of
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
        ("Disallow:", "nothing"),
        ("Allow: /a", "nothing"),
        ("Disallow: /\nUser-agent: b\nUser-agent: A/2.0\nAllow: /x", "something"),  # merged
    ],
)
def test_extents(rules: str, extent: str) -> None:
    assert "a" in getattr(of(f"User-agent: a\n{rules}\n".encode()), extent)


def test_the_columns_of_a_file() -> None:
    body = (
        b"User-agent: *\nDisallow: /abc*d$\nAllow: /\nSitemap: x\nSitemap: x\nSitemap:\n"
        b"Crawl delay: 0.5\nCrawl-delay: 1000000000\nCrawl-delay: inf\nDisalow: /a\n"
        b"Content-Signal: /a search=yes, use=reference\nContent-Usage: train-ai=n\nFoo: bar\n"
        b"User-agent: __usage_ai-training\nDisallow: /\nAllow: /a\n"
    )
    row = row_of("https://a.example", body, 200, at=1_795_336_200.0)
    assert row == Row(
        site="https://a.example",
        result="rules",
        status=200,
        date="2026-11-22",
        size=len(body),
        groups=2,
        rules=5,
        sitemaps=2,
        crawl_delays=[0.5, 1_000_000],
        features=[
            "allow", "content-signal", "content-usage", "crawl-delay", "disallow",
            "pattern that ends in $", "pattern with *", "sitemap",
        ],
        something=["*"],
        findings=row.findings,
        preferences=[
            "Content-Signal: search=yes",
            "Content-Signal: use=reference",
            "Content-Usage: train-ai=n",
            "__usage_ai-training: something disallowed",
        ],
    )  # fmt: skip
    assert "R203 misspelled-field" in row.findings
    assert json.decode(encode(row), type=Row) == row


@pytest.mark.parametrize(
    ("rules", "stated"),
    [
        ("Disallow: /", ["__usage_ai-training: everything disallowed"]),
        ("Allow: /", ["__usage_ai-training: nothing disallowed"]),
        ("Disallow:", []),
    ],
)
def test_a_policy_token_is_a_preference_and_not_a_crawler(rules: str, stated: list[str]) -> None:
    row = of(f"User-agent: *\nDisallow: /\n\nUser-agent: __usage_ai-training\n{rules}\n".encode())
    assert (row.everything, row.something, row.nothing) == (["*"], [], [])
    assert row.preferences == stated


@pytest.mark.parametrize(
    ("body", "status", "result", "expected"),
    [
        (None, 404, AccessResult.UNAVAILABLE, "unavailable"),
        (None, None, AccessResult.UNAVAILABLE, "redirect-loop"),
        (b"<!doctype html>\n<p>a: b", 200, AccessResult.SUCCESSFUL, "not-robots-txt"),
        (b" \r\n\t\n", 200, AccessResult.SUCCESSFUL, "empty"),
    ],
)
def test_a_site_without_rules(
    body: bytes | None, status: int | None, result: str, expected: str
) -> None:
    row = row_of("https://a.example\n", body, status, result, at=1e20)  # a year that there is not
    assert (row.site, row.result, row.date) == (r"https://a.example\n", expected, None)
    assert (row.size is None) == (expected != "empty")


@pytest.mark.no_cover
def test_names_of_a_file_are_limited() -> None:
    names = islice(map("".join, product(ascii_lowercase, repeat=3)), MAX_NAMES + 9)
    agents = "".join(f"User-agent: {name}\n" for name in names)
    assert len(of(f"{agents}Disallow: /".encode()).everything) == MAX_NAMES
    usage = b"".join(b"Content-Usage: x%d=n\n" % number for number in range(MAX_NAMES + 9))
    row = of(b"User-agent: *\n" + usage)
    assert len(row.preferences) == MAX_NAMES
    (long,) = of(b"User-agent: *\nContent-Usage: %s=n" % (b"x" * 1_000)).preferences
    assert len(long) == MAX_TEXT


@pytest.mark.no_cover  # Coverage would take most of the time.
@pytest.mark.parametrize("name", list(HOSTILE)[::6])
def test_hostile_files(name: str) -> None:
    body = HOSTILE[name][0]
    row = of(body)
    assert row.size == len(body)
    assert len(encode(row)) < 10 << 20
