"""Which requests of the scheduler are dropped when they start."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request

from scrapy_rep.crawl.admission import AdmissionControl
from scrapy_rep.protocol.paths import origin_of
from scrapy_rep.scheduling.hosts import Limit, WaitingRequest

DEAD = "http://dead.example"


def admission(*, waits: bool = False, drops_new: bool = False) -> AdmissionControl:
    """Return a control for a crawl in which the site :data:`DEAD` disallows all."""
    stubs: dict[str, Any] = {
        "rendering": SimpleNamespace(origin=lambda request: origin_of(request.url)),
        "policy_cache": SimpleNamespace(
            disallows_all=lambda key: key == DEAD, origins={DEAD: None}
        ),
        "outages": SimpleNamespace(
            applies_to=lambda _: waits or drops_new, drops_new=lambda _: drops_new
        ),
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
        pytest.param(admission(drops_new=True), entry(f"{DEAD}/a"), True, id="waits too long"),
    ],
)
def test_whether_a_request_is_dropped_when_it_starts(
    control: AdmissionControl, waiting: WaitingRequest, expected: bool
) -> None:
    assert control.is_dropped(waiting) is expected
