"""How an origin is restored from a store, and what is saved there."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from scrapy.settings import Settings as ScrapySettings
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from scrapy_rep.clock import Clock
from scrapy_rep.fetch.policy_store import Load, PolicyStore
from scrapy_rep.origin import Action, Origin, State, UnreachablePolicy
from scrapy_rep.protocol import access
from scrapy_rep.protocol.access import FetchResult, Rules, Unavailable
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.settings import Settings
from scrapy_rep.stores import Claim, Entry
from scrapy_rep.stores.sqlite import MemoryStore
from testing.clock import FakeClock

NOW = 1_700_000_000.0
KEY = "https://a.example"
URL = f"{KEY}/robots.txt"
BODY = b"User-agent: *\nDisallow: /\n"


def rules(expires_at: float, body: bytes = BODY) -> Rules:
    return Rules(RobotsTxt.parse(body), 200, access.CopyInfo(URL, '"1"'), expires_at, body)


def origin_after(*events: tuple[FetchResult, float]) -> Origin:
    """Return an origin after these events at these times."""
    origin = Origin(KEY)
    for event, now in events:
        origin.start_fetch(now)
        origin.apply(event, now)
    return origin


def restore(origin: Origin, entry: Entry, now: float = NOW) -> bool:
    """Start a fetch, and return whether the entry replaces it."""
    origin.start_fetch(now)
    replaces_fetch = origin.restore(entry, now)
    if replaces_fetch:
        origin.apply(entry, now)
    return replaces_fetch


DAY = 86_400.0
WEEK = 7 * DAY
RULES = (rules(NOW + 100), NOW)
DOWN = (access.Unreachable("status 503", 503, URL), NOW)


@pytest.mark.parametrize(
    ("history", "body"),
    [
        pytest.param([RULES], BODY, id="rules"),
        pytest.param([RULES, (access.NotModified(NOW + 200), NOW + 50)], BODY, id="a 304"),
        *(
            pytest.param([(Unavailable(URL, NOW + 100, 403, result), NOW)], None, id=str(result))
            for result in access.AccessResult
            if result.is_unavailable
        ),
        pytest.param([DOWN], None, id="unreachable"),
        pytest.param([RULES, (DOWN[0], NOW + 200)], BODY, id="unreachable, with a copy"),
        pytest.param([DOWN, (DOWN[0], NOW + 70), (DOWN[0], NOW + 300)], None, id="three times"),
    ],
)
def test_a_restored_origin_equals_the_saved_one(
    history: list[tuple[FetchResult, float]], body: bytes | None
) -> None:
    origin = origin_after(*history)
    restored = Origin(KEY)
    now = history[-1][1] + 1
    assert restore(restored, origin.to_entry(body), now)
    assert restored.next_action(now) is origin.next_action(now) is Action.NONE
    assert restored.to_entry(body) == origin.to_entry(body)
    assert restored.state is origin.state
    policy = UnreachablePolicy()
    for later in (now, now + 40 * 86_400):
        for path in ("/", "/robots.txt"):
            question = (KEY + path, ("bot",), later, policy)
            assert restored.verdict(*question) == origin.verdict(*question)


def test_a_failure_of_another_crawler_does_not_replace_a_fresh_copy() -> None:
    origin = origin_after((rules(NOW + 100), NOW))
    failed = origin_after((DOWN[0], NOW + 95)).to_entry(None)
    assert restore(origin, failed, NOW + 96)
    assert origin.state is State.FRESH
    assert origin.refresh_at == NOW + 100
    assert origin.content is not None
    assert restore(origin, failed, NOW + 100), "the copy has expired"
    assert (origin.content is None, origin.failure) == (False, "status 503")


# With a store


def policy_store(store: MemoryStore, clock: Clock | None = None, **settings: Any) -> PolicyStore:
    clock = clock or FakeClock(NOW)
    read = Settings.read(ScrapySettings(settings))
    return PolicyStore(store, read, clock, Mock())


async def fetch(policies: PolicyStore, origin: Origin, event: FetchResult) -> Entry | None:
    """Load the origin, apply the event, and save the entry, which is returned."""
    origin.start_fetch(NOW)
    assert await policies.load(origin) is None
    origin.apply(event, NOW)
    entry = policies.entry(origin, event)
    await policies.save(origin, entry)
    return entry


async def test_without_a_file_in_the_store_the_fetch_is_unconditional() -> None:
    store = MemoryStore()
    origin = origin_after((rules(NOW - 1), NOW - WEEK))
    assert await fetch(policy_store(store), origin, DOWN[0]) is None, "incomplete"
    assert await store.get(KEY) is None
    assert origin.copy is None or origin.copy.etag is None


async def test_an_entry_put_between_get_and_claim_replaces_the_fetch() -> None:
    released: list[str] = []

    class LateEntry(MemoryStore):
        async def claim(self, origin: str, seconds: float) -> Claim:
            return Claim(True, origin_after((rules(NOW + 100), NOW - 1)).to_entry(BODY), 1)

        async def release(self, origin: str) -> None:
            released.append(origin)

    origin = Origin(KEY)
    origin.start_fetch(NOW)
    entry = await policy_store(LateEntry()).load(origin)
    assert entry is not None
    origin.apply(entry, NOW)
    assert released == [KEY]
    assert origin.state is State.FRESH


class ClaimedStore(MemoryStore):
    """Another crawler has claimed every origin, and never releases it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    async def claim(self, origin: str, seconds: float) -> Claim:
        self.calls.append("claim")
        return Claim(False, None, 7)

    async def put(self, origin: str, entry: Entry, fence: int | None = None) -> bool:
        await Clock().sleep(0.1)
        self.calls.append(f"put {fence}")
        return fence != 6

    async def release(self, origin: str) -> None:
        await Clock().sleep(0.1)
        self.calls.append("release")

    async def close(self) -> None:
        self.calls.append("close")


