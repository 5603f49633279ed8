"""Files are generated from a seed, or read from a folder."""

from __future__ import annotations

import io
import lzma
import tarfile
from typing import TYPE_CHECKING

from testing import generated
from testing.corpus import Expected, Row, load

if TYPE_CHECKING:
    from pathlib import Path

BODY = b"User-agent: *\nDisallow: /private\n"


def test_the_same_seed_gives_the_same_files() -> None:
    files = generated.files(30)
    assert list(generated.files(20).items()) == list(files.items())[:20]
    assert generated.files(30, seed=1) != files
    name, body = next(iter(files.items()))
    assert list(generated.questions(name, body, 9)) == list(generated.questions(name, body, 9))


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
