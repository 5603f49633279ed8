"""The archive of robots.txt files: its records, what it loses, and how any WARC file is read."""

from __future__ import annotations

import gzip
import json
import random
import threading
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings as ScrapySettings
from scrapy.statscollectors import StatsCollector
from scrapy.utils.test import get_crawler

from scrapy_rep.fetch.downloader import Exchange
from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.reports import files
from scrapy_rep.reports.archive import Archive, ArchivedRobotsTxt, exchange_records, read, warcinfo
from scrapy_rep.reports.files import BackgroundFile
from scrapy_rep.settings import Settings
from testing.archives import Record, records_of
from tests.conftest import traced_memory

RULES = b"User-agent: *\nDisallow: /private\n"
PAGE = b"<html><head></head><body><pre>User-agent: *\n</pre></body></html>"
URL = "https://a.example/robots.txt"
EXCHANGE = Exchange(
    url=URL,
    sent_at=1_800_000_000.25,
    method="GET",
    request_fields=((b"User-Agent", b"bot"),),
    status=200,
    response_fields=((b"Content-Type", b"text/plain"),),
    body=RULES,
    ip_address=ip_address("2001:db8::1"),
    file=RULES,
    origin="https://b.example",
)


def written(**values: Any) -> list[Record]:
    """The records of an exchange: of the response and of the request."""
    return records_of(exchange_records(EXCHANGE._replace(**values)))


def test_the_fields_of_the_records() -> None:
    response, request = written(url=f"{URL}?a=1")
    assert (response.kind, request.kind) == ("response", "request")
    assert response.headers["WARC-Date"] == "2027-01-15T08:00:00.250000Z"
    assert response.headers["WARC-IP-Address"] == "2001:db8::1"
    assert response.headers["WARC-Target-URI"] == f"{URL}?a=1"
    assert response.headers["X-Robots-Txt-Origin"] == "https://b.example"
    assert response.block == b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + RULES
    assert request.block == (
        b"GET /robots.txt?a=1 HTTP/1.1\r\nUser-Agent: bot\r\nHost: a.example\r\n\r\n"
    )
    response, _ = written(by_proxy=True)
    assert "WARC-IP-Address" not in response.headers


@pytest.mark.parametrize(
    "value",
    [b"a" * 65_536, 'ünïcode; a="☃"'.encode(), bytes(range(0x80, 0x100)), b"\0\v\f\x1b[2J", b""],
    ids=["64 KiB", "UTF-8", "bytes that are not UTF-8", "control characters", "empty"],
)
def test_any_value_of_a_header_is_written_as_it_is(value: bytes) -> None:
    fields = ((b"X-Value", value), (b"X-Other", b"1"))
    response, request = written(response_fields=fields, request_fields=fields)
    head = b"\r\nX-Value: " + value + b"\r\nX-Other: 1\r\n"
    assert response.block == b"HTTP/1.1 200 OK" + head + b"\r\n" + RULES
    assert head in request.block


@pytest.mark.parametrize(
    ("name", "value", "in_response", "in_request"),
    [
        (b"X-\r\nValue", b"1\r\n\r\nWARC/1.1\r\nX: y\n", *[b"X- Value: 1 WARC/1.1 X: y \r\n"] * 2),
        (b"Transfer-Encoding", b"chunked", b"X-Crawler-Transfer-Encoding: chunked", b"chunked"),
        *(
            (name, b"Zk9", b"Zk9", name + b": ***\r\n")
            for name in (b"Authorization", b"Cookie", b"cookie2", b"X-Api-Key", b"X-Token")
        ),
        (b"host", b"other", b"host: other", b"HTTP/1.1\r\nhost: other\r\n\r\n"),
    ],
)
def test_headers_that_are_not_written_as_they_are(
    name: bytes, value: bytes, in_response: bytes, in_request: bytes
) -> None:
    fields = ((name, value),)
    response, request = written(response_fields=fields, request_fields=fields, status=299)
    assert response.block.startswith(b"HTTP/1.1 299 \r\n")  # it is not registered
    assert in_response in response.block
    assert in_request in request.block
    assert b"Zk9" not in request.block


@pytest.mark.parametrize(
    ("values", "digest"),
    [
        ({"status": 304, "copy_sha256": "0" * 64, "body": b"", "file": None}, "0" * 64),
        ({"status": 304, "file": None}, None),
        ({"status": 404, "copy_sha256": "0" * 64, "file": None}, None),
        ({"status": 404}, None),
        ({"file": None}, None),  # a body that cannot be decoded
        # The file that a browser shows
        ({"body": PAGE, "file": PAGE}, sha256(b"User-agent: *\n").hexdigest()),
    ],
)
def test_the_digest_is_that_of_the_file_or_of_the_copy_of_a_304(
    values: dict[str, Any], digest: str | None
) -> None:
    response, _ = written(**values)
    expected = None if digest is None else f"sha256:{digest}"
    assert response.headers.get("X-Robots-Txt-Digest") == expected
    assert response.body == values.get("body", RULES)


