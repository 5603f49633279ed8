"""The sentences of a report with a number or a judgment: where each is true, and where not."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from parsel import Selector
from scrapy import Request
from scrapy.http import Response

from scrapy_rep.pages.directives import AccessTerms, PageDirectives
from scrapy_rep.protocol.access import FetchResult, Unavailable, Unreachable
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from scrapy_rep.reports.pages import report_page, report_summary
from scrapy_rep.reports.records import Report, RunEvent
from testing.report_samples import START, SampleLog, fetched, log, report_of, sent

A, B = "https://a.example", "https://b.example"
ALLOWED = Verdict(True, Reason.RULES, None, "*")


def lines_of(report: Report) -> list[str]:
    """Return the sentences, which `test_page_and_terminal_say_the_same` compares with the page."""
    sentences, *_ = report_summary(report).split("\n\n")
    return [line.replace("\x1f", ": ", 1) for line in sentences.splitlines()]


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
    # the other one was slower than it had to be
    (f"Pace: No: 2 of 2 hosts {MAXIMUM}", paced(FAST, (B, *SLOW[1:]), **LIMITED),
     paced(FAST, OTHER, **LIMITED)),
    (f"Pace: No: 1 of 1 host {MAXIMUM}".replace("kept", "smallest gap"),
     with_run(paced(FAST, **LIMITED), **HIDDEN), paced(FAST, **LIMITED)),
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
    (": Slowest of these, by the median: 2 s to a.example, asked 50 s, applied none.",
     paced(FAST, **IGNORED), paced(FAST, **LIMITED)),
    (": a.example: asked 50 s, applied none, smallest 2 s; of 2 gaps, 0 shorter than applied, 2 "
     "shorter than asked.", paced(FAST, **IGNORED), paced(FAST, **LIMITED)),
    (": a.example: asked 2 s, applied 2 s, smallest 0.5 s; of 2 gaps, 2 shorter than applied, 2 "
     "shorter than asked.", paced(BRIEF), paced(SLOW)),
    (": Fastest without a delay: 0.1 s to b.example.", paced(NONE), paced(OTHER)),
    (": Two requests to b.example started within 1 ms, which broke no delay.",
     paced((B, "", 0.0)), paced(NONE)),
    (": Two requests to b.example started within 1 ms, which broke a delay.",
     paced((B, "Crawl-delay: 1", 0.0)), paced((B, "Crawl-delay: 0.0005", 0.0006))),
    (": Two requests to b.example started within 1 ms, which broke no delay.",
     paced((B, "Crawl-delay: 0.0005", 0.0006)), paced((B, "Crawl-delay: 1", 0.0))),
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
    assert "\na.example\x1f50 s\x1f2 s\x1f2 s\x1f" in report_summary(report)


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


# Exceptions

FORBIDDEN = Verdict(False, Reason.RULES, Rule(False, "/a", 2), "*")
DENYING, ALLOWING = b"User-agent: *\nDisallow: /a\n", b"User-agent: *\nDisallow: /b\n"
EXEMPT: Any = {"dont_obey_robotstxt": True}


def excepted(given: str = "they agreed (legal@a.example)", number: int = 1) -> SampleLog:
    made = log()
    for _ in range(number):
        request = Request(
            f"{A}/a", meta={"robotstxt": Verdict(True, Reason.LOCAL_RULE, detail=given)}
        )
        made.sent(request, 0, FORBIDDEN)
    return made


def exempt(
    before: bytes | None = None, after: bytes | None = None, *, waits: float = 10, path: str = "/a"
) -> SampleLog:
    """Return the log of an exempt request, and of a robots.txt that was not in memory then."""
    made = log()
    if before is not None:
        fetched(made, A, before)
        made.clock.now += waits
    sent(made, A + path, **EXEMPT)
    made.clock.now += 5_580  # to 10:03
    if after is not None:
        fetched(made, A, after)
    return made


def in_memory(verdict: Verdict) -> SampleLog:
    made = log()
    made.sent(Request(f"{A}/a", meta=EXEMPT), 0, verdict)
    return made


def after_an_answer(event: FetchResult) -> SampleLog:
    made = exempt()
    fetched(made, A, event=event)
    return made


LATER = "by a robots.txt fetched after the request"
UNKNOWN = "of which no robots.txt is known"
BY_SPIDER = "Disallowed: No, except 1 request with dont_obey_robotstxt"
IT_ALLOWS = ": 1 request had dont_obey_robotstxt, and the robots.txt of the site allows it."
RULE = (
    f": 1 request to {A}, with dont_obey_robotstxt. Rule of the site: Disallow: /a, line 2, group *"
)
AGREED = "they agreed (legal@a.example)"
LOCAL = f": 1 request to {A}, allowed by a local rule"
DENIED = "Rule of the site: Disallow: /a, line 2, group *."
ALLOWS_IT = (
    f": 1 request to {A}, with dont_obey_robotstxt. Rule of the site: its robots.txt allows it"
)
NONE_EXEMPT = ": The record has no request that was exempt from the rules of its site."
GONE = Unavailable(f"{A}/robots.txt", START + 9_000, 410)

EXCEPTIONS = [
    ("Disallowed: No", in_memory(ALLOWED), in_memory(FORBIDDEN)),
    ("Disallowed: No", exempt(None, ALLOWING), exempt(None, DENYING)),
    ("Disallowed: No", after_an_answer(GONE), after_an_answer(Unreachable("reset"))),
    ("Disallowed: No, except 1 request under an exception by legal@a.example", excepted(),
     excepted(number=2)),
    (f"{LOCAL} (we (may) (x)). {DENIED} URL: {A}/a", excepted("we (may) (x)"), excepted()),
    (f"{LOCAL} ({AGREED}). {DENIED} URL: {A}/a", excepted(), in_memory(FORBIDDEN)),
    (f": 2 requests{LOCAL[11:]} ({AGREED}). {DENIED} Such as: {A}/a", excepted(number=2),
     excepted()),
    (f": 2 requests{LOCAL[11:]} (we (may) (x)). {DENIED} Such as: {A}/a",
     excepted("we (may) (x)", number=2), excepted(number=2)),
    (f"{ALLOWS_IT}. URL: {A}/a", exempt(ALLOWING), exempt(DENYING)),
    (f"{ALLOWS_IT}, by the robots.txt of 2026-11-22 10:03:00 UTC, fetched after the request. "
     f"URL: {A}/a", exempt(None, ALLOWING), exempt(ALLOWING)),
    (": Sent: 1 request for pages, 1 exempt; and 0 requests for robots.txt files.", exempt(),
     excepted()),
    (NONE_EXEMPT, paced(NONE), exempt()),
    ("Left out: 1 robots.txt file without the text, which is too long or one of too many. The "
     "totals are complete.", exempt(None, b"# " + b"x" * 20_000), exempt(None, DENYING)),
    ("Disallowed: No, except 2 requests under an exception by legal@a.example", excepted(number=2),
     excepted("we (may) (x)", number=2)),
    ("Disallowed: No, except 1 request under an exception by we (may) (x)",
     excepted("we (may) (x)"), excepted()),
    (BY_SPIDER, in_memory(FORBIDDEN), in_memory(ALLOWED)),
    (BY_SPIDER, exempt(DENYING), exempt(ALLOWING)),
    (BY_SPIDER, exempt(DENYING, ALLOWING), exempt(ALLOWING, DENYING)),
    (f"{BY_SPIDER}, {LATER}", exempt(None, DENYING), exempt(DENYING)),
    # the file had expired
    (f"{BY_SPIDER}, {LATER}", exempt(ALLOWING, DENYING, waits=4_000), exempt(ALLOWING, DENYING)),
    (f"{BY_SPIDER}, {UNKNOWN}", exempt(), exempt(None, DENYING)),
    (f"{BY_SPIDER}, {UNKNOWN}", exempt(None, b"# " + b"x" * 20_000), exempt(None, b"# x")),
    (f"{BY_SPIDER}, {UNKNOWN}", exempt(DENYING, path="/a" * 200), exempt(DENYING, path="/a" * 9)),
    (f"{BY_SPIDER}, {UNKNOWN}", after_an_answer(Unreachable("reset")), after_an_answer(GONE)),
    (IT_ALLOWS, exempt(ALLOWING), exempt(DENYING)),
    (IT_ALLOWS, exempt(None, ALLOWING), exempt()),
    (f"{RULE}, by the robots.txt of 2026-11-22 10:03:00 UTC, fetched after the request. URL: {A}/a",
     exempt(None, DENYING), exempt(DENYING)),
    (f"{RULE}. URL: {A}/a", exempt(DENYING), exempt(None, DENYING)),
    (f": 1 request to {A}, with dont_obey_robotstxt. Rule of the site: not known, the record has "
     f"no robots.txt to judge by. URL: {A}/a", exempt(), exempt(DENYING)),
    ("Exceptions: Yes", exempt(ALLOWING), paced(NONE)),
    ("Exceptions: Yes", excepted(), paced(NONE)),
    ("Exceptions: No", paced(NONE), with_run(paced(NONE), **HIDDEN)),
    ("Exceptions: Not known", with_run(paced(NONE), **HIDDEN), paced(NONE)),
    (": 3 requests were sent after a verdict that allows them.", paced(NONE), excepted(number=3)),
    (": 1 request was sent after a verdict that allows it.", paced(NONE, number=1),
     exempt(DENYING)),
    (": Sent: 1 request for pages, 1 under an exception; and 0 requests for robots.txt files.",
     excepted(), exempt()),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "true", "false"), EXCEPTIONS)
def test_a_sentence_about_exceptions(sentence: str, true: SampleLog, false: SampleLog) -> None:
    assert sentence in lines_of(true.report())
    assert sentence not in lines_of(false.report())


def test_exempt_requests_are_counted_apart_by_the_file_that_judges_them() -> None:
    made = exempt(None, DENYING)  # one before the file
    for path in ("/a/1", "/a/2", "/b"):
        sent(made, A + path, **EXEMPT)
    sent(made, f"{B}/a", **EXEMPT)
    counts = made.report().totals
    assert (counts.sent, counts.sent_exempt, counts.excepted) == (5, 5, 4)
    assert (counts.exempt_disallowed, counts.exempt_disallowed_later) == (2, 1)
    assert counts.exempt_not_known == 1
    (answer,) = (line for line in lines_of(made.report()) if line.startswith("Disallowed: "))
    assert answer == (
        "Disallowed: No, except 2 requests with dont_obey_robotstxt; 1 request with "
        f"dont_obey_robotstxt, {LATER}; 1 request with dont_obey_robotstxt, {UNKNOWN}"
    )


def test_the_answer_leads_to_the_exceptions_in_amber() -> None:
    page = Selector(report_page(excepted().report()))
    (answer,) = page.css("#disallowed > .answer")
    assert answer.attrib["class"] == "answer warn"
    target = answer.css("a::attr(href)").get("")
    assert "legal@a.example" in page.css(f"{target} p:last-of-type").get("")
    assert not Selector(report_page(paced(NONE).report())).css(".answer a")


# What was sent and what was not, sites, pages, and the record itself


def events(*calls: Callable[[SampleLog], object]) -> SampleLog:
    made = log()
    for call in calls:
        call(made)
    return made


def dropped(reason: Reason, detail: str | None = None) -> Callable[[SampleLog], object]:
    return lambda made: made.disallowed(f"{A}/a", Verdict(False, reason, detail=detail))


def waited(kind: str, seconds: float) -> Callable[[SampleLog], object]:
    return lambda made: made.waited(A, kind, seconds)


def one(made: SampleLog) -> object:
    return sent(made, f"{A}/1", ALLOWED)


def down(made: SampleLog) -> object:
    return fetched(made, A, event=Unreachable("status 503", 503, f"{A}/robots.txt"))


def gone(made: SampleLog) -> object:
    return fetched(made, A, event=GONE)


def up(made: SampleLog) -> object:
    made.clock.now += 4_000
    return fetched(made, A)


def ended(made: SampleLog) -> None:
    made.end({}, "finished")


def unwatched(made: SampleLog) -> object:
    return with_run(made, **HIDDEN)


def noindex(made: SampleLog) -> None:
    made.page(f"{A}/1", PageDirectives(noindex=True), {"train-ai": False, "search": True})


def terms(made: SampleLog) -> None:
    required = AccessTerms(payment_required=True, price="USD 1")
    made.page(f"{A}/1", PageDirectives(access_terms=required, licenses=(f"{A}/rsl.xml",)), {})


def unsaved(made: SampleLog) -> None:
    made.page_dropped(f"{A}/1", ["noindex"])


def refused(status: int, origin: str = A, verdict: Verdict = ALLOWED) -> Callable[..., None]:
    request = Request(f"{origin}/1", meta={"robotstxt": verdict})
    return lambda made: made.answered(Response(request.url, status), request)


def changed(**changes: object) -> Callable[[SampleLog], object]:
    return lambda made: with_run(made, **changes)


def later(seconds: float) -> Callable[[SampleLog], None]:
    return lambda made: setattr(made.clock, "now", made.clock.now + seconds)


IGNORING = changed(
    settings={"REP_BACKOFF": "False"},
    downloads={"response_status_count/503": 2, "response_status_count/429": 1},
)
OBEYING = changed(downloads={"response_status_count/503": 2, "response_status_count/500": 2})
FAILED = changed(
    settings={"REP_BACKOFF": "False"},
    downloads={"response_status_count/500": 1, "response_status_count/404": 1},
)
TRAINING = changed(settings={"REP_INTENDED_USES": "['train-ai', 'search']"})
NAMED = changed(scrapy_settings={"USER_AGENT": "mybot (+https://bot.example/about)"})
FILED = changed(log="a.events.gz", log_sha256="a" * 64)
ARCHIVED = changed(archive="a.warc.gz")
CACHED, DUMMY, OFF = (
    changed(scrapy_settings={"HTTPCACHE_ENABLED": enabled, "HTTPCACHE_POLICY": f"x.{policy}"})
    for enabled, policy in (("1", "RFC2616Policy"), ("1", "DummyPolicy"), ("", "RFC2616Policy"))
)
METHODS = "Practice: Met: pages are requested with GET (2.3). Requests by method: GET: 4."
POSTED = "Practice: Not met: pages are requested with GET (2.3). Requests by method: POST: 1."
GOT = changed(downloads={"request_method_count/GET": 4})
POSTING = changed(downloads={"request_method_count/POST": 1})
WAITED = (
    ": Requests waited 1 time for the pace of a site (2 s in total), and 0 times for a robots.txt "
    "(0 s)."
)
TO_ONE = ": Sent: 1 request for pages, 1 allowed; and 0 requests for robots.txt files."
USES = ": Items are dropped where a page refuses train-ai, search (REP_INTENDED_USES)."
NO_USES = ": The crawl does not state its uses, so a refused use drops nothing (REP_INTENDED_USES)."
SENT_NONE = ": Sent: 0 requests for pages; and 0 requests for robots.txt files."
OTHER_SPIDER = changed(spider="other")
SERVER = f": Allowed by robots.txt and refused by the server: 1 site with status 403. Such as: {A}"
TWO = SERVER.replace("403", "402, 1 site with status 403").replace(A, f"{B}, {A}")
CLOSED = f": 1 site was closed: the robots.txt disallowed all requests. Such as: {A}"
CACHE = ": Met: caching directives of robots.txt files are supported (2.4), within REP_TTL_RANGE. "
FINAL = (
    ": 1 response came from disallowed URLs, because a browser or a download handler followed a "
    "redirect."
)
UNSENT = ": 1 request was not sent because a robots.txt was unreachable."
broken = partial(sent, url=f"{A}/a", verdict=FORBIDDEN)
unchecked = partial(sent, url=f"{A}/a")
RULES, VISIT_TIME = dropped(Reason.RULES), dropped(Reason.VISIT_TIME)
LOST = dropped(Reason.UNREACHABLE, "status 503")


def redirected(made: SampleLog) -> None:
    made.disallowed(f"{A}/a", FORBIDDEN, was_sent=True)


OTHERS = [
    ("Disallowed: Yes, 1", events(one, broken), events(one)),
    ("Disallowed: Yes, 2", events(broken, redirected), events(broken)),
    ("Disallowed: Yes, 1", with_run(events(broken), **HIDDEN), with_run(events(one), **HIDDEN)),
    ("Disallowed: Not known", events(unchecked), events(broken)),
    ("Disallowed: Not known", with_run(excepted(), **HIDDEN), excepted()),
    (": Exceptions: 1 request under an exception by legal@a.example.",
     with_run(excepted(), **HIDDEN), excepted()),
    ("Disallowed: Not known", with_run(log(), **DAMAGED), log()),
    (": 1 request went to disallowed URLs.", events(broken), events(redirected)),
    (FINAL, events(redirected), events(broken)),
    (f": 1 by Disallow: /a, such as {A}/a", events(broken), events(one)),
    (f": 1 request was sent without a check, such as {A}/a", events(unchecked), events(one)),
    (": The record does not show each request that was sent.", events(one, unwatched), events(one)),
    (": By the record of the crawl itself.", events(one, ended), events(one)),
    (": By the record of the crawl itself, up to its last entry.", events(one), events(one, ended)),
    ("Who: sample", events(one), events(OTHER_SPIDER)),
    ("Who: other", events(OTHER_SPIDER), events(one)),
    (": 1 run of other, 2026-11-22 08:30:00 UTC to 2026-11-22 08:30:00 UTC", events(OTHER_SPIDER),
     events(one)),
    (SENT_NONE, events(), events(one)),
    (SENT_NONE.replace("0", "at least 0", 1), events(unwatched), events()),
    (": Sent: 2 requests for pages, 1 allowed, 1 disallowed; and 0 requests for robots.txt files.",
     events(one, broken), events(one)),
    (": What for: not stated (REP_INTENDED_USES).", events(one), events(TRAINING)),
    (": What for: train-ai, search", events(TRAINING), events(one)),
    (": mybot; no contact", events(one), events(NAMED)),
    (": mybot (+https://bot.example/about); contact: https://bot.example/about", events(NAMED),
     events(one)),
    (": A user agent has no product token, so no robots.txt can name it.",
     events(changed(tokens=[])), events(one)),
    ("When: 4 s", events(later(4), one), events(later(5), one)),
    (": 1 run of sample, 2026-11-22 08:30:00 UTC to 2026-11-22 08:30:04 UTC", events(later(4), one),
     events(one)),
    (TO_ONE, events(one, down), events(one, broken)),
    (TO_ONE.replace("1", "at least 1", 1), events(one, unwatched), events(one)),
    *((f": Sent: at least 1 request for pages, 1 {how}; and 0 requests for robots.txt files.",
       with_run(made, **HIDDEN), events(one, unwatched)) for how, made in (
        ("under an exception", excepted()), ("disallowed", events(broken)))),
    (": Sent: 1 request for pages, 1 disallowed; and 0 requests for robots.txt files.",
     events(broken), events(one)),
    (": Sent: 1 request for pages, 1 not checked; and 0 requests for robots.txt files.",
     events(unchecked), events(broken)),
    (WAITED, events(waited("pace", 2)), events(waited("robots_txt", 2))),
    (": Most requests in 60 s: 1. Longest time without one: 1 min 40 s, until 2026-11-22 08:31:40 "
     "UTC.", events(one, later(100), one), events(one, later(100), one, unwatched)),
    ("Sites: 1 site", events(one, down), events(down)),
    ("Sites: at least 0 sites", events(unwatched), events(down)),
    (CLOSED, events(RULES), events(RULES, one)),
    (CLOSED, events(RULES, up), events(LOST, RULES)),
    (SERVER, events(one, refused(403), refused(403), refused(403, verdict=FORBIDDEN)),
     events(one, refused(404))),
    (TWO, events(refused(403), refused(402, B)), events(refused(403))),
    (SERVER, events(refused(403)),
     events(refused(403, verdict=Verdict(True, Reason.LOCAL_RULE)))),
    (UNSENT, events(down, LOST, up), events(down, up)),
    (f": {A}: status 503", events(down), events(down, up)),
    (f": {A}: status 503", events(down), events(gone)),
    (f": {A}: reset", after_an_answer(Unreachable("reset")), events(down)),
    (": 1 origin: 1 no robots.txt", events(gone), events(down)),
    (": 0 origins", events(), events(up)),
    (": 1 origin: 1 rules", events(up), events(down)),
    (": 1 origin: 1 not fetched", events(one), events(up)),
    (": 1 origin: 1 unreachable", events(down), events(up)),
    (": Not sent: 1 request (50 %): 1 because of a rule of the robots.txt.", events(one, RULES),
     events(RULES)),
    (": Not sent: 0 requests.", events(one), events(RULES)),
    (": Not sent: at least 0 requests.", events(unwatched), events(one)),
    (": Not sent: 1 request (100 %): 1 because of the Visit-time of the site.", events(VISIT_TIME),
     events(RULES)),
    (": Not sent: 1 request (100 %): 1 because the robots.txt was unreachable.", events(LOST),
     events(RULES)),
    (": Not sent: 2 requests (100 %): 1 because of a rule of the robots.txt, 1 because the "
     "robots.txt was unreachable.", events(RULES, LOST), events(RULES)),
    ("Practice: Not known: pages are requested with GET (2.3). Requests by method: not known.",
     events(one), events(GOT)),
    ("Slowed: No site", events(one), events(waited("backoff", 7))),
    ("Slowed: Not known", events(unwatched), events(one)),
    ("Slowed: 1 site, held for 7 s", events(waited("backoff", 7)), events(waited("backoff", 8))),
    ("Slowed: at least 1 site, held for 7 s", events(waited("backoff", 7), unwatched),
     events(waited("backoff", 7))),
    ("Slowed: 3 answers with status 429 or 503 ignored (REP_BACKOFF = False)", events(IGNORING),
     events(OBEYING)),
    ("Slowed: Not known: REP_BACKOFF = False, and 1 answer had another status from 500 on",
     events(FAILED), events(OBEYING)),
    (f": {A} asked 1 time. No request to it started for 7 s in total.",
     events(waited("backoff", 7)), events(waited("backoff", 3), waited("backoff", 4))),
    ("Use: 1 site", events(noindex), events(one)),
    ("Use: 1 site", events(refused(402), noindex), events(refused(403))),
    ("Use: None that is listed", events(one), events(noindex)),
    (": noindex: 1 response, 0 items or requests dropped", events(noindex),
     events(noindex, noindex)),
    (": noindex: 1 response, 1 item or request dropped", events(noindex, unsaved), events(noindex)),
    (": train-ai, refused: 2 responses, 0 items or requests dropped", events(noindex, noindex),
     events(noindex)),
    (": access terms: 1 response, 0 items or requests dropped", events(terms), events(noindex)),
    (": license: 1 response, 0 items or requests dropped", events(terms), events(noindex)),
    (USES, events(noindex, TRAINING), events(noindex)),
    (NO_USES, events(noindex), events(noindex, TRAINING)),
    (f": {A} required a payment 1 time.", events(refused(402)), events(refused(401))),
    ("Evidence: 1 file", events(FILED), events(one)),
    (f": The event log is a.events.gz, SHA-256 {'a' * 64}", events(FILED), events(ARCHIVED)),
    (": The archive is a.warc.gz, whose SHA-256 is not known", events(ARCHIVED), events(FILED)),
    (": No archive was kept (REP_ARCHIVE).", events(one), events(ARCHIVED)),
    (METHODS, events(GOT), events(one)),
    (POSTED, events(POSTING), events(GOT)),
    (f"{CACHE}0 requests for robots.txt files, 1 request for pages.", events(one), events()),
    *((": Met: caching directives of pages are supported (2.4). Scrapy's HTTP cache is on in all "
       "runs, with the policy of RFC 2616.", events(CACHED), events(no)) for no in (DUMMY, OFF)),
    (": Not used: caching directives of pages are supported (2.4). Scrapy's HTTP cache is not on "
     "in all runs, or does not use them (HTTPCACHE_ENABLED, HTTPCACHE_POLICY).", events(OFF),
     events(CACHED)),
    ("!: 1 run did not end: the process was killed or still runs. The last record is of 2026-11-22 "
     "08:30:00 UTC.", events(one), events(one, ended)),
    ("!: In 1 run, the downloader does not show what it sends. The numbers of requests and the "
     "pace are not complete.", events(unwatched), events(one)),
    ("!: The file of run run is damaged: the disk did not take 3 events.",
     with_run(log(), **DAMAGED), events(one)),
]  # fmt: skip


@pytest.mark.parametrize(("sentence", "true", "false"), OTHERS)
def test_a_sentence_about_the_crawl(sentence: str, true: SampleLog, false: SampleLog) -> None:
    assert sentence in lines_of(true.report())
    assert sentence not in lines_of(false.report())


UNTESTED = re.compile(": (scrapy-rep|To compare)")
"""They have no judgment."""


def plain(line: str) -> str:
    """Return a sentence without numbers, hosts and plurals, to compare it with others."""
    line = re.sub(r"https?://\S+", "URL", line.replace("were", "was").replace("them", "it"))
    line = re.sub(r"\d+ (min|h)( \d+ (s|min))?", "1 s", line)
    return re.sub(r"[0-9][0-9.,]*|(?<=[a-z])s\b|[ab](?=\.example)", "", line)


def test_each_sentence_has_both_tests() -> None:
    cases = [*PACE, *EXCEPTIONS, *OTHERS]
    known = {plain(sentence) for sentence, *_ in cases}
    found = {line for _, *made in cases for each in made for line in lines_of(each.report())}
    sentences = {line for line in found if re.match(r"(\S[^:]*)?: ", line)}
    untested = {line for line in sentences if plain(line) not in known and not UNTESTED.match(line)}
    assert sorted(untested) == []
