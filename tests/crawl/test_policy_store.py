"""What an origin takes over from a store, and what it leaves there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings as ScrapySettings
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.crawl.policy_store import PolicyStore, StoreLookup
from scrapy_rep.origin import Action, Origin, State, UnreachablePolicy
from scrapy_rep.protocol.access import (
    AccessResult,
    Cancelled,
    CopyInfo,
    FetchResult,
    NotModified,
    Rules,
    Unavailable,
    Unreachable,
)
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.scheduling.clock import sleep
from scrapy_rep.settings import Settings
from scrapy_rep.stores.memory import MemoryStore

if TYPE_CHECKING:
    from scrapy_rep.stores import Entry

KEY = "https://a.example"
URL = f"{KEY}/robots.txt"
BODY = b"User-agent: *\nDisallow: /\n"
NOW = 1_000_000.0


def rules(expires_at: float, body: bytes = BODY) -> Rules:
    return Rules(RobotsTxt.parse(body), 200, CopyInfo(URL, '"1"'), expires_at, body)


def after(*happened: tuple[FetchResult, float]) -> Origin:
    """An origin to which these events came, at these times."""
    origin = Origin(KEY)
    for event, now in happened:
        origin.start_fetch(now)
        origin.apply(event, now)
    return origin


def recalled(origin: Origin, entry: Entry, now: float = NOW) -> bool:
    """What :meth:`Origin.recall` says when a fetch has begun."""
    origin.start_fetch(now)
    robots = None if entry.body is None else RobotsTxt.parse(entry.body)
    return origin.restore(entry, robots, now)


WEEK = 7 * 86_400.0
RULES = (rules(NOW + 100), NOW)
GONE = (Unavailable(URL, NOW + 100, 404), NOW)
DOWN = (Unreachable("status 503", 503, URL), NOW)


@pytest.mark.parametrize(
    ("history", "body"),
    [
        pytest.param([RULES], BODY, id="rules"),
        pytest.param([RULES, (NotModified(NOW + 200), NOW + 50)], BODY, id="a 304"),
        pytest.param([GONE], None, id="unavailable"),
        pytest.param([(Unavailable(URL, NOW + 100, 403, True), NOW)], None, id="refused"),
        pytest.param([DOWN], None, id="unreachable"),
        pytest.param([RULES, (DOWN[0], NOW + 200)], BODY, id="unreachable, with a copy"),
        pytest.param([DOWN, (DOWN[0], NOW + 70), (DOWN[0], NOW + 300)], None, id="three times"),
    ],
)
def test_what_is_recorded_is_recalled(
    history: list[tuple[FetchResult, float]], body: bytes | None
) -> None:
    origin = after(*history)
    other = Origin(KEY)
    now = history[-1][1] + 1
    assert recalled(other, origin.to_entry(body), now)
    assert other.next_action(now) is origin.next_action(now) is Action.NONE
    assert other.to_entry(body) == origin.to_entry(body)
    assert other.state is origin.state
    patience = UnreachablePolicy()
    for later in (now, now + 40 * 86_400):
        for path in ("/", "/robots.txt"):
            asked = (KEY + path, ("bot",), later, patience)
            assert other.verdict(*asked) == origin.verdict(*asked)


def test_a_copy_that_is_in_its_last_days_is_used_and_fetched_anew() -> None:
    entry = after((rules(NOW + 100), NOW)).to_entry(BODY)
    now = NOW + 95
    origin = Origin(KEY)
    assert recalled(origin, entry, now)
    assert origin.next_action(now) is Action.REFRESH
    assert not recalled(origin, entry, now), "nothing new"
    assert origin.state is State.FRESH
    assert not recalled(origin, after((rules(NOW + 102), NOW + 2)).to_entry(BODY), NOW + 99)
    newer = after((rules(NOW + 200), NOW + 96)).to_entry(BODY)
    assert recalled(origin, newer, now + 2)
    assert origin.next_action(now + 2) is Action.NONE


def test_somebody_elses_failure_does_away_with_no_copy_that_holds() -> None:
    origin = after((rules(NOW + 100), NOW))
    failed = after((DOWN[0], NOW + 95)).to_entry(None)
    assert recalled(origin, failed, NOW + 96)
    assert origin.state is State.FRESH
    assert origin.refresh_at == NOW + 100
    assert origin.robots is not None
    assert recalled(origin, failed, NOW + 100), "now it is the failure that settles it"
    assert origin.summary() == "rules of the last copy, for status 503"


def test_what_does_not_settle_is_the_history_of_the_fetch() -> None:
    origin = Origin(KEY)
    entry = after((rules(NOW), NOW - WEEK), (DOWN[0], NOW + 1)).to_entry(BODY)
    assert not recalled(origin, entry, NOW + 100)
    assert (origin.state, origin.failures, origin.copy) == (State.FETCHING, 1, CopyInfo(URL, '"1"'))
    origin.apply(DOWN[0], NOW + 100)
    assert (origin.failures, origin.unreachable_since) == (2, NOW + 1)
    assert origin.robots is not None


def test_a_4xx_elsewhere_does_away_with_our_copy() -> None:
    origin = after((rules(NOW + 100), NOW))
    assert recalled(origin, after((Unavailable(URL, NOW + 200, 404), NOW + 95)).to_entry(None))
    assert (origin.robots, origin.state) == (None, State.UNAVAILABLE)


# With a store


def recall(store: MemoryStore, now: float = NOW, **settings: Any) -> PolicyStore:
    class Stats:
        def inc_value(self, name: str) -> None:
            pass

    read = Settings.read(ScrapySettings(settings))
    return PolicyStore(store, read, Stats(), lambda: now)  # type: ignore[arg-type]


async def fetched(into: PolicyStore, origin: Origin, event: FetchResult) -> Entry | None:
    """Ask the store, then learn the event; what there is to keep."""
    found = StoreLookup()
    origin.start_fetch(NOW)
    await into.load(origin, found)
    assert not found.settled
    origin.apply(event, NOW)
    entry = None if isinstance(event, Cancelled) else into.entry(origin, event, found)
    await into.save(KEY, entry, found)
    return entry


async def test_a_304_is_kept_with_the_file_that_the_store_has() -> None:
    store = MemoryStore()
    await store.put(KEY, after((rules(NOW - 1), NOW - WEEK)).to_entry(BODY))
    entry = await fetched(recall(store), Origin(KEY), NotModified(NOW + 100))
    assert entry is not None
    assert (entry.body, entry.status) == (BODY, 304)
    assert await store.get(KEY) == entry


async def test_where_the_store_has_no_file_it_is_not_asked_about() -> None:
    store = MemoryStore()
    origin = after((rules(NOW - 1), NOW - WEEK))
    assert await fetched(recall(store), origin, DOWN[0]) is None, "half of what is known"
    assert await store.get(KEY) is None
    assert origin.copy is None or origin.copy.etag is None


async def test_a_file_that_is_older_than_ours_is_not_ours() -> None:
    store = MemoryStore()
    await store.put(KEY, after((rules(NOW - 9, b"old"), NOW - 2 * WEEK)).to_entry(b"old"))
    origin = after((rules(NOW - 1), NOW - WEEK))
    assert await fetched(recall(store), origin, DOWN[0]) is None
    assert origin.copy is None or origin.copy.etag is None


async def test_nothing_is_kept_of_a_fetch_that_was_given_up() -> None:
    store = MemoryStore()
    await fetched(recall(store), Origin(KEY), Cancelled())
    assert await store.get(KEY) is None


async def test_what_comes_between_two_questions_is_no_reason_to_fetch() -> None:
    """Somebody else's fetch ends after the store was asked, and before the origin is claimed."""
    released: list[str] = []

    class Late(MemoryStore):
        shared = True

        async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
            return True, after((rules(NOW + 100), NOW - 1)).to_entry(BODY)

        async def release(self, origin: str) -> None:
            released.append(origin)

    origin, found = Origin(KEY), StoreLookup()
    origin.start_fetch(NOW)
    await recall(Late()).load(origin, found)
    assert found.settled
    assert released == [KEY]
    assert origin.state is State.FRESH


