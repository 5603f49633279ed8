"""What every store can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .entry import Entry

MAX_LEASE = 3600.0
"""Seconds that a claim, a reservation or a delay lasts at most, whatever was asked for. What says
that it lasts longer was written by something else, or by a wrong clock, and counts as expired."""

MAX_RETRY = 60.0
"""Seconds, at most, after which to ask again for a host that another crawler has reserved."""


class StoreError(Exception):
    """A store cannot do now what it is for. The message says why, for people."""


class Store(Protocol):
    """Entries by origin, and what several crawlers have to agree upon.

    Every method may raise :class:`StoreError`, and may be cancelled while it is awaited: then it is
    done, or not done, but never half. A claim or a reservation that a cancelled call has made ends
    by itself, at once. Every call ends within a time that the store sets. They work on each of
    Scrapy's loops.
    """

    @property
    def shared(self) -> bool:
        """Whether several crawlers use it at once."""

    def open(self) -> None:
        """Be ready, before the crawl begins: this may block. Raises StoreError."""

    async def close(self) -> None:
        """Finish what is under way, and let go. Never fails."""

    async def get(self, origin: str) -> Entry | None:
        """What was put there last. None, too, for what is no entry."""

    async def put(self, origin: str, entry: Entry) -> None:
        """Keep it, in place of what was there."""

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        """Whether it is ours to fetch, for so long at most; and what was put there last.

        Both at one moment: whoever claims sees what the one before has put.
        """

    async def release(self, origin: str) -> None:
        """Give up our claim. What somebody else has claimed since stays claimed."""

    async def reserve_host(self, host: str, lease: float) -> float:
        """Reserve a host for this crawler, or renew the reservation, for ``lease`` seconds.

        Returns 0 if it is reserved for us, else the seconds after which to ask again: above 0, and
        at most :data:`MAX_RETRY`.
        """

    async def release_host(self, host: str, delay: float) -> None:
        """End our reservation: nobody, this crawler included, can reserve the host for ``delay``
        seconds.

        Does nothing where the reservation is no longer ours.
        """
