"""The soak: origins with all kinds of faults, the requests to them, and variants of a crawl.

:mod:`checks._soak_server` serves the origins, :mod:`checks._soak_worker` crawls them, and
:mod:`checks._soak_laws` judges the crawl.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from scrapy_rep.protocol.paths import host_of
from scrapy_rep.stores.entry import DICTIONARY, VERSION
from scrapy_rep.stores.sqlite import SQLiteStore
from testing.faults import (
    ALLOWED,
    DISALLOWED,
    HEAD,
    MEANINGS,
    PATHS,
    RULES,
    RULES_HOLD,
    ErrorFault,
    fault,
    length,
    raw,
    stall,
)
from testing.hostile import ATTACKS
from testing.web import Misbehaviour, Page, redirect, text

DAY = 86_400


# Variants of a crawl


class Variant(NamedTuple):
    """The circumstances of a crawl by one worker."""

    settings: dict[str, Any]
    clock: tuple[float, ...] = ()
    """Seconds by which the wall clock is wrong, for STEP_EVERY each, in a loop."""
    poisoned_store: bool = False
    errors: tuple[ErrorFault, ...] = ()

    @property
    def evicts(self) -> bool:
        """Whether a robots.txt may be fetched again because the cache had no room for it."""
        return "REP_CACHE_SIZE" in self.settings

    @property
    def has_store(self) -> bool:
        """Whether the crawl uses a store, a SQLite file."""
        return self.poisoned_store or bool(self.errors)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Step the clock, and inject the errors."""
        with ExitStack() as stack:
            if self.clock:
                clock = patch("scrapy_rep.clock.Clock.time", _stepping(self.clock))
                stack.enter_context(clock)
            for error in self.errors:
                stack.enter_context(error.injected())
            yield


_BY_PRIORITY = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
_BY_SLOT = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue"}
_SMALL = {"REP_CACHE_SIZE": 3, "REP_CONCURRENT_ROBOTSTXT_REQUESTS": 5}

_ERRORS = (
    ("scrapy_rep.fetch.fetcher.Fetcher._event", ValueError, 0.1, 1),
    ("scrapy_rep.fetch.fetcher.Fetcher._request", asyncio.CancelledError, 0.1, 2),
    ("scrapy_rep.fetch.fetches.Fetches._on_content", KeyError, 0.1, 3),
    ("scrapy_rep.stores.sqlite.SQLiteStore.get", TypeError, 0.2, 4),
    ("scrapy_rep.stores.sqlite.SQLiteStore.claim", ValueError, 0.2, 5),
    ("scrapy_rep.stores.sqlite.SQLiteStore.put", AttributeError, 0.2, 6),
    ("scrapy_rep.stores.sqlite.SQLiteStore.reserve_host", RuntimeError, 0.2, 7),
)
"""The function, the error, the part of the calls, and the seed of each."""

VARIANTS = {
    "by slot": Variant(_BY_SLOT),
    "by priority": Variant(_BY_PRIORITY),
    "small limits, by slot": Variant({**_SMALL, **_BY_SLOT}),
    "small limits, by priority": Variant({**_SMALL, **_BY_PRIORITY}),
    "a clock that steps": Variant({}, (0, 40 * DAY, -400 * DAY, 3600, -3600)),
    "a poisoned store": Variant({}, poisoned_store=True),
    "errors": Variant({}, errors=tuple(ErrorFault(*each) for each in _ERRORS)),
    # A store counts the thirty days of RFC 9309 §2.3.1.4 by the clock, so the steps are shorter.
    "everything": Variant({**_SMALL, **_BY_PRIORITY}, (0, 7200, -3600), poisoned_store=True),
}


STEP_EVERY = 0.7
"""Seconds."""

CLAIM_SECONDS = 8.0
"""For how long a worker that does not run has claimed a file."""


def _stepping(wrong_by: tuple[float, ...]) -> Callable[[object], float]:
    """Return a wall clock that is set again and again."""
    began = time.monotonic()

    def now(_: object) -> float:
        number = int((time.monotonic() - began) / STEP_EVERY)
        return time.time() + wrong_by[number % len(wrong_by)]

    return now


