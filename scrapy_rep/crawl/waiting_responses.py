"""Responses that wait in memory, before the spider gets them, for a file of their origin."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.http import Response

    from ..scheduling.engine import Engine

MAX_WAITING_SIZE = 5_000_000
"""Octets of responses that may wait for a file without counting towards CONCURRENT_REQUESTS.
Scrapy's SCRAPER_SLOT_MAX_ACTIVE_SIZE has the same value."""

MIN_RESPONSE_SIZE = 1024
"""Octets that a smaller response counts as. Scrapy's scraper uses the same number."""


class WaitingResponses:
    """The responses of one crawl that wait."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._size = 0

    @contextmanager
    def add(self, request: Request, response: Response) -> Iterator[None]:
        """Add a response as long as it waits."""
        size = max(len(response.body), MIN_RESPONSE_SIZE)
        if self._size < MAX_WAITING_SIZE:
            self._engine.exclude(request)
        self._size += size
        try:
            yield
        finally:
            self._size -= size
            self._engine.include(request)
