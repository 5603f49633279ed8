from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.stores.entry import _DICTIONARY, VERSION, Entry, Kind, decode, encode

NOW = 1_800_000_000.123
FULL = Entry(
    Kind.UNREACHABLE,
    fetched_at=NOW,
    settled_until=NOW + 60,
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
        Entry(Kind.UNAVAILABLE, NOW, NOW, status=404),
        Entry(Kind.RULES, NOW, NOW, body=b""),
        Entry(Kind.RULES, NOW, NOW, body=b"\n\n"),
    ],
    ids=["everything", "nothing", "an empty file", "line ends"],
)
def test_what_is_encoded_is_decoded(entry: Entry) -> None:
    assert decode(encode(entry)) == entry


@given(st.binary(), st.text(), st.none() | st.floats(0, 1e6).map(lambda s: round(s, 3)))
def test_every_file_comes_back_as_it_was(body: bytes, failure: str, lifetime: float | None) -> None:
    entry = Entry(Kind.RULES, NOW, NOW, body=body, failure=failure, lifetime=lifetime)
    assert decode(encode(entry)) == entry


def deflated(content: bytes) -> bytes:
    deflate = zlib.compressobj(zdict=_DICTIONARY)
    return VERSION + deflate.compress(content) + deflate.flush()


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x02" + encode(FULL)[1:], id="another version"),
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


def test_fields_of_later_are_left_out() -> None:
    head = {"kind": "rules", "fetched_at": 1, "settled_until": 2, "colour": "blue"}
    assert decode(deflated(json.dumps(head).encode())) == Entry(Kind.RULES, 1, 2)


def test_version_1_is_read_for_ever() -> None:
    octets = bytes.fromhex(GOLDEN)
    assert decode(octets) == FULL


GOLDEN = (
    "0178bb1770b5a5abc6596ea2f8d3c2000af40c8d8cb1791aaac00ca6003504cc2d2100268b2d3812f5522b12"
    "730b725291bd8a5498c52819424a334225a409be12d20039c0813501668027e170074645129307d4afa0ab10"
    "536a6090968cb34a01f9dd10543043fd8e54bf1863af05f0c52fd77f060085f48168"
)
