"""Findings about lines that do not do what they seem to."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.protocol.lint import Code, Correction, fix, lint
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.usage import AIPREF_EARLIER

from .test_properties import TOKENS, bodies, lines, paths

ALL = "User-agent: *\n"

# The codes whose safe correction states what a lenient parser reads anyway.
RESTATING = [
    "R101", "R202", "R203", "R210", "R304",
]  # fmt: skip


@pytest.mark.parametrize(
    ("robots_txt", "code", "advice"),
    [
        (ALL + "Disallow /a: /b", "R203", "disallow:"),
        ("sitemaps: https://h/s.xml", "R203", "sitemap:"),
        (ALL + "crawl-delays: 1", "R205", "crawl-delay:"),
        (ALL + "Disallow = /a", "R201", "disallow:"),
        (ALL + "Disallow: http://h/a?b", "R402", "'/a?b'"),
        (ALL + "Disallow: http://h", "R402", "'/'"),
        (ALL + "Disallow: http://[h", "R403", "/*http://[h"),
        ("User-agent: бот", "R303", "letters"),
        (ALL + "Crawl-delay: {0}", "R501", "seconds"),
        (ALL + "Request-rate: 1", "R501", "1/10"),
        (ALL + "Visit-time: 8", "R501", "0600-0845"),
        ("Clean-param:", "R501", "ref&sid"),
        *((ALL + f"Content-Usage: {value}", "R603", "train-ai=n")
          for value in ("/a b=", "A", "train-ai=no", "/a search")),
        *((ALL + f"Content-Usage: /a train-ai=n, {label}=n", "R605", "ai-use")
          for label in sorted(AIPREF_EARLIER)),
        *((ALL + f"Content-Signal: {value}", "R601", "ai-train=no")
          for value in ("", "/a", "a/ ai-train=no", "search=yes ai-train=no", "search=maybe",
                        "use=some", "search=yes, x", "ai_train=no")),
        ("Sitemap: http://[a", "R502", "whole URL"),
        ("License: /a.xml", "R502", "whole URL"),
        ("License:", "R502", "whole URL"),
    ],
)  # fmt: skip
def test_findings(robots_txt: str, code: str, advice: str) -> None:
    (finding,) = lint(robots_txt.encode())
    line = robots_txt.count("\n") + 1
    assert (finding.line, str(finding.code)) == (line, code)
    assert advice in finding.advice
    assert str(finding).startswith(f"line {line}: {finding.severity}: {finding.message}; ")


# The place of a finding is written in the file: between the marks « and ».
PLACES: list[tuple[Code, str, str | None]] = [
    (Code.NOT_UTF_8, ALL + "  Disallow: /ツ«\udce9»", None),
    (Code.NUL_BYTE, ALL + "  Disallow: /a«\0» \0 # \0", None),
    (Code.LONG_LINE, ALL + "«Disallow: /" + "a" * 16_700 + "» # b", None),
    (Code.NO_COLON, ALL + "«Please go away now» # b", None),
    (Code.MISSING_COLON, ALL + " «Disallow» /a", ":"),
    (Code.MISSING_COLON, ALL + "«license»\thttp://h/l.xml", ":"),
    (Code.MISSPELLED_FIELD, ALL + "«Dissallow» : /a", "Disallow"),
    (Code.MISSPELLED_FIELD, "«USER AGENT»:*\nAllow: /", "User-agent"),
    (Code.MISSPELLED_FIELD, ALL + "«crawldelay»: 1", "Crawl-delay"),
    (Code.MISSPELLED_FIELD, ALL + "«Disallaw from»: /a", None),
    (Code.MISSPELLED_FIELD, ALL + "«Disallowed» /a", "Disallow"),
    (Code.MISSPELLED_FIELD, ALL + "«Disallow /a»: /b", None),
    (Code.UNREAD_FIELD, ALL + "«Dsallow»: /a", None),
    (Code.UNKNOWN_FIELD, ALL + "«foo»: /a", None),
    (Code.OUTSIDE_GROUP, " «Disallow: /a»  # b\n" + ALL, None),
    (Code.TOKEN_WITH_VERSION, "User-agent: «Googlebot/2.1 (+http://g)»", ""),
    (Code.TOKEN_CUT, "User-agent: «MJ12bot/1»", None),
    (Code.TOKEN_CUT, "User-agent: «360Spider»", None),
    (Code.TOKEN_CUT, "User-agent: «+bot/2»", None),
    (Code.TOKEN_CUT, "User-agent: «Mozilla/5.0 (compatible; Two Words bot)»", None),
    (Code.TOKEN_CUT, "User-agent: «Mozilla/5.0 (compatible; MSIE 8.0)»", None),
    (Code.HEADER_AS_TOKEN, "User-agent: «Mozilla/5.0 (compatible; a; +b)»", "a"),
    (Code.MISSING_SLASH, ALL + "Disallow:  «wp-*?a=b» # b", "/"),
    (Code.UNMATCHABLE_PATTERN, ALL + "Disallow: «ツ»", None),
    (Code.URL_AS_PATTERN, ALL + "Disallow: «https://h/a?b»", None),
    (Code.UNMATCHABLE_PATTERN, ALL + "Disallow: «?q=»", None),
    (Code.UNMATCHABLE_PATTERN, ALL + "Disallow: «h:80/a»", None),
    (Code.NEVER_DECIDES, ALL + "Allow: /ab*\n«Disallow: /ab» # b", None),
    (Code.UNREADABLE_VALUE, ALL + "Crawl-delay: «soon» # b", None),
    (Code.OTHER_LABEL, ALL + "Content-Usage: «/a ai-train=n»", None),
    (Code.AI_TRAINING_FIELD, ALL + "Disallow: /\n«AllowAITraining»: /a", None),
]  # fmt: skip


@pytest.mark.parametrize(("code", "robots_txt", "correction"), PLACES)
def test_codes_and_columns(code: Code, robots_txt: str, correction: str | None) -> None:
    before, rest = robots_txt.split("«", 1)
    inside, after = rest.split("»", 1)
    body = (before + inside + after).encode("utf-8", "surrogateescape")
    column = len(before) - before.rfind("\n")
    place = (before.count("\n") + 1, column, column + len(inside))
    found = [finding for finding in lint(body) if finding.code is code]
    assert [(one.line, one.column, one.end_column) for one in found][:1] == [place], lint(body)
    is_safe = code is not Code.HEADER_AS_TOKEN
    assert found[0].is_fixable is (correction is not None and is_safe)
    if correction is not None:
        assert found[0].correction is not None
        assert found[0].correction.text == correction


def test_a_byte_order_mark_is_no_column() -> None:
    body = "\ufeffDisallow /a".encode()
    assert [(str(one.code), one.column, one.is_fixable) for one in lint(body)] == [
        ("R101", 1, True), ("R202", 1, True), ("R301", 1, False),
    ]  # fmt: skip
    body = "\ufeff Disallow /ツ".encode("utf-16-le")
    assert [(str(one.code), one.column, one.end_column, one.is_fixable) for one in lint(body)] == [
        ("R103", 1, 1, False), ("R202", 2, 10, False), ("R301", 2, 13, False),
    ]  # fmt: skip


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\xff\xfe"])
def test_a_byte_order_mark_before_text_that_has_none(mark: bytes) -> None:
    findings = lint(mark + b"User-agent: *\nDisallow: /a")
    assert [(str(one.code), one.line, one.is_fixable) for one in findings] == [("R101", 1, True)]


@pytest.mark.parametrize(
    "body",
    [
        # Without the first mark, the second is one, and the first line has another meaning.
        b"\xef\xbb\xbf\xef\xbb\xbfUser-agent: *",
        b"\xff\xfe\xff\xfeUser-agent: *",
        "\ufeffUser-agent: *\nDissallow /".encode("utf-16-le"),
        # Nothing is corrected in a file beyond the limit.
        b"\xef\xbb\xbfUser-agent: *\nDissallow: /\n" + b"#" * SIZE_LIMIT,
    ],
)
def test_marks_that_are_not_corrected(body: bytes) -> None:
    assert lint(body)[0].code in {Code.BYTE_ORDER_MARK, Code.UTF_16}
    assert not any(finding.is_fixable for finding in lint(body))


def test_a_correction_is_a_part_of_the_line() -> None:
    (finding,) = lint(b"User-agent: *\n  Dissallow: /a")
    assert finding.correction == Correction(3, 12, "Disallow")
    assert pickle.loads(pickle.dumps(finding)) == finding


def test_nul_octets_in_a_comment_change_nothing() -> None:
    assert lint(b"User-agent: *\nDisallow: /a  # b\0") == []


@pytest.mark.parametrize(
    ("select", "ignore", "codes"),
    [
        ([], [], ["R202", "R203", "R401", "R502"]),
        (["R2"], [], ["R202", "R203"]),
        (["r202"], [], ["R202"]),
        (["missing-colon", "R5"], [], ["R202", "R502"]),
        (["R"], ["R20"], ["R401", "R502"]),
        (["R2"], ["R2"], []),
        ([], [" Missing-Slash "], ["R202", "R203", "R502"]),
    ],
)
def test_select_and_ignore(select: list[str], ignore: list[str], codes: list[str]) -> None:
    body = b"User-agent: *\nDissallow a\nSitemap: /s"
    assert [str(one.code) for one in lint(body, select=select, ignore=ignore)] == codes


def test_codes_and_names_are_unique_and_in_order() -> None:
    codes = [code.code for code in Code]
    assert codes == sorted(set(codes))
    assert all(re.fullmatch("R[1-7][0-9]{2}", code) for code in codes)
    assert len({code.short_name for code in Code}) == len(codes)


@pytest.mark.parametrize("name", ["R999", "", "x", "E1", "missing"])
def test_codes_that_do_not_exist(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name!r} is not a code of a finding"):
        lint(b"", select=[name])
    with pytest.raises(ValueError, match="missing-colon"):
        lint(b"", ignore=["R1", name])


def test_codes_are_a_collection() -> None:
    with pytest.raises(TypeError, match="not a str"):
        lint(b"", select="R1")


def test_findings_are_in_the_order_of_the_file() -> None:
    findings = lint(b"\xefDissallow a\0\nDisallow b\0\nUser-agent: 1")
    places = [(finding.line, finding.column, str(finding.code)) for finding in findings]
    assert places == sorted(places)
    assert len({line for line, _, _ in places}) == 3


@pytest.mark.parametrize(
    "robots_txt",
    [
        "",
        "# nothing\n\n   \n",
        "Content-Signal: search=yes,ai-train=no, ai-input=no,use=reference,\n"
        "Content-Signal: /a search=yes\nSitemap: https://h/s.xml\nUser-agent: *\nDisallow:\n",
        ALL + "Disallow: /\nAllow: /a\nAllow: /b$\nAllow: *.c\nCrawl-delay: 1\nRequest-rate: 1/2",
        ALL + "Allow: /a/index.html\nDisallow: /a/\nVisit-time: 0600-0700\nContent-Usage: /a b=y",
        "User-agent: MyBot\nUser-agent: other_bot\nDisallow: /a\nHost: h\nClean-param: a /b",
        # It decides for one of the two, so it is no mistake.
        "User-agent: a\nUser-agent: b\nDisallow: /x\nUser-agent: c\nAllow: /x",
    ],
)
def test_files_without_findings(robots_txt: str) -> None:
    assert lint(robots_txt.encode()) == []


@pytest.mark.parametrize(("end", "line"), [(b"\n", 39), (b"x", 38)])
def test_lines_beyond_the_limit(end: bytes, line: int) -> None:
    filler = (b"#" + b"x" * 13_999 + b"\n") * 36
    body = b"User-agent: *\n" + filler
    body += b"#" * (SIZE_LIMIT - len(body) - 1) + end
    findings = lint(body + b"Disallow: /a\n")
    assert [finding.line for finding in findings if "nothing is read" in finding.message] == [line]


def test_google_cuts_long_lines() -> None:
    for length, findings in {16_663: 0, 16_664: 1}.items():
        found = lint(b"User-agent: *\n" + b"Disallow: /".ljust(length, b"a"))
        assert len([finding for finding in found if "Google reads" in finding.message]) == findings


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
\tUser-agent: Googlebot  # Google's
  Disallow: /private/ # see /private/\r
Disallow:   /a \r\
Visit-time: 06:00-08.45\r
Sitemap: https://h/s.xml
Crawl-delay: 5
Sitemap: https://h/t.xml
please go away
disallow: .pdf$
Dsallow: /a
"""


