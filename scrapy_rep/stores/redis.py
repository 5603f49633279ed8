"""Entries in Redis, for the workers of a crawl on many machines.

===================================================  =============================================
URL                                                  the entries are on
===================================================  =============================================
``redis://user:password@host:port/db``               one server; also ``unix://path``
``redis+cluster://user:password@host:port,…``        a Redis Cluster, of which these are some nodes
``redis+sentinel://user:password@host:port,…/name``  the primary that these Sentinels name; ``/db``
                                                     may follow
===================================================  =============================================

``rediss`` in place of ``redis`` uses TLS. The query may have all options of the Redis client, and
``prefix``, ``sentinel_username`` and ``sentinel_password``.

=========================  ============  ====================================================
key                        value         expires
=========================  ============  ====================================================
``rep:6:{origin}``         fence, entry  60 days after the last put
``rep:6:{origin}:claim``   token         with the claim; its owner may delete it earlier
``rep:6:{origin}:fence``   fence, token  as the entry; a put under the latest claim deletes it
``rep:6:host:{host}``      token         with the reservation of the host
``rep:6:host:{host}``      ``-``         with the delay, after which it can be reserved again
=========================  ============  ====================================================

The 6 is the version: stores of other versions use other keys. The braces are a hash tag: the keys
of one origin are in one slot of a cluster. All times are durations that the server counts, so that
the clocks of the workers need not agree. A lease (a claim or a reservation) that does not expire
within :data:`~.base.MAX_LEASE` was written by another program, and counts as expired.

A fence is the fencing token of a claim, a number in decimal. A space follows it. Each claim of an
origin gets one more than the greater of the two that are stored. The first one is a time in
milliseconds, so that it is greater than those from before a server lost its data.
"""

from __future__ import annotations

import re
import time
from contextlib import contextmanager, suppress
from itertools import islice
from math import ceil
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.connection import parse_url
from redis.exceptions import ClusterDownError, ClusterError, RedisClusterException
from redis.retry import Retry
from redis.sentinel import Sentinel

from .base import MAX_LEASE, MAX_RETRY, Claim, StoreError
from .entry import OCTETS_LIMIT, VERSION, encode
from .registry import HIDDEN, is_ambiguous
from .threaded import ThreadedStore, decoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .entry import Entry

PREFIX = f"rep:{int.from_bytes(VERSION, 'big')}:"

CONNECTIONS = 8
"""The most calls in progress at once. Each uses a thread and a connection. Redis accepts 10,000
connections by default, which is enough for 1,250 workers."""

SOCKET_TIMEOUT = 5.0
"""Seconds after which a server that does not answer counts as failed."""

SENTINEL_TIMEOUT = 1.0
"""Seconds after which the next Sentinel is tried. Three of them fail within one call to a store."""

MOVE_TIMEOUT = 5.0
"""Seconds that a call waits for a slot that moves to another node of a cluster."""

PAGE_SIZE = 100
"""Keys that are read at once when all entries are read."""

MAX_ERROR_LENGTH = 300
"""The most characters of a server's error message that are shown."""

VALUE_LIMIT = OCTETS_LIMIT + 16
"""The most octets of a value: a fence of 15 digits, a space and an entry."""

TOKEN_LIMIT = 63
"""The index of the last octet that scripts read of other values: a fence, a space and a token."""

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
# cluster. It uses pcall where a key may have another type, and reads the start of a value only: any
# program may write to the server, and a script would copy a value of 2 GB.

_FUNCTIONS = f"""
local function start_of(key)
    return redis.pcall("GETRANGE", key, 0, {TOKEN_LIMIT})
end
local function fence_of(value)
    local digits = type(value) == "string" and string.match(value, "^%d+") or ""
    return #digits <= 15 and tonumber(digits) or 0
end
"""

