from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING

import pytest

from scrapy_rep.reports import members
from scrapy_rep.reports.members import (
    MAGIC,
    PIECE,
    BrokenMember,
    Member,
    gzip_members,
    member_end,
    plain_members,
    whole_end,
)

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = b"WARC/1.1\r\none\r\n\r\n", b"WARC/1.1\r\ntwo\r\n\r\n"
PLAIN = b"WARC/1.1\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n"


def found(octets: bytes, limit: int = 1000) -> list[Member | BrokenMember]:
    return list(gzip_members(io.BytesIO(octets), limit))


def test_each_gzip_member_has_its_offset_and_content() -> None:
    one = gzip.compress(ONE)
    octets = one + gzip.compress(TWO)
    assert found(octets) == [Member(0, ONE, False), Member(len(one), TWO, False)]
    assert found(b"") == []


def test_content_is_kept_up_to_a_limit() -> None:
    bomb = gzip.compress(ONE + bytes(10_000_000))
    assert found(bomb + gzip.compress(TWO), 8) == [
        Member(0, b"WARC/1.1", True),
        Member(len(bomb), b"WARC/1.1", True),
    ]


@pytest.mark.parametrize("cut", [1, 5, 12, -9, -1])
def test_a_torn_end_is_reported_with_its_offset(cut: int) -> None:
    one, two = gzip.compress(ONE), gzip.compress(TWO)
    whole, broken = found(one + two[:cut])
    assert whole == Member(0, ONE, False)
    assert isinstance(broken, BrokenMember)
    assert broken.offset == len(one)


@pytest.mark.parametrize("size", [0, 10, PIECE - 1, PIECE, 3 * PIECE])
def test_reading_continues_at_the_next_record(size: int) -> None:
    one, two = gzip.compress(ONE), gzip.compress(TWO)
    # The octets in between look like a member, but are none, or are no record.
    between = two[:-3] + b"\x1f\x8b\x08" + gzip.compress(b"text") + b"x" * size
    first, broken, last = found(one + between + two)
    assert first == Member(0, ONE, False)
    assert isinstance(broken, BrokenMember)
    assert (broken.offset, last) == (len(one), Member(len(one + between), TWO, False))


def test_the_start_of_a_record_is_found_across_pieces() -> None:
    two = gzip.compress(TWO)
    for size in range(PIECE - 5, PIECE + 2):
        assert found(b"x" * size + two)[1:] == [Member(size, TWO, False)]


@pytest.mark.parametrize("starts", [6, 7])
def test_the_search_for_a_record_ends(starts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MAX_STARTS", starts)
    one = gzip.compress(ONE)
    result = found(b"x" + MAGIC * 6 + one)
    assert isinstance(result[0], BrokenMember)
    if starts == 7:
        assert result[1:] == [Member(1 + 6 * len(MAGIC), ONE, False)]
    else:
        (last,) = result[1:]
        assert isinstance(last, BrokenMember)
        assert "the rest is not read" in last.reason


def test_a_search_keeps_a_window_of_two_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 0

    def is_record(octets: bytes, _: int) -> bool:
        nonlocal longest
        longest = max(longest, len(octets))
        return False

    monkeypatch.setattr(members, "_is_record", is_record)
    number = 4 * PIECE // len(MAGIC)
    assert len(found(MAGIC * number)) == 1
    assert longest == 2 * PIECE


def test_the_end_of_a_member() -> None:
    one = gzip.compress(ONE)
    assert member_end(b"abc" + one + b"abc", 3) == 3 + len(one)
    assert member_end(one[:-1], 0) is None
    assert member_end(gzip.compress(b"text"), 0) is None
    assert member_end(gzip.compress(b""), 0) == len(gzip.compress(b""))
    assert member_end(b"\x1f\x8b\x08 no member", 0) is None
    large = gzip.compress(ONE + bytes(5_000_000))
    assert member_end(large, 0) == len(large)


def test_the_end_of_the_last_whole_record(tmp_path: Path) -> None:
    path = tmp_path / "a"
    one, two = gzip.compress(ONE), gzip.compress(TWO)
    for octets, end in (
        (b"", 0),
        (one + two, len(one + two)),
        (one + two[:-1], len(one)),
        (one + gzip.compress(b"text"), len(one)),
        (b"text", 0),
    ):
        path.write_bytes(octets)
        with path.open("rb") as file:
            assert whole_end(file.fileno()) == end


def plain(octets: bytes, limit: int = 1000) -> list[Member | BrokenMember]:
    return list(plain_members(io.BytesIO(octets), limit))


def test_records_without_compression() -> None:
    one, two = PLAIN % (3, b"one"), PLAIN % (0, b"")
    assert plain(b"") == []
    assert plain(one + b"\r\n" * 50_000 + two + b"\r\n") == [
        Member(0, one, False),
        Member(len(one) + 100_000, two, False),
    ]
    assert plain(one, 5) == [Member(0, b"WARC/\r\n\r\n", True)]


@pytest.mark.parametrize(
    "broken",
    [
        PLAIN % (300, b"two"),
        b"text\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: x\r\n\r\n",
        b"WARC/1.1\r\nContent-Length: 0\r\n",
        b"WARC/1.1\r\nA: " + b"a" * 100_000 + b"\r\nContent-Length: 0\r\n\r\n",
    ],
    ids=["torn", "no record", "no length", "no end of the header", "an endless header"],
)
def test_the_first_broken_record_without_compression_ends_the_file(broken: bytes) -> None:
    one = PLAIN % (3, b"one")
    whole, problem = plain(one + broken)
    assert whole == Member(0, one, False)
    assert isinstance(problem, BrokenMember)
    assert problem.offset == len(one)
