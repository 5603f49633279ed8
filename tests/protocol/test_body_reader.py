"""The body of a robots.txt, which is read as it arrives."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from scrapy_rep.protocol import body_reader
from scrapy_rep.protocol.body_reader import PIECE_SIZE, WIRE_LIMIT, BodyReader
from scrapy_rep.protocol.lines import SIZE_LIMIT

FILE = b"User-agent: *\nDisallow: /private\n"
MIB = 1 << 20


def read(data: bytes, coding: bytes = b"", *, piece: int = 16_384) -> BodyReader:
    """A reader that has received ``data`` in pieces of so many bytes."""
    reader = BodyReader(coding)
    for start in range(0, len(data), piece):
        reader.feed(data[start : start + piece])
    return reader


@pytest.mark.parametrize("piece", [1, 7, 16_384])
@pytest.mark.parametrize(
    ("data", "coding"),
    [
        (FILE, b""),
        (FILE, b"identity"),
        (gzip.compress(FILE, mtime=0), b"gzip"),
        (gzip.compress(FILE, mtime=0), b" X-Gzip "),
        pytest.param(
            gzip.compress(FILE[:9], mtime=0) + gzip.compress(FILE[9:], mtime=0),
            b"gzip",
            id="two gzip members",
        ),
        pytest.param(gzip.compress(FILE, mtime=0) + b"\0" * 99, b"gzip", id="zeros behind gzip"),
        pytest.param(gzip.compress(FILE, mtime=0) + b"rubbish", b"gzip", id="rubbish behind gzip"),
    ],
)
def test_identity_and_gzip_are_decoded(data: bytes, coding: bytes, piece: int) -> None:
    reader = read(data, coding, piece=piece)
    assert reader.body == FILE
    assert not reader.is_done


@pytest.mark.rule("500 KiB of a body")
@pytest.mark.parametrize("size", [0, 1, SIZE_LIMIT - 1, SIZE_LIMIT, SIZE_LIMIT + 1, 2 * SIZE_LIMIT])
@pytest.mark.parametrize("coding", [b"", b"gzip"])
def test_rfc_the_first_500_kib_count(size: int, coding: bytes) -> None:
    content = random.Random(size).randbytes(size)
    data = gzip.compress(content, mtime=0) if coding else content
    reader = read(data, coding)
    assert reader.is_full is (size > SIZE_LIMIT)
    assert reader.body == content[: SIZE_LIMIT + 1]


@pytest.mark.rule("A body that breaks after the size limit")
def test_bytes_after_the_limit_are_ignored() -> None:
    reader = read(b"a" * (SIZE_LIMIT + 1))
    reader.feed(b"b" * MIB)
    assert reader.body == b"a" * (SIZE_LIMIT + 1)
    reader = read(gzip.compress(bytes(2 * SIZE_LIMIT))[:-9] + b"broken", b"gzip", piece=100)
    reader.feed(b"not gzip")
    assert (reader.is_full, reader.is_broken) == (True, False)


@pytest.mark.rule("Compression")
@pytest.mark.parametrize(
    ("data", "coding"),
    [
        pytest.param(b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 2 * MIB, b"gzip", id="endless name"),
        pytest.param(gzip.compress(b"", mtime=0) * 60_000, b"gzip", id="empty members without end"),
        pytest.param(b"x" * 2 * MIB, b"br", id="another coding"),
    ],
)
def test_data_that_decodes_to_nothing_is_read_up_to_a_limit(data: bytes, coding: bytes) -> None:
    assert not read(data[:WIRE_LIMIT], coding).is_done
    for piece in (16_384, len(data)):
        reader = read(data, coding, piece=piece)
        assert (reader.is_broken, reader.received) == (True, WIRE_LIMIT + 1)
        assert reader.body is None


def test_a_piece_with_many_members_is_read_in_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """zlib copies what follows the member: the copies of a whole piece would take too long."""
    sizes = []

    class Inflating:
        def __init__(self) -> None:
            self.zlib = zlib.decompressobj(16 + zlib.MAX_WBITS)

        def __getattr__(self, name: str) -> object:
            return getattr(self.zlib, name)

        def decompress(self, data: bytes, limit: int) -> bytes:
            sizes.append(len(data))
            return self.zlib.decompress(data, limit)

    monkeypatch.setattr(body_reader, "_new_inflating", Inflating)
    data = gzip.compress(b"", mtime=0) * 5000 + gzip.compress(FILE, mtime=0)
    reader = read(data, b"gzip", piece=len(data))
    assert reader.body == FILE
    assert max(sizes) == PIECE_SIZE


@pytest.mark.rule("Network errors")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"User-agent: *\n", id="not gzip at all"),
        pytest.param(gzip.compress(FILE, mtime=0)[:-3], id="cut off"),
        pytest.param(gzip.compress(FILE, mtime=0)[:-8] + bytes(8), id="wrong checksum"),
        pytest.param(zlib.compress(FILE), id="zlib"),
        pytest.param(gzip.compress(FILE, mtime=0) + b"\x1f\x8b\x08bad", id="second member is none"),
    ],
)
def test_broken_gzip_is_no_body(data: bytes) -> None:
    assert read(data, b"gzip").body is None


def test_an_empty_body_is_an_empty_file() -> None:
    assert [BodyReader(coding).body for coding in (b"", b"gzip")] == [b"", b""]


def test_other_codings_and_lists_of_codings_are_not_decoded() -> None:
    codings = (b"GZIP", b"", b"br", b"gzip, gzip", b"gzip,br")
    readers = [read(b"", coding) for coding in codings]
    assert [each.is_supported for each in readers] == [True, True, False, False, False]
    assert [each.body is None for each in readers] == [False, False, True, True, True]
