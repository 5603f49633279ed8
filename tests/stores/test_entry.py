from __future__ import annotations

import json
import zlib
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.origin import Origin, UnreachablePolicy
from scrapy_rep.protocol.access import AccessResult, CopyInfo
from scrapy_rep.stores import entry as module
from scrapy_rep.stores.entry import BODY_LIMIT, DICTIONARY, VERSION, Entry, decode, encode
from tests.conftest import traced_memory

NOW = 1_800_000_000.123
FULL = Entry(
    AccessResult.UNREACHABLE,
    fetched_at=NOW,
    refresh_at=NOW + 60,
    expires_at=NOW - 10,
    body=b"User-agent: *\r\nDisallow: /\n\xff\0",
    copy=CopyInfo(
        "https://a.example/robots.txt",
        etag='"1"',
        last_modified="Mon, 01 Jan 2024 00:00:00 GMT",
        lifetime=0,
        sha256="b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
    ),
    status=503,
    url="https://b.example/robots.txt",
    failure="status\n503 - ü",
    unreachable_since=NOW - 86_400,
    failures=3,
)


@given(
    st.binary(),
    st.text(max_size=module.FAILURE_LIMIT),
    st.none() | st.floats(0, 1e6).map(lambda s: round(s, 3)),
)
def test_decode_returns_any_file(body: bytes, failure: str, lifetime: float | None) -> None:
    copy = CopyInfo("https://a.example/robots.txt", lifetime=lifetime)
    entry = Entry(AccessResult.SUCCESSFUL, NOW, NOW, NOW, body=body, copy=copy, failure=failure)
    assert decode(encode(entry)) == entry


def deflated(content: bytes) -> bytes:
    deflate = zlib.compressobj(zdict=DICTIONARY)
    return VERSION + deflate.compress(content) + deflate.flush()


def copy(**fields: object) -> dict[str, object]:
    """Return a copy with these fields, as in a head."""
    return {"url": "https://a.example/robots.txt", **fields}


def head(**fields: object) -> bytes:
    """Return the bytes of an entry with rules that has these fields in its head."""
    found = {"result": "rules", "fetched_at": 1, "refresh_at": 2, "expires_at": 3, **fields}
    return deflated(json.dumps(found).encode() + b"\n")


RULES = Entry(AccessResult.SUCCESSFUL, 1, 2, 3, b"")


def test_unknown_fields_are_ignored() -> None:
    assert decode(head(colour="blue")) == RULES


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x01" + encode(FULL)[1:], id="another version"),
        pytest.param(VERSION + zlib.compress(b"{}"), id="without the dictionary"),
        pytest.param(encode(FULL)[:40] + b"\0" + encode(FULL)[41:], id="a byte is damaged"),
        pytest.param(deflated(b"{}"), id="without a result"),
        pytest.param(deflated(b"x"), id="no JSON"),
        pytest.param(deflated(b'{"result": "x", "fetched_at": 1}'), id="an unknown result"),
        pytest.param(deflated(bytes(4_000_000)), id="4 MB of NUL"),
        pytest.param(deflated(b"[" * 60_000), id="deep JSON"),
        pytest.param(deflated(b" " * module.HEAD_LIMIT + b"{}"), id="a long head"),
        pytest.param(deflated(b'{"result": "rules"}\n' + bytes(BODY_LIMIT + 1)), id="a long body"),
        pytest.param(encode(RULES) + b"x", id="bytes after the end"),
        pytest.param(VERSION + bytes(module.ENTRY_LIMIT), id="too many bytes"),
        pytest.param(deflated("{\"result\": \"rüles\"}".encode("utf-16")), id="UTF-16"),
        pytest.param(head(result=["rules"]), id="a list as the result"),
        pytest.param(head(result="unavailable"), id="unavailable with a file"),
        pytest.param(deflated(b'{"result": "rules", "fetched_at": 1, "refresh_at": 2, '
                              b'"expires_at": 3}'), id="rules without a file"),
        pytest.param(head(fetched_at="1"), id="a string as a time"),
        pytest.param(head(expires_at=float("nan")), id="NaN as a time"),
        pytest.param(head(expires_at=10**400), id="a number beyond floats"),
        pytest.param(head(expires_at=1e18, refresh_at=1e18), id="after the year 9999"),
        pytest.param(head(refresh_at=4), id="refreshed after it expires"),
        pytest.param(head(result="unreachable", refresh_at=86_400 + 10), id="a Retry-After "
                     "of more than a day"),
        pytest.param(head(copy={}), id="a copy without a URL"),
        pytest.param(head(result="redirect"), id="a result of one hop"),
        pytest.param(head(url="https://a.example/\r\n"), id="a URL with line ends"),
        pytest.param(head(url="https://" + "a" * module.URL_LIMIT), id="a long URL"),
        pytest.param(head(copy=copy(etag='"1"\r\nX: y')), id="a validator with line ends"),
        pytest.param(head(copy=copy(etag="\u20ac")), id="a validator outside Latin-1"),
        pytest.param(head(copy=copy(last_modified="x" * 257)), id="a long validator"),
        pytest.param(head(failure="\ud800"), id="a surrogate"),
        pytest.param(head(status=200.5), id="a fraction as a status"),
        pytest.param(head(failures=-1), id="negative failures"),
        pytest.param(head(copy=copy(lifetime=float("-inf"))), id="an infinite lifetime"),
        pytest.param(head(copy=copy(sha256="B" * 64)), id="a digest in upper case"),
    ],
)  # fmt: skip
def test_an_invalid_entry_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (any ValueError)
        decode(data)


