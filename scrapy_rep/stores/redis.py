"""Entries in Redis: for the workers of a crawl on many machines.

=========================  ======  ==========================================================
key                        holds   it expires
=========================  ======  ==========================================================
``rep:3:{origin}``         entry   so long after it was put as REP_STORE_DAYS says
``rep:3:{origin}:claim``   token   with the claim; its holder deletes it earlier
``rep:3:host:{host}``      token   with the lease of the crawler that has reserved the host
``rep:3:host:{host}``      ``-``   with the delay, after which it may be reserved again
=========================  ======  ==========================================================

The 3 is the version: another leaves these keys alone. The braces keep an origin's keys on one node
of a cluster. All times are durations that the server counts, so that no two clocks need agree. A
claim or a reservation that does not expire, or not in time, is none of ours and counts as expired.
"""

from __future__ import annotations

from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .base import MAX_LEASE, MAX_RETRY, StoreError
from .entry import OCTETS_LIMIT, VERSION, decode, encode
from .threads import Threads
from .url import HIDDEN, is_ambiguous

if TYPE_CHECKING:
    from collections.abc import Callable

    from .entry import Entry

T = TypeVar("T")

PREFIX = f"rep:{int.from_bytes(VERSION, 'big')}:"

THREADS = 8
"""Calls that are under way at once; each has a connection."""

SOCKET_TIMEOUT = 5.0
"""Seconds until a server that does not answer counts as gone."""

MAX_ERROR_LENGTH = 300
"""Characters of what a server tells that are shown."""

MAX_TTL = 100 * 366 * 86_400
"""Seconds: Redis counts milliseconds in 64 bits."""

# Each script names its keys, and no others are touched: so they run on a cluster, too. pcall, since
# a key may be of another type.

# KEYS: claim, entry. ARGV: token, milliseconds, the longest that a claim may last, the last octet.
_CLAIM = """
local left = redis.call("PTTL", KEYS[1])
local claimed = left <= 0 or left > tonumber(ARGV[3]) or redis.pcall("GET", KEYS[1]) == ARGV[1]
if claimed then
    redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
end
local entry = redis.pcall("GETRANGE", KEYS[2], 0, ARGV[4])
if type(entry) == "table" then
    entry = ""
end
return {claimed and 1 or 0, entry}
"""

# KEYS: claim. ARGV: token.
_RELEASE = """
if redis.pcall("GET", KEYS[1]) == ARGV[1] then
    return redis.call("DEL", KEYS[1])
end
return 0
"""

# KEYS: host. ARGV: token, milliseconds, the longest that a reservation may last.
# Returns the milliseconds to wait, and whether a reservation was made: none was renewed.
_RESERVE_HOST = """
local left = redis.call("PTTL", KEYS[1])
local holds = left > 0 and left <= tonumber(ARGV[3])
local ours = redis.pcall("GET", KEYS[1]) == ARGV[1]
if holds and not ours then
    return {left, 0}
end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return {0, (holds and ours) and 0 or 1}
"""

# KEYS: host. ARGV: token, milliseconds.
_RELEASE_HOST = """
if redis.pcall("GET", KEYS[1]) ~= ARGV[1] then
    return 0
end
if tonumber(ARGV[2]) > 0 then
    redis.call("SET", KEYS[1], "-", "PX", ARGV[2])
else
    redis.call("DEL", KEYS[1])
end
return 1
"""


