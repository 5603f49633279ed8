"""The state of one origin: RFC 9309, sections 2.3.1 and 2.4, as PROTOCOL of one table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.origin import Action, Origin, State, UnreachablePolicy
from scrapy_rep.protocol import access
from scrapy_rep.protocol.access import FetchResult, NotModified, Rules, Unavailable, Unreachable
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.stores.entry import decode, encode

KEY = "http://a.example"
URL = "http://a.example/robots.txt"
DAY = 86_400
T = 1_700_000_000.0
"""When most of these histories begin."""

FILE = RobotsTxt.parse(b"User-agent: *\nDisallow: /private\n")
OTHER_FILE = RobotsTxt.parse(b"User-agent: *\nDisallow: /public\n")

PATIENT = UnreachablePolicy()
Answer = tuple[bool, Reason]
DOWN = Unreachable("status 503", 503, URL)


def rules(at: float, robots: RobotsTxt = FILE, held: float = DAY, etag: str | None = None) -> Rules:
    return Rules(robots, 200, access.CopyInfo(URL, etag), at + held)


def missing(at: float, *, disallow: bool = False) -> Unavailable:
    result = access.AccessResult.DISALLOWED if disallow else access.AccessResult.UNAVAILABLE
    return Unavailable(URL, at + DAY, 404, result)


FRESH = rules(T)


def origin_after(*history: tuple[float, FetchResult]) -> Origin:
    """An origin that has been asked for and has answered, at these times."""
    origin = Origin(KEY)
    for time, event in history:
        assert origin.next_action(time) in (Action.FETCH, Action.REFRESH)
        origin.start_fetch(time)
        origin.apply(event, time)
    return origin


def allows(origin: Origin, path: str, now: float, policy: UnreachablePolicy = PATIENT) -> Answer:
    verdict = origin.verdict(KEY + path, ("testbot",), now, policy)
    return verdict.allowed, verdict.reason


# The table

EVENTS = [access.Cancelled(), DOWN, Unreachable("status 429", 429, URL, 30), NotModified(T + DAY)]
EVENTS += [rules(T), missing(T), missing(T, disallow=True)]


@pytest.mark.rule("States of an origin")
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 1.0, 59, 61, 3601, DAY * 0.95, DAY, DAY * 31]),
            st.sampled_from(EVENTS),
            st.booleans(),
        ),
        max_size=12,
    )
)
def test_no_history_leads_outside_the_table(history: list[tuple[float, FetchResult, bool]]) -> None:
    """Whatever comes when, requests before and during a fetch included. A store can keep it."""
    origin = Origin(KEY)
    now = T
    for pause, event, somebody_asks_meanwhile in history:
        now += pause
        need = origin.next_action(now)
        if need in (Action.FETCH, Action.REFRESH):
            origin.start_fetch(now)
            if somebody_asks_meanwhile:
                now += DAY
                during = origin.next_action(now)
                assert during in (Action.WAIT, Action.NONE)
            if origin.copy is None and isinstance(event, NotModified):
                event = DOWN  # without a copy nothing is asked conditionally
            origin.apply(event, now)
            if not isinstance(event, access.Cancelled):
                body = None if origin.content is None else b"User-agent: *\nDisallow: /private\n"
                assert decode(encode(origin.to_entry(body))).body == body
        assert isinstance(origin.verdict(KEY + "/", ("testbot",), now, PATIENT), Verdict)
        assert origin.next_action(now) is not Action.WAIT, "nothing is under way"


# What has to be done before a verdict


@pytest.mark.rule("Expired files")
def test_rfc_a_file_holds_until_it_expires() -> None:
    origin = origin_after((T, rules(T, held=1000)))
    assert origin.next_action(T + 899) is Action.NONE
    assert origin.next_action(T + 901) is Action.REFRESH
    assert origin.next_action(T + 999) is Action.REFRESH
    assert origin.next_action(T + 1000) is Action.FETCH
    origin.start_fetch(T + 1000)
    assert origin.state is State.FETCHING


def refreshed(event: FetchResult, at: float = T + 0.95 * DAY, known: FetchResult = FRESH) -> Origin:
    """An origin whose refresh began after most of a day, and ended with an event."""
    origin = origin_after((T, known))
    origin.start_fetch(T + 0.95 * DAY)
    origin.apply(event, at)
    return origin


@pytest.mark.rule("Refresh in the background")
def test_a_request_that_comes_after_the_expiry_waits_for_a_late_refresh() -> None:
    origin = origin_after((T, rules(T, held=1000)))
    assert origin.next_action(T + 950) is Action.REFRESH
    origin.start_fetch(T + 950)
    assert origin.next_action(T + 1001) is Action.WAIT
    origin.apply(rules(T + 1002, OTHER_FILE), T + 1002)
    assert (origin.state, origin.content) == (State.FRESH, OTHER_FILE)


@pytest.mark.rule("Refresh in the background")
@pytest.mark.parametrize(
    "event",
    [DOWN, Unreachable("status 503", 503, URL, 5), access.Cancelled()],
    ids=["failed", "Retry-After", "cancelled"],
)
@pytest.mark.parametrize(
    ("known", "path", "verdict"),
    [
        (rules(T, held=DAY), "/private", (False, Reason.RULES)),
        (missing(T), "/private", (True, Reason.UNAVAILABLE)),
        (missing(T, disallow=True), "/private", (False, Reason.DISALLOWED_STATUS)),
    ],
    ids=["rules", "missing", "refused"],
)
def test_a_refresh_that_fails_leaves_a_fresh_copy_as_it_is(
    event: FetchResult, known: FetchResult, path: str, verdict: Answer
) -> None:
    origin, at = origin_after((T, known)), T + 0.95 * DAY
    before = (origin.state, origin.status, origin.url, origin.failure, origin.expires_at)
    origin = refreshed(event, at, known)
    after = (origin.state, origin.status, origin.url, origin.failure, origin.expires_at)
    assert after == before
    assert origin.unreachable_since is None
    assert allows(origin, path, at) == verdict
    assert origin.next_action(T + DAY) is Action.FETCH


@pytest.mark.parametrize(
    ("event", "again"),
    [
        pytest.param(DOWN, 60, id="interval"),
        pytest.param(Unreachable("status 503", 503, URL, 5), 5, id="Retry-After"),
        # It never outlasts the file.
        pytest.param(Unreachable("status 503", 503, URL, DAY), 0.05 * DAY, id="until it expires"),
    ],
)
def test_a_refresh_that_fails_is_tried_again(event: Unreachable, again: float) -> None:
    origin, at = refreshed(event), T + 0.95 * DAY
    assert origin.next_action(at + again - 1) is Action.NONE
    assert origin.next_action(at + again) is (Action.REFRESH if again < 61 else Action.FETCH)


def test_a_refresh_that_ends_late_makes_the_copy_the_last_good_one() -> None:
    origin = refreshed(DOWN, T + DAY + 1)
    assert (origin.state, origin.failure) == (State.UNREACHABLE, "status 503")
    assert allows(origin, "/private", T + DAY + 1) == (False, Reason.RULES)
    assert allows(origin, "/public", T + DAY + 1) == (True, Reason.RULES)
    origin = refreshed(access.Cancelled(), T + DAY)
    assert (origin.state, origin.next_action(T + DAY)) == (State.STALE, Action.FETCH)


# What each state allows


def failing(days: float, *, since: float = T) -> list[tuple[float, FetchResult]]:
    """A failure each day, the last one after so many."""
    return [(since + day * DAY, DOWN) for day in range(int(days) + 1)]


History = list[tuple[float, FetchResult]]
ALLOWED_BY_RULES, DISALLOWED_BY_RULES = (True, Reason.RULES), (False, Reason.RULES)
DISALLOWED = False, Reason.UNREACHABLE
REFUSED: History = [(T, missing(T, disallow=True))]
GOOD_THEN_DOWN: History = [(T, rules(T)), (T + DAY, DOWN)]

VERDICTS: list[tuple[str, History, str, float, Answer]] = [
    ("rules", [(T, rules(T))], "/private", T, DISALLOWED_BY_RULES),
    ("rules", [(T, rules(T))], "/public", T, ALLOWED_BY_RULES),
    ("unavailable", [(T, missing(T))], "/private", T, (True, Reason.UNAVAILABLE)),
    ("a refusal", REFUSED, "/", T, (False, Reason.DISALLOWED_STATUS)),
    ("a refusal", REFUSED, "/robots.txt", T, (True, Reason.UNAVAILABLE)),
    ("an earlier refusal is forgotten", [*REFUSED, (T + DAY, missing(T + DAY))], "/", T + DAY,
     (True, Reason.UNAVAILABLE)),
    ("no answer yet", [(T, access.Cancelled())], "/", T, DISALLOWED),
    ("unreachable", [(T, DOWN)], "/", T, DISALLOWED),
    ("unreachable", [(T, DOWN)], "/robots.txt", T, (True, Reason.UNREACHABLE)),
    ("the last good copy", GOOD_THEN_DOWN, "/private", T + DAY, DISALLOWED_BY_RULES),
    ("the last good copy", GOOD_THEN_DOWN, "/public", T + DAY, ALLOWED_BY_RULES),
    ("it is used without end", GOOD_THEN_DOWN, "/public", T + 400 * DAY, ALLOWED_BY_RULES),
    ("a 404 is no copy", [(T, missing(T)), (T + DAY, DOWN)], "/", T + DAY, DISALLOWED),
    ("a 404 removes the copy",
     [(T, rules(T, etag='"1"')), (T + DAY, missing(T + DAY)), (T + 2 * DAY, DOWN)],
     "/public", T + 2 * DAY, DISALLOWED),
    # RFC 9309 §2.3.1.4: "for a reasonably long period of time (for example, 30 days)".
    ("29 days", failing(29), "/", T + 29.9 * DAY, DISALLOWED),
    ("30 days", failing(30), "/", T + 30 * DAY, (True, Reason.UNREACHABLE)),
]  # fmt: skip
DISALLOW_ALL = ("a refusal", "unreachable", "a 404 is no copy", "a 404 removes the copy", "29 days")


@pytest.mark.rule("2xx, except 206", "4xx, except 407 and 429", "5xx", "The last good copy")
@pytest.mark.rule("Unreachable without a copy")
@pytest.mark.parametrize(("name", "history", "path", "now", "verdict"), VERDICTS)
def test_rfc_verdicts(name: str, history: History, path: str, now: float, verdict: Answer) -> None:
    origin = origin_after(*history)
    assert allows(origin, path, now) == verdict, name
    assert origin.disallows_all(now, PATIENT) is (name in DISALLOW_ALL)


# While it is unreachable


@pytest.mark.parametrize(
    ("policy", "days", "allowed"),
    [
        (UnreachablePolicy(days=7), 6, False),
        (UnreachablePolicy(days=7), 7, True),
        (UnreachablePolicy(days=0), 0, True),
        (UnreachablePolicy(allow=True), 0, True),
    ],
)
def test_the_thirty_days_are_a_setting(policy: UnreachablePolicy, days: int, allowed: bool) -> None:
    origin = origin_after(*failing(days))
    assert allows(origin, "/", T + days * DAY, policy) == (allowed, Reason.UNREACHABLE)
    assert origin.disallows_all(T + days * DAY, policy) is not allowed


@pytest.mark.rule("Unreachable without a copy")
def test_the_thirty_days_are_for_sites_without_a_copy() -> None:
    origin = origin_after((T, rules(T)), *failing(40, since=T + DAY))
    policy = UnreachablePolicy(allow=True, days=0)
    assert allows(origin, "/private", T + 41 * DAY, policy) == (False, Reason.RULES)


@pytest.mark.rule("Unreachable without a copy")
@pytest.mark.parametrize(
    ("first", "answer"),
    [
        ([], rules(T + 20 * DAY)),
        ([], missing(T + 20 * DAY)),
        ([(T - DAY, rules(T - DAY))], NotModified(T + 21 * DAY)),
    ],
    ids=["2xx", "4xx", "304"],
)
def test_an_answer_resets_the_thirty_days(first: History, answer: FetchResult) -> None:
    origin = origin_after(*first, *failing(19), (T + 20 * DAY, answer))
    if first:
        assert (origin.state, origin.status, origin.url) == (State.FRESH, 304, URL)
    assert (origin.unreachable_since, origin.failure, origin.failures) == (None, None, 0)
    origin.content = None  # so that the days matter
    origin.next_action(T + 21 * DAY)
    origin.start_fetch(T + 21 * DAY)
    origin.apply(DOWN, T + 21 * DAY)
    assert origin.unreachable_since == T + 21 * DAY


@pytest.mark.rule("Retries")
def test_the_interval_between_attempts_grows() -> None:
    origin = Origin(KEY)
    now = T
    for expected in (60, 120, 240, 480, 960, 1920, 3600, 3600):
        assert origin.next_action(now) is Action.FETCH
        origin.start_fetch(now)
        origin.apply(DOWN, now)
        assert origin.next_action(now + expected - 1) is Action.NONE
        now += expected
    assert access.retry_interval(1000) == 3600


# Copies


def test_a_failure_keeps_the_copy_and_its_validators() -> None:
    down = Unreachable("TimeoutError: it took too long", None, "https://b.example/robots.txt")
    origin = origin_after((T, rules(T, etag='"1"')), (T + DAY, down))
    assert (origin.content, origin.copy) == (FILE, access.CopyInfo(URL, '"1"'))
    assert (origin.status, origin.url) == (None, "https://b.example/robots.txt")


def test_texts() -> None:
    origin = origin_after((T, Unavailable(URL, T + DAY)))
    assert repr(origin) == "<robots.txt of http://a.example>"
    verdict = origin.verdict(KEY + "/a;", ("testbot",), T, PATIENT)
    assert str(verdict) == "unavailable: too many redirects"


def test_the_next_attempt_at_an_unreachable_origin() -> None:
    origin, month = Origin(KEY), 31 * DAY
    assert origin.next_attempt(0, PATIENT) is None
    origin.start_fetch(0)
    assert origin.next_attempt(0, PATIENT) is None
    origin.apply(DOWN, 0)
    assert origin.next_attempt(0, PATIENT) == 60
    assert origin.next_attempt(70, PATIENT) == 0
    assert origin.next_attempt(0, UnreachablePolicy(allow=True)) is None
    assert origin.next_attempt(month, PATIENT) is None, "it is allowed by now"
    origin.start_fetch(70)
    assert origin.next_attempt(71, PATIENT) == 0
    assert origin.next_attempt(month, PATIENT) is None, "it is allowed by now"
    assert not origin.verdict("/a", ("*",), 71, PATIENT)
    origin.apply(DOWN, 72)
    assert origin.next_attempt(72, PATIENT) == 120
    origin.set_copy(FILE, access.CopyInfo(URL))
    assert origin.next_attempt(0, PATIENT) is None, "the copy is used"
