"""Reads robots.txt files from an archive, one after another.

The file may be an archive of this package, or another WARC file with robots.txt files, such as
those of Common Crawl. The memory that this uses is limited, for any file.
"""

from __future__ import annotations

import re
import zlib
from datetime import timezone
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from warcio.archiveiterator import WARCIterator
from warcio.bufferedreaders import BufferedReader, ChunkedDataReader
from warcio.exceptions import ArchiveLoadFailed
from warcio.limitreader import LimitReader
from warcio.statusandheaders import StatusAndHeadersParser, StatusAndHeadersParserException
from warcio.timeutils import iso_date_to_datetime

from ..fetch.body_reader import WIRE_LIMIT, BodyReader
from ..logs import get_logger
from ..protocol.lines import SIZE_LIMIT, file_of
from ..protocol.paths import ROBOTS_TXT, origin_of, path_of
from ..protocol.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from os import PathLike
    from typing import BinaryIO

logger = get_logger(__name__)

ORIGIN_FIELD = "X-Robots-Txt-Origin"
"""The origin whose robots.txt was requested. After a redirect, the URL is of another origin."""

DIGEST_FIELD = "X-Robots-Txt-Digest"
"""The digest of the decoded file, up to the size limit, as stores and reports have it. The
WARC-Payload-Digest is that of the body with its content coding."""

RECORD_LIMIT = 1 << 22
"""The bytes of a record that are kept. A longer body of a robots.txt is of no use."""

MAX_HEADER = 1 << 16
"""The bytes of the header of a record."""

PIECE = 1 << 12
"""The bytes that are inflated or skipped at once. Inflated, they are a thousand times as many."""

CUT_OFF = "the file ends before the record does"

MAX_REASON = 200
"""The characters of a reason that are kept. It may contain text of the file."""

UNREADABLE = (
    ArchiveLoadFailed,
    StatusAndHeadersParserException,
    AttributeError,  # a header that is missing
    EOFError,
    TypeError,
    ValueError,
)
"""What warcio raises for a record that it cannot read."""

_STATUS = re.compile("[1-9][0-9]{2}")  # RFC 9110 §15: "a three-digit integer code"

_GZIP = b"\x1f\x8b\x08"
_HTTP = StatusAndHeadersParser([], verify=False)
_KINDS = ("response", "resource", "revisit")


class ArchivedRobotsTxt(NamedTuple):
    """A response to a request for a robots.txt. Redirects are responses of their own."""

    url: str
    origin: str
    """The origin whose robots.txt was requested. After a redirect, ``url`` is of another origin."""
    time: float
    """When the request was sent, in seconds since 1970."""
    status: int | None
    """None for a file that came over FTP."""
    body: bytes | None
    """The file, decoded, up to the size limit and one byte. None for a 304 and if the body is cut
    off or cannot be decoded."""
    sha256: str | None
    """The SHA-256 of the file, as a store has it. For a 304, that of the copy that is still valid.
    """
    truncated: str | None
    """Why the end of the body is missing: the value of WARC-Truncated."""
    offset: int
    """Where the record starts in the file."""


class ArchiveProblem(NamedTuple):
    """A record of an archive that cannot be read, or the damaged end of the file."""

    path: str
    offset: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: no readable record at offset {self.offset}: {self.reason}"


def log_problem(problem: ArchiveProblem) -> None:
    """Log a problem as a warning."""
    logger.warning("%s", problem)


def read(
    path: str | PathLike[str],
    on_problem: Callable[[ArchiveProblem], object] = log_problem,
    *,
    origins: Container[str] | None = None,
) -> Iterator[ArchivedRobotsTxt]:
    """Yield the responses to requests for robots.txt files in a WARC file, in their order.

    ``on_problem`` is called for each record that cannot be read. The end of a file that is damaged
    is not read.
    ``origins``: yield only those of these origins. The bodies of others are not decoded. Raises
    OSError.
    """
    with open(path, "rb") as stream:
        found = _Records(stream)
        last = -1

        def report(error: Exception) -> None:
            nonlocal last
            if found.offset != last:
                last = found.offset
                on_problem(ArchiveProblem(str(path), last, _reason(error)))

        try:
            for record in found:
                try:
                    archived = _archived(record, found.offset, origins)
                    while record.raw_stream.read(PIECE):
                        pass
                    if not isinstance(record.raw_stream, LimitReader) or record.raw_stream.limit:
                        raise ArchiveLoadFailed(CUT_OFF)
                except UNREADABLE as error:
                    report(error)
                else:
                    if archived is not None:
                        yield archived
                found.reader.header_octets = 0
        except UNREADABLE as error:
            report(error)
        else:
            if found.err_count:
                report(ArchiveLoadFailed("a record is longer than its Content-Length"))


