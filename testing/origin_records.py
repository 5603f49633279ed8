"""What thousands of origins have received, and the laws that each request is compared with at once.

A server that kept a million requests would take gigabytes. So it keeps the time of each fetch of a
robots.txt, and the requests that break a law.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from testing.faults import ALLOWED, DISALLOWED

if TYPE_CHECKING:
    from testing.soak import Kind

IDENTITY = "soak/1.0 ("
"""The start of the User-Agent of a worker. Its name and a parenthesis come after it."""

MOST = 10_000
"""How many requests that break the same law are kept."""

LATENESS = 10.0
"""Seconds between the question whether a page is allowed, and the time when its server receives the
request, at most."""


def is_allowed(kind: Kind, path: str) -> bool:
    """Whether the robots.txt of an origin of this kind allows a path."""
    if path == "/shared.txt":
        return True
    is_private = path.startswith("/private")
    return kind.meaning == ALLOWED or not (kind.meaning == DISALLOWED or is_private)


class Records:
    """What the origins have received. Times are those of the monotonic clock."""

    def __init__(self) -> None:
        self.fetches: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        """When each robots.txt was requested, and the worker that requested it."""
        self.pages = 0
        self.disallowed: list[str] = []
        """Pages that the robots.txt disallows."""
        self.unasked: list[str] = []
        """Pages of origins whose robots.txt no worker has requested."""
        self.expired: list[tuple[str, str]] = []
        """Pages of origins whose robots.txt was requested too long ago: origin and path."""
        self.hurried: list[tuple[str, float, float]] = []
        """Pages that came too early for the delay, with the times of the page before and of it."""
        self._last: dict[str, tuple[float, str]] = {}

    def fetched(self, root: str, at: float, worker: str) -> None:
        """Note a request for a robots.txt."""
        self.fetches[root].append((at, worker))

    def received(self, root: str, kind: Kind, path: str, at: float) -> None:
        """Note a request for a page."""
        self.pages += 1
        url = root + path
        if not is_allowed(kind, path):
            _add(self.disallowed, url)
        fetches = self.fetches.get(root)
        if fetches is None:
            _add(self.unasked, url)
        elif kind.lifetime and at - fetches[-1][0] > kind.lifetime + LATENESS:
            _add(self.expired, (root, path))
        if not kind.delay:
            return
        earlier, other = self._last.get(root, (0.0, ""))
        # Twisted's client repeats a request if the server closes the connection just then.
        if at - earlier < kind.delay and path != other:
            _add(self.hurried, (url, earlier, at))
        self._last[root] = (at, path)

    def as_json(self) -> dict[str, Any]:
        """Return everything in a form that is valid in JSON."""
        names = ("fetches", "pages", "disallowed", "unasked", "expired", "hurried")
        return {name: getattr(self, name) for name in names}


def _add(records: list[Any], record: Any) -> None:
    if len(records) < MOST:
        records.append(record)
