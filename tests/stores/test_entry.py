from __future__ import annotations

import json
import tracemalloc
import zlib
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.origin import Origin, UnreachablePolicy
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.stores.entry import (
    _DICTIONARY,
    BODY_LIMIT,
    CONTENT_LIMIT,
    FAILURE_LIMIT,
    HEAD_LIMIT,
    LATEST,
    OCTETS_LIMIT,
    URL_LIMIT,
    VERSION,
    Entry,
    Outcome,
    decode,
    encode,
)

NOW = 1_800_000_000.123
FULL = Entry(
    Outcome.UNREACHABLE,
    fetched_at=NOW,
    refresh_at=NOW + 60,
    expires_at=NOW - 10,
    body=b"User-agent: *\r\nDisallow: /\n\xff\0",
    copy_url="https://a.example/robots.txt",
    etag='"1"',
    last_modified="Mon, 01 Jan 2024 00:00:00 GMT",
    lifetime=0,
    status=503,
    url="https://b.example/robots.txt",
    failure="status\n503 - ü",
    unreachable_since=NOW - 86_400,
    failures=3,
    disallow_all=True,
)


@pytest.mark.parametrize(
    "entry",
    [
        FULL,
        Entry(Outcome.UNAVAILABLE, NOW, NOW, NOW, status=404),
        Entry(Outcome.RULES, NOW, NOW, NOW, body=b""),
        Entry(Outcome.RULES, NOW, NOW, NOW, body=b"\n\n"),
    ],
    ids=["everything", "nothing", "an empty file", "line ends"],
)
def test_what_is_encoded_is_decoded(entry: Entry) -> None:
    assert decode(encode(entry)) == entry


@given(
    st.binary(),
    st.text(max_size=FAILURE_LIMIT),
    st.none() | st.floats(0, 1e6).map(lambda s: round(s, 3)),
)
def test_every_file_comes_back_as_it_was(body: bytes, failure: str, lifetime: float | None) -> None:
    entry = Entry(Outcome.RULES, NOW, NOW, NOW, body=body, failure=failure, lifetime=lifetime)
    assert decode(encode(entry)) == entry


