"""The URLs of Redis, and the clients that they stand for.

===================================================  ===============================================
``redis://user:password@host:port/db``               one server, as ``unix://path`` is
``redis+cluster://user:password@host:port``          a Redis Cluster, with one of its nodes
``redis+sentinel://user:password@HOSTS/SERVICE/db``  the primary of SERVICE. HOSTS are those of
                                                     Sentinel: ``host:port,host:port``
===================================================  ===============================================

``rediss`` in place of ``redis`` uses TLS. The query may have all options of the Redis client, and
``prefix``. With Sentinel, ``sentinel_username`` and ``sentinel_password`` are for Sentinel itself.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import redis
from redis.backoff import ExponentialBackoff
from redis.connection import parse_url

from .base import StoreError
from .urls import HIDDEN, without_password

SENTINEL_PORT = 26379

_KINDS = "", "cluster", "sentinel"
SOCKET_TIMEOUT = 5.0  # seconds after which a server that does not answer has failed

_PREFIX = re.compile("[A-Za-z0-9._:-]{0,100}")
_INVALID_URL = (
    "its URL is invalid, perhaps its port or an option; in a user name and a password, '/', '?', "
    "'#' and '@' must be percent-encoded"
)


class RedisURL:
    """What a URL says. Raises StoreError, without a password, if it is invalid."""

    def __init__(self, url: str) -> None:
        place, _, query = url.partition("?")
        scheme, _, rest = place.partition("://")
        self._scheme, _, self._kind = scheme.partition("+")
        if self._kind not in _KINDS or without_password(url).endswith(f"://{HIDDEN}"):
            raise StoreError(_INVALID_URL)
        options = dict(parse_qsl(query))
        options.pop("decode_responses", None)  # values are bytes
        self.prefix = options.pop("prefix", "")
        """What all keys begin with."""
        if not _PREFIX.fullmatch(self.prefix):
            raise StoreError(
                "its prefix may have 100 letters, digits and characters of '._:-'; other "
                "characters change the slots of a cluster"
            )
        try:
            if self._kind == "sentinel":
                rest = self._read_sentinels(rest)
            self._url = f"{self._scheme}://{rest}?{urlencode(options)}"
            self._options: dict[str, Any] = parse_url(self._url)  # type: ignore[no-untyped-call]
        except (KeyError, ValueError):  # its message may contain a part of the password
            raise StoreError(_INVALID_URL) from None

    def _read_sentinels(self, rest: str) -> str:
        """Read the hosts of Sentinel and the service. Return the rest of a URL with one host."""
        place, _, path = rest.partition("/")
        user, at, hosts = place.rpartition("@")
        service, _, db = path.partition("/")
        if not service:
            raise StoreError("its URL needs the name of a service of Sentinel after the hosts")
        self._service = unquote(service)
        found = [parse_url(f"redis://{host}") for host in hosts.split(",")]  # type: ignore[no-untyped-call]
        self._sentinels = [(each["host"], each.get("port", SENTINEL_PORT)) for each in found]
        return f"{user}{at}{hosts.partition(',')[0]}/{int(db or 0)}"

    def client(self, *, asynchronous: bool = False, **options: Any) -> Any:
        """Return a client, of ``redis.asyncio`` if it is ``asynchronous``.

        What the URL says precedes ``options``, which are those of the client. Raises StoreError for
        an invalid option, and an error of the client for a cluster that does not answer.
        """
        library: Any = redis.asyncio if asynchronous else redis
        options = {
            "socket_timeout": SOCKET_TIMEOUT,
            "socket_connect_timeout": SOCKET_TIMEOUT,
            # A connection may be lost, or an idle one closed by the server. A server that does not
            # answer in time is not asked again.
            "retry": library.retry.Retry(ExponentialBackoff(0.5, 0.1), 3, (redis.ConnectionError,)),
            **options,
        }
        kind = library.RedisCluster if self._kind == "cluster" else library.Redis
        try:
            if self._kind == "sentinel":
                return self._primary(library, options | self._options)
            return kind.from_url(self._url, **options)
        except (TypeError, ValueError):
            raise StoreError(_INVALID_URL) from None

    def _primary(self, library: Any, options: dict[str, Any]) -> Any:
        """Return a client of the primary of the service, which asks Sentinel where that is."""
        for name in ("host", "port", "connection_class"):
            options.pop(name, None)
        if self._scheme == "rediss":
            options["ssl"] = True
        shared = {name: options[name] for name in options if re.match("socket_|ssl|retry$", name)}
        own = [name for name in options if name.startswith("sentinel_")]
        shared |= {name.removeprefix("sentinel_"): options.pop(name) for name in own}
        sentinel = library.sentinel.Sentinel(self._sentinels, sentinel_kwargs=shared)
        return sentinel.master_for(self._service, **options)

    def message(self, error: Exception) -> str:
        """Return the message of an error of the client without passwords.

        A server may repeat the command that contained one.
        """
        message = str(error).partition(", with args")[0].rstrip(".")
        for name, value in self._options.items():
            if "password" in name:
                message = message.replace(value, HIDDEN)
        return message or type(error).__name__


def clients(client: Any) -> list[Any]:
    """Return what has to be closed: a client, and those with which it asks Sentinel."""
    manager = getattr(getattr(client, "connection_pool", None), "sentinel_manager", None)
    return [client, *getattr(manager, "sentinels", ())]
