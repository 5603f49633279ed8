"""A disallow that hides a noindex."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.lint_pages import hidden_noindex
from scrapy_rep.protocol.pages import PageDirectives

BODY = b"""\
User-agent: *
  Disallow: /old/ # gone
Disallow: /*.pdf$
Allow: /old/press/

User-agent: googlebot
Disallow: /private/
"""


@pytest.mark.parametrize(
    ("pages", "user_agent", "messages"),
    [
        ([("/old/a", "noindex")], "*", {2: "'/old/' hides the noindex of '/old/a'"}),
        ([("/old/a", "None")], "*", {2: "'/old/a'"}),
        ([("https://h/a.pdf", "nofollow, noindex")], "*", {3: "'/*.pdf$' hides"}),
        ([("/old/a", PageDirectives(noindex=True))], "*", {2: "'/old/a'"}),
        ([("/old/a", PageDirectives(nofollow=True))], "*", {}),
        ([("/old/a", "index, follow")], "*", {}),
        ([("/old/a", "")], "*", {}),
        ([("/old/press/a", "noindex"), ("/a", "noindex")], "*", {}),
        ([("/old/a", "noindex")], "googlebot", {}),
        ([("/private/a", "googlebot: noindex")], "Googlebot/2.1", {7: "'/private/a'"}),
        ([("/private/a", "otherbot: noindex")], "googlebot", {}),
        (
            [("/b.pdf", "noindex"), ("/old/a", "noindex"), ("/old/b", "noindex"), ("/old/c", "")],
            "*",
            {2: "'/old/' hides the noindex of 2 pages, such as '/old/a'", 3: "'/b.pdf'"},
        ),
        ([("/old/\x1b[2J", "noindex")], "*", {2: r"'/old/\x1b[2J'"}),
    ],
)
def test_hidden_noindex(
    pages: list[tuple[str, PageDirectives | str]], user_agent: str, messages: dict[int, str]
) -> None:
    findings = hidden_noindex(BODY, iter(pages), user_agent=user_agent)
    assert [finding.line for finding in findings] == list(messages)
    for finding, message in zip(findings, messages.values()):
        assert message in finding.message
        assert str(finding.code) == "R701"


def test_the_place_is_the_rule() -> None:
    (finding,) = hidden_noindex(BODY, [("/old/a", "noindex")])
    assert (finding.column, finding.end_column) == (3, 18)


def test_a_strict_reading() -> None:
    body = b"User-agent: *\nDissallow: /"
    assert hidden_noindex(body, [("/a", "noindex")], strict=True) == []
    assert len(hidden_noindex(body, [("/a", "noindex")])) == 1


def test_a_disallow_without_a_rule_hides_nothing() -> None:
    # The comparison takes too many steps, which is no fault of any line.
    body = b"User-agent: *\n" + b"".join(
        b"Disallow: /" + b"*a" * 900 + b"%d$\n" % number for number in range(200)
    )
    assert hidden_noindex(body, [("/" + "a" * 2000, "noindex")]) == []


def test_urls_that_are_none() -> None:
    with pytest.raises(ValueError, match="neither an absolute URL"):
        hidden_noindex(BODY, [("a", "noindex")])
