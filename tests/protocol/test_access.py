"""What an answer means: RFC 9309, section 2.3.1."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.access import AccessPolicy, AccessResult, access_result, retry_after

NOW = 784_111_777.0
RFC = AccessPolicy()

RULES = [200, 201, 202, 203, 204, 205, 207, 226, 299]
REDIRECT = [301, 302, 303, 307, 308]
REFUSED = [401, 403]
UNAVAILABLE = [status for status in range(400, 500) if status not in (401, 403, 407, 429)]
UNREACHABLE = [
    *(0, 100, 101, 103, 199),
    206,  # a part of the rules is not the rules
    *(300, 304, 305, 306, 309, 399),
    *(407, 429),
    *range(500, 600),
    *(600, 999),
]


@pytest.mark.rule("2xx, except 206", "4xx, except 407 and 429", "401 and 403", "5xx", "407 and 429")
@pytest.mark.rule("1xx, 206, other 3xx, an unexpected 304")
@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param(RULES, AccessResult.SUCCESSFUL, id="2.3.1.1 successful access"),
        pytest.param(REDIRECT, AccessResult.REDIRECT, id="2.3.1.2 redirects"),
        pytest.param(UNAVAILABLE, AccessResult.UNAVAILABLE, id="2.3.1.3 unavailable"),
        pytest.param(REFUSED, AccessResult.REFUSED, id="2.3.1.3 refused"),
        pytest.param(UNREACHABLE, AccessResult.UNREACHABLE, id="2.3.1.4 unreachable"),
    ],
)
def test_rfc_statuses(statuses: list[int], expected: AccessResult) -> None:
    assert {status: access_result(status, RFC) for status in statuses} == dict.fromkeys(
        statuses, expected
    )


def test_results_without_rules_although_the_server_has_answered() -> None:
    found = {str(result) for result in AccessResult if result.is_unavailable}
    assert found == {"unavailable", "disallowed", "not-robots-txt", "refused", "challenge"}


@pytest.mark.rule("1xx, 206, other 3xx, an unexpected 304", "304 to a conditional request")
def test_a_304_counts_only_after_a_conditional_request() -> None:
    assert access_result(304, RFC, conditional=True) is AccessResult.NOT_MODIFIED
    assert access_result(304, RFC) is AccessResult.UNREACHABLE
    assert access_result(200, RFC, conditional=True) is AccessResult.SUCCESSFUL


@pytest.mark.rule("4xx, except 407 and 429", "5xx", "407 and 429")
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (AccessPolicy(disallow_statuses={401, 403}),
         {"disallowed": [401, 403], "unavailable": [404], "unreachable": [407, 503]}),
        (AccessPolicy(disallow_statuses={403, 429}), {"disallowed": [403, 429]}),
        (AccessPolicy(server_errors_are_unavailable=True),
         {"unavailable": [404, 499, 500, 599], "unreachable": [429, 600]}),
    ],
    ids=["REP_DISALLOW_STATUSES", "one that would be unreachable", "REP_5XX_AS_404_HOSTS"],
)  # fmt: skip
def test_settings_choose(policy: AccessPolicy, expected: dict[str, list[int]]) -> None:
    for result, statuses in expected.items():
        assert {access_result(status, policy) for status in statuses} == {AccessResult(result)}


@pytest.mark.rule("Retry-After")
@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120), ("1", 1), ("86401", 86_400), ("9" * 400, 86_400), ("0", None), ("-5", None),
        ("1.5", None), ("²", None), (None, None), ("Sun, 06 Nov 1994 08:51:37 GMT", 120),
        ("Sunday, 06-Nov-94 08:51:37 GMT", 120), ("Sun, 06 Nov 2094 08:51:37 GMT", 86_400),
        ("Sun, 06 Nov 1994 08:49:37 GMT", None),  # now
        ("Sun, 06 Nov 1994 08:00:00 GMT", None),  # past
    ],
)  # fmt: skip
def test_rfc_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds
