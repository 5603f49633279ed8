"""Findings about lines that do not do what they seem to.

`MISTAKES` are those that Google's documentation, Lighthouse's audit, Yandex' analysis and public
checkers name, each planted in a file of its own. The finding must be there, with its line and
severity, between the marks « and » if there are any, and its advice must say what to write.
"""

from __future__ import annotations

import pickle
import re
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_rep.commands.crawlers import well_known_crawlers
from scrapy_rep.protocol.lines import SIZE_LIMIT, read
from scrapy_rep.protocol.lint import Code, Correction, fix, lint
from scrapy_rep.protocol.lint_checks import TRAINING_CRAWLERS
from scrapy_rep.protocol.matcher import Steps, matches
from scrapy_rep.protocol.paths import path_of, pattern_of
from scrapy_rep.protocol.robotstxt import RobotsTxt
from scrapy_rep.protocol.usage import AIPREF_EARLIER
from scrapy_rep.protocol.verdict import Rule

from .test_properties import TOKENS, bodies, lines, paths, patterns

CRAWLERS = {token.lower(): token for crawler in well_known_crawlers() for token in crawler.tokens}

ALL = "User-agent: *\n"

MANY = ALL + "".join(f"Disallow: /{number}/\n" for number in range(5_001))

# The codes whose safe correction states what a lenient parser reads anyway.
RESTATING = ["R101", "R202", "R203", "R210", "R304"]

