"""Stores keep what is known of origins after a crawl ends, and share it between crawlers.

=============================  ===============================================================
``REP_STORE``                  store
=============================  ===============================================================
``None``                       the memory of the crawl; with JOBDIR, a SQLite file in JOBDIR
``"sqlite:///path"``           a SQLite file, for crawls on one machine; four slashes start an
                               absolute path
``"redis://host:port/db"``     a Redis server, for crawls on many machines; also ``rediss://``
                               and ``unix://``
``"memory://name"``            the memory of this process, for its crawls that use this name
=============================  ===============================================================

:mod:`.registry` has the table of store types. To add a type, add a row there.
"""

from __future__ import annotations

from .base import Claim, Store, StoreError
from .entry import Entry
from .fallback import FallbackStore
from .registry import open_store

__all__ = ["Claim", "Entry", "FallbackStore", "Store", "StoreError", "open_store"]
