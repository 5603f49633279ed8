"""What is known of a download slot without the downloader."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.pace import plain_host


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://example.com/", "example.com"),
        ("https://example.com:8443/a?b#c", "example.com"),
        ("http://example.com:/a", "example.com"),
        ("http://example.com./a", "example.com."),
        ("http://127.0.0.1:80/", "127.0.0.1"),
        ("http://xn--mnchen-3ya.de/", "xn--mnchen-3ya.de"),
        ("http://user:80@example.com/", None),
        ("http://user@example.com/", None),
        ("http://Example.com/", None),
        ("http://[::1]/", None),
        ("http://example.com", None),
        ("http://example.com?/", None),
        ("http:///example.com/", None),
        ("ftp://example.com/", None),
        ("//example.com/", None),
    ],
)
def test_a_plain_host(url: str, host: str | None) -> None:
    plain = plain_host(url)
    assert (plain and plain[1]) == host


@given(st.text("aZ9.:@/?#[]-_% \t\\ü", max_size=12))
def test_a_plain_host_is_what_parsing_finds(rest: str) -> None:
    url = f"http://a{rest}/"
    plain = plain_host(url)
    assert plain is None or plain[1] == urlsplit(url).hostname
