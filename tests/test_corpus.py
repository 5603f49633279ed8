"""Generated files have the proportions of real ones, and real ones are read from a folder."""

from __future__ import annotations

import io
import lzma
import tarfile
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from testing import generated
from testing.corpus import Expected, Row, load
from testing.proportions import PERCENTILES, Proportions, measure

if TYPE_CHECKING:
    from pathlib import Path

BODY = b"User-agent: *\nDisallow: /private\n"


@pytest.fixture(scope="module")
def measured() -> Proportions:
    """The proportions of generated files, which are the same in each run."""
    return measure(generated.files(1000).values())


SHARES = [
    each.name
    for each in fields(Proportions)
    if isinstance(getattr(generated.MEASURED, each.name), float)
]


@pytest.mark.parametrize("name", SHARES)
def test_generated_files_have_the_shares_of_real_ones(name: str, measured: Proportions) -> None:
    assert getattr(measured, name) == pytest.approx(
        getattr(generated.MEASURED, name), abs=0.02, rel=0.25
    )


@pytest.mark.parametrize(
    "name", ["size", "sitemaps", "groups", "largest_group", "agents", "other_groups", "pattern"]
)
def test_generated_files_have_the_quantiles_of_real_ones(name: str, measured: Proportions) -> None:
    wanted = dict(zip(PERCENTILES, getattr(generated.MEASURED, name), strict=True))
    found = dict(zip(PERCENTILES, getattr(measured, name), strict=True))
    for percentile in (10, 25, 50, 75, 90, 95):
        assert found[percentile] == pytest.approx(wanted[percentile], rel=0.4, abs=2), percentile


def test_the_same_seed_gives_the_same_files() -> None:
    files = generated.files(30)
    assert list(generated.files(20).items()) == list(files.items())[:20]
    assert generated.files(30, seed=1) != files
    name, body = next(iter(files.items()))
    assert list(generated.questions(name, body, 9)) == list(generated.questions(name, body, 9))


def test_a_pattern_may_consist_of_its_query() -> None:
    (body,) = generated.files(1, seed=5187).values()  # the first one with such a pattern and a star
    assert b": *?" in body


def test_a_folder_with_verdicts(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "robots.tar.xz", "w:xz") as archive:
        member = tarfile.TarInfo("robots/a.example.txt")
        member.size = len(BODY)
        archive.addfile(member, io.BytesIO(BODY))
    row = "a.example.txt\tbot\thttps://example.com/private\tdisallow\t2\n"
    (tmp_path / "verdicts.tsv.xz").write_bytes(lzma.compress(row.encode()))
    corpus = load(tmp_path, files=9)
    assert corpus.files == {"a.example.txt": BODY}
    assert corpus.rows == [
        Row("a.example.txt", "bot", "https://example.com/private", Expected(False, 2))
    ]
    assert corpus.source == "1 real files"


def test_a_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(BODY)
    corpus = load(tmp_path, files=9, questions=5)
    assert corpus.bodies == [BODY]
    assert [row.file for row in corpus.rows] == ["a.txt"] * 5
    assert {row.expected for row in corpus.rows} == {None}


def test_a_folder_without_files_raises_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither"):
        load(tmp_path, files=9)
