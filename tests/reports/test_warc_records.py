from __future__ import annotations

import io
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from scrapy_rep.fetch.downloader import Exchange
from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.reports.archive import Records, file_sha256

RULES = b"User-agent: *\nDisallow: /private\n"
URL = "https://a.example/robots.txt?a=1"
EXCHANGE = Exchange(
    url=URL,
    sent_at=1_800_000_000.25,
    method="GET",
    request_fields=((b"User-Agent", b"bot"),),
    status=200,
    response_fields=((b"Content-Type", b"text/plain"),),
    body=RULES,
    protocol="HTTP/1.1",
    ip_address=ip_address("2001:db8::1"),
    file=RULES,
    origin="https://b.example",
)


class Record(NamedTuple):
    kind: str
    headers: dict[str, str]
    block: bytes


def records_of(octets: bytes) -> list[Record]:
    records = [
        Record(record.rec_type, dict(record.rec_headers.headers), record.raw_stream.read())
        for record in ArchiveIterator(io.BytesIO(octets), no_record_parse=True)
    ]
    for record in ArchiveIterator(io.BytesIO(octets), check_digests="raise"):
        record.content_stream().read()
    return records


def written(**values: Any) -> list[Record]:
    """The records of an exchange: of the response and of the request."""
    return records_of(Records().exchange(EXCHANGE._replace(**values)))


def test_the_fields_of_the_records() -> None:
    response, request = written()
    assert (response.kind, request.kind) == ("response", "request")
    assert response.headers["WARC-Date"] == "2027-01-15T08:00:00.250000Z"
    assert response.headers["WARC-IP-Address"] == "2001:db8::1"
    assert response.headers["WARC-Target-URI"] == URL
    assert response.headers["X-Robots-Txt-Origin"] == "https://b.example"
    assert response.block == b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + RULES
    assert request.block == (
        b"GET /robots.txt?a=1 HTTP/1.1\r\nUser-Agent: bot\r\nHost: a.example\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("protocol", "line", "field"),
    [
        ("HTTP/1.0", b"HTTP/1.0 200 OK", "http/1.0"),
        ("HTTP/1.1", b"HTTP/1.1 200 OK", "http/1.1"),
        ("h2", b"HTTP/1.1 200 OK", "h2"),
        ("HTTP/2", b"HTTP/1.1 200 OK", "h2"),
        ("h3", b"HTTP/1.1 200 OK", "h3"),
        ("x\r\ny: z", b"HTTP/1.1 200 OK", None),
        (None, b"HTTP/1.1 200 OK", None),
    ],
)
def test_the_protocol(protocol: str | None, line: bytes, field: str | None) -> None:
    response, request = written(protocol=protocol)
    assert response.block.split(b"\r\n")[0] == line
    assert {record.headers.get("WARC-Protocol") for record in (response, request)} == {field}


def test_a_status_that_is_not_registered_has_no_phrase() -> None:
    response, _ = written(status=299)
    assert response.block.startswith(b"HTTP/1.1 299 \r\n")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(b"a" * 65_536, id="64 KiB"),
        pytest.param("caf\xe9".encode("latin-1"), id="Latin-1"),
        pytest.param('ünïcode; a="☃"'.encode(), id="UTF-8"),
        pytest.param(bytes(range(0x80, 0x100)), id="octets that are not UTF-8"),
        pytest.param(b"\0\x0b\x0c\x1b[2J", id="control characters"),
        pytest.param(b"", id="empty"),
    ],
)
def test_any_value_of_a_header_is_written_as_it_is(value: bytes) -> None:
    fields = ((b"X-Value", value), (b"X-Other", b"1"))
    response, request = written(response_fields=fields, request_fields=fields)
    assert response.block.split(b"\r\n\r\n")[0].split(b"\r\n")[1:] == [
        b"X-Value: " + value,
        b"X-Other: 1",
    ]
    assert b"\r\nX-Value: " + value + b"\r\n" in request.block


