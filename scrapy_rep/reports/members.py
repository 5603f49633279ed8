"""The members of a WARC file: its records, or its gzip members, each of which has one record.

All functions use a bounded amount of memory, for any file.
"""

from __future__ import annotations

import os
import re
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

MAGIC = b"\x1f\x8b\x08"
"""RFC 1952 §2.3.1: the start of a member, with the only compression method that is defined."""

RECORD_START = b"WARC/"

PIECE = 1 << 16
"""The octets that are read and inflated at once."""


MAX_STARTS = 100_000
"""The most places of a damaged file that are checked for the start of a record: a few seconds. In
data without a pattern, one octet in 16 million looks like one."""

MAX_HEADER = 1 << 16
"""The most octets of the header of a record that is not compressed (ours)."""

_CONTENT_LENGTH = re.compile(rb"\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)


class Member(NamedTuple):
    """A member of a file."""

    offset: int
    content: bytes
    """Its octets, inflated, up to the limit."""
    is_cut: bool
    """There are more octets than the limit."""


class BrokenMember(NamedTuple):
    """A place of a file at which there is no whole member."""

    offset: int
    reason: str


def member_end(octets: bytes, start: int) -> int | None:
    """Return the end of the record that starts at ``start``; None if there is no whole one."""
    inflating = zlib.decompressobj(16 + zlib.MAX_WBITS)
    data = octets[start : start + PIECE]
    position = start + len(data)
    is_first = True
    try:
        while True:
            content = inflating.decompress(data, PIECE)
            if is_first and content and not content.startswith(RECORD_START[: len(content)]):
                return None
            is_first = is_first and not content
            if inflating.eof:
                return position - len(inflating.unused_data)
            data = inflating.unconsumed_tail
            if not data:
                data = octets[position : position + PIECE]
                position += len(data)
                if not data:
                    return None
    except zlib.error:
        return None


def whole_end(file: int) -> int:
    """Return the end of the last record before the first place that is not a whole record.

    ``file`` is a file descriptor. Reads the whole file.
    """
    end = 0
    with os.fdopen(os.dup(file), "rb") as stream:
        stream.seek(0)
        for member in gzip_members(stream, len(RECORD_START)):
            if isinstance(member, BrokenMember) or member.content != RECORD_START:
                return member.offset
            end = stream.tell()
    return end


def gzip_members(stream: BinaryIO, limit: int) -> Iterator[Member | BrokenMember]:
    """Yield the gzip members of a file (RFC 1952 §2.2), from the position of the stream on.

    Keeps at most ``limit`` octets of each. After a place that is not a whole member, continues at
    the next place that looks like a record. When a member is yielded, the stream is at its end.
    """
    offset = stream.tell()
    starts = iter(range(MAX_STARTS))
    while True:
        stream.seek(offset)
        if not stream.read(1):
            return
        stream.seek(offset)
        found = _member(stream, offset, limit)
        yield found
        if isinstance(found, Member):
            offset = stream.tell()
        else:
            following = _next_record(stream, offset + 1, starts)
            if following is None:
                if next(starts, None) is None:
                    reason = "too many places look like the start of a record: the rest is not read"
                    yield BrokenMember(stream.tell(), reason)
                return
            offset = following


def _member(stream: BinaryIO, offset: int, limit: int) -> Member | BrokenMember:
    inflating = zlib.decompressobj(16 + zlib.MAX_WBITS)
    content = bytearray()
    is_cut = False
    data = b""
    try:
        while not inflating.eof:
            if not data:
                data = stream.read(PIECE)
                if not data:
                    return BrokenMember(offset, "the file ends before the record does")
            piece = inflating.decompress(data, PIECE)
            data = inflating.unconsumed_tail
            taken = piece[: limit - len(content)]
            content += taken
            is_cut = is_cut or len(taken) < len(piece)
    except zlib.error as error:
        return BrokenMember(offset, str(error))
    stream.seek(-len(inflating.unused_data), os.SEEK_CUR)
    return Member(offset, bytes(content), is_cut)


def _next_record(stream: BinaryIO, offset: int, starts: Iterator[int]) -> int | None:
    """Return the next place from ``offset`` on that looks like the start of a record.

    Checks one place for each of ``starts``.
    """
    stream.seek(offset)
    window = b""
    while True:
        piece = stream.read(PIECE)
        window += piece
        # The rest of the window is searched with the piece that follows.
        end = len(window) - PIECE if piece else len(window)
        start = -1
        while (start := window.find(MAGIC, start + 1, max(end + len(MAGIC) - 1, 0))) >= 0:
            if next(starts, None) is None:
                return None
            if _is_record(window, start):
                return offset + start
        if not piece:
            return None
        window = window[max(end, 0) :]
        offset += max(end, 0)


def _is_record(octets: bytes, start: int) -> bool:
    try:
        inflating = zlib.decompressobj(16 + zlib.MAX_WBITS)
        return inflating.decompress(octets[start : start + PIECE], 5) == RECORD_START
    except zlib.error:
        return False


def plain_members(stream: BinaryIO, limit: int) -> Iterator[Member | BrokenMember]:
    """Yield the records of a file that is not compressed, from the position of the stream on.

    Keeps at most ``limit`` octets of each. Ends at the first place that is not a record, because
    what follows may be the content of a record.
    """
    end = stream.seek(0, os.SEEK_END)
    offset = 0
    while True:
        stream.seek(offset)
        header = stream.read(MAX_HEADER)
        blank = len(header) - len(header.lstrip(b"\r\n"))
        header = header[blank:]
        offset += blank
        if not header:
            if blank < MAX_HEADER:
                return
            continue
        head, empty_line, _ = header.partition(b"\r\n\r\n")
        found = _CONTENT_LENGTH.search(head + b"\r\n")
        if not head.startswith(RECORD_START) or not empty_line or found is None:
            yield BrokenMember(offset, "there is no header of a record")
            return
        length = len(head) + len(empty_line) + int(found[1])
        if offset + length > end:
            yield BrokenMember(offset, "the file ends before the record does")
            return
        stream.seek(offset)
        yield Member(offset, stream.read(min(length, limit)) + b"\r\n\r\n", length > limit)
        offset += length
