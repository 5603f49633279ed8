"""The stores that the values of REP_STORE select."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from .base import TTL, Store, StoreError
from .fallback import FallbackStore
from .threaded import ThreadedStore
from .urls import find_form, store_forms

StoreSource: TypeAlias = str | Callable[..., Any]
"""A value of REP_STORE: a URL, the path of a class or a function, or that itself. It is called with
``ttl``, the seconds after which an entry expires, and returns a :class:`~.base.Store`."""


def open_store(source: StoreSource | None, *, jobdir: str | None, ttl: float) -> Store | None:
    """Open and return the store that ``source`` names.

    ``source`` is a value of REP_STORE. Without one, the store is a SQLite file in ``jobdir``.
    Returns None if both are None. ``ttl``: seconds after which an entry expires.

    Raises StoreError if ``source`` cannot be used: each crawler would keep the pace of sites alone.
    A file in ``jobdir``, which one crawler uses, logs a warning: it is tried again later.
    """
    if source is not None:
        store = _made(source, ttl)
    elif jobdir is not None:
        from .sqlite import SQLiteStore  # most crawls do not need it

        store = SQLiteStore(Path(jobdir, "robotstxt.sqlite"), ttl=ttl, shared=False)
    else:
        return None
    fallback = FallbackStore(store)
    try:
        fallback.open()
    except StoreError as error:
        if source is not None:
            raise
        fallback.mark_failed(error)
    return fallback


def open_for_tool(url: str, *, must_exist: bool) -> ThreadedStore:
    """Open the store at ``url`` for a tool, which calls its blocking methods. Raises StoreError.

    ``must_exist``: a SQLite file is not created.
    """
    if find_form(url) is not None and (url.startswith("memory:") or "://" not in url):
        raise StoreError("only SQLite and Redis can be exported and imported")
    if must_exist and url.startswith("sqlite:"):
        path = _sqlite_path(url)
        if not (path.exists() and path.stat().st_size):
            raise StoreError(f"there is no store at {path}")
    store = _made(url, TTL)
    assert isinstance(store, ThreadedStore)
    store.open()
    return store


def _sqlite_path(url: str) -> Path:
    """Return the path of the file of a SQLite store. Raises StoreError if it cannot be one."""
    path = Path(url.removeprefix("sqlite:///"))
    try:
        if not path.parent.is_dir():
            raise StoreError(f"there is no folder {path.parent}")
        if path.is_symlink():
            raise StoreError(f"{path} is a symbolic link: use the path of the file itself")
        if path.is_dir():
            raise StoreError(f"{path} is a folder")
    except OSError as error:  # such as a folder without permission
        raise StoreError(str(error)) from error
    return path


def _made(source: StoreSource, ttl: float) -> Store:
    """Return the store that ``source`` names. It is not open. Raises StoreError."""
    if not isinstance(source, str):
        return _own(source, ttl)
    if find_form(source) is None:
        raise StoreError(f"it must be {store_forms()}")
    scheme, _, name = source.partition("://")
    if scheme in ("sqlite", "memory"):
        from .sqlite import MemoryStore, SQLiteStore

        is_file = scheme == "sqlite"
        return SQLiteStore(_sqlite_path(source), ttl=ttl) if is_file else MemoryStore(name, ttl=ttl)
    if name:
        try:
            from .redis import RedisStore  # redis is an optional dependency
        except ImportError:
            raise StoreError("it needs the package redis: pip install redis") from None
        return RedisStore(source, ttl=ttl)
    module, _, name = source.rpartition(".")
    try:
        factory = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise StoreError(str(error)) from error
    return _own(factory, ttl)


def _own(factory: Callable[..., Any], ttl: float) -> Store:
    store: Store = factory(ttl=ttl)
    methods = [name for name in vars(Store) if not name.startswith("_")]
    missing = [name for name in methods if not hasattr(store, name)]
    if missing:
        raise StoreError(f"a store needs {', '.join(missing)}: see scrapy_rep.stores.Store")
    return store
