"""The meta and link elements of a page. test_pages.py has a table of where in a page they count."""

from __future__ import annotations

import pytest

from scrapy_rep.pages.html import MAX_ELEMENTS, MAX_PAGE, MAX_VALUE, elements

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
    assert [(tag, key, value) for tag, key, value in found] == [("meta", *one) for one in expected]


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
    assert links(html) == hrefs
    # A page with both kinds is read as if it had one.
    both = b"<meta name=robots content=a>" + html
    assert links(both) == hrefs
    assert next(elements(both, ["robots"], "license")) == ("meta", "robots", "a")


def links(html: bytes) -> list[str]:
    return [value for tag, _, value in elements(html, ["robots"], "license") if tag == "link"]


def test_a_link_in_the_body_does_not_count_before_a_meta_element() -> None:
    html = b"<link rel=license href=/a><body><link rel=license href=/b><meta name=robots>"
    assert [tag for tag, _, _ in elements(html, ["robots"], "license")] == ["link", "meta"]


META = b"<meta name=robots content=noindex>"


@pytest.mark.parametrize("piece", [META, b"<meta name=robots content='" + b"," * 5000 + b"'>"])
def test_what_is_read_of_a_page_is_bounded(piece: bytes) -> None:
    found = list(elements(piece * 4000, NAMES, "license"))
    assert 0 < sum(len(value) for _, _, value in found) <= 4 * MAX_VALUE


def test_a_page_is_read_up_to_its_limit() -> None:
    for before, count in ((MAX_PAGE - len(META), 1), (MAX_PAGE, 0)):
        assert len(list(elements(b" " * before + META, NAMES, "license"))) == count


def test_a_page_has_a_limit_of_elements() -> None:
    html = b"<meta name=x>" * (MAX_ELEMENTS - 1) + META * 2
    assert len(list(elements(html, NAMES, "license"))) == 1
