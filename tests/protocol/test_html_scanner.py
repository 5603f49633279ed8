"""Meta and link elements. test_pages.py has a table of where in a page they count."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.html_scanner import Element, elements, has_elements

NAMES = [b"robots", b"mybot"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (b"", False),
        (b"<title>meta</title><metadata>", False),
        (b"<META\nname=a>", True),
        (b"<meta/>", True),
        (b"<Link rel=a>", True),
        (b"<head></head><body><link rel=a>", True),  # it may be one of the head
        (b"<links><b>link</b>", False),
        (b"<!-- <meta > -->", True),  # it may be one
    ],
)
def test_a_page_has_a_meta_or_a_link_tag(html: bytes, expected: bool) -> None:
    assert has_elements(html) is expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (b"<p>robots", []),
        (b"<meta name=description content=a>", []),
        (b"<meta name=ROBOTS content=NoIndex>", [("robots", "NoIndex")]),
        (b"<meta name=mybot>", [("mybot", "")]),
        (b"<meta name=x content=y><meta name=robots>", [("x", "y"), ("robots", "")]),
        (b"<meta name=robots><meta name=x>", [("robots", "")]),  # none of the names follows
        (b"<!-- robots --><meta property=robots content=a>", []),
        (b"<meta name=r&#111;bots content='a&amp;b'>", [("robots", "a&b")]),
        (b"<meta name=robots content=" + b"a" * 9000 + b">", [("robots", "a" * 4096)]),
        (b"<meta name=robots content=\xff>", [("robots", "\ufffd")]),
        # A Kelvin sign is no K.
        (b"<meta name=BOO\xe2\x84\xaa><meta name=robots>", [("boo\u212a", ""), ("robots", "")]),
    ],
)
def test_name_and_content_of_meta_elements(html: bytes, expected: list[tuple[str, str]]) -> None:
    found = list(elements(html, NAMES, b"license"))
    assert found == [Element("meta", *element) for element in expected]


@pytest.mark.parametrize(
    ("html", "hrefs"),
    [
        (b"<link rel=license href=/a.xml>", ["/a.xml"]),
        (b"<LINK HREF='/a?b&amp;c' REL='Alternate LICENSE' type=application/rsl+xml>", ["/a?b&c"]),
        (b"<link rel='lic&#101;nse' href=/a>", ["/a"]),
        (b"<link title='a>b' rel=license href=/a><link rel=license href=/b>", ["/a", "/b"]),
        (b"<link rel=license>", [""]),
        (b"<link rel=license href=/a href=/b rel=stylesheet>", ["/a"]),
        (b"<p>x</p><link rel=license href=/a>", ["/a"]),
        (b"<link rel=license href=/a><body><link rel=license href=/b>", ["/a"]),
        (b"<BODY class=a><link rel=license href=/a></body>", []),  # such a link is in the head
        (b"<noscript><link rel=license href=/a></noscript>", ["/a"]),
        (b"<link rel=stylesheet href=/license.css>", []),
        (b"<link rel=licenses href=/a><link rel=sublicense href=/b><p>license", []),
        (b"<a rel=license href=/a>", []),  # a link of the text, and not of the page
        (b"<link rev=license href=/a>", []),
        (b"<!-- <link rel=license href=/a> --><link>", []),
        (b"<template><link rel=license href=/a></template>", []),
        (b"<script>'<link rel=license href=/a>'</script>", []),
        (b"<meta name=robots content='<link rel=license href=/a>'>", []),
        (b"<link rel=license href=/a", []),  # the tag has no end
        (b"</link rel=license href=/a>", []),
        (b"<link rel=license href=/" + b"a" * 4095 + b">", ["/" + "a" * 4095]),
        (b"<link rel=license href=/" + b"a" * 4096 + b">", []),  # a part of a URL is another URL
        (b"<link rel=license href=\xff>", ["\ufffd"]),
        (b"", []),
    ],
)
def test_the_links_of_a_type(html: bytes, hrefs: list[str]) -> None:
    assert links(html) == hrefs
    # A page with both kinds is read as if it had one.
    both = b"<meta name=robots content=a>" + html
    assert links(both) == hrefs
    assert next(elements(both, [b"robots"], b"license")) == Element("meta", "robots", "a")


def links(html: bytes) -> list[str]:
    found = elements(html, [b"robots"], b"license")
    return [value for tag, rel, value in found if tag == "link" and "license" in rel.split()]


def test_a_link_in_the_body_does_not_count_before_a_meta_element() -> None:
    html = b"<link rel=license href=/a><body><link rel=license href=/b><meta name=robots>"
    assert links(html) == ["/a"]
    assert [tag for tag, _, _ in elements(html, [b"robots"], b"license")] == ["link", "meta"]


@pytest.mark.parametrize(
    "html",
    [
        b'<head><meta charset=utf-8></head><body><meta name="robots" content="noindex">',
        b'<head><meta charset=utf-8><META name="robots" content="noindex"></head><body>',
        b'<head><META charset=utf-8><Meta name="robots" content="noindex"></head><body>',
    ],
    ids=["in the body", "in upper case after lower case", "in mixed case"],
)
def test_the_last_meta_element_is_found_wherever_it_is(html: bytes) -> None:
    found = list(elements(html, [b"robots"], b"license"))
    assert Element("meta", "robots", "noindex") in found