# KEYS: lease; for a claim also fence, entry. ARGV: token, milliseconds, the maximum of a lease; for
# a claim also the lowest fence, the seconds that the fence is kept, index of the last octet.
# Returns the milliseconds to wait, 1 for a new lease, 0 for a renewed one or none, fence, entry.
_LEASE = f"""{_FUNCTIONS}
local left = redis.call("PTTL", KEYS[1])
local holds = left > 0 and left <= tonumber(ARGV[3])
local ours = start_of(KEYS[1]) == ARGV[1]
local granted = ours or not holds
if granted then
    redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
    left = 0
end
local is_new = granted and not (holds and ours) and 1 or 0
if not KEYS[2] then
    return {{left, is_new}}
end
local entry = redis.pcall("GETRANGE", KEYS[3], 0, ARGV[6])
local fence = math.max(fence_of(start_of(KEYS[2])), fence_of(entry))
if granted then
    fence = math.max(fence + 1, tonumber(ARGV[4]))
    redis.call("SET", KEYS[2], string.format("%.0f ", fence) .. ARGV[1], "EX", ARGV[5])
end
return {{left, is_new, string.format("%.0f", fence), type(entry) == "string" and entry or ""}}
"""

# KEYS: claim, fence. ARGV: token, milliseconds, fence. A later claim has changed the fence.
_RENEW = f"""{_FUNCTIONS}
if start_of(KEYS[2]) ~= ARGV[3] .. " " .. ARGV[1] then
    return 0
end
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return 1
"""

# KEYS: fence, entry. ARGV: fence or an empty string, octets, the seconds that the entry is kept.
_PUT = f"""{_FUNCTIONS}
local stored = fence_of(start_of(KEYS[2]))
local fence = tonumber(ARGV[1]) or stored
if fence < stored then
    return 0
end
redis.call("SET", KEYS[2], string.format("%.0f ", fence) .. ARGV[2], "EX", ARGV[3])
if fence_of(start_of(KEYS[1])) <= fence then
    redis.call("DEL", KEYS[1])
end
return 1
"""

# KEYS: lease; for a claim also fence. ARGV: token, the milliseconds of the delay; for a claim also
# the seconds that the fence is kept. The new fence refuses a renewal that comes late.
_RELEASE = f"""{_FUNCTIONS}
if start_of(KEYS[1]) ~= ARGV[1] then
    return 0
end
if tonumber(ARGV[2]) > 0 then
    redis.call("SET", KEYS[1], "-", "PX", ARGV[2])
else
    redis.call("DEL", KEYS[1])
end
local fence = KEYS[2] and fence_of(start_of(KEYS[2])) or 0
if fence > 0 then
    redis.call("SET", KEYS[2], string.format("%.0f", fence + 1), "EX", ARGV[3])
end
return 1
"""


