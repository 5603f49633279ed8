"""How far a crawl looks ahead: for which sites it fetches the robots.txt, and when."""

from __future__ import annotations

from typing import NamedTuple

from ..fetch.fetches import Fetches
from .hosts import Queues

LOOK_AHEAD = 4
"""If fewer queues than CONCURRENT_REQUESTS are ready, fetches begin until this multiple of it is
ready or waits for a fetch that has just begun. So robots.txt files are fetched for pages that are
requested soon, and the crawl does not wait for them."""

PAGES_IN_BETWEEN = 16
"""While enough queues are ready, one fetch begins after so many pages, so that new sites get their
turn, and one request starts that will be dropped."""


class Missing(NamedTuple):
    """How many more queues a scheduler needs that has most of them elsewhere."""

    all: int = 0
    new: int = 0
    """How many of them may be new ones if there are no others. No worker has fetched the robots.txt
    of a new one."""
    new_first: int = 0
    """How many have to be new ones."""


class LookAhead:
    """Counts the pages that start between two fetches, and between two requests to be dropped."""

    def __init__(self, concurrency: int, fetches: Fetches) -> None:
        self._concurrency = concurrency
        self._fetches = fetches
        self._since_drop = self._since_fetch = 0

    def note_page(self) -> None:
        """Note that a page starts."""
        self._since_drop += 1
        self._since_fetch += 1

    def note_drop(self) -> None:
        """Note that a request starts which will be dropped."""
        self._since_drop = 0

    def note_fetch(self) -> None:
        """Note that a fetch begins for a new site."""
        self._since_fetch = 0

    @property
    def is_turn_of_drops(self) -> bool:
        """Whether enough pages have started since the last request that was to be dropped."""
        return self._since_drop >= PAGES_IN_BETWEEN

    def may_fetch(self, ready: int) -> bool:
        """Whether a fetch has to begin, and can, while so many queues are ready."""
        return self._needs_fetch(ready) and self._fetches.can_begin()

    def _needs_fetch(self, ready: int) -> bool:
        """Whether the crawl needs one more queue soon, or a new site gets its turn."""
        if self._since_fetch >= PAGES_IN_BETWEEN:
            return True
        most = LOOK_AHEAD * self._concurrency
        return ready < self._concurrency and ready + len(self._fetches.recent) < most

    def missing(self, owner: Queues, ready: int, downloads: int) -> Missing:
        """Return how many more queues an owner needs, beside so many pages in the downloader."""
        free = max(self._concurrency - downloads - owner.ready.size, 0)
        if not self._fetches.can_begin():  # queues that are unknown here are of no use now
            is_full = owner.unknown.size >= LOOK_AHEAD * self._concurrency
            return Missing(0 if is_full else min(free, 1))
        free = max(free - owner.unknown.size, 0)
        is_turn = self._since_fetch >= PAGES_IN_BETWEEN and not owner.unknown.size
        return Missing(free, free if self._needs_fetch(ready) else 0, int(is_turn))