# The file, the code, the line, the severity, and words of the advice.
MISTAKES = [
    # Two things on one line.
    ("User-agent: * Disallow: /", "R207", 1, "error", "line of its own"),
    ("Sitemap: https://h/a.xml Sitemap: https://h/b.xml", "R207", 1, "error", "line of its own"),
    ("Sitemap: https://h/a.xml https://h/b.xml", "R208", 1, "warning", "for each URL"),
    ("User-agent: Googlebot, Bingbot\nDisallow: /a", "R208", 1, "warning", "for each of them"),
    (ALL + "Disallow: /a, /b", "R208", 2, "warning", "for each path"),
    # Patterns that match more or less than they say.
    (ALL + "Disallow: /#section", "R405", 2, "error", "write 'Disallow:' without a value"),
    (ALL + "Disallow: “/admin”", "R403", 2, "error", "'/admin', without quotation marks"),
    (ALL + "Disallow: '/cart'", "R403", 2, "error", "'/cart', without quotation marks"),
    (ALL + "Disallow: \\images\\", "R403", 2, "error", "'/images/'"),
    (ALL + "Disallow: ^/page[0-9]+$", "R403", 2, "error", "not a regular expression"),
    (ALL + "Disallow: ./admin", "R403", 2, "error", "'/admin'"),
    (ALL + "Disallow: .pdf$", "R403", 2, "error", "'/*.pdf$'"),
    (ALL + "Disallow: admin", "R401", 2, "error", "'/admin'"),
    (ALL + "Disallow: https://h/admin", "R402", 2, "error", "'/admin' if you mean a path of this"),
    (ALL + "Disallow: /(a|b)/.*", "R406", 2, "warning", "for each beginning"),
    (ALL + "Disallow: /a$b", "R407", 2, "warning", "'%24'"),
    (ALL + "Disallow: /a$*", "R407", 2, "warning", "'%24'"),
    (ALL + "Disallow: /a**b", "R408", 2, "info", "one '*'"),
    ("User-agent: b\nDisallow: *", "R409", 2, "info", "'/'"),
    (ALL + "Disallow: /a\nAllow: /a", "R404", 2, "warning", "remove the line"),
    *((ALL + f"Disallow: {before}", "R413", 2, "warning", f"write '{after}'") for before, after in (
        ("/my folder/", "/my%20folder/"), ("/a[1]/", "/a%5B1%5D/"), ("/%7Ejoe/", "/~joe/"),
        ("*{a}|<x>", "*%7Ba%7D%7C%3Cx%3E"), ('/a"b`c', "/a%22b%60c"), ("/a\\b", "/a%5Cb"),
        ("/%41%2d%5f%2f", "/A-_%2F"), ("/é a", "/é%20a"), ("/% 41%2", "/%%2041%2"))),
    *((ALL + f"Disallow: {before}", "R414", 2, "warning", f"write '{after}'") for before, after in (
        ("/ tmp/", "/tmp/"), ("/a/  b", "/a/b"), ("*/ b c", "*/b c"))),
    *((ALL + f"Disallow: {before}", "R415", 2, "info", f"write '{after}'") for before, after in (
        ("/nocrawl=1", "/*nocrawl=1"), ("/a-b=", "/*a-b="), ("/SID=", "/*SID="))),
    (ALL + "Disallow: //a", "R416", 2, "info", "write '/a'"),
    *((ALL + f"Disallow: /a{end}", "R417", 2, "info", "write '/a' if it is a slip")
      for end in (";", ",", ";;", "'", '"', "\\n")),
    # Rules that do what they say, to the harm of the site.
    (ALL + "Disallow: /", "R312", 2, "warning", "'Disallow:'"),
    (ALL + "Disallow: /css/", "R410", 2, "info", "allow scripts"),
    (ALL + "Disallow: /js/", "R410", 2, "info", "allow scripts"),
    (ALL + "Disallow: /*.css$", "R410", 2, "info", "allow scripts"),
    *((ALL + f"Disallow: {path}", "R410", 2, "info", "allow scripts") for path in (
        "/_next/", "/wp-includes/", "/assets/", "/static/", "/static", "/_nuxt/*", "*/assets/",
        "/blog/wp-content/themes/", "/wp-content/plugins/", "/*/static/")),
    (ALL + "Disallow: /sitemap.xml\nSitemap: https://h/sitemap.xml", "R411", 2, "warning",
     "or that of the sitemap"),
    (ALL + "Disallow: /backup.sql", "R412", 2, "info", "password"),
    (ALL + "Crawl-delay: 86400", "R508", 2, "warning", "at most 300"),
    (MANY, "R111", 2_050, "info", "fewer rules"),
    ("\n<!DOCTYPE html>\n<title>Log in: a</title>\nfoo: bar", "R109", 1, "error", "404"),
    # Crawlers that are not meant.
    ("User-agent: all\nDisallow: /a", "R309", 1, "warning", "'*'"),
    ("User-agent: Mozilla/5.0 (compatible; GPTBot/1.2)\nDisallow: /a", "R310", 1, "warning",
     "'GPTBot'"),
    ("User-agent: __usage_ai\nDisallow: /a", "R313", 1, "error", "'__usage_ai-training'"),
    ("User-agent: GPT-bot\nDisallow: /a", "R311", 1, "warning", "'GPTBot'"),
    ("User-agent: ChatGPT\nDisallow: /a", "R311", 1, "warning", "'ChatGPT-User'"),
    ("User-agent: Googelbot\nDisallow: /a", "R311", 1, "warning", "'Googlebot'"),
    ("User-agent: Googlbot\nDisallow: /a", "R311", 1, "warning", "'Googlebot'"),
    ("User-agent: *\nCrawl-delay: 1\nUser-agent: b\nDisallow: /a", "R314", 1, "warning",
     "'Disallow:' without a value above line 3"),
    ("User-agent:\nDisallow: /a", "R302", 1, "error", "'*'"),
    ("User-agent: *bot\nDisallow: /a", "R303", 1, "error", "'*' alone"),
    *((f"User-agent: {before}\nDisallow: /a", "R303", 1, "error", f"write '{after}' without {what}")
      for before, after, what in (
        ('"*"', "*", "quotation marks"), ("\\*", "*", "the backslash"), ("[*]", "*", "brackets"),
        ("“*”", "*", "quotation marks"), ("'Googlebot'", "Googlebot", "quotation marks"),
        ('"Googlebot"', "Googlebot", "quotation marks"), ("<GPTBot>", "GPTBot", "brackets"),
        ("(*)", "*", "brackets"), ("`*", "*", "quotation marks"),
        (".*", "*", "the other characters"),
        ("^*$", "*", "the other characters"), ("**", "*", "the other characters"),
        ("\uff0a", "*", "the other characters"), ("\\MJ12bot", "MJ12bot", "the backslash"))),
    *((f"User-agent: {token}\nDisallow: /a", "R303", 1, "error", "'*' alone")
      for token in ("~a/1", "(compatible; a/1)", "%2A", ",", "бот", "+http://h/", "$")),
    ("Disallow: /a", "R301", 1, "error", "User-agent: *"),
    # Lines that are not read, or not by every crawler.
    (ALL + "Noindex: /a", "R209", 2, "warning", "X-Robots-Tag: noindex"),
    (ALL + "Disallow: /a\u200b", "R110", 2, "warning", "remove it"),
    (ALL + "\u00a0Disallow: /a", "R110", 2, "warning", "remove it"),
    (ALL + "Disallow\uff1a/a", "R201", 2, "error", "write ':' in place of '\uff1a'"),
    (ALL + "Sitemap \uff1a https://h/s.xml", "R201", 2, "error", "write ':' in place of '\uff1a'"),
    ("User-agent : *\nDisallow: /a", "R210", 1, "info", "user-agent:"),
    (ALL + "// a comment", "R211", 2, "warning", "'#'"),
    *((ALL + f"Disallow: /a {mark} b", "R211", 2, "warning", "'#'")
      for mark in ("//", ";", "--", "/*")),
    (ALL + "<!-- a comment\nDisallow: /a\n-->", "R211", 4, "warning", "'#'"),
    (ALL + "Disallow: /a<br>", "R212", 2, "warning", "remove the HTML"),
    (ALL + "<p>Disallow: /a</p>", "R212", 2, "warning", "remove the HTML"),
    ("User-agent: *\\nDisallow: /a", "R207", 1, "error", "line of its own"),
    ("User-agent: *<br/>Disallow: /a", "R207", 1, "error", "line of its own"),
    (ALL + "https://h/sitemap.xml", "R201", 2, "error", "'Sitemap: https://h/sitemap.xml'"),
    (ALL + "https://h/about", "R201", 2, "error", "if it is a sitemap"),
    (ALL + "/a", "R201", 2, "error", "'Disallow: /a' or 'Allow: /a'"),
    (ALL + "Disallow:\n/a", "R201", 3, "error", "write 'Disallow: /a'"),
    (ALL + "Disallow:\n\n # b\n/*.pdf$\n/a", "R201", 6, "error", "write 'Disallow: /a'"),
    ("User-agent: b\nDisallow: /a\nSitemap:\nhttps://h/s", "R201", 4, "error",
     "write 'Sitemap: https://h/s'"),
    ("\ufeffUser-agent: *\nDisallow: /a", "R101", 1, "warning", "without a mark"),
    # Sitemaps (Lighthouse).
    ("Sitemap: /sitemap.xml", "R502", 1, "error", "whole URL"),
    ("Sitemap: www.example.com/sitemap.xml", "R502", 1, "error", "whole URL"),
    ("Sitemap: file:///sitemap.xml", "R502", 1, "error", "whole URL"),
    # Values and names that are unreadable.
    (ALL + "crawl-delays: 1", "R205", 2, "error", "crawl-delay:"),
    (ALL + "Disallow = /a", "R201", 2, "error", "disallow:"),
    (ALL + "Disallow: http://[h/", "R402", 2, "error", "belong into its own robots.txt"),
    *((ALL + f"Disallow: {value}", "R402", 2, "error", "belong into its own robots.txt")
      for value in ("http://h", "https://h/", "https://h/*", "'https:/h'", "http//h", "www.h",
                    "h.example.com", "localhost:80", "127.0.0.1/", "a.example.co.uk", "a-b.de/$")),
    *((ALL + f"Disallow: {value}", "R402", 2, "error", "'/a?b' if you mean a path of this site")
      for value in ("HTTP://h/a?b", "example.com/a?b", "script.pl/a?b", "www.h:80/a?b")),
    *((ALL + f"Disallow: {value}", "R401", 2, "error", f"'/{value}'")
      for value in ("index.php", "script.pl", "main.js", "a.b.html", "robots.txt", "v1.2/a")),
    ("User-agent: бот", "R303", 1, "error", "letters"),
    (ALL + "Crawl-delay: {0}", "R501", 2, "error", "seconds"),
    (ALL + "Request-rate: 1", "R501", 2, "error", "1/10"),
    (ALL + "Visit-time: 8", "R501", 2, "error", "0600-0845"),
    ("Clean-param:", "R501", 1, "error", "ref&sid"),
    *((ALL + f"Content-Usage: {value}", "R603", 2, "error", "train-ai=n")
      for value in ("/a b=", "A", "train-ai=no", "/a search")),
    *((ALL + f"Content-Usage: /a train-ai=n, {label}=n", "R605", 2, "error", "ai-use")
      for label in sorted(AIPREF_EARLIER)),
    *((ALL + f"Content-Signal: {value}", "R601", 2, "error", "ai-train=no")
      for value in ("", "/a", "a/ ai-train=no", "search=yes ai-train=no", "search=maybe",
                    "use=some", "search=yes, x", "ai_train=no")),
    ("Sitemap: http://[a", "R502", 1, "error", "whole URL"),
    ("License: /a.xml", "R502", 1, "error", "whole URL"),
    ("License:", "R502", 1, "error", "whole URL"),
    # With the place of the finding between marks.
    (ALL + "  Disallow: /ツ«\udce9»", "R104", 2, "warning", "as UTF-8"),
    (ALL + "  Disallow: /a«\0» \0 # \0", "R105", 2, "warning", "remove it"),
    (ALL + "«Disallow: /" + "a" * 16_649 + "» # b", "R107", 2, "warning", "shorter line"),
    (ALL + "«Please go away now» # b", "R201", 2, "error", "'#'"),
    (ALL + " «Disallow» /a", "R202", 2, "warning", "'disallow:'"),
    (ALL + "«license»\thttp://h/l.xml", "R202", 2, "error", "'license:'"),
    (ALL + "«Dissallow» : /a", "R203", 2, "warning", "'disallow:'"),
    ("«USER AGENT»:*\nAllow: /", "R203", 1, "warning", "'user-agent:'"),
    (ALL + "«crawldelay»: 1", "R203", 2, "warning", "'crawl-delay:'"),
    (ALL + "«Disallaw from»: /a", "R203", 2, "warning", "'disallow:'"),
    (ALL + "«Disallow /a»: /b", "R203", 2, "warning", "'disallow:'"),
    (ALL + "«Dsallow»: /a", "R205", 2, "error", "'disallow:'"),
    (ALL + "«foo»: /a", "R206", 2, "info", "a mistake"),
    (" «Disallow: /a»  # b\n" + ALL, "R301", 1, "error", "'User-agent: *'"),
    ("User-agent: «Googlebot/2.1 (+http://g)»", "R304", 1, "info", "'Googlebot'"),
    ("User-agent: «MJ12bot/1»", "R306", 1, "info", "underscores only"),
    ("User-agent: «360Spider»", "R306", 1, "info", "underscores only"),
    ("User-agent: «+bot/2»", "R306", 1, "info", "underscores only"),
    ("User-agent: «Mozilla/5.0 (compatible; Two Words bot)»", "R306", 1, "info",
     "underscores only"),
    ("User-agent: «Mozilla/5.0 (compatible; MSIE 8.0)»", "R306", 1, "info", "underscores only"),
    ("User-agent: «Mozilla/5.0 (compatible; a; +b)»", "R310", 1, "warning", "'a'"),
    (ALL + "Disallow:  «wp-*?a=b» # b", "R401", 2, "error", "'/wp-*?a=b'"),
    (ALL + "  «//» Disallow: /a", "R211", 2, "warning", "'#'"),
    (ALL + "Disallow: /a«<br />» # b", "R212", 2, "warning", "the HTML"),
    ("User-agent: a «\\n» Disallow: /a", "R207", 1, "error", "its own"),
    (ALL + "Crawl-delay «\uff1a» 1", "R201", 2, "error", "':'"),
    (ALL + "Disallow: «ツ»", "R403", 2, "error", "'/*ツ'"),
    (ALL + "Disallow: «https://h/a?b»", "R402", 2, "error", "'/a?b'"),
    (ALL + "Disallow: «?q=»", "R403", 2, "error", "'/*?q='"),
    (ALL + "Disallow: «h:80/a»", "R403", 2, "error", "'/*h:80/a'"),
    (ALL + "Allow: /ab*\n«Disallow: /ab» # b", "R404", 3, "warning", "the line"),
    (ALL + "Crawl-delay: «soon» # b", "R501", 2, "error", "or 0.5"),
    (ALL + "Content-Usage: «/a ai-train=n»", "R605", 2, "error", "or search"),
    (ALL + "Disallow: /\n«AllowAITraining»: /a", "R607", 3, "error", "'Content-Usage: train-ai=n'"),
]  # fmt: skip


