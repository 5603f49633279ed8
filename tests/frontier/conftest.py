"""What a test has begun ends with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .doubles import BEGUN

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _end_coroutines() -> Iterator[None]:
    yield
    while BEGUN:
        deferred = BEGUN.pop()
        deferred.addErrback(lambda _: None)
        deferred.cancel()
