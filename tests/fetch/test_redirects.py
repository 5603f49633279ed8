"""The cookies that redirects set, and where they are returned."""

from __future__ import annotations

import pytest

from scrapy_rep.fetch.redirects import MAX_COOKIES, HopCookies

A = "http://a.example"
URL = A + "/robots.txt"
NOW = 1_800_000_000.0


def cookies(*lines: bytes, before: bytes = b"old=1") -> HopCookies:
    """The cookies after one response with a cookie, and another with these lines."""
    made = HopCookies()
    made.update(URL, [before], NOW)
    made.update(A + "/consent", lines, NOW)
    return made


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        ([], b"old=1"),
        ([b"a=1", b"b=2; Path=/x; Secure; HttpOnly; SameSite=Strict"], b"old=1; a=1; b=2"),
        ([b" a = 1 2 ;"], b"old=1; a=1 2"),
        ([b"a="], b"old=1; a="),
        ([b"a=b=c"], b"old=1; a=b=c"),
        ([b'a="1; 2"'], b'old=1; a="1'),  # as RFC 6265 §5.2 reads it
        ([b"a=\xe9"], b"old=1; a=\xe9"),
        ([b"old=2"], b"old=2"),
        ([b"a=1; Domain=b.example"], b"old=1; a=1"),
        ([b"old=0; max-age=0"], b""),
        ([b"old=0; Max-Age=-1"], b""),
        ([b"old=0; Expires=Thu, 01-Jan-1970 00:00:01 GMT"], b""),
        ([b"old=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9"], b"old=0"),
        ([b"old=2; Expires=Fri, 01 Jan 2100 00:00:00 GMT"], b"old=2"),
        ([b"old=2; Max-Age=" + b"9" * 9000 + b"; Expires=soon"], b"old=2"),
        ([b"old=2; Max-Age=; Max-Age=-; Max-Age=0x"], b"old=2"),
        pytest.param([b"", b";", b"=", b"=1", b"a", b"a; b=1"], b"old=1", id="no cookies"),
        pytest.param(
            [b"a=1\r\nX-Evil: 1", b"b=\n", b"c\r=1", b"d=\0", b"e=\x7f"], b"old=1", id="controls"
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_rfc_the_cookies_of_a_response(lines: list[bytes], header: bytes) -> None:
    assert cookies(*lines).header(URL) == header


@pytest.mark.rule("A redirect that sets a cookie")
@pytest.mark.parametrize(
    "url",
    ["https://a.example/", "http://a.example:81/", "http://www.a.example/", "http://b.example/"],
)
def test_a_cookie_is_for_the_origin_that_set_it(url: str) -> None:
    found = cookies(b"a=1; Domain=.a.example", b"b=1; Domain=b.example")
    assert found.header(url) == b""
    assert found.header("http://A.example:80/other") == b"old=1; a=1; b=1"


@pytest.mark.rule("A redirect that sets a cookie")
@pytest.mark.no_cover
def test_the_cookies_of_all_origins_together_have_a_size() -> None:
    long = b"a=" + b"1" * (MAX_COOKIES // 2)
    found = cookies(long, before=long)
    assert found.header(URL) == long, "a cookie that replaces another one"
    found.update("http://b.example/", [long, b"b=1"], NOW)
    assert found.header("http://b.example/") == b"b=1"
    found.update(URL, [b"a=1; Max-Age=0"], NOW)
    found.update("http://b.example/", [long], NOW)
    assert found.header("http://b.example/") == b"b=1; " + long
    many = cookies(*(b"%d=1" % number for number in range(100_000)))
    assert MAX_COOKIES - 10 < len(many.header(URL)) <= MAX_COOKIES
