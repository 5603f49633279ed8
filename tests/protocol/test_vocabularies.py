"""The names of the vocabularies, and the versions that are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_rep.protocol.vocabularies import (
    AIPREF,
    AIPREF_EARLIER,
    REQUIRABLE,
    VOCABULARIES,
    Vocabulary,
    nearest_use,
)

CONFORMANCE = Path(__file__).parents[2] / "docs" / "about" / "conformance.md"


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_each_version_is_named_on_the_conformance_page(vocabulary: Vocabulary) -> None:
    row = f"| {vocabulary.name} | {vocabulary.version} | {vocabulary.date} | {vocabulary.status} |"
    assert row in CONFORMANCE.read_text(encoding="utf-8")


def test_a_label_is_current_or_of_an_earlier_draft() -> None:
    assert AIPREF_EARLIER.isdisjoint(AIPREF)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        *((name, name) for name in REQUIRABLE),
        ("train_ai", "train-ai"),
        ("Train-AI", "train-ai"),
        ("trainai", "train-ai"),
        ("ai_input", "ai-input"),
        ("serach", "search"),
        ("genai", "train-ai"),
        ("train-genai", "train-ai"),
        ("inference", "ai-use"),
        ("bots", None),
        ("", None),
        ("x" * 10_000, None),
    ],
)
def test_the_name_that_is_meant(name: str, nearest: str | None) -> None:
    assert nearest_use(name) == nearest
