"""Pages that browsers make of text files, and meta keys that ask for a browser."""

from __future__ import annotations

from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request

from scrapy_rep.browsers import (
    HTTP_RESPONSE,
    ZYTE_API,
    RobotsTxtRequest,
    http_response,
    keep_from_browsers,
    unwrapped,
)

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
}  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_a_browser_made_of_a_text(name: str) -> None:
    assert unwrapped(PAGES[name], cut_off=False) == TEXT
    cut = PAGES[name][: PAGES[name].index(b"# ")]
    assert unwrapped(cut, cut_off=True) == TEXT[: TEXT.index(b"# ")]
    assert unwrapped(cut, cut_off=False) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        TEXT,
        b"User-agent: *\nDisallow: /<html><body><pre>\n",
        b"<html><body><h1>Not found</h1></body></html>",
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
    assert unwrapped(body, cut_off=False) is None


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r")))
def test_any_text(text: str) -> None:
    inside = escape(text, quote=False).replace("\u00a0", "&nbsp;")
    page = f"<html><head></head><body><pre>{inside}</pre></body></html>"
    assert unwrapped(page.encode(), cut_off=False) == text.encode()


# The meta of a request


@pytest.mark.parametrize(
    "key",
    ["playwright", "playwright_page_methods", "splash", "_splash_processed", "selenium",
     "puppeteer", "zyte_api_provider", "use_selenium", "render_js"],
)  # fmt: skip
def test_a_request_for_robots_txt_refuses_browsers(key: str) -> None:
    request = RobotsTxtRequest("http://a.example/robots.txt", meta={key: True, "proxy": "p"})
    assert request.meta == {"proxy": "p"}
    request.meta[key] = True
    request.meta.update({key: True})
    request.meta.update(**{key: True})
    meta = request.meta
    meta |= {key: True, "b": 2}
    assert request.meta.setdefault(key, 1) == 1
    assert request.meta.setdefault("c", 3) == 3
    assert request.meta.setdefault("c", 4) == 3
    expected = {"proxy": "p", "b": 2, "c": 3}
    assert request.meta == expected
    assert request.replace(meta={**expected, key: 1}).meta == expected
    assert request.copy().meta == expected
    another = Request(request.url, meta={**request.meta, key: True})
    keep_from_browsers(another)
    assert another.meta == expected


HTTP = {"httpResponseBody": True, "httpResponseHeaders": True}


def test_scrapy_zyte_api_downloads_without_a_browser() -> None:
    request = RobotsTxtRequest("http://a.example/robots.txt")
    request.meta[ZYTE_API] = False
    assert request.meta == {ZYTE_API: False}
    request.meta["zyte_api"] = False
    assert request.meta == {ZYTE_API: False}
    for key in ("zyte_api", ZYTE_API):
        for value in (True, {"browserHtml": True, "screenshot": True}):
            request.meta[key] = value
            assert request.meta == {ZYTE_API: HTTP}
    request.meta[ZYTE_API] = {"browserHtml": True, "geolocation": "US"}
    assert request.meta == {ZYTE_API: {**HTTP, "geolocation": "US"}}


def test_the_defaults_of_scrapy_zyte_api_are_taken_back() -> None:
    plain = http_response(["browserHtml", "geolocation"])
    assert plain == {**HTTP, "browserHtml": None}
    meta = {ZYTE_API: True, HTTP_RESPONSE: plain}
    request = RobotsTxtRequest("http://a.example/robots.txt", meta=meta)
    assert request.meta[ZYTE_API] == plain
    request.meta[ZYTE_API] = {"browserHtml": True}
    assert request.replace().meta[ZYTE_API] == plain