@pytest.mark.rule("Labels of earlier drafts")
@pytest.mark.parametrize(("text", "code", "line", "severity", "advice"), MISTAKES)
def test_mistakes(text: str, code: str, line: int, severity: str, advice: str) -> None:
    before, mark, rest = text.partition("«")
    inside, _, after = rest.partition("»")
    body = f"{before}{inside}{after}".encode("utf-8", "surrogateescape")
    findings = {str(one.code): one for one in lint(body, crawlers=CRAWLERS)}
    found = findings.pop(code)
    column = len(before) - before.rfind("\n")
    assert not mark or (found.column, found.end_column) == (column, column + len(inside))
    assert (found.line, str(found.severity)) == (line, severity)
    assert str(found).startswith(f"line {line}: {severity}: {found.message}; ")
    assert advice in found.advice
    # What is in effect a closed site is reported, too, whatever the reason, and so is a sitemap
    # without its URL.
    assert findings.keys() <= {"R312", "R502"}


def test_a_byte_order_mark_is_no_column() -> None:
    body = "\ufeffDisallow /a".encode()
    assert [(one.code, one.column, one.is_fixable) for one in lint(body)] == [
        ("R101", 1, True), ("R202", 1, True), ("R301", 1, False),
    ]  # fmt: skip
    body = "\ufeff Disallow /ツ".encode("utf-16-le")
    assert [(one.code, one.column, one.end_column, one.is_fixable) for one in lint(body)] == [
        ("R103", 1, 1, False), ("R202", 2, 10, False), ("R301", 2, 13, False),
    ]  # fmt: skip
    for mark in (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\xff\xfe"):  # before other text
        found = lint(mark + b"User-agent: *\nDisallow: /a")
        assert [(one.code, one.line, one.is_fixable) for one in found] == [("R101", 1, True)]


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


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_text_of_a_page_that_a_browser_made_is_not_corrected(mark: str) -> None:
    text = f"{mark}User-agent: *\nDissallow: /a?b&c\n"
    page = f"<html><head></head><body><pre>{text.replace('&', '&amp;')}</pre></body></html>"
    findings = lint(page.encode())
    without = [found._replace(correction=None, is_fixable=False) for found in lint(text.encode())]
    assert [found.code for found in findings] == ["R101"] * len(mark) + ["R203"]
    assert findings == without
    assert fix(page.encode(), unsafe=True) == page.encode()


def test_a_correction_is_a_part_of_the_line() -> None:
    (finding,) = lint(b"User-agent: *\n  Dissallow: /a")
    assert finding.correction == Correction(3, 12, "Disallow")
    assert pickle.loads(pickle.dumps(finding)) == finding


@pytest.mark.parametrize(
    ("select", "ignore", "codes"),
    [
        ([], [], ["R202", "R203", "R401", "R502"]), (["R2"], [], ["R202", "R203"]),
        (["r202"], [], ["R202"]), (["missing-colon", "R5"], [], ["R202", "R502"]),
        (["R"], ["R20"], ["R401", "R502"]), (["R2"], ["R2"], []),
        ([], [" Missing-Slash "], ["R202", "R203", "R502"]),
    ],
)  # fmt: skip
def test_select_and_ignore(select: list[str], ignore: list[str], codes: list[str]) -> None:
    body = b"User-agent: *\nDissallow a\nSitemap: /s"
    assert [one.code for one in lint(body, select=select, ignore=ignore)] == codes


def test_a_code_is_a_text() -> None:
    first, second = Code.MISSING_COLON, Code.MISSPELLED_FIELD
    assert (first, str(first), f"{first}") == ("R202", "R202", "R202")
    assert sorted([second, "R2022", first]) == ["R202", "R2022", "R203"]
    assert "R202" in {first: 1}


@pytest.mark.parametrize("name", ["R999", "", "x", "E1", "missing"])
def test_codes_that_do_not_exist(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name!r} is not a code of a finding"):
        lint(b"", select=[name])
    with pytest.raises(ValueError, match="missing-colon"):
        lint(b"", ignore=["R1", name])
    with pytest.raises(TypeError, match="not a str"):
        lint(b"", select="R1")


def test_findings_are_in_the_order_of_the_file() -> None:
    findings = lint(b"\xefDissallow a\0\nDisallow b\0\nUser-agent: 1")
    places = [(finding.line, finding.column, finding.code) for finding in findings]
    assert places == sorted(places)
    assert len({line for line, _, _ in places}) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n\n   \n",
        "User-agent: *\nDisallow: /a  # b\0",
        ALL + "Disallow: /" + "a" * 16_652,  # Google reads 16,663 bytes of a line
        "Content-Signal: search=yes,ai-train=no, ai-input=no,use=reference,\n"
        "Content-Signal: /a search=yes\nSitemap: https://h/s.xml\nUser-agent: *\nDisallow:\n",
        ALL + "Disallow: /\nAllow: /a\nAllow: /b$\nAllow: *.c\nCrawl-delay: 1\nRequest-rate: 1/2",
        ALL + "Allow: /a/index.html\nDisallow: /a/\nVisit-time: 0600-0700\nContent-Usage: /a b=y",
        "User-agent: MyBot\nUser-agent: other_bot\nDisallow: /a\nHost: h\nClean-param: a /b",
        # What only resembles a mistake.
        ALL + "Disallow: /a # a comment\nDisallow: /b#\nAllow: /c ## two",
        ALL + "Disallow: /a;b\nDisallow: /a,b\nDisallow: /a%20/b\nDisallow: /(a)'%2f",
        # Other rules show that they are meant.
        ALL + "Disallow: /a;\nDisallow: /a/\nDisallow: /b\nDisallow: /javascript:''",
        ALL + "Disallow: /_next/\nAllow: /_next/static/",
        ALL
        + "Disallow: /*;\nDisallow: /a/api/static/\nDisallow: /*sid=\nDisallow: /*//\nDisallow: //",
        ALL + "Disallow: /.*\nDisallow: /a.*/b\nDisallow: /~a+b\nDisallow: *.pdf$\nDisallow: /$",
        ALL + "Disallow: /\nAllow: /public",
        ALL + "Disallow: /\nUser-agent: Googlebot\nAllow: /",
        ALL
        + "Disallow: /scripts/\nDisallow: /a.json\nDisallow: /*.jsp\nAllow: /*.js\nAllow: /css/",
        ALL
        + "Disallow: /user/password\nDisallow: /*.sql$\nDisallow: /backup-guide\nDisallow: /.gitx",
        ALL + "Disallow: /sitemap-old.xml\nSitemap: https://h/sitemap.xml",
        ALL + "Disallow: /sitemap\nAllow: /sitemap.xml\nSitemap: https://h/sitemap.xml",
        ALL + "Crawl-delay: 300\nDisallow: /a\u200cb",
        "User-agent: Googlebot-Image\nUser-agent: Foobot\nUser-agent: SemrushBot-SA\nDisallow: /a",
        f"User-agent: {'g' * 41}\nDisallow: /a",
        "User-agent: Pinterest\nUser-agent: FooBot\nUser-agent: Roverbot\nDisallow: /a",
    ],
)
def test_files_without_findings(text: str) -> None:
    assert lint(text.encode(), crawlers=CRAWLERS) == []


