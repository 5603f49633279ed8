"""What this package uses and Scrapy does not promise, with a test for each (:data:`INTERNALS`).

:meth:`Engine.open` checks the attributes of the engine when a crawl starts, and logs one warning of
those that are missing. Only ``total_concurrency`` is changed, while robots.txt files are fetched
and while requests wait in the downloader. Nothing of Scrapy is replaced.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from hashlib import md5
from itertools import chain
from math import inf
from operator import attrgetter
from time import time
from traceback import walk_tb
from typing import Any, NamedTuple

import scrapy
from pydispatch.dispatcher import getAllReceivers, liveReceivers  # type: ignore[import-untyped]
from scrapy import Request
from scrapy.core import downloader
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.python import global_object_name

from .logs import get_logger

logger = get_logger(__name__)

INTERNALS = {
    "engine._slot": (
        "a request that becomes ready starts up to 5 s later, a crawl that is stopped ends only "
        "when no request waits, and a queue in Redis does not wait for callbacks"
    ),
    "engine.downloader.active": "a host with a delay may stay busy after a request is dropped",
    "engine.downloader.slots": (
        "crawlers that share a store do not share a delay of their own, the wait for "
        "DOWNLOAD_DELAY is a part of REP_TIMEOUT, and neither a back-off, nor a robots.txt or a "
        "local rule that is new, holds for requests that wait for it"
    ),
    "engine.downloader.total_concurrency": (
        "robots.txt files, and requests that wait in the downloader, occupy CONCURRENT_REQUESTS "
        "slots"
    ),
    "request_reached_downloader": "the wait for DOWNLOAD_DELAY is a part of REP_TIMEOUT",
    "cached_response": "an old response of Scrapy's HTTP cache replaces a failure",
    "_auth_proxy": "a proxy may get the credentials of another, and no_proxy may be ignored",
    "Response.__init__": "other middlewares get robots.txt files of any size",
    "method": "the log does not name what has stopped a robots.txt: a middleware or signal handler",
    "crawler.spider": "in Scrapy 2.14, scrapy crawl exits with 0 if a setting is unusable",
    "requests.queue": "a crawl stopped with one of Scrapy's queues does not continue with ours",
    "handle_httpstatus_all": "REP_NOINDEX drops no files of media pipelines",
}
"""What Scrapy does not promise, and what happens without it."""

ATTRIBUTES = {
    **{f"engine._slot.{name}": "engine._slot" for name in ("nextcall", "closing", "inprogress")},
    **{name: name for name in INTERNALS if name.startswith("engine.downloader.")},
}
"""The attributes that are checked when a crawl starts, and what they are in the list."""

WATCH_INTERVAL = 0.5
"""Seconds between two checks for what Scrapy has no signal: whether the spider closes, and whether
another middleware has dropped a request."""

MAX_EXTRA = 1000
"""How many requests may wait or be sent beyond CONCURRENT_REQUESTS. Without a limit, a scheduler
that does not know which requests may start would be read into memory."""

MAX_WAITING_BYTES = 5_000_000
"""Bytes of responses that may wait beyond CONCURRENT_REQUESTS. Scrapy's
SCRAPER_SLOT_MAX_ACTIVE_SIZE has the same value."""

MIN_RESPONSE_BYTES = 1024
"""Bytes that a smaller response counts as. Scrapy's scraper uses the same number."""


