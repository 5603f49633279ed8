"""A service on loopback that answers like Zyte API.

It requests the URLs from the sites of the same web, which record the requests.
"""

from __future__ import annotations

import asyncio
import base64
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from testing.web import Received, Web

from .crawling import Check
from .standard import PUBLIC, RULES, Standard


def fake_api() -> Callable[[Web], dict[str, Any]]:
    """The settings that name the API."""

    def prepare(web: Web) -> dict[str, Any]:
        site = web.site(pages={"/v1/extract": _extract})
        return {
            "ADDONS": {"scrapy_rep.Addon": 500, "scrapy_zyte_api.Addon": 500},
            "ZYTE_API_KEY": "none",
            "ZYTE_API_URL": site.url("/v1/"),
        }

    return prepare


def robots_txt_gives_no_cause_to_warn(standard: Standard) -> Check:
    """The check, under the settings of a case."""

    async def robots_txt_gives_no_cause_to_warn(web: Web) -> None:
        # Without a User-Agent of the project's own, of which scrapy-zyte-api warns, too.
        settings = {"USER_AGENT": None, "ROBOTSTXT_USER_AGENT": "testbot"}
        outcome = await standard.crawl(web, web.site(RULES).urls(*PUBLIC), settings)
        warnings = [each for each in outcome.warnings if "robots.txt" in each]
        assert not warnings, f"warned: {warnings}"

    return robots_txt_gives_no_cause_to_warn


async def _extract(received: Received, reader: StreamReader, writer: StreamWriter) -> None:
    wanted = json.loads(await reader.readexactly(int(received.headers["content-length"])))
    status, headers, body = await _get(wanted["url"])
    answer: dict[str, Any] = {"url": wanted["url"], "statusCode": status}
    if wanted.get("httpResponseBody"):
        answer["httpResponseBody"] = base64.b64encode(body).decode()
    if wanted.get("httpResponseHeaders"):
        answer["httpResponseHeaders"] = [
            {"name": name, "value": value} for name, value in headers.items()
        ]
    content = json.dumps(answer).encode()
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(content), content)
    )
    await writer.drain()


async def _get(url: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status_line, *lines = head.rstrip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        body = await reader.readexactly(int(headers["Content-Length"]))
        return int(status_line.split()[1]), headers, body
    finally:
        writer.close()
