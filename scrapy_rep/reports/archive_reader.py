"""Reads robots.txt files from an archive, one after another.

The file may be an archive of this package, or another WARC file with robots.txt files, such as
those of Common Crawl. The memory that this uses is limited, for any file.
"""

from __future__ import annotations

import logging
import re
from datetime import datetime, timezone
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import BufferedReader, ChunkedDataReader
from warcio.exceptions import ArchiveLoadFailed
from warcio.statusandheaders import StatusAndHeadersParserException

from ..fetch.body_reader import WIRE_LIMIT, BodyReader
from ..protocol.lines import SIZE_LIMIT
from ..protocol.paths import ROBOTS_TXT, origin_of, path_of
from ..protocol.printable import printable
from ..protocol.unwrap import unwrap_browser_page
from .members import MAGIC, BrokenMember, gzip_members, plain_members
from .warc_records import DIGEST_FIELD, ORIGIN_FIELD

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator
    from os import PathLike
    from typing import BinaryIO

logger = logging.getLogger(__name__)

RECORD_LIMIT = 1 << 22
"""The octets of a record that are kept. A longer body of a robots.txt is of no use."""

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

# WARC 1.1 §5.4: "UTC timestamp as described in the W3C profile of ISO 8601".
_DATE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?Z", re.ASCII)

_STATUS = re.compile("[1-9][0-9]{2}")  # RFC 9110 §15: "a three-digit integer code"

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
    """The file, decoded, up to the size limit and one octet. None for a 304 and if the body is cut
    off or cannot be decoded."""
    sha256: str | None
    """The SHA-256 of the file, as a store has it. For a 304, that of the copy that is still valid.
    """
    truncated: str | None
    """Why the end of the body is missing: the value of WARC-Truncated."""
    offset: int
    """Where the record starts in the file."""


class ArchiveProblem(NamedTuple):
    """A part of an archive that cannot be read."""

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

    ``on_problem`` is called for each part that cannot be read. All whole records are yielded.
    ``origins``: yield only those of these origins. The bodies of others are not decoded. Raises
    OSError.
    """
    with open(path, "rb") as stream:
        for found in records(stream):
            if isinstance(found, BrokenMember):
                on_problem(ArchiveProblem(str(path), found.offset, found.reason))
                continue
            offset, record = found
            try:
                archived = _archived(record, offset, origins)
            except UNREADABLE as error:
                on_problem(ArchiveProblem(str(path), offset, reason_of(error)))
            else:
                if archived is not None:
                    yield archived


Found = tuple[int, Any]
"""The offset of a record, and the record of warcio."""


def records(stream: BinaryIO) -> Iterator[Found | BrokenMember]:
    """Yield the records of a WARC file, and the places at which there is none.

    A record can be used until the next one is yielded.
    """
    is_compressed = stream.read(len(MAGIC)) == MAGIC
    stream.seek(0)
    split = gzip_members if is_compressed else plain_members
    for member in split(stream, RECORD_LIMIT):
        if isinstance(member, BrokenMember):
            yield member
            continue
        number = 0
        try:
            for record in ArchiveIterator(BytesIO(member.content)):
                number += 1
                yield member.offset, record
        except UNREADABLE as error:
            yield BrokenMember(member.offset, reason_of(error))
        if member.is_cut and number > 1:
            yield BrokenMember(
                member.offset,
                "the file does not have one gzip member for each record, so only its first records "
                "are read; `warcio recompress` writes such a file",
            )


def reason_of(error: Exception) -> str:
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
    http = record.http_headers
    status = None
    if http is not None:
        status = _status(http.get_statuscode())
    elif record.rec_type != "resource":
        raise ValueError("there is no HTTP message")
    at = _seconds(headers.get_header("WARC-Date") or "")
    digest = headers.get_header(DIGEST_FIELD) or ""
    truncated = headers.get_header("WARC-Truncated")
    is_revisit = record.rec_type == "revisit"
    return ArchivedRobotsTxt(
        url,
        origin,
        at,
        status,
        None if is_revisit else _file(record, truncated),
        digest.removeprefix("sha256:") or None,
        truncated,
        offset,
    )


def _status(code: str) -> int:
    """Return the status code of a response. Raises ValueError."""
    if _STATUS.fullmatch(code) is None:
        raise ValueError("the status code is not valid")
    return int(code)


def _seconds(date: str) -> float:
    """Return a WARC-Date in seconds since 1970. Raises ValueError."""
    found = _DATE.fullmatch(date)
    if found is None:
        raise ValueError("the WARC-Date is not valid")
    whole = datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    return whole.timestamp() + float(found[2] or 0)


def _file(record: Any, truncated: str | None) -> bytes | None:
    """Return the decoded body, as the crawl read it."""
    http = record.http_headers
    codings: list[str] = []
    is_chunked = False
    if http is not None:
        codings = [value for name, value in http.headers if name.lower() == "content-encoding"]
        is_chunked = http.get_header("Transfer-Encoding", "").strip().lower() == "chunked"
    coding = ",".join(codings).strip().lower()
    reader = BodyReader()
    if reader.start(coding.encode("latin-1", "replace")):
        stream = ChunkedDataReader(record.raw_stream) if is_chunked else record.raw_stream
        reader.feed(_beginning(stream, WIRE_LIMIT))
        body = reader.data
        if not reader.readable:
            return None
    elif coding in BufferedReader.get_supported_decompressors():
        body = _beginning(record.content_stream(), SIZE_LIMIT + 1)
    else:
        return None
    if truncated is not None and len(body) <= SIZE_LIMIT:
        return None
    text = unwrap_browser_page(body, cut_off=len(body) > SIZE_LIMIT)
    return body if text is None else text


def _beginning(stream: Any, limit: int) -> bytes:
    data = b""
    while len(data) < limit and (piece := stream.read(limit - len(data))):
        data += piece
    return data
