"""Entries in Redis, for the workers of a crawl on many machines.

The server may be one, a cluster, or the primary that Sentinel names: see :mod:`.redis_client`.

=========================  ============  ====================================================
key                        value         expires
=========================  ============  ====================================================
``rep:5:{origin}``         fence, entry  REP_STORE_DAYS after the last put
``rep:5:{origin}:claim``   token         with the claim; its owner may delete it earlier
``rep:5:{origin}:fence``   fence, token  as the entry; a put under the latest claim deletes it
``rep:5:host:{host}``      token         with the reservation of the host
``rep:5:host:{host}``      ``-``         with the delay, after which it can be reserved again
=========================  ============  ====================================================

The prefix of the URL, if it has one, comes first. The 5 is the version: stores of other versions
use other keys. The braces are a hash tag: the keys of one origin are in one slot of a cluster. All
times are durations that the server counts, so that the clocks of the workers need not agree. A
claim or a reservation that does not expire within :data:`~.base.MAX_LEASE` was written by another
program, and counts as expired.

A fence is the fencing token of a claim, a number in decimal. Each claim of an origin gets one more
than the greater of the two that are stored. The first one is a time in milliseconds, so that it is
greater than those from before a server lost its data. A space follows it.

A replica may be behind its primary, so that only :meth:`RedisStore.get` reads from one. A crawl
uses an entry from there only while the entry is fresh. Otherwise it claims the origin, and gets the
entry of the primary. Claims, reservations and puts always use the primary.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from math import ceil
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import redis
from redis.exceptions import ClusterDownError, ClusterError, NoScriptError, RedisClusterException

from .base import MAX_LEASE, MAX_RETRY, Claim, StoreError
from .entry import OCTETS_LIMIT, VERSION, decode, encode
from .redis_client import target_of
from .threaded import ThreadedStore
from .url import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .entry import Entry

PREFIX = f"rep:{int.from_bytes(VERSION, 'big')}:"

CONNECTIONS = 8
"""The most calls in progress at once. Each uses a thread and a connection. Redis accepts 10,000
connections by default, which is enough for 1,250 workers."""

MOVE_TIMEOUT = 5.0
"""Seconds that a call waits for a slot that moves to another node of a cluster."""

REPLICA_PAUSE = 30.0
"""Seconds without reads from replicas after one has failed."""

PAGE_SIZE = 100
"""Keys that are read at once when all entries are read."""

MAX_ERROR_LENGTH = 300
"""The most characters of a server's error message that are shown."""

VALUE_LIMIT = OCTETS_LIMIT + 16
"""The most octets of a value: a fence of 15 digits, a space and an entry."""

MAX_TTL = 100 * 366 * 86_400
"""Seconds: 100 years. Redis counts milliseconds in 64 bits, and refuses a longer duration."""

# The client of a cluster raises the last three while another thread changes its table of nodes.
_CLIENT_ERRORS = (
    redis.RedisError,
    RedisClusterException,
    OSError,
    LookupError,
    AttributeError,
    RuntimeError,
)

# Each script declares all keys that it uses, which are in one slot, so that it also runs on a
# cluster. It uses pcall where a key may have another type.


class _Script:
    """A Lua script. The server has it by its hash, or else receives it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._hash = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def run(self, client: Any, keys: Sequence[str], *arguments: object) -> Any:
        """Run the script. All keys must be in one slot."""
        until = time.monotonic() + MOVE_TIMEOUT
        while True:
            try:
                return self._run_once(client, keys, arguments)
            except ClusterError as error:
                # TRYAGAIN: some keys of the slot have moved, and some have not. The client has
                # tried several times, with pauses.
                if isinstance(error, ClusterDownError) or time.monotonic() > until:
                    raise

    def _run_once(self, client: Any, keys: Sequence[str], arguments: tuple[object, ...]) -> Any:
        try:
            return client.evalsha(self._hash, len(keys), *keys, *arguments)
        except NoScriptError:  # a server that was started since, or a replica that is primary now
            return client.eval(self._text, len(keys), *keys, *arguments)


_FENCE_OF = """
local function fence_of(value)
    local digits = type(value) == "string" and string.match(value, "^%d+") or ""
    return #digits <= 15 and tonumber(digits) or 0