class Claimed(MemoryStore):
    """What somebody else has claimed, and never releases."""

    shared = True

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    async def claim(self, origin: str, seconds: float) -> tuple[bool, Entry | None]:
        self.calls.append("claim")
        return False, None

    async def put(self, origin: str, entry: Entry) -> None:
        await sleep(0.1)
        self.calls.append("put")

    async def release(self, origin: str) -> None:
        await sleep(0.1)
        self.calls.append("release")

    async def close(self) -> None:
        self.calls.append("close")


async def test_nobody_waits_for_a_claim_for_longer_than_it_can_last() -> None:
    store, origin, found = Claimed(), Origin(KEY), StoreLookup()
    origin.start_fetch(NOW)
    await recall(store, REP_TIMEOUT=0.3, REP_RETRY_TIMES=0).load(origin, found)
    assert (found.settled, found.claimed) == (False, False)
    assert len(store.calls) > 2
    entry = await fetched(recall(store, REP_TIMEOUT=0.01, REP_RETRY_TIMES=0), Origin(KEY), RULES[0])
    assert entry is not None, "it is kept, whoever has claimed it"
    assert store.calls[-1] == "put"


@pytest.mark.parametrize("broken", [True, False])
async def test_what_is_being_kept_is_kept_before_the_store_closes(
    broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Claimed()
    if broken:

        async def put(origin: str, entry: Entry) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(store, "put", put)
    into = recall(store)
    keeping = deferred_from_coro(
        into.save(KEY, after(RULES).to_entry(BODY), StoreLookup(claimed=True))
    )
    failures: list[Any] = []
    keeping.addErrback(failures.append)
    await into.close()
    assert store.calls == ["put"] * (not broken) + ["release", "close"]
    await sleep(0.01)
    assert len(failures) == broken


async def test_a_store_closes_whatever_becomes_of_what_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrapy_rep.crawl.policy_store.CLOSE_LIMIT", 0.05)
    store = Claimed()
    into = recall(store)
    keeping = into.save(KEY, after(RULES).to_entry(BODY), StoreLookup())
    await into.close()
    assert store.calls == ["close"]
    with pytest.raises(StopIteration):  # and nothing is put any longer
        keeping.send(None)
    assert store.calls == ["close"]


async def test_what_a_fetch_has_claimed_that_never_ends_is_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrapy_rep.crawl.policy_store.CLAIM_CLOSE_LIMIT", 0.05)
    store, origin, found = Claimed(), Origin(KEY), StoreLookup()

    async def claim(origin: str, seconds: float) -> tuple[bool, Entry | None]:
        return True, None

    monkeypatch.setattr(store, "claim", claim)
    origin.start_fetch(NOW)
    into = recall(store)
    await into.load(origin, found)
    await into.close()
    assert store.calls == ["release", "close"]
    await into.save(KEY, after(RULES).to_entry(BODY), found)
    assert store.calls == ["release", "close"]


async def test_a_failure_is_not_older_than_the_clock_says() -> None:
    """The clock was set back between the first failure and the last."""
    store = MemoryStore()
    entry = after((DOWN[0], NOW - 100)).to_entry(None)
    await store.put(KEY, entry._replace(unreachable_since=NOW + WEEK))
    origin = Origin(KEY)
    await fetched(recall(store), origin, DOWN[0])
    assert origin.unreachable_since == NOW - 100


@pytest.mark.parametrize(("retries", "seconds"), [(0, 30), (2, 93), (10, 633), (200, 3600)])
def test_a_claim_lasts_as_long_as_a_fetch_may(retries: int, seconds: float) -> None:
    assert recall(MemoryStore(), REP_RETRY_TIMES=retries)._claim_seconds == seconds


def test_kinds_have_names() -> None:
    assert str(AccessResult.RULES) == "rules"
