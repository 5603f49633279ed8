"""Archives for tests and for the documentation, with the records that a crawl writes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from warcio.archiveiterator import ArchiveIterator

from scrapy_rep.fetch.downloader import Exchange
from scrapy_rep.protocol.lines import file_of
from scrapy_rep.protocol.paths import origin_of
from scrapy_rep.reports.archive import exchange_records, warcinfo


def response(
    time: str,
    url: str,
    body: bytes = b"",
    *,
    status: int = 200,
    origin: str | None = None,
    copy: bytes | None = None,
    location: str | None = None,
) -> Exchange:
    """A response to a request for a robots.txt at a time in UTC, such as ``2025-03-01T06:00``.

    ``origin`` is that of the fetch, if a redirect led to the URL. ``copy`` is the file that a 304
    says is still valid.
    """
    fields = () if location is None else ((b"Location", location.encode()),)
    return Exchange(
        url,
        datetime.fromisoformat(time).replace(tzinfo=timezone.utc).timestamp(),
        "GET",
        (),
        status,
        fields,
        body,
        file=body,
        origin=origin or origin_of(url) or "",
        copy_sha256=None if copy is None else sha256(file_of(copy)).hexdigest(),
    )


def write_archive(path: Path, responses: Iterable[Exchange]) -> Path:
    """Write the archive of a crawl. Returns its path."""
    start = warcinfo(path.name, {"software": "scrapy-rep"})
    path.write_bytes(start + b"".join(map(exchange_records, responses)))
    return path


class Record(NamedTuple):
    """One record of a WARC file."""

    kind: str
    headers: dict[str, str]
    block: bytes

    @property
    def body(self) -> bytes:
        """The body of the message."""
        return self.block.partition(b"\r\n\r\n")[2]

    @property
    def fields(self) -> set[tuple[str, str]]:
        """The header fields of the message."""
        return fields_of(self.block)


def fields_of(message: bytes) -> set[tuple[str, str]]:
    """Return the header fields of a message."""
    lines = message.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    pairs = (line.partition(": ") for line in lines)
    return {(name.lower(), value) for name, _, value in pairs}


def records_of(octets: bytes) -> list[Record]:
    """Return the records of a WARC file. Raises an error if a digest is wrong."""
    for record in ArchiveIterator(BytesIO(octets), check_digests="raise"):
        record.content_stream().read()
    return [
        Record(record.rec_type, dict(record.rec_headers.headers), record.raw_stream.read())
        for record in ArchiveIterator(BytesIO(octets), no_record_parse=True)
    ]
