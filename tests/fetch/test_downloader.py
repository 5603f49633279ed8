"""Downloads that take too long, on each event loop, and what errors mean, in words."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from OpenSSL import SSL
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet import error
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure
from twisted.web.client import ResponseFailed, ResponseNeverReceived

from scrapy_rep.fetch.downloader import MAX_LENGTH, in_words, raised_by, run_within
from scrapy_rep.frontier.clock import Clock, sleep
from scrapy_rep.frontier.fetch_limit import Permit

T = TypeVar("T")
LONG = 3600


def within(
    download: Coroutine[Any, Any, T],
    seconds: float = LONG,
    max_wait: float = 0,
    *,
    waiting: bool = False,
    permit: Permit | None = None,
) -> Coroutine[Any, Any, T]:
    return run_within(seconds, max_wait, download, Clock(), permit or Permit(), lambda: waiting)


async def test_the_result_and_the_error_are_those_of_the_download() -> None:
    async def give(value: int) -> int:
        await sleep(0)
        return 10 // value

    permit = Permit()
    assert await within(give(5), permit=permit) == 2
    assert permit.expire is None
    with pytest.raises(ZeroDivisionError):
        await within(give(0))


@pytest.mark.parametrize("by_itself", [True, False])
async def test_an_expired_download_ends_and_its_caller_goes_on(by_itself: bool) -> None:
    ends = []

    async def download() -> None:
        try:
            await sleep(LONG)
        finally:
            ends.append("ended")

    permit = Permit()

    async def expire() -> None:
        await sleep(0.01)
        if permit.expire is not None and not by_itself:
            permit.expire()

    expiring = deferred_from_coro(expire())
    with pytest.raises(TimeoutError) as raised:
        await within(download(), 0.05 if by_itself else LONG, permit=permit)
    assert in_words(raised.value) == "it took longer than REP_TIMEOUT"
    assert ends == ["ended"]
    await sleep(0.01)  # the caller is not cancelled
    await maybe_deferred_to_future(expiring)
    task = asyncio.current_task() if is_asyncio_available() else None
    if task is not None and hasattr(task, "cancelling"):
        assert not task.cancelling()


async def test_the_time_that_a_request_waits_for_its_host_does_not_count() -> None:
    with pytest.raises(TimeoutError):
        await within(sleep(LONG), 0.02, 0.05, waiting=True)
    await within(sleep(0.3), 0.02, LONG, waiting=True)


async def test_a_download_is_cancelled_with_its_caller() -> None:
    ends = []

    async def download() -> None:
        try:
            await sleep(LONG)
        except (asyncio.CancelledError, CancelledError) as cancelled:
            ends.append(type(cancelled).__name__)
            raise

    caller = deferred_from_coro(within(download()))
    await sleep(0.01)
    caller.cancel()
    with pytest.raises((asyncio.CancelledError, CancelledError)):
        await maybe_deferred_to_future(caller)
    assert ends == ["CancelledError"]


# Errors in words

REFUSED = "the connection was refused"
CLOSED = "the connection was closed before the response was complete"


def caused(outer: Exception, cause: Exception) -> Exception:
    outer.__cause__ = cause
    return outer


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (error.ConnectionRefusedError(), REFUSED),
        (ConnectionRefusedError(111, "Connect call failed"), REFUSED),
        (caused(OSError("all attempts failed"), ConnectionRefusedError()), REFUSED),
        (error.DNSLookupError("no results"), "the host name cannot be resolved"),
        (socket.gaierror(-2, "unknown"), "the host name cannot be resolved"),
        (error.TimeoutError(), "it took longer than REP_TIMEOUT"),
        (TimeoutError("Getting it took longer than 1 seconds"), "it took longer than REP_TIMEOUT"),
        (error.TCPTimedOutError(), "the connection timed out"),
        (ConnectionResetError(104, "reset"), CLOSED),
        (ResponseNeverReceived([Failure(error.ConnectionLost())]), CLOSED),
        (ResponseFailed([Failure(error.ConnectionDone())], None), CLOSED),
        (
            ResponseNeverReceived([Failure(SSL.Error([("SSL routines", "", "wrong version")]))]),
            "TLS failed: wrong version",
        ),
        (ssl.SSLCertVerificationError(1, "self-signed"), "TLS failed: self-signed"),
        (IgnoreRequest("not\nhere"), "IgnoreRequest: not here"),
        (ResponseNeverReceived([Failure(ValueError("odd"))]), "ValueError: odd"),
        (ZeroDivisionError(), "ZeroDivisionError: no reason given"),
    ],
)
def test_an_error_in_words(raised: Exception, words: str) -> None:
    assert in_words(raised) == words


def test_the_words_are_short_and_end() -> None:
    outer, inner = ValueError("x" * 1000), ValueError("y" * 1000)
    outer.__cause__, inner.__cause__ = inner, outer
    assert len(in_words(outer)) <= MAX_LENGTH


def test_the_class_that_raised_an_error_is_named() -> None:
    class Middleware:
        def process_request(self) -> None:
            raise IgnoreRequest

    def call() -> None:
        Middleware().process_request()

    def fail() -> None:
        raise IgnoreRequest

    names = []
    for raising in (call, fail):
        with pytest.raises(IgnoreRequest) as raised:
            raising()
        names.append(raised_by(raised.value))
    assert names == [f"{__name__}.{Middleware.__qualname__}", f"{__name__}.fail"]
    assert raised_by(IgnoreRequest()) == "A downloader middleware"
