"""Listening on loopback, answering, and recording what was asked for."""

# Twisted's web server has no annotations.
# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import errno
import resource
import socket
import time
from typing import TYPE_CHECKING, cast

from twisted.internet import reactor as installed_reactor
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET
from twisted.web.server import Site as HTTPFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from twisted.internet.base import DelayedCall
    from twisted.internet.posixbase import PosixReactorBase
    from twisted.python.failure import Failure
    from twisted.web.http import Request

    from example.web.sites import Answer, Site

# Below the range that Linux gives to outgoing connections (32768 and above).
PORTS = range(18080, 19080, 10)
BACKLOG = 256
# Open files beside the listening sockets: accepted connections, pipes, the event loop's own.
SPARE_FILES = 256

reactor = cast("PosixReactorBase", installed_reactor)


class WebError(Exception):
    """The web cannot be served on this machine; the message says why."""


def listen(sites_on: Callable[[int], Sequence[Site]]) -> tuple[int, Record]:
    """Serve `sites_on(port)` on the first port that is free on all their addresses.

    Returns the port, and the record of the requests to come. Raises WebError.
    """
    for port in PORTS:
        sites = sites_on(port)
        _raise_open_files(len(sites) + SPARE_FILES)
        sockets = _bind(sites)
        if sockets is None:
            continue
        record = Record(sites)
        factory = HTTPFactory(record)
        for listening in sockets:
            reactor.adoptStreamPort(listening.fileno(), socket.AF_INET, factory)
            listening.close()  # the reactor works with its own copy
        return port, record
    raise WebError(f"no free port between {PORTS.start} and {PORTS.stop}")


class Record(Resource):
    """Answers for all sites and keeps, in order, the URL and the time of every request received."""

    isLeaf = True  # noqa: N815 (Twisted's name)

    def __init__(self, sites: Iterable[Site]) -> None:
        super().__init__()
        self.received: list[tuple[str, float]] = []
        self._sites = {(site.address, site.port): site for site in sites}

    def render(self, request: Request) -> int:
        local = request.getHost()
        site = self._sites[local.host, local.port]
        path = request.uri.decode("latin-1")
        self.received.append((site.origin + path, time.monotonic()))
        answer = site.answer(path)
        if answer.delay is not None:
            timer = reactor.callLater(answer.delay, _send, request, answer)
            # A client that hangs up before does not get an answer.
            request.notifyFinish().addErrback(_cancel, timer)
        return NOT_DONE_YET


def _cancel(_: Failure, timer: DelayedCall) -> None:
    if timer.active():
        timer.cancel()


def _send(request: Request, answer: Answer) -> None:
    request.setResponseCode(answer.status)
    request.setHeader(b"content-type", answer.content_type.encode())
    request.setHeader(b"content-length", str(len(answer.body)).encode())
    # A crawl of thousands of origins would else keep a connection open to each.
    request.setHeader(b"connection", b"close")
    for name, value in answer.headers.items():
        request.setHeader(name.encode(), value.encode())
    if answer.location is not None:
        request.setHeader(b"location", answer.location.encode())
    channel = request.channel
    request.write(answer.body)
    request.finish()
    channel.loseConnection()


def _bind(sites: Iterable[Site]) -> list[socket.socket] | None:
    """A listening socket for each site, or None if one of the ports is taken."""
    with contextlib.ExitStack() as opened:
        sockets = []
        for site in sites:
            listening = opened.enter_context(socket.socket())
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.setblocking(False)
            try:
                listening.bind((site.address, site.port))
                listening.listen(BACKLOG)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return None
                raise WebError(f"cannot listen on {site.origin}: {error.strerror}") from error
            sockets.append(listening)
        opened.pop_all()
        return sockets


def _raise_open_files(needed: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise WebError(
            f"{needed} open files are needed, and no more than {hard} are allowed here"
            " (`ulimit -Hn`): serve fewer files"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def run() -> None:
    """Serve until `stop`."""
    reactor.run()


def stop() -> None:
    """End `run`; may be called from any thread."""
    reactor.callFromThread(reactor.stop)