@pytest.mark.parametrize(("end", "line"), [(b"\n", 39), (b"x", 38)])
def test_lines_beyond_the_limit(end: bytes, line: int) -> None:
    filler = (b"#" + b"x" * 13_999 + b"\n") * 36
    body = b"User-agent: *\n" + filler
    body += b"#" * (SIZE_LIMIT - len(body) - 1) + end
    findings = lint(body + b"Disallow: /a\n")
    assert [finding.line for finding in findings if "nothing is read" in finding.message] == [line]


CORRECTIONS = [
    (b"\tUser agent : Googlebot/2.1 (+http://g)  # Google", b"\tUser-agent: Googlebot  # Google"),
    (b"  DISSALLOW /private/ # see /private/\r", b"  Disallow: /private/ # see /private/\r"),
    (b"Disallowed   /a \r", b"Disallow:   /a \r"), (b"Disallow : a", b"Disallow: a"),
    (b"visit time: 06:00-08.45\r", b"Visit-time: 06:00-08.45\r"), (b"allowed a", b"Allow: a"),
    (b"Sitemaps https://h/s.xml", b"Sitemap: https://h/s.xml"),
    (b"Crawl-delay 5", b"Crawl-delay: 5"), (b"SITE-MAP: https://h/t.xml", b"Sitemap: https://h/t.xml"),
    (b"License https://h/l.xml", b"License: https://h/l.xml"),
    (b"crawldelay: 1", b"Crawl-delay: 1"), (b"Disallow; /a", b"Disallow: /a"),
    (b"User-agent= a", b"User-agent: a"),
    (b"Disallow: /my folder/ # [a]", b"Disallow: /my%20folder/ # [a]"),
    (b"Disallow /%7e[\xe9%2f", b"Disallow: /~%5B\xe9%2F"),
    (b"Disallow : /%%37E ~", b"Disallow: /%%37E%20~"), (b"Disallow: /a\0[", b"Disallow: /a\0%5B"),
    *((kept, kept) for kept in (
        b"Allow: /the folder/", b"Allow: /%7Ea", b"Disallow: / tmp/", b"Disallow: /a;",
        b"Disallaw from: /a", b"Disallow /a: /b", b"foo: /a", b"User-agent: 360Spider",
        b"User-agent: +bot/2", b"please go away", b"disallow: .pdf$", b"Dsallow: /a",
        b"Disallow: \xe9 # \xff\xfe", b"User-agent: \xe9/1", b"User-agent: mj12bot/1",
        b"DisallowAITraining: /",
    )),
]  # fmt: skip
MARKS = [
    (b"\xef\xbb\xbfDisallow: /a\r\n", b"Disallow: /a\r\n"),
    (b"\xff\xfeDisallow: /a", b"Disallow: /a"),
    ("\ufeffDissallow: /ツ\r\n".encode("utf-16-be"),) * 2,
]


