"""The body of one answer as it arrives: inflated, and no more of it than the limit.

RFC 9309, section 2.5: "Crawlers SHOULD impose a parsing limit that protects their systems". Scrapy
inflates a body when all of it is there; here it is inflated piece by piece, so that neither an
endless body nor one that inflates to gigabytes costs more than the limit. It does no I/O.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from ..protocol.lines import SIZE_LIMIT

if TYPE_CHECKING:
    from scrapy.http import Response

WIRE_LIMIT = 2 * SIZE_LIMIT
"""Octets that are read of what yields no octet here: a coding that is not ours, a gzip header that
does not end. What is asked for, gzip, is never larger than its content by more than a few."""

_IDENTITY = frozenset({b"", b"identity"})
_GZIP = frozenset({b"gzip", b"x-gzip"})
_GZIP_STARTS_WITH = 0x1F


class BodyReader:
    """The first octets of a body, up to one above the limit, which tells that there were more."""

    __slots__ = ("_data", "_inflating", "_ours", "broken", "consumed", "received")

    def __init__(self) -> None:
        self.start(b"compress")  # until the headers are there

    def start(self, content_encoding: bytes) -> bool:
        """A body will come. Whether in a form that is read here."""
        coding = content_encoding.strip().lower()
        self._data = bytearray()
        self.received = 0
        """Octets that came."""
        self.consumed = 0
        """Octets of these that were looked at: the beginning of what came, up to the limit."""
        self._ours = coding in _IDENTITY or coding in _GZIP
        self._inflating: Any = _inflating() if coding in _GZIP else None
        self.broken = False
        """It cannot be read, whatever may still come."""
        return self._ours

    @property
    def full(self) -> bool:
        """There is more than the limit."""
        return len(self._data) > SIZE_LIMIT

    @property
    def done(self) -> bool:
        """Nothing that may still come counts."""
        return self.full or self.broken

    @property
    def readable(self) -> bool:
        """What came, all of it by now, can be decoded here as far as it counts."""
        if self.full or not self.received:
            return True
        ended = self._inflating is None or self._inflating.eof
        return self._ours and ended and not self.broken

    @property
    def decoded_by_scrapy(self) -> bool:
        """It is in a coding that only Scrapy may be able to decode."""
        return not self._ours and not self.broken

    def feed(self, data: bytes) -> None:
        """The next piece, as it came."""
        if self.done:
            return
        self.received += len(data)
        if self._inflating is not None:
            self._inflate(data)
        elif self._ours:
            taken = data[: self._room]
            self._data += taken
            self.consumed += len(taken)
        else:
            self.consumed += len(data)
        if self.received > WIRE_LIMIT and not self.full:
            self.broken = True
            self.consumed = min(self.consumed, WIRE_LIMIT)

    def body_of(self, response: Response) -> bytes | None:
        """The body, one octet above the limit at most; None where it cannot be read.

        ``response`` is the same answer, once it is there, after Scrapy's middlewares.
        """
        if self.full:
            return bytes(self._data)
        if self.broken:
            return None
        if self.decoded_by_scrapy or not self.received:
            # Scrapy's middlewares have decoded it, or could not.
            body = response.body
            return None if body and b"Content-Encoding" in response.headers else self._cut(body)
        return bytes(self._data) if self.readable else None

    @property
    def _room(self) -> int:
        return SIZE_LIMIT + 1 - len(self._data)

    @staticmethod
    def _cut(body: bytes) -> bytes:
        return body[: SIZE_LIMIT + 1]

    def _inflate(self, data: bytes) -> None:
        # RFC 1952, section 2.2: a gzip file is a series of members.
        self.consumed += len(data)
        while data and not self.full:
            if self._inflating.eof:
                if data[0] != _GZIP_STARTS_WITH:
                    return  # what stands behind the last member is ignored, as gzip does
                self._inflating = _inflating()
            try:
                self._data += self._inflating.decompress(data, self._room)
            except zlib.error:
                self.broken = True
                return
            data = self._inflating.unused_data
        # At the limit; of a member that ends there, ``data`` are the octets of the next.
        self.consumed -= len(data) + len(self._inflating.unconsumed_tail)


def _inflating() -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)
