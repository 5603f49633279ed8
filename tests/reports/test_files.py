from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.reports import files
from scrapy_rep.reports.files import PartFile, turns
from scrapy_rep.reports.reading import read_report

from .samples import fetched, recorder, sent

if TYPE_CHECKING:
    from collections.abc import Iterator

ALLOWED = Verdict(True, Reason.RULES, None, "*")


def flush(part: PartFile, made: Any) -> None:
    """Write as the extension does."""
    if part.needs_all:
        made.mark_all_as_changed()
    part.write(made.head(), list(made.changes()))


def test_what_changes_is_appended(tmp_path: Path) -> None:
    part, made = PartFile(tmp_path / "one.part"), recorder()
    flush(part, made)
    sizes = []
    for number in range(3):
        sent(made, f"http://{number}.example/", ALLOWED)
        flush(part, made)
        sizes.append(part.path.read_bytes().count(b"\n"))
        assert read_report(part.path) == made.report()
    assert sizes == [5, 8, 11]  # a head and a crawl; then an origin, a host and a crawl each
    assert [path.name for path in tmp_path.iterdir()] == ["one.part"]


def test_outdated_lines_are_removed_when_the_file_has_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MIN_REWRITE", 5000)
    part, made = PartFile(tmp_path / "one.part"), recorder()
    sizes = []
    for number in range(40):
        sent(made, f"http://a.example/{number}", ALLOWED)
        flush(part, made)
        sizes.append(part.path.stat().st_size)
        assert read_report(part.path) == made.report()
    assert max(sizes) < 15_000
    assert sizes != sorted(sizes)


def test_a_write_that_fails_leaves_whole_lines_and_the_next_one_has_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part, made = PartFile(tmp_path / "one.part"), recorder()
    flush(part, made)
    before = part.path.read_bytes()
    sent(made, "http://a.example/", ALLOWED)

    def write_half(self: Path, *_: object, **__: object) -> Any:
        class Full:
            def __init__(self, file: Any) -> None:
                self.file = file

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                self.file.close()

            def write(self, octets: bytes) -> int:
                return int(self.file.write(octets[: len(octets) // 2]))

            def __getattr__(self, name: str) -> Any:
                return getattr(self.file, name)

        return Full(open(self, "r+b", buffering=0))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", write_half)
        with pytest.raises(OSError, match="could not be written"):
            flush(part, made)
    assert part.path.read_bytes() == before
    assert part.needs_all
    flush(part, made)
    assert read_report(part.path) == made.report()


def test_records_that_are_made_in_one_turn_are_of_a_bounded_length() -> None:
    made: list[int] = []

    def records() -> Iterator[str]:
        for length in (60_000, 50_000, 10, 250_000, 10):
            made.append(length)
            yield "x" * length

    found = [([len(record) for record in turn], len(made)) for turn in turns(records())]
    assert found == [([60_000, 50_000], 2), ([10, 250_000], 4), ([10], 5)]


def test_a_turn_has_few_files_of_the_largest_size() -> None:
    made = recorder()
    for number in range(4):
        fetched(made, f"http://{number}.example", f"# {number}{'é' * 9_990}".encode())
    assert [len(turn) for turn in turns(made.changes())][:2] == [2, 2]


def test_lines_are_ascii(tmp_path: Path) -> None:
    part, made = PartFile(tmp_path / "one.part"), recorder()
    made.dropped("http://a.example/\ud800\u202e\n\x1b[2J", ALLOWED)
    flush(part, made)
    octets = part.path.read_bytes()
    assert octets.isascii()
    assert b"\x1b" not in octets
    assert all(json.loads(line) for line in octets.splitlines())
    assert read_report(part.path) == made.report()