end
"""

# KEYS: claim, fence, entry. ARGV: token, milliseconds, the maximum of a claim, the lowest fence,
# the seconds that the fence is kept, index of the last octet.
_CLAIM = _Script(f"""{_FENCE_OF}
local left = redis.call("PTTL", KEYS[1])
local claimed = left <= 0 or left > tonumber(ARGV[3]) or redis.pcall("GET", KEYS[1]) == ARGV[1]
local entry = redis.pcall("GETRANGE", KEYS[3], 0, ARGV[6])
local fence = math.max(fence_of(redis.pcall("GET", KEYS[2])), fence_of(entry))
if claimed then
    fence = math.max(fence + 1, tonumber(ARGV[4]))
    redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
    redis.call("SET", KEYS[2], string.format("%.0f ", fence) .. ARGV[1], "EX", ARGV[5])
end
if type(entry) == "table" then
    entry = ""
end
return {{claimed and 1 or 0, entry, string.format("%.0f", fence)}}
""")

# KEYS: claim, fence. ARGV: token, milliseconds, fence. A later claim has changed the fence.
_RENEW = _Script("""
if redis.pcall("GET", KEYS[2]) ~= ARGV[3] .. " " .. ARGV[1] then
    return 0
end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1
""")

# KEYS: fence, entry. ARGV: fence or an empty string, octets, the seconds that the entry is kept.
_PUT = _Script(f"""{_FENCE_OF}
local stored = fence_of(redis.pcall("GETRANGE", KEYS[2], 0, 15))
local fence = tonumber(ARGV[1]) or stored
if fence < stored then
    return 0
end
redis.call("SET", KEYS[2], string.format("%.0f ", fence) .. ARGV[2], "EX", ARGV[3])
if fence_of(redis.pcall("GET", KEYS[1])) <= fence then
    redis.call("DEL", KEYS[1])
end
return 1
""")

# KEYS: claim, fence. ARGV: token, the seconds that the fence is kept. The new fence refuses a
# renewal that comes late.
_RELEASE = _Script(f"""{_FENCE_OF}
if redis.pcall("GET", KEYS[1]) ~= ARGV[1] then
    return 0
end
redis.call("DEL", KEYS[1])
local fence = fence_of(redis.pcall("GET", KEYS[2]))
if fence > 0 then
    redis.call("SET", KEYS[2], string.format("%.0f", fence + 1), "EX", ARGV[2])
end
return 1
""")

# KEYS: host. ARGV: token, milliseconds, the maximum of a reservation.
# Returns the milliseconds to wait, and 1 for a new reservation, 0 for a renewed one or none.
_RESERVE_HOST = _Script("""
local left = redis.call("PTTL", KEYS[1])
local holds = left > 0 and left <= tonumber(ARGV[3])
local ours = redis.pcall("GET", KEYS[1]) == ARGV[1]
if holds and not ours then
    return {left, 0}
end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return {0, (holds and ours) and 0 or 1}
""")

# KEYS: host. ARGV: token, milliseconds.
_RELEASE_HOST = _Script("""
if redis.pcall("GET", KEYS[1]) ~= ARGV[1] then
    return 0
end
if tonumber(ARGV[2]) > 0 then
    redis.call("SET", KEYS[1], "-", "PX", ARGV[2])
else
    redis.call("DEL", KEYS[1])