class _Reader(BufferedReader):  # type: ignore[misc, unused-ignore] # warcio has no types
    """The bytes of a WARC file, inflated. Damage raises, and headers have a limit.

    warcio itself would take what follows the damage for the end of the file.
    """

    header_octets = 0
    """Bytes of lines since the last record."""

    def readline(self, length: int | None = None) -> bytes:
        line: bytes = super().readline(length or MAX_HEADER)
        self.header_octets += len(line)
        if self.header_octets > MAX_HEADER:
            raise ArchiveLoadFailed("the header of a record is too long")
        return line

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self.decompressor.decompress(data) if self.decompressor else data
        except zlib.error as error:
            raise ArchiveLoadFailed(str(error)) from None

    def _process_read(self, data: bytes) -> None:
        if not data and self.decompressor and not self.decompressor.eof:
            raise ArchiveLoadFailed(CUT_OFF)
        super()._process_read(data)


class _Records(WARCIterator):  # type: ignore[misc, unused-ignore]
    """The records of a WARC file, whose HTTP messages are not read yet."""

    INC_RECORD = ""
    """What warcio writes to standard error of a record that is longer than it says."""

    def __init__(self, stream: BinaryIO) -> None:
        is_compressed = stream.read(len(_GZIP)) == _GZIP
        stream.seek(0)
        super().__init__(stream, no_record_parse=True)
        self.reader = _Reader(stream, PIECE, "gzip" if is_compressed else None)

    def _raise_invalid_gzip_err(self) -> None:
        """Called by warcio where one gzip member has several records, which is not a fault here."""


def _reason(error: Exception) -> str:
    """Return the text of an error. It may contain text of the file."""
    return printable(" ".join(str(error).split()) or type(error).__name__, MAX_REASON)


def _archived(record: Any, offset: int, origins: Container[str] | None) -> ArchivedRobotsTxt | None:
    """Return what a record contains; None if it is not of a robots.txt of one of the origins."""
    headers = record.rec_headers
    url = headers.get_header("WARC-Target-URI") or ""
    origin = headers.get_header(ORIGIN_FIELD)
    if record.rec_type not in _KINDS or not url:
        return None
    if origin is None:
        origin = origin_of(url)
        if origin is None or path_of(url) != ROBOTS_TXT:
            return None
    if origins is not None and origin not in origins:
        return None
    block = _beginning(record.raw_stream, RECORD_LIMIT)
    stream, http, status = BytesIO(block), None, None
    if record.rec_type != "resource":
        if not block:
            raise ValueError("there is no HTTP message")
        http = _HTTP.parse(stream)
        if _STATUS.fullmatch(http.get_statuscode()) is None:
            raise ValueError("the status code is not valid")
        status = int(http.get_statuscode())
    at = iso_date_to_datetime(headers.get_header("WARC-Date")).replace(tzinfo=timezone.utc)
    digest = headers.get_header(DIGEST_FIELD) or ""
    truncated = headers.get_header("WARC-Truncated")
    is_revisit = record.rec_type == "revisit"
    return ArchivedRobotsTxt(
        url,
        origin,
        at.timestamp(),
        status,
        None if is_revisit else _file(stream, http, truncated),
        digest.removeprefix("sha256:") or None,
        truncated,
        offset,
    )


def _file(stream: Any, http: Any, truncated: str | None) -> bytes | None:
    """Return the decoded body, as the crawl read it."""
    codings: list[str] = []
    is_chunked = False
    if http is not None:
        codings = [value for name, value in http.headers if name.lower() == "content-encoding"]
        is_chunked = http.get_header("Transfer-Encoding", "").strip().lower() == "chunked"
    coding = ",".join(codings).strip().lower()
    if is_chunked:
        stream = ChunkedDataReader(stream)
    reader = BodyReader(coding.encode("latin-1", "replace"))
    if not reader.is_supported:
        return None
    reader.feed(_beginning(stream, WIRE_LIMIT))
    body = reader.body
    if body is None or (truncated is not None and len(body) <= SIZE_LIMIT):
        return None
    return file_of(body)


def _beginning(stream: Any, limit: int) -> bytes:
    data = b""
    while len(data) < limit and (piece := stream.read(limit - len(data))):
        data += piece
    return data
