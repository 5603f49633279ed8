"""What a test has begun ends with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .doubles import BEGUN


@pytest.fixture(autouse=True)
def _end_coroutines() -> Iterator[None]:
    yield
    while BEGUN:
        deferred = BEGUN.pop()
        deferred.addErrback(lambda _: None)
        deferred.cancel()
