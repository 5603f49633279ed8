"""The pages in which browsers show text files."""

from __future__ import annotations

from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.unwrap import unwrap_browser_page

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


@pytest.mark.parametrize("name", PAGES)
def test_the_text_of_a_page_that_a_browser_made(name: str) -> None:
    assert unwrap_browser_page(PAGES[name], cut_off=False) == TEXT
    cut = PAGES[name][: PAGES[name].index(b"# ")]
    assert unwrap_browser_page(cut, cut_off=True) == TEXT[: TEXT.index(b"# ")]
    assert unwrap_browser_page(cut, cut_off=False) is None


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
        b"<html>" * 10_000,
        b"<html><head>" + b"<meta a>" * 50_000,
        b"<html><head>" + b" " * 500_000,
    ],
)
def test_another_page(body: bytes) -> None:
    assert unwrap_browser_page(body, cut_off=False) is None


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r")))
def test_any_text(text: str) -> None:
    inside = escape(text, quote=False).replace("\u00a0", "&nbsp;")
    page = f"<html><head></head><body><pre>{inside}</pre></body></html>"
    assert unwrap_browser_page(page.encode(), cut_off=False) == text.encode()
