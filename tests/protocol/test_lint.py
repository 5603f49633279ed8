"""Findings about lines that do not do what they seem to."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.lines import SIZE_LIMIT
from scrapy_rep.protocol.lint import Finding, Severity, lint
from scrapy_rep.protocol.vocabularies import AIPREF_EARLIER

ALL = "User-agent: *\n"


@pytest.mark.parametrize(
    ("robots_txt", "line", "severity", "message", "advice"),
    [
        ("Disallow: /a\n" + ALL, 1, "error", "before any user-agent line", "User-agent: *"),
        ("Crawl-delay: 1\n" + ALL, 1, "error", "before any user-agent line", "User-agent: *"),
        (ALL + "dissallow: /a", 2, "warning", "'dissallow' is misspelt", "disallow:"),
        (ALL + "disallows: /a", 2, "warning", "'disallows' is misspelt", "disallow:"),
        (ALL + "Disallow /a: /b", 2, "warning", "'disallow /a' is misspelt", "disallow:"),
        ("User-agents: *\nDisallow: /a", 1, "warning", "'user-agents' is misspelt", "user-agent:"),
        ("sitemaps: https://h/s.xml", 1, "warning", "'sitemaps' is misspelt", "sitemap:"),
        (ALL + "crawl delay: 1", 2, "warning", "'crawl delay' is misspelt", "crawl-delay:"),
        (ALL + "crawl-delays: 1", 2, "error", "unknown field 'crawl-delays'", "crawl-delay:"),
        (ALL + "Visit-time: 06:00-08:45", 2, "warning", "not read by every", "0600-0845"),
        (ALL + "Request-rate: 1/2 06.00-08.45", 2, "warning", "not read by every", "0600-0845"),
        (ALL + "Disallow: /a\0", 2, "warning", "NUL octets at the end", "remove"),
        (ALL + "foo: /a", 2, "info", "unknown field 'foo'", "remove it"),
        (ALL + f"{'x' * 99}: /a", 2, "info", "unknown field", "remove it"),
        (ALL + "hello world", 2, "error", "unknown field 'hello'", "'#'"),
        (ALL + "Disallow /a", 2, "warning", "the colon is missing", "disallow:"),
        (ALL + "Disallow = /a", 2, "error", "no colon", "disallow:"),
        (ALL + "Please go away now", 2, "error", "no colon", "'#'"),
        (ALL + "Disallow: a", 2, "error", "'a' never matches", "/a"),
        (ALL + "Disallow: http://h/a?b", 2, "error", "never matches", "'/a?b'"),
        (ALL + "Disallow: http://h", 2, "error", "never matches", "'/'"),
        (ALL + "Disallow: http://[h", 2, "error", "never matches", "/http://[h"),
        (ALL + "Disallow: /a\nAllow: /a", 2, "warning", "disallow '/a' never decides: line 3", ""),
        (ALL + "Disallow: /a\nDisallow: /a*", 2, "warning", "line 3", "remove"),
        (ALL + "Disallow: /a\nDisallow: /%61", 3, "warning", "line 2", "remove"),
        (ALL + "Disallow: /a$\nAllow: /a**", 2, "warning", "line 3", "remove"),
        (ALL + "Allow: /a*\nAllow: /a**$", 2, "warning", "line 3", "remove"),
        (ALL + "Allow: /\n" + ALL + "Allow: /b", 3, "info", "another group for '*'", "one place"),
        ("User-agent:", 1, "error", "no product token", "'*'"),
        ("User-agent: бот", 1, "error", "'бот'", "letters"),
        ("User-agent: *bot", 1, "error", "'*bot'", "alone"),
        ("User-agent: MJ12bot/1", 1, "info", "'MJ12bot/1'", "only"),
        (ALL + "Crawl-delay: soon", 2, "error", "crawl-delay 'soon'", "seconds"),
        (ALL + "Request-rate: 1", 2, "error", "request-rate '1'", "1/10"),
        (ALL + "Visit-time: 8", 2, "error", "visit-time '8'", "0600-0845"),
        (ALL + "Content-Usage: /a b=", 2, "error", "content-usage", "train-ai=n"),
        (ALL + "Content-Usage: A", 2, "error", "content-usage", "train-ai=n"),
        (ALL + "Content-Usage: train-ai=no", 2, "error", "states nothing", "write y or n"),
        (ALL + "Content-Usage: /a search", 2, "error", "states nothing", "write y or n"),
        *((ALL + f"Content-Usage: /a train-ai=n, {label}=n", 2, "error", "earlier draft", "ai-use")
          for label in sorted(AIPREF_EARLIER)),
        *((ALL + f"Content-Signal: {value}", 2, "error", "cannot be read", "ai-train=no")
          for value in ("", "/a", "a/ ai-train=no", "search=yes ai-train=no", "search=maybe",
                        "use=some", "search=yes, x")),
        (ALL + "Content-Signal: ai_train=no", 2, "warning", "not defined", "ai-train"),
        ("Sitemap: /a.xml", 1, "error", "no absolute URL", "whole URL"),
        ("Sitemap: http://[a", 1, "error", "no absolute URL", "whole URL"),
        ("Clean-param: & /a", 1, "error", "clean-param '& /a' cannot be read", "ref&sid"),
        ("Clean-param:", 1, "error", "clean-param '' cannot be read", "ref&sid"),
        ("Clean-param: a b", 1, "error", "path of clean-param 'a b' never", "slash"),
        ("Clean-param: a /b?c", 1, "warning", "Yandex reads only letters", "'*'"),
        ("Clean-param: " + "a" * 501, 1, "warning", "at most 500 characters", "several lines"),
        ("License: /a.xml", 1, "error", "license '/a.xml' is no absolute URL", "whole URL"),
        ("License: http://[a", 1, "error", "no absolute URL", "whole URL"),
        ("License:", 1, "error", "no absolute URL", "whole URL"),
    ],
)  # fmt: skip
def test_findings(robots_txt: str, line: int, severity: str, message: str, advice: str) -> None:
    findings = lint(robots_txt.encode())
    assert [finding.line for finding in findings] == [line], findings
    assert str(findings[0].severity) == severity
    assert message in findings[0].message
    assert advice in findings[0].advice
    assert str(findings[0]).startswith(f"line {line}: {severity}: ")


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


def test_a_rule_that_decides_for_one_of_several_agents_is_no_finding() -> None:
    body = b"User-agent: a\nUser-agent: b\nDisallow: /x\nUser-agent: a\nAllow: /x\n"
    assert [finding.message[:13] for finding in lint(body)] == ["another group"]


def test_typos_are_errors_in_the_strict_reading() -> None:
    findings = lint(b"User-agent: *\ndissallow: /a\nDisallow /b\n", strict=True)
    assert [(finding.line, finding.severity) for finding in findings] == [
        (2, Severity.ERROR),
        (3, Severity.ERROR),
    ]


def test_octets_that_are_not_utf_8() -> None:
    assert lint(b"User-agent: *\nDisallow: /\xe9") == [
        Finding(2, Severity.WARNING, "an octet that is not UTF-8", "save the file as UTF-8")
    ]


@pytest.mark.parametrize(("end", "line"), [(b"\n", 39), (b"x", 38)])
def test_lines_beyond_the_limit(end: bytes, line: int) -> None:
    filler = (b"#" + b"x" * 13_999 + b"\n") * 36
    body = b"User-agent: *\n" + filler
    body += b"#" * (SIZE_LIMIT - len(body) - 1) + end
    findings = lint(body + b"Disallow: /a\n")
    assert [finding.line for finding in findings if "nothing is read" in finding.message] == [line]


def test_google_cuts_long_lines() -> None:
    for length, findings in {16_664: 0, 16_665: 1}.items():
        found = lint(b"User-agent: *\n" + b"Disallow: /".ljust(length, b"a"))
        assert len([finding for finding in found if "Google reads" in finding.message]) == findings


def test_a_utf_16_byte_order_mark_before_other_text() -> None:
    findings = lint(b"\xff\xfeUser-agent: *\nDisallow: /a")
    assert [(finding.line, finding.severity) for finding in findings] == [(1, Severity.WARNING)]
    assert lint("User-agent: *\nDisallow: /a".encode("utf-16")) == []


def test_groups_that_share_too_many_rules_are_not_compared() -> None:
    run = "".join(f"User-agent: a{number}\n" for number in range(300))
    rules = "".join(f"Disallow: /{number}\n" for number in range(1000))
    apart = "".join(f"User-agent: a{number}\nDisallow: /1\n" for number in range(300))
    messages = {finding.message for finding in lint((run + rules + apart).encode())}
    assert any("too many groups share their rules" in message for message in messages)
    assert not any("never decides" in message for message in messages)
