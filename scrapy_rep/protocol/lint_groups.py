"""Findings about several lines: equal rules, disallowed sitemaps, and files that close the whole
site.

Of rules that match the same paths one decides, and the others never do. Not found: rules that
others with more stars cover, such as ``/ab`` by ``/a*b``.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from .agents import WILDCARD_AGENT
from .lines import line_number
from .lint_codes import Code
from .matcher import one_star, rank
from .parser import LENIENT, RULE_FIELDS, GroupText, RawRule, groups, records, records_of_groups
from .paths import origin_of
from .printable import quoted
from .records import SITEMAP
from .robotstxt import RobotsTxt

if TYPE_CHECKING:
    from .lint import Finding, Source

EVERYONE = WILDCARD_AGENT.encode()
_EVERYTHING = frozenset([b"/", b"*", b"/*"])
"""The patterns that match all paths."""
_MAX_SITEMAPS = 100
"""The sitemaps of a file that are compared with its rules."""


def findings_of_groups(source: Source) -> Iterator[Finding]:
    """Yield findings about groups and their rules."""
    text = source.text
    pieces = groups(text, strict=False)
    if list(pieces) == [EVERYONE]:
        yield from _about_closed_site(source, GroupText(text, pieces[EVERYONE], LENIENT))
    yield from _about_sitemaps(source)
    rules: list[RawRule] = []
    run: list[bytes] | None = None
    for (line, field, value), tokens in records_of_groups(text, strict=False, ends=RULE_FIELDS):
        if tokens is not run:
            yield from _about_equal_rules(source, rules)
            run, rules = tokens, []
        if tokens is not None and value and field in RULE_FIELDS:
            rules.append((field == b"allow", value, line))
    yield from _about_equal_rules(source, rules)


def _about_equal_rules(source: Source, rules: list[RawRule]) -> Iterator[Finding]:
    """Yield findings about the rules of one group that match what a better one matches."""
    best: dict[str, int] = {}
    for _, _, line, pattern in rank(rules, strict=False):
        best.setdefault(_stem(pattern), line)
    for rule in rules:
        allow, value, line = rule
        # One that names an index page may stand for its folder as well.
        winners = [best[_stem(pattern)] for _, _, _, pattern in rank([rule], strict=False)]
        if winners and line not in winners:
            field = "allow" if allow else "disallow"
            message = f"{field} {quoted(value)} never decides: line {winners[0]} does"
            advice = "remove it; if it is the only rule of its group, write 'disallow:' alone"
            yield source.finding(line, Code.NEVER_DECIDES, message, advice)


def _stem(pattern: str) -> str:
    """Return the shortest pattern that matches the same paths: without stars that match nothing."""
    return one_star(pattern).removesuffix("*$").removesuffix("*")


def _about_closed_site(source: Source, group: GroupText) -> Iterator[Finding]:
    """Yield a finding if the only group of a file disallows everything."""
    closing = None
    for allow, value, position in group.rules():
        if allow:
            return
        if closing is None and value in _EVERYTHING:
            closing = position
    if closing is not None:
        yield source.finding(
            line_number(group.text, closing),
            Code.SITE_CLOSED,
            "this closes the whole site to every crawler, so that search engines lose it",
            "write 'Disallow:' without a path if crawlers are welcome",
        )


def _about_sitemaps(source: Source) -> Iterator[Finding]:
    """Yield findings about rules that name a sitemap and disallow it."""
    named = (
        record.value
        for record in records(source.text, strict=False)
        if record.field == SITEMAP.field
    )
    sitemaps = {value: value.decode("utf-8", "replace") for value in islice(named, _MAX_SITEMAPS)}
    robots = RobotsTxt(source.text[1:]) if sitemaps else None
    found: dict[int, bytes] = {}
    for value, url in sitemaps.items():
        rule = robots.verdict(url, WILDCARD_AGENT).rule if robots and origin_of(url) else None
        if rule is not None and not rule.allow and "sitemap" in rule.pattern.lower():
            found.setdefault(rule.line, value)
    for line, value in found.items():
        yield source.finding(
            line,
            Code.SITEMAP_DISALLOWED,
            f"this disallows the sitemap {quoted(value)}, which the file names",
            "remove one of the two lines",
        )
