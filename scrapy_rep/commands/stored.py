"""Stores as the inputs and outputs of tools, which have no event loop."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..protocol.paths import origin_of
from ..stores.base import StoreError
from ..stores.blocking import open_blocking
from ..stores.url import without_password
from .exits import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..stores.threaded import ThreadedStore
    from .context import Context

_DAY = 86_400


def open_source(url: str, context: Context) -> ThreadedStore:
    """Open a store that exists. Raises CommandError."""
    return _open(url, context, must_exist=True)


def open_target(url: str, context: Context) -> ThreadedStore:
    """Open a store, which is created if there is none. Raises CommandError."""
    return _open(url, context, must_exist=False)


def is_policy(key: str) -> bool:
    """Return whether the entry with a key is a robots.txt. Other files have a URL as their key."""
    return origin_of(key) == key


def is_key(key: str) -> bool:
    """Return whether a text can be the key of an entry: an origin, or a URL of one."""
    origin = origin_of(key)
    return origin is not None and (key == origin or key.startswith(f"{origin}/"))


@contextmanager
def using(store: ThreadedStore, url: str) -> Iterator[ThreadedStore]:
    """Yield a store, and disconnect it. An error of the store becomes a CommandError."""
    try:
        yield store
    except StoreError as error:
        raise CommandError(
            f"the store {without_password(url)} failed: {error}", ExitCode.UNKNOWN
        ) from None
    finally:
        store.disconnect()


def _open(url: str, context: Context, *, must_exist: bool) -> ThreadedStore:
    try:
        return open_blocking(url, ttl=context.settings.store_days * _DAY, must_exist=must_exist)
    except StoreError as error:
        raise CommandError(
            f"the store {without_password(url)} cannot be used: {error}", ExitCode.USAGE
        ) from None
