"""The archive of a crawl: each request for a robots.txt and its response, in a WARC 1.1 file.

Each crawl has a file of its own, in which each record is a gzip member. A thread writes, so that a
slow or full disk does not delay the crawl. What is lost is counted, and the first loss is logged.
:mod:`~scrapy_rep.reports.archive_reader` reads an archive.

The block of a record is the message as it was on the wire, as far as Scrapy's download handlers
report it. They do not report the reason phrase and the spelling of header names, and they remove
the transfer coding. docs/usage/archive.md lists what these records have in place of them.

The conventions for what WARC 1.1 does not define are those of other crawlers: HTTP/2 messages in
the form of HTTP/1.1, with WARC-Protocol (a proposal of the IIPC that Common Crawl and Browsertrix
follow), and X-Crawler-Transfer-Encoding in place of a Transfer-Encoding that was removed (Apache
Nutch, StormCrawler).
"""

from __future__ import annotations

import json
import os
import re
from datetime import datetime, timezone
from hashlib import sha256
from http import HTTPStatus
from importlib.metadata import version
from io import BytesIO
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import scrapy
from warcio.statusandheaders import StatusAndHeaders, StatusAndHeadersParser
from warcio.utils import Digester
from warcio.warcwriter import WARCWriter

from .. import __version__
from ..crawl.recording import user_agent_text
from ..logs import get_logger
from ..protocol.lines import file_of
from ..settings import changed_settings
from .archive_reader import DIGEST_FIELD, ORIGIN_FIELD
from .background_file import BackgroundFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scrapy.statscollectors import StatsCollector

    from ..fetch.downloader import Exchange
    from ..frontier.clock import Clock
    from ..settings import Settings

logger = get_logger(__name__)

EXCHANGE_OVERHEAD = 4096
"""The bytes that an exchange counts in addition to its bodies."""

NOT_MODIFIED_PROFILE = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

HIDDEN = b"***"
"""Replaces the value of a request header that may be a secret."""

_SECRET = re.compile(rb"auth|cookie|key|password|secret|signature|token", re.IGNORECASE)
_LINE_BREAK = re.compile(rb"[\r\n]+")

_PROTOCOLS = {"h2": "h2", "http/2": "h2", "http/2.0": "h2", "http/3": "h3", "h3": "h3"}
_HTTP_1 = ("http/1.0", "http/1.1")


class Archive:
    """The archive of one crawl, in a file of its own.

    Raises OSError or ValueError if the file cannot be made.
    """

    def __init__(
        self, path: str, spider: str, settings: Settings, stats: StatsCollector, clock: Clock
    ) -> None:
        self._stats = stats
        self._clock = clock
        self._info = _info(spider, settings)
        self._records = Records()
        self.file = BackgroundFile(path)
        self._has_logged = False

    def start(self) -> None:
        """Add the record that describes the crawl."""
        at, name = self._clock.time(), os.path.basename(self.file.path)
        self.file.append(0, lambda: self._records.warcinfo(name, at, self._info), records=0)

    def record(self, exchange: Exchange) -> None:
        """Add a request and its response. This neither blocks nor raises."""
        octets = EXCHANGE_OVERHEAD + len(exchange.body) + len(exchange.file or b"")
        self.file.append(octets, lambda: self._records.exchange(exchange))
        self._report()

    async def close(self) -> None:
        """Return when all records are written, or after some seconds."""
        await self.file.close(self._clock)
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


def _info(spider: str, settings: Settings) -> dict[str, str]:
    """Return the fields of the warcinfo record."""
    return {
        "software": (
            f"scrapy-rep/{__version__} Scrapy/{scrapy.__version__} warcio/{version('warcio')}"
        ),
        "format": "WARC File Format 1.1",
        "conformsTo": (
            "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
        ),
        "robots": "RFC 9309",
        "http-header-user-agent": user_agent_text(settings),
        "isPartOf": spider,
        "description": (
            "Requests for robots.txt files, redirects included, and their responses. Header names "
            "are in Scrapy's spelling, and the reason phrase of a status line is the standard one. "
            "The transfer coding is removed from bodies, the content coding is not. Values of "
            "request headers that may be secrets are replaced by ***."
        ),
        "x-scrapy-rep-settings": json.dumps(
            changed_settings(settings), default=str, sort_keys=True
        ),
    }


# Records


