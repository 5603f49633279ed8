"""X-Robots-Tag, robots meta elements, TDM reservation and access terms, clause by clause."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from copy import copy
from dataclasses import asdict, fields, replace
from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Response

from scrapy_rep import AccessTerms, PageDirectives
from scrapy_rep.pages import directives as module
from scrapy_rep.pages.directives import (
    MAX_OFFERS,
    META,
    directives_when_asked,
    merge,
    stated_in,
    uses_in,
)
from scrapy_rep.pages.html import elements
from scrapy_rep.protocol.freshness import parse_date
from scrapy_rep.protocol.printable import LENGTH
from scrapy_rep.protocol.tdmrep import TdmRule
from scrapy_rep.protocol.usage import evaluated

pytestmark = pytest.mark.rule("X-Robots-Tag and meta elements")
TAG = "x-robots-tag"
OURS = ("mybot", "other-bot")
MEGABYTE = 1_000_000
LONG_HEADER = 200_000
"""Bytes: many times what the HTTP clients of Scrapy read."""


def page(html: str | bytes, *headers: tuple[str, str]) -> HtmlResponse:
    fields: dict[str, list[bytes]] = {}
    for name, line in headers:
        fields.setdefault(name, []).append(line.encode("latin-1", "replace"))
    body = html if isinstance(html, bytes) else html.encode()
    return HtmlResponse("https://page.example/", headers=fields, body=body)


def of_headers(*headers: tuple[str, str], url: str | None = None) -> PageDirectives:
    return merge(stated_in(page("", *headers), OURS), url)


def of_lines(*lines: str) -> PageDirectives:
    return of_headers(*((TAG, line) for line in lines))


def of_page(
    html: str | bytes,
    *headers: tuple[str, str],
    tokens: tuple[str, ...] = OURS,
    url: str | None = None,
    tdm: TdmRule | None = None,
) -> PageDirectives:
    return merge(stated_in(page(html, *headers), tokens, tdm), url)


def stated_by(directives: PageDirectives) -> dict[str, Any]:
    """Return the fields that differ from the defaults."""
    defaults = asdict(PageDirectives())
    return {name: value for name, value in asdict(directives).items() if value != defaults[name]}


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=timezone.utc)  # type: ignore[arg-type,misc]


NOINDEX = {"noindex": True}
NOFOLLOW = {"nofollow": True}
NOARCHIVE = {"noarchive": True}
BOTH = {**NOINDEX, **NOFOLLOW}
JUNE = utc(2010, 6, 25, 15)
EXPIRES = {"unavailable_after": JUNE}

# X-Robots-Tag: rule *("," rule), rule = [agent ":"] name [":" arg]

FLAGS = (
    "noindex nofollow noarchive nocache nosnippet noimageindex notranslate indexifembedded"
    " nositelinkssearchbox noodp noai noimageai noml"
)


@pytest.mark.parametrize("name", FLAGS.split())
def test_google_each_rule_has_its_field(name: str) -> None:
    assert stated_by(of_lines(name)) == {name: True}
    assert stated_by(of_page(f"<meta name=robots content={name}>")) == {name: True}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {}),
        ("noindex", NOINDEX),
        ("  noindex ,\tnofollow  ", BOTH),
        ("noindex,,nofollow,", BOTH),
        ("none", BOTH),
        ("all", {}),
        ("unheard-of, noindex", NOINDEX),
        ("noindex nofollow", {}),  # no comma, so it is one unknown name
        ("noindex: really", NOINDEX),  # an argument that the rule does not have
        ("index, noindex, index", NOINDEX),  # a restriction once made stays
        # An agent holds until the next one or the end of the line.
        ("mybot: noindex", NOINDEX),
        ("mybot/2.1: noindex", NOINDEX),
        ("mybot: noindex, nofollow", BOTH),
        ("elsebot: noindex, mybot: nofollow", NOFOLLOW),
        ("noindex, elsebot: nofollow", NOINDEX),
        ("elsebot: noindex, nofollow, mybot: noarchive", NOARCHIVE),
        ("elsebot: noindex, *: nofollow", NOFOLLOW),
        ("elsebot: noindex, robots: nofollow", NOFOLLOW),
        ("elsebot:, noindex", {}),
        ("elsebot: mybot: noindex", NOINDEX),  # the last agent holds
        ("mybot-image: noindex", {}),
        ("mybot: noindex, other-bot: nofollow", BOTH),  # both are ours
        # The name of a rule is never an agent, and neither is a name before a number.
        ("max-snippet: 5, noindex", {"max_snippet": 5, **NOINDEX}),
        ("unheard-of: 5, noindex", NOINDEX),
        ("index: noindex, nofollow", NOFOLLOW),
        # A date runs to the next rule or agent.
        ("unavailable_after: 25 Jun 2010 15:00:00 GMT", EXPIRES),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, noarchive",
         {**EXPIRES, **NOARCHIVE}),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, mybot: noarchive",
         {**EXPIRES, **NOARCHIVE}),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, elsebot: noarchive", EXPIRES),
        ("unavailable_after: 2010-06-25T15:00:00Z, max-snippet:5", {**EXPIRES, "max_snippet": 5}),
        ("noarchive, unavailable_after: 2010-06-25T15:00:00.500Z", {**EXPIRES, **NOARCHIVE}),
        # An unreadable date is ignored.
        ("unavailable_after: soon, I think, noindex", NOINDEX),
        ("unavailable_after, noindex", NOINDEX),
    ],
)  # fmt: skip
def test_google_a_line_of_x_robots_tag(line: str, expected: dict[str, Any]) -> None:
    assert stated_by(of_lines(line)) == expected


@pytest.mark.parametrize(
    "name",
    [*FLAGS.split(), "none", "all", "index", "follow", "max-snippet", "max-video-preview",
     "max-image-preview", "unavailable_after", "NoIndex"],
)  # fmt: skip
def test_the_name_of_a_rule_is_never_an_agent(name: str) -> None:
    assert of_lines(f"{name}: x, noarchive").noarchive


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["max-snippet:20"], {"max_snippet": 20}),
        (["max-snippet:20", "max-snippet:30"], {"max_snippet": 20}),
        (["max-snippet:-1"], {"max_snippet": -1}),
        (["max-snippet:-1, max-snippet:20"], {"max_snippet": 20}),  # -1 is no limit
        (["max-snippet:20, max-snippet:-1"], {"max_snippet": 20}),
        (["max-snippet:0"], {"max_snippet": 0, "nosnippet": True}),
        (["max-snippet"], {}),
        *(([f"max-snippet:{value}"], {}) for value in ("many", "1.5", "٣", "0" * 5000, "9" * 5000)),
        (["max-video-preview:3"], {"max_video_preview": 3}),
        (["max-image-preview:none"], {"max_image_preview": "none"}),
        (["max-image-preview:Large"], {"max_image_preview": "large"}),
        (["max-image-preview:large, max-image-preview:standard"],
         {"max_image_preview": "standard"}),
        (["max-image-preview:huge"], {}),
        (["unavailable_after: 2011-01-01", f"unavailable_after: {JUNE}"], EXPIRES),
        ([f"unavailable_after: {JUNE}", "unavailable_after: 2011-01-01"], EXPIRES),
        (["elsebot: noindex", "nofollow"], NOFOLLOW),  # an agent holds to the end of its line
    ],
)  # fmt: skip
def test_google_the_stricter_of_two_holds(lines: list[str], expected: dict[str, Any]) -> None:
    assert stated_by(of_lines(*lines)) == expected


# unavailable_after


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # RFC 850
        ("Friday, 25-Jun-10 15:00:00 GMT", JUNE),
        ("25-Jun-2010 15:00:00 EST", utc(2010, 6, 25, 20)),
        # RFC 822
        ("Fri, 25 Jun 2010 15:00:00 GMT", JUNE),
        ("25 Jun 2010 15:00:00 PST", utc(2010, 6, 25, 23)),
        ("25 Jun 2010 15:00:00", JUNE),  # no zone
        ("25 Jun 2010 15:00:00 XYZ", JUNE),  # RFC 5322 §4.3: as if there were none
        ("Fri Jun 25 15:00:00 2010", JUNE),  # asctime
        # ISO 8601
        ("2010-06-25T15:00:00Z", JUNE),
        ("2010-06-25T15:00:00+02:00", utc(2010, 6, 25, 13)),
        ("2010-06-25 15:00:00 UTC", JUNE),
        ("2010-06-25T15:00:00.123Z", JUNE),
        ("2010-06-25", utc(2010, 6, 25)),
        ("  2010-06-25  ", utc(2010, 6, 25)),
        # No dates
        *((text, None) for text in (
            "", "2010", "2010-06-25T25:00Z", "0001-01-01T00:00:00+14:00",
            "31 Feb 2010 00:00:00 GMT", "25 Jun 2010 15:00:00 +99999999",
            "31 Dec 9999 23:59:59 -0100", "9999-12-31T23:59:59-01:00",  # the year 10000 in UTC
        )),
    ],
)  # fmt: skip
def test_google_a_date_is_parsed(text: str, expected: datetime | None) -> None:
    assert parse_date(text) == expected


# Meta elements


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<meta name="robots" content="noindex">', NOINDEX),
        ("<meta name='robots' content='noindex'/>", NOINDEX),
        ("<META NAME=ROBOTS CONTENT=NOINDEX>", NOINDEX),
        ("<meta content=noindex name=robots>", NOINDEX),
        ("<meta\n\tname = robots\f content\r=\n'noindex , nofollow'>", BOTH),
        ('<meta name="robots"content="noindex">', NOINDEX),
        ('<meta name=" robots " content="noindex">', NOINDEX),
        ('<meta property="robots" content="noindex">', {}),
        ('<meta name="robots" value="noindex">', {}),  # never value
        ('<metadata name="robots" content="noindex">', {}),
        ('<meta name="robots" content="noindex" content="nofollow">', NOINDEX),  # the first one
        ('<meta name="robots" content="no&#105;ndex&comma; nofollow">', BOTH),
        ('<meta name="robots" content="noindex&nofollow">', {}),
        ('<meta name="mybot" content="noindex">', NOINDEX),
        ('<meta name="elsebot" content="noindex">', {}),
        ('<meta name="robots" content="mybot: noindex, nofollow">', NOFOLLOW),  # no agents here
        ('<meta name="robots" content="noindex"><meta name="robots" content="nofollow">', BOTH),
        ('<meta name="robots" content="noindex"><meta name="mybot" content="index">', NOINDEX),
        ('<meta name="robots" content="max-snippet:0">', {"max_snippet": 0, "nosnippet": True}),
        ('<meta name="robots" content="unavailable_after: Friday, 25-Jun-10 15:00:00 GMT, noai">',
         {**EXPIRES, "noai": True}),
        ('<meta name="description" content="about robots: noindex">', {}),
        ('<meta title="a > b" name="robots" content="noindex">', NOINDEX),
        ('<meta name="&Tab;robots&NewLine;" content="noindex">', NOINDEX),
        ('<meta n&#97;me="robots" content="noindex">', {}),  # no references in names of attributes
    ],
)  # fmt: skip
def test_google_a_meta_element(html: str, expected: dict[str, Any]) -> None:
    assert stated_by(of_page(html)) == expected


NOINDEX_META = '<meta name="robots" content="noindex">'


@pytest.mark.rule("Meta elements that do not count")
@pytest.mark.parametrize(
    ("before_and_after", "expected"),
    [
        ("<!doctype html><html><head><title>A page</title>|</head><body></body></html>", NOINDEX),
        ("<head></head><body><p>text|", NOINDEX),  # also in the body
        # Behind the end tag of html: a browser adds it to the body.
        *((f"<html><body></body></html>{between}|", NOINDEX) for between in (
            "", "text", "<!-- comment -->", "<div>block</div>", "<!doctype html><head>",
            "<html><body></body></html>",
        )),
        ("<frameset></frameset></html>|", NOINDEX),
        ("<html></html><!-- | -->", {}),
        ("<html></html><template>|</template>", {}),
        ("<noscript>|</noscript>", NOINDEX),  # scripts do not run
        ("<svg>|</svg>", NOINDEX),
        ("<?xml version='1.0'?>|", NOINDEX),
        ("a < b |", NOINDEX),
        ("<script>a < b</script>|", NOINDEX),
        ("<template><template></template></template>|", NOINDEX),
        ("\ufeff|", NOINDEX),
        ("<!-- | -->", {}),
        ("<!-- a > b |", {}),  # never closed
        ("<p title='|'>", {}),
        ("<script>|</script>", {}),
        ("<script>|", {}),
        ("<title>|</title>", {}),
        ("<template>|</template>", {}),
        ("<template><template></template>|</template>", {}),
        ("<meta name=robots content=noindex", {}),  # never closed
    ],
)  # fmt: skip
def test_html_where_a_meta_element_counts(before_and_after: str, expected: dict[str, Any]) -> None:
    assert stated_by(of_page(before_and_after.replace("|", NOINDEX_META))) == expected


# All statements that apply are merged


def test_google_statements_of_header_and_page_are_merged() -> None:
    headers = [(TAG, "noarchive, elsebot: noai"), (TAG, "mybot: max-snippet:9")]
    html = b"<meta name=robots content='nofollow,max-snippet:7'><meta name=mybot content=noodp>"
    stated = list(stated_in(page(html, *headers), OURS))
    expected = {**NOARCHIVE, **NOFOLLOW, "max_snippet": 7, "noodp": True}
    assert stated_by(merge(stated)) == expected
    assert [each[:4] for each in stated] == [
        ("noarchive", "", TAG, "*"),
        ("max-snippet", "9", TAG, "mybot"),
        ("nofollow", "", META, "*"),
        ("max-snippet", "7", META, "*"),
        ("noodp", "", META, "mybot"),
    ]


def test_only_general_rules_apply_to_a_crawler_without_a_token() -> None:
    html = b"<meta name=robots content=noindex><meta name=mybot content=nofollow>"
    assert stated_by(of_page(html, (TAG, "mybot: noai, *: noodp"), tokens=())) == {
        "noodp": True,
        **NOINDEX,
    }


# TDM reservation

RESERVED = {"tdm_reservation": True}
FREE = {"tdm_reservation": False}


@pytest.mark.rule("Order of TDM reservations")
@pytest.mark.parametrize(
    ("headers", "html", "rule", "expected"),
    [
        ({}, "", TdmRule("/", True), RESERVED),
        ({}, "", TdmRule("/", False, "/f"), {**FREE, "tdm_policy": "/f"}),
        ({"tdm-reservation": "0"}, "", TdmRule("/", True), FREE),
        ({"tdm-reservation": "2"}, "", TdmRule("/", True), RESERVED),
        ({"tdm-policy": "/h"}, "", TdmRule("/", True, "/f"), {**RESERVED, "tdm_policy": "/h"}),
        # Absence resets nothing.
        ({"tdm-reservation": "0"}, "", TdmRule("/", True, "/f"), {**FREE, "tdm_policy": "/f"}),
        ({"tdm-reservation": "1"}, "<meta name=tdm-reservation content=0>",
         TdmRule("/", True, "/f"), {**FREE, "tdm_policy": "/f"}),
        ({"tdm-policy": "/h"}, "<meta name=tdm-policy content=/p>",
         TdmRule("/", False, "/f"), {**FREE, "tdm_policy": "/p"}),
    ],
)  # fmt: skip
def test_tdm_the_page_over_the_header_over_the_file(
    headers: dict[str, str], html: str, rule: TdmRule, expected: dict[str, Any]
) -> None:
    assert stated_by(of_page(html, *headers.items(), tdm=rule)) == expected


def test_tdm_a_reservation_holds_over_other_values_of_the_same_header() -> None:
    reservations = [("tdm-reservation", value) for value in "010"]
    assert of_headers(*reservations).tdm_reservation is True


# Robots-Tag (draft-illyes-repext)

ROBOTS_TAG = "robots-tag"


@pytest.mark.rule("Robots-Tag and noml")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # The example of the draft. Its second member ends in ";", and is read all the same.
        ("*;nosnippet, ExampleBot;noindex", {"nosnippet": True}),
        ("*;nosnippet, MyBot;noindex", {"nosnippet": True, **NOINDEX}),
        ("* ; noindex ;\tnofollow", BOTH),
        ('"*";noindex, "mybot/2.1";nofollow', BOTH),
        ("robots;NoIndex", NOINDEX),
        ("elsebot;none, mybot", {}),
        ("*;none;noml", {**BOTH, "noml": True}),
        ("*;noindex=?0;nofollow=?1", NOFOLLOW),
        ("*;max-snippet=5;max-image-preview=none, mybot;max-snippet=3",
         {"max_snippet": 3, "max_image_preview": "none"}),
        ('*;unavailable_after="Fri, 25 Jun 2010 15:00:00 GMT";noindex',
         {**NOINDEX, **EXPIRES}),
        ('*;x="a, mybot;noindex";nofollow', NOFOLLOW),  # a String
        ('*;x="a\\", b";nofollow', NOFOLLOW),
        ('*;nofollow;x="a\\', NOFOLLOW),
        # As X-Robots-Tag.
        ("mybot: noindex, elsebot: nofollow", NOINDEX),
        ("noindex;nofollow", BOTH),
        (";noindex", NOINDEX),
        ("elsebot;nofollow, noindex", NOINDEX),  # the parameters end with their member
        ("elsebot: noindex;nofollow", {}),
        ("mybot: noindex;nofollow", BOTH),
        ("é;noindex", NOINDEX),  # no agent, so it is for everyone
        ("", {}),
    ],
)  # fmt: skip
def test_repext_a_line_of_robots_tag(line: str, expected: dict[str, Any]) -> None:
    assert stated_by(of_headers((ROBOTS_TAG, line))) == expected


# Licenses (RSL 1.0)

PAGE = "https://example.com/blog/a"
RSL = "https://example.com/license.xml"


@pytest.mark.rule("Licenses of pages")
@pytest.mark.parametrize(
    ("line", "licenses"),
    [
        (f'<{RSL}>; rel="license"; type="application/rsl+xml"', (RSL,)),
        (f"<{RSL}>;rel=license", (RSL,)),
        (f'<{RSL}> ; title="a, b; rel=x" ; REL="Describedby LICENSE"', (RSL,)),
        (f'</style.css>; rel=preload, <{RSL}>; rel="license", <b>;rel=next', (RSL,)),
        (f'<{RSL}>; rel=license, </a?a,b>; rel="license"', (RSL, "https://example.com/a?a,b")),
        (f"<{RSL}>; rel=license, <{RSL}>; rel=license", (RSL,)),
        ("<c.xml>; rel=license", ("https://example.com/blog/c.xml",)),
        ("<//other.example/c>; rel=license", ("https://other.example/c",)),
        (f"<{RSL}>; rel=next; rel=license", ()),  # the first rel counts
        (f"<{RSL}>; rel=licenses", ()),
        (f"<{RSL}>; anchor='/b'; rel=license", ()),  # a link of another page
        (f'<{RSL}>; title="; rel=license"', ()),
        (f"{RSL}; rel=license", ()),
        ("<http://[bad>; rel=license", ()),
        ("< >; rel=license", ()),
        ("<a", ()),
        (f'<{RSL}>; rel="license', (RSL,)),
        (f'<{RSL}>; rel=license; title="\\', (RSL,)),
    ],
)
def test_rsl_a_link_header(line: str, licenses: tuple[str, ...]) -> None:
    directives = of_headers(("link", line), url=PAGE)
    assert stated_by(directives) == ({"licenses": licenses} if licenses else {})


def test_rsl_link_elements_and_headers_are_listed_together() -> None:
    html = f"<link rel=license href=/b><link rel=license href='{RSL}'><link rel=license href=' '>"
    directives = of_page(html, ("link", "</a>; rel=license"), url=PAGE)
    assert directives.licenses == ("https://example.com/a", "https://example.com/b", RSL)


def test_rsl_at_most_a_hundred_licenses_of_a_page_are_listed() -> None:
    line = ",".join(f"<{number}>;rel=license" for number in range(2000))
    html = "".join(f"<link rel=license href={number}>" for number in range(20_000))
    for directives in (of_headers(("link", line)), of_page(html)):
        assert directives.licenses == tuple(str(number) for number in range(module.MAX_LICENSES))


@pytest.mark.parametrize(
    "piece",
    ["<", "<a>", '\\"<a>', "<a>;rel=license,", "; ", ",", '"', "\\", "a;", "*;noindex", '*;a="',
     "mybot:"],
)  # fmt: skip
@pytest.mark.parametrize("end", ["", "\\", '"', ">;rel=license"])
@pytest.mark.no_cover
def test_long_headers_are_read_in_linear_time(piece: str, end: str) -> None:
    value = piece * (64 * 1024 // len(piece)) + end
    for name in ("link", ROBOTS_TAG):
        assert len(of_headers((name, f"license{value}")).licenses) <= module.MAX_LICENSES


# Hostile headers and pages


@given(st.text())
def test_no_text_for_a_date_raises(text: str) -> None:
    date = parse_date(text)
    assert date is None or date.tzinfo is timezone.utc


_RULES = st.sampled_from([*FLAGS.split(), "none", "max-snippet:5", "max-snippet:-1", "all"])


@given(st.lists(_RULES, max_size=6), st.lists(_RULES, max_size=6))
def test_the_order_of_statements_does_not_matter(some: list[str], others: list[str]) -> None:
    one, other = of_lines(*some, *others), of_lines(*others, *some)
    assert stated_by(one) == stated_by(other)
    flags = [field.name for field in fields(PageDirectives) if field.type == "bool"]
    alone = of_lines(*some)
    assert all(getattr(one, flag) >= getattr(alone, flag) for flag in flags)


@pytest.mark.parametrize(
    "html",
    [
        NOINDEX_META, "<meta name=robots x='", "<", '<a b="', "<!--", "</", "<script>",
        "<template>", "<meta name=robots content='&#9", "\0", "<<b", "<meta a=b>", "</html>x",
    ],
)  # fmt: skip
def test_the_first_element_of_a_hostile_page_is_read(html: str) -> None:
    body = (NOINDEX_META + html * (MEGABYTE // len(html)) + NOINDEX_META).encode()
    assert of_page(body).noindex


@pytest.mark.no_cover  # Coverage would take most of the time.
@pytest.mark.parametrize(
    "line", ["mybot:", ",", "unavailable_after:,", "a/b:", " ", "noindex,", "9", "2010-06-25,"]
)
def test_the_first_rule_of_a_hostile_header_is_read(line: str) -> None:
    text = line * (LONG_HEADER // len(line))
    for prefix in ("", "a/", "unavailable_after:", "max-snippet:"):
        assert of_lines(f"noarchive, {prefix}{text}").noarchive


# Access terms


def terms(status: int, headers: dict[str, Any]) -> AccessTerms | None:
    return module.terms_of(Response("https://a.example/", status, headers))


@pytest.mark.rule("402, and 401 with WWW-Authenticate: License")
@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (402, {"crawler-price": "USD 0.01"}, AccessTerms(payment_required=True, price="USD 0.01")),
        (402, {}, AccessTerms(payment_required=True)),
        # A page that was paid for, and a refusal that no payment changes.
        (200, {"crawler-charged": "USD 0.01"}, None),
        (200, {"crawler-price": "USD 0.01"}, None),
        (403, {"crawler-error": "CrawlerForbidden"}, None),
        # Not of the source.
        (402, {"crawler-price": ["USD 0.01", "USD 9"]},
         AccessTerms(payment_required=True, price="USD 0.01")),
        (402, {"crawler-price": "  "}, AccessTerms(payment_required=True)),
        # x402
        (402, {"PAYMENT-REQUIRED": " e30= "}, AccessTerms(payment_required=True, offers="e30=")),
        (200, {"PAYMENT-REQUIRED": "e30="}, None),
        (402, {"PAYMENT-REQUIRED": "\x1b[2J"}, AccessTerms(payment_required=True)),
        (402, {"PAYMENT-REQUIRED": "A" * (MAX_OFFERS + 1)}, AccessTerms(payment_required=True)),
    ],
)  # fmt: skip
def test_a_payment(status: int, headers: dict[str, Any], expected: AccessTerms | None) -> None:
    assert terms(status, headers) == expected


@pytest.mark.rule("402, and 401 with WWW-Authenticate: License")
@pytest.mark.parametrize(
    ("status", "lines", "is_required"),
    [
        # RSL 1.0 §6.3
        (401, ['License error="invalid_token", error_description="License token missing, expired, '
               'revoked, or malformed"'], True),
        (402, ['License error="insufficient_scope"'], True),
        # A token that does not permit this use: another crawl has no use for it.
        (403, ['License error="insufficient_scope"'], False),
        # RFC 9110 §11: schemes and names in any case, several challenges in one line or more
        (401, ["License"], True),
        (401, ["  LICENSE\tERROR = invalid_token "], True),
        (401, ['Basic realm="a, b", License error="x", Bearer error="y"'], True),
        (401, ['Basic realm="a"', 'License error="x"'], True),
        (401, ['Negotiate YWJj==, License, error="x"'], True),
        (401, [",, ,License error=x,,"], True),
        # Without the scheme
        (401, [], False),
        (401, ['Basic realm="License"'], False),
        (401, ['Basic realm="a, License error=b"'], False),
        (401, ["Basic License=1"], False),
        (401, ["Licenses error=x"], False),
        (401, ["License=x"], False),
        (401, ["License = x"], False),
        (402, ['Payment id="1", method="card"'], False),
        # Broken and hostile
        (401, ['License error="never ended, Basic realm=x'], True),
        (401, ["License ===,=,= =,\x00\x1b="], False),  # a parameter with the name License
        (401, ["License a,=,= =,\x00\x1b="], True),
        (401, ["Basic"] * 10 + ["License"], False),  # beyond the lines that are read
        (401, [" " * 65_536 + "License"], False),
        (401, ["," * 65_536], False),
        (401, ['"' * 65_536], False),
        (401, ["\\" * 65_536], False),
    ],
)  # fmt: skip
def test_rsl_a_license(status: int, lines: list[str], is_required: bool) -> None:
    found = terms(status, {"WWW-Authenticate": lines})
    assert (found is not None and found.license_required) == is_required


TERMS = ("crawler-price", "PAYMENT-REQUIRED", "WWW-Authenticate")


@given(
    st.sampled_from([401, 402]),
    st.dictionaries(st.sampled_from(TERMS), st.lists(st.binary())),
    st.text('License ,="\\\x1b'),
)
def test_no_header_raises_and_all_texts_are_short_and_printable(
    status: int, headers: dict[str, list[bytes]], challenge: str
) -> None:
    headers.setdefault("WWW-Authenticate", []).append(f"License {challenge}".encode())
    headers.setdefault("crawler-price", []).append(b"9" * 65_536)
    found = terms(status, headers)
    if found is None:
        assert status == 401
        return
    assert str(found).isprintable()
    assert len(str(found)) < 2 * LENGTH
    assert found.offers is None or found.offers.isprintable()


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (AccessTerms(payment_required=True), "a payment"),
        (AccessTerms(payment_required=True, offers="e30="), "a payment (x402)"),
        (AccessTerms(payment_required=True, price="USD 0.01", offers="e30="),
         "a payment (USD 0.01)"),
        (AccessTerms(license_required=True, price="USD 0.01"), "a license"),
        (AccessTerms(payment_required=True, license_required=True), "a payment and a license"),
    ],
)  # fmt: skip
def test_the_text_names_what_is_required(found: AccessTerms, text: str) -> None:
    assert str(found) == text


@pytest.mark.parametrize(
    ("signals", "usages", "stated"),
    [
        ([], [], {}), (["search=yes", "ai-train=no"], [], {"search": True, "train-ai": False}),
        (["search=yes", "search=no"], [], {"search": False}),
        ([], ["train-ai=n", "search=y"], {"train-ai": False, "search": True}),
        ([], ["train-ai=n", "train-ai=y"], {"train-ai": True}),  # one dictionary, the last counts
        ([], ["train-ai=n", "search=y,"], {}),  # one dictionary, which is invalid
        (["search=yes"], ["search=n"], {"search": False}), (["use=immediate"], ["use=n"],
         {"use=immediate": True, "use=reference": False, "use=full": False}),
    ],
)  # fmt: skip
def test_usage_headers(signals: list[str], usages: list[str], stated: dict[str, bool]) -> None:
    headers = {"Content-Signal": signals, "Content-Usage": usages}
    found = uses_in(Response("https://a.example/", headers=headers))
    assert evaluated(found.values()) == stated


# Pages that are parsed when a directive is asked for


def test_a_page_is_parsed_once_when_a_directive_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = list[bytes]()

    def parse(page: bytes, *names: Any) -> Iterator[Any]:
        parsed.append(page)
        return elements(page, *names)

    monkeypatch.setattr(module, "elements", parse)
    body, charset = '<meta name="robots" content="nofollow">', "utf-16-le"  # only a browser says so
    headers = {"X-Robots-Tag": "noindex"}
    page = HtmlResponse("https://a.example/", 200, headers, body, encoding=charset)
    found, *copies = (directives_when_asked(page, (), None) for _ in range(3))
    assert not parsed
    assert (found.noindex, found.nofollow, found.noai) == (True, True, False)
    assert parsed == [body.encode()]
    assert not hasattr(found, "index")
    assert pickle.loads(pickle.dumps(copies[0])) == copy(copies[1]) == found
    assert asdict(found) == asdict(copies[0])
    plain = PageDirectives(noindex=True, nofollow=True)
    assert {found, copies[0]} == {plain, found}
    assert (str(found), replace(found)) == (str(plain), plain)
    assert parsed == [body.encode()] * 3