@pytest.mark.parametrize(("before", "after"), [*CORRECTIONS, *MARKS])
def test_corrections(before: bytes, after: bytes) -> None:
    assert fix(before) == after


def test_corrections_keep_everything_else() -> None:
    before, after = (b"\n".join(lines) for lines in zip(*CORRECTIONS))
    assert fix(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Allow: a", "Allow: /a"), ("Disallow: a%62", "Disallow: /ab"),
        ("DSALLOW: /a", "Disallow: /a"),
        ("Allow: /my folder/", "Allow: /my%20folder/"), ("Allow: /%7E", "Allow: /~"),
        ("Disallow: /a b\nAllow: /a b/c", "Disallow: /a%20b\nAllow: /a%20b/c"),
        ("Disallow: /a b\nAllow: /a%20b", "Disallow: /a%20b\nAllow: /a%20b"),
        ("User-agent: mozilla/5.0 (compatible; GPTBot/1.2)", "User-agent: GPTBot"),
        # A path that begins with another character than a letter or digit is never corrected.
        *((f"Disallow: {value}",) * 2
          for value in ("“/a”", "'/a'", "\\a\\", "^a", "./a", "_a", "ツ")),
        # Neither is a host or a URL, what is meant as a comment, or a value in another line.
        *((f"Disallow: {value}",) * 2 for value in ("https://h/a", "http:/h/", "www.h/a", "h.com")),
        *((f"{mark}Disallow: /",) * 2 for mark in (
            "//", "// ", ";", "; ", "<!-- ", "/* ", "REM ", "rem\t", "-- ", "--", "- ", "%", "'",
            "!", "\uff03", "\\", ":: ", "no-", "x", "_", "* ", "> ", "“", "\\# ", "NOT ", "old ",
        )),
        *((text,) * 2 for text in (
            "Disallow:\n/a", "Disallow\n: /a", "Disallow\uff1a/a", "https://h/s.xml",
            "/* Disallow: / */", "User-agent: *\\nDisallow: /", "<p>Disallow: /</p>",
            "User-agent:\n*\nDisallow: /",
        )),
    ],
)  # fmt: skip
def test_unsafe_corrections(before: str, after: str) -> None:
    text = (ALL + before).encode()
    assert fix(text) == text
    assert fix(text, unsafe=True) == (ALL + after).encode()


