"""Services for plugins on loopback: a proxy and a WebDriver.

Each service requests pages from the sites of the same web, which record the requests.
"""

from __future__ import annotations

import asyncio
import json
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from testing.web import Page, Received, Site, Web

Service = Callable[["Received", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def proxy(web: Web, host: str, headers: Mapping[str, str] | None = None) -> Site:
    """A proxy at ``host``, which adds ``headers`` to each response."""

    async def forward(received: Received, __: StreamReader, writer: StreamWriter) -> None:
        added = {"Connection": "close", **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in added.items())
        answer = await _get(received.path, received.headers.get("user-agent", ""))
        status_line, _, rest = answer.partition(b"\r\n")
        writer.write(status_line + b"\r\n" + lines.encode() + rest)
        await writer.drain()

    return web.site(None, {"*": forward, "/robots.txt": forward}, host=host)


class WebDriver:
    """A remote WebDriver with one session, whose browser returns the source of each page."""

    def __init__(self, web: Web, host: str = "127.0.0.201") -> None:
        self._url = ""
        self._source = ""
        pages: dict[str, Page | Service] = {
            "/session": self._begin,
            "/session/1": self._end,
            "/session/1/url": self._visit,
            "/session/1/source": self._show,
        }
        self.site = web.site(None, pages, host=host)

    async def _begin(self, received: Received, reader: StreamReader, writer: StreamWriter) -> None:
        await _json(received, reader)
        await _send_value(writer, {"sessionId": "1", "capabilities": {}})

    async def _visit(self, received: Received, reader: StreamReader, writer: StreamWriter) -> None:
        if received.method == "POST":
            self._url = (await _json(received, reader))["url"]
            _, _, body = (await _get(self._url, "a browser")).partition(b"\r\n\r\n")
            self._source = body.decode()
        await _send_value(writer, self._url)

    async def _show(self, _: Received, __: StreamReader, writer: StreamWriter) -> None:
        await _send_value(writer, self._source)

    async def _end(self, _: Received, __: StreamReader, writer: StreamWriter) -> None:
        await _send_value(writer, None)


async def _json(received: Received, reader: StreamReader) -> Any:
    return json.loads(await reader.readexactly(int(received.headers["content-length"])))


async def _send(writer: StreamWriter, body: bytes, content_type: str = "text/html") -> None:
    headers = {"Connection": "close", "Content-Type": content_type}
    writer.write(Page(body, headers=headers).octets())
    await writer.drain()


async def _send_value(writer: StreamWriter, value: object) -> None:
    await _send(writer, json.dumps({"value": value}).encode(), "application/json")


async def _get(url: str, user_agent: str) -> bytes:
    """Return the whole response of a site, which must have a Content-Length."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        agent = f"User-Agent: {user_agent}\r\n"
        writer.write(
            f"GET {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\n{agent}\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        for line in head.decode("latin-1").split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() == "content-length":
                return head + await reader.readexactly(int(value))
        raise ValueError(f"{url} does not say how long its answer is")
    finally:
        writer.close()