class Engine:
    """The engine and the downloader of one crawl, as this package uses them."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._engine: Any = None  # before open() is called, nothing is used
        self._downloader: Any = None
        self.extra: dict[Request, int] = {}
        """The requests that do not occupy CONCURRENT_REQUESTS slots, each with the bytes of its
        response if that waits."""
        self._limit = self._enlarged = 0
        """CONCURRENT_REQUESTS, and the limit with the requests in ``extra``."""

    def open(self) -> None:
        """Check the attributes. Log one warning about those that are missing."""
        self._engine = getattr(self._crawler, "engine", None)
        self._downloader = getattr(self._engine, "downloader", None)
        missing = {path: INTERNALS[name] for path, name in ATTRIBUTES.items()}
        for path in ATTRIBUTES:
            with suppress(AttributeError):
                attrgetter(path)(self._crawler)
                del missing[path]
        if missing:
            names = "; ".join(f"{path} ({effect})" for path, effect in missing.items())
            logger.warning(
                "The engine or the downloader of this crawl differs from those of Scrapy 2.14 to "
                "2.19 (this is %(version)s). Missing: %(missing)s.",
                {"version": scrapy.__version__, "missing": names},
                extra={"spider": self._crawler.spider},
            )

    def wake(self) -> None:
        """Schedule the next step of the engine, which takes requests from the scheduler."""
        slot = getattr(self._engine, "_slot", None)  # None after the spider has closed
        nextcall = getattr(slot, "nextcall", None)
        if nextcall is not None and not self.is_closing:
            nextcall.schedule()

    @property
    def is_closing(self) -> bool:
        """Whether the spider closes. The engine then waits until all downloads have ended."""
        return getattr(getattr(self._engine, "_slot", None), "closing", None) is not None

    @property
    def active(self) -> Collection[Request]:
        """The requests that the downloader has, at whatever stage; empty if it does not say."""
        return getattr(self._downloader, "active", ())

    def is_active(self, request: Request) -> bool:
        """Whether the downloader has a request, at whatever stage; True if it does not say."""
        return request in getattr(self._downloader, "active", (request,))

    def seconds_unsent(self, request: Request) -> float:
        """Return the seconds until the next look at a request; 0 if it has left its download slot.

        Infinity means that it has not reached the slot: other middlewares have it.
        """
        slots = getattr(self._downloader, "slots", None)
        if slots is None:
            return 0
        slot = slots.get(request.meta.get("download_slot"))
        if slot is None or request not in slot.active:
            return inf
        if request in slot.transferring:
            return 0
        # The next request is not late: it waits for at least half of a delay that Scrapy varies.
        return max(float(slot.delay) / 4, 0.005)

    def has_ended(self, request: Request) -> bool:
        """Whether the callback or errback of a request has run, with all that it yielded.

        If the engine does not say, a request ends when the downloader no longer has it.
        """
        slot = getattr(self._engine, "_slot", None)
        return request not in getattr(slot, "inprogress", self.active)

    def active_in(self, slot: str) -> int:
        """Return how many requests a download slot has; 0 if it is not known."""
        found = getattr(self._downloader, "slots", {}).get(slot)
        return 0 if found is None else len(found.active)

    def own_delay_left(self, slot: str) -> float:
        """Return the seconds until a download slot may send a request, as Scrapy varies its delay.

        0 if that is not known.
        """
        found = getattr(self._downloader, "slots", {}).get(slot)
        if found is None:
            return 0
        now = getattr(downloader, "monotonic", time)()  # the clock of lastseen, by the version
        return max(float(found.lastseen + found.download_delay() - now), 0)

    def waits_in_slot(self, request: Request) -> bool:
        return 0 < self.seconds_unsent(request) < inf

    def exclude(self, request: Request, response: Response | None = None) -> bool:
        """Stop counting a request in CONCURRENT_REQUESTS. Returns whether this call has done so.

        ``response`` is its response if that waits: many bytes must not.
        """
        size = 0 if response is None else max(len(response.body), MIN_RESPONSE_BYTES)
        has_room = len(self.extra) < MAX_EXTRA
        has_room = has_room and (not size or sum(self.extra.values()) < MAX_WAITING_BYTES)
        if request in self.extra or not has_room:
            return False
        self.extra[request] = size
        self._set_capacity()
        self.wake()
        return True

    def include(self, request: Request) -> None:
        """End what :meth:`exclude` began."""
        self.extra.pop(request, None)
        self._set_capacity()

    def _set_capacity(self) -> None:
        limit = getattr(self._downloader, "total_concurrency", 0)
        if limit != self._enlarged:  # the crawl itself has set it
            self._limit = limit
        if self._limit > 0:  # 0 means no limit
            self._enlarged = self._downloader.total_concurrency = self._limit + len(self.extra)


def forget_cached_response(request: Request) -> None:
    """Keep Scrapy's HTTP cache from answering a request that it lets pass."""
    request.meta.pop("cached_response", None)


