"""The ``rel`` values of links, by the URL of a request."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Response, XmlResponse
from w3lib.url import canonicalize_url

from scrapy_rep.pages import links as links_module
from scrapy_rep.pages.links import MAX_UNUSUAL_LINKS, Links

URL = "http://site.example/folder/page"


def links(html: str, encoding: str = "utf-8") -> Links:
    return Links(HtmlResponse(URL, body=html, encoding=encoding))


@pytest.mark.parametrize(
    ("html", "url", "values"),
    [
        ("<a href=/a rel=nofollow>", "http://site.example/a", {"nofollow"}),
        ("<A HREF=/a REL='NOFOLLOW UGC'>", "http://site.example/a", {"nofollow", "ugc"}),
        ("<a href=/a rel='ugc,sponsored'>", "http://site.example/a", {"sponsored", "ugc"}),
        ("<area href=/a rel=ugc>", "http://site.example/a", {"ugc"}),
        ("<a href=a rel=nofollow>", "http://site.example/folder/a", {"nofollow"}),
        ("<base href='http://b.example/'><a href=a rel=nofollow>", "http://b.example/a",
         {"nofollow"}),
        ("<a href='\t/a\n' rel=nofollow>", "http://site.example/a", {"nofollow"}),
        ("<a href='/a?b=1&amp;a=2#c' rel=nofollow>", "http://site.example/a?a=2&b=1",
         {"nofollow"}),
        ("<a href=http://site.example rel=nofollow>", "http://site.example/", {"nofollow"}),
        ("<a href=/a rel=nofollow>", "http://site.example/b", set()),
        ("<a href=/a rel=nofollower>", "http://site.example/a", set()),
        ("<a href=/a>nofollow</a>", "http://site.example/a", set()),
        ("<a href=/a title=nofollow>", "http://site.example/a", set()),
        ("<link href=/a rel=nofollow>", "http://site.example/a", set()),
        ("<a name=/a rel=nofollow>", "http://site.example/a", set()),
        ("<a href=/a rel=nofollow><a href=/a>", "http://site.example/a", set()),
        ("<a href=/a><a href=/a#b rel=nofollow>", "http://site.example/a", set()),
        ("<a href=http://[ rel=nofollow>", "http://site.example/a", set()),
        ("<a href=/a rel='&#110;ofollow'>", "http://site.example/a", {"nofollow"}),
        ("<a href=/a rel='&#x55;&#x67;&#x063;'>", "http://site.example/a", {"ugc"}),
        ("<a href=/a rel='&#00078;OFOLLOW'>", "http://site.example/a", {"nofollow"}),
        ("<a href=/a rel='&#8217;&#39;'>", "http://site.example/a", set()),
        ("<a href=?b=1&a=2 rel=ugc>", f"{URL}?a=2&b=1", {"ugc"}),
        ("<a href='/?b=%C3%A9&a=%41' rel=ugc>", "http://site.example/?a=A&b=é", {"ugc"}),
        ("<a href='/?é=1&a=%C3%A9&b=2' rel=ugc>", "http://site.example/?a=é&b=2&é=1", {"ugc"}),
        ("<a href='/?b=1&a=%C3%A9' rel=ugc>", "http://site.example/?a=é&b=1", {"ugc"}),
        ("<a href='' rel=ugc>", URL, {"ugc"}),
        ("<a href=#top rel=ugc>", URL, {"ugc"}),
        ("<a href=//b.example/%C3%A9 rel=ugc>", "http://b.example/é", {"ugc"}),
        ("<base href=http://[><a href=a rel=ugc>", "http://site.example/folder/a", {"ugc"}),
        ("<a href=/a rel=nofollow>", "http://[", set()),
        ("nofollow", "http://site.example/a", set()),
        ("", "http://site.example/a", set()),
    ],
)  # fmt: skip
def test_values_that_all_links_to_a_url_have(html: str, url: str, values: set[str]) -> None:
    assert links(html).rel(url) == values


def test_urls_have_the_encoding_of_the_page() -> None:
    page = links("<a href='/?q=é' rel=nofollow>", "latin-1")
    assert page.rel("http://site.example/?q=%E9") == {"nofollow"}


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp500", "iso2022_jp", "shift_jis"]
)
@pytest.mark.parametrize("declared", [True, False])
def test_links_of_pages_in_any_encoding(encoding: str, declared: bool) -> None:
    """Without a charset in the header, the encoding is an argument of the response."""
    html = "<p title='ツ'>" if "jp" in encoding or "jis" in encoding else ""
    html += "<a href='/a?b=1&amp;a=2' rel='nofollow &#117;gc'>a</a>"
    page = HtmlResponse(URL, body=html, encoding=encoding)
    if declared:
        headers = {"Content-Type": f"text/html; charset={encoding}"}
        page = HtmlResponse(URL, headers=headers, body=page.body)
    found = Links(page)
    # The URL of a request in UTF-8, and that of a link extractor.
    assert found.rel("http://site.example/a?b=1&a=2") == {"nofollow", "ugc"}
    assert found.rel(page.follow("/a?b=1&a=2").url) == {"nofollow", "ugc"}


# The form in which URLs are compared

PIECES = [
    "a", "B", "1", ".", "..", "/", "//", "?", "=", "&", "%C3%A9", "%c3", "%41", "%2F", "é", "+",
    "-", "~", "!", "$", "'", "(", "*", ",", "@", ":", ";", "http://h.example/", "https://H.example:8080/",
    "http://h.example", "x=1", "y=2", "x=%C3%A9", "_", " ", "http://[", "\t", "[", "|", "\0",
]  # fmt: skip
hrefs = st.lists(st.sampled_from(PIECES), max_size=7).map("".join) | st.text(max_size=20)
BASES = [
    URL, "http://site.example", "http://s.example/a/../b/c;x?q=1", "data:text/html,x",
    "about:blank", "ftp://s.example/x/y", "http://s.example/%c3%a9/;p/x", "http://s.example/a//b", "file:///a/b",
    "http://S.example:80/é/x?é", "http://[::0:1]/x", "http://u:p@s.example/x",
]  # fmt: skip


@given(st.sampled_from(BASES), hrefs)
def test_the_urls_of_an_href_are_those_of_the_duplicate_filter(base: str, href: str) -> None:
    targets = links_module._LinkUrls(base, "utf-8").of(href)
    assert targets is not None
    try:
        assert list(targets) == [canonicalize_url(urljoin(base, href))]
    except ValueError:
        assert targets == ()


# More links than are parsed


def unusual(number: int) -> str:
    return f"/%61/{number}"


def many(rel: str, count: int) -> str:
    return "".join(f"<a href='{unusual(number)}' {rel}>" for number in range(count))


def test_any_number_of_links_of_the_common_form_is_parsed() -> None:
    html = "".join(
        f"<a href=/{number}?a=b rel=nofollow>" for number in range(5 * MAX_UNUSUAL_LINKS)
    )
    page = links(html + "<a href=/followed>")
    assert page.rel(f"http://site.example/{5 * MAX_UNUSUAL_LINKS - 1}?a=b") == {"nofollow"}
    assert page.rel("http://site.example/followed") == set()
    assert page.rel("http://site.example/elsewhere") == set()


def test_links_that_are_not_parsed_may_have_any_url() -> None:
    html = many("rel=ugc", 1) + many("rel=nofollow", MAX_UNUSUAL_LINKS + 1)
    page = links(html + "<a href=/usual rel=ugc><a href=/followed>")
    # Parsed links keep their values, and links without values have none.
    assert page.rel("http://site.example/a/1") == {"nofollow"}
    assert page.rel("http://site.example/usual") == {"ugc"}
    assert page.rel("http://site.example/followed") == set()
    # Every other URL has the values of all links that are not parsed.
    assert page.rel(f"http://site.example/a/{MAX_UNUSUAL_LINKS}") == {"nofollow"}
    assert page.rel("http://site.example/elsewhere") == {"nofollow"}


def test_links_with_values_are_parsed_first() -> None:
    html = many("", 2 * MAX_UNUSUAL_LINKS) + "<a href=/%62 rel=nofollow>"
    page = links(html)
    assert page.rel("http://site.example/b") == {"nofollow"}
    assert page.rel("http://site.example/elsewhere") == set()


def test_a_long_href_counts_as_several_links() -> None:
    long = "/%61" + "a" * 100 * MAX_UNUSUAL_LINKS
    page = links(f"<a href={long} rel=nofollow><a href=/%62 rel=ugc>")
    assert page.rel("http://site.example/b") == {"ugc"}
    assert page.rel("http://site.example/elsewhere") == {"nofollow"}


@pytest.mark.parametrize("kind", [Response, XmlResponse])
def test_only_html_has_links(kind: type[Response]) -> None:
    page = kind(URL, body=b"<a href='/a' rel='nofollow'/>")
    assert Links(page).rel("http://site.example/a") == set()
