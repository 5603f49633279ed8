"""What an answer means: RFC 9309, section 2.3.1."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.access import (
    MAX_REDIRECTS,
    StatusClass,
    StatusPolicy,
    retry_after,
    retry_interval,
    status_class,
)

NOW = 784_111_777.0
RFC = StatusPolicy()

RULES = [200, 201, 202, 203, 204, 205, 207, 226, 299]
REDIRECT = [301, 302, 303, 307, 308]
UNAVAILABLE = [status for status in range(400, 500) if status not in (407, 429)]
UNREACHABLE = [
    *(0, 100, 101, 103, 199),
    206,  # a part of the rules is not the rules
    *(300, 304, 305, 306, 309, 399),
    *(407, 429),
    *range(500, 600),
    *(600, 999),
]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param(RULES, StatusClass.RULES, id="2.3.1.1 successful access"),
        pytest.param(REDIRECT, StatusClass.REDIRECT, id="2.3.1.2 redirects"),
        pytest.param(UNAVAILABLE, StatusClass.UNAVAILABLE, id="2.3.1.3 unavailable"),
        pytest.param(UNREACHABLE, StatusClass.UNREACHABLE, id="2.3.1.4 unreachable"),
    ],
)
def test_rfc_statuses(statuses: list[int], expected: StatusClass) -> None:
    assert {status: status_class(status, RFC) for status in statuses} == dict.fromkeys(
        statuses, expected
    )


def test_rfc_five_redirects_are_followed() -> None:
    assert MAX_REDIRECTS == 5


def test_a_304_means_something_only_where_it_was_asked_for() -> None:
    assert status_class(304, RFC, conditional=True) is StatusClass.NOT_MODIFIED
    assert status_class(304, RFC) is StatusClass.UNREACHABLE
    assert status_class(200, RFC, conditional=True) is StatusClass.RULES


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        pytest.param(
            StatusPolicy(disallow_statuses={401, 403}),
            {
                401: StatusClass.DISALLOWED,
                403: StatusClass.DISALLOWED,
                404: StatusClass.UNAVAILABLE,
                407: StatusClass.UNREACHABLE,
                503: StatusClass.UNREACHABLE,
            },
            id="REP_DISALLOW_STATUSES",
        ),
        pytest.param(
            StatusPolicy(unreachable_statuses={403}),
            {
                403: StatusClass.UNREACHABLE,
                407: StatusClass.UNAVAILABLE,
                429: StatusClass.UNAVAILABLE,
                500: StatusClass.UNREACHABLE,
            },
            id="REP_UNREACHABLE_STATUSES",
        ),
        pytest.param(
            StatusPolicy(disallow_statuses={403, 429}, unreachable_statuses={403, 429}),
            {403: StatusClass.DISALLOWED, 429: StatusClass.DISALLOWED},
            id="a status in both is a refusal",
        ),
        pytest.param(
            StatusPolicy(server_errors_are_unavailable=True),
            {
                404: StatusClass.UNAVAILABLE,
                429: StatusClass.UNREACHABLE,
                499: StatusClass.UNAVAILABLE,
                500: StatusClass.UNAVAILABLE,
                599: StatusClass.UNAVAILABLE,
                600: StatusClass.UNREACHABLE,
            },
            id="REP_5XX_AS_404",
        ),
    ],
)
def test_settings_choose(terms: StatusPolicy, expected: dict[int, StatusClass]) -> None:
    assert {status: status_class(status, terms) for status in expected} == expected


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 120 ", 120),
        ("1", 1),
        ("86400", 86_400),
        ("86401", 86_400),
        ("9" * 400, 86_400),
        ("Sun, 06 Nov 1994 08:51:37 GMT", 120),
        ("Sunday, 06-Nov-94 08:51:37 GMT", 120),
        ("Sun, 06 Nov 2094 08:51:37 GMT", 86_400),
        ("0", None),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("Sun, 06 Nov 1994 08:49:37 GMT", None),  # now
        ("Sun, 06 Nov 1994 08:00:00 GMT", None),  # past
    ],
)
def test_rfc_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


def test_the_interval_doubles_from_a_minute_to_an_hour() -> None:
    failures = [1, 2, 3, 4, 5, 6, 7, 8, 1000]
    seconds = [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert [retry_interval(number) for number in failures] == seconds
