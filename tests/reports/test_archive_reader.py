from __future__ import annotations

import gzip
import logging
import random
import tracemalloc
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.reports.archive import ArchivedRobotsTxt, ArchiveProblem, read

if TYPE_CHECKING:
    from pathlib import Path

RULES = b"User-agent: *\nDisallow: /private\n"
URL = "https://a.example/robots.txt"
DATE = "2026-11-22T07:00:00Z"
AT = 1795330800.0
PLAIN_TEXT = "Content-Type: text/plain"


def record(kind: str, block: bytes, url: str = URL, date: str = DATE, **fields: str) -> bytes:
    """A record of another program."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n"
        "WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000000>\r\n"
        f"{more}Content-Length: {len(block)}\r\n\r\n"
    ).encode() + (block + b"\r\n\r\n")


def http(body: bytes = RULES, *fields: str, status: int = 200) -> bytes:
    head = "".join(f"{field}\r\n" for field in fields)
    return f"HTTP/1.1 {status} Status\r\n{head}\r\n".encode() + body


class Read:
    """What is read from a file."""

    def __init__(self, path: Path, *records: bytes, compress: bool = True) -> None:
        path.write_bytes(b"".join(gzip.compress(each) if compress else each for each in records))
        self.problems: list[ArchiveProblem] = []
        self.found = list(read(path, self.problems.append))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.warc.gz"


@pytest.mark.parametrize("compress", [True, False])
def test_files_of_another_program(path: Path, compress: bool) -> None:
    seen = Read(
        path,
        record("warcinfo", b"software: x\r\n", ""),
        record("request", b"GET /robots.txt HTTP/1.1\r\n\r\n"),
        record("response", http()),
        record("response", http(), "https://a.example/other"),
        record("response", http(), "data:,x"),
        record("metadata", b"x: y\r\n"),
        record("response", http(b"", status=404), "https://b.example/robots.txt"),
        compress=compress,
    )
    rules, missing = seen.found
    offset = rules.offset
    origin = "https://a.example"
    assert rules == ArchivedRobotsTxt(URL, origin, AT, 200, RULES, None, None, offset)
    octets = path.read_bytes()[offset:]
    assert octets.startswith(b"\x1f\x8b" if compress else b"WARC/1.0\r\nWARC-Type: response")
    assert (missing.origin, missing.status, missing.body) == ("https://b.example", 404, b"")
    assert seen.problems == []


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b""))


PAGE = b"<html><head></head><body><pre>User-agent: *\n</pre></body></html>"


@pytest.mark.parametrize(
    ("block", "body"),
    [
        pytest.param(http(gzip.compress(RULES), "Content-Encoding: gzip"), RULES, id="gzip"),
        pytest.param(http(RULES[:5] + gzip.compress(RULES), "Content-Encoding: gzip"), None,
                     id="no gzip"),
        pytest.param(http(gzip.compress(RULES)[:-9], "Content-Encoding: gzip"), None,
                     id="incomplete gzip"),
        pytest.param(http(gzip.compress(RULES), "content-encoding: gzip",
                          "Content-Encoding: gzip"), None, id="two codings"),
        pytest.param(http(RULES, "Content-Encoding: xyzzy"), None, id="an unknown coding"),
        pytest.param(http(chunked(RULES[:9], RULES[9:]), "Transfer-Encoding: chunked"), RULES,
                     id="chunks"),
        pytest.param(http(chunked(gzip.compress(RULES)), "Transfer-Encoding: chunked",
                          "Content-Encoding: gzip"), RULES, id="chunks of gzip"),
        pytest.param(http(bytes(SIZE_LIMIT + 9)), bytes(SIZE_LIMIT + 1), id="a long file"),
        pytest.param(http(bytes(6_000_000)), bytes(SIZE_LIMIT + 1), id="a very long file"),
        pytest.param(http(gzip.compress(bytes(50_000_000)), "Content-Encoding: gzip"),
                     bytes(SIZE_LIMIT + 1), id="a bomb"),
        pytest.param(http(PAGE), b"User-agent: *\n", id="the page of a browser"),
        pytest.param(http(b""), b"", id="empty"),
    ],
)  # fmt: skip
def test_a_body_is_decoded_up_to_the_limit(path: Path, block: bytes, body: bytes | None) -> None:
    seen = Read(path, record("response", block))
    assert [found.body for found in seen.found] == [body]
    assert seen.problems == []


def test_another_coding_that_warcio_decodes(path: Path) -> None:
    [found] = Read(path, record("response", http(zlib.compress(RULES), "Content-Encoding: deflate"))
                   ).found  # fmt: skip
    assert found.body == RULES


def test_a_body_that_is_cut_off_is_no_file(path: Path) -> None:
    [found] = Read(path, record("response", http(), WARC_Truncated="disconnect")).found
    assert (found.body, found.truncated) == (None, "disconnect")


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        pytest.param(record("response", http())[:-20], "the file ends before", id="a short block"),
        pytest.param(record("response", http(), date="yesterday"), "invalid literal",
                     id="no date"),
        pytest.param(record("response", http(), date="2026-02-30T00:00:00Z"), "day", id="February"),
        pytest.param(record("response", b"HTTP/1.1 x\r\n\r\n"), "status", id="no status"),
        pytest.param(record("revisit", b""), "there is no HTTP message", id="no HTTP"),
    ],
)  # fmt: skip
def test_a_broken_record_is_reported_and_the_others_are_read(
    path: Path, broken: bytes, reason: str
) -> None:
    first = gzip.compress(record("response", http()))
    seen = Read(path, record("response", http()), broken, record("response", http()))
    assert [found.body for found in seen.found] == [RULES, RULES]
    (problem,) = seen.problems
    assert (problem.path, problem.offset) == (str(path), len(first))
    assert reason in problem.reason


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        pytest.param(b"text\r\n" * 9, "Invalid WARC record", id="no record"),
        pytest.param(b"WARC/1.1", "the file ends before", id="a version alone"),
        pytest.param(b"WARC/1.1\r\nA: " + b"a" * 100_000, "header of a record is too long",
                     id="a long line"),
        pytest.param(b"WARC/1.1\r\n" + b"A: b\r\n" * 100_000, "header of a record is too long",
                     id="many lines"),
        pytest.param(b"WARC/1.1\r\nA: b\r\n\r\n", "the file ends before",
                     id="no length"),
    ],
)  # fmt: skip
def test_the_end_of_a_damaged_file_is_reported(
    path: Path, broken: bytes, reason: str, compress: bool
) -> None:
    seen = Read(path, record("response", http()), broken, compress=compress)
    assert [found.body for found in seen.found] == [RULES]
    (problem,) = seen.problems
    assert reason in problem.reason


def test_an_empty_file(path: Path) -> None:
    for seen in (Read(path), Read(path, b""), Read(path, b"", record("response", http()), b"")):
        assert seen.problems == []
    assert [found.body for found in seen.found] == [RULES]


@pytest.mark.parametrize("code", ["x", "-5", "20", "099", "2000", "1" * 5000, "20\u00b2"])
def test_a_status_code_has_three_digits(path: Path, code: str) -> None:
    """A survey counts each status, so there must not be any number of them."""
    seen = Read(path, record("response", f"HTTP/1.1 {code} OK\r\n\r\n".encode()))
    assert seen.found == []
    (problem,) = seen.problems
    assert problem.reason == "the status code is not valid"


def test_problems_are_logged(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    one = gzip.compress(record("response", http()))
    for cut in (-30, 5):
        path.write_bytes(one + one[:cut])
        assert len(list(read(path))) == 1
    expected = f"no readable record at offset {len(one)}: the file ends before the record does"
    assert caplog.messages == [f"{path}: {expected}"] * 2


def test_damage_inside_of_a_member(path: Path) -> None:
    one = gzip.compress(record("response", http()))
    damaged = bytearray(one)
    damaged[40:60] = bytes(20)
    path.write_bytes(one + damaged + one)
    problems: list[ArchiveProblem] = []
    assert len(list(read(path, problems.append))) == 1
    assert [problem.offset for problem in problems] == [len(one)]


def test_a_file_with_one_member_for_all_records(path: Path) -> None:
    records = record("response", http()) + record("response", http(bytes(5_000_000)))
    seen = Read(path, records * 2)
    assert [len(found.body or b"") for found in seen.found] == [len(RULES), SIZE_LIMIT + 1] * 2
    assert seen.problems == []


def test_octets_after_a_record_are_reported_and_not_printed(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    longer = record("response", http())[:-4] + b"x" * 50
    seen = Read(path, record("response", http()), longer, record("response", http()))
    assert [found.body for found in seen.found] == [RULES] * 3
    [problem] = seen.problems
    assert problem.reason == "a record is longer than its Content-Length"
    assert capfd.readouterr() == ("", "")


def test_no_file(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(read(path))


def test_any_damage_is_survived(path: Path) -> None:
    source = random.Random(1)
    whole = b"".join(gzip.compress(record("response", http(RULES * n, PLAIN_TEXT))) for n in (1, 9))
    plain = record("response", http()) * 3
    for _ in range(300):
        octets = bytearray(source.choice([whole, plain]))
        for _ in range(source.randint(1, 5)):
            octets[source.randrange(len(octets))] = source.randrange(256)
        path.write_bytes(octets[: source.randint(1, len(octets))])
        problems: list[Any] = []
        assert len(list(read(path, problems.append))) <= 3
        # And the member itself is whole, but its content is damaged.
        path.write_bytes(gzip.compress(bytes(octets)))
        list(read(path, problems.append))


def test_the_memory_is_limited(path: Path) -> None:
    bomb = gzip.compress(record("response", http(bytes(100_000_000))))
    path.write_bytes(bomb * 2)
    tracemalloc.start()
    try:
        assert [len(found.body or b"") for found in read(path)] == [SIZE_LIMIT + 1] * 2
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
