"""The ``rel`` of links, looked up by the URL of a request."""

from __future__ import annotations

import pytest
from scrapy.http import HtmlResponse, Response, XmlResponse

from scrapy_rep.links import Links

URL = "http://site.example/folder/page"


def links(html: str, encoding: str = "utf-8") -> Links:
    return Links(HtmlResponse(URL, body=html, encoding=encoding))


@pytest.mark.parametrize(
    ("html", "url", "words"),
    [
        ("<a href=/a rel=nofollow>", "http://site.example/a", {"nofollow"}),
        ("<A HREF=/a REL='NOFOLLOW UGC'>", "http://site.example/a", {"nofollow", "ugc"}),
        ("<a href=/a rel='ugc,sponsored'>", "http://site.example/a", {"sponsored", "ugc"}),
        ("<area href=/a rel=ugc>", "http://site.example/a", {"ugc"}),
        ("<a href=a rel=nofollow>", "http://site.example/folder/a", {"nofollow"}),
        ("<base href=http://b.example/><a href=a rel=nofollow>", "http://b.example/a",
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
        ("nofollow", "http://site.example/a", set()),
        ("", "http://site.example/a", set()),
    ],
)  # fmt: skip
def test_words_on_each_link_to_a_url(html: str, url: str, words: set[str]) -> None:
    assert links(html).rel(url) == words


def test_urls_are_encoded_as_the_page_is() -> None:
    page = links("<a href='/?q=é' rel=nofollow>", "latin-1")
    assert page.rel("http://site.example/?q=%E9") == {"nofollow"}


@pytest.mark.parametrize("kind", [Response, XmlResponse])
def test_only_html_has_links(kind: type[Response]) -> None:
    page = kind(URL, body=b"<a href='/a' rel='nofollow'/>")
    assert Links(page).rel("http://site.example/a") == set()