def test_a_decompression_bomb_is_an_error() -> None:
    """It is no larger than an entry, and uses no more memory than one."""
    deflate = zlib.compressobj(zdict=DICTIONARY)
    bomb = VERSION + b"".join(deflate.compress(bytes(1_000_000)) for _ in range(100))
    bomb += deflate.flush()
    assert len(bomb) < module.ENTRY_LIMIT
    with traced_memory() as traced:
        with pytest.raises(ValueError):  # noqa: PT011
            decode(bomb)
        assert traced()[1] < 4 * module.CONTENT_LIMIT


def check(data: bytes) -> None:
    """Check that the data is an entry that a crawl can use, or a ValueError."""
    try:
        entry = decode(data)
    except ValueError:
        return
    info = entry.copy or CopyInfo("")
    numbers = (entry.fetched_at, entry.refresh_at, entry.expires_at, info.lifetime or 0)
    urls = (entry.url or "", info.url)
    origin = Origin("https://a.example")
    origin.start_fetch(NOW)
    if origin.restore(entry, NOW):
        origin.apply(entry, NOW)
    origin.next_action(NOW)
    origin.verdict("https://a.example/", ("bot",), NOW, UnreachablePolicy())
    assert all(type(each) in (int, float) and isfinite(each) for each in numbers)
    assert all(type(each) is str and len(each) <= module.URL_LIMIT for each in urls)
    assert entry.status is None or 100 <= entry.status <= 999
    assert entry.failures >= 0
    assert len((info.etag or "").encode("latin-1")) <= 256
    assert decode(encode(entry)).result is entry.result


NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, NOW, NOW + 60, 1e18, 10**400])
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text() | st.sampled_from(["rules", "unreachable"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PLAUSIBLE = st.fixed_dictionaries(
    {
        "result": st.sampled_from([*AccessResult, "x", 1]),
        "fetched_at": st.sampled_from([0, 1, NOW]) | NUMBERS,
        "refresh_at": st.sampled_from([0, 1, NOW]) | NUMBERS,
    },
    optional={
        "expires_at": st.sampled_from([NOW, module.LATEST]) | NUMBERS,
        "failures": st.integers(-5, 5) | NUMBERS,
        "status": st.integers(90, 1010) | NUMBERS,
        "unreachable_since": NUMBERS,
        "copy": st.none()
        | st.fixed_dictionaries(
            {"url": st.text() | st.just("https://a.example/robots.txt")},
            optional={
                "lifetime": NUMBERS,
                "etag": st.text(),
                "last_modified": st.text(),
                "sha256": st.text() | st.just("0" * 64),
            },
        ),
        **{
            name: st.text()
            | st.builds("https://{}".format, st.text())
            | st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF, categories=["Cs"])
            for name in ("url", "failure")
        },
    },
)


@given(st.binary())
def test_any_bytes_are_an_entry_or_a_value_error(data: bytes) -> None:
    check(data)
    check(VERSION + data)
    check(deflated(data))


@given(ANYTHING | PLAUSIBLE, st.none() | st.binary())
def test_any_json_is_an_entry_or_a_value_error(value: object, body: bytes | None) -> None:
    content = json.dumps(value).encode()
    check(deflated(content if body is None else content + b"\n" + body))
