"""The types of stores, and the forms of REP_STORE that select them.

To add a type, write a function that opens the store, and add a row to :data:`STORE_TYPES`. The
settings and their error message read this table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from .base import Store, StoreError
from .fallback import FallbackStore
from .memory import MemoryStore

StoreSource: TypeAlias = str | Callable[..., Any]
"""A value of REP_STORE: a URL, the path of a class or a function, or that itself. It is called with
``ttl``, the seconds after which an entry expires, and returns a :class:`~.base.Store`."""

JOBDIR_FILE = "robotstxt.sqlite"
"""The name of the SQLite file in a JOBDIR."""


class StoreType(NamedTuple):
    """A type of store."""

    form: str
    """The form of its URLs, for error messages."""
    pattern: re.Pattern[str]
    """Matches the whole of each of its URLs."""
    open: Callable[[str, float], Store]
    """Opens the store at a URL. The second argument is the seconds after which an entry expires.
    Raises StoreError."""


def open_store(source: StoreSource | None, *, jobdir: str | None, ttl: float) -> Store | None:
    """Open and return the store that ``source`` names.

    ``source`` is a value of REP_STORE. Without one, the store is a SQLite file in ``jobdir``.
    Returns None if both are None. ``ttl``: seconds after which an entry expires.

    Raises StoreError for a URL that cannot be a store, and for a Redis server that does not answer.
    A SQLite file that cannot be opened logs a warning: the crawl continues in memory, and tries the
    file again later.
    """
    if source is None:
        return None if jobdir is None else _open_in_jobdir(jobdir, ttl)
    if not isinstance(source, str):
        return _open_made(source, ttl)
    store_type = find_type(source)
    if store_type is None:
        raise StoreError(f"it must be {store_forms()}")
    return store_type.open(source, ttl)


def find_type(url: str) -> StoreType | None:
    """Return the type of the store at ``url``, or None if no type matches."""
    return next((each for each in STORE_TYPES if each.pattern.fullmatch(url)), None)


def store_forms() -> str:
    """Return the forms of all store URLs as one phrase, for error messages."""
    *others, last = (each.form for each in STORE_TYPES)
    return f"{', '.join(others)} or {last}"


def sqlite_path(url: str) -> Path:
    """Return the path of the file of a SQLite store. Raises StoreError if it cannot be one."""
    path = Path(url.removeprefix("sqlite:///"))
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent}")
    if path.is_symlink():
        raise StoreError(f"{path} is a symbolic link: use the path of the file itself")
    if path.is_dir():
        raise StoreError(f"{path} is a folder")
    return path


def _open_sqlite(url: str, ttl: float) -> Store:
    path = sqlite_path(url)
    return _open_file(path, ttl, shared=True, exclusive=False)


def _open_in_jobdir(jobdir: str, ttl: float) -> Store:
    return _open_file(Path(jobdir, JOBDIR_FILE), ttl, shared=False, exclusive=True)


def _open_file(path: Path, ttl: float, *, shared: bool, exclusive: bool) -> Store:
    from .sqlite import SQLiteStore  # most crawls do not need it

    store = FallbackStore(SQLiteStore(path, ttl=ttl, shared=shared, exclusive=exclusive))
    try:
        store.open()
    except StoreError as error:
        store.mark_failed(error)
    return store


def _open_redis(url: str, ttl: float) -> Store:
    try:
        from .redis import RedisStore  # redis is an optional dependency
    except ImportError:
        raise StoreError("it needs the package redis: pip install redis") from None
    store = FallbackStore(RedisStore(url, ttl=ttl))
    store.open()
    return store


def _open_path(path: str, ttl: float) -> Store:
    """Open the store of the class or the function at an import path."""
    module, _, name = path.rpartition(".")
    try:
        factory = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise StoreError(str(error)) from error
    return _open_made(factory, ttl)


def _open_made(factory: Callable[..., Any], ttl: float) -> Store:
    store: Store = factory(ttl=ttl)
    missing = [name for name in _METHODS if not hasattr(store, name)]
    if missing:
        raise StoreError(f"a store needs {', '.join(missing)}: see scrapy_rep.stores.Store")
    found = FallbackStore(store)
    found.open()
    return found


_METHODS = [name for name in vars(Store) if not name.startswith("_")]


def _open_memory(url: str, ttl: float) -> Store:
    return MemoryStore.named(url.removeprefix("memory://"), ttl=ttl)


STORE_TYPES = (
    StoreType("'sqlite:///path'", re.compile("sqlite:///.+", re.DOTALL), _open_sqlite),
    StoreType(
        "'redis://host:port/db'", re.compile("(?:redis|rediss|unix)://.+", re.DOTALL), _open_redis
    ),
    StoreType(
        "'redis+cluster://host:port,host:port'",
        re.compile(r"rediss?\+cluster://.+", re.DOTALL),
        _open_redis,
    ),
    StoreType(
        "'redis+sentinel://host:port,host:port/service'",
        re.compile(r"rediss?\+sentinel://.+", re.DOTALL),
        _open_redis,
    ),
    StoreType(
        "'memory://name' (a name of letters, digits, '-', '_' and '.')",
        re.compile("memory://[A-Za-z0-9._-]+"),
        _open_memory,
    ),
    StoreType("'package.module.Class'", re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+"), _open_path),
)