class RedisStore(ThreadedStore):
    """The store at ``url``.

    ``ttl``: seconds after which an entry expires. Raises StoreError for an invalid URL.
    """

    shared = True

    def __init__(self, url: str, *, ttl: float) -> None:
        super().__init__(CONNECTIONS)
        self._ttl = ceil(min(max(ttl, 1), MAX_TTL))
        self._token = uuid4().hex
        self._target = _target_of(url)
        self._prefix = self._target.prefix + PREFIX
        self._connected: Any = None
        """The client; None before the first call."""
        self._client_lock = Lock()

    def open(self) -> None:
        try:
            self._call(self._get, "")
        except (TypeError, ValueError) as error:  # an unknown option in the URL, or a wrong value
            raise StoreError(f"its URL has an invalid option ({type(error).__name__})") from None

    # Blocking methods

    def _get(self, origin: str) -> Entry | None:
        try:
            value = self._client().getrange(self._keys(origin)[2], 0, VALUE_LIMIT)
        except redis.ResponseError as error:
            if "WRONGTYPE" in str(error):  # not an entry: the next put replaces it
                return None
            raise
        return decoded(_octets(value))

    def _put(self, origin: str, entry: Entry, fence: int | None) -> bool:
        _, *keys = self._keys(origin)
        token = "" if fence is None else fence
        return bool(self._run_script(_PUT, keys, token, encode(entry), self._ttl))

    def _claim(self, origin: str, seconds: float) -> Claim:
        durations = _milliseconds(seconds), _milliseconds(MAX_LEASE)
        others = int(time.time() * 1000), self._ttl, VALUE_LIMIT
        left, _, fence, value = self._run_script(
            _LEASE, self._keys(origin), self._token, *durations, *others
        )
        return Claim(left == 0, decoded(_octets(value)), int(fence))

    def _renew(self, origin: str, fence: int, seconds: float) -> bool:
        keys, milliseconds = self._keys(origin)[:2], _milliseconds(seconds)
        return bool(self._run_script(_RENEW, keys, self._token, milliseconds, fence))

    def _release(self, origin: str) -> None:
        self._run_script(_RELEASE, self._keys(origin)[:2], self._token, 0, self._ttl)

    def _reserve_host(self, host: str, lease: float) -> tuple[float, bool]:
        durations = _milliseconds(lease), _milliseconds(MAX_LEASE)
        left, is_new = self._run_script(_LEASE, self._host_keys(host), self._token, *durations)
        return min(left / 1000, MAX_RETRY), bool(is_new)

    def _release_host(self, host: str, delay: float) -> None:
        milliseconds = _milliseconds(delay) if delay > 0 else 0
        self._run_script(_RELEASE, self._host_keys(host), self._token, milliseconds)

    def _keys(self, origin: str) -> tuple[str, str, str]:
        """Return the keys of the claim, the fence and the entry of an origin."""
        key = f"{self._prefix}{{{origin or '-'}}}"
        return f"{key}:claim", f"{key}:fence", key

    def _host_keys(self, host: str) -> tuple[str]:
        return (f"{self._prefix}host:{{{host}}}",)

    def _entries(self) -> Iterator[tuple[str, bytes | None]]:
        start, end = f"{self._prefix}{{".encode(), b"}"
        # The client of a cluster scans each primary.
        keys = self._client().scan_iter(match=f"{self._prefix}{{*}}", count=PAGE_SIZE)
        while page := list(islice(keys, PAGE_SIZE)):
            found = [key for key in page if key.startswith(start) and key.endswith(end)]
            with self._client().pipeline(transaction=False) as pipeline:
                for key in found:
                    pipeline.getrange(key, 0, VALUE_LIMIT)
                values = pipeline.execute(raise_on_error=False)
            for key, value in zip(found, values, strict=True):
                if value != b"":  # else it has expired meanwhile
                    name = key[len(start) : -len(end)].decode("utf-8", "replace")
                    yield name, _octets(value)  # None for a key of another type

    # The connections

    def _run_script(self, script: str, keys: Sequence[str], *arguments: object) -> Any:
        until = time.monotonic() + MOVE_TIMEOUT
        while True:
            try:
                return self._client().eval(script, len(keys), *keys, *arguments)
            except ClusterError as error:
                # TRYAGAIN: some keys of the slot have moved, and some have not. The client has
                # tried several times, with pauses.
                if isinstance(error, ClusterDownError) or time.monotonic() > until:
                    raise

    def _client(self) -> Any:
        """Return the client. Connect first, if necessary."""
        with self._client_lock:
            if self._connected is None:
                self._connected = _connect(self._target)
            return self._connected

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except _CLIENT_ERRORS as error:
            # Without the password: a server may repeat the command that contained it.
            message = str(error).partition(", with args")[0]
            for name, value in self._target.options.items():
                if "password" in name and value:
                    message = message.replace(value, HIDDEN)
            raise StoreError(message[:MAX_ERROR_LENGTH] or type(error).__name__) from None

    def disconnect(self) -> None:
        client, self._connected = self._connected, None
        if client is not None:
            with suppress(*_CLIENT_ERRORS):
                client.close()


def _octets(value: object) -> bytes | None:
    """Return the octets of the entry in a value, without its fence. None if it is no entry."""
    fence, space, octets = value.partition(b" ") if isinstance(value, bytes) else (b"", b"", b"")
    return octets if space and fence.isdigit() else None


def _milliseconds(seconds: float) -> int:
    return ceil(min(max(seconds, 0.001), MAX_LEASE) * 1000)


# The URL

_URL = re.compile(
    r"(?P<scheme>rediss?)\+(?P<topology>cluster|sentinel)://"
    r"(?P<user>[^/?#]*@)?(?P<hosts>[^/?#@]*)(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?"
)
_PORTS = {"cluster": 6379, "sentinel": 26379}
_PREFIX = re.compile("[A-Za-z0-9._:-]{0,100}")


