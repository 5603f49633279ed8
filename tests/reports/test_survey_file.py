"""The facts that a survey takes from one file."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.reports.survey_file import MAX_AGENTS, Extent, facts_of
from testing.hostile import HOSTILE


@pytest.mark.parametrize(
    ("rules", "extent"),
    [
        ("Disallow: /", Extent.EVERYTHING),
        ("Disallow: *", Extent.EVERYTHING),
        ("Disallow: /*", Extent.EVERYTHING),
        ("Disallow: /\nDisallow: /a", Extent.EVERYTHING),
        ("Disallow: /\nAllow: /a", Extent.SOMETHING),
        ("Disallow: /*\nAllow: /", Extent.SOMETHING),  # all but the page with the path "/"
        ("Disallow: /\nAllow: /", Extent.NOTHING),  # of two rules as long, allow wins
        ("Disallow: /\nAllow: /\nDisallow: /a", Extent.SOMETHING),
        ("Disallow: /$", Extent.SOMETHING),
        ("Disallow: /a", Extent.SOMETHING),
        ("Disallow:", Extent.NOTHING),
        ("Allow: /a", Extent.NOTHING),
        ("Crawl-delay: 5", Extent.NOTHING),
    ],
)
def test_extents(rules: str, extent: Extent) -> None:
    assert facts_of(f"User-agent: a\n{rules}\n".encode()).agents == {"a": extent}


def test_groups_of_the_same_agent_are_merged() -> None:
    body = b"User-agent: a\nUser-agent: b\nDisallow: /\n\nUser-agent: B/2.0\nAllow: /x\n"
    assert facts_of(body).agents == {"a": Extent.EVERYTHING, "b": Extent.SOMETHING}


def test_numbers() -> None:
    body = b"User-agent: *\nDisallow: /abc\nAllow: /\nSitemap: x\nSitemap: x\nSitemap:\n"
    assert facts_of(body).numbers == {
        "size": len(body),
        "lines": 7,
        "groups": 1,
        "agents": 1,
        "rules": 2,
        "longest-pattern": 4,
        "sitemaps": 2,
    }


@pytest.mark.parametrize(
    ("body", "features"),
    [
        (b"", {"empty", "no-group"}),
        (b" \r\n\t\n", {"empty", "no-group"}),
        (b"<!doctype html>\n<p>a: b", {"html", "no-group", "findings"}),
        (b"Sitemap: https://a.example/s", {"sitemap", "no-group"}),
        (
            b"User-agent: *\nDisallow:",
            {"user-agent", "wildcard-group", "disallows-nothing-for-all"},
        ),
    ],
)
def test_features(body: bytes, features: set[str]) -> None:
    assert facts_of(body).features == features


def test_the_names_of_an_html_page_are_no_fields() -> None:
    assert facts_of(b"<p>a: b").unknown_fields == set()
    assert facts_of(b"User-agent: *\n<p>a: b\n\xff: c").unknown_fields == {"<p>a", "\ufffd"}


def test_delays() -> None:
    delays = (b"0.5", b"1000000000", b"x", b"inf")
    body = b"User-agent: *\n" + b"".join(b"Crawl delay: %s\n" % each for each in delays)
    assert facts_of(body).delays == [500, 1_000_000_000]


def test_preferences() -> None:
    body = (
        b"User-agent: *\nContent-Signal: /a search=yes, ai-train=no, use=reference\n"
        b"Content-Signal: nothing\nContent-Usage: train-ai=n, search=y\nLicense: https://a/l"
    )
    facts = facts_of(body)
    assert facts.preferences == {
        "Content-Signal: search=yes",
        "Content-Signal: ai-train=no",
        "Content-Signal: use=reference",
        "Content-Usage: train-ai=n",
        "Content-Usage: search=y",
    }
    assert "license" in facts.features


def test_numbers_of_a_file_are_limited() -> None:
    agents = b"".join(b"User-agent: a%s\n" % _letters(number) for number in range(MAX_AGENTS + 9))
    fields = b"".join(b"x%d: 1\n" % number for number in range(MAX_AGENTS + 9))
    assert len(facts_of(agents + b"Disallow: /").agents) == MAX_AGENTS
    assert len(facts_of(fields).unknown_fields) == MAX_AGENTS


def _letters(number: int) -> bytes:
    return bytes(ord("a") + int(digit) for digit in str(number))


@pytest.mark.no_cover  # Coverage would take most of the time.
@pytest.mark.parametrize("name", list(HOSTILE)[::6])
def test_hostile_files(name: str) -> None:
    body = HOSTILE[name][0]
    assert facts_of(body).numbers["size"] == len(body)


def test_a_large_file() -> None:
    assert "too-large" in facts_of(b"User-agent: *\n" + b"#" * SIZE_LIMIT).features
