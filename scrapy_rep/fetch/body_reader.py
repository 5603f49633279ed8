"""The body of one response as it arrives: decoded, and limited in size. No I/O.

RFC 9309 §2.5: "Crawlers SHOULD impose a parsing limit that protects their systems". Scrapy inflates
a body after it has received all of it. This module inflates it piece by piece, so that an endless
body, or a body that inflates to gigabytes, uses no more memory than the limit.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from ..protocol.lines import SIZE_LIMIT

if TYPE_CHECKING:
    from scrapy.http import Response

WIRE_LIMIT = 2 * SIZE_LIMIT
"""The number of bytes that are read of a body that cannot be decoded here, because it has another
coding, or of a gzip header that does not end. A gzip body is at most a few bytes longer than its
content."""

PIECE_SIZE = 16_384
"""The number of bytes that are inflated at once. zlib copies those that follow a gzip member, so
that the time would grow with the square of the size for a body of many empty members."""

_IDENTITY = frozenset({b"", b"identity"})
_GZIP = frozenset({b"gzip", b"x-gzip"})
_GZIP_MAGIC = 0x1F


class BodyReader:
    """Collects the first bytes of a body, up to one more than the limit.

    The additional byte shows that the body is longer than the limit. ``content_encoding`` is None
    if it is not known yet.
    """

    __slots__ = ("_data", "_inflating", "broken", "consumed", "is_supported", "received")

    def __init__(self, content_encoding: bytes | None = None) -> None:
        coding = None if content_encoding is None else content_encoding.strip().lower()
        self._data = bytearray()
        self.received = 0
        """The number of bytes that arrived, up to one more than :data:`WIRE_LIMIT`."""
        self.consumed = 0
        """The number of bytes that were read, from the start of the body up to the limit."""
        self.is_supported = coding in _IDENTITY or coding in _GZIP
        """Whether the encoding is one that this class decodes."""
        self._inflating: Any = _new_inflating() if coding in _GZIP else None
        self.broken = False
        """Whether the body cannot be decoded."""

    @property
    def full(self) -> bool:
        """Whether the body is longer than the limit."""
        return len(self._data) > SIZE_LIMIT

    @property
    def done(self) -> bool:
        """Whether further bytes make no difference."""
        return self.full or self.broken

    @property
    def readable(self) -> bool:
        """Whether the body can be decoded here up to the limit, if no more bytes arrive."""
        if self.full or not self.received:
            return True
        has_ended = self._inflating is None or self._inflating.eof
        return self.is_supported and has_ended and not self.broken

    @property
    def decoded_by_scrapy(self) -> bool:
        """Whether the body has a coding that only Scrapy may be able to decode."""
        return not self.is_supported and not self.broken

    @property
    def data(self) -> bytes:
        """The bytes of the content so far, up to one more than the limit."""
        return bytes(self._data)

    def feed(self, data: bytes) -> None:
        """Read the next bytes of the body."""
        if self.done:
            return
        data = data[: WIRE_LIMIT + 1 - self.received]
        self.received += len(data)
        if self._inflating is not None:
            self._inflate(data)
        elif self.is_supported:
            taken = data[: self._room]
            self._data += taken
            self.consumed += len(taken)
        else:
            self.consumed += len(data)
        if self.received > WIRE_LIMIT and not self.full:
            self.broken = True
            self.consumed = min(self.consumed, WIRE_LIMIT)

    def body_of(self, response: Response) -> bytes | None:
        """Return the decoded body, at most one byte longer than the limit.

        ``response`` is the response after Scrapy's middlewares. Returns None for a body that cannot
        be decoded.
        """
        if self.full:
            return bytes(self._data)
        if self.broken:
            return None
        if self.decoded_by_scrapy or not self.received:
            # Scrapy's middlewares remove Content-Encoding from what they decode.
            body = response.body
            if body and b"Content-Encoding" in response.headers:
                return None
            return body[: SIZE_LIMIT + 1]
        return bytes(self._data) if self.readable else None

    @property
    def _room(self) -> int:
        return SIZE_LIMIT + 1 - len(self._data)

    def _inflate(self, data: bytes) -> None:
        # RFC 1952 §2.2: a gzip file is a series of members.
        self.consumed += len(data)
        start = 0
        while start < len(data) and not self.full:
            piece = data[start : start + PIECE_SIZE]
            if self._inflating.eof:
                if piece[0] != _GZIP_MAGIC:
                    return  # bytes after the last member are ignored, as gzip does
                self._inflating = _new_inflating()
            try:
                self._data += self._inflating.decompress(piece, self._room)
            except zlib.error:
                self.broken = True
                return
            start += len(piece)
            start -= len(self._inflating.unused_data) + len(self._inflating.unconsumed_tail)
        self.consumed -= len(data) - start


def _new_inflating() -> Any:
    return zlib.decompressobj(16 + zlib.MAX_WBITS)
