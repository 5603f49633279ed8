"""Which requests of the scheduler are dropped when they start."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request

from scrapy_rep.crawl.admission import AdmissionControl
from scrapy_rep.crawl.outages import Outages
from scrapy_rep.protocol.paths import origin_of
from scrapy_rep.scheduling.hosts import Limit, WaitingRequest

DEAD = "http://dead.example"


def admission(*, waits: bool = False) -> AdmissionControl:
    """Return a control for a crawl in which the site :data:`DEAD` disallows all."""
    stubs: dict[str, Any] = {
        "rendering": SimpleNamespace(origin=lambda request: origin_of(request.url)),
        "policy_cache": SimpleNamespace(
            disallows_all=lambda key: key == DEAD, origins={DEAD: None}
        ),
        "outages": SimpleNamespace(makes_wait=lambda _: waits),
        "throttle": None,
        "wait_stats": None,
    }
    return AdmissionControl(**stubs)


def entry(url: str, limit: Limit | None = None, **meta: Any) -> WaitingRequest:
    return WaitingRequest((0, 0), Request(url, meta=meta), limit=limit)


@pytest.mark.parametrize(
    ("control", "waiting", "expected"),
    [
        (admission(), entry(f"{DEAD}/a"), True),
        (admission(), entry("http://live.example/"), False),
        (admission(), entry("data:,"), False),
        pytest.param(admission(), entry(f"{DEAD}/a", dont_obey_robotstxt=True), False, id="exempt"),
        pytest.param(admission(waits=True), entry(f"{DEAD}/a"), False, id="waits"),
        pytest.param(admission(waits=True), entry(f"{DEAD}/a", Limit.NUMBER), True, id="overdue"),
    ],
)
def test_whether_a_request_is_dropped_when_it_starts(
    control: AdmissionControl, waiting: WaitingRequest, expected: bool
) -> None:
    assert control.is_dropped(waiting) is expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(None, False), (0, True), (60, True), (61, False)]
)
def test_a_new_request_waits_unless_the_next_attempt_is_too_late(
    seconds: float | None, expected: bool
) -> None:
    stubs: dict[str, Any] = {
        "crawler": SimpleNamespace(stats={}),
        "settings": SimpleNamespace(unreachable="wait", max_wait=60),
        "unreachable_policy": None,
        "throttle": None,
        "policy_cache": SimpleNamespace(now=lambda: 0),
        "is_excepted": None,
    }
    origin: Any = SimpleNamespace(next_attempt=lambda *_: seconds)
    assert Outages(**stubs).makes_wait(origin) is expected
