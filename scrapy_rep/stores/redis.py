"""Entries in Redis, for the workers of a crawl on many machines.

=========================  ============  ====================================================
key                        value         expires
=========================  ============  ====================================================
``rep:7:{origin}``         fence, entry  60 days after the last put
``rep:7:{origin}:claim``   token         with the claim; its owner may delete it earlier
``rep:7:{origin}:fence``   fence, token  as the entry; a put under the latest claim deletes it
``rep:7:host:{host}``      token         with the reservation of the host
``rep:7:host:{host}``      ``-``         with the delay, after which it can be reserved again
=========================  ============  ====================================================

The 7 is the version. The braces are a hash tag: the keys of an origin are in one slot of a cluster.
All times are durations that the server counts, so that the clocks of the workers need not agree. A
lease (a claim or a reservation) that does not expire within :data:`~.base.MAX_LEASE` was written by
another program, and is treated as expired.

A fence is the fencing token of a claim, a decimal number and a space. Each claim of an origin gets
one more than the greater of the two that are stored. The first one is a time in milliseconds, so
that it is greater than those from before a server lost its data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any
from uuid import uuid4

import redis
from redis.exceptions import RedisClusterException

from .base import MAX_LEASE, MAX_RETRY, Claim, StoreError
from .entry import ENTRY_LIMIT, VERSION, Entry, encode
from .redis_url import RedisURL, clients
from .threaded import ThreadedStore, decoded

PREFIX = f"rep:{int.from_bytes(VERSION, 'big')}:"

CONNECTIONS = 8
"""The most calls in progress at once, each with a thread and a connection. Redis accepts 10,000
connections by default: those of 1,250 workers."""

PAGE_SIZE = 100  # keys that are read at once when all entries are read

VALUE_LIMIT = ENTRY_LIMIT + 16
"""The most bytes of a value: a fence of 15 digits, a space and an entry."""

_CLIENT_ERRORS = (redis.RedisError, RedisClusterException, OSError)

_SCRIPT = Path(__file__).with_suffix(".lua").read_text("utf-8")


class RedisStore(ThreadedStore):
    """The store at ``url``.

    ``ttl``: seconds after which an entry expires. Raises StoreError for an invalid URL, and for a
    Redis Cluster that does not answer.
    """

    shared = True

    def __init__(self, url: str, *, ttl: float) -> None:
        super().__init__(CONNECTIONS)
        self._ttl = ceil(ttl)
        self._token = uuid4().hex
        self._url = RedisURL(url)
        self._prefix = self._url.prefix + PREFIX
        with self._errors():
            self._client = self._url.client()

    def open(self) -> None:
        try:
            self._call(self._get, "")
        except (TypeError, ValueError) as error:  # an unknown option in the URL, or a wrong value
            raise StoreError(f"its URL has an invalid option ({type(error).__name__})") from None

    # Blocking methods

    def _get(self, origin: str) -> Entry | None:
        try:
            value = self._client.getrange(self._keys(origin)[2], 0, VALUE_LIMIT)
        except redis.ResponseError as error:
            if "WRONGTYPE" in str(error):  # not an entry: the next put replaces it
                return None
            raise
        return decoded(_without_fence(value))

    def _put(self, origin: str, entry: Entry, fence: int | None) -> bool:
        _, *keys = self._keys(origin)
        token = "" if fence is None else fence
        return bool(self._run_script("put", keys, token, encode(entry), self._ttl))

    def _claim(self, origin: str, seconds: float) -> Claim:
        durations = _milliseconds(seconds), _milliseconds(MAX_LEASE)
        others = int(time.time() * 1000), self._ttl, VALUE_LIMIT
        left, fence, value = self._run_script(
            "lease", self._keys(origin), self._token, *durations, *others
        )
        return Claim(left == 0, decoded(_without_fence(value)), int(fence))

    def _release(self, origin: str) -> None:
        self._run_script("release", self._keys(origin)[:1], self._token, 0)

    def _reserve_host(self, host: str, lease: float) -> float:
        durations = _milliseconds(lease), _milliseconds(MAX_LEASE)
        (left,) = self._run_script("lease", self._host_keys(host), self._token, *durations)
        return min(int(left) / 1000, MAX_RETRY)

    def _release_host(self, host: str, delay: float) -> None:
        milliseconds = _milliseconds(delay) if delay > 0 else 0
        self._run_script("release", self._host_keys(host), self._token, milliseconds)

    def _keys(self, origin: str) -> tuple[str, str, str]:
        """Return the keys of the claim, the fence and the entry of an origin."""
        key = f"{self._prefix}{{{origin or '-'}}}"
        return f"{key}:claim", f"{key}:fence", key

    def _host_keys(self, host: str) -> tuple[str]:
        return (f"{self._prefix}host:{{{host}}}",)

    def _entries(self) -> Iterator[tuple[str, bytes | None]]:
        start, end = f"{self._prefix}{{".encode(), b"}"
        # The client of a cluster scans each primary.
        keys = self._client.scan_iter(match=f"{self._prefix}{{*}}", count=PAGE_SIZE)
        while page := list(islice(keys, PAGE_SIZE)):
            found = [key for key in page if key.startswith(start) and key.endswith(end)]
            with self._client.pipeline(transaction=False) as pipeline:
                for key in found:
                    pipeline.getrange(key, 0, VALUE_LIMIT)
                values = pipeline.execute(raise_on_error=False)
            for key, value in zip(found, values, strict=True):
                if value != b"":  # else it has expired meanwhile
                    name = key[len(start) : -len(end)].decode("utf-8", "replace")
                    yield name, _without_fence(value)  # None for a key of another type

    def _run_script(self, function: str, keys: Sequence[str], *arguments: object) -> Any:
        return self._client.eval(_SCRIPT, len(keys), *keys, function, *arguments)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except _CLIENT_ERRORS as error:
            raise StoreError(self._url.message(error)) from None

    def disconnect(self) -> None:
        for client in clients(self._client):
            with suppress(*_CLIENT_ERRORS):
                client.close()


def _without_fence(value: object) -> bytes | None:
    """Return the bytes of the entry in a value, without its fence. None if it is not one."""
    fence, space, entry = value.partition(b" ") if isinstance(value, bytes) else (b"", b"", b"")
    return entry if space and fence.isdigit() else None


def _milliseconds(seconds: float) -> int:
    return ceil(min(max(seconds, 0.001), MAX_LEASE) * 1000)