def test_the_codes_to_correct_are_chosen() -> None:
    body = "\ufeffDissallow a\n".encode()
    assert fix(body, []) == body
    assert fix(body, ["R101"]) == b"Dissallow a\n"
    assert fix(body, ["missing-colon"]) == "\ufeffDissallow: a\n".encode()
    assert fix(body, ["R4"]) == body
    assert fix(body, ["R4"], unsafe=True) == "\ufeffDissallow /a\n".encode()
    # What has no correction is kept.
    assert fix(b"hello", ["R201"]) == b"hello"
    with pytest.raises(ValueError, match="R999"):
        fix(body, ["R999"])
    with pytest.raises(TypeError, match="bytes"):
        fix("a")  # type: ignore[arg-type]


def test_files_of_more_than_500_kib_are_kept() -> None:
    body = b"User-agent: *\nDisallow a\n".ljust(SIZE_LIMIT, b"#")
    assert fix(body) == body
    assert fix(body[:-1]) == body[:-1].replace(b"Disallow a", b"Disallow: a")
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
                "User-agent: ",                "index.html", "%7E", "/a b", "Disallow: /a[",
                "Mozilla/5.0 (compatible; b/1)", "https://h/a",
            ]
        ),
        max_size=40,
    ).map(lambda found: "".join(found).encode("utf-8", "surrogateescape")),
)  # fmt: skip


@settings(max_examples=150)
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


@settings(max_examples=250)
@given(mistakes, paths, st.sampled_from(["", *TOKENS]))
@example(b"User-agent: *\nAllow: b\nDisallow: /", "/b", "")
@example(b"User-agent: *\nAllow: /a b\nDisallow: /a b\nDisallow: /*a* b*", "/a b", "")
@example(b"User-agent: *\nAllow: /a b\nDisallow: /a%20*", "/a b", "")
@example(b"User-agent: *\nAllow: /[\nDisallow: %5b\nDisallow: /*[", "/[", "")
@example(
    b"User-agent: a\nUser-agent: Mozilla/5.0 (b/1)\nAllow: /\nUser-agent: *\nDisallow: /", "/", "b"
)
def test_a_safe_correction_allows_nothing_disallowed(body: bytes, url: str, token: str) -> None:
    if not RobotsTxt.parse(body).allowed(url, token):
        assert not RobotsTxt.parse(fix(body)).allowed(url, token)


def google_rule(body: bytes, url: str, token: str) -> Rule | None:
    """Return the rule that decides for Google's matcher, which compares patterns as they are.

    It encodes what is not ASCII, and writes escapes in upper case.
    """
    robots = RobotsTxt.parse(body)
    agent = token if token in robots.agents else "*"
    path = google_form(path_of(url))
    rules = [
        (len(pattern), rule.allow, -rule.line, rule)
        for each in robots.groups
        if agent in each.agents
        for rule in each.rules
        if matches(pattern := google_form(rule.pattern), path, Steps.of(path))
    ]
    return max(rules)[-1] if rules else None


def google_form(pattern: str) -> str:
    encoded = quote(pattern, safe="".join(map(chr, range(128))))
    return re.sub("%[0-9a-f]{2}", lambda escape: escape[0].upper(), encoded, flags=re.IGNORECASE)


@settings(max_examples=400)
@given(mistakes, paths, st.sampled_from(["", *TOKENS]), st.booleans())
@example(b"User-agent: *\nDisallow: a", "/a", "", False)
@example(b"User-agent: *\nDsallow: https://h/a", "/a", "", True)
@example(b"User-agent: *\nDisallow: /a b\nDisallow: /%7E", "/a%20b", "", False)
def test_a_correction_closes_only_what_its_line_states(
    body: bytes, url: str, token: str, unsafe: bool
) -> None:
    fixed = fix(body, unsafe=unsafe)
    before, after = RobotsTxt.parse(body).verdict(url, token), RobotsTxt.parse(fixed)
    closing = [after.verdict(url, token).rule] if before.allowed else []
    rule = google_rule(body, url, token)
    closing += [google_rule(fixed, url, token)] if rule is None or rule.allow else []
    lines = read(body).split(b"\n")
    for rule in closing:
        if rule is not None and not rule.allow:
            content = lines[rule.line].partition(b"#")[0].rstrip(b" \t\v\f")
            value = re.split(rb"(?:[:]|[ \t\v\f](?=[^:]*$))[ \t\v\f]*", content, maxsplit=1)[-1]
            stated = [value, b"/" + value] if unsafe else [value]  # a slash may be missing
            expected = pattern_of(rule.pattern.encode())[0]
            assert expected in [pattern_of(each)[0] for each in stated if each]


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
    for end in (b"\n", b"\r", b"#"):
        assert fixed.count(end) == body.count(end)
    ends = body.replace(b"\r", b"\n").split(b"\n"), fixed.replace(b"\r", b"\n").split(b"\n")
    for before, after in zip(*ends):
        assert before.partition(b"#")[1:] == after.partition(b"#")[1:]


# Groups

BETWEEN = [
    "", "Crawl-delay: 1", "Request-rate: 1/10", "Visit-time: 0600-0845", "Sitemap: https://h/s.xml",
    "Host: h", "Clean-param: a /b", "Content-Signal: search=yes", "Content-Usage: train-ai=n",
    "Noindex: /a", "License: https://h/l.xml", "Alow: /", "Dsallow: /a", "Owner: me", "Hello, you!",
    "// Disallow: /a", "https://h/s.xml",
]  # fmt: skip


CLOSES = " also holds for '*', and closes the site to every crawler without a group"


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize(
    ("first", "rules", "severity", "effect"),
    [
        ("*", ["Disallow: /"], "error", f"'Disallow: /' in line 4{CLOSES}"),
        ("*", ["Disallow: /a", "Disallow: /*"], "error", f"'Disallow: /*' in line 5{CLOSES}"),
        ("*", ["Disallow: /", "Allow: /"], "warning", "'Disallow: /' in line 4 also holds for '*'"),
        ("*", ["Allow: /a"], "warning", "'Allow: /a' in line 4 also holds for '*'"),
        ("a", ["Allow:", "Disallow: *"], "warning", "'Disallow: *' in line 5 also holds for 'a'"),
        ("A1", ["Disallow:", "Allow: /"], "warning", "'Allow: /' in line 5 also holds for 'a1'"),
    ],
)  # fmt: skip
def test_sections_that_are_one(
    between: str, first: str, rules: list[str], severity: str, effect: str
) -> None:
    text = "\n".join([f"User-agent: {first}", between, "User-agent: b", *rules])
    (found,) = lint(text.encode(), select=["R314"])
    assert (found.line, str(found.severity)) == (1, severity)
    assert found.message.endswith(f"so line 3 joins this one: {effect}")


