"""Meta elements. test_pages.py has a table of where in a page they count."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.html_scanner import has_meta, meta_elements

NAMES = [b"robots", b"mybot"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (b"", False),
        (b"<title>meta</title><metadata>", False),
        (b"<META\nname=a>", True),
        (b"<meta/>", True),
        (b"<!-- <meta > -->", True),  # it may be one
    ],
)
def test_a_page_has_a_meta_tag(html: bytes, expected: bool) -> None:
    assert has_meta(html) is expected


@pytest.mark.parametrize(
    ("html", "elements"),
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
    ],
)
def test_name_and_content_of_meta_elements(html: bytes, elements: list[tuple[str, str]]) -> None:
    assert list(meta_elements(html, NAMES)) == elements
