"""URLs of stores, without their passwords."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.stores.url import is_ambiguous, without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:6379/0", "redis://h:6379/0"),
        ("redis://h/0?db=1#x", "redis://h/0?db=1#x"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        ("sqlite:////folder/a@b/robots.db", "sqlite:////folder/a@b/robots.db"),
        ("unix:///run/a@b.sock?db=1", "unix:///run/a@b.sock?db=1"),
        ("redis://:pw@h:6379/0", "redis://:***@h:6379/0"),
        ("redis://user:pw@h", "redis://user:***@h"),
        ("redis://pw@h", "redis://***@h"),  # a user name, which may be meant as a password
        ("redis://user:p@w@h/0", "redis://user:***@h/0"),
        ("redis://user:p:w@[::1]:1/0", "redis://user:***@[::1]:1/0"),
        ("unix://user:pw@/x.sock", "unix://user:***@/x.sock"),
        ("postgres://user:pw@h/db", "postgres://user:***@h/db"),
        # several nodes
        ("redis+cluster://u:pw@h:1,[::1]:2,i/0", "redis+cluster://u:***@h:1,[::1]:2,i/0"),
        ("redis+sentinel://h,i:2/name?x=1", "redis+sentinel://h,i:2/name?x=1"),
        (
            "redis+sentinel://h/name?sentinel_password=pw",
            "redis+sentinel://h/name?sentinel_password=***",
        ),
        ("redis+cluster://:pw,h:1/0", "redis+cluster://:***/0"),
        # in the query
        ("unix:///x.sock?password=pw", "unix:///x.sock?password=***"),
        ("redis://h/0?password=pw", "redis://h/0?password=***"),
        ("redis://h/0?db=1&password=pw&protocol=3", "redis://h/0?db=1&password=***"),
        ("redis://h/0?password=p&w", "redis://h/0?password=***"),
        ("redis://h/0?password=p#w", "redis://h/0?password=***"),
        ("redis://h/0?password=p@w", "redis://h/0?password=***"),
        ("redis://h/0?pass%77ord=pw", "redis://h/0?pass%77ord=***"),
        ("redis://h/0?ssl_password=pw", "redis://h/0?ssl_password=***"),
        ("redis://h/0#password=pw", "redis://h/0#password=***"),
        # not percent-encoded
        ("redis://:p#w@h/0", "redis://***"),
        ("redis://:p/w@h/0", "redis://***"),
        ("redis://:p?w@h/0", "redis://***"),
        ("redis://:p@w/x@h/0", "redis://***"),
        ("redis://user#pw@h/0", "redis://***"),
        ("redis:///:pw@h/0", "redis://***"),
        ("unix://:p/w@/x.sock", "unix://***"),
        # invalid
        ("redis://:pw/0", "redis://:***/0"),
        ("redis://h:pw/0", "redis://h:***/0"),
        ("redis://h:\uff11\uff12/0", "redis://h:***/0"),  # full-width digits, which no port has
        ("redis:/:pw@h/0", "***"),
        (":pw@h/0", "***"),
        ("h?password=pw", "***"),
        ("nonsense", "nonsense"),
    ],
)
def test_without_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize(
    ("url", "ambiguous"),
    [
        ("redis://:pw@h/0", False),
        ("redis://:p%2Fw@h/0", False),
        ("redis://h/0?password=p@w", False),
        ("unix:///run/a@b.sock", False),
        ("nonsense", False),
        ("redis://:p#w@h/0", True),
        ("redis://:p/w@h/0", True),
        ("redis://:p?w@h/0", True),
    ],
)
def test_is_ambiguous(url: str, ambiguous: bool) -> None:
    assert is_ambiguous(url) is ambiguous


PASSWORD = st.text("/?#@:&;=%[]\n ", max_size=4).map(lambda text: f"{text}Zk") | st.tuples(
    st.text("/?#@:&;=%[]", max_size=3), st.text("/?#@:&;=%[]", max_size=3)
).map(lambda ends: f"Zk{ends[0]}Zk{ends[1]}")


@given(
    PASSWORD,
    st.sampled_from(
        [
            "redis://:{}@h:6379/0",
            "redis://user:{}@h",
            "rediss://:{}@[::1]/0?db=1",
            "unix://:{}@/x.sock",
            "unix:///x.sock?password={}",
            "redis://h/0?db=1&password={}",
            "redis://h/0?password={}&db=1",
            "postgres://user:{}@h/db",
            "redis:/:{}@h",
        ]
    ),
)
def test_any_password_is_hidden(password: str, url: str) -> None:
    assert "Zk" not in without_password(url.format(password))
