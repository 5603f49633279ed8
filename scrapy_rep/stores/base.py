"""The interface of all stores."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from .entry import Entry

TTL = 60 * 86_400.0
"""Seconds after which a store deletes an entry that was not put again: twice the 30 days of
RFC 9309 §2.3.1.4."""

LEASE = 30.0
"""Seconds that a claim or a reservation lasts, unless it is renewed. After a crawler dies, others
wait this long."""

MAX_LEASE = 3600.0
"""Seconds that a claim, a reservation or a delay lasts at most. A stored one that lasts longer was
written by another program, or with a wrong clock, and is treated as expired."""

MIN_RETRY, MAX_RETRY = 0.001, 60.0
"""The fewest seconds above 0, and the most, that :meth:`Store.reserve_host` returns."""


class StoreError(Exception):
    """A call to a store failed. The message says why, for people."""


class Claim(NamedTuple):
    """The result of :meth:`Store.claim`."""

    claimed: bool
    """Whether this crawler has the claim."""
    entry: Entry | None
    """The last entry put."""
    fence: int | None
    """The fencing token of the claim that this crawler has, or else of the latest claim. Each claim
    of an origin gets a greater one. None if the store has no claims."""


class Store(Protocol):
    """Entries by origin, and the claims and reservations that crawlers share.

    The origin stands for its robots.txt.

    Every async method may raise :class:`StoreError`, and ends within a time that the store sets. It
    works on each event loop that Scrapy supports.

    Every async method may be cancelled. Then the operation is complete or has no effect, never
    half done. A claim or a reservation that a cancelled call has made expires.
    """

    @property
    def shared(self) -> bool:
        """Whether several crawlers use the store at once."""

    def open(self) -> None:
        """Prepare the store before the crawl starts. This may block. Raises StoreError."""

    async def close(self) -> None:
        """Finish the calls in progress, and release all resources. Never raises."""

    async def get(self, origin: str) -> Entry | None:
        """Return the last entry put for an origin, or None if there is no valid one."""

    async def put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        """Store an entry, and replace the previous one. Returns whether the entry was stored.

        ``fence`` is the fencing token of the claim under which the entry was fetched. If the
        previous entry was put with a greater token, it stays: a crawler that was paused during its
        fetch does not overwrite the result of its successor. The comparison and the change are one
        atomic step. Without a token, the entry replaces any other, and keeps the token of the
        previous one.
        """

    async def claim(self, origin: str, seconds: float) -> Claim:
        """Claim the fetch of an origin for at most ``seconds``.

        The claim is made, and the last entry is read, in one atomic step: a crawler that gets the
        claim also gets the entry that the previous owner put. A crawler that has the claim gets it
        again, with a greater fencing token.
        """

    async def release(self, origin: str) -> None:
        """End this crawler's claim. A claim of another crawler stays."""

    async def reserve_host(self, host: str, lease: float) -> float:
        """Reserve a host for this crawler, or renew its reservation, for ``lease`` seconds.

        Returns 0 if this crawler has the reservation. Otherwise returns the seconds after which to
        try again: at least 0.001, and at most 60.
        """

    async def release_host(self, host: str, delay: float) -> None:
        """End this crawler's reservation. No crawler can reserve the host for ``delay`` seconds.

        Has no effect if this crawler does not have the reservation.
        """