async def test_an_entry_is_saved_before_the_store_closes() -> None:
    store = ClaimedStore()
    policies = policy_store(store, Clock())
    policies._loads[KEY] = Load(is_claimed=True)
    saving = policies.save(Origin(KEY), origin_after(RULES).to_entry(BODY))
    saved = deferred_from_coro(saving)
    await policies.close()
    assert store.calls == ["put None", "release", "close"]
    await maybe_deferred_to_future(saved)


async def test_a_store_closes_even_if_a_save_never_ends() -> None:
    store = ClaimedStore()
    clock = FakeClock(NOW)
    policies = policy_store(store, clock)
    entry = origin_after(RULES).to_entry(BODY)
    saving, later = (policies.save(Origin(KEY), entry) for _ in range(2))
    saving.send(None)
    await clock.wait_for(policies.close())
    assert store.calls == ["close"]
    with pytest.raises(StopIteration):  # a later save puts nothing
        later.send(None)
    saving.close()
    assert store.calls == ["close"]


@pytest.mark.parametrize(
    ("steps", "failed_after"),
    [
        pytest.param([40 * DAY], 0, id="forward"),
        pytest.param([40 * DAY], 1, id="forward, failed afterwards"),
        pytest.param([DAY, 2 * DAY], 0, id="forward twice"),
        pytest.param([DAY, 2 * DAY], 1, id="forward twice, failed between"),
        pytest.param([-DAY, DAY], 1, id="back and forward, failed between"),
        pytest.param([DAY, -DAY], 0, id="forward and back"),
        pytest.param([-DAY], 0, id="back"),
    ],
)
async def test_unreachable_days_have_no_clock_step(steps: list[float], failed_after: int) -> None:
    """``failed_after`` is how many of the steps were before the failure."""
    clock, store = FakeClock(NOW), MemoryStore()
    policies, origin = policy_store(store, clock), Origin(KEY)
    for number in range(len(steps) + 1):
        if number == failed_after:
            failed_at = clock.now
            origin = origin_after((DOWN[0], clock.steady()))
            await policies.save(origin, policies.entry(origin, DOWN[0]))
        clock.now += 20
        clock.set_forward += steps[number] if number < len(steps) else 0
    clock.now += 2 * DAY  # so that the next attempt is due, and no entry is from the future
    restored = Origin(KEY)
    restored.start_fetch(clock.steady())
    await policies.load(restored)
    assert restored.unreachable_since is not None
    assert restored.unreachable_since >= failed_at


@pytest.mark.parametrize("claimed", [True, False])
@pytest.mark.parametrize("event", [rules(NOW + 100, b"old"), DOWN[0]], ids=["rules", "down"])
async def test_a_refused_result_is_replaced_by_the_store(event: FetchResult, claimed: bool) -> None:
    """The crawler was stopped during its fetch, and another one fetched the file meanwhile.

    Or the store had failed when the file was claimed: then its entry is not newer, and no fetch is
    due.
    """
    store = MemoryStore()
    policies, origin = policy_store(store), Origin(KEY)
    later = origin_after((rules(NOW + 50), NOW - 50)).to_entry(BODY)
    await store.put(KEY, later, 7)
    origin.start_fetch(NOW)
    origin.apply(event, NOW)
    policies._loads[KEY] = Load(is_claimed=claimed, fence=6 if claimed else 0)
    await policies.save(origin, policies.entry(origin, event))
    assert await store.get(KEY) == later
    if not claimed:
        assert origin.next_action(NOW) is Action.NONE
        return
    assert origin.next_action(NOW) in (Action.REFRESH, Action.FETCH)
    origin.start_fetch(NOW)
    entry = await policies.load(origin)
    assert entry is not None
    origin.apply(entry, NOW)
    assert (entry.body, origin.state) == (BODY, State.FRESH)
    assert origin.content is not None
    assert not origin.content.allowed(f"{KEY}/", "mybot")
