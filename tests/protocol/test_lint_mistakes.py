"""Mistakes that cost, each planted in a file of its own.

They are those that Google's documentation, Lighthouse's audit, Yandex' analysis and public checkers
name. The finding must be there, with its line and severity, and its advice must say what to write.
"""

from __future__ import annotations

import pytest

from scrapy_rep.commands.crawlers import well_known_crawlers
from scrapy_rep.protocol.lint import fix, lint
from scrapy_rep.protocol.robotstxt import RobotsTxt

CRAWLERS = {token.lower(): token for crawler in well_known_crawlers() for token in crawler.tokens}

ALL = "User-agent: *\n"
MANY = ALL + "".join(f"Disallow: /{number}/\n" for number in range(5_001))

# The file, the code, the line, the severity, and words of the advice.
MISTAKES = [
    # Two things on one line.
    ("User-agent: * Disallow: /", "R207", 1, "error", "line of its own"),
    ("Sitemap: https://h/a.xml Sitemap: https://h/b.xml", "R207", 1, "error", "line of its own"),
    ("Sitemap: https://h/a.xml https://h/b.xml", "R208", 1, "warning", "for each URL"),
    ("User-agent: Googlebot, Bingbot\nDisallow: /a", "R208", 1, "warning", "for each of them"),
    (ALL + "Disallow: /a, /b", "R208", 2, "warning", "for each path"),
    # Patterns that match more or less than they say.
    (ALL + "Disallow: /#section", "R405", 2, "error", "remove the line"),
    (ALL + "Disallow: “/admin”", "R403", 2, "error", "'/admin', without quotation marks"),
    (ALL + "Disallow: '/cart'", "R403", 2, "error", "'/cart', without quotation marks"),
    (ALL + "Disallow: \\images\\", "R403", 2, "error", "'/images/'"),
    (ALL + "Disallow: ^/page[0-9]+$", "R403", 2, "error", "not a regular expression"),
    (ALL + "Disallow: ./admin", "R403", 2, "error", "'/admin'"),
    (ALL + "Disallow: .pdf$", "R403", 2, "error", "'/*.pdf$'"),
    (ALL + "Disallow: admin", "R401", 2, "error", "'/admin'"),
    (ALL + "Disallow: https://h/admin", "R402", 2, "error", "'/admin'"),
    (ALL + "Disallow: /(a|b)/.*", "R406", 2, "warning", "for each beginning"),
    (ALL + "Disallow: /a$b", "R407", 2, "warning", "'%24'"),
    (ALL + "Disallow: /a$*", "R407", 2, "warning", "'%24'"),
    (ALL + "Disallow: /a**b", "R408", 2, "info", "one '*'"),
    ("User-agent: b\nDisallow: *", "R409", 2, "info", "'/'"),
    (ALL + "Disallow: /a\nAllow: /a", "R404", 2, "warning", "remove it"),
    # Rules that do what they say, to the harm of the site.
    (ALL + "Disallow: /", "R312", 2, "warning", "'Disallow:'"),
    (ALL + "Disallow: /css/", "R410", 2, "info", "allow scripts"),
    (ALL + "Disallow: /js/", "R410", 2, "info", "allow scripts"),
    (ALL + "Disallow: /*.css$", "R410", 2, "info", "allow scripts"),
    (ALL + "Disallow: /sitemap.xml\nSitemap: https://h/sitemap.xml", "R411", 2, "warning",
     "one of the two"),
    (ALL + "Disallow: /backup.sql", "R412", 2, "info", "password"),
    (ALL + "Crawl-delay: 86400", "R508", 2, "warning", "at most 300"),
    (MANY, "R111", 2_050, "info", "fewer rules"),
    ("\n<!DOCTYPE html>\n<title>Log in: a</title>\nfoo: bar", "R109", 1, "error", "404"),
    # Crawlers that are not meant.
    ("User-agent: all\nDisallow: /a", "R309", 1, "warning", "'*'"),
    ("User-agent: Mozilla/5.0 (compatible; GPTBot/1.2)\nDisallow: /a", "R310", 1, "warning",
     "'GPTBot'"),
    ("User-agent: GPT-bot\nDisallow: /a", "R311", 1, "warning", "'GPTBot'"),
    ("User-agent: ChatGPT\nDisallow: /a", "R311", 1, "warning", "'ChatGPT-User'"),
    ("User-agent: Googelbot\nDisallow: /a", "R311", 1, "warning", "'Googlebot'"),
    ("User-agent: Googlbot\nDisallow: /a", "R311", 1, "warning", "'Googlebot'"),
    ("User-agent:\nDisallow: /a", "R302", 1, "error", "'*'"),
    ("User-agent: *bot\nDisallow: /a", "R303", 1, "error", "'*' alone"),
    ("Disallow: /a", "R301", 1, "error", "User-agent: *"),
    # Lines that are not read, or not by every crawler.
    (ALL + "Noindex: /a", "R209", 2, "warning", "X-Robots-Tag: noindex"),
    (ALL + "Disallow: /a\u200b", "R110", 2, "warning", "remove it"),
    (ALL + "\u00a0Disallow: /a", "R110", 2, "warning", "remove it"),
    (ALL + "Disallow\uff1a/a", "R201", 2, "error", "disallow:"),
    ("User-agent : *\nDisallow: /a", "R210", 1, "info", "user-agent:"),
    (ALL + "Disallow /a", "R202", 2, "warning", "disallow:"),
    (ALL + "Dissallow: /a", "R203", 2, "warning", "disallow:"),
    (ALL + "Dsallow: /a", "R205", 2, "error", "disallow:"),
    (ALL + "// a comment", "R201", 2, "error", "'#'"),
    ("\ufeffUser-agent: *\nDisallow: /a", "R101", 1, "warning", "without a mark"),
    # Sitemaps (Lighthouse).
    ("Sitemap: /sitemap.xml", "R502", 1, "error", "whole URL"),
    ("Sitemap: www.example.com/sitemap.xml", "R502", 1, "error", "whole URL"),
    ("Sitemap: file:///sitemap.xml", "R502", 1, "error", "whole URL"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line", "severity", "advice"), MISTAKES)
def test_mistakes(text: str, code: str, line: int, severity: str, advice: str) -> None:
    findings = {str(one.code): one for one in lint(text.encode(), crawlers=CRAWLERS)}
    found = findings.pop(code)
    assert (found.line, str(found.severity)) == (line, severity)
    assert advice in found.advice
    # What is in effect a closed site is reported, too, whatever the reason.
    assert findings.keys() <= {"R312"}


@pytest.mark.parametrize(
    "text",
    [
        ALL + "Disallow: /a # a comment\nDisallow: /b#\nAllow: /c ## two",
        ALL + "Disallow: /a;b\nDisallow: /a,b\nDisallow: /a%20/b\nDisallow: /a[1]\nDisallow: /(a)",
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
def test_what_only_resembles_a_mistake(text: str) -> None:
    assert lint(text.encode(), crawlers=CRAWLERS) == []


def test_a_path_that_begins_with_another_character_is_never_corrected() -> None:
    body = "".join(
        f"Disallow: {value}\n" for value in ["“/a”", "'/a'", "\\a\\", "^a", "./a", "_a", "ツ"]
    )
    assert fix(body.encode(), unsafe=True) == body.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Allow: a", "Allow: /a"),
        ("Disallow: a%62", "Disallow: /a%62"),
        ("Disallow: https://h/a?b", "Disallow: /a?b"),
        ("DSALLOW: /a", "Disallow: /a"),
        ("User-agent: mozilla/5.0 (compatible; GPTBot/1.2)", "User-agent: GPTBot"),
    ],
)
def test_unsafe_corrections(before: str, after: str) -> None:
    assert fix(before.encode()) == before.encode()
    assert fix(before.encode(), unsafe=True) == after.encode()


def test_a_missing_slash_of_an_allow_may_open_what_is_disallowed() -> None:
    body = b"User-agent: *\nAllow: b\nDisallow: /"
    assert fix(body) == body
    assert RobotsTxt.parse(fix(body, unsafe=True)).allowed("/b", "a")