def is_of_media_pipeline(request: Request) -> bool:
    """Whether a media pipeline makes a request, and not another caller of the engine."""
    keys = ("handle_httpstatus_all", "handle_httpstatus_list")
    return request.callback is NO_CALLBACK and any(key in request.meta for key in keys)


def proxy_keys(page: Request) -> set[str]:
    """Return the keys of meta with which another request uses the proxy of a page."""
    # Scrapy reads that of the environment again.
    return set() if page.meta.get("_scheme_proxy") else {"proxy", "_auth_proxy"}


def set_body(response: Response, body: bytes) -> None:
    """Replace the body of a response in place: a signal handler cannot return a new response."""
    # Not its encoding: to read it would decode the whole body. It is detected when it is needed.
    names = set(response.attributes) - {"body", "encoding"}
    values = {name: getattr(response, name) for name in names}
    type(response).__init__(response, body=body, **values)


def middleware_that_raised(error: BaseException) -> str | None:
    """Return the import path of the downloader middleware that raised an error.

    None if the download raised it. The traceback has the frames of Scrapy's middleware manager,
    whose ``method`` is the one that it called last, and those of the downloader that it calls.
    """
    method = None
    for frame, _ in walk_tb(error.__traceback__):
        match frame.f_globals.get("__name__"):
            case "scrapy.core.downloader.middleware":
                method = frame.f_locals.get("method", method)
            case "scrapy.core.downloader":
                method = None
    return None if method is None else import_path(getattr(method, "__self__", method))


def receivers(crawler: Crawler, signals: Iterable[object]) -> list[Any]:
    """Return the handlers of some signals of a crawl, which are those of PyDispatcher."""
    connected = (getAllReceivers(crawler.signals.sender, signal) for signal in signals)
    return [*chain.from_iterable(map(liveReceivers, connected))]


def import_path(component: object) -> str:
    """Return the import path of a function or a class, or of the class of an object."""
    is_named = hasattr(component, "__qualname__")
    return global_object_name(component if is_named else type(component))


def note_failure(crawler: Crawler) -> None:
    """Let ``scrapy crawl`` exit with 1: in Scrapy 2.14, a crawl has failed if it has no spider."""
    crawler.spider = None


class Bucket(NamedTuple):
    """The requests of one negated priority. ``str`` is their directory. Lower ones come first."""

    priority: int
    is_start: bool

    def __str__(self) -> str:
        return f"{self.priority}{'s' if self.is_start else ''}"

    @classmethod
    def from_text(cls, text: str) -> Bucket:
        """Return the bucket of a directory. Raises ValueError if it has none."""
        return cls(int(text.removesuffix("s")), text.endswith("s"))


def directory_of(name: str) -> str:
    """Return the name of the directory for a host, as DownloaderAwarePriorityQueue has it."""
    safe = "".join(each if each.isalnum() or each in "-._" else "_" for each in name)
    return f"{safe}-{md5(name.encode(), usedforsecurity=False).hexdigest()}"


_is_bucket = re.compile("-?[0-9]+s?").fullmatch


def stored_buckets(key: str, state: Any) -> dict[str, list[Bucket]]:
    """Return the buckets in JOBDIR by the name of the host, an empty one for all hosts together.

    They are those of the directories: the state may be older, or damaged. A directory that it does
    not have gets the name of its hash.
    """
    names = state if isinstance(state, Mapping) else ()  # ScrapyPriorityQueue has a list
    directories = {directory_of(name): name for name in names if name}
    for each in _files_in(key):
        if each not in directories and not _is_bucket(each) and os.path.isdir(f"{key}/{each}"):
            name = each[-32:]
            os.rename(f"{key}/{each}", f"{key}/{directory_of(name)}")
            directories[directory_of(name)] = name
    found = {name: _files_in(f"{key}/{directory}") for directory, name in directories.items()}
    found[""] = _files_in(key)
    return {
        name: [*map(Bucket.from_text, filter(_is_bucket, files))] for name, files in found.items()
    }


def _files_in(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def state_of(buckets: Mapping[str, Iterable[Bucket]]) -> dict[str, list[int]]:
    """Return what Scrapy's scheduler keeps in JOBDIR: the priorities, by the name of the host."""
    return {name: list({each.priority for each in own}) for name, own in buckets.items()}
