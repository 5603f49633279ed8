"""The judge of the soak: each broken law is reported."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from testing.faults import DISALLOWED, RULES_HOLD
from testing.soak import Kind, Origin
from testing.soak_laws import Crawl, Kill, Outage, broken_laws
from testing.soak_server import LATENESS, Records
from testing.soak_worker import StoreFailure
from testing.web import Page

A = "http://127.0.0.1:80"
RULES = Kind(Page(), RULES_HOLD)
BRIEF = Kind(Page(), RULES_HOLD, lifetime=10)
PACED = Kind(Page(), RULES_HOLD, delay=2)
SILENT = Kind(Page(), DISALLOWED)
HOSTILE = Kind(Page(), RULES_HOLD, paths=("/private/aaa", "/public/aaa"))

PATHS = ("/private", "/public", "/faulty", "/private/aaa", "/public/aaa")


@dataclass
class Seen:
    """A crawl of one origin, with two requests that ended as they should."""

    kind: Kind = RULES
    ends: dict[int, str] = field(default_factory=lambda: {0: "d", 1: "r", 2: "e", 3: "d", 4: "r"})
    fetches: list[tuple[float, str]] = field(default_factory=lambda: [(100.0, "1")])
    pages: list[tuple[float, str]] = field(default_factory=list)
    failures: tuple[StoreFailure, ...] = ()
    kills: tuple[Kill, ...] = ()
    faults: tuple[Outage, ...] = ()
    problems: tuple[str, ...] = ()

    def broken(self) -> dict[str, int]:
        """Return how often each law is broken, without those that hold."""
        records = Records()
        for at, worker in self.fetches:
            records.fetched(A, at, worker)
        for at, path in self.pages:
            records.received(A, self.kind, path, at)
        crawl = Crawl(
            [Origin("127.0.0.1", 80, "is tested", self.kind, {})],
            [(0, path) for path in PATHS],
            self.ends,
            records.as_json(),
            {},
            self.failures,
            self.kills,
            self.faults,
            self.problems,
        )
        laws, _ = broken_laws(crawl)
        return {law: len(cases) for law, cases in laws.items() if cases}


ENDS = {0: "d", 1: "r", 2: "e", 3: "d", 4: "r"}
OUTAGE = Outage(began=104, ended=108, is_loss=False)
LOSS = Outage(began=110, ended=112, is_loss=True)
AGAIN = [(100.0, "1"), (115.0, "2")]
AFTER_A_MINUTE = [(100.0, "1"), (161.0, "2")]

LAWFUL: dict[str, Seen] = {
    "nothing happened": Seen(),
    "the robots.txt is unreachable": Seen(SILENT, {**ENDS, 0: "u", 1: "u", 2: "u", 3: "u", 4: "u"}),
    "a hostile rule disallows a hostile path": Seen(HOSTILE, {**ENDS, 4: "d"}),
    "fetched again after its lifetime": Seen(BRIEF, fetches=[(100.0, "1"), (109.0, "2")]),
    "fetched again after a minute, since it is unreachable": Seen(
        SILENT, dict.fromkeys(range(5), "u"), AFTER_A_MINUTE
    ),
    "fetched again, since its worker was killed": Seen(fetches=AGAIN, kills=(Kill(101, "1"),)),
    "fetched again while the store was out of order": Seen(fetches=[(100.0, "1"), (105.0, "2")],
                                                           faults=(OUTAGE,)),
    "fetched again after the store was emptied": Seen(fetches=AGAIN, faults=(LOSS,)),
    "a page just after the delay": Seen(PACED, pages=[(101, "/public/1"), (103, "/public/3")]),
    "the store failed while it was out of order": Seen(
        failures=(StoreFailure(105, "timeout"),), faults=(OUTAGE,)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAWFUL)
def test_what_has_a_reason_breaks_no_law(name: str) -> None:
    assert LAWFUL[name].broken() == {}


NOT_ENDED = "requests that have not ended"
DISOBEYED = "disallowed requests that ended otherwise"
DROPPED = "allowed requests dropped without reason"
RECEIVED = "disallowed pages that servers received"
UNASKED = "pages received before a robots.txt was"
EXPIRED = "pages received after it had expired"
EARLY = "pages received too early for the delay"
REPEATED = "robots.txt fetched again without reason"
FAILED = "store failures outside of a fault"
PROBLEMS = "problems of workers and of the store"

UNLAWFUL: dict[str, tuple[Seen, str]] = {
    "a request is lost": (Seen(ends={0: "d", 1: "r", 2: "e", 3: "d"}), NOT_ENDED),
    "a disallowed request has a response": (Seen(ends={**ENDS, 0: "r"}), DISOBEYED),
    "an allowed request is dropped": (Seen(ends={**ENDS, 1: "d"}), DROPPED),
    "a server receives a disallowed page": (Seen(pages=[(101, "/private/7")]), RECEIVED),
    "nobody has requested the robots.txt": (Seen(fetches=[], pages=[(101, "/public/7")]), UNASKED),
    "the lifetime was over": (Seen(BRIEF, pages=[(110.1 + LATENESS, "/public")]), EXPIRED),
    "the delay was not over": (
        Seen(PACED, pages=[(101, "/public/1"), (102.9, "/public/3")]), EARLY),
    "each worker fetches": (Seen(fetches=AGAIN), REPEATED),
    "an unreachable one is fetched too soon": (
        Seen(SILENT, dict.fromkeys(range(5), "u"), AGAIN), REPEATED),
    "the worker was killed before": (Seen(fetches=AGAIN, kills=(Kill(99, "1"),)), REPEATED),
    "the store was out of order between": (Seen(fetches=AGAIN, faults=(OUTAGE,)), REPEATED),
    "the store fails without a fault": (
        Seen(failures=(StoreFailure(109, "timeout"),), faults=(OUTAGE,)), FAILED),
    "a worker reports a counter": (Seen(problems=("1 are left: waiting",)), PROBLEMS),
}  # fmt: skip


@pytest.mark.parametrize("name", UNLAWFUL)
def test_each_broken_law_is_reported(name: str) -> None:
    seen, law = UNLAWFUL[name]
    assert seen.broken() == {law: 1}
