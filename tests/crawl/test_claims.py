"""Claims are renewed while the fetches go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scrapy_rep.crawl import policy_store as claims_module
from scrapy_rep.crawl.policy_store import Claims
from scrapy_rep.frontier.clock import Clock, sleep
from scrapy_rep.stores.sqlite import MemoryStore

from .conftest import until

if TYPE_CHECKING:
    from scrapy_rep.stores import Claim

pytestmark = pytest.mark.each_loop


class RecordingStore(MemoryStore):
    """Records the renewals, and refuses those of ``lost``."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed: list[str] = []
        self.lost: set[str] = set()
        self.most = self.in_progress = 0

    async def claim(self, origin: str, seconds: float) -> Claim:
        claim = await super().claim(origin, seconds)
        return claim if origin != "no token" else claim._replace(fence=None)

    async def renew(self, origin: str, fence: int, seconds: float) -> bool:
        self.in_progress += 1
        self.most = max(self.most, self.in_progress)
        await sleep(0.05)
        self.in_progress -= 1
        self.renewed.append(origin)
        if origin == "broken":
            raise ZeroDivisionError
        return origin not in self.lost


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> RecordingStore:
    monkeypatch.setattr(claims_module, "RENEWAL_INTERVAL", 0.02)
    return RecordingStore()


async def test_claims_are_renewed_until_they_are_removed(store: RecordingStore) -> None:
    claims = Claims(store, Clock())
    for number in range(20):
        await claims.claim(str(number))
    await claims.claim("no token")
    await until(lambda: all(store.renewed.count(str(number)) > 1 for number in range(20)))
    assert "no token" not in store.renewed
    assert store.most == 20, "no renewal starts before the last ones have ended"
    assert len(claims) == 21
    for key in claims:
        claims.remove(key)
    claims.remove("another")
    await until(lambda: not claims.is_renewing)
    done = len(store.renewed)
    await sleep(0.1)
    assert len(store.renewed) == done


async def test_a_claim_that_another_crawler_has_is_not_renewed_again(store: RecordingStore) -> None:
    claims = Claims(store, Clock())
    store.lost.add("lost")
    await claims.claim("lost")
    await claims.claim("kept")
    await until(lambda: store.renewed.count("kept") > 2)
    assert store.renewed.count("lost") == 1
    assert set(claims) == {"lost", "kept"}, "both are released"
    claims.remove("lost")
    claims.remove("kept")
    await until(lambda: not claims.is_renewing)