class Records:
    """Makes the records of a file, each as a gzip member. The first one describes the crawl."""

    def __init__(self) -> None:
        self._warcinfo_id = _Writer.make_id()

    def warcinfo(self, filename: str, at: float, fields: Mapping[str, str]) -> bytes:
        """Return the record that describes a crawl. ``at`` is in seconds since 1970."""
        lines = (f"{name}: {' '.join(value.split())}\r\n" for name, value in fields.items())
        headers = {
            "WARC-Record-ID": self._warcinfo_id,
            "WARC-Date": _date(at),
            "WARC-Filename": " ".join(filename.split()).encode("utf-8", "replace").decode(),
        }
        block = "".join(lines).encode("utf-8", "replace")
        return _Writer().octets("warcinfo", headers, None, block)

    def exchange(self, exchange: Exchange) -> bytes:
        """Return the records of a response and of its request, in this order."""
        common = {
            "WARC-Date": _date(exchange.sent_at),
            "WARC-Target-URI": exchange.url,
            "WARC-Warcinfo-ID": self._warcinfo_id,
            ORIGIN_FIELD: exchange.origin,
        }
        if exchange.ip_address is not None and not exchange.by_proxy:
            common["WARC-IP-Address"] = str(exchange.ip_address)
        if protocol := _protocol(exchange):
            common["WARC-Protocol"] = protocol
        headers = {"WARC-Record-ID": _Writer.make_id(), **common}
        writer, body = _Writer(), exchange.body
        if exchange.truncated is not None:
            headers["WARC-Truncated"] = str(exchange.truncated)
        if exchange.file is not None and 200 <= exchange.status <= 299:
            headers[DIGEST_FIELD] = f"sha256:{sha256(file_of(exchange.file)).hexdigest()}"
        if not exchange.url.startswith("http"):  # FTP has no messages (WARC 1.1 §6.4)
            if exchange.status != 200:
                return b""
            headers["Content-Type"] = "text/plain"
            return writer.octets("resource", headers, None, body)
        kind = "response"
        if exchange.status == 304 and exchange.copy_sha256 is not None:
            kind, body = "revisit", b""
            headers["WARC-Profile"] = NOT_MODIFIED_PROFILE
            headers["WARC-Refers-To-Target-URI"] = exchange.url
            headers[DIGEST_FIELD] = f"sha256:{exchange.copy_sha256}"
        common["WARC-Concurrent-To"] = headers["WARC-Record-ID"]
        writer.octets(kind, headers, _response_head(exchange), body)
        return writer.octets("request", common, _request_head(exchange), b"")


def _response_head(exchange: Exchange) -> bytes:
    version = b"HTTP/1.0" if _protocol(exchange) == "http/1.0" else b"HTTP/1.1"
    try:
        phrase = HTTPStatus(exchange.status).phrase
    except ValueError:
        phrase = ""
    line = b"%b %d %b" % (version, exchange.status, phrase.encode())
    fields = (
        (b"X-Crawler-" + name if name.lower() == b"transfer-encoding" else name, value)
        for name, value in exchange.response_fields
    )
    return _head(line, fields)


def _request_head(exchange: Exchange) -> bytes:
    parts = urlsplit(exchange.url)
    target = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    if exchange.by_proxy and parts.scheme == "http":  # RFC 9112 §3.2.2: the absolute form
        target = parts._replace(fragment="").geturl()
    line = f"{exchange.method} {target} HTTP/1.1".encode("utf-8", "replace")
    fields = [
        (name, HIDDEN if _SECRET.search(name) else value) for name, value in exchange.request_fields
    ]
    if not any(name.lower() == b"host" for name, _ in fields):
        host = parts.netloc.rpartition("@")[2]
        fields.append((b"Host", host.encode("utf-8", "replace")))
    return _head(line, fields)


def _head(line: bytes, fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    # A download handler splits the lines. If a value has a line break, another component set it.
    lines = [line, *(name + b": " + value for name, value in fields)]
    return b"".join(_LINE_BREAK.sub(b" ", line) + b"\r\n" for line in lines) + b"\r\n"


def _protocol(exchange: Exchange) -> str | None:
    protocol = (exchange.protocol or "").lower()
    return _PROTOCOLS.get(protocol, protocol if protocol in _HTTP_1 else None)


def _date(at: float) -> str:
    date = datetime.fromtimestamp(at, timezone.utc)
    return date.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class _Head(StatusAndHeaders):  # type: ignore[misc, unused-ignore] # warcio has no types
    """A message head that is written as it is. warcio would change bytes beyond ASCII."""

    def __init__(self, octets: bytes) -> None:
        super().__init__("head", [])
        self._octets = octets

    def compute_headers_buffer(self, _: object = None) -> None:
        """Called by warcio."""
        self.headers_buff = self._octets


class _SHA256(Digester):  # type: ignore[misc, unused-ignore]
    """A digest in the form that stores and reports have."""

    def __init__(self) -> None:
        super().__init__("sha256")

    def __str__(self) -> str:
        return f"sha256:{self.digester.hexdigest()}"


class _Writer(WARCWriter):  # type: ignore[misc, unused-ignore]
    """Writes records to memory. warcio adds the digests, the length and the media type."""

    make_id = staticmethod(StatusAndHeadersParser.make_warc_id)
    _create_digester = _SHA256

    def __init__(self) -> None:
        super().__init__(BytesIO(), gzip=True, warc_version="1.1")

    def octets(
        self, kind: str, headers: Mapping[str, str], head: bytes | None, body: bytes
    ) -> bytes:
        """Add a record. Returns all records."""
        record = self.create_warc_record(
            "",
            kind,
            payload=BytesIO(body),
            length=len(body),
            warc_headers_dict=dict(headers),
            http_headers=None if head is None else _Head(head),
        )
        self.write_record(record)
        octets: bytes = self.out.getvalue()
        return octets