class _Target(NamedTuple):
    """What a URL of REP_STORE describes."""

    topology: str
    """"server", "cluster" or "sentinel"."""
    nodes: list[tuple[str, int]]
    """The nodes of a cluster, or the Sentinels."""
    service: str
    """The name that the Sentinels have for the primary."""
    options: dict[str, Any]
    """The options of connections, which include the passwords."""
    prefix: str
    """What all keys begin with (``?prefix=``)."""


def _target_of(url: str) -> _Target:
    """Return what a URL of REP_STORE describes. Raises StoreError for an invalid URL."""
    if is_ambiguous(url):
        raise StoreError(
            "'/', '?', '#' and '@' in its user name and its password must be percent-encoded"
        )
    parts = _URL.fullmatch(url)
    topology, service, db, nodes = "server", "", "", list[tuple[str, int]]()
    try:
        if parts is not None:
            topology, path = parts["topology"], (parts["path"] or "").strip("/")
            nodes = [_node(each, _PORTS[topology]) for each in parts["hosts"].split(",")]
            service, _, db = path.partition("/") if topology == "sentinel" else ("", "", path)
            url = f"{parts['scheme']}://{parts['user'] or ''}localhost{parts['query'] or ''}"
        options = parse_url(url)  # type: ignore[no-untyped-call]
    except (TypeError, ValueError):  # its message may contain a part of the password
        raise StoreError("its URL is invalid, perhaps its port or an option") from None
    prefix = options.pop("prefix", "")
    if not _PREFIX.fullmatch(prefix):
        raise StoreError(
            "its prefix may have 100 letters, digits and characters of '._:-'; other characters "
            "change the slots of a cluster"
        )
    if topology == "cluster" and db not in ("", "0"):
        raise StoreError("a cluster has only the database 0")
    if topology == "sentinel":
        if not service or not re.fullmatch("[0-9]*", db):
            raise StoreError("it must be redis+sentinel://host:port,…/service or …/service/db")
        options["db"] = int(db or 0)
    options = {
        "socket_timeout": SOCKET_TIMEOUT,
        "socket_connect_timeout": SOCKET_TIMEOUT,
        **options,
        "decode_responses": False,  # entries are octets, whatever the URL says
    }
    return _Target(topology, nodes, unquote(service), options, prefix)


def _node(text: str, default_port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("no host")
    return unquote(parts.hostname), parts.port or default_port


def _connect(target: _Target) -> Any:
    """Return a client of the primaries. This may raise an error of redis."""
    options = dict(target.options)
    # After a failure, such as that of an idle connection that the server has closed, the client
    # asks a cluster for its slots, or the Sentinels for the primary, and tries once more.
    retry = Retry(NoBackoff(), 1)
    if target.topology == "server":
        return redis.Redis(connection_pool=redis.ConnectionPool(**options, retry=retry))
    ssl = options.pop("connection_class", None) is not None
    for name in ("host", "port"):
        options.pop(name, None)
    if target.topology == "cluster":
        options.pop("db", None)
        return RedisCluster(
            startup_nodes=[ClusterNode(*node) for node in target.nodes],  # type: ignore[no-untyped-call]
            retry=retry,
            require_full_coverage=False,  # the slots that a node serves can be used
            ssl=ssl,
            **options,
        )
    sentinel_options = {
        "socket_timeout": SENTINEL_TIMEOUT,
        "socket_connect_timeout": SENTINEL_TIMEOUT,
        "retry": Retry(NoBackoff(), 0),
    }
    for name in ("username", "password"):
        if f"sentinel_{name}" in options:
            sentinel_options[name] = options.pop(f"sentinel_{name}")
    if ssl:
        options["ssl"] = True
        sentinel_options |= {name: options[name] for name in options if name.startswith("ssl")}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        target.nodes, sentinel_kwargs=sentinel_options, retry=retry, **options
    )
    return sentinel.master_for(target.service)  # type: ignore[no-untyped-call]
