"""Comparable forms of URLs and patterns, and origins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import urldefrag, urlparse

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from twisted.web.client import URI

from scrapy_rep import Reason, Rule, Verdict, robots_txt_url
from scrapy_rep.protocol import paths
from scrapy_rep.protocol.paths import origin_of, other_paths, path_of, pattern_of, verdict_as_sent
from scrapy_rep.protocol.robotstxt import RobotsTxt
from tests.conftest import traced_memory


@pytest.mark.rule("Percent-encoding")
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


@pytest.mark.rule("Percent-encoding")
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


@pytest.mark.rule("UTF-8")
def test_bytes_that_are_not_utf_8_are_kept() -> None:
    assert pattern_of(b"/\xe9") == ("/%E9", 4)


@pytest.mark.rule("Scheme, host and port", "Spellings of a host", "Other schemes")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.com", "http://example.com"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:0080", "http://example.com"),
        ("https://example.com:80/", "https://example.com:80"),
        ("http://example.com:08080/", "http://example.com:8080"),
        ("http://example.com:0/", "http://example.com:0"),
        ("http://example.com./", "http://example.com"),
        ("http://user:pass@example.com/", "http://example.com"),
        ("http://example.com?a", "http://example.com"),
        ("HTTPS://u:p@Example.com:443", "https://example.com"),
        (" http://exa\tmple.com\n/", "http://example.com"),
        ("http://e%78ample.com/", "http://example.com"),
        ("http://u%40v@%45XAMPLE%2Ecom%2e/", "http://example.com"),
        ("http://m%C3%BCnchen.de/", "http://xn--mnchen-3ya.de"), ("http://m%FCnchen.de/", None),
        ("http://example.com%2Fa/", None), ("http://example.com%00/", None),
        ("http://e%zzample.com/", None), ("http://[example]/", None),
        ("ws://example.com/", "http://example.com"),
        ("wss://example.com:443/", "https://example.com"),
        ("ftp://example.com:21/", "ftp://example.com"),
        ("http://münchen.de/", "http://xn--mnchen-3ya.de"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]"),
        ("http://[2001:DB8::1]:8080/", "http://[2001:db8::1]:8080"),
        ("http://a_b.example/", "http://a_b.example"), ("data:text/plain,x", None),
        ("s3://bucket/a", None), ("http:///a", None), ("http://./", None), ("http://a..b/", None),
        ("http://exa mple.com/", None), ("http://example.com:http/", None),
        ("http://example.com:65536/", None), ("http://example.com:٣/", None),
        ("http://[::1/", None), ("http://[::1]x/", None), ("http://[::zz]/", None),
        ("http://[fe80::1%eth0]/", None),  # a zone is no part of an origin
        ("http://[fe80::1%25\x1b[31m]/", None), ("http://[fe80::1%25é]/", None),
        ("http://h.example\\@other.example/", None),  # a browser asks h.example
        ("http://" + "a" * 64 + "/", None), ("http://" + "a." * 200 + "/", None),
        ("http://" + "é" * 200 + "/", None), ("", None), ("/a", None),
    ],
)  # fmt: skip
def test_origin(url: str, expected: str | None) -> None:
    assert origin_of(url) == expected
    if expected:
        assert origin_of(expected) == expected
        assert robots_txt_url(url) == f"{expected}/robots.txt"


def test_long_authorities_are_not_kept_in_memory() -> None:
    with traced_memory() as traced:
        for number in range(500):
            long = f"{number}" + "x" * 20_000
            assert origin_of(f"http://{long}@h{number}.example/") == f"http://h{number}.example"
            assert origin_of(f"http://{long}") is None
            port = "0" * 20_000 + "81"
            assert origin_of(f"http://p{number}.example:{port}/") == f"http://p{number}.example:81"
        kept, _ = traced()
    assert kept < 10_000_000, "128 URLs are in the cache of urlsplit"


@pytest.mark.rule("Invalid hosts")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://./", True), ("https://a..b/", True), ("HTTP:///a", True), ("http:a", True),
        ("ws://exa mple.com/", True), ("wss://[::zz]/", True), ("http://example.com:http/", True),
        ("\x00 ht\ntp://./", True), ("http://e%2578ample.com/", True), ("http://[::1/", True),
        ("http://[fe80::1%25é]/", True), ("http://h\\@other/", True),
        ("http://e%78ample.com/", False), ("http://example.com", False), ("ftp://./", False),
        ("data:text/plain,x", False), ("file:///a", False), ("about:blank", False),
        ("s3://./", False), ("httpx://./", False), ("/http://./", False), ("", False),
    ],
)  # fmt: skip
def test_lacks_host(url: str, expected: bool) -> None:
    assert paths.lacks_host(url) is expected


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


@pytest.mark.parametrize(
    "path",
    [
        "", "/", "/a", "/a/b.html?q=1&r=2", "/a.b/..c", "/a#b", "?q", "/%C3%A9", "/a%20b", "/a%2Fb",
        "/x?q=a%26b", "/a?b#c?", "/é", "/a//b", "/a..", "/...", "/a%2fb",
    ],
)  # fmt: skip
def test_most_urls_are_sent_as_they_are(path: str) -> None:
    assert other_paths("https://h.example" + path) == ()
    assert not path.startswith("/") or other_paths(path) == ()


@pytest.mark.rule("URLs that download handlers change")
@pytest.mark.parametrize(
    ("path", "others"),
    [
        ("/private;", {"/private"}), ("/private;x=1", {"/private"}),
        ("/a;b/c;d;e?q=1", {"/a;b/c?q=1"}), ("/private?", {"/private"}),
        ("/private?#a", {"/private"}), ("/private ", {"/private"}), ("/private\x00", {"/private"}),
        ("/pri\tva\nte", {"/private"}), ("/search;?", {"/search;", "/search"}),
        ("/x?a b", {"/x?a+b"}), ("/a/../b", {"/b"}), ("/a/./b", {"/a/b"}),
        ("/a//../b", {"/a/b"}),
        ("/a/b/..", {"/a/", "/a"}),  # httpx drops the slash
        ("/..", {"/"}), ("/..?q=/../x", {"/?q=/../x"}), ("/a/%2e%2E/b", {"/b"}),
        ("/a/%2e%2e/../b", {"/a/b", "/b"}),  # httpx removes only the second
        ("/a\\..\\b", {"/b"}),  # browsers
        ("/%21%2C%3b%26%2A", {"/!,;&%2A"}), ("/%2B%2F%3F%23%25", set()),
        ("/x?%21%2f%3F%3a%40", {"/x?!/?:@"}), ("/x?%3B%26%3D%2B", set()), ("/%zz", {"/%25zz"}),
        ("/a?u=http://b/", set()),
    ],
)  # fmt: skip
def test_other_paths(path: str, others: set[str]) -> None:
    assert set(other_paths("http://h.example" + path)) == others
    assert set(other_paths(path)) == others


@pytest.mark.parametrize(
    ("url", "others"),
    [
        ("ftp://h/a%2Fb%3B", ("/a/b;",)), ("FTP://h/a;type=i", ("/a",)), ("ftp://h/a?b", ()),
        ("ftp://h/a?", ("/a",)), (" http://h/a;", ("/a",)),
        ("https://h//a", ("////a",)),  # HTTP/1.1, from Python 3.12.4 on
        ("WSS://h/a;", ("/a",)),
    ],
)  # fmt: skip
def test_other_schemes(url: str, others: tuple[str, ...]) -> None:
    assert other_paths(url) == others


def http_1(url: str) -> str:
    """As Scrapy's handler for HTTP/1.1 does."""
    path: bytes = URI.fromBytes(urldefrag(url)[0].encode("ascii")).originForm
    return path.decode("ascii")


