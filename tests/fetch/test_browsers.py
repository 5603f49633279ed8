"""Meta keys that send a request to a browser."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_rep.fetch.browsers import (
    ZYTE_API,
    ZYTE_API_PARAMS,
    remove_browser_meta,
    zyte_api_params_for,
)


@pytest.mark.parametrize(
    "key",
    ["playwright", "playwright_page_methods", "splash", "_splash_processed", "selenium",
     "puppeteer", "zyte_api_provider", "use_selenium", "render_js"],
)  # fmt: skip
def test_the_keys_of_browsers_are_removed(key: str) -> None:
    meta = {key: True, "proxy": "p"}
    remove_browser_meta(meta)
    assert meta == {"proxy": "p"}


HTTP = {"httpResponseBody": True, "httpResponseHeaders": True}
PLAIN = zyte_api_params_for(["browserHtml", "geolocation"])


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({ZYTE_API: False}, False),
        ({"zyte_api": False}, None),
        ({ZYTE_API: False, "zyte_api": False}, False),
        ({ZYTE_API: True}, HTTP),
        ({"zyte_api": {"browserHtml": True, "screenshot": True}}, HTTP),
        ({ZYTE_API: {"browserHtml": True, "geolocation": "US"}}, {**HTTP, "geolocation": "US"}),
        ({ZYTE_API: {"browserHtml": True}, ZYTE_API_PARAMS: PLAIN}, PLAIN),
    ],
)
def test_scrapy_zyte_api_downloads_without_a_browser(meta: dict[str, Any], expected: Any) -> None:
    for _ in range(2):  # when the request is made, and just before the download
        remove_browser_meta(meta)
        assert meta.get(ZYTE_API) == expected
        assert "zyte_api" not in meta


def test_the_default_parameters_of_scrapy_zyte_api_are_undone() -> None:
    assert PLAIN == {**HTTP, "browserHtml": None}
