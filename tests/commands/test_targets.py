"""URLs as users write them."""

from __future__ import annotations

import pytest

from scrapy_rep.commands.targets import Target, target_of


@pytest.mark.parametrize(
    ("given", "url", "origin"),
    [
        ("https://example.com/x", "https://example.com/x", "https://example.com"),
        ("example.com/x", "https://example.com/x", "https://example.com"),
        ("//example.com/x", "https://example.com/x", "https://example.com"),
        ("example.com:8443/x", "https://example.com:8443/x", "https://example.com:8443"),
        ("localhost:8000", "https://localhost:8000", "https://localhost:8000"),
        ("localhost:8000?q", "https://localhost:8000?q", "https://localhost:8000"),
        ("[::1]/x", "https://[::1]/x", "https://[::1]"),
        ("HTTP://Example.com", "HTTP://Example.com", "http://example.com"),
        ("ftp://example.com/x", "ftp://example.com/x", "ftp://example.com"),
        # These have no robots.txt.
        ("mailto:a@example.com", "mailto:a@example.com", None),
        ("data:text/html,x", "data:text/html,x", None),
        ("s3://bucket/key", "s3://bucket/key", None),
    ],
)
def test_targets(given: str, url: str, origin: str | None) -> None:
    target = target_of(given)
    assert target == Target(given, url, origin)
    assert target.has_default_scheme == (url != given)


@pytest.mark.parametrize(
    "given", ["http://", "https://:80/x", "http://a b/", "https://[::/x", "ex ample"]
)
def test_a_web_url_without_a_valid_host(given: str) -> None:
    target = target_of(given)
    assert (target.origin, target.is_valid) == (None, False)


def test_a_path_is_enough_for_a_file() -> None:
    assert target_of("/x", in_file=True) == Target("/x", "/x", None)
    assert target_of("/x") == Target("/x", "/x", None, is_valid=False)
