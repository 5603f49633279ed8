"""What a test has begun ends with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scrapy_rep.frontier import reservation

from .doubles import BEGUN, MADE, begin


@pytest.fixture(autouse=True)
def _end_coroutines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(reservation, "deferred_from_coro", begin)
    yield
    while MADE:
        vars(MADE.pop().frontier)["_reservations"] = None  # else it would begin another one
    while BEGUN:
        deferred = BEGUN.pop()
        deferred.addErrback(lambda _: None)
        deferred.cancel()
