"""The sentences of a report with a number or a judgment: where each is true, and where not."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.reports.answers import judged
from scrapy_rep.reports.pages import report_summary
from scrapy_rep.reports.records import Report, RunEvent
from testing.report_samples import SampleLog, fetched, log, report_of, sent

A, B = "https://a.example", "https://b.example"
ALLOWED = Verdict(True, Reason.RULES, None, "*")


def lines_of(report: Report) -> list[str]:
    """Return the sentences, which `test_page_and_terminal_say_the_same` compares with the page."""
    return [line.replace("\x1f", ": ", 1) for line in report_summary(report).splitlines()]


# The pace

Site = tuple[str, str, float]  # the origin, its records, the seconds between two requests


def paced(*sites: Site, number: int = 3, run_id: str = "run", **settings: Any) -> SampleLog:
    """Return the log of a crawl that applies what its settings make of the pace of the sites."""
    made = log(run_id, **settings)
    for key, pace, gap in sites:
        made.delay_of = lambda _: 0.0
        sent(made, f"{key}/robots.txt", is_robotstxt_request=True)
        origin = fetched(made, key, f"User-agent: *\n{pace}\n".encode())
        pacing, applied = None, 0.0
        if settings.get("REP_OBEY_RATE_LIMITS", True):
            pacing = origin.pacing(("mybot",))
            asked = pacing.seconds_between(made.clock.now) if pacing else 0
            applied = min(asked, made.run.max_crawl_delay or 0)
        made.delay_of = lambda _, applied=applied: applied  # type: ignore[misc]
        made.paced(origin, pace, applied)
        for page in range(number):
            made.clock.now += gap
            sent(made, f"{key}/{page}", ALLOWED)
    return made


def with_run(made: SampleLog, **changes: object) -> SampleLog:
    for name, value in changes.items():
        setattr(made.run, name, value)
    made._add(RunEvent(made.run))
    return made


SLOW, FAST = (A, "Crawl-delay: 50", 50.0), (A, "Crawl-delay: 50", 2.0)
OTHER, NONE = (B, "Crawl-delay: 1", 1.0), (B, "", 0.1)
LIMITED: Any = {"REP_MAX_CRAWL_DELAY": 2}
IGNORED: Any = {"REP_OBEY_RATE_LIMITS": False}
HIDDEN: Any = {"sent_is_known": False}
DAMAGED: Any = {"damage": "the disk did not take 3 events"}
BRIEF = (A, "Crawl-delay: 2", 0.5)

MAXIMUM = "asked for a longer delay than REP_MAX_CRAWL_DELAY (a.example: asked 50 s, kept 2 s)"
IGNORES = "gnored (REP_OBEY_RATE_LIMITS = False)"
VISIT = (A, "Visit-time: 0000-2359", 1.0)

PACE = [
    # a sentence, a crawl in which it is true, and one in which it is false
    ("Pace: Yes", paced(SLOW), paced(FAST, **LIMITED)),
    ("Pace: Yes", paced(OTHER, **LIMITED), paced(FAST, **IGNORED)),
    # slower than it had to be
    ("Pace: Yes", paced(SLOW, **LIMITED), paced(BRIEF)),
    ("Pace: Not known", with_run(paced(SLOW), **HIDDEN), paced(SLOW)),
    ("Pace: Not known", with_run(paced(NONE), **DAMAGED), with_run(paced(BRIEF), **DAMAGED)),
    (f"Pace: No: 1 of 2 hosts {MAXIMUM}", paced(FAST, OTHER, **LIMITED), paced(SLOW, OTHER)),
    (f"Pace: No: 1 of 1 host {MAXIMUM}", paced(FAST, NONE, **LIMITED), paced(SLOW, **LIMITED)),
    (f"Pace: No: i{IGNORES}, 2 sites asked", paced(FAST, OTHER, **IGNORED), paced(FAST, OTHER)),
    (f"Pace: I{IGNORES}, 1 site asked", paced(SLOW, NONE, **IGNORED), paced(FAST, **IGNORED)),
    (f"Pace: I{IGNORES}, 1 site asked", paced(VISIT, **IGNORED), paced(NONE, **IGNORED)),
    ("Pace: No, 2 gaps shorter than the delay that applied", paced(BRIEF), paced(SLOW)),
    ("Pace: No, 1 gap shorter than the delay that applied", paced(BRIEF, number=2), paced(BRIEF)),
    ("Pace: No site asked for one", paced(NONE), paced(FAST, **IGNORED)),
    ("Pace: Nothing to compare", paced((A, "Crawl-delay: 50", 1.0), number=1), paced(SLOW)),
    (": 1 site asked for a pace (Crawl-delay, Request-rate or Visit-time). The record has no two "
     "requests to one host to which a delay applied.", paced(VISIT), paced(NONE)),
    (": 2 hosts had a delay. Of 5 gaps between requests, 0 were shorter than the delay that "
     "applied, and 2 shorter than the site asked for.", paced(FAST, OTHER, **LIMITED),
     paced(SLOW, OTHER)),
    (": Fastest of these: 2 s to a.example, asked 50 s, applied 2 s.", paced(FAST, **LIMITED),
     paced(FAST, OTHER, **LIMITED)),
    (": Fastest of these: 2 s to a.example, asked 50 s, applied none.", paced(FAST, **IGNORED),
     paced(SLOW, **IGNORED)),
    (": Slowest of these, by the median: 2 s to a.example, asked 50 s, applied 2 s.",
     paced(FAST, OTHER, **LIMITED), paced(SLOW, OTHER)),
    (": a.example: asked 50 s, applied 2 s, smallest 2 s; of 2 gaps, 0 shorter than applied, 2 "
     "shorter than asked.", paced(FAST, **LIMITED), paced(SLOW, **LIMITED)),
    (": a.example: asked 2 s, applied 2 s, smallest 0.5 s; of 2 gaps, 2 shorter than applied, 2 "
     "shorter than asked.", paced(BRIEF), paced(SLOW)),
    (": Fastest without a delay: 0.1 s to b.example.", paced(NONE), paced(OTHER)),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "true", "false"), PACE)
def test_a_sentence_about_the_pace(sentence: str, true: SampleLog, false: SampleLog) -> None:
    assert sentence in lines_of(true.report())
    assert sentence not in lines_of(false.report())


def test_the_terms_of_a_host_are_two_numbers() -> None:
    report = paced(FAST, **LIMITED).report()
    (host,) = report.hosts
    assert (host.asked, host.applied, host.below_asked, host.below_applied) == (50, 2, 2, 0)
    (origin,) = report.origins
    assert origin.pace is not None
    assert (origin.pace.asked, origin.pace.applied) == (50, 2)
    assert lines_of(report)[-5].split("\x1f")[0].startswith("a.example: 50 s")


@pytest.mark.parametrize(
    ("made", "is_met"),
    [(paced(SLOW), True), (paced(FAST, **LIMITED), False), (paced(FAST, **IGNORED), False),
     (paced(SLOW, **IGNORED), None), (with_run(paced(SLOW), **DAMAGED), None)],
)  # fmt: skip
def test_the_judgment_of_the_practice(made: SampleLog, is_met: bool | None) -> None:
    assert judged(made.report())["speed"] is is_met


def test_a_delay_that_is_asked_for_later_does_not_make_earlier_requests_short() -> None:
    made = paced((A, "", 0.1))
    origin = fetched(made, A, b"User-agent: *\nCrawl-delay: 50\n")
    made.paced(origin, "Crawl-delay: 50", 50)
    made.delay_of = lambda _: 50.0
    for gap in (1, 50, 60):
        made.clock.now += gap
        sent(made, f"{A}/{gap}", ALLOWED)
    assert "Pace: Yes" in lines_of(made.report())
    made.clock.now += 1
    sent(made, f"{A}/brief", ALLOWED)
    assert "Pace: No, 1 gap shorter than the delay that applied" in lines_of(made.report())


def test_a_shorter_delay_for_another_reason_is_not_that_of_the_setting() -> None:
    made = with_run(paced(FAST, **LIMITED), max_crawl_delay=300)
    (line,) = (line for line in lines_of(made.report()) if line.startswith("Pace: "))
    assert line.startswith("Pace: No: 1 of 1 host asked for a longer delay than was applied (a.")


def test_one_run_of_two_ignores_the_pace() -> None:
    ignoring, obeying = paced(FAST, run_id="other", **IGNORED), paced(OTHER)
    report = report_of(ignoring, obeying)
    (line,) = (each for each in lines_of(report) if "gnored" in each)
    assert line == "Pace: No: ignored in 1 of 2 runs (REP_OBEY_RATE_LIMITS = False), 2 sites asked"


def test_hosts_with_short_gaps_are_in_a_report_whatever_else_is() -> None:
    made = paced(FAST, *((f"https://{n}.example", "", 0.1) for n in range(9)), **LIMITED)
    assert [host.host for host in made.report(origins=1).hosts] == ["a.example"]
