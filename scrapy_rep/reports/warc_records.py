"""The WARC 1.1 records of an archive, each as one gzip member.

The block of a record is the message as it was on the wire, as far as Scrapy's download handlers
report it. They do not report the reason phrase and the spelling of header names, and they remove
the transfer coding. docs/usage/archive.md lists what these records have in place of them.

The conventions for what WARC 1.1 does not define are those of other crawlers: HTTP/2 messages in
the form of HTTP/1.1, with WARC-Protocol (a proposal of the IIPC that Common Crawl and Browsertrix
follow), and X-Crawler-Transfer-Encoding in place of a Transfer-Encoding that was removed (Apache
Nutch, StormCrawler).
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from hashlib import sha256
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from uuid import uuid4

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from ..protocol.lines import SIZE_LIMIT
from ..protocol.unwrap import unwrap_browser_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..fetch.exchange import Exchange

ORIGIN_FIELD = "X-Robots-Txt-Origin"
"""The origin whose robots.txt was requested. After a redirect, the URL is of another origin."""

DIGEST_FIELD = "X-Robots-Txt-Digest"
"""The digest of the decoded file, up to the size limit, as stores and reports have it. The
WARC-Payload-Digest is that of the body with its content coding."""

WARC_FORMAT = {
    "format": "WARC File Format 1.1",
    "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
}
"""The fields of a warcinfo record that name the format."""

NOT_MODIFIED_PROFILE = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"

HIDDEN = b"***"
"""Replaces the value of a request header that may be a secret."""

_SECRET = re.compile(rb"auth|cookie|key|password|secret|signature|token", re.IGNORECASE)
_LINE_BREAK = re.compile(rb"[\r\n]+")

_PROTOCOLS = {"h2": "h2", "http/2": "h2", "http/2.0": "h2", "http/3": "h3", "h3": "h3"}
_HTTP_1 = ("http/1.0", "http/1.1")


def make_record_id() -> str:
    """Return a new WARC-Record-ID."""
    return f"<urn:uuid:{uuid4()}>"


def version_of(package: str) -> str:
    """Return the version of a package after a slash; nothing if it is not installed."""
    try:
        return f"/{version(package)}"
    except PackageNotFoundError:  # the code is on the path, but is not installed
        return ""


def warcinfo_record(record_id: str, filename: str, at: float, fields: Mapping[str, str]) -> bytes:
    """Return the record that describes a file or a crawl. ``at`` is in seconds since 1970."""
    lines = (f"{name}: {' '.join(value.split())}\r\n" for name, value in fields.items())
    block = "".join(lines).encode("utf-8", "replace")
    headers = {
        "WARC-Type": "warcinfo",
        "WARC-Record-ID": record_id,
        "WARC-Date": warc_date(at),
        "WARC-Filename": " ".join(filename.split()).encode("utf-8", "replace").decode(),
        "WARC-Block-Digest": digest_of(block),
    }
    return record_octets("warcinfo", headers, None, block)


def exchange_records(exchange: Exchange, warcinfo_id: str) -> bytes:
    """Return the records of a response and of its request, in this order."""
    if not exchange.url.startswith("http"):
        return _resource_record(exchange, warcinfo_id)
    response_id = make_record_id()
    copy = exchange.copy_sha256 if exchange.status == 304 else None
    head = _response_head(exchange)
    body = b"" if copy is not None else exchange.body
    headers = {
        "WARC-Type": "response" if copy is None else "revisit",
        "WARC-Record-ID": response_id,
        **_common_headers(exchange, warcinfo_id),
    }
    if copy is not None:
        headers["WARC-Profile"] = NOT_MODIFIED_PROFILE
        headers["WARC-Refers-To-Target-URI"] = exchange.url
        headers[DIGEST_FIELD] = f"sha256:{copy}"
    else:
        headers.update(_body_headers(exchange))
    headers["WARC-Block-Digest"] = digest_of(head, body)
    response = record_octets(headers["WARC-Type"], headers, head, body)
    head = _request_head(exchange)
    headers = {
        "WARC-Type": "request",
        "WARC-Record-ID": make_record_id(),
        **_common_headers(exchange, warcinfo_id),
        "WARC-Concurrent-To": response_id,
        "WARC-Payload-Digest": digest_of(b""),
        "WARC-Block-Digest": digest_of(head),
    }
    return response + record_octets("request", headers, head, b"")


def _resource_record(exchange: Exchange, warcinfo_id: str) -> bytes:
    """Return the record of a file that came over FTP, which has no messages (WARC 1.1 §6.4)."""
    if exchange.status != 200:
        return b""
    headers = {
        "WARC-Type": "resource",
        "WARC-Record-ID": make_record_id(),
        **_common_headers(exchange, warcinfo_id),
        **_body_headers(exchange),
        "WARC-Block-Digest": digest_of(exchange.body),
        "Content-Type": "text/plain",
    }
    return record_octets("resource", headers, None, exchange.body)


def _common_headers(exchange: Exchange, warcinfo_id: str) -> dict[str, str]:
    headers = {
        "WARC-Date": warc_date(exchange.sent_at),
        "WARC-Target-URI": exchange.url,
        "WARC-Warcinfo-ID": warcinfo_id,
        ORIGIN_FIELD: exchange.origin,
    }
    if exchange.ip_address is not None and not exchange.by_proxy:
        headers["WARC-IP-Address"] = str(exchange.ip_address)
    protocol = _protocol(exchange)
    if protocol is not None:
        headers["WARC-Protocol"] = protocol
    return headers


def _body_headers(exchange: Exchange) -> dict[str, str]:
    headers = {"WARC-Payload-Digest": digest_of(exchange.body)}
    if exchange.truncated is not None:
        headers["WARC-Truncated"] = str(exchange.truncated)
    if exchange.file is not None and 200 <= exchange.status <= 299:
        headers[DIGEST_FIELD] = f"sha256:{file_sha256(exchange.file)}"
    return headers


def file_sha256(file: bytes) -> str:
    """Return the SHA-256 of a decoded robots.txt as :class:`CopyInfo` has it."""
    text = unwrap_browser_page(file, cut_off=len(file) > SIZE_LIMIT)
    return sha256(file if text is None else text).hexdigest()


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


def warc_date(at: float) -> str:
    """Return the WARC-Date of a time in seconds since 1970."""
    date = datetime.fromtimestamp(at, timezone.utc)
    return date.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def digest_of(*parts: bytes) -> str:
    """Return the digest of the octets of these parts, as a field of a record has it."""
    digest = sha256()
    for part in parts:
        digest.update(part)
    return f"sha256:{digest.hexdigest()}"


class _Head(StatusAndHeaders):  # type: ignore[misc, unused-ignore]
    """A message head that is written as it is. warcio would change octets beyond ASCII."""

    def __init__(self, octets: bytes) -> None:
        super().__init__("head", [])
        self._octets = octets

    def compute_headers_buffer(self, _: object = None) -> None:
        """Called by warcio."""
        self.headers_buff = self._octets


def record_octets(kind: str, headers: Mapping[str, str], head: bytes | None, body: bytes) -> bytes:
    """Return a record as a gzip member. ``head`` is that of an HTTP message, if there is one."""
    out = BytesIO()
    writer: Any = WARCWriter(out, gzip=True, warc_version="1.1")
    record = writer.create_warc_record(
        "",
        kind,
        payload=BytesIO(body),
        length=len(body),
        warc_headers_dict=dict(headers),
        http_headers=None if head is None else _Head(head),
    )
    writer.write_record(record)
    return out.getvalue()