def test_corrections_keep_everything_else() -> None:
    assert fix(BEFORE.encode()) == AFTER.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"allowed a", b"Allow: a"),
        (b"Disallow: \xe9 # \xff\xfe", b"Disallow: \xe9 # \xff\xfe"),
        (b"Disallow : a", b"Disallow: /a"),
        (b"User-agent: \xe9/1", b"User-agent: \xe9/1"),
        (b"User-agent: mj12bot/1", b"User-agent: mj12bot/1"),
        (b"DisallowAITraining: /", b"DisallowAITraining: /"),
        (b"License https://h/l.xml", b"License: https://h/l.xml"),
        (b"\xef\xbb\xbfDisallow: /a\r\n", b"Disallow: /a\r\n"),
        (b"\xff\xfeDisallow: /a", b"Disallow: /a"),
        (
            "\ufeffDissallow: /ツ\r\n".encode("utf-16-be"),
            "\ufeffDissallow: /ツ\r\n".encode("utf-16-be"),
        ),
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
                "Allow: ", "Disallow: ", "dsallow: ", "Allow ", "b", "[", "%5b", "%62",
                "User-agent: ",                "index.html", "Mozilla/5.0 (compatible; b/1)", "https://h/a",
            ]
        ),
        max_size=40,
    ).map(lambda found: "".join(found).encode("utf-8", "surrogateescape")),
)  # fmt: skip