FINE = {
    # Sections that are apart, or meant as one
    "R314": [
        "User-agent: a\nUser-agent: b\nDisallow: /",
        "User-agent: a\n# c\nUser-agent: b\nDisallow: /",
        "User-agent: *\nDisallow:\nUser-agent: b\nDisallow: /",
        "User-agent: *\nCrawl-delay: 1\n\nUser-agent: *\nDisallow: /",
        "User-agent: a\nCrawl-delay: 1\n\nUser-agent: b\nDisallow:\n",
        "User-agent: a\nCrawl-delay: 1\n\nUser-agent: b\nCrawl-delay: 2\n",
        # Blank lines everywhere.
        "User-agent: a\n\nUser-agent: b\n\nDisallow: /",
    ],
    # Rules of several groups that decide
    "R404": [
        # It decides for one of the two.
        "User-agent: a\nUser-agent: b\nDisallow: /x\nUser-agent: b\nAllow: /x*",
        # The same rule in two groups.
        ALL + "Disallow: /\n" + ALL + "Disallow: /",
        # As Google reads them, these names are one.
        "User-agent: Email Siphon\nDisallow: /\nUser-agent: Email Extractor\nDisallow: /",
        # Each group has its own crawler.
        "User-agent: a\nAllow: /\nUser-agent: *\nDisallow: /",
    ],
    # Statements that agree
    "R608": [
        ALL + "Content-Signal: ai-train=no\nContent-Usage: train-ai=n\nAllow: /",
        ALL + "Content-Signal: ai-train=yes, search=no\nContent-Usage: train-ai=y\nAllow: /",
        # For other paths, other crawlers, and another use.
        ALL + "Content-Signal: ai-train=yes\nContent-Usage: /a train-ai=n\nAllow: /",
        ALL + "Content-Signal: ai-train=yes\nAllow: /\nUser-agent: a\nContent-Usage: train-ai=n",
        ALL + "Content-Signal: ai-train=no\nAllow: /\nUser-agent: GPTBot\nDisallow: /",
        ALL + "Content-Signal: ai-train=yes\nAllow: /\nUser-agent: GPTBot\nDisallow: /a",
        ALL + "Content-Signal: search=yes\nAllow: /\nUser-agent: GPTBot\nDisallow: /",
        ALL + "Content-Signal: ai-train=yes\nAllow: /\nUser-agent: Bingbot\nDisallow: /",
        # That of the group replaces the one above.
        "Content-Signal: ai-train=yes\nUser-agent: a\nContent-Signal: ai-train=no\nAllow: /",
        ALL + "Content-Usage: foo=y\nContent-Usage: foo=n\nAllow: /",
    ],
}


@pytest.mark.parametrize(
    ("code", "text"), [(code, text) for code, texts in FINE.items() for text in texts]
)
def test_files_without_a_kind_of_finding(code: str, text: str) -> None:
    assert lint(text.encode(), select=[code]) == []


@given(bodies)
@example(ALL + "Disallow: /#a\nDisallow: /#b\nUser-agent: b\nDisallow: /c")
@example(ALL + "Disallow: /backup.sql\nUser-agent: b\nDisallow: /c")
@example(ALL + "Disallow: /a\nAllow: /a\nDisallow: /a")
def test_no_advice_removes_all_rules_of_a_section(made: bytes | str) -> None:
    body = made if isinstance(made, bytes) else made.encode()
    removed = {one.line for one in lint(body) if "remove the line" in one.advice}
    lines = body.split(b"\n")
    kept = b"\n".join(line for number, line in enumerate(lines, 1) if number not in removed)
    if removed and not (b"\r" in body or b"\0" in body):
        before, after = (
            [one.agents for one in RobotsTxt.parse(text).groups] for text in (body, kept)
        )
        assert after == before


def dead(rules: str) -> dict[int, str]:
    """Return the lines of the rules that never decide, from 1, with the reason."""
    findings = lint((ALL + rules).encode(), select=["never-decides"])
    return {finding.line - 1: finding.message.partition(": ")[2] for finding in findings}


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        ("Disallow: /a\nAllow: /a", {1: 2}),  # allow wins
        ("Disallow: /a\nAllow: /%61", {1: 2}),
        ("Disallow: /a*c\nAllow: /a*b*c", {}),  # fewer paths
        ("Disallow: /a*\nAllow: /a", {2: 1}),
        ("Disallow: /a*$\nAllow: /a**", {1: 2}),
        ("Disallow: /a*b\nAllow: /a***b", {1: 2}),
        ("Disallow: /a\nAllow: /*a$", {}),  # only some of the paths
        ("Disallow: a\nAllow: /", {}),  # never matches: another finding
        ("Allow: /a/index.html\nAllow: /a/index.html*", {}),  # it decides about the folder
        ("Allow: /a/index.html\nAllow: /a/index.html*\nAllow: /a/$", {3: 1}),
        ("Disallow: /x?u=/f\nAllow: /x?u=/f", {1: 2}),
    ],
)
def test_rules_that_never_decide(rules: str, lines: dict[int, int]) -> None:
    expected = {line: f"line {winner + 1} does" for line, winner in lines.items()}
    assert dead(rules) == expected


