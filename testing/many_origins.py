"""Thousands of origins on one socket, in a process of their own, which records what it received.

Every address of 127.0.0.0/8 reaches the socket, and each address is an origin. So the number of
origins is not limited by that of file descriptors. The origins are those of :mod:`testing.soak`.

``python -m testing.many_origins ORIGINS SEED`` prints its port. When its stdin is closed, it prints
as JSON what it has received, and ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections import defaultdict
from random import Random
from typing import TYPE_CHECKING, Any

from testing.faults import ALLOWED, DISALLOWED
from testing.processes import ROOT
from testing.soak import Soak
from testing.web import Page, Site, answer, text

if TYPE_CHECKING:
    from typing_extensions import Self

    from testing.soak import Kind
    from testing.web import Misbehaviour, Pages, Received

IDLE = 1.0
"""Seconds for which a connection stays open without a request, so that there are not too many."""

MOST = 20
"""How many requests for disallowed pages are reported."""


class Origins:
    """Origins at one port. It has the method of :class:`testing.web.Web` that makes a site."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.sites: dict[str, Site] = {}

    def site(
        self, robots: str | bytes | Page | Misbehaviour, pages: Pages | None = None, *, host: str
    ) -> Site:
        """Make a site at an address."""
        page = text(robots) if isinstance(robots, (str, bytes)) else robots
        site = Site(host, self._port, {"/robots.txt": page, **(pages or {})}, tls=False)
        self.sites[host] = site
        return site


def is_allowed(kind: Kind, path: str) -> bool:
    """Whether the robots.txt of an origin of this kind allows a path."""
    if path == "/shared.txt":
        return True
    is_private = path.startswith("/private")
    return kind.meaning == ALLOWED or not (kind.meaning == DISALLOWED or is_private)


def workload(
    origins: int, seed: int, port: int, requests: int
) -> tuple[Soak, list[tuple[int, str]]]:
    """Return the origins, and so many requests: the number of the origin and the path of each.

    The result is the same for each call with the same arguments.
    """
    soak = Soak(Origins(port), origins, seed)  # type: ignore[arg-type]
    made = [
        (number, path)
        for number, (_, _, kind) in enumerate(soak.sites)
        for path in ("/private", "/public", "/faulty", "/moved", *kind.paths)
    ][:requests]
    for number in range(requests - len(made)):
        page, origin = divmod(number, len(soak.sites))
        made.append((origin, f"/{'public' if page % 2 else 'private'}/{page}"))
    Random(seed).shuffle(made)
    return soak, made


class _Records:
    """What the origins have received."""

    def __init__(self, soak: Soak) -> None:
        self._kinds = {site.host: kind for site, _, kind in soak.sites}
        self.fetches: defaultdict[str, list[float]] = defaultdict(list)
        self.pages = 0
        self.disallowed: list[str] = []

    def add(self, site: Site, received: Received) -> None:
        if received.path == "/robots.txt":
            self.fetches[site.root].append(received.at)
            return
        self.pages += 1
        if not is_allowed(self._kinds[site.host], received.path) and len(self.disallowed) < MOST:
            self.disallowed.append(site.url(received.path))


async def _serve(origins: int, seed: int) -> None:
    sites: dict[str, Site] = {}
    records: _Records | None = None

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        site = sites[writer.get_extra_info("sockname")[0]]
        goes_on = True
        try:
            while goes_on:
                goes_on = await answer(site, reader, writer, idle=IDLE)
        except (OSError, EOFError, asyncio.TimeoutError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "0.0.0.0", 0, backlog=4096)
    port = server.sockets[0].getsockname()[1]
    soak, _ = workload(origins, seed, port, 0)
    records = _Records(soak)
    for site, _, _ in soak.sites:
        site.received = _Sink(site, records)
        sites[site.host] = site
    _print(str(port))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()
    found = {
        "fetches": records.fetches,
        "pages": records.pages,
        "disallowed": records.disallowed,
    }
    _print(json.dumps(found))


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class _Sink(list[Any]):
    """Passes each request on, and keeps none: a million of them would take gigabytes."""

    def __init__(self, site: Site, records: _Records) -> None:
        super().__init__()
        self._site = site
        self._records = records

    def append(self, received: Received) -> None:
        self._records.add(self._site, received)


class ManyOrigins:
    """The process of the origins. It ends at the end of the block."""

    def __init__(self, origins: int, seed: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(origins), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> dict[str, Any]:
        """End the process, and return what it has received."""
        output, _ = self._process.communicate(timeout=60)
        found: dict[str, Any] = json.loads(output)
        return found


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
