"""Surveys whose texts are attacks: their rows may come from another program."""

from __future__ import annotations

import unicodedata

import pytest

from scrapy_rep.reports.survey import (
    Count,
    Difference,
    Extents,
    Quantiles,
    Stratum,
    Survey,
    page,
    summary,
)
from testing.hostile_texts import ATTACKS

from .parsed_page import Parsed, tree_of


def survey(*texts: str) -> Survey:
    counts = [Count(text, 1, 0.5) for text in texts]
    extents = [Extents(text, 3, 0.5, 1, 1, 1) for text in texts]
    return Survey(
        made_at=texts[0], complete=False, problems=0, sites=2, files=2, results=counts,
        statuses=counts, numbers=[Quantiles(text, *range(7)) for text in texts], features=counts,
        agents=extents, blocked_agents=counts, ai_agents=extents, purposes=extents,
        preferences=counts, findings=counts, unknown_fields=counts,
        strata=[Stratum(text, 1, *(0.5,) * 6) for text in texts],
        differences=[Difference(text, 0.5, 1.0, 0.5) for text in texts],
        left_out={"features": 30},
    )  # fmt: skip


def names_of(text: str) -> set[str]:
    parsed = Parsed(text)
    return {*parsed.elements, *(f"@{name}" for name, _ in parsed.attributes)}


@pytest.mark.parametrize("texts", [*([each, each] for each in ATTACKS), ATTACKS])
def test_no_text_becomes_an_element_or_an_attribute(texts: list[str]) -> None:
    made = page(survey(*texts))
    assert names_of(made) <= names_of(page(survey("a", "b")))
    assert len(tree_of(made).xpath("//section")) == 8
    text = summary(survey(*texts))
    assert len(text.split("\n\n")) == 14
    for character in {*made, *text} - {"\n", "\t", "\x1f"}:
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}


def test_a_row_without_a_name_has_a_header() -> None:
    rows = tree_of(page(survey(" ", "\t"))).xpath("//th[@scope='row']")
    assert {row.text for row in rows} == {"(empty)"}


def test_the_answers_and_the_lists() -> None:
    made = survey("size", "crawl_delay")
    text = " ".join(" ".join(tree_of(page(made)).itertext()).split())
    for part in (
        "This survey is not complete", "How many files are there? 2 among 2 sites.", "0 B",
        "30 more are not shown.", "3 · 1 / 1 / 1",
    ):  # fmt: skip
        assert part in text
    assert "size\x1f0 B\x1f1 B\x1f2 B" in summary(made)
    assert "crawl delay\x1f0 s\x1f1 s\x1f2 s" in summary(made)
    assert "\nand 30 more" in summary(made)