@settings(max_examples=400)
@given(mistakes, st.booleans())
@example("\ufeffDissallow /a".encode("utf-16-le"), False)
def test_what_is_corrected_is_not_found_again(body: bytes, unsafe: bool) -> None:
    fixed = fix(body, unsafe=unsafe)
    assert fix(fixed, unsafe=unsafe) == fixed
    before, after = (
        [one for one in lint(text) if one.is_fixable or (unsafe and one.correction)]
        for text in (body, fixed)
    )
    assert not after, fixed
    assert (fixed == body) is not bool(before)


@settings(max_examples=600)
@given(mistakes, paths, st.sampled_from(["", *TOKENS]))
@example(b"User-agent: *\nAllow: b\nDisallow: /", "/b", "")
@example(b"User-agent: *\nAllow: /[\nDisallow: %5b\nDisallow: /*[", "/[", "")
@example(
    b"User-agent: a\nUser-agent: Mozilla/5.0 (b/1)\nAllow: /\nUser-agent: *\nDisallow: /", "/", "b"
)
def test_a_safe_correction_allows_nothing_that_was_disallowed(
    body: bytes, url: str, token: str
) -> None:
    if not RobotsTxt.parse(body).allowed(url, token):
        assert not RobotsTxt.parse(fix(body)).allowed(url, token)


@given(mistakes, paths, st.sampled_from(["", *TOKENS]))
def test_what_is_restated_has_the_same_verdicts(body: bytes, url: str, token: str) -> None:
    fixed = fix(body, RESTATING)
    before, after = RobotsTxt.parse(body).verdict(url, token), RobotsTxt.parse(fixed)
    assert after.verdict(url, token) == before


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
