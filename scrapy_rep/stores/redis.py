"""Entries in Redis: for the workers of a crawl on many machines.

=========================  ======  ==========================================================
key                        holds   it expires
=========================  ======  ==========================================================
``rep:2:{origin}``         entry   so long after it was put as REP_STORE_DAYS says
``rep:2:{origin}:claim``   token   with the claim; its holder deletes it earlier
``rep:2:turn:host``        ``1``   when the next turn may begin
=========================  ======  ==========================================================

The 2 is the version: another leaves these keys alone. The braces keep an origin's keys on one node
of a cluster. All times are durations that the server counts, so that no two clocks need agree.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .entry import VERSION, decode, encode
from .store import StoreError
from .threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from .entry import Entry

T = TypeVar("T")

PREFIX = f"rep:{int.from_bytes(VERSION, 'big')}:"

THREADS = 8
"""Calls that are under way at once; each has a connection."""

PATIENCE = 5.0
"""Seconds until a server that does not answer counts as gone."""

_RELEASE = """
if redis.call("GET", KEYS[1]) == ARGV[1] then
    return redis.call("DEL", KEYS[1])
end
return 0
"""


class RedisStore:
    """The store on the server that ``url`` names. ``keep``: seconds until an entry is forgotten."""

    shared = True

    def __init__(self, url: str, *, keep: float) -> None:
        self._keep = max(ceil(keep), 1)
        self._token = uuid4().hex
        self._threads = Threads(THREADS)
        try:
            self._client: Any = redis.Redis.from_url(
                url,
                socket_timeout=PATIENCE,
                socket_connect_timeout=PATIENCE,
                retry=Retry(NoBackoff(), 1),  # a connection may have been closed while it was idle
            )
        except ValueError as error:
            raise StoreError(str(error)) from error
        self._delete_ours: Any = self._client.register_script(_RELEASE)

    def open(self) -> None:
        try:
            self._client.ping()
        except redis.RedisError as error:
            raise StoreError(str(error) or type(error).__name__) from error

    async def close(self) -> None:
        await self._threads.close(self._client.close)

    async def get(self, origin: str) -> Entry | None:
        return await self._run(self._get, origin)

    async def put(self, origin: str, entry: Entry) -> None:
        await self._run(self._put, origin, entry)

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        return await self._run(self._claim, origin, seconds)

    async def release(self, origin: str) -> None:
        await self._run(self._release, origin)

    async def turn(self, host: str, seconds: float) -> float:
        return await self._run(self._turn, host, seconds)

    # In a thread.

    def _get(self, origin: str) -> Entry | None:
        return _entry(self._client.get(_key(origin)))

    def _put(self, origin: str, entry: Entry) -> None:
        self._client.set(_key(origin), encode(entry), ex=self._keep)

    def _claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        with self._client.pipeline() as both:
            both.set(_key(origin) + ":claim", self._token, nx=True, px=_milliseconds(seconds))
            both.get(_key(origin))
            claimed, octets = both.execute()
        return bool(claimed), _entry(octets)

    def _release(self, origin: str) -> None:
        self._delete_ours(keys=[_key(origin) + ":claim"], args=[self._token])

    def _turn(self, host: str, seconds: float) -> float:
        key = f"{PREFIX}turn:{host}"
        with self._client.pipeline() as both:
            both.set(key, 1, nx=True, px=_milliseconds(seconds))
            both.pttl(key)
            ours, left = both.execute()
        return 0 if ours else max(left, 1) / 1000

    async def _run(self, call: Callable[..., T], *arguments: object) -> T:
        try:
            return await self._threads.run(call, *arguments)
        except redis.RedisError as error:
            raise StoreError(str(error) or type(error).__name__) from error


def _key(origin: str) -> str:
    return f"{PREFIX}{{{origin}}}"


def _entry(octets: bytes | None) -> Entry | None:
    if octets is None:
        return None
    try:
        return decode(octets)
    except ValueError:  # not of our making: as if it were not there
        return None


def _milliseconds(seconds: float) -> int:
    return max(ceil(seconds * 1000), 1)
