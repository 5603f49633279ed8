"""Bodies to lines."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.lines import SIZE_LIMIT, line_number, read


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", b"\n"),
        (b"a\nb", b"\na\nb"),
        (b"a\r\nb\rc\n\rd", b"\na\nb\nc\n\nd"),
        (b" a\n\t\v\fb", b"\na\nb"),
        (b"a\x85b\x0bc\x0cd\xe2\x80\xa8e", b"\na\x85b\x0bc\x0cd\xe2\x80\xa8e"),
        (b"\xef\xbb\xbfa", b"\na"),
        (b"\xef\xbba", b"\na"),
        (b"\xefa", b"\na"),
        (b"\xef\xbf\xbba", b"\n\xbf\xbba"),
        (b"\xbb\xbfa", b"\n\xbb\xbfa"),
        ("é\r\n".encode("utf-16"), "\né\n".encode()),
        (b"\xfe\xff\x00a\x00", "\na\ufffd".encode()),
        (b"\xff\xfea\r\nb", b"\na\nb"),  # a byte order mark of UTF-16 before other text
        (b"\xfe\xffa", b"\na"),
        (b"\xff\xfe", b"\n"),
        (b"a: b\0\nc: d \0\0 \0\n\0", b"\na: b\nc: d\n"),
        (b"a: b\0 # c\0\nd:\0e\n", b"\na: b# c\0\nd:\0e\n"),
        (b"\xff\xfe\x00\xd8", "\n\ufffd".encode()),
    ],
)
def test_read(body: bytes, text: bytes) -> None:
    assert read(body) == text


LINES = b"disallow: /a\n" * (SIZE_LIMIT // 13)
ROOM = SIZE_LIMIT - len(LINES)


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        (b"x" * ROOM, b"x" * ROOM),  # the body ends at the limit
        (b"x" * ROOM + b"\n", b"x" * ROOM),  # the line ends at the limit
        (b"x" * ROOM + b"\ry", b"x" * ROOM),
        (b"x" * (ROOM + 1), b""),  # the line goes on, and its start may mean something else
        (b"x" * ROOM + b"y\n", b""),
        (b"x" * (ROOM - 1) + b"\ny", b"x" * (ROOM - 1) + b"\n"),
        (b"x" * (ROOM - 1) + b"\ry", b"x" * (ROOM - 1) + b"\n"),
    ],
)
def test_a_line_that_the_limit_cuts_is_dropped(end: bytes, kept: bytes) -> None:
    assert read(LINES + end) == b"\n" + LINES + kept


def test_a_single_line_beyond_the_limit_is_dropped() -> None:
    assert read(b"x" * (SIZE_LIMIT + 1)) == b"\n"


def test_line_numbers() -> None:
    text = read(b"a\r\rb\nc")
    assert [line_number(text, text.index(letter) - 1) for letter in (b"a", b"b", b"c")] == [1, 3, 4]
