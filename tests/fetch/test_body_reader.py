"""A body as it arrives."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib

import pytest
from scrapy.http import Response
from scrapy.utils.gz import gunzip

from scrapy_rep.fetch.body_reader import WIRE_LIMIT, BodyReader
from scrapy_rep.protocol.lines import SIZE_LIMIT
from testing.faults import gzip_bomb

FILE = b"User-agent: *\nDisallow: /private\n"
URL = "http://a.example/robots.txt"
MIB = 1 << 20


def take(data: bytes, coding: bytes = b"", *, piece: int = 16_384) -> BodyReader:
    """An intake that has received all of it in pieces of so many octets."""
    intake = BodyReader()
    intake.start(coding)
    for start in range(0, len(data), piece):
        intake.feed(data[start : start + piece])
    return intake


def response(body: bytes = b"", coding: str | None = None) -> Response:
    headers = {} if coding is None else {"Content-Encoding": coding}
    return Response(URL, body=body, headers=headers)


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
def test_a_body_in_a_coding_of_ours(data: bytes, coding: bytes, piece: int) -> None:
    intake = take(data, coding, piece=piece)
    assert intake.body_of(response(data, coding.decode() or None)) == FILE
    assert not intake.done


@pytest.mark.parametrize("size", [0, 1, SIZE_LIMIT - 1, SIZE_LIMIT, SIZE_LIMIT + 1, 2 * SIZE_LIMIT])
@pytest.mark.parametrize("coding", [b"", b"gzip"])
def test_rfc_the_first_500_kib_count(size: int, coding: bytes) -> None:
    content = random.Random(size).randbytes(size)
    data = gzip.compress(content, mtime=0) if coding else content
    intake = take(data, coding)
    assert intake.full is (size > SIZE_LIMIT)
    assert intake.body_of(response(data)) == content[: SIZE_LIMIT + 1]


@pytest.mark.parametrize("piece", [100, 65_536])
@pytest.mark.parametrize(
    ("data", "coding"),
    [
        pytest.param(b"a" * 2 * SIZE_LIMIT, b"", id="plain"),
        pytest.param(gzip_bomb(2), b"gzip", id="gzip"),
        pytest.param(gzip_bomb(0) + gzip_bomb(2) + gzip_bomb(0), b"gzip", id="second gzip member"),
        pytest.param(
            gzip.compress(bytes(SIZE_LIMIT + 1)) + gzip_bomb(2), b"gzip", id="ends at the limit"
        ),
    ],
)
def test_consumed_is_what_yields_the_limit(data: bytes, coding: bytes, piece: int) -> None:
    intake = take(data, coding, piece=piece)
    assert intake.full
    consumed = data[: intake.consumed]
    assert len(consumed) < len(data)
    again = gunzip(consumed) if coding else consumed
    assert SIZE_LIMIT < len(again) + 1000 <= SIZE_LIMIT + 2000


def test_what_comes_after_the_limit_is_not_looked_at() -> None:
    intake = take(b"a" * (SIZE_LIMIT + 1))
    intake.feed(b"b" * MIB)
    assert intake.body_of(response()) == b"a" * (SIZE_LIMIT + 1)
    intake = take(gzip.compress(bytes(2 * SIZE_LIMIT))[:-9] + b"broken", b"gzip", piece=100)
    intake.feed(b"not gzip")
    assert (intake.full, intake.broken) == (True, False)


@pytest.mark.parametrize(
    "before", [b"", gzip.compress(FILE, mtime=0)], ids=["alone", "second member"]
)
def test_a_bomb_is_inflated_to_the_limit(before: bytes) -> None:
    data = before + gzip_bomb(300)
    tracemalloc.start()
    try:
        intake = take(data, b"gzip", piece=65_536)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert intake.full
    assert peak < 4 * MIB


@pytest.mark.parametrize(
    ("data", "coding"),
    [
        pytest.param(b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 2 * MIB, b"gzip", id="endless name"),
        pytest.param(gzip.compress(b"", mtime=0) * 60_000, b"gzip", id="empty members without end"),
        pytest.param(b"x" * 2 * MIB, b"br", id="another coding"),
    ],
)
def test_what_yields_nothing_is_read_to_a_limit(data: bytes, coding: bytes) -> None:
    assert not take(data[:WIRE_LIMIT], coding).done
    intake = take(data, coding)
    assert intake.broken
    assert intake.body_of(response(b"x")) is None


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
    intake = take(data, b"gzip")
    assert intake.body_of(response(data)) is None


def test_an_empty_body_is_an_empty_file() -> None:
    for coding in (b"", b"gzip", b"br"):
        assert take(b"", coding).body_of(response(b"", coding.decode())) == b""


@pytest.mark.parametrize("begins", [True, False], ids=["unread coding", "no signals"])
def test_what_scrapy_has_decoded_is_cut_at_the_limit(begins: bool) -> None:
    intake = BodyReader()
    if begins:
        assert not intake.start(b"br")
        intake.feed(b"brotli")
    assert intake.body_of(response(FILE)) == FILE
    assert intake.body_of(response(b"a" * MIB)) == b"a" * (SIZE_LIMIT + 1)
    assert intake.body_of(response(FILE, "br")) is None, "Scrapy could not"


def test_a_coding_is_judged_as_a_whole() -> None:
    intake = BodyReader()
    assert intake.start(b"GZIP")
    assert not intake.start(b"gzip, gzip")
    assert not intake.start(b"gzip,br")
    assert intake.start(b"")
