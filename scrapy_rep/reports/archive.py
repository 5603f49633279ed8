"""The archive of a crawl: each request for a robots.txt and its response, in a WARC 1.1 file.

Each crawl has a file of its own, in which each record is a gzip member. The block of a record is
the message as it was on the wire, with the exceptions that `DESCRIPTION` names.

:func:`read` reads an archive, or another WARC file with robots.txt files, such as those of Common
Crawl. The memory that this uses is limited, for any file.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from hashlib import sha256
from http.client import responses
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import urlsplit

from warcio.bufferedreaders import ChunkedDataReader
from warcio.exceptions import ArchiveLoadFailed
from warcio.limitreader import LimitReader
from warcio.recordloader import ArcWarcRecordLoader
from warcio.statusandheaders import StatusAndHeadersParser, StatusAndHeadersParserException
from warcio.timeutils import iso_date_to_datetime
from warcio.warcwriter import WARCWriter

from ..logs import get_logger
from ..protocol.access import recognize
from ..protocol.agents import text_of
from ..protocol.body_reader import WIRE_LIMIT, BodyReader
from ..protocol.lines import SIZE_LIMIT, file_of
from ..protocol.paths import ROBOTS_TXT, origin_of, path_of
from ..protocol.printable import printable
from ..settings import Settings, changed_settings
from .files import BackgroundFile

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

    from ..fetch.downloader import Exchange

logger = get_logger(__name__)

ORIGIN_FIELD = "X-Robots-Txt-Origin"  # as `ArchivedRobotsTxt.origin`

DIGEST_FIELD = "X-Robots-Txt-Digest"
"""The digest of the decoded file, up to the size limit, as stores and reports have it. The
WARC-Payload-Digest is that of the body with its content coding."""

SOFTWARE = " ".join(f"{name}/{version(name)}" for name in ("scrapy-rep", "Scrapy", "warcio"))

DESCRIPTION = (
    "Requests for robots.txt files, redirects included, and their responses. Header names are in "
    "Scrapy's spelling, and the reason phrase of a status line is the standard one. The transfer "
    "coding is removed from bodies, the content coding is not. Values of request headers that may "
    "be secrets are replaced by ***."
)

_SECRET = re.compile(rb"auth|cookie|key|password|secret|signature|token", re.IGNORECASE)
_LINE_BREAK = re.compile(rb"[\r\n]+")


class Archive:
    """The archive of one crawl. Raises OSError or ValueError if its file cannot be made."""

    def __init__(self, path: str, spider: str, settings: Settings, stats: StatsCollector) -> None:
        self._stats = stats
        self.file = BackgroundFile(Path(path))
        self._has_logged = False
        changed = json.dumps(changed_settings(settings), default=str, sort_keys=True)
        fields = {
            "software": SOFTWARE,
            "format": "WARC File Format 1.1",
            "robots": "RFC 9309",
            "http-header-user-agent": text_of(settings.user_agent(None)),
            "isPartOf": spider,
            "description": DESCRIPTION,
            "x-scrapy-rep-settings": changed,
        }
        name = os.path.basename(self.file.path)
        self.file.append(0, lambda: warcinfo(name, fields), records=0)

    def record(self, exchange: Exchange) -> None:
        """Add a request and its response. This neither blocks nor raises."""
        if not exchange.url.startswith("http"):  # FTP has no messages
            return
        size = len(exchange.body) + len(exchange.file or b"") + 4096  # for all but the bodies
        self.file.append(size, lambda: exchange_records(exchange))
        self._report()

    async def close(self) -> None:
        """Return when all records are written, or after some seconds."""
        await self.file.close()
        self._report()

    def _report(self) -> None:
        """Update the stats, and log the first failure."""
        if self.file.written:
            self._stats.set_value("robotstxt/archive/exchange_count", self.file.written)
        if self.file.lost:
            self._stats.set_value("robotstxt/archive/lost_count", self.file.lost)
        if self.file.failure and not self._has_logged:
            self._has_logged = True
            logger.error(
                "A record could not be added to the archive %(path)s (REP_ARCHIVE): %(failure)s. "
                "The crawl continues. The stat robotstxt/archive/lost_count counts all lost "
                "records.",
                {"path": self.file.path, "failure": self.file.failure},
            )


def warcinfo(filename: str, fields: Mapping[str, str]) -> bytes:
    """Return the first record of an archive, which describes the crawl."""
    file = BytesIO()
    writer = WARCWriter(file, warc_version="1.1")
    lines = {name: " ".join(value.split()) for name, value in fields.items()}
    writer.write_record(writer.create_warcinfo_record(" ".join(filename.split()), lines))
    return file.getvalue()


def exchange_records(exchange: Exchange) -> bytes:
    """Return the records of a response and of its request, in this order."""
    date = datetime.fromtimestamp(exchange.sent_at, timezone.utc)
    common = {
        "WARC-Date": f"{date:%Y-%m-%dT%H:%M:%S.%fZ}",
        "WARC-Target-URI": exchange.url,
        ORIGIN_FIELD: exchange.origin,
    }
    if exchange.ip_address is not None and not exchange.by_proxy:
        common["WARC-IP-Address"] = str(exchange.ip_address)
    headers = dict(common)
    if exchange.truncated is not None:
        headers["WARC-Truncated"] = str(exchange.truncated)
    digest = exchange.copy_sha256 if exchange.status == 304 else None
    if exchange.file is not None and 200 <= exchange.status <= 299:
        digest = sha256(file_of(exchange.file)).hexdigest()
    if digest is not None:
        headers[DIGEST_FIELD] = f"sha256:{digest}"
    file = BytesIO()
    writer = WARCWriter(file, warc_version="1.1")
    response = _add(writer, "response", headers, _response_head(exchange), exchange.body)
    common["WARC-Concurrent-To"] = response
    _add(writer, "request", common, _request_head(exchange), b"")
    return file.getvalue()


def _add(writer: Any, kind: str, headers: dict[str, str], head: bytes, body: bytes) -> str:
    """Add a record. Returns its identifier."""
    block = head + body
    headers["WARC-Block-Digest"] = f"sha256:{sha256(block).hexdigest()}"
    headers["WARC-Payload-Digest"] = f"sha256:{sha256(body).hexdigest()}"
    # Without a URL, warcio does not read the head, and so does not change bytes beyond ASCII.
    made = {"payload": BytesIO(block), "length": len(block), "warc_headers_dict": headers}
    record = writer.create_warc_record("", kind, **made)
    writer.write_record(record)
    return str(record.rec_headers.get_header("WARC-Record-ID"))


def _response_head(exchange: Exchange) -> bytes:
    fields = (
        (b"X-Crawler-" + name if name.lower() == b"transfer-encoding" else name, value)
        for name, value in exchange.response_fields
    )
    return _head(f"HTTP/1.1 {exchange.status} {responses.get(exchange.status, '')}", fields)


def _request_head(exchange: Exchange) -> bytes:
    parts = urlsplit(exchange.url)
    target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    fields = [
        (name, b"***" if _SECRET.search(name) else value) for name, value in exchange.request_fields
    ]
    if not any(name.lower() == b"host" for name, _ in fields):
        fields.append((b"Host", parts.netloc.rpartition("@")[2].encode("utf-8", "replace")))
    return _head(f"{exchange.method} {target} HTTP/1.1", fields)


def _head(line: str, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    # A download handler splits the lines. If a value has a line break, another component set it.
    lines = [line.encode("utf-8", "replace"), *(name + b": " + value for name, value in fields)]
    return b"".join(_LINE_BREAK.sub(b" ", line) + b"\r\n" for line in lines) + b"\r\n"


# Bytes
RECORD_LIMIT = 1 << 22  # of a record that are kept: a longer body of a robots.txt is of no use
MAX_HEADER = 1 << 16  # of the header of a record
PIECE = 1 << 12  # that are inflated or skipped at once: inflated, a thousand times as many

_OF_WARCIO = ArchiveLoadFailed, StatusAndHeadersParserException
_MISSING_HEADER = AttributeError, TypeError
UNREADABLE = *_OF_WARCIO, *_MISSING_HEADER, EOFError, ValueError, gzip.BadGzipFile, zlib.error
"""What is raised for a record that cannot be read."""

_STATUS = re.compile("[1-9][0-9]{2}")  # RFC 9110 §15: "a three-digit integer code"
_HTTP = StatusAndHeadersParser([], verify=False)


class ArchivedRobotsTxt(NamedTuple):
    """A response to a request for a robots.txt. Redirects are responses of their own."""

    url: str
    origin: str
    """The origin whose robots.txt was requested. After a redirect, ``url`` is of another origin."""
    time: float
    """When the request was sent, in seconds since 1970."""
    status: int
    body: bytes | None
    """The file, decoded, up to the size limit and one byte. None for a 304 and if the body is cut
    off or cannot be decoded."""
    sha256: str | None
    """The SHA-256 of the file, as a store has it; for a 304, of the copy that is still valid."""


def read(
    path: str | Path, on_problem: Callable[[str], object], *, origins: Container[str] | None = None
) -> Iterator[ArchivedRobotsTxt]:
    """Yield the responses to requests for robots.txt files in a WARC file, in their order.

    ``on_problem`` gets a sentence for each record that cannot be read, with its offset in the bytes
    that are not compressed. The end of a file that is damaged is not read. ``origins``: yield only
    those of these origins. The bodies of others are not decoded. Raises OSError.
    """
    with open(path, "rb") as file:
        stream = _Stream(file)

        def report(error: Exception) -> None:
            reason = printable(" ".join(str(error).split()) or type(error).__name__)
            on_problem(f"{path}: no readable record at offset {stream.offset}: {reason}")

        try:
            for record, block in stream.records():
                try:
                    if (found := _archived(record, block, origins)) is not None:
                        yield found
                except UNREADABLE as error:
                    report(error)
        except UNREADABLE as error:
            report(error)


class _Stream:
    """The bytes of a WARC file, inflated. The header of a record has a limit."""

    def __init__(self, file: BinaryIO) -> None:
        is_compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        self._file: Any = gzip.GzipFile(fileobj=file) if is_compressed else file
        self.read, self.tell = self._file.read, self._file.tell
        self.offset, self._room = 0, MAX_HEADER

    def records(self) -> Iterator[tuple[Any, bytes]]:
        """Yield each record with the beginning of its block, after all of the block was read."""
        loader = ArcWarcRecordLoader()
        while line := self.readline():
            if line.isspace():
                continue
            self.offset = self.tell() - len(line)
            record = loader.parse_record_stream(self, line, "warc", no_record_parse=True)
            block = _beginning(record.raw_stream, RECORD_LIMIT)
            while record.raw_stream.read(PIECE):
                pass
            if not isinstance(record.raw_stream, LimitReader) or record.raw_stream.limit:
                raise ArchiveLoadFailed("the file ends before the record does")
            self._room = MAX_HEADER
            yield record, block

    def readline(self) -> bytes:
        """Return the next line. Called by warcio for each line of a header."""
        line: bytes = self._file.readline(MAX_HEADER)
        self._room -= len(line)
        if self._room < 0:
            raise ArchiveLoadFailed("the header of a record is too long")
        return line


def _archived(
    record: Any, block: bytes, origins: Container[str] | None
) -> ArchivedRobotsTxt | None:
    """Return what a record contains; None if it is not of a robots.txt of one of the origins."""
    headers = record.rec_headers
    url = headers.get_header("WARC-Target-URI") or ""
    origin = headers.get_header(ORIGIN_FIELD)
    if record.rec_type not in ("response", "revisit") or not url:
        return None
    if origin is None:
        origin = origin_of(url)
        if origin is None or path_of(url) != ROBOTS_TXT:
            return None
    if origins is not None and origin not in origins:
        return None
    if not block:
        raise ValueError("there is no HTTP message")
    stream = BytesIO(block)
    http = _HTTP.parse(stream)
    if _STATUS.fullmatch(http.get_statuscode()) is None:
        raise ValueError("the status code is not valid")
    at = iso_date_to_datetime(headers.get_header("WARC-Date")).replace(tzinfo=timezone.utc)
    status = int(http.get_statuscode())
    has_file = record.rec_type == "response" and status != 304
    body = _file(stream, http, headers) if has_file else None
    digest = (headers.get_header(DIGEST_FIELD) or "").removeprefix("sha256:") or None
    return ArchivedRobotsTxt(url, origin, at.timestamp(), status, body, digest)


def _file(stream: Any, http: Any, headers: Any) -> bytes | None:
    """Return the decoded body, as the crawl read it; another page than a robots.txt as it is."""
    coding = ",".join(value for name, value in http.headers if name.lower() == "content-encoding")
    if http.get_header("Transfer-Encoding", "").strip().lower() == "chunked":
        stream = ChunkedDataReader(stream)
    reader = BodyReader(coding.strip().lower().encode("latin-1", "replace"))
    if not reader.is_supported:
        return None
    reader.feed(_beginning(stream, WIRE_LIMIT))
    body = reader.body
    is_cut_off = headers.get_header("WARC-Truncated") is not None
    if body is None or (is_cut_off and len(body) <= SIZE_LIMIT):
        return None
    return file_of(body) if recognize(body).result is None else body


def _beginning(stream: Any, limit: int) -> bytes:
    data = b""
    while len(data) < limit and (piece := stream.read(limit - len(data))):
        data += piece
    return data