def poison(path: Path, roots: list[str], chance: random.Random) -> None:
    """Create a store with wrong entries, claims and reservations."""
    SQLiteStore(path, ttl=DAY).open()
    now = time.time()
    spans: list[tuple[Any, Any]] = [
        (now + 30 * DAY, now + 30 * DAY + CLAIM_SECONDS),
        (now, now + 30 * DAY),
        (now, 1e18),
        (now, "never"),
        ("yesterday", now + CLAIM_SECONDS),
    ]
    with sqlite3.connect(path) as db:
        for root in roots:
            db.execute(
                "INSERT INTO entries VALUES (?, ?, ?, 0)",
                (root, now, chance.choice(_bad_entries())),
            )
            # The last one is the claim of a crawler that does not run any more.
            claim = chance.choice([*spans, (now, now + CLAIM_SECONDS)])
            for name, span in ((root, claim), (host_of(root), chance.choice(spans))):
                lease = "INSERT OR IGNORE INTO leases VALUES (NULL, ?, 'other', ?, ?)"
                db.execute(lease, (name, *span))
    db.close()


def _bad_entries() -> list[bytes]:
    # Each of them, if it was used, would turn an allow into a disallow, or the reverse.
    return [
        b"",
        VERSION,
        VERSION + b"no entry",
        VERSION + bytes(1000),
        VERSION + zlib.compress(b'{"a":' * 10_000),
        _entry(refresh_at=1e18, expires_at=1e18),
        _entry(result="unavailable", refresh_at=1e18, expires_at=1e18),
        _entry(result="unreachable", refresh_at=1e18, expires_at=1e18),
        _entry(fetched_at=time.time() + 30 * DAY, expires_at=time.time() + 31 * DAY),
        _entry(expires_at="never"),
        _entry(expires_at=4e9, copy={"url": "https://a.example/", "etag": ["x"]}),
        _entry(copy={"url": "https://a.example/", "etag": '"1"\r\nX-Injected: 1'}),
    ]


def _entry(**fields: object) -> bytes:
    head = {"result": "rules", "fetched_at": time.time() - 9, "refresh_at": 0, **fields}
    deflate = zlib.compressobj(zdict=DICTIONARY)
    content = json.dumps(head).encode() + b"\nUser-agent: *\nDisallow: /public\n"
    return VERSION + deflate.compress(content) + deflate.flush()


# The origins


class Kind(NamedTuple):
    """The robots.txt of an origin, and its possible outcomes."""

    robots: Page | Misbehaviour
    meaning: str
    paths: tuple[str, ...] = ()
    """More pages to request. Rules disallow those that begin with /private."""
    delay: float = 0
    lifetime: float = 0
    """Seconds for which the robots.txt may be used. 0: longer than a crawl."""

    def allows(self, path: str) -> bool:
        """Whether the robots.txt allows a path."""
        if path == "/shared.txt" or self.meaning == ALLOWED:
            return True
        return self.meaning != DISALLOWED and not path.startswith("/private")


class Origin(NamedTuple):
    """An origin: its address and port, the name of its fault, and the pages that it has."""

    host: str
    port: int
    name: str
    kind: Kind
    pages: dict[str, Page | Misbehaviour]

    @property
    def root(self) -> str:
        return f"http://{self.host}:{self.port}"


class Mix(NamedTuple):
    """How many origins are of each kind."""

    hostile: int = 8
    """One of so many origins has hostile rules."""
    paced_hosts: int = 1
    """So many sites with a Crawl-delay have the rules of others, which redirect to them."""
    delay: float = 0.1
    """The Crawl-delay of the sites that have one, in seconds."""
    lifetime: float = 0
    """Seconds for which some of the good files may be used. 0: no file has a lifetime."""


GOOD = "has rules"
"""Return a robots.txt without a fault. Every third origin has one."""

BRIEF = "has rules that expire"
PACE = "asks for a pace"
PACED_HOST = "redirects to a paced host"
HOSTILE = tuple(f"has hostile rules: {name}" for name in ATTACKS)


