"""What ``checks/workers.py`` finds in the requests that sites have received."""

from types import SimpleNamespace
from typing import Any

import pytest

from checks import workers
from checks._worker_site import Kind, Received

HOSTS = {"plain": Kind(), "paced": Kind(delay=1), "late": Kind(robots=[503, 200])}
PAGES = [
    Received("plain", "/robots.txt", 0, 0.1, "w0", 200),
    Received("plain", "/1", 0.2, 0.3, "w0", 200),
    Received("paced", "/1", 0.2, 0.3, "w0", 200),
    Received("paced", "/2", 1.3, 1.4, "w1", 200),
    Received("late", "/robots.txt", 0, 0.1, "w0", 503),
    Received("late", "/robots.txt", 0.2, 0.3, "w0", 200),
]


def judged(*received: Received, **values: Any) -> dict[str, float]:
    """Return the figures that exceed their limit."""
    sites = {host: SimpleNamespace(kind=kind) for host, kind in HOSTS.items()}
    crawl: Any = SimpleNamespace(
        sites=SimpleNamespace(received=received, by_host=sites),
        expected={("plain", "/1"), ("paced", "/1"), ("paced", "/2")},
        reason="finished",
        twice=0,
        excused=[],
        silent=None,
    )
    vars(crawl).update(values)
    rows = [*workers._pages(crawl), *workers._politeness(crawl)]
    return {row.name: row.figure for row in rows if not row.ok}


def plain(path: str, start: float = 9, end: float = 10, status: int = 200) -> Received:
    return Received("plain", path, start, end, "w1", status)


def test_a_crawl_in_order_breaks_no_limit() -> None:
    assert judged(*PAGES) == {}


@pytest.mark.parametrize(
    ("received", "broken"),
    [
        ([plain("/1")], {"requested again": 1}),
        ([plain("/private/1")], {"disallowed and requested": 1}),
        ([plain("/robots.txt")], {"robots.txt requested again": 1}),
        ([Received("paced", "/404", 2.3, 2.4, "w1", 404)], {"below their Crawl-delay": 1}),
        ([plain("/404", 9 + n / 100, 10, 404) for n in range(9)], {"at once to a host": 9}),
        ([plain("/7", 9, 9.1, 429), plain("/7", 12.5, 12.6)], {"within a Retry-After": 1}),
    ],
)
def test_each_limit_is_seen(received: list[Received], broken: dict[str, float]) -> None:
    assert judged(*PAGES, *received) == broken


def test_a_page_that_was_only_refused_is_lost() -> None:
    refused = plain("/1", 0.2, 0.3, 429)
    assert judged(*(refused if each == PAGES[1] else each for each in PAGES)) == {
        "never requested": 1
    }


def test_an_event_excuses_what_its_worker_does_not_finish() -> None:
    again = [plain("/1"), plain("/robots.txt")]
    assert judged(*PAGES, *again, twice=1, excused=[(-1, 1, "w0")]) == {}
    assert judged(*PAGES, *again, twice=1, excused=[(-1, 1, "w1")]) == {
        "robots.txt requested again": 1
    }


def test_a_worker_that_stood_still_sends_nothing_before_redis_answers() -> None:
    own = [plain(f"/404/{number}", 20 + number / 10, 20 + number / 10, 404) for number in range(17)]
    assert judged(*PAGES, *own, silent=(19, 23, "w1")) == {"requested before it had renewed": 17}
    assert judged(*PAGES, *own, silent=(19, 23, "w0")) == {}
