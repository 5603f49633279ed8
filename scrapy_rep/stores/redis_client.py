"""Clients of Redis for the URLs of REP_STORE.

===================================================  =============================================
URL                                                  the entries are on
===================================================  =============================================
``redis://user:password@host:port/db``               one server; also ``unix://path``
``redis+cluster://user:password@host:port,…``        a Redis Cluster, of which these are some nodes
``redis+sentinel://user:password@host:port,…/name``  the primary that these Sentinels name; ``/db``
                                                     may follow
===================================================  =============================================

``rediss`` in place of ``redis`` uses TLS. The query may have all options of the Redis client, and
those of :class:`Target`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, LoadBalancingStrategy, RedisCluster
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel

from .base import StoreError
from .url import is_ambiguous

if TYPE_CHECKING:
    from collections.abc import Callable

SOCKET_TIMEOUT = 5.0
"""Seconds after which a server that does not answer counts as failed."""

SENTINEL_TIMEOUT = 1.0
"""Seconds after which the next Sentinel is tried. Three of them fail within one call to a store."""

SENTINEL_PORT = 26379
CLUSTER_PORT = 6379

_URL = re.compile(
    r"(?P<scheme>rediss?)\+(?P<topology>cluster|sentinel)://"
    r"(?:(?P<user>[^/?#]*)@)?(?P<hosts>[^/?#@]*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?"
)
_PREFIX = re.compile("[A-Za-z0-9._:-]{0,100}")
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Target(NamedTuple):
    """The clients that a URL of REP_STORE describes."""

    connect: Callable[[], Any]
    """Returns a client of the primaries. It may connect, and raise an error of :mod:`redis`."""
    connect_replicas: Callable[[], Any] | None
    """Returns a client that reads from replicas (``?replicas=true``). None: they are not used."""
    prefix: str
    """What all keys begin with (``?prefix=``)."""
    secrets: tuple[str, ...]
    """The passwords, which no message may contain."""


def target_of(url: str) -> Target:
    """Return what a URL of REP_STORE describes. Raises StoreError for an invalid URL."""
    if is_ambiguous(url):
        raise StoreError(
            "'/', '?', '#' and '@' in its user name and its password must be percent-encoded"
        )
    url, prefix, reads_replicas = _without_own_options(url)
    parts = _URL.fullmatch(url)
    topology = "server" if parts is None else parts["topology"]
    if topology == "server" and reads_replicas:
        raise StoreError("only a cluster and Sentinel have replicas that its option can select")
    try:
        options = _options(url if parts is None else _server_url(parts))
        nodes = [] if parts is None else _nodes(parts)
    except (TypeError, ValueError):  # its message may contain a part of the password
        raise StoreError("its URL is invalid, perhaps its port or an option") from None
    secrets = tuple(str(options[name]) for name in options if "password" in name and options[name])
    if parts is None:
        return Target(lambda: _server(options), None, prefix, secrets)
    if topology == "cluster":
        return Target(
            lambda: _cluster(nodes, options),
            (lambda: _cluster(nodes, options, replicas=True)) if reads_replicas else None,
            prefix,
            secrets,
        )
    service, db = _service(parts["path"] or "")
    options["db"] = db
    return Target(
        lambda: _sentinel(nodes, options).master_for(service),
        (lambda: _sentinel(nodes, options).slave_for(service)) if reads_replicas else None,
        prefix,
        secrets,
    )


def _without_own_options(url: str) -> tuple[str, str, bool]:
    """Return a URL without the options of :class:`Target`, the prefix, and whether to use replicas.

    Raises StoreError for an invalid value.
    """
    base, _, query = url.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    own = {name: value for name, value in pairs if name in ("prefix", "replicas")}
    prefix, replicas = own.get("prefix", ""), own.get("replicas", "false").lower()
    if not _PREFIX.fullmatch(prefix):
        raise StoreError(
            "its prefix may have 100 letters, digits and characters of '._:-'; other characters "
            "change the slots of a cluster"
        )
    if replicas not in _BOOLEANS:
        raise StoreError("its option replicas must be true or false")
    rest = urlencode([pair for pair in pairs if pair[0] not in own], quote_via=quote)
    return f"{base}?{rest}", prefix, _BOOLEANS[replicas]


def _options(url: str) -> dict[str, Any]:
    """Return the options of connections to the server at ``url``."""
    options: dict[str, Any] = {
        "socket_timeout": SOCKET_TIMEOUT,
        "socket_connect_timeout": SOCKET_TIMEOUT,
        **parse_url(url),  # type: ignore[no-untyped-call]
        "decode_responses": False,  # entries are octets, whatever the URL says
    }
    return options


def _server_url(parts: re.Match[str]) -> str:
    """Return the URL of a server with the user and the options of a URL with several hosts."""
    user = "" if parts["user"] is None else f"{parts['user']}@"
    return f"{parts['scheme']}://{user}localhost?{parts['query'] or ''}"


def _nodes(parts: re.Match[str]) -> list[tuple[str, int]]:
    default = CLUSTER_PORT if parts["topology"] == "cluster" else SENTINEL_PORT
    nodes = []
    for each in parts["hosts"].split(","):
        host = urlsplit(f"//{each}")
        if not host.hostname:
            raise ValueError("no host")
        nodes.append((unquote(host.hostname), host.port or default))
    if parts["topology"] == "cluster" and (parts["path"] or "/") not in ("/", "/0"):
        raise StoreError("a cluster has only the database 0")
    return nodes


def _service(path: str) -> tuple[str, int]:
    """Return the name of the service and the database that a path names."""
    name, _, db = path.strip("/").partition("/")
    if not name or not (db or "0").isascii() or not (db or "0").isdigit():
        raise StoreError("it must be redis+sentinel://host:port,…/service or …/service/db")
    return unquote(name), int(db or 0)


def _server(options: dict[str, Any]) -> Any:
    # The server may have closed an idle connection.
    pool = redis.ConnectionPool(**options, retry=Retry(NoBackoff(), 1))
    return redis.Redis(connection_pool=pool)


def _cluster(
    nodes: list[tuple[str, int]], options: dict[str, Any], *, replicas: bool = False
) -> Any:
    found = dict(options)
    uses_tls = found.pop("connection_class", None) is not None
    for name in ("host", "port", "db", "path"):
        found.pop(name, None)
    return RedisCluster(
        startup_nodes=[ClusterNode(*node) for node in nodes],  # type: ignore[no-untyped-call]
        # After a failure, the client asks the nodes for the slots, and tries once more.
        retry=Retry(NoBackoff(), 1),
        require_full_coverage=False,  # the slots that a node serves can be used
        load_balancing_strategy=LoadBalancingStrategy.ROUND_ROBIN_REPLICAS if replicas else None,
        ssl=uses_tls,
        **found,
    )


def _sentinel(nodes: list[tuple[str, int]], options: dict[str, Any]) -> Any:
    found = dict(options)
    uses_tls = found.pop("connection_class", None) is not None
    sentinel = {
        name.removeprefix("sentinel_"): found.pop(name)
        for name in ("sentinel_username", "sentinel_password")
        if name in found
    }
    for name in ("host", "port", "path"):
        found.pop(name, None)
    tls = {name: value for name, value in found.items() if name.startswith("ssl_")}
    if uses_tls:
        found["ssl"] = sentinel["ssl"] = True
    return Sentinel(  # type: ignore[no-untyped-call]
        nodes,
        sentinel_kwargs={
            "socket_timeout": SENTINEL_TIMEOUT,
            "socket_connect_timeout": SENTINEL_TIMEOUT,
            "retry": Retry(NoBackoff(), 0),
            **sentinel,
            **tls,
        },
        retry=Retry(NoBackoff(), 1),  # it asks the Sentinels for the primary again
        **found,
    )
