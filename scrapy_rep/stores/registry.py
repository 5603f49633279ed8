"""The values of REP_STORE: the stores that they select, and how a message shows them."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote_plus

from .base import TTL, Store, StoreError
from .fallback import FallbackStore
from .threaded import ThreadedStore

StoreSource: TypeAlias = str | Callable[..., Any]
"""A value of REP_STORE: a URL, the path of a class or a function, or that itself. It is called with
``ttl``, the seconds after which an entry expires, and returns a :class:`~.base.Store`."""

JOBDIR_FILE = "robotstxt.sqlite"
"""The name of the SQLite file in a JOBDIR."""

HIDDEN = "***"

_HOST = r"(?:\[[0-9A-Fa-f:.]*\]|[^\[\]:,/?#@]*)(?::[0-9]*)?"
_URL = re.compile(
    rf"([^:/?#@]*://)([^/?#]*@)?({_HOST}(?:,{_HOST})*(?:/[^?#@]*)?)([?#].*)?", re.ASCII | re.DOTALL
)
_SCHEME = re.compile("[A-Za-z0-9+.-]+://")
_SECRET = re.compile("(?:pass|pwd|secret|token|credential)[^=&]*=", re.IGNORECASE)


class StoreType(NamedTuple):
    """A type of store."""

    form: str
    """The form of its URLs, for error messages."""
    pattern: re.Pattern[str]
    """Matches the whole of each of its URLs."""
    make: Callable[[str, float], Store]
    """Makes the store at a URL, with the seconds after which an entry expires."""


def open_store(source: StoreSource | None, *, jobdir: str | None, ttl: float) -> Store | None:
    """Open and return the store that ``source`` names.

    ``source`` is a value of REP_STORE. Without one, the store is a SQLite file in ``jobdir``.
    Returns None if both are None. ``ttl``: seconds after which an entry expires.

    Raises StoreError for a URL that cannot be a store, and for a Redis server that does not answer.
    A SQLite file that cannot be opened logs a warning: it is tried again later.
    """
    if source is not None:
        make = _type_of(source).make if isinstance(source, str) else _make_own
        store = make(source, ttl)  # type: ignore[arg-type]
    elif jobdir is not None:
        from .sqlite import SQLiteStore  # most crawls do not need it

        store = SQLiteStore(Path(jobdir, JOBDIR_FILE), ttl=ttl, shared=False)
    else:
        return None
    fallback = FallbackStore(store)
    try:
        fallback.open()
    except StoreError as error:
        if source is not None and not str(source).startswith("sqlite:"):
            raise
        fallback.mark_failed(error)
    return fallback


def open_for_tool(url: str, *, must_exist: bool) -> ThreadedStore:
    """Open the store at ``url`` for a tool, which calls its blocking methods. Raises StoreError.

    ``must_exist``: a SQLite file is not created.
    """
    make = _type_of(url).make
    if make not in (_make_sqlite, _make_redis):
        raise StoreError("only SQLite and Redis can be exported and imported")
    if make is _make_sqlite and must_exist:
        path = _sqlite_path(url)
        if not (path.exists() and path.stat().st_size):
            raise StoreError(f"there is no store at {path}")
    store = make(url, TTL)
    assert isinstance(store, ThreadedStore)
    store.open()
    return store


def find_type(url: str) -> StoreType | None:
    """Return the type of the store at ``url``, or None if no type matches."""
    return next((each for each in STORE_TYPES if each.pattern.fullmatch(url)), None)


def store_forms() -> str:
    """Return the forms of all store URLs as one phrase, for error messages."""
    *others, last = (each.form for each in STORE_TYPES)
    return f"{', '.join(others)} or {last}"


def without_password(url: str) -> str:
    """Return ``url`` with :data:`HIDDEN` in place of everything that may be a password.

    If a character of a password may end the host, because it is not percent-encoded, only the
    scheme remains.
    """
    if (scheme := _SCHEME.match(url)) is None:
        return HIDDEN if "@" in url or _SECRET.search(url) else url
    parts = _URL.fullmatch(url)
    rest = unquote_plus(parts[4] or "") if parts is not None else "@"
    if (secret := _SECRET.search(rest)) is not None:
        rest = rest[: secret.end()] + HIDDEN
    elif "@" in rest:
        return scheme[0] + HIDDEN
    assert parts is not None
    name, colon, _ = (parts[2] or "").partition(":")
    user = f"{name}:{HIDDEN}@" if colon else f"{HIDDEN}@" if name else ""
    return f"{parts[1]}{user}{parts[3]}{rest}"


def _type_of(url: str) -> StoreType:
    store_type = find_type(url)
    if store_type is None:
        raise StoreError(f"it must be {store_forms()}")
    return store_type


def _sqlite_path(url: str) -> Path:
    """Return the path of the file of a SQLite store. Raises StoreError if it cannot be one."""
    path = Path(url.removeprefix("sqlite:///"))
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent}")
    if path.is_symlink():
        raise StoreError(f"{path} is a symbolic link: use the path of the file itself")
    if path.is_dir():
        raise StoreError(f"{path} is a folder")
    return path


def _make_sqlite(url: str, ttl: float) -> Store:
    from .sqlite import SQLiteStore

    return SQLiteStore(_sqlite_path(url), ttl=ttl)


def _make_memory(url: str, ttl: float) -> Store:
    from .sqlite import MemoryStore

    return MemoryStore(url.removeprefix("memory://"), ttl=ttl)


def _make_redis(url: str, ttl: float) -> Store:
    try:
        from .redis import RedisStore  # redis is an optional dependency
    except ImportError:
        raise StoreError("it needs the package redis: pip install redis") from None
    return RedisStore(url, ttl=ttl)


def _make_own(source: StoreSource, ttl: float) -> Store:
    """Make the store of a class or a function, or of that at an import path."""
    factory: Any = source
    if isinstance(source, str):
        module, _, name = source.rpartition(".")
        try:
            factory = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise StoreError(str(error)) from error
    store: Store = factory(ttl=ttl)
    methods = [name for name in vars(Store) if not name.startswith("_")]
    missing = [name for name in methods if not hasattr(store, name)]
    if missing:
        raise StoreError(f"a store needs {', '.join(missing)}: see scrapy_rep.stores.Store")
    return store


STORE_TYPES = (
    StoreType("'sqlite:///path'", re.compile("sqlite:///.+", re.DOTALL), _make_sqlite),
    StoreType(
        "'redis://host:port/db', 'redis+cluster://host:port'",
        re.compile(r"(?:unix|rediss?(?:\+cluster)?)://.+", re.DOTALL),
        _make_redis,
    ),
    StoreType(
        "'memory://name' (a name of letters, digits, '-', '_' and '.')",
        re.compile("memory://[A-Za-z0-9._-]+"),
        _make_memory,
    ),
    StoreType("'package.module.Class'", re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+"), _make_own),
)
