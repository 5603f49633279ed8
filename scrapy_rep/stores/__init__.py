"""Stores: where what is known of origins outlives a crawl, and is shared between crawlers.

=============================  ===============================================================
``REP_STORE``                  what is used
=============================  ===============================================================
``None``                       the memory of the crawl; with JOBDIR, a SQLite file in there
``"sqlite:///path"``           a SQLite file, for crawls of one machine; four slashes begin an
                               absolute path
``"redis://host:port/db"``     a Redis server, for crawls of many machines; also ``rediss://``
                               and ``unix://``
=============================  ===============================================================
"""

from __future__ import annotations

from pathlib import Path

from .base import Store, StoreError
from .entry import Entry
from .fallback import FallbackStore

__all__ = ["Entry", "FallbackStore", "Store", "StoreError", "open_store"]

SQLITE = "sqlite:///"
REDIS = ("redis://", "rediss://", "unix://")

IN_JOBDIR = "robotstxt.sqlite"
"""The name of the file in a JOBDIR."""


def open_store(url: str | None, *, jobdir: str | None, ttl: float) -> FallbackStore | None:
    """The store that ``url`` names; None where nothing is kept.

    ``keep``: seconds after which an entry is forgotten. Raises StoreError for what cannot be a
    store, and for a server that cannot be used. A file that cannot be used now may be later.
    """
    if url is None:
        if jobdir is None:
            return None
        return _in_file(Path(jobdir, IN_JOBDIR), ttl, shared=False, ours=True)
    if url.startswith(SQLITE):
        path = Path(url.removeprefix(SQLITE))
        if not path.parent.is_dir():
            raise StoreError(f"there is no folder {path.parent}")
        if path.is_symlink():
            raise StoreError(f"{path} is a symbolic link: name the file that it leads to")
        if path.is_dir():
            raise StoreError(f"{path} is a folder")
        return _in_file(path, ttl, shared=True, ours=False)
    try:
        from .redis import RedisStore  # redis is an extra
    except ImportError:
        raise StoreError("it needs the package redis: pip install scrapy-rep[redis]") from None
    store = FallbackStore(RedisStore(url, ttl=ttl))
    store.open()
    return store


def _in_file(path: Path, ttl: float, *, shared: bool, ours: bool) -> FallbackStore:
    from .sqlite import SQLiteStore  # most crawls have no need of it

    store = FallbackStore(SQLiteStore(path, ttl=ttl, shared=shared, ours=ours))
    try:
        store.open()
    except StoreError as error:
        store.mark_failed(error)
    return store