def test_each_value_of_a_warcinfo_record_is_one_line() -> None:
    fields = {"software": "a\r\nb: c", "isPartOf": "ü"}
    [info] = records_of(warcinfo("a\r\nb.warc.gz", fields))
    assert info.block == b"software: a b: c\r\nisPartOf: \xc3\xbc\r\n"
    assert info.headers["WARC-Filename"] == "a b.warc.gz"


async def test_a_disk_that_hangs_loses_records_and_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(files, "_write", lambda _, data: release.wait(60) and len(data))
    monkeypatch.setattr(files, "QUEUE_LIMIT", 10)
    monkeypatch.setattr(files, "CLOSE_TIMEOUT", 0.1)
    file = BackgroundFile(tmp_path / "a.warc.gz")
    try:
        for _ in range(3):
            file.append(5, lambda: b"1")
        assert (file.lost, file.failure) == (
            1, "records arrive faster than the disk can write them"
        )  # fmt: skip
        await file.close()
    finally:
        release.set()
    assert (file.lost, file.sha256) == (3, None)


def test_no_file_that_exists_is_changed(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(b"1")
    (tmp_path / "a-2.warc.gz").symlink_to("elsewhere")
    assert BackgroundFile(tmp_path / "a.warc.gz").path == str(tmp_path / "a-3.warc.gz")
    assert not (tmp_path / "elsewhere").exists()


# What is lost


def opened(path: Path, **settings: object) -> tuple[Archive, StatsCollector]:
    stats = StatsCollector(get_crawler())
    read_settings = Settings.read(ScrapySettings(settings))
    return Archive(str(path), "visitor", read_settings, stats), stats


@pytest.mark.parametrize("has_ended", [True, False])
async def test_what_cannot_be_written_is_counted(
    path: Path, caplog: pytest.LogCaptureFixture, has_ended: bool
) -> None:
    archive, stats = opened(path)
    archive.record(EXCHANGE)
    if has_ended:
        await archive.close()
    else:
        archive.record(EXCHANGE._replace(sent_at=float("nan")))
        archive.record(EXCHANGE._replace(url="ftp://a.example/robots.txt"))
        archive.file._thread.shutdown()  # the interpreter ends
    archive.record(EXCHANGE)
    await archive.close()
    assert stats.get_value("robotstxt/archive/exchange_count") == 1
    assert stats.get_value("robotstxt/archive/lost_count") == (1 if has_ended else 2)
    assert len(list(read(path, print))) == 1
    [message] = caplog.messages
    assert not has_ended or "after the file was closed" in message


@pytest.mark.parametrize(
    ("name", "value", "agent"),
    [("USER_AGENT", b"b\xfcr/1", "bür/1"), ("ROBOTSTXT_USER_AGENT", "mybot,other", "mybot, other")],
)
async def test_the_first_record_describes_the_crawl_without_passwords(
    tmp_path: Path, name: str, value: object, agent: str
) -> None:
    path = tmp_path / "a.warc.gz"
    archive, _ = opened(path, **{"REP_STORE": "redis://me:Zk9@127.0.0.1/", name: value})
    await archive.close()
    [info] = records_of(path.read_bytes())
    fields = dict(line.split(": ", 1) for line in info.block.decode().strip().split("\r\n"))
    assert fields["software"].startswith("scrapy-rep")
    assert (fields["isPartOf"], fields["http-header-user-agent"]) == ("visitor", agent)
    values = json.loads(fields["x-scrapy-rep-settings"])
    assert values["REP_STORE"] == "redis://me:***@127.0.0.1/"
    assert "REP_TDMREP" not in values
    assert b"Zk9" not in info.block
    assert info.headers["WARC-Filename"] == "a.warc.gz"


# Reading

DATE = "2026-11-22T07:00:00Z"
AT = 1795330800.0


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


def found_in(
    path: Path, *records: bytes, compress: bool = True
) -> tuple[list[ArchivedRobotsTxt], list[str]]:
    """What is read from a file with these records, and the problems of it."""
    path.write_bytes(b"".join(gzip.compress(each) if compress else each for each in records))
    problems: list[str] = []
    return list(read(path, problems.append)), problems


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.warc.gz"


@pytest.mark.parametrize("compress", [True, False])
def test_files_of_another_program(path: Path, compress: bool) -> None:
    found, problems = found_in(
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
    rules, missing = found
    assert rules == ArchivedRobotsTxt(URL, "https://a.example", AT, 200, RULES, None)
    assert (missing.origin, missing.status, missing.body) == ("https://b.example", 404, b"")
    assert problems == []


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (*pieces, b""))


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
    found, problems = found_in(
        path, record("response", block), record("response", block, WARC_Truncated="disconnect")
    )
    cut_off = body if len(body or b"") > SIZE_LIMIT else None  # what is cut off is no file
    assert [each.body for each in found] == [body, cut_off]
    assert problems == []


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        pytest.param(record("response", http(), date="yesterday"), "invalid literal",
                     id="no date"),
        pytest.param(record("response", http(), date="2026-02-30T00:00:00Z"), "day", id="February"),
        pytest.param(record("response", b"HTTP/1.1 x\r\n\r\n"), "status", id="no status"),
        pytest.param(record("revisit", b""), "there is no HTTP message", id="no HTTP"),
        *(  # A survey counts each status, so there must not be any number of them.
            (record("response", f"HTTP/1.1 {code} OK\r\n\r\n".encode()),
             "the status code is not valid")
            for code in ("x", "-5", "20", "099", "2000", "1" * 5000, "20\u00b2")
        ),
    ],
)  # fmt: skip
def test_a_broken_record_does_not_hide_the_others(path: Path, broken: bytes, reason: str) -> None:
    first = record("response", http())
    found, (problem,) = found_in(path, first, broken, first)
    assert [each.body for each in found] == [RULES, RULES]
    assert problem.startswith(f"{path}: no readable record at offset {len(first)}: ")
    assert reason in problem


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
        pytest.param(b"\r\n" * 100_000, "header of a record is too long", id="empty lines"),
        pytest.param(b"WARC/1.1\r\nA: b\r\n\r\n", "the file ends before",
                     id="no length"),
        pytest.param(record("response", http())[:-20], "the file ends before", id="a short block"),
    ],
)  # fmt: skip
def test_the_end_of_a_damaged_file_is_reported(
    path: Path, broken: bytes, reason: str, compress: bool
) -> None:
    found, (problem,) = found_in(path, record("response", http()), broken, compress=compress)
    assert [each.body for each in found] == [RULES]
    assert reason in problem