end
return 1
""")


class RedisStore(ThreadedStore):
    """The store on the server at ``url``. ``ttl``: seconds after which an entry expires."""

    shared = True

    def __init__(self, url: str, *, ttl: float) -> None:
        super().__init__(CONNECTIONS)
        self._ttl = ceil(min(max(ttl, 1), MAX_TTL))
        self._token = uuid4().hex
        self._target = target_of(url)
        self._prefix = self._target.prefix + PREFIX
        self._clients: dict[Callable[[], Any], Any] = {}
        self._clients_lock = Lock()
        self._replicas_from = 0.0
        """When replicas may be used, on the monotonic clock."""

    def open(self) -> None:
        try:
            self._call(lambda: self._read(self._client, ""))
        except (TypeError, ValueError) as error:  # an unknown option in the URL, or a wrong value
            raise StoreError(f"its URL has an invalid option ({type(error).__name__})") from None

    # Blocking methods

    def _get(self, origin: str) -> Entry | None:
        connect = self._target.connect_replicas
        if connect is not None and time.monotonic() >= self._replicas_from:
            with suppress(*_CLIENT_ERRORS):
                return self._read(self._connected(connect), origin)
            self._replicas_from = time.monotonic() + REPLICA_PAUSE
        return self._read(self._client, origin)

    def _read(self, client: Any, origin: str) -> Entry | None:
        try:
            return _entry(client.getrange(self._key(origin), 0, VALUE_LIMIT))
        except redis.ResponseError as error:
            if "WRONGTYPE" in str(error):  # not an entry: the next put replaces it
                return None
            raise

    def _put(self, origin: str, entry: Entry, fence: int | None) -> bool:
        key = self._key(origin)
        token = "" if fence is None else fence
        octets = encode(entry)
        return bool(_PUT.run(self._client, (f"{key}:fence", key), token, octets, self._ttl))

    def _claim(self, origin: str, seconds: float) -> Claim:
        key = self._key(origin)
        claimed, value, fence = _CLAIM.run(
            self._client,
            (f"{key}:claim", f"{key}:fence", key),
            self._token,
            _milliseconds(seconds),
            _milliseconds(MAX_LEASE),
            int(time.time() * 1000),
            self._ttl,
            VALUE_LIMIT,
        )
        return Claim(bool(claimed), _entry(value), int(fence))

    def _renew(self, origin: str, fence: int, seconds: float) -> bool:
        keys = (f"{self._key(origin)}:claim", f"{self._key(origin)}:fence")
        return bool(_RENEW.run(self._client, keys, self._token, _milliseconds(seconds), fence))

    def _release(self, origin: str) -> None:
        keys = (f"{self._key(origin)}:claim", f"{self._key(origin)}:fence")
        _RELEASE.run(self._client, keys, self._token, self._ttl)

    def _reserve_host(self, host: str, lease: float) -> tuple[float, bool]:
        remaining, is_new = _RESERVE_HOST.run(
            self._client,
            (self._host_key(host),),
            self._token,
            _milliseconds(lease),
            _milliseconds(MAX_LEASE),
        )
        return min(remaining / 1000, MAX_RETRY), bool(is_new)

    def _release_host(self, host: str, delay: float) -> None:
        milliseconds = _milliseconds(delay) if delay > 0 else 0
        _RELEASE_HOST.run(self._client, (self._host_key(host),), self._token, milliseconds)

    def _key(self, origin: str) -> str:
        return f"{self._prefix}{{{origin or '-'}}}"

    def _host_key(self, host: str) -> str:
        return f"{self._prefix}host:{{{host}}}"

    def _page(self, position: object) -> tuple[object, list[tuple[str, bytes | None]]]:
        start, end = f"{self._prefix}{{".encode(), b"}"
        keys = position
        if not isinstance(keys, Iterator):
            # The client of a cluster scans each primary.
            keys = self._client.scan_iter(match=f"{self._prefix}{{*}}", count=PAGE_SIZE)
        page = list(islice(keys, PAGE_SIZE))
        found = [key for key in page if key.startswith(start) and key.endswith(end)]
        with self._client.pipeline(transaction=False) as pipeline:
            for key in found:
                pipeline.getrange(key, 0, VALUE_LIMIT)
            values = pipeline.execute(raise_on_error=False)
        return keys if len(page) == PAGE_SIZE else None, [
            # A key of another type is no entry.
            (key[len(start) : -len(end)].decode("utf-8", "replace"), _octets(value))
            for key, value in zip(found, values, strict=True)
            if value != b""  # it has expired meanwhile
        ]

    # The connections

    @property
    def _client(self) -> Any:
        return self._connected(self._target.connect)

    def _connected(self, connect: Callable[[], Any]) -> Any:
        """Return the client that ``connect`` returns. It is called once, unless it fails."""
        client = self._clients.get(connect)
        if client is None:
            with self._clients_lock:
                client = self._clients.get(connect)
                if client is None:
                    client = self._clients[connect] = connect()
        return client

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except _CLIENT_ERRORS as error:
            # Without the password: a server may repeat the command that contained it.
            message = str(error).partition(", with args")[0]
            for secret in self._target.secrets:
                message = message.replace(secret, HIDDEN)
            raise StoreError(message[:MAX_ERROR_LENGTH] or type(error).__name__) from None

    def _disconnect(self) -> None:
        for client in self._clients.values():
            with suppress(*_CLIENT_ERRORS):
                client.close()
        self._clients.clear()


def _octets(value: object) -> bytes | None:
    """Return the octets of the entry in a value, without its fence. None if it is no entry."""
    fence, space, octets = value.partition(b" ") if isinstance(value, bytes) else (b"", b"", b"")
    return octets if space and fence.isdigit() else None


def _entry(value: object) -> Entry | None:
    octets = _octets(value)
    if octets is None:
        return None
    try:
        return decode(octets)
    except ValueError:  # damaged, or of another program: treated as missing
        return None


def _milliseconds(seconds: float) -> int:
    return ceil(min(max(seconds, 0.001), MAX_LEASE) * 1000)
