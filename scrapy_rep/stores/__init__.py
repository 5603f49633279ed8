"""Stores keep what is known of origins after a crawl ends, and share it between crawlers.

The names here are for a store of your own. :mod:`.registry` opens those of REP_STORE.
"""

from __future__ import annotations

from .base import Claim, Store, StoreError
from .entry import Entry, decode, encode
from .threaded import ThreadedStore

__all__ = ["Claim", "Entry", "Store", "StoreError", "ThreadedStore", "decode", "encode"]
