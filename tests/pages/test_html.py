"""The meta and link elements of a page, and the ``rel`` values of its links by their URL.

test_directives.py has a table of where in a page elements count.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Response, XmlResponse

from scrapy_rep.pages.html import MAX_ELEMENTS, MAX_LINKS, MAX_PAGE, MAX_VALUE, Links, elements

NAMES = ("robots", "mybot")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (b"", []),
        (b"<title>meta</title><metadata name=robots content=a>", []),
        (b"<meta name=mybot>", [("mybot", "")]),
        (b"<meta name=x content=y><meta name=robots>", [("robots", "")]),
        (b"<meta name=robots content=" + b"a" * 9000 + b">", [("robots", "a" * MAX_VALUE)]),
        (b"<meta name=robots content=\xff>", [("robots", "\ufffd")]),
    ],
)
def test_name_and_content_of_meta_elements(html: bytes, expected: list[tuple[str, str]]) -> None:
    found = elements(html, NAMES, "license")
    assert [each[:3] for each in found] == [("meta", *one) for one in expected]


@pytest.mark.rule("Licenses of pages")
@pytest.mark.parametrize(
    ("html", "hrefs"),
    [
        (b"<link rel=license href=/a.xml>", ["/a.xml"]),
        (b"<LINK HREF='/a?b&amp;c' REL='Alternate LICENSE' type=application/rsl+xml>", ["/a?b&c"]),
        (b"<link title='a>b' rel=license href=/a><link rel=license href=/b>", ["/a", "/b"]),
        (b"<link rel=license href=/a><body><link rel=license href=/b>", ["/a"]),
        (b"<BODY class=a><link rel=license href=/a></body>", []),  # such a link is in the head
        (b"<p>x</p><link rel=license href=/a>", ["/a"]),
        (b"<head><noscript><p></p></noscript><link rel=license href=/a></head><body>", ["/a"]),
        (b"<link rel=stylesheet href=/license.css>", []),
        (b"<link rel=licenses href=/a><link rel=sublicense href=/b><p>license", []),
        (b"<a rel=license href=/a>", []),  # a link of the text, and not of the page
        (b"<!-- <link rel=license href=/a> --><link>", []),
        (b"<template><link rel=license href=/a></template>", []),
        (b"<link rel=license href=/a", []),  # the tag has no end
        (b"<link rel=license href=/" + b"a" * 4095 + b">", ["/" + "a" * 4095]),
        (b"<link rel=license href=/" + b"a" * 4096 + b">", []),  # a part of a URL is another URL
        (b"", []),
    ],
)
def test_the_links_of_a_type(html: bytes, hrefs: list[str]) -> None:
    assert hrefs_in(html) == hrefs
    # A page with both kinds is read as if it had one.
    both = b"<meta name=robots content=a>" + html
    assert hrefs_in(both) == hrefs
    assert next(elements(both, ["robots"], "license")) == ("meta", "robots", "a", 1)


def test_an_element_has_its_line() -> None:
    html = b"\n \n<html>\n<meta name=robots content=a>\n\n<body>\n<meta name=robots content=b>"
    assert [line for *_, line in elements(html, ["robots"], "license")] == [4, 7]


def hrefs_in(html: bytes) -> list[str]:
    return [value for tag, _, value, _ in elements(html, ["robots"], "license") if tag == "link"]


def test_a_link_in_the_body_does_not_count_before_a_meta_element() -> None:
    html = b"<link rel=license href=/a><body><link rel=license href=/b><meta name=robots>"
    assert [tag for tag, *_ in elements(html, ["robots"], "license")] == ["link", "meta"]


META = b"<meta name=robots content=noindex>"


@pytest.mark.parametrize("piece", [META, b"<meta name=robots content='" + b"," * 5000 + b"'>"])
def test_what_is_read_of_a_page_is_bounded(piece: bytes) -> None:
    found = list(elements(piece * 4000, NAMES, "license"))
    assert 0 < sum(len(value) for _, _, value, _ in found) <= 4 * MAX_VALUE


def test_a_page_is_read_up_to_its_limits() -> None:
    for before, count in ((MAX_PAGE - len(META), 1), (MAX_PAGE, 0)):
        assert len(list(elements(b" " * before + META, NAMES, "license"))) == count
    html = b"<meta name=x>" * (MAX_ELEMENTS - 1) + META * 2
    assert len(list(elements(html, NAMES, "license"))) == 1
    for count, found in ((MAX_ELEMENTS, 1), (2 * MAX_ELEMENTS, 0)):
        assert len(list(elements(b"</html>x" * count + META, NAMES, "license"))) == found


# The rel values of links

URL = "http://site.example/folder/page"
HREF_PIECES = [
    "a", "B", "1", ".", "..", "/", "//", "?", "=", "&", "%C3%A9", "%c3", "%41", "%2F", "é", "+",
    "-", "~", "!", "$", "'", "(", "*", ",", "@", ":", ";", "http://h.example/",
    "https://H.example:8080/", "http://h.example", "x=1", "y=2", "x=%C3%A9", "_", " ", "http://[",
    "[", "|",
]  # fmt: skip


def links(html: str, encoding: str = "utf-8") -> Links:
    return Links(HtmlResponse(URL, body=html, encoding=encoding))


@pytest.mark.rule('noindex, nofollow, unavailable_after, rel="nofollow"')
@pytest.mark.parametrize(
    ("html", "url", "values"),
    [
        ("<a href=/a rel='ugc,sponsored'>", "http://site.example/a", {"sponsored", "ugc"}),
        ("<base href='http://b.example/'><a href=a rel=nofollow>", "http://b.example/a",
         {"nofollow"}),
        ("<a href='\t/a\n' rel=nofollow>", "http://site.example/a", {"nofollow"}),
        ("<a href='/a?b=1&amp;a=2#c' rel=nofollow>", "http://site.example/a?b=1&a=2#d",
         {"nofollow"}),
        # A link extractor may sort the query.
        ("<a href='/a?b=1&amp;a=2' rel=nofollow>", "http://site.example/a?a=2&b=1", {"nofollow"}),
        ("<a href=http://site.example rel=nofollow>", "http://site.example/", {"nofollow"}),
        ("<a href=/a rel=nofollower>", "http://site.example/a", set()),
        ("<a href=/a>nofollow</a>", "http://site.example/a", set()),
        ("<link href=/a rel=nofollow>", "http://site.example/a", set()),
        ("<a href=/a><a href=/a#b rel=nofollow>", "http://site.example/a", set()),
        ("<a href=http://[ rel=nofollow>", "http://site.example/a", set()),
        ("<a href=?b=1&a=2 rel=ugc>", f"{URL}?a=2&b=1", {"ugc"}),
        ("<a href='/?b=é&a=%41' rel=ugc>", "http://site.example/?b=%C3%A9&a=%41", {"ugc"}),
        ("<a href='/?b=é&a=%41' rel=ugc>", "http://site.example/?a=A&b=%C3%A9", {"ugc"}),
        ("<a href='' rel=ugc>", URL, {"ugc"}),
        ("<a href=/a rel=ugc></html><a href=/a>", "http://site.example/a", set()),
        ("<a href=/a></html><a href=/a rel=ugc>", "http://site.example/a", set()),
        ("<base href=http://[><a href=a rel=ugc>", "http://site.example/folder/a", {"ugc"}),
        ("", "http://site.example/a", set()),
    ],
)  # fmt: skip
def test_values_that_all_links_to_a_url_have(html: str, url: str, values: set[str]) -> None:
    assert links(html).rel(url) == values


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "iso2022_jp", "shift_jis"]
)
@pytest.mark.parametrize("declared", [True, False])
def test_links_of_pages_in_any_encoding(encoding: str, declared: bool) -> None:
    """Without a charset in the header, the encoding is an argument of the response."""
    html = "<p title='ツ'>" if "jp" in encoding or "jis" in encoding else ""
    html += "<a href='/a?b=1&amp;a=2' rel='nofollow ugc'>a</a>"
    page = HtmlResponse(URL, body=html, encoding=encoding)
    if declared:
        headers = {"Content-Type": f"text/html; charset={encoding}"}
        page = HtmlResponse(URL, headers=headers, body=page.body)
    found = Links(page)
    # The URL of a request in UTF-8, and that of a link extractor.
    assert found.rel("http://site.example/a?b=1&a=2") == {"nofollow", "ugc"}
    assert found.rel(page.follow("/a?b=1&a=2").url) == {"nofollow", "ugc"}
    latin = links("<a href='/?q=é' rel=nofollow>", "latin-1")  # as its page has it
    assert latin.rel("http://site.example/?q=%E9") == {"nofollow"}


@given(st.lists(st.sampled_from(HREF_PIECES), max_size=7).map("".join) | st.text(max_size=20))
def test_a_request_that_scrapy_makes_of_a_link_has_its_values(href: str) -> None:
    text = href.replace("&", "&amp;").replace("'", "&#39;")
    page = HtmlResponse(URL, body=f"<a href='{text}' rel=ugc>", encoding="utf-8")
    for link in page.css("a"):
        try:
            request = page.follow(link)
        except ValueError:
            continue
        assert Links(page).rel(request.url) == {"ugc"}


# More links than are parsed


def many(rel: str, count: int) -> str:
    return "".join(f"<a href='/{number}' {rel}>" for number in range(count))


def test_as_many_links_as_the_limit_are_compared_those_with_values_first() -> None:
    last = f"http://site.example/{MAX_LINKS - 400}"
    page = links(many("", 2 * MAX_LINKS) + f"<a href={last}?a rel=nofollow>")
    assert page.rel(f"{last}?a") == {"nofollow"}
    page = links(many("rel=nofollow", 2 * MAX_LINKS) + "<a href=/followed>")
    assert page.rel("http://site.example/7") == {"nofollow"}
    assert page.rel(f"http://site.example/{2 * MAX_LINKS - 1}") == set()
    # A long href counts as several links.
    page = links(f"<a href=/b rel=ugc><a href=/{'a' * 100 * MAX_LINKS} rel=ugc><a href=/c rel=ugc>")
    assert page.rel("http://site.example/b") == {"ugc"}
    assert page.rel("http://site.example/c") == set()


@pytest.mark.parametrize("kind", [Response, XmlResponse])
def test_only_html_has_links(kind: type[Response]) -> None:
    page = kind(URL, body=b"<a href='/a' rel='nofollow'/>")
    assert Links(page).rel("http://site.example/a") == set()