def deflated(content: bytes) -> bytes:
    deflate = zlib.compressobj(zdict=_DICTIONARY)
    return VERSION + deflate.compress(content) + deflate.flush()


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x01" + encode(FULL)[1:], id="another version"),
        pytest.param(VERSION + zlib.compress(b"{}"), id="without the dictionary"),
        pytest.param(encode(FULL)[:-5], id="half"),
        pytest.param(encode(FULL)[:40] + b"\0" + encode(FULL)[41:], id="an octet is damaged"),
        pytest.param(deflated(b"{}"), id="without a kind"),
        pytest.param(deflated(b'{"kind": "rules"}'), id="without its times"),
        pytest.param(deflated(b"[]"), id="no object"),
        pytest.param(deflated(b"x"), id="no JSON"),
        pytest.param(deflated(b'{"kind": "x", "fetched_at": 1}'), id="an unknown kind"),
    ],
)
def test_what_no_entry_was_encoded_to_is_an_error(octets: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (any of its kinds)
        decode(octets)


def head(**fields: object) -> bytes:
    """The octets of an entry with rules, with these fields in its head."""
    found = {"kind": "rules", "fetched_at": 1, "refresh_at": 2, "expires_at": 3, **fields}
    return deflated(json.dumps(found).encode() + b"\n")


RULES = Entry(Outcome.RULES, 1, 2, 3, b"")


def test_fields_of_later_are_left_out() -> None:
    assert decode(head(colour="blue")) == RULES


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(deflated(bytes(4_000_000)), id="4 MB of nothing"),
        pytest.param(deflated(b"[" * 60_000), id="deep JSON"),
        pytest.param(deflated(b'{"kind":' * 6000), id="deep objects"),
        pytest.param(deflated(b" " * HEAD_LIMIT + b"{}"), id="a long head"),
        pytest.param(deflated(b'{"kind": "rules"}\n' + bytes(BODY_LIMIT + 1)), id="a long body"),
        pytest.param(encode(RULES) + b"x", id="something behind it"),
        pytest.param(VERSION + bytes(OCTETS_LIMIT), id="too many octets"),
        pytest.param(deflated("{\"kind\": \"rüles\"}".encode("utf-16")), id="UTF-16"),
        pytest.param(head(kind=["rules"]), id="a list for a kind"),
        pytest.param(head(kind="unavailable"), id="unavailable, and a file"),
        pytest.param(deflated(b'{"kind": "rules", "fetched_at": 1, "refresh_at": 2, '
                              b'"expires_at": 3}'), id="rules without a file"),
        pytest.param(head(fetched_at="1"), id="a time in words"),
        pytest.param(head(fetched_at=True), id="a time that is true"),
        pytest.param(head(fetched_at=-1), id="a time before 1970"),
        pytest.param(head(expires_at=float("nan")), id="a time that is no number"),
        pytest.param(head(expires_at=float("inf")), id="an endless time"),
        pytest.param(head(expires_at=10**400), id="a number that no float is"),
        pytest.param(head(expires_at=1e18, refresh_at=1e18), id="beyond all calendars"),
        pytest.param(head(refresh_at=4), id="settled longer than it holds"),
        pytest.param(head(kind="unreachable", refresh_at=86_400 + 10), id="a Retry-After "
                     "that nobody believes"),
        pytest.param(head(copy_url=1), id="a number for a URL"),
        pytest.param(head(url="https://a.example/\r\n"), id="a URL with lines"),
        pytest.param(head(url="javascript:1"), id="a URL of another scheme"),
        pytest.param(head(url="https://" + "a" * URL_LIMIT), id="a long URL"),
        pytest.param(head(etag='"1"\r\nX: y'), id="a validator with lines"),
        pytest.param(head(etag="\u20ac"), id="a validator that no header holds"),
        pytest.param(head(last_modified="x" * 257), id="a long validator"),
        pytest.param(head(failure="\ud800"), id="half a character"),
        pytest.param(head(failure=["why"]), id="a list for a failure"),
        pytest.param(head(status=200.5), id="half a status"),
        pytest.param(head(status="200"), id="a status in words"),
        pytest.param(head(status=99), id="no status"),
        pytest.param(head(failures=-1), id="fewer failures than none"),
        pytest.param(head(failures=1.5), id="half a failure"),
        pytest.param(head(lifetime=float("-inf")), id="a lifetime without a beginning"),
        pytest.param(head(unreachable_since="long"), id="since long"),
        pytest.param(head(disallow_all="no"), id="no in words"),
    ],
)  # fmt: skip
def test_what_no_crawl_has_put_is_an_error(octets: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (any of its kinds)
        decode(octets)


def test_what_grows_is_not_inflated() -> None:
    """A bomb of the size of an entry."""
    deflate = zlib.compressobj(zdict=_DICTIONARY)
    bomb = VERSION + b"".join(deflate.compress(bytes(1_000_000)) for _ in range(100))
    bomb += deflate.flush()
    assert len(bomb) < OCTETS_LIMIT
    tracemalloc.start()
    try:
        with pytest.raises(ValueError):  # noqa: PT011
            decode(bomb)
        assert tracemalloc.get_traced_memory()[1] < 4 * CONTENT_LIMIT
    finally:
        tracemalloc.stop()


def is_valid(entry: Entry) -> bool:
    """As far as a crawl relies on it."""
    numbers = (entry.fetched_at, entry.refresh_at, entry.expires_at, entry.lifetime or 0)
    urls = (entry.url or "", entry.copy_url or "")
    origin = Origin("https://a.example")
    origin.need(NOW)
    origin.start_fetch()
    copy = None if entry.body is None else RobotsTxt.parse(entry.body, url=entry.copy_url)
    origin.restore(entry, copy, NOW)
    origin.need(NOW)
    origin.verdict("https://a.example/", ("bot",), NOW, UnreachablePolicy())
    return (
        all(type(each) in (int, float) and isfinite(each) for each in numbers)
        and all(type(each) is str and len(each) <= URL_LIMIT for each in urls)
        and (entry.status is None or 100 <= entry.status <= 999)
        and entry.failures >= 0
        and len((entry.etag or "").encode("latin-1")) <= 256
        and origin.summary().encode() != b""
        and decode(encode(entry)).kind is entry.kind
    )


def decoded(octets: bytes) -> None:
    try:
        entry = decode(octets)
    except ValueError:
        return
    assert is_valid(entry)


NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, NOW, NOW + 60, 1e18, 10**400])
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text() | st.sampled_from(["rules", "unreachable"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PLAUSIBLE = st.fixed_dictionaries(
    {
        "kind": st.sampled_from([*Outcome, "x", 1]),
        "fetched_at": st.sampled_from([0, 1, NOW]) | NUMBERS,
        "refresh_at": st.sampled_from([0, 1, NOW]) | NUMBERS,
    },
    optional={
        "expires_at": st.sampled_from([NOW, LATEST]) | NUMBERS,
        "failures": st.integers(-5, 5) | NUMBERS,
        "status": st.integers(90, 1010) | NUMBERS,
        "lifetime": NUMBERS,
        "unreachable_since": NUMBERS,
        "disallow_all": st.booleans(),
        **{
            name: st.text()
            | st.builds("https://{}".format, st.text())
            | st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF, categories=["Cs"])
            for name in ("url", "copy_url", "etag", "last_modified", "failure")
        },
    },
)


@given(st.binary())
def test_any_octets_are_an_entry_or_a_value_error(octets: bytes) -> None:
    decoded(octets)
    decoded(VERSION + octets)
    decoded(deflated(octets))


@given(ANYTHING | PLAUSIBLE, st.none() | st.binary())
def test_any_json_is_an_entry_or_a_value_error(value: object, body: bytes | None) -> None:
    content = json.dumps(value).encode()
    decoded(deflated(content if body is None else content + b"\n" + body))


@given(
    st.builds(
        Entry,
        st.just(Outcome.UNREACHABLE),
        st.floats(0, NOW),
        st.just(0.0),
        expires_at=st.floats(0),
        body=st.none() | st.binary() | st.just(bytes(BODY_LIMIT + 5)),
        copy_url=st.none() | st.text() | st.just("https://" + "a" * URL_LIMIT),
        etag=st.none() | st.text(),
        last_modified=st.none() | st.text(),
        lifetime=st.none() | st.floats(allow_nan=False),
        status=st.none() | st.integers(),
        url=st.none() | st.text(),
        failure=st.none() | st.text() | st.just("x" * 5000) | st.just("\ud800"),
        failures=st.integers(0),
    )
)
def test_whatever_is_put_can_be_read(entry: Entry) -> None:
    assert decode(encode(entry)).fetched_at == round(entry.fetched_at, 3)


def test_this_version_is_read_for_ever() -> None:
    octets = bytes.fromhex(GOLDEN)
    assert decode(octets) == FULL


GOLDEN = (
    "0378bbc167b2ebabc65962a278d2c2000af40c8d8c317c0c953583c9a27adfdc120260b2d8c222512fb52231"
    "b7202715d99f48c5588c9221a41c2354369ae02b1b0d90431b5801608676120e7760d41f317940fd0aba0a31"
    "a5060669c9386b1290df0d414532d4ef48d58a31f6f21f5fe472fd6700005328800b"
)
