"""The TDM file of an origin: the rules and examples of TDMRep, and what no file can break."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.tdmrep import TdmRep, TdmRule
from testing.hostile import ALL, ATTACKS

pytestmark = pytest.mark.rule("Rule of a TDM file")
SITE = "https://provider.com"
POLICY = "https://provider.com/policies/policy.json"


def of(*rules: Any) -> TdmRep:
    return TdmRep.parse(json.dumps(rules).encode())


def rule(location: str = "/", reservation: Any = 1, **others: Any) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in others.items()}
    return {"location": location, "tdm-reservation": reservation, **named}


def reservation(file: TdmRep, path: str) -> bool | None:
    found = file.rule(SITE + path)
    return None if found is None else found.reservation


# The examples of the report: https://www.w3.org/community/reports/tdmrep/CG-FINAL-tdmrep-20240510/

OPT_OUT = b'[{"location": "/", "tdm-reservation": 1}]'
THREE_GROUPS = b"""
[
  {"location": "/directory-a/", "tdm-reservation": 1},
  {
    "location": "/directory-b/html/",
    "tdm-reservation": 1,
    "tdm-policy": "https://provider.com/policies/policy.json"
  },
  {"location": "/directory-b/images/*.jpg", "tdm-reservation": 0}
]
"""


@pytest.mark.parametrize(
    ("file", "path", "expected"),
    [
        (OPT_OUT, "", (True, None)), (OPT_OUT, "/any/file.pdf", (True, None)),
        (THREE_GROUPS, "/directory-a/paper.pdf", (True, None)),
        (THREE_GROUPS, "/directory-b/html/page.html?a=b", (True, POLICY)),
        (THREE_GROUPS, "/directory-b/images/cat.jpg", (False, None)),
        (THREE_GROUPS, "/directory-a", None),
        (THREE_GROUPS, "/Directory-A/", None),  # "The matching SHOULD be case sensitive"
    ],
)  # fmt: skip
def test_tdmrep_examples(file: bytes, path: str, expected: tuple[bool, str | None] | None) -> None:
    found = TdmRep.parse(file).rule(SITE + path)
    assert (None if found is None else found[1:]) == expected


@pytest.mark.parametrize(
    ("location", "path", "matches"),
    [
        ("/this/path/exactly$", "/this/path/exactly", True),
        ("/this/path/exactly$", "/this/path/exactly/not", False),
        ("/this/*/then", "/this/path/then/that", True),
        ("/%7Euser/", "/~user/", True),  # an unreserved character is decoded
        ("/a%2Fb", "/a/b", False),  # a reserved one is not
        ("/ツ", "/%E3%83%84", True), ("*.jpg$", "/a/cat.jpg", True),
        ("/a?b=https://c", "/a?b=https%3A%2F%2Fc", True),  # RFC 9309, figure 4
    ],
)  # fmt: skip
def test_tdmrep_locations_are_robots_txt_patterns(location: str, path: str, matches: bool) -> None:
    assert (of(rule(location)).rule(SITE + path) is not None) is matches


@pytest.mark.parametrize(
    ("rules", "path", "expected"),
    [
        ([rule("/", 1), rule("/press/", 0)], "/press/1", True),
        ([rule("/press/", 0), rule("/", 1)], "/press/1", False),
        ([rule("/*", 0), rule("/a/very/long/path/", 1)], "/a/very/long/path/", False),
        ([rule("/a$", 0), rule("/a$", 1)], "/a", False),
        ([rule("/%61", 0), rule("/a", 1)], "/a", False),  # one pattern in two forms
        ([rule("/a?u=%2F$", 1), rule("/a?u=/$", 0)], "/a?u=/", True),
        # A rule that is unreadable decides about nothing, so that it hides none.
        ([rule("/", 2), rule("/a", 1)], "/a", True),
        ([{"location": "/"}, rule("/a", 1)], "/a", True),
    ],
)
def test_tdmrep_the_most_specific_match_is_the_first_in_sequence(
    rules: list[Any], path: str, expected: bool
) -> None:
    assert reservation(of(*rules), path) is expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1", True), ("0", False),
        ("1.0", True),  # the same number in JSON
        ('"1"', True),  # as in a header
        ('"0"', False), ("true", None), ("null", None), ("2", None), ("0.5", None), ("NaN", None),
        ("1" * 5000, None),  # more digits than int() reads
        ("[1]", None), ('{"1": 1}', None),
    ],
)  # fmt: skip
def test_only_0_and_1_count(written: str, expected: bool | None) -> None:
    file = TdmRep.parse(b'[{"location": "/", "tdm-reservation": %b}]' % written.encode())
    assert reservation(file, "/") is expected
    assert file.problem == ("1 of its rules are unreadable" if expected is None else None)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (POLICY, POLICY),
        ("/policy.html", "/policy.html"),  # as the site wrote it
        (f" {POLICY}\n", POLICY), ("https://provider.com/é", "https://provider.com/é"),
        ("x" * 8000, "x" * 8000), ("x" * 8001, None), ("", None), ("https://provider.com/\0", None),
        ("https://provider.com/\x1b[31m", None),
        ("https://provider.com/\ud800", None),  # UTF-8 cannot encode it
        (1, None), (None, None),
    ],
)  # fmt: skip
def test_policies(policy: object, expected: str | None) -> None:
    found = of(rule(tdm_policy=policy)).rule(SITE)
    assert found == TdmRule("/", True, expected)


@pytest.mark.parametrize("location", ["", "a/", "https://provider.com/", " /", None, 1, ["/"], {}])
def test_a_location_is_a_path(location: Any) -> None:
    file = of(rule(location), rule("/b"))
    assert len(file._rules) == 1
    assert reservation(file, "/a/") is None
    assert file.problem == "1 of its rules are unreadable"


@pytest.mark.rule("Invalid TDM files")
@pytest.mark.parametrize(
    ("body", "rules", "problem"),
    [
        (b"[]", 0, None), (b"\xef\xbb\xbf" + OPT_OUT, 1, None),
        (b'{"location": "/", "tdm-reservation": 1}', 0, "it is not a JSON array"),
        (b"[1, 2, [], {}]", 0, "4 of its rules are unreadable"),
        *((body, 0, "its JSON is invalid or too long") for body in (
            b"", b"<html></html>", OPT_OUT.decode().encode("utf-16"), OPT_OUT + b"x",
            b'[{"location": "/\n", "tdm-reservation": 1}]', b"[" * 250_000,
            b"[" + b'{"a":' * 100_000, b"[" + b"1," * 10_000_000,
        )),
        (b'[{"location": "/", "location": "/a", "tdm-reservation": 0, "tdm-reservation": 1}]',
         1, None),
        (b'[{"location": "/\xff", "tdm-reservation": 1}]', 1, None),
        (b'[{"location": "/\\ud800\\u0000", "tdm-reservation": 1}]', 1, None),
        (b"[" + b"1," * 13_999 + b"1]", 0, "14000 of its rules are unreadable"),
    ],
    ids=lambda value: repr(value[:30]) if isinstance(value, bytes) else None,
)  # fmt: skip
def test_any_file_is_read(body: bytes, rules: int, problem: str | None) -> None:
    file = TdmRep.parse(body)
    assert (len(file._rules), file.problem) == (rules, problem)
    assert reservation(file, "/other") in (True, None)


@pytest.mark.rule("Invalid TDM files")
def test_what_takes_too_many_steps_is_reserved_if_any_rule_reserves() -> None:
    attack = ATTACKS["permutations"]
    lines = attack.body.removeprefix(ALL).decode().splitlines()
    locations = [line.removeprefix("Disallow:") for line in lines[:8000]]
    url = attack.url(2048)
    free = [rule(location, 0) for location in locations]
    assert of(*free).rule(url) is None
    assert of(rule("/y", 1), *free).rule(url) == TdmRule("*", True)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["location", "tdm-reservation", "tdm-policy"]) | st.text(), inner
        )
    ),
)


@given(st.binary() | _JSON.map(lambda value: json.dumps(value).encode()), st.text())
def test_no_file_raises(body: bytes, path: str) -> None:
    TdmRep.parse(body).rule("/" + path)
    TdmRep.parse(b"[" + body).rule("/" + path)
