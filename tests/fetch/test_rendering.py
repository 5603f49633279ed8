"""Requests to a rendering service, and the page that each of them is for."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request

from scrapy_rep.fetch.browsers import page_url

SERVICE = "http://splash.example:8050"
RENDER = f"{SERVICE}/render.html"
PAGE = "https://shop.example/a"


def splash(**values: Any) -> dict[str, Any]:
    return {"_splash_processed": True, "splash": {"args": {"url": PAGE}, **values}}


@pytest.mark.parametrize(
    ("url", "meta", "page"),
    [
        pytest.param(RENDER, splash(), PAGE, id="a request to the service"),
        pytest.param(PAGE, {"splash": {"args": {"url": PAGE}}}, PAGE, id="not yet replaced"),
        pytest.param(
            "https://other.example/b", splash(), "https://other.example/b", id="copied meta"
        ),
        pytest.param(
            f"{SERVICE}/apix",
            splash(splash_url=f"{SERVICE}/api"),
            f"{SERVICE}/apix",
            id="a path that begins so",
        ),
        pytest.param(
            "http://own.example/render.html",
            splash(splash_url="http://own.example"),
            PAGE,
            id="a service of its own",
        ),
        pytest.param(RENDER, splash(splash_url=None), RENDER, id="a service that is no URL"),
        pytest.param(RENDER, {"_splash_processed": True, "splash": "x"}, RENDER, id="other meta"),
        pytest.param(RENDER, splash(args=None), RENDER, id="no arguments"),
        pytest.param(RENDER, splash(args={"url": ""}), RENDER, id="no URL"),
    ],
)
def test_the_page_that_a_request_is_for(url: str, meta: dict[str, Any], page: str) -> None:
    assert page_url(Request(url, meta=meta), SERVICE) == page
