"""Entries in Redis, for the workers of a crawl on many machines.

=========================  ======  ==========================================================
key                        value   expires
=========================  ======  ==========================================================
``rep:4:{origin}``         entry   REP_STORE_DAYS after the last put
``rep:4:{origin}:claim``   token   with the claim; its owner may delete it earlier
``rep:4:host:{host}``      token   with the reservation of the host
``rep:4:host:{host}``      ``-``   with the delay, after which the host can be reserved again
=========================  ======  ==========================================================

The 3 is the version. Stores of other versions use other keys. The braces are a hash tag: they keep
the keys of one origin on one node of a cluster. All times are durations that the server counts, so
that the clocks of the workers need not agree. A claim or a reservation that does not expire within
:data:`~.base.MAX_LEASE` was written by another program, and counts as expired.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from math import ceil
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .base import MAX_LEASE, MAX_RETRY, StoreError
from .entry import OCTETS_LIMIT, VERSION, decode, encode
from .threaded import ThreadedStore
from .url import HIDDEN, is_ambiguous

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .entry import Entry

PREFIX = f"rep:{int.from_bytes(VERSION, 'big')}:"

CONNECTIONS = 8
"""The most calls in progress at once. Each uses a thread and a connection. Redis accepts 10,000
connections by default, which is enough for 1,250 workers."""

PAGE_SIZE = 100
"""Keys that the server looks at for one page when all entries are read."""

SOCKET_TIMEOUT = 5.0
"""Seconds after which a server that does not answer counts as failed."""

MAX_ERROR_LENGTH = 300
"""The most characters of a server's error message that are shown."""

MAX_TTL = 100 * 366 * 86_400
"""Seconds: 100 years. Redis counts milliseconds in 64 bits, and refuses a longer duration."""

# Each script declares all keys that it uses, so that it also runs on a cluster. It uses pcall where
# a key may have another type.

# KEYS: claim, entry. ARGV: token, milliseconds, the maximum of a claim, index of the last octet.
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

# KEYS: host. ARGV: token, milliseconds, the maximum of a reservation.
# Returns the milliseconds to wait, and 1 for a new reservation, 0 for a renewed one or none.
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


class RedisStore(ThreadedStore):
    """The store on the server at ``url``. ``ttl``: seconds after which an entry expires."""

    shared = True

    def __init__(self, url: str, *, ttl: float) -> None:
        super().__init__(CONNECTIONS)
        self._ttl = ceil(min(max(ttl, 1), MAX_TTL))
        self._token = uuid4().hex
        if is_ambiguous(url):
            raise StoreError(
                "'/', '?', '#' and '@' in its user name and its password must be percent-encoded"
            )
        try:
            self._client: Any = redis.Redis.from_url(
                url,
                socket_timeout=SOCKET_TIMEOUT,
                socket_connect_timeout=SOCKET_TIMEOUT,
                retry=Retry(NoBackoff(), 1),  # the server may have closed an idle connection
            )
        except ValueError:  # its message may contain a part of the password
            raise StoreError("its URL is invalid, perhaps its port or an option") from None
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
            self._call(self._client.ping)
        except (TypeError, ValueError) as error:  # an unknown option in the URL, or a wrong value
            raise StoreError(f"its URL has an invalid option ({type(error).__name__})") from None

    # Blocking methods

    def _get(self, origin: str) -> Entry | None:
        try:
            return _entry(self._client.getrange(_key(origin), 0, OCTETS_LIMIT))
        except redis.ResponseError as error:
            if "WRONGTYPE" in str(error):  # not an entry: the next put replaces it
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
        remaining, is_new = self._reserve_host_script(
            keys=[_host_key(host)],
            args=[self._token, _milliseconds(lease), _milliseconds(MAX_LEASE)],
        )
        return min(remaining / 1000, MAX_RETRY), bool(is_new)

    def _release_host(self, host: str, delay: float) -> None:
        milliseconds = _milliseconds(delay) if delay > 0 else 0
        self._release_host_script(keys=[_host_key(host)], args=[self._token, milliseconds])

    def _page(self, position: object) -> tuple[object, list[tuple[str, bytes | None]]]:
        cursor, found = self._client.scan(position or 0, match=f"{PREFIX}{{*}}", count=PAGE_SIZE)
        start, end = f"{PREFIX}{{".encode(), b"}"
        keys = [key for key in found if key.startswith(start) and key.endswith(end)]
        with self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.getrange(key, 0, OCTETS_LIMIT)
            values = pipeline.execute(raise_on_error=False)
        rows = [
            (key[len(start) : -len(end)].decode("utf-8", "replace"), value)
            for key, value in zip(keys, values, strict=True)
            if value != b""  # it has expired meanwhile
        ]
        # A key of another type is no entry.
        return cursor or None, [
            (key, value if isinstance(value, bytes) else None) for key, value in rows
        ]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (redis.RedisError, OSError) as error:
            # Without the password: a server may repeat the command that contained it.
            message = str(error).partition(", with args")[0]
            for secret in self._secrets:
                message = message.replace(secret, HIDDEN)
            raise StoreError(message[:MAX_ERROR_LENGTH] or type(error).__name__) from None

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
    except ValueError:  # damaged, or of another program: treated as missing
        return None


def _milliseconds(seconds: float) -> int:
    return ceil(min(max(seconds, 0.001), MAX_LEASE) * 1000)
