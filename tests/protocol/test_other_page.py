"""A successful response whose body is no robots.txt: a page in HTML, or a challenge."""

from __future__ import annotations

import pytest

from scrapy_rep import Reason, RobotsTxt, Verdict, lint
from scrapy_rep.protocol.access import AccessResult, other_page
from scrapy_rep.protocol.lines import SIZE_LIMIT

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
    assert other_page(body) is NOT
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
    assert other_page(body) is None
    assert other_page(body, "text/plain") is None
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
    assert other_page(body, content_type) is expected


@pytest.mark.parametrize("html", [b"<html>", ANUBIS])
def test_a_challenge_is_a_page_with_its_marks(html: bytes) -> None:
    assert other_page(html, None, " Challenge ") is CHALLENGE
    assert other_page(html, None, "block") is (CHALLENGE if html == ANUBIS else NOT)
    assert other_page(RULES, None, "challenge") is None, "a file with rules"


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
    assert other_page(piece * (SIZE_LIMIT // len(piece))) is None
