"""Classes of the documentation that run in a crawl."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from testing.web import Page, Received, Web, redirect

from .conftest import PRIVATE, Crawl

DOCS = Path(__file__).parents[2] / "docs" / "usage"


def example(page: str, name: str) -> Any:
    """Return a class of a page, which stands in a block of Python."""
    text = (DOCS / page).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if f"class {name}" in block)
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    return namespace[name]


def is_signed(received: Received, key: Ed25519PrivateKey) -> bool:
    """Return whether the headers have one signature, and raise an error if it is not valid."""
    headers = {name.lower(): value for name, value in received.headers.items()}
    what = headers["signature-input"].removeprefix("sig1=")
    base = (
        f'"@authority": {headers["host"]}\n"signature-agent": {headers["signature-agent"]}\n'
        f'"@signature-params": {what}'
    )
    signature = b64decode(headers["signature"].removeprefix("sig1=:").removesuffix(":"))
    key.public_key().verify(signature, base.encode())
    return received.head.lower().count(b"\r\nsignature:") == 1


async def test_web_bot_auth_signs_robots_txt_and_each_hop(
    web: Web, crawl: Crawl, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = Ed25519PrivateKey.generate()
    monkeypatch.setenv("BOT_KEY", b64encode(key.private_bytes_raw()).decode())
    monkeypatch.setenv("BOT_KEY_ID", "thumbprint")
    middleware = example("recipes.md", "SignRequests")
    other = web.site(PRIVATE, {"/page": Page()}, host="127.0.0.2")
    site = web.site(redirect(other.url("/robots.txt")), {"/moved": redirect(other.url("/page"))})
    await crawl(site.urls("/moved"), {"DOWNLOADER_MIDDLEWARES": {middleware: 950}})
    assert site.paths == ["/robots.txt", "/moved"]
    assert other.paths == ["/robots.txt", "/robots.txt", "/page"]
    assert all(is_signed(each, key) for each in (*site.received, *other.received))