class RedisStore:
    """The store on the server that ``url`` names. ``keep``: seconds until an entry is forgotten."""

    shared = True

    def __init__(self, url: str, *, ttl: float) -> None:
        self._ttl = ceil(min(max(ttl, 1), MAX_TTL))
        self._token = uuid4().hex
        self._threads = Threads(THREADS)
        if is_ambiguous(url):
            raise StoreError(
                "'/', '?', '#' and '@' in its user name and its password must be percent-encoded"
            )
        try:
            self._client: Any = redis.Redis.from_url(
                url,
                socket_timeout=SOCKET_TIMEOUT,
                socket_connect_timeout=SOCKET_TIMEOUT,
                retry=Retry(NoBackoff(), 1),  # a connection may have been closed while it was idle
            )
        except ValueError:  # whose message may hold a part of the password
            raise StoreError("its URL cannot be read, perhaps for its port or an option") from None
        options = self._client.connection_pool.connection_kwargs
        options["decode_responses"] = False  # entries are octets, whatever the URL says
        self._secrets = [
            str(value) for name, value in options.items() if "password" in name and value
        ]
        register: Callable[[str], Any] = self._client.register_script
        self._claim_script = register(_CLAIM)
        self._release_script = register(_RELEASE)
        self._reserve_host_script = register(_RESERVE_HOST)
        self._release_host_script = register(_RELEASE_HOST)

    def open(self) -> None:
        try:
            self._client.ping()
        except (redis.RedisError, OSError) as error:
            raise self._failed(error) from None
        except (TypeError, ValueError) as error:  # of an option in the URL, and its value
            raise StoreError(f"its URL has an option of no use ({type(error).__name__})") from None

    async def close(self) -> None:
        await self._threads.close(self._disconnect)

    async def get(self, origin: str) -> Entry | None:
        return await self._run(self._get, origin)

    async def put(self, origin: str, entry: Entry) -> None:
        await self._run(self._put, origin, entry, always=True)

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        def undo(made: tuple[bool, Entry | None]) -> None:
            if made[0]:
                self._release(origin)

        return await self._run(self._claim, origin, seconds, undo=undo)

    async def release(self, origin: str) -> None:
        await self._run(self._release, origin, always=True)

    async def reserve_host(self, host: str, lease: float) -> float:
        def undo(made: tuple[float, bool]) -> None:
            if made[1]:
                self._release_host(host)

        return (await self._run(self._reserve_host, host, lease, undo=undo))[0]

    async def release_host(self, host: str, delay: float) -> None:
        await self._run(self._release_host, host, delay, always=True)

    # In a thread.

    def _get(self, origin: str) -> Entry | None:
        try:
            return _entry(self._client.getrange(_key(origin), 0, OCTETS_LIMIT))
        except redis.ResponseError as error:
            if "WRONGTYPE" in str(error):  # no entry: the next put replaces it
                return None
            raise

    def _put(self, origin: str, entry: Entry) -> None:
        self._client.set(_key(origin), encode(entry), ex=self._ttl)

    def _claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        claimed, octets = self._claim_script(
            keys=[f"{_key(origin)}:claim", _key(origin)],
            args=[self._token, _milliseconds(seconds), _milliseconds(MAX_LEASE), OCTETS_LIMIT],
        )
        return bool(claimed), _entry(octets)

    def _release(self, origin: str) -> None:
        self._release_script(keys=[f"{_key(origin)}:claim"], args=[self._token])

    def _reserve_host(self, host: str, lease: float) -> tuple[float, bool]:
        """The seconds to wait, and whether a reservation was made: none was renewed."""
        left, made = self._reserve_host_script(
            keys=[_host_key(host)],
            args=[self._token, _milliseconds(lease), _milliseconds(MAX_LEASE)],
        )
        return min(left / 1000, MAX_RETRY), bool(made)

    def _release_host(self, host: str, delay: float = 0) -> None:
        milliseconds = _milliseconds(delay) if delay > 0 else 0
        self._release_host_script(keys=[_host_key(host)], args=[self._token, milliseconds])

    async def _run(
        self,
        call: Callable[..., T],
        *arguments: object,
        undo: Callable[[T], object] | None = None,
        always: bool = False,
    ) -> T:
        try:
            return await self._threads.run(call, *arguments, undo=undo, always=always)
        except (redis.RedisError, OSError) as error:
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> StoreError:
        """What went wrong, without the password: a server may repeat what it was told."""
        told = str(error).partition(", with args")[0]
        for secret in self._secrets:
            told = told.replace(secret, HIDDEN)
        return StoreError(told[:MAX_ERROR_LENGTH] or type(error).__name__)

    def _disconnect(self) -> None:
        with suppress(redis.RedisError, OSError):
            self._client.close()


def _key(origin: str) -> str:
    return f"{PREFIX}{{{origin}}}"


def _host_key(host: str) -> str:
    return f"{PREFIX}host:{{{host}}}"


def _entry(octets: bytes) -> Entry | None:
    if not octets:
        return None
    try:
        return decode(octets)
    except ValueError:  # not of our making: as if it were not there
        return None


def _milliseconds(seconds: float) -> int:
    return ceil(min(max(seconds, 0.001), MAX_LEASE) * 1000)
