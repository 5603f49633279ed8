"""Stores keep what is known of origins after a crawl ends, and share it between crawlers.

:mod:`.registry` has the values of REP_STORE that select them.
"""

from __future__ import annotations

from .base import Claim, Store, StoreError
from .entry import Entry
from .fallback import FallbackStore
from .registry import open_store

__all__ = ["Claim", "Entry", "FallbackStore", "Store", "StoreError", "open_store"]