def test_an_empty_file(path: Path) -> None:
    for records in ((), (b"",), (b"", record("response", http()), b"")):
        found, problems = found_in(path, *records)
        assert [each.body for each in found] == [RULES] * (len(records) == 3)
        assert problems == []


@pytest.mark.parametrize("damage", ["cut", "cut at its start", "zeros"])
def test_damage_of_compressed_records(path: Path, damage: str) -> None:
    one = gzip.compress(record("response", http()))
    damaged = {"cut": one[:-30], "cut at its start": one[:5], "zeros": one[:40] + bytes(20)}
    path.write_bytes(one + damaged[damage] + (one[60:] + one if damage == "zeros" else b""))
    problems: list[str] = []
    assert len(list(read(path, problems.append))) == 1
    assert len(problems) == 1


def test_a_file_with_one_member_for_all_records(path: Path) -> None:
    records = record("response", http()) + record("response", http(bytes(5_000_000)))
    found, problems = found_in(path, records * 2)
    assert [len(each.body or b"") for each in found] == [len(RULES), SIZE_LIMIT + 1] * 2
    assert problems == []


def test_any_damage_is_survived(path: Path) -> None:
    source = random.Random(1)
    whole = b"".join(gzip.compress(record("response", http(RULES * n))) for n in (1, 9))
    plain = record("response", http()) * 3
    for _ in range(300):
        data = bytearray(source.choice([whole, plain]))
        for _ in range(source.randint(1, 5)):
            data[source.randrange(len(data))] = source.randrange(256)
        path.write_bytes(data[: source.randint(1, len(data))])
        problems: list[str] = []
        assert len(list(read(path, problems.append))) <= 3
        # And the member itself is whole, but its content is damaged.
        path.write_bytes(gzip.compress(bytes(data)))
        list(read(path, problems.append))


def test_the_memory_is_limited(path: Path) -> None:
    path.write_bytes(gzip.compress(record("response", http(bytes(60_000_000)))))
    with traced_memory() as traced:
        assert [len(found.body or b"") for found in read(path, print)] == [SIZE_LIMIT + 1]
        assert traced()[1] < 20_000_000
