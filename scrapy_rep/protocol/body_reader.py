"""The body of one response as it arrives: decoded, and limited in size. No I/O.

RFC 9309 §2.5: "Crawlers SHOULD impose a parsing limit that protects their systems". Scrapy inflates
a body after it has received all of it. This module inflates it piece by piece, so that an endless
body, or a body that inflates to gigabytes, uses no more memory than the limit.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import Any

from .lines import SIZE_LIMIT

WIRE_LIMIT = 2 * SIZE_LIMIT
"""The most bytes that are read of a body of another coding, or of a gzip header that does not end.
A gzip body is at most a few bytes longer than its content."""

PIECE_SIZE = 16_384
"""The bytes that are inflated at once. zlib copies those that follow a gzip member: the time for
many empty members would grow with the square of the size."""

_GZIP = frozenset({b"gzip", b"x-gzip"})
_new_inflating = partial(zlib.decompressobj, 16 + zlib.MAX_WBITS)


class BodyReader:
    """Collects the first bytes of a body: up to one more than the limit, which shows its excess."""

    def __init__(self, content_encoding: bytes = b"", content_length: bytes | None = None) -> None:
        self._length = content_length
        coding = content_encoding.strip().lower()
        self._data = bytearray()
        self._inflating: Any = _new_inflating() if coding in _GZIP else None
        self.is_broken = False
        """Whether the body cannot be decoded, or is too long for a coding that is not supported."""
        self.is_supported = coding in {b"", b"identity", *_GZIP}
        self.received = 0
        """The number of bytes that arrived, up to one more than :data:`WIRE_LIMIT`."""

    @property
    def is_full(self) -> bool:
        """Whether the body is longer than the limit."""
        return len(self._data) > SIZE_LIMIT

    @property
    def is_whole(self) -> bool:
        """Whether all bytes have arrived that the Content-Length announces."""
        return self._length == str(self.received).encode()

    @property
    def is_done(self) -> bool:
        """Whether further bytes make no difference."""
        return self.is_full or self.is_broken

    @property
    def body(self) -> bytes | None:
        """The content, if no more bytes arrive. None if it cannot be decoded here."""
        has_ended = self._inflating is None or self._inflating.eof or not self.received
        is_whole = self.is_full or (has_ended and self.is_supported and not self.is_broken)
        return bytes(self._data) if is_whole else None

    def feed(self, data: bytes) -> None:
        if self.is_done:
            return
        data = data[: WIRE_LIMIT + 1 - self.received]
        self.received += len(data)
        if self._inflating is not None:
            self._inflate(data)
        elif self.is_supported:
            self._data += data[: SIZE_LIMIT + 1 - len(self._data)]
        if self.received > WIRE_LIMIT and not self.is_full:
            self.is_broken = True

    def _inflate(self, data: bytes) -> None:
        # RFC 1952 §2.2: a gzip file is a series of members.
        start = 0
        while start < len(data) and not self.is_full:
            piece = data[start : start + PIECE_SIZE]
            if self._inflating.eof:
                if piece[0] != 0x1F:  # with which each member begins
                    return  # bytes after the last member are ignored, as gzip does
                self._inflating = _new_inflating()
            try:
                self._data += self._inflating.decompress(piece, SIZE_LIMIT + 1 - len(self._data))
            except zlib.error:
                self.is_broken = True
                return
            start += len(piece)
            start -= len(self._inflating.unused_data) + len(self._inflating.unconsumed_tail)