TOGETHER = "in the groups for '*' taken together,"
TIE = "decides, as of equally long rules an Allow wins: line"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        # What a CDN writes in front of the rules of a site.
        (f"{ALL}Allow: /\n{ALL}Disallow: /", 4, f"{TOGETHER} disallow '/' never {TIE} 2 does"),
        (f"{ALL}Disallow: /\n{ALL}Allow: /", 2, f"{TOGETHER} disallow '/' never {TIE} 4 does"),
        (f"{ALL}Allow: /a\n{ALL}Disallow: /a*", 2,
         f"{TOGETHER} allow '/a' never decides: line 4 does"),
        (ALL + "Disallow: /a\nAllow: /a", 2, f"disallow '/a' never {TIE} 3 does"),
        ("User-agent: A\nUser-agent: b\nAllow: /\nUser-agent: B\nUser-agent: a\nDisallow: /", 6,
         f"in the groups for 'a, b' taken together, disallow '/' never {TIE} 3 does"),
        # Statements about the use of content that contradict each other
        (ALL + "Content-Signal: ai-train=yes\nContent-Usage: train-ai=n\nAllow: /", 2,
         "'ai-train=yes' contradicts 'train-ai=n' in line 3: the refusal holds"),
        (ALL + "Content-Usage: /a ai-use=y\nContent-Signal: /a* ai-input=no\nAllow: /", 2,
         "'ai-use=y' contradicts 'ai-input=no' in line 3: the refusal holds"),
        (ALL + "Content-Signal: search=yes\nContent-Signal: search=no\nAllow: /", 2,
         "'search=yes' contradicts 'search=no' in line 3: the refusal holds"),
        # Above all groups, in another group for the same crawler, and for a use.
        ("Content-Signal: ai-train=yes\nUser-agent: a\nContent-Usage: train-ai=n\nAllow: /", 1,
         "'ai-train=yes' contradicts 'train-ai=n' in line 3: the refusal holds"),
        (f"{ALL}Content-Usage: train-ai=n\nAllow:\n{ALL}Content-Signal: ai-train=yes\nAllow:", 5,
         "'ai-train=yes' contradicts 'train-ai=n' in line 2: the refusal holds"),
        (ALL + "Content-Usage: train-ai=y\nUser-agent: __usage_ai-training\nDisallow: /", 2,
         "'train-ai=y' contradicts 'Disallow: /' in line 4: the refusal holds"),
        (ALL + "Content-Usage: train-ai=n\nUser-agent: __usage_ai-training\nAllow: /", 4,
         "'Allow: /' contradicts 'train-ai=n' in line 2: the refusal holds"),
        (ALL + "Content-Signal: ai-train=yes\nAllow: /\nUser-agent: GPTBot\nDisallow: /", 4,
         "'ai-train=yes' in line 2 grants AI training, but line 5 closes the site to 'gptbot', "
         "which crawls for it: that holds"),
        ("Content-Signal: ai-train=yes\nUser-agent: a\nUser-agent: ccbot\nDisallow: *", 2,
         "'ai-train=yes' in line 1 grants AI training, but line 4 closes the site to 'ccbot', "
         "which crawls for it: that holds"),
    ],
)  # fmt: skip
def test_findings_about_several_groups(text: str, line: int, message: str) -> None:
    (found,) = lint(text.encode(), select=["R404", "R608"])
    assert (found.line, found.message) == (line, message)
    assert found.severity == {"R404": "warning", "R608": "info"}[found.code]


rules = st.lists(
    st.tuples(
        st.sampled_from(["Allow", "Disallow"]),
        st.one_of(
            patterns.map(lambda text: text.replace("#", "").replace("\0", "")),
            st.lists(st.sampled_from([*"//**ab$?", "/index.html"]), max_size=7).map("".join),
        ),
    ),
    max_size=8,
).map(lambda found: "".join(f"{field}: {value}\n" for field, value in found))


@given(rules, rules, paths)
def test_a_rule_that_is_found_never_decides(first: str, second: str, path: str) -> None:
    found = dead(first + ALL + second)
    verdict = RobotsTxt.parse((ALL + first + ALL + second).encode()).verdict(path, "a")
    assert verdict.rule is None or verdict.rule.line - 1 not in found


# The use of content


@pytest.mark.parametrize(
    ("above", "group", "lines"),
    [
        ("Content-Signal: ai-train=no", "User-agent: a\nDisallow: /a", [4]),
        ("Content-Usage: train-ai=n", "User-agent: a\nUser-agent: B\nAllow: /", [4]),
        ("Content-Signal: use=full", "User-agent: a\nDisallow:\nUser-agent: b\nAllow: /a", [4, 6]),
        # It has its own, it is closed, it is for everyone or for a use.
        ("Content-Signal: ai-train=no", "User-agent: a\nContent-Signal: search=yes\nAllow: /", []),
        ("Content-Signal: ai-train=no", "User-agent: a\nDisallow: /", []),
        ("Content-Signal: ai-train=no", "User-agent: *\nDisallow: /a", []),
        ("Content-Signal: ai-train=no", "User-agent: __usage_ai-training\nDisallow: /a", []),
        ("Content-Signal: ai-train=no\nUser-agent: a\nAllow: /\nContent-Signal: search=no",
         "User-agent: a\nAllow: /a", []),
    ],
)  # fmt: skip
def test_statements_that_a_group_does_not_have(above: str, group: str, lines: list[int]) -> None:
    text = f"{ALL}{above}\nDisallow:\n{group}\n".encode()
    found = lint(text, select=["R609"])
    assert [(one.line, str(one.severity)) for one in found] == [(line, "info") for line in lines]
    assert all("of '*' in line 2 does not hold for" in one.message for one in found)
    # Above all groups, a Content-Signal holds for each group without one.
    found = lint(b"Content-Signal: search=yes\n" + text, select=["R609"])
    assert [one.line - 1 for one in found] == (lines if above.startswith("Content-Usage") else [])


def test_the_crawlers_that_collect_training_data() -> None:
    tokens = {
        token.lower().encode()
        for crawler in well_known_crawlers()
        if "ai-training" in crawler.purposes
        for token in crawler.tokens
    }
    assert tokens == TRAINING_CRAWLERS
