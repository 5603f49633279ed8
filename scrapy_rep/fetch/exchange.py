"""One request for a robots.txt and its response, as the download handler sent and received them.

This is for the archive of a crawl (REP_ARCHIVE). A crawl without an archive makes no such record.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from .body_reader import WIRE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request
    from scrapy.http import Response
    from scrapy.http.headers import Headers

    from .addresses import Address
    from .body_reader import BodyReader

Fields = tuple[tuple[bytes, bytes], ...]
"""The header fields of a message, in order. A field with several values is there once for each."""


class Truncation(str, Enum):
    """Why the end of a body is missing. The values are those of WARC-Truncated (WARC 1.1 §5.13)."""

    LENGTH = "length"
    """The body is longer than the size limit."""
    DISCONNECT = "disconnect"
    """The connection ended before the body."""
    UNSPECIFIED = "unspecified"
    """The body cannot be decoded, or another component stopped the download."""

    def __str__(self) -> str:
        return self.value


class Exchange(NamedTuple):
    """One request and its response."""

    url: str
    sent_at: float
    """Seconds since 1970."""
    method: str
    request_fields: Fields
    """The header fields that Scrapy gave to the download handler."""
    status: int
    response_fields: Fields
    body: bytes
    """The octets of the body without transfer coding, but with content coding, up to the limit."""
    truncated: Truncation | None = None
    protocol: str | None = None
    """The protocol as the download handler names it; None if it names none."""
    ip_address: Address | None = None
    """The address of the connection; None if the download handler does not report it."""
    by_proxy: bool = False
    file: bytes | None = None
    """The decoded body, up to the limit. None if it cannot be decoded or is cut off."""
    conditional: bool = False
    """Whether the request carried a validator of the good copy."""
    origin: str = ""
    """The origin whose robots.txt is fetched. After a redirect, ``url`` is of another origin."""
    copy_sha256: str | None = None
    """The SHA-256 of the good copy that the request validates; None if there is none."""


def exchange_of(
    request: Request, response: Response, headers: Headers, reader: BodyReader, length: int
) -> Exchange:
    """Return what a download handler sent and received.

    ``headers`` are those of the response as they were received. ``length`` is the number of octets
    that the handler returned; the body of ``response`` may have been cut since.
    """
    return Exchange(
        url=request.url,
        sent_at=0,
        method=request.method,
        request_fields=_fields(request.headers),
        status=response.status,
        response_fields=_fields(headers),
        body=response.body,
        truncated=_truncation(response, headers, reader, length),
        protocol=response.protocol,
        ip_address=response.ip_address,
    )


def _truncation(
    response: Response, headers: Headers, reader: BodyReader, length: int
) -> Truncation | None:
    if len(response.body) < length:
        return Truncation.LENGTH
    if "dataloss" in response.flags:
        return Truncation.DISCONNECT
    # The download is stopped at the limit even if the body ends there.
    is_whole = headers.get("Content-Length") == str(length).encode()
    if is_whole or "download_stopped" not in response.flags:
        return None
    is_long = reader.full or reader.received > WIRE_LIMIT
    return Truncation.LENGTH if is_long else Truncation.UNSPECIFIED


def _fields(headers: Headers) -> Fields:
    items: Iterable[tuple[bytes, list[bytes]]] = headers.items()
    return tuple((name, value) for name, values in items for value in values)
