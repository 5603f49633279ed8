"""How long a robots.txt is fresh: RFC 9309 §2.4 and RFC 9111."""

from __future__ import annotations

from datetime import timezone
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.access import MAX_RETRY_AFTER, AccessPolicy, retry_after
from scrapy_rep.protocol.freshness import (
    DEFAULT_LIFETIME,
    ERROR_LIFETIME,
    http_date,
    parse_date,
)

pytestmark = pytest.mark.rule("Freshness lifetime")
NOW = 1_700_000_000.0
LEAST = 300
MOST = 86_400
STALE = LEAST
"""The result for an unreadable value: the shortest time."""


def date(offset: float) -> str:
    """Return a date a number of seconds after the response."""
    return formatdate(NOW + offset, usegmt=True)


def seconds(
    cache_control: str | None = None,
    *,
    default: float = DEFAULT_LIFETIME,
    shared: bool = False,
    **others: str | None,
) -> float:
    """Return how long a response with these headers is fresh."""
    given = {"cache-control": cache_control, **others}
    headers = {name: value for name, value in given.items() if value is not None}
    policy = AccessPolicy(min_ttl=LEAST, max_ttl=MOST, shared=shared)
    return policy.expires_at(headers, NOW, default) - NOW


@pytest.mark.rule("Unreadable headers")
@pytest.mark.parametrize(
    ("cache_control", "held"),
    [
        (None, 86_400), ("", 86_400), ("max-age=3600", 3600), ("max-age = 3600", 3600),
        ("public, max-age=3600, must-revalidate", 3600), ("smax-age=600", 86_400),
        ('max-age="3600"', 3600),  # RFC 9111 §5.2: recipients ought to accept both forms
        ("max-age=3600, max-age=600", 600), ('x="a, max-age=1", max-age=3600', 3600),
        ('x="a\\", max-age=1", max-age=3600', 3600), ("max-age=0", LEAST),
        ('max-age=3600, x="never closed, max-age=600', 3600),
        ("max-age=99999999999999999999999999", MOST), ("max-age", STALE), ("max-age=-1", STALE),
        ("max-age=²", STALE), ("max-age=3600, max-age=soon", STALE), ("no-store", LEAST),
        ("no-cache", LEAST), ("No-Cache, max-age=3600", LEAST),
        ('no-cache="set-cookie, x", max-age=3600', 3600),
        ("no-cache=set-cookie, max-age=3600", 3600), ('no-cache="set-cookie", no-cache', LEAST),
    ],
)  # fmt: skip
def test_rfc_cache_control(cache_control: str | None, held: float) -> None:
    assert seconds(cache_control) == held


def test_rfc_s_maxage_is_for_shared_copies() -> None:
    both, alone = "s-maxage=600, max-age=3600", "s-maxage=600"
    assert [seconds(each) for each in (both, alone)] == [3600, 86_400]
    assert [seconds(each, shared=True) for each in (both, alone)] == [600, 600]
    assert seconds("max-age=3600", shared=True) == 3600


@pytest.mark.parametrize(
    ("expires", "dated", "held"),
    [
        (date(3600), date(0), 3600),
        (date(3600), None, 3600),  # no Date: the time of arrival (RFC 9110 §6.6.1)
        (date(3600), date(-600), 3600),  # a lifetime of 4200, an age of 600
        (date(3600), date(600), 3000),  # a clock ahead of ours does not add to the age
        (date(-3600), date(0), LEAST),
        ("0", date(0), STALE),  # RFC 9111 §5.3: "especially including the value 0"
        ("soon", date(0), STALE), (date(3600), "today", STALE), (date(10**9), date(0), MOST),
    ],
)  # fmt: skip
def test_rfc_expires(expires: str, dated: str | None, held: float) -> None:
    assert seconds(expires=expires, date=dated) == held


def test_rfc_max_age_takes_precedence_over_expires() -> None:
    assert seconds("max-age=600", expires=date(3600), date=date(0)) == 600
    assert seconds("public", expires=date(3600), date=date(0)) == 3600


@pytest.mark.rule("Age")
@pytest.mark.parametrize(
    ("age", "dated", "held"),
    [
        (None, None, 3600), ("600", None, 3000), (None, date(-600), 3000),
        ("600", date(-1200), 2400), (None, date(600), 3600), ("9999", None, LEAST),
        ("600, 1200", None, 3000),  # RFC 9111 §5.1
        ("old", None, STALE), (None, "yesterday", STALE),
    ],
)  # fmt: skip
def test_rfc_age(age: str | None, dated: str | None, held: float) -> None:
    assert seconds("max-age=3600", age=age, date=dated) == held


@pytest.mark.rule("Age")
def test_the_default_does_not_age() -> None:
    for age in ("600", "old"):
        assert seconds(age=age, date=date(-1200)) == DEFAULT_LIFETIME
        assert seconds(age=age, default=ERROR_LIFETIME) == ERROR_LIFETIME


@pytest.mark.rule("Unreadable headers")
@pytest.mark.parametrize(
    ("value", "since_1970"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),  # RFC 850
        ("Sun Nov  6 08:49:37 1994", 784_111_777),  # asctime()
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("", None), ("0", None),
        ("Sun, 99 Nov 1994 08:49:37 GMT", None), ("Sun, 06 Nov 99999 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 +9999999999", None),
        ("Mon, " + "9" * 5000 + " Jan 2020 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_rfc_dates(value: str, since_1970: float | None) -> None:
    assert http_date(value) == since_1970


# Pieces that a hostile server may put into a date or a number.
PIECES = [
    "31", "Dec", "9999", "0001", "00", "23:59:59", "00.00.00", "-0100", "+2359", "-9999", "-0000",
    "Mon,", "Sunday,", "06-Nov-94", "31-Dec-9999", "GMT", "EST", "Z", "9" * 4300, "9" * 65_536,
    "0" * 65_536, "-" * 65_536, "+" * 65_536, "\0", "\0" * 65_536, "\xff", "\u0663", "\u00b2", ":",
    ".", ",", "-", "+", "=", '"', "max-age=", "s-maxage=", "no-cache", "1e309", "inf", "nan",
]  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES), max_size=8).map
hostile_values = hostile("".join) | hostile(" ".join) | st.text(st.characters(max_codepoint=255))


@pytest.mark.rule("Minimum and maximum")
@given(hostile_values, hostile_values)
def test_no_header_value_raises(value: str, other: str) -> None:
    moment = parse_date(value)
    assert moment is None or moment.tzinfo is timezone.utc
    held = seconds(value, age=other, date=value, expires=other)
    assert LEAST <= held <= MOST
    held = seconds(None, age=value, date=other, expires=value, shared=True)
    assert LEAST <= held <= MOST
    pause = retry_after(value, NOW)
    assert pause is None or 0 < pause <= MAX_RETRY_AFTER


@pytest.mark.parametrize("piece", [*' ",(=9-+\0\xff:.', '"\\', 'a="', "a ", "Mon, ", "a;", "9999 "])
@pytest.mark.no_cover
def test_a_long_value_is_read_within_the_bounds(piece: str) -> None:
    value = piece * (200_000 // len(piece))
    assert LEAST <= seconds(value, age=value, date=value, expires=value) <= MOST