def _kind(name: str, mix: Mix) -> Kind:
    if name == GOOD:
        return Kind(text(RULES), RULES_HOLD)
    if name == BRIEF:
        page = text(RULES, Cache_Control=f"max-age={mix.lifetime:.0f}", ETag='"1"')
        return Kind(page, RULES_HOLD, lifetime=mix.lifetime)
    if name == PACE:
        body = RULES + b"Crawl-delay: %g\n" % mix.delay
        return Kind(text(body), RULES_HOLD, delay=mix.delay)
    if name in HOSTILE:
        attack = ATTACKS[name.partition(": ")[2]]
        path = attack.url(2000).removeprefix("https://example.com")
        body = RULES + attack.body.partition(b"\n")[2]
        return Kind(text(body), RULES_HOLD, ("/private" + path, "/public" + path))
    return Kind(fault(name), MEANINGS[name])


def _name(number: int, chance: random.Random, mix: Mix) -> str:
    if mix.lifetime and number % 9 == 0:
        return BRIEF
    if number % 3 == 0:
        return GOOD
    if number % 8 == 1:
        return PACED_HOST
    if number % 8 == 2:
        return PACE
    return chance.choice(HOSTILE if number % mix.hostile == 4 else [*MEANINGS])


LARGE_MIX = Mix(hostile=48, paced_hosts=40, lifetime=12)
"""Few origins have hostile rules: each of their files takes up to a second to parse. A worker that
is killed keeps a paced host for 30 seconds, so there are many."""


def origins(count: int, seed: int, port: int, mix: Mix) -> list[Origin]:
    """Return so many origins, and some hosts with a delay. Each has an address of its own."""
    chance = random.Random(seed)
    paced = _kind(PACE, mix)
    kinds = {PACE: paced}  # each once: some of the files are large
    made = [
        Origin(f"127.0.0.{2 + number}", port, PACE, paced, {"/shared.txt": text(RULES)})
        for number in range(mix.paced_hosts)
    ]
    for number in range(count):
        name = _name(number, chance, mix)
        if name == PACED_HOST:
            target = f"{made[number % mix.paced_hosts].root}/shared.txt"
            kind = Kind(redirect(target), RULES_HOLD)
        else:
            kind = kinds.get(name) or kinds.setdefault(name, _kind(name, mix))
        host = f"127.{1 + number // 60_000}.{number // 250 % 240}.{1 + number % 250}"
        made.append(Origin(host, port, name, kind, {}))
    for origin in made:
        other = chance.choice(made)
        origin.pages["/robots.txt"] = origin.kind.robots
        origin.pages["/faulty"] = chance.choice(FAULTY)
        origin.pages["/moved"] = redirect(other.root + chance.choice(PATHS))
    return made


FAULTY: list[Page | Misbehaviour] = [
    Page(status=500),
    raw(b""),
    raw(HEAD, reset=True),
    raw(HEAD + length(b"four") + b"2"),
    stall(),
    redirect("/private"),
]

SPAN = 0.05
"""The part of the crawl in which most requests to an origin come."""

RETURNING = 0.05
"""The part of the requests to an origin that come at any time after it."""


def requests_to(made: list[Origin], seed: int, count: int | None = None) -> list[tuple[int, str]]:
    """Return so many requests: the number of the origin and the path of each.

    They come as a broad crawl finds them: those to an origin near to each other.
    """
    chance = random.Random(seed)
    found = [
        (number, path)
        for number, origin in enumerate(made)
        for path in (*PATHS, "/faulty", "/moved", *origin.kind.paths)
    ][:count]
    for number in range((count or 0) - len(found)):
        page, at = divmod(number, len(made))
        found.append((at, f"/{'public' if page % 2 else 'private'}/{page}"))
    begins = [chance.uniform(0, 1 - SPAN) for _ in made]
    times = []
    for at, _ in found:
        returns = chance.random() < RETURNING
        times.append(chance.uniform(begins[at], 1 if returns else begins[at] + SPAN))
    order = sorted(range(len(found)), key=times.__getitem__)
    return [found[number] for number in order]