def test_a_line_break_in_a_value_does_not_end_the_head() -> None:
    fields = ((b"X-\r\nValue", b"1\r\n\r\nWARC/1.1\r\nX: y\n"),)
    for record in written(response_fields=fields, request_fields=fields):
        assert b"X- Value: 1 WARC/1.1 X: y \r\n" in record.block


def test_a_transfer_coding_is_renamed() -> None:
    response, _ = written(response_fields=((b"Transfer-Encoding", b"chunked"),))
    assert b"\r\nX-Crawler-Transfer-Encoding: chunked\r\n" in response.block


@pytest.mark.parametrize(
    "name",
    [b"Authorization", b"Proxy-Authorization", b"Cookie", b"cookie2", b"X-Api-Key", b"X-Token"],
)
def test_values_that_may_be_secrets_are_replaced(name: bytes) -> None:
    fields = ((name, b"Zk9"), (b"Accept", b"*/*"))
    _, request = written(request_fields=fields)
    assert name + b": ***\r\nAccept: */*" in request.block


def test_a_host_header_is_not_written_twice() -> None:
    _, request = written(request_fields=((b"host", b"other"),))
    assert request.block == b"GET /robots.txt?a=1 HTTP/1.1\r\nhost: other\r\n\r\n"
    _, request = written(url="http://[2001:db8::1]:8080/robots.txt")
    assert b"\r\nHost: [2001:db8::1]:8080\r\n" in request.block


def test_behind_a_proxy_the_target_of_http_is_absolute() -> None:
    response, request = written(by_proxy=True, url="http://a.example/robots.txt")
    assert request.block.startswith(b"GET http://a.example/robots.txt HTTP/1.1\r\n")
    assert "WARC-IP-Address" not in response.headers
    _, request = written(by_proxy=True)  # https goes through a tunnel
    assert request.block.startswith(b"GET /robots.txt?a=1 HTTP/1.1\r\n")


def test_a_304_is_a_revisit_only_if_there_is_a_copy() -> None:
    revisit, _ = written(status=304, copy_sha256="0" * 64, body=b"ignored", file=None)
    assert revisit.kind == "revisit"
    assert revisit.headers["X-Robots-Txt-Digest"] == "sha256:" + "0" * 64
    assert revisit.block.endswith(b"\r\n\r\n")
    response, _ = written(status=304, body=b"", file=None)
    assert response.kind == "response"
    response, _ = written(copy_sha256="0" * 64)  # the file has changed
    assert response.kind == "response"


def test_the_digest_is_that_of_the_file_that_a_browser_shows() -> None:
    page = b"<html><head></head><body><pre>User-agent: *\n</pre></body></html>"
    response, _ = written(body=page, file=page)
    digest = sha256(b"User-agent: *\n").hexdigest()
    assert response.headers["X-Robots-Txt-Digest"] == f"sha256:{digest}"
    assert response.headers["WARC-Payload-Digest"] == f"sha256:{sha256(page).hexdigest()}"
    long = bytes(SIZE_LIMIT + 1)
    assert file_sha256(long) == sha256(long).hexdigest()


def test_a_body_that_cannot_be_decoded_has_no_digest_of_a_file() -> None:
    for values in ({"file": None}, {"status": 404}):
        response, _ = written(**values)
        assert "X-Robots-Txt-Digest" not in response.headers


def test_a_file_over_ftp() -> None:
    [resource] = written(url="ftp://a.example/robots.txt", protocol=None)
    assert (resource.kind, resource.block) == ("resource", RULES)
    assert resource.headers["Content-Type"] == "text/plain"
    missing = EXCHANGE._replace(url="ftp://a.example/robots.txt", status=404)
    assert Records().exchange(missing) == b""


def test_each_value_of_a_warcinfo_record_is_one_line() -> None:
    fields = {"software": "a\r\nb: c", "isPartOf": "ü\ud800"}
    [info] = records_of(Records().warcinfo("a\r\nb.warc.gz", 0, fields))
    assert info.block == b"software: a b: c\r\nisPartOf: \xc3\xbc?\r\n"
    assert info.headers["WARC-Filename"] == "a b.warc.gz"
