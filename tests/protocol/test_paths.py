"""Comparable forms of URLs and patterns, and origins."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_rep.protocol.paths import lacks_host, origin_of, path_of, pattern_of, robots_txt_url


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/"), ("http://h?q", "/?q"), ("http://h#f", "/"), ("https://h/a?b#c", "/a?b"),
        ("HTTP://u:p@h:80/a", "/a"), ("ftp://h/a", "/a"), ("/a", "/a"), ("//a", "//a"),
        ("/a/../b/./c", "/a/../b/./c"), ("/x?u=http://h/", "/x?u=http://h/"),
        ("ws://h/a", "/a"), ("WSS://h", "/"), ("http://", "/"), ("http:///a", "/a"),
        (" \x00http://h/a", "/a"), ("ht\r\ntp://h/a b\n", "/a%20b"),
        ("http://[::1]/a", "/a"), ("http://h/%41%7e%2d", "/A~-"), ("http://h/%2f", "/%2F"),
        ("http://h/é ツ", "/%C3%A9%20%E3%83%84"), ("http://h/%", "/%"), ("http://h/%2", "/%2"),
        ("http://h/%zz", "/%zz"), ("http://h/%2541", "/%2541"), ("http://h/*$", "/%2A%24"),
        ("http://h/[]'\"<>\\^`{|}", "/%5B%5D%27%22%3C%3E%5C%5E%60%7B%7C%7D"),
        ("http://h/\x00\x7f\n", "/%00%7F%0A"), ("http://h/\ud800", "/%ED%A0%80"),
        # Decoding must not complete what was no escape.
        ("/%%36%31", "/%6%31"), ("/%%361", "/%%361"), ("/%2%35", "/%2%35"), ("/%%36x", "/%6x"),
        ("/%a%41", "/%a%41"), ("/%%41%7E%zz", "/%A~%zz"), ("/%%4a", "/%J"), ("/%%7E41", "/%~41"),
    ],
)  # fmt: skip
def test_path_of(url: str, path: str) -> None:
    assert path_of(url) == path
    assert path_of(path) == path


@pytest.mark.parametrize(
    ("value", "pattern", "length"),
    [
        ("/a", "/a", 2), ("/*$", "/*$", 3), ("/$a$", "/%24a$", 4), ("/$$", "/%24$", 3),
        ("/%62", "/b", 2), ("/ツ", "/%E3%83%84", 10), ("/%2f", "/%2F", 4), ("/%2F", "/%2F", 4),
        ("/ ", "/%20", 2), ("/[", "/%5B", 2), ("/%2A", "/%2A", 4), ("/%24", "/%24", 4), ("", "", 0),
    ],
)  # fmt: skip
def test_pattern_of(value: str, pattern: str, length: int) -> None:
    assert pattern_of(value.encode()) == (pattern, length)


def test_octets_that_are_not_utf_8_are_kept() -> None:
    assert pattern_of(b"/\xe9") == ("/%E9", 4)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.com", "http://example.com"),
        ("HTTP://Example.COM/a?b#c", "http://example.com"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:0080", "http://example.com"),
        ("http://example.com:", "http://example.com"),
        ("https://example.com:443/", "https://example.com"),
        ("https://example.com:80/", "https://example.com:80"),
        ("http://example.com:08080/", "http://example.com:8080"),
        ("http://example.com:0/", "http://example.com:0"),
        ("http://example.com./", "http://example.com"),
        ("http://user:pass@example.com/", "http://example.com"),
        ("http://u@v@example.com/", "http://example.com"),
        ("http://example.com?a", "http://example.com"),
        ("http://example.com#a", "http://example.com"),
        ("HTTPS://u:p@Example.com:443", "https://example.com"),
        (" http://exa\tmple.com\n/", "http://example.com"),
        ("http://e%78ample.com/", "http://example.com"),
        ("http://e%78ample.com:80/a", "http://example.com"),
        ("http://u%40v@%45XAMPLE%2Ecom%2e/", "http://example.com"),
        ("http://m%C3%BCnchen.de/", "http://xn--mnchen-3ya.de"),
        ("http://m%FCnchen.de/", None),
        ("http://example.com%2Fa/", None),
        ("http://example.com%3A81/", None),
        ("http://example.com%00/", None),
        ("http://e%2578ample.com/", None),
        ("http://e%zzample.com/", None),
        ("http://e%/", None),
        ("http://[example]/", None),
        ("ws://example.com/", "http://example.com"),
        ("wss://example.com:443/", "https://example.com"),
        ("ftp://example.com:21/", "ftp://example.com"),
        ("http://münchen.de/", "http://xn--mnchen-3ya.de"),
        ("http://xn--mnchen-3ya.de/", "http://xn--mnchen-3ya.de"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]"),
        ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080"),
        ("http://a_b.example/", "http://a_b.example"),
        ("data:text/plain,x", None),
        ("file:///a", None),
        ("about:blank", None),
        ("s3://bucket/a", None),
        ("http:///a", None),
        ("http://./", None),
        ("http://a..b/", None),
        ("http://exa mple.com/", None),
        ("http://example.com:http/", None),
        ("http://example.com:65536/", None),
        ("http://example.com:٣/", None),
        ("http://example.com:123456/", None),
        ("http://[::1/", None),
        ("http://[::1]x/", None),
        ("http://[::1]80/", None),
        ("http://[::zz]/", None),
        ("http://" + "a" * 64 + "/", None),
        ("http://" + "a." * 200 + "/", None),
        ("http://" + "é" * 200 + "/", None),
        ("http://é..b/", None),
        ("", None),
        ("/a", None),
    ],
)  # fmt: skip
def test_origin(url: str, expected: str | None) -> None:
    assert origin_of(url) == expected
    if expected:
        assert origin_of(expected) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://./", True), ("https://a..b/", True), ("HTTP:///a", True), ("http:a", True),
        ("ws://exa mple.com/", True), ("wss://[::zz]/", True), ("http://example.com:http/", True),
        ("\x00 ht\ntp://./", True), ("http://e%2578ample.com/", True), ("http://[::1/", True),
        ("http://e%78ample.com/", False), ("http://example.com", False), ("ftp://./", False),
        ("data:text/plain,x", False), ("file:///a", False), ("about:blank", False),
        ("s3://./", False), ("httpx://./", False), ("/http://./", False), ("", False),
    ],
)  # fmt: skip
def test_lacks_host(url: str, expected: bool) -> None:
    assert lacks_host(url) is expected


def test_robots_txt_url() -> None:
    assert robots_txt_url("http://example.com:81") == "http://example.com:81/robots.txt"
    assert robots_txt_url("wss://Example.com/a?b") == "https://example.com/robots.txt"


@pytest.mark.parametrize("url", ["", "a", "?q", "x?u=http://h/", "s3://h/a", "http:/a", "://a"])
def test_what_is_neither_a_url_nor_a_path_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="neither an absolute URL"):
        path_of(url)
    with pytest.raises(ValueError, match=r"has no robots\.txt"):
        robots_txt_url(url)


@settings(deadline=None)
@given(
    st.one_of(
        st.text("\t\n\r\x00 /:?#@[]%.ahpstw1\u017f", max_size=20),
        st.builds(
            "{}{}{}".format,
            st.sampled_from(["", " ", "\x00\t", "\n"]),
            st.sampled_from(["http:", "HTTPS:", "ws:", "w\nss:", "ftp:", "http\u017f:", "s3:"]),
            st.text("\t\n\r /?#@[]%.:ah1\u00e9", max_size=20),
        ),
    )
)
def test_every_url_that_has_an_origin_has_a_path(url: str) -> None:
    if origin_of(url) is not None:
        assert path_of(url).startswith("/")
        assert robots_txt_url(url) == f"{origin_of(url)}/robots.txt"
