"""A successful response whose body is no robots.txt: a page in HTML, or a challenge."""

from __future__ import annotations

import gzip

import pytest

from scrapy_rep import Reason, RobotsTxt, Verdict, lint
from scrapy_rep.protocol.access import AccessResult, recognize
from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.protocol.lint import fix

pytestmark = pytest.mark.rule("A page instead of a robots.txt")
NOT, CHALLENGE = AccessResult.NOT_ROBOTS_TXT, AccessResult.CHALLENGE
RULES = b"User-agent: *\nDisallow: /private\n"
ANUBIS = b'<!doctype html><script id="anubis_challenge" type="application/json">{}</script>'


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html>\n<title>Log in</title>",
        b"<!doctype HTML PUBLIC '-//W3C//DTD HTML 4.01//EN'>",
        b"<html>",
        b"<HTML lang=en>\n<p>Disallow: /private\n",  # a rule above any user-agent line
        b"<head><meta charset=utf-8>",
        b'<?xml version="1.0"?><Error>AccessDenied</Error>',
        b"\xef\xbb\xbf\r\n \t<html>",
        b"\xff\xfe" + "<html>".encode("utf-16-le"),
        b"# robots.txt\n# of our site\n\n<!doctype html>",
        b"<!-- saved from\nour site --> <!-- again --><html>",
        b"<!doctype html>\nUser-agent: *\n",  # a group without rules
        b"<body><pre>&lt;html&gt;</pre>",
    ],
)
def test_a_page_in_html_or_xml_is_no_robots_txt(body: bytes) -> None:
    assert recognize(body).result is NOT
    robots = RobotsTxt.from_response(200, body)
    verdict = Verdict(True, Reason.NOT_ROBOTS_TXT, detail="status 200")
    assert robots.verdict("/private", "mybot") == verdict
    assert str(verdict) == "not-robots-txt: status 200"
    assert [str(finding.code) for finding in lint(body)] == ["R109"]


@pytest.mark.parametrize(
    "body",
    [
        b"# <html>\n",
        b"<meta name=viewport>",
        b"<!-- <html>",  # a comment without an end
        RULES + b"<html>",
        b"<html>\n" + RULES,  # HTML is read as lines
        b"<!doctype html><pre>\n" + RULES + b"</pre>",
    ],
)
def test_any_other_body_is_a_robots_txt(body: bytes) -> None:
    assert recognize(body).result is None
    assert recognize(body, "text/plain").result is None
    assert RobotsTxt.from_response(200, body) == RobotsTxt(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"Not Found", NOT), (b"<meta name=viewport>", NOT), (b"Note: this is a page\n", NOT),
        (b"# only a comment\n", NOT), (b"", None), (b" \r\n", None), (RULES, None),
        (b"<p>\nSitemap: https://a.example/map.xml\n", None), (b"Crawl-delay: 5\n", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("content_type", ["text/html", " Text/HTML ; charset=utf-8"])
def test_a_body_that_the_server_calls_html_needs_a_known_field(
    body: bytes, expected: AccessResult | None, content_type: str
) -> None:
    assert recognize(body, content_type).result is expected


@pytest.mark.rule("A challenge instead of a robots.txt")
@pytest.mark.parametrize("html", [b"<html>", ANUBIS])
def test_a_challenge_is_a_page_with_its_marks(html: bytes) -> None:
    assert recognize(html, None, " Challenge ").result is CHALLENGE
    assert recognize(html, None, "block").result is (CHALLENGE if html == ANUBIS else NOT)
    assert recognize(RULES, None, "challenge").result is None, "a file with rules"


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, ANUBIS, Reason.CHALLENGE), (401, b"", Reason.REFUSED),
        (403, b"<html>", Reason.REFUSED), (403, ANUBIS, Reason.CHALLENGE),
        (403, b"<script src='/.within.website/x/cmd/anubis/main.js'>", Reason.CHALLENGE),
        (404, ANUBIS, Reason.UNAVAILABLE),
    ],
)  # fmt: skip
def test_everything_is_allowed_whatever_is_there(status: int, body: bytes, reason: Reason) -> None:
    robots = RobotsTxt.from_response(status, body)
    assert robots.verdict("/private", "mybot") == (True, reason, None, None, f"status {status}")


@pytest.mark.parametrize("piece", [b"#", b"<!--", b"<!-- -->", b" ", b"\n#"])
def test_the_beginning_of_any_body_is_found(piece: bytes) -> None:
    """Each byte is looked at once: this would not end if it were not so."""
    assert recognize(piece * (SIZE_LIMIT // len(piece))).result is None


@pytest.mark.parametrize(
    ("body", "form"),
    [
        (b"", ""),
        (b"# robots.txt\n", ""),
        (RULES, ""),
        (b"<html>\n" + RULES, ""),
        (b"<p>\n" + RULES, ""),
        (b'{"a": 1}\n' + RULES, ""),
        (b"{your domain}\n", ""),
        (b"[*]\n", ""),
        (b"<your text>\n", ""),
        (b"<!-- User-agent: * -->\n", ""),
        (b"<html>", "an HTML page"),
        (b'<?xml version="1.0"?>', "an XML document"),
        (b"\xef\xbb\xbf\n <META name=a>", "a part of an HTML page"),
        (b"# Log in\n<script>a()</script>", "a part of an HTML page"),
        (b"<style>p { color: red }</style>", "a part of an HTML page"),
        (b"<!-- a --><div>\nSitemap: https://example.com/", "a part of an HTML page"),
        (b"<p>User-agent: *</p>\n<p>Disallow: /</p>", "a part of an HTML page"),
        (b"<urlset xmlns=a>", "an XML document"),
        (b"<?php echo 1;", "a PHP script"),
        (b'{\n "error": "not found"\n}', "JSON"),
        (b"[]", "JSON"),
        (rb"{\rtf1\ansi" + b"\n" + RULES, "an RTF document"),
        (gzip.compress(RULES, mtime=0), "a gzip file"),
        (b"PK\x03\x04\x14\0robots.txt" + RULES, "a zip file"),
        (
            b"PK\x03\x04\x14\0[Content_Types].xml PK\x03\x04word/document.xml",
            "a Word document (docx)",
        ),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\x89PNG\r\n", "an image"),
    ],
)
def test_what_a_body_looks_like(body: bytes, form: str) -> None:
    found = recognize(body)
    assert found.form == form
    codes = [finding.code for finding in lint(body)]
    assert (codes == ["R109"]) == bool(form), codes
    if form:
        assert lint(body)[0].message == f"the file is {form}"
        assert fix(body, unsafe=True) == body
