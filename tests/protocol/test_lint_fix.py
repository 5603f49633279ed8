"""Corrections: what they change, and what they keep."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_rep.protocol.agents import tokens_of_line
from scrapy_rep.protocol.lines import SIZE_LIMIT, read
from scrapy_rep.protocol.lint import Code, lint
from scrapy_rep.protocol.lint_codes import FIXABLE, RESTATING
from scrapy_rep.protocol.lint_fix import fix
from scrapy_rep.protocol.parser import records
from scrapy_rep.protocol.records import RECORD_TYPES, parse_request_rate, parse_visit_time
from scrapy_rep.protocol.robotstxt import RobotsTxt

from .test_properties import TOKENS, bodies, lines, paths

BEFORE = """\
\tUser agent : Googlebot/2.1 (+http://g)  # Google's
  DISSALLOW private/ # see /private/\r
Disallowed   /a \r\
visit time: 06:00-08.45\r
Sitemaps https://h/s.xml
Crawl-delay 5
SITE-MAP: https://h/t.xml
please go away
disallow: .pdf$
Dsallow: /a
"""
AFTER = """\
\tUser-agent : Googlebot  # Google's
  DISALLOW: /private/ # see /private/\r
Disallow:   /a \r\
visit-time: 0600-0845\r
Sitemap: https://h/s.xml
Crawl-delay: 5
SITEMAP: https://h/t.xml
please go away
disallow: .pdf$
Dsallow: /a
"""


def test_corrections_keep_everything_else() -> None:
    assert fix(BEFORE.encode()) == AFTER.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"Disallow a", b"Disallow: /a"),
        (b"allowed a", b"allow: /a"),
        (b"Disallow: \xe9 # \xff\xfe", b"Disallow: /\xe9 # \xff\xfe"),
        (b"User-agent: \xe9/1", b"User-agent: \xe9/1"),
        (b"User-agent: a;b/2", b"User-agent: a;b/2"),
        (b"User-agent: mj12bot/1", b"User-agent: mj12bot/1"),
        (b"Allow: /a\0\0 \0# \0", b"Allow: /a # \0"),
        (b"Allow: /a\0b", b"Allow: /a\0b"),
        (b"DisallowAITraining: /", b"DisallowAITraining: /"),
        (b"Disallow /a: /b", b"Disallow /a: /b"),
        (b"Disallow: http://h/a", b"Disallow: http://h/a"),
        (b"Request-rate: 1/2 06:00-08:00", b"Request-rate: 1/2 0600-0800"),
        (b"License https://h/l.xml", b"License: https://h/l.xml"),
        (b"Disallow /a /b", b"Disallow /a /b"),
        (b"\xef\xbb\xbfDisallow: /a\r\n", b"Disallow: /a\r\n"),
        (b"\xefDisallow: /a\r", b"Disallow: /a\r"),
        (b"\xff\xfeDisallow: /a", b"Disallow: /a"),
        ("\ufeffDissallow: /ツ\r\n".encode("utf-16-be"), "Disallow: /ツ\r\n".encode()),
        (b"", b""),
    ],
)
def test_corrections(before: bytes, after: bytes) -> None:
    assert fix(before) == after


def test_the_codes_to_correct_are_chosen() -> None:
    body = "\ufeffDissallow a\n".encode()
    assert fix(body, []) == body
    assert fix(body, ["R101"]) == b"Dissallow a\n"
    assert fix(body, ["missing-colon"]) == "\ufeffDissallow: a\n".encode()
    assert fix(body, ["R4"]) == "\ufeffDissallow /a\n".encode()
    # What has no correction is kept.
    assert fix(b"hello", ["R201"]) == b"hello"
    with pytest.raises(ValueError, match="R999"):
        fix(body, ["R999"])
    with pytest.raises(TypeError, match="bytes"):
        fix("a")  # type: ignore[arg-type]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_kept_if_its_code_is_not_chosen(encoding: str) -> None:
    body = "\ufeffDissallow: /ツ\r\n".encode(encoding)
    assert fix(body, ["R203"]) == "\ufeffDisallow: /ツ\r\n".encode(encoding)
    assert fix(body[:-1], ["R203"]) == body[:-1]


def test_files_of_more_than_500_kib_are_kept() -> None:
    body = b"User-agent: *\nDisallow a\n".ljust(SIZE_LIMIT, b"#")
    assert fix(body) == body
    assert fix(body[:-1]) == body[:-1]
    assert fix(body[:-2]) == body[:-2].replace(b"Disallow a", b"Disallow: /a")
    assert fix(body + b"#") == body + b"#"


mistakes = st.one_of(
    bodies,
    st.lists(lines(), max_size=8).map(lambda found: "\ufeff" + "".join(found)).map(str.encode),
    st.lists(
        st.sampled_from(
            [
                *" \t\n\r#:/*$a\0\v", "\r\n", "User-agent", "user agents", "dissallowed",
                "Disallow", "ALLOW", "Sitemap", "https://h", "license", "crawl delay", "Visit time",
                "06:00-07.00", "1/2", "a/1", "é", "\udce9", "\ufeff", "disallowaitraining",
            ]
        ),
        max_size=40,
    ).map(lambda found: "".join(found).encode("utf-8", "surrogateescape")),
)  # fmt: skip


@settings(max_examples=400)
@given(mistakes)
@example("\ufeffDissallow /a".encode("utf-16-le"))
def test_what_is_corrected_is_not_found_again(body: bytes) -> None:
    fixed = fix(body)
    assert fix(fixed) == fixed
    assert not any(finding.is_fixable for finding in lint(fixed)), fixed
    before, after = lint(body), lint(fixed)
    assert {finding.code for finding in before if finding.is_fixable} <= FIXABLE
    assert len(after) <= len(before) - sum(finding.is_fixable for finding in before) + 4
    assert (fixed == body) is not any(finding.is_fixable for finding in before)


@settings(max_examples=400)
@given(mistakes, paths, st.sampled_from(["", *TOKENS]))
def test_what_is_restated_has_the_same_verdicts(body: bytes, url: str, token: str) -> None:
    fixed = fix(body, [str(code) for code in RESTATING])
    before, after = RobotsTxt.parse(body).verdict(url, token), RobotsTxt.parse(fixed)
    assert after.verdict(url, token) == before


@settings(max_examples=400)
@given(mistakes)
def test_what_is_restated_is_read_as_before(body: bytes) -> None:
    fixed = fix(body, [str(code) for code in RESTATING])
    before = list(records(read(body), strict=False))
    after = list(records(read(fixed), strict=False))
    if any(finding.severity == "error" for finding in lint(body, select=["R202"])):
        return  # a URL in place of a colon: the line is read otherwise, as it should be
    assert len(before) == len(after)
    for old, new in zip(before, after):
        assert (old.line, old.field) == (new.line, new.field)
        if old.field == b"user-agent":
            assert tokens_of_line(old.value) == tokens_of_line(new.value)
        elif old.field == b"visit-time":
            assert parse_visit_time(old.value) == parse_visit_time(new.value)
        elif old.field == b"request-rate":
            assert parse_request_rate(old.value) == parse_request_rate(new.value)
        else:
            assert old.value == new.value
    # A strict parser reads then what a lenient one reads, but for the names that are not corrected.
    if not {Code.LONGER_FIELD, Code.MISSPELLED_FIELD, Code.AI_TRAINING_FIELD} & {
        finding.code for finding in lint(fixed)
    }:
        known = {row.field for row in RECORD_TYPES} | {b"user-agent", b"allow", b"disallow"}
        strict = [one for one in records(read(fixed), strict=True) if one.field in known]
        assert strict == [one for one in after if one.field in known]


@given(mistakes)
def test_comments_and_line_ends_are_kept(body: bytes) -> None:
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return
    fixed = fix(body)
    for octet in (b"\n", b"\r", b"#"):
        assert fixed.count(octet) == body.count(octet)
    ends = body.replace(b"\r", b"\n").split(b"\n"), fixed.replace(b"\r", b"\n").split(b"\n")
    for before, after in zip(*ends):
        assert before.partition(b"#")[1:] == after.partition(b"#")[1:]
