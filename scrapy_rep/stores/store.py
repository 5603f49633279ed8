"""What every store can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .entry import Entry


class StoreError(Exception):
    """A store cannot do now what it is for. The message says why, for people."""


class Store(Protocol):
    """Entries by origin, and what several crawlers have to agree upon.

    Every method may raise :class:`StoreError`, and may be cancelled while it is awaited: then it is
    done, or not done, but never half. They work on each of Scrapy's loops.
    """

    @property
    def shared(self) -> bool:
        """Whether several crawlers use it at once."""

    def open(self) -> None:
        """Be ready, before the crawl begins: this may block. Raises StoreError."""

    async def close(self) -> None:
        """Finish what is under way, and let go. Never fails."""

    async def get(self, origin: str) -> Entry | None:
        """What was put there last."""

    async def put(self, origin: str, entry: Entry) -> None:
        """Keep it, in place of what was there."""

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        """Whether it is ours to fetch, for so long at most; and what was put there last.

        Both at one moment: whoever claims sees what the one before has put.
        """

    async def release(self, origin: str) -> None:
        """Give up our claim. What somebody else has claimed since stays claimed."""

    async def turn(self, host: str, seconds: float) -> float:
        """0 if it is our turn at a host now; then nobody else's comes within so many seconds.

        Else the seconds after which to ask again.
        """
