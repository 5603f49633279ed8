"""Bodies to lines."""

from __future__ import annotations

from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep import RobotsTxt
from scrapy_rep.protocol.lines import SIZE_LIMIT, file_of, line_number, read


@pytest.mark.rule("Lines", "UTF-8", "UTF-16", "NUL bytes")
@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", b"\n"), (b"a\nb", b"\na\nb"), (b"a\r\nb\rc\n\rd", b"\na\nb\nc\n\nd"),
        (b" a\n\t\v\fb", b"\na\nb"),
        (b"a\x85b\x0bc\x0cd\xe2\x80\xa8e", b"\na\x85b\x0bc\x0cd\xe2\x80\xa8e"),
        (b"\xef\xbb\xbfa", b"\na"), (b"\xef\xbba", b"\na"), (b"\xefa", b"\na"),
        (b"\xef\xbf\xbba", b"\n\xbf\xbba"), (b"\xbb\xbfa", b"\n\xbb\xbfa"),
        ("é\r\n".encode("utf-16"), "\né\n".encode()), (b"\xfe\xff\x00a\x00", "\na\ufffd".encode()),
        (b"\xff\xfea\r\nb", b"\na\nb"),  # a byte order mark of UTF-16 before other text
        (b"\xfe\xffa", b"\na"), (b"\xff\xfe", b"\n"),
        (b"a: b\0\nc: d \0\0 \0\n\0", b"\na: b\nc: d\n"),
        (b"a: b\0 # c\0\nd:\0e\n", b"\na: b# c\0\nd:\0e\n"),
        (b"\xff\xfe\x00\xd8", "\n\ufffd".encode()),
    ],
)  # fmt: skip
def test_read(body: bytes, text: bytes) -> None:
    assert read(body) == text


LINES = b"disallow: /a\n" * (SIZE_LIMIT // 13)
ROOM = SIZE_LIMIT - len(LINES)


@pytest.mark.rule("Size limit")
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


@pytest.mark.rule("Size limit")
def test_a_single_line_beyond_the_limit_is_dropped() -> None:
    assert read(b"x" * (SIZE_LIMIT + 1)) == b"\n"


@pytest.mark.rule("Lines")
def test_line_numbers() -> None:
    text = read(b"a\r\rb\nc")
    assert [line_number(text, text.index(letter) - 1) for letter in (b"a", b"b", b"c")] == [1, 3, 4]


TEXT = b"User-agent: *\nDisallow: /a?b&c<d>&amp;\n# \xc2\xa0\n"
INSIDE = b"User-agent: *\nDisallow: /a?b&amp;c&lt;d&gt;&amp;amp;\n# &nbsp;\n"
STYLE = b'<pre style="word-wrap: break-word; white-space: pre-wrap;">'
END = b"</pre></body></html>"
PAGES = {
    "Chromium": b'<html><head><meta name="color-scheme" content="light dark"></head><body>'
    + STYLE + INSIDE + END,
    "older Chromium, WebKit": b"<html><head></head><body>" + STYLE + INSIDE + END + b"\n",
    "with a charset": b'<html><head><meta name="color-scheme" content="light dark">'
    b'<meta charset="utf-8"></head><body>' + STYLE + INSIDE + END,
    "Firefox": b'<html><head><link rel="stylesheet" '
    b'href="resource://content-accessible/plaintext.css"></head><body><pre>' + INSIDE + END,
    "Firefox with a title": b'<!DOCTYPE html>\n<html>\n<head><title>robots.txt</title>'
    b'<meta name="color-scheme" content="light dark"></head>\n<body>\n<pre>' + INSIDE + END,
    "without a head": b"\xef\xbb\xbf<HTML><BODY><PRE>" + INSIDE + b"</PRE></BODY></HTML>",
    "with what Chromium adds": b"<html><head></head><body><pre>" + INSIDE
    + b'</pre><div class="json-formatter-container"></div></body></html>',
    "text that the server calls HTML": b"<html><head></head><body>" + INSIDE + b"</body></html>\n",
}  # fmt: skip


@pytest.mark.rule("Pages of a browser")
@pytest.mark.parametrize("name", PAGES)
def test_the_text_of_a_page_that_a_browser_made(name: str) -> None:
    assert file_of(PAGES[name]) == TEXT
    assert read(PAGES[name]) == read(TEXT)
    assert RobotsTxt(PAGES[name]) == RobotsTxt(TEXT)
    assert file_of(PAGES[name].decode("utf-8-sig").encode("utf-16")) == TEXT
    # A size limit may have cut it.
    assert file_of(PAGES[name][: PAGES[name].index(b"# ")]) == TEXT[: TEXT.index(b"# ")]
    assert file_of(PAGES[name].rstrip()[:-3]) == TEXT


@pytest.mark.parametrize(
    "body",
    [
        b"",
        TEXT,
        b"User-agent: *\nDisallow: /<html><body><pre>\n",
        b"<html><body><h1>Not found</h1></body></html>",
        b"<html><head></head><body><h1>Not found</h1></body></html>",
        b"<html><head></head><body>Not found</body></html> and more",
        b"<html lang='en'><head></head><body>Not found</body></html>",
        b"<html><head><title>a</title></head><body>Not found</body></html>",
        b"<html><body><pre>a</pre><p>More</p></body></html>",
        b"<html><body><pre>a<b>c</b></pre></body></html>",
        b"<html><head><script>a</script></head><body><pre>a</pre></body></html>",
        b"<html><body><p>a</p><pre>a</pre></body></html>",
        b"<body><pre>&lt;body&gt;&lt;pre&gt;a",  # its text is such a page
        b"<html>" * 10_000,
        b"<html><head>" + b"<meta a>" * 50_000,
        b"<html><head>" + b" " * 500_000,
    ],
)
def test_another_page(body: bytes) -> None:
    assert file_of(body) is body


def test_the_line_of_a_page_that_the_limit_cuts_is_dropped() -> None:
    page = b"<body><pre>" + LINES + b"disallow: /" + b"*" * SIZE_LIMIT
    for body in (page, page[: SIZE_LIMIT + 1]):
        text = file_of(body)
        assert LINES.startswith(text)
        assert text.endswith(b"\n")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r")))
def test_any_text(text: str) -> None:
    inside = escape(text, quote=False).replace("\u00a0", "&nbsp;")
    page = f"<html><head></head><body><pre>{inside}</pre></body></html>"
    assert file_of(page.encode()) == text.encode()
