"""Meta keys that send a request to a browser."""

from __future__ import annotations

import pytest
from scrapy import Request

from scrapy_rep.fetch.browsers import (
    ZYTE_API,
    ZYTE_API_PARAMS,
    RobotsTxtRequest,
    remove_browser_meta,
    zyte_api_params_for,
)


@pytest.mark.parametrize(
    "key",
    ["playwright", "playwright_page_methods", "splash", "_splash_processed", "selenium",
     "puppeteer", "zyte_api_provider", "use_selenium", "render_js"],
)  # fmt: skip
def test_a_request_for_robots_txt_drops_the_keys_of_browsers(key: str) -> None:
    request = RobotsTxtRequest("http://a.example/robots.txt", meta={key: True, "proxy": "p"})
    assert request.meta == {"proxy": "p"}
    request.meta[key] = True
    request.meta.update({key: True})
    request.meta.update(**{key: True})
    meta = request.meta
    meta |= {key: True, "b": 2}
    assert request.meta.setdefault(key, 1) == 1
    assert request.meta.setdefault("c", 3) == 3
    assert request.meta.setdefault("c", 4) == 3
    expected = {"proxy": "p", "b": 2, "c": 3}
    assert request.meta == expected
    assert request.replace(meta={**expected, key: 1}).meta == expected
    assert request.copy().meta == expected
    another = Request(request.url, meta={**request.meta, key: True})
    remove_browser_meta(another)
    assert another.meta == expected


HTTP = {"httpResponseBody": True, "httpResponseHeaders": True}


def test_scrapy_zyte_api_downloads_without_a_browser() -> None:
    request = RobotsTxtRequest("http://a.example/robots.txt")
    request.meta[ZYTE_API] = False
    assert request.meta == {ZYTE_API: False}
    request.meta["zyte_api"] = False
    assert request.meta == {ZYTE_API: False}
    for key in ("zyte_api", ZYTE_API):
        for value in (True, {"browserHtml": True, "screenshot": True}):
            request.meta[key] = value
            assert request.meta == {ZYTE_API: HTTP}
    request.meta[ZYTE_API] = {"browserHtml": True, "geolocation": "US"}
    assert request.meta == {ZYTE_API: {**HTTP, "geolocation": "US"}}


def test_the_default_parameters_of_scrapy_zyte_api_are_undone() -> None:
    plain = zyte_api_params_for(["browserHtml", "geolocation"])
    assert plain == {**HTTP, "browserHtml": None}
    meta = {ZYTE_API: True, ZYTE_API_PARAMS: plain}
    request = RobotsTxtRequest("http://a.example/robots.txt", meta=meta)
    assert request.meta[ZYTE_API] == plain
    request.meta[ZYTE_API] = {"browserHtml": True}
    assert request.replace().meta[ZYTE_API] == plain
