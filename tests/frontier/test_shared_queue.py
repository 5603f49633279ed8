"""What workers tell a real Redis server, and hear. Nothing of Scrapy takes part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ConnectionError as LostConnection

from scrapy_rep.frontier import shared_queue
from scrapy_rep.frontier.shared_queue import (
    MAX_PUSHED,
    MAX_RETURNED,
    Answer,
    Push,
    SharedQueue,
    State,
    Wanted,
)
from testing.redis_server import RedisServer

A, B = "a.example", "b.example"
PREFIX = "{spider:requests}:1:"

Start = Callable[..., Any]


class LossyClient:
    """A client that blocks, with the methods of one that does not. It loses some replies."""

    def __init__(self, server: RedisServer) -> None:
        self.client = server.client
        self.loses = 0

    async def evalsha(self, *arguments: Any) -> Any:
        reply = self.client.evalsha(*arguments)
        if self.loses:
            self.loses -= 1
            raise LostConnection
        return reply

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any) -> Any:
            return getattr(self.client, name)(*arguments)

        return call


@pytest.fixture
def redis(redis_server: RedisServer) -> Iterator[Any]:
    """A client of the server."""
    with redis_server.client as client:
        yield client


@pytest.fixture
def start(redis_server: RedisServer) -> Iterator[Start]:
    """Starts workers of one queue, which push a request for each character, and lease all."""
    clients = []

    async def worker(texts: str = "", *, server: RedisServer = redis_server) -> Any:
        clients.append(LossyClient(server))
        queue = SharedQueue(clients[-1], "", "spider:requests")
        await queue.open()
        if texts:
            push(queue, A, *texts)
            assert bodies(await lease(queue)) == {A: [*texts]}
        return queue

    yield worker
    for each in clients:
        each.client.close()


def push(queue: SharedQueue, host: str, *texts: str, priority: int = 0, new: bool = False) -> None:
    """Push requests, whose fingerprints and bodies are these texts."""
    for text in texts:
        queue.push(Push(text.encode(), host, new, priority, text.encode()))


async def lease(queue: SharedQueue, requests: int = 100, new: int = 100, **more: int) -> Answer:
    hosts = {name.replace("_", "."): number for name, number in more.items()}
    answer = await queue.call(Wanted(requests, new, 0, hosts))
    assert answer.state is State.OK
    return answer


def bodies(answer: Answer) -> dict[str, list[str]]:
    return {host: [body.decode() for _, body in found] for host, found in answer.leased.items()}


def names(answer: Answer) -> list[bytes]:
    return [name for found in answer.leased.values() for name, _ in found]


async def test_requests_come_by_priority_and_then_by_age(start: Start) -> None:
    one = await start()
    push(one, A, "1", "2")
    push(one, A, "first", priority=10)
    push(one, A, "last", priority=-10)
    push(one, A, *(str(number) for number in range(3, 15)))
    assert bodies(await lease(one)) == {A: ["first", "1", "2", "3", "4", "5", "6", "7"]}


async def test_a_host_belongs_to_one_worker_for_a_turn(start: Start) -> None:
    one, other = await start(), await start()
    push(one, A, *"12345678", "9", "10")
    push(one, B, "b")
    assert bodies(await lease(one, 1)) == {A: [*"12345678"]}
    assert bodies(await lease(other)) == {B: ["b"]}
    push(other, A, "11")
    assert bodies(await lease(other)) == {}
    assert bodies(await lease(one, 0, a_example=1)) == {A: ["9"]}
    one.release(A, 0, 0)
    await lease(one, 0)
    assert bodies(await lease(other, 0, a_example=1)) == {}
    assert bodies(await lease(other)) == {A: ["10", "11"]}


async def test_one_request_of_a_new_or_paced_host_is_leased(start: Start) -> None:
    one = await start()
    push(one, A, "1", "2", new=True)
    assert bodies(await lease(one, new=0)) == {}
    assert bodies(await lease(one)) == {A: ["1"]}
    one.release(A, 0, 60)
    await lease(one, 0)
    push(one, A, "3")
    assert bodies(await lease(one)) == {A: ["2"]}
    one.release(A, 0, 0)
    push(one, A, "4")
    await lease(one, 0)
    assert bodies(await lease(one)) == {A: ["3", "4"]}


async def test_a_released_host_keeps_its_delay(start: Start) -> None:
    one, other = await start("12"), await start()
    one.release(A, 3600, 3600)
    await lease(one)
    push(other, A, "3")
    answer = await lease(other)
    assert bodies(answer) == {}
    assert 3500 < answer.seconds <= 3600
    assert await other.reserve(A) > 3500


async def test_links_are_filtered_for_all_workers(start: Start) -> None:
    one, other = await start(), await start()
    push(one, A, "1", "2")
    await lease(one, 0)
    push(other, A, "2", "3")
    other.push(Push(b"", A, False, 0, b"2"))
    answer = await lease(other, 0)
    assert (answer.pushed, answer.filtered) == (3, 1)
    assert bodies(await lease(one)) == {A: ["1", "2", "3", "2"]}


async def test_a_lost_reply_changes_nothing(start: Start) -> None:
    one = await start()
    push(one, A, *"123")
    one.client.loses = 2
    for _ in range(2):
        with pytest.raises(LostConnection):
            await lease(one)
    push(one, A, "4")
    answer = await lease(one)
    assert bodies(answer) == {A: [*"123"]}
    assert one.kept == 1
    for name in names(answer):
        one.acknowledge(name)
    one.client.loses = 1
    with pytest.raises(LostConnection):
        await lease(one)
    await lease(one, 0)
    assert one.sizes.all == 1


async def test_a_page_is_acknowledged_with_its_links_or_later(start: Start) -> None:
    one = await start()
    push(one, A, "page")
    (name,) = names(await lease(one))
    push(one, B, *(f"link {number}" for number in range(MAX_PUSHED + 1)))
    one.acknowledge(name)
    await lease(one, 0)
    assert one.sizes.all == 1 + MAX_PUSHED
    await lease(one, 0)
    assert (one.sizes.all, one.kept) == (MAX_PUSHED + 1, 0)


async def test_requests_without_a_host_belong_to_no_worker(start: Start) -> None:
    one, other = await start(), await start()
    push(one, "", "1")
    push(other, "", "2", priority=1)
    await lease(one)
    await lease(other)
    answer = await one.call(Wanted(more={"": 1}))
    assert bodies(answer) == {"": ["2"]}
    assert bodies(await other.call(Wanted(more={"": 5}))) == {"": ["1"]}


async def test_a_worker_that_died_is_replaced(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_queue, "LEASE", 0.05)
    dead, other = await start(), await start()
    push(dead, A, "1", "2")
    push(dead, B, "3")
    await lease(dead)
    dead.release(B, 3600, 3600)
    await lease(dead, 0)
    answer = await lease(other)
    while not answer.dead:
        answer = await lease(other)
    assert answer.dead == dead.worker
    assert await other.recover(dead.worker) == (3, 0)
    assert bodies(await lease(other)) == {A: ["1", "2"]}
    push(dead, A, "4")
    assert (await dead.call(Wanted(100))).state is State.EXPIRED
    await dead.open()
    await lease(dead, 0)
    assert dead.sizes.all == 4


async def test_a_worker_that_lives_is_not_replaced(start: Start) -> None:
    one, other = await start("1"), await start()
    assert await other.recover(one.worker) == (0, 0)
    assert bodies(await lease(other)) == {}


async def test_an_outage_is_not_the_death_of_workers(
    start: Start, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_queue, "LEASE", 0.01)
    one, other = await start(), await start()
    await lease(one)
    monkeypatch.setattr(shared_queue, "LEASE", 30)
    redis.hset(f"{PREFIX}counts", mapping={"back": 0, "called": 1})
    assert (await lease(other)).dead == ""
    redis.hset(f"{PREFIX}counts", "back", 0)
    answer = await lease(other)
    while not answer.dead:  # its lease is short
        answer = await lease(other)
    assert answer.dead == one.worker


async def test_a_request_that_kills_its_workers_fails(
    start: Start, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_queue, "LEASE", 0.001)
    one = await start()
    push(one, A, "deadly")
    counts = []
    for _ in range(MAX_RETURNED + 1):
        assert bodies(await lease(one)) == {A: ["deadly"]}
        other = await start()
        while (count := await other.recover(one.worker)) == (0, 0):  # its lease has not ended
            pass
        counts.append(count)
        one = other
    assert counts == [(1, 0)] * MAX_RETURNED + [(0, 1)]
    assert redis.lrange(f"{PREFIX}failed", 0, -1) == [b"deadly"]
    assert redis.hlen(f"{PREFIX}bodies") == redis.hlen(f"{PREFIX}tries") == 0


async def test_a_recovered_host_keeps_its_delay(start: Start) -> None:
    one, other = await start("12"), await start()
    one.release(A, 0, 3600)
    await lease(one, 0)
    push(one, A, "3")
    assert bodies(await lease(one)) == {A: ["3"]}
    await one.recover()
    assert bodies(await lease(other)) == {}


async def test_redis_that_was_flushed_is_noticed(start: Start, redis: Any) -> None:
    one = await start("1")
    redis.flushall()
    assert (await one.call(Wanted(1))).state is State.LOST
    await start()  # another worker begins again
    assert (await one.call(Wanted(1))).state is State.LOST


async def test_an_older_redis_gets_the_last_requests_again(start: Start, tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    try:
        one = await start(server=server)
        push(one, A, "1")
        (name,) = names(await lease(one))
        with server.client as client:
            client.save()
        one.acknowledge(name)
        push(one, A, "2")
        await lease(one, 0)
        push(one, A, "3")
        server.kill()
        server.start()
        answer = await one.call(Wanted(100))
        assert (answer.state, answer.repeated, answer.is_whole) == (State.BEHIND, 1, True)
        assert await one.recover() == (1, 0)
        await one.open()
        other = await start(server=server)
        await one.postpone([(B, 3600, 60)])
        push(other, B, "4", "5")
        for worker in (one, other):  # others may have more to say
            assert bodies(await lease(worker)) == {}
        with server.client as client:
            client.hset(f"{PREFIX}counts", "resumed", 0)  # as if that time had passed
        assert bodies(await lease(one)) == {A: ["1", "2", "3"]}
        assert await other.reserve(B) > 3500
        server.kill()  # older than this worker
        server.start()
        with server.client as client:
            client.delete(f"{PREFIX}w:{one.worker}")
            client.zrem(f"{PREFIX}workers", one.worker)
        assert (await one.call(Wanted(100))).state is State.BEHIND
    finally:
        server.kill()


async def test_what_is_too_old_cannot_be_pushed_again(
    start: Start, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_queue, "MAX_REPEATED", MAX_PUSHED)
    one = await start()
    for text in "123":
        push(one, A, text)
        await lease(one, 0)
    redis.hset(f"{PREFIX}w:{one.worker}", "#seq", 1)
    answer = await one.call(Wanted())
    assert (answer.state, answer.repeated, answer.is_whole) == (State.BEHIND, 1, False)


async def test_an_operator_holds_a_host(start: Start) -> None:
    one, other = await start("12"), await start()
    await other.run("hold", A, 3_600_000, "they asked us")
    answer = await lease(one, 0)
    assert one.held == {A}
    one.give_back(names(answer))
    one.release(A, 0, 0)
    push(other, B, "3")
    await other.run("hold", B, 3_600_000, "")
    for worker in (one, other):
        assert bodies(await lease(worker)) == {}
        assert await worker.reserve(A) > 3500
    await other.run("hold", A, 0, "")
    answer = await lease(other)
    assert bodies(answer) == {}  # one has it
    assert other.held == {B}


async def test_an_operator_drops_requests(start: Start) -> None:
    one = await start()
    push(one, A, "1", "2", "3")
    await lease(one, 0)
    assert await one.run("drop", A, 2) == 2
    assert await one.run("drop", B, 2) == 0
    assert bodies(await lease(one)) == {A: ["3"]}
    assert one.sizes.all == 1


async def test_the_last_worker_deletes_the_queue(start: Start, redis: Any) -> None:
    one, other = await start("1"), await start()
    await one.close(persist=False)
    assert bodies(await lease(other)) == {A: ["1"]}
    await other.close(persist=True)
    last = await start()
    assert bodies(await lease(last)) == {A: ["1"]}
    await last.close(persist=False)
    assert redis.keys() == []


@pytest.mark.parametrize("kind", ["zset", "list", "version"])
async def test_requests_of_others_are_counted(start: Start, redis: Any, kind: str) -> None:
    one = await start()
    assert await one.foreign_requests() == 0
    if kind == "zset":
        redis.zadd("spider:requests", {"1": 0, "2": 0})
    elif kind == "list":
        redis.rpush("spider:requests", 1, 2)
    else:
        redis.hset("{spider:requests}:2:bodies", mapping={"1": "", "2": ""})
    assert await one.foreign_requests() == 2


async def test_a_queue_that_waits_for_redis_is_full(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await start()
    monkeypatch.setattr(shared_queue, "MAX_KEPT", 3)
    push(one, A, "1", "2")
    assert not one.is_full
    push(one, A, "3")
    assert one.is_full
    await lease(one)
    assert not one.is_full
    monkeypatch.setattr(shared_queue, "MAX_KEPT_BYTES", 10)
    push(one, A, "a text that is long")
    assert one.is_full
