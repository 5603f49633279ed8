"""Stores for tools, which have no event loop: their calls block.

Unlike a crawl, a tool does not go on without its store. So a store that cannot be used is an error.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .base import StoreError
from .registry import find_type, sqlite_path, store_forms

if TYPE_CHECKING:
    from .threaded import ThreadedStore


def open_blocking(url: str, *, ttl: float, must_exist: bool) -> ThreadedStore:
    """Open the store at ``url``, whose blocking methods a tool may call.

    ``ttl``: seconds after which an entry expires. ``must_exist``: the store is read, and none is
    created. Raises StoreError. A file that is no store stays as it is.
    """
    if find_type(url) is None:
        raise StoreError(f"it must be {store_forms()}")
    if url.startswith("memory://"):
        raise StoreError("it ends with the process that has it")
    if "://" not in url:
        raise StoreError("only SQLite and Redis can be exported and imported")
    store = _sqlite(url, ttl, must_exist) if url.startswith("sqlite://") else _redis(url, ttl)
    store.open()
    return store


def _sqlite(url: str, ttl: float, must_exist: bool) -> ThreadedStore:
    from .sqlite import SQLiteStore, check_file

    path = sqlite_path(url)
    if path.exists() and (must_exist or path.stat().st_size):
        check_file(path)
        if not must_exist and not os.access(path, os.W_OK):
            raise StoreError(f"{path} is read-only")
    elif must_exist:
        raise StoreError(f"there is no file {path}")
    return SQLiteStore(path, ttl=ttl)


def _redis(url: str, ttl: float) -> ThreadedStore:
    try:
        from .redis import RedisStore  # redis is an optional dependency
    except ImportError:
        raise StoreError("it needs the package redis: pip install redis") from None
    return RedisStore(url, ttl=ttl)