def http_2(url: str) -> str:
    """As Scrapy's handler for HTTP/2 does."""
    parts = urlparse(url)
    return str(parts.path or "/") + ("?" + parts.query if parts.query else "")


PIECES = st.sampled_from(
    [
        *"abc/;?.% \t\\#&=+,!*$'()@:~[]{}|^\"<>",
        *("..", "/..", "/.", "%2e", "%2E", "%2F", "%3B", "%3b", "%21", "%2C", "%2A", "%24", "%20"),
        *("%3F", "%3D", "%26", "%2B", "%25", "%zz", "%C3%A9", "%FF"),
    ]
)


@pytest.mark.rule("URLs that download handlers change")
@given(st.lists(PIECES, max_size=12).map("".join))
@example("a/%2e%2e;?")
def test_every_path_that_scrapy_sends_is_known(pieces: str) -> None:
    check("http://h.example/" + pieces, http_1, http_2)


@pytest.mark.rule("URLs that download handlers change")
@given(st.lists(PIECES, max_size=12).map("".join))
@example("a/%2e%2e;?")
def test_every_path_that_aiohttp_sends_is_known(pieces: str) -> None:
    yarl = pytest.importorskip("yarl")

    def aiohttp(url: str, *, encoded: bool = False) -> str:
        return str(yarl.URL(url, encoded=encoded).raw_path_qs)

    check("http://h.example/" + pieces, aiohttp, partial(aiohttp, encoded=True))


def check(url: str, *handlers: Callable[[str], str]) -> None:
    for handler in handlers:
        sent = "/" + handler(url).removeprefix("/")
        assert path_of(sent) in (path_of(url), *other_paths(url))


def test_the_verdict_names_the_path_that_is_disallowed() -> None:
    robots = RobotsTxt(b"User-agent: *\nDisallow: /private$\nDisallow: /b;")

    def verdict_of(url: str) -> Verdict:
        local = Verdict(False, Reason.LOCAL_RULE, detail="the owner says so")
        return local if url == "/a" else robots.verdict(url, "mybot")

    verdict = verdict_as_sent(verdict_of, "http://h/private;")
    detail = "a download handler may send /private"
    assert verdict == (False, Reason.RULES, Rule(False, "/private$", 2), "*", detail)
    assert str(verdict) == f"line 2, Disallow: /private$, for *, {detail}"
    assert verdict_as_sent(verdict_of, "http://h/private").detail is None
    assert verdict_as_sent(verdict_of, "http://h/b;").detail is None
    assert verdict_as_sent(verdict_of, "http://h/c;").allowed
    assert verdict_as_sent(verdict_of, "/a;").detail == "the owner says so"
