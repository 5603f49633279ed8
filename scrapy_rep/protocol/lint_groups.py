"""Findings about several lines: rules that never decide, repeated groups, disallowed sitemaps, and
files that close the whole site.

A rule never decides if, for each path that it matches, a rule of a better rank matches, too. Two
patterns are compared by a sample path: the first, with a character that no pattern has for each
star. The second pattern matches this path only with a star in place of that character, and so it
matches every path that the first matches.

Not found: a rule that several others cover together, such as ``/a*`` by ``/ab*``, ``/ac*`` and so
on. To find all of them would take a time that grows exponentially with the number of rules. Nor is
a rule with a reserved character in its query, which has two forms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .agents import WILDCARD_AGENT
from .lines import line_number, line_numbers
from .lint_codes import Code
from .matcher import PatternIndex, Steps, one_star, rank, sample_paths
from .parser import (
    LENIENT,
    GroupText,
    groups,
    records,
)
from .paths import (
    ROBOTS_TXT,
    origin_of,
    path_of,
    pattern_has_reserved_query,
    pattern_of,
)
from .printable import quoted
from .records import SITEMAP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .lint import Finding, Source

_RULE_STEPS = 100
"""The steps to read and rank a rule of a group, and to add it to an index."""
_MAX_STEPS = 2_000
"""The steps to compare one rule with the others."""

EVERYONE = WILDCARD_AGENT.encode()
_EVERYTHING = frozenset([b"/", b"*", b"/*"])
"""The patterns that match all paths."""


def findings_of_groups(source: Source, steps: Steps) -> Iterator[Finding]:
    """Yield findings about tokens with several groups, and rules that never decide.

    The comparisons use up `steps`. Without any left, the last finding says so.
    """
    text = source.text
    line_at = line_numbers(text)
    pieces = groups(text, strict=False)
    for token, spans in pieces.items():
        if len(spans) > 2:
            yield source.finding(
                line_at(spans[2] - 1),
                Code.REPEATED_GROUP,
                f"another group for {quoted(token)}: the two are one",
                "write the rules of a crawler in one place",
            )
    if EVERYONE in pieces:
        everyone = GroupText(text, pieces[EVERYONE], LENIENT)
        if len(pieces) == 1:
            yield from _about_closed_site(source, everyone)
        yield from _about_sitemaps(source, everyone, steps)
    decided: set[int] = set()
    lost: dict[int, tuple[bool, bytes, int | None]] = {}
    for spans in {tuple(spans): spans for spans in pieces.values()}.values():
        group = GroupText(text, spans, LENIENT)
        if steps.left < 0:
            # The number of ways in which tokens share groups can grow with the square of the file.
            # A rule that never decides in the groups up to here may decide in another one.
            return
        winners = _winners(group, steps)
        for rule in group.rules():
            allow, value, position = rule
            patterns = [pattern for _, _, _, pattern in rank([rule], strict=False)]
            if any(winners[pattern] == position for pattern in patterns):
                decided.add(position)
            elif patterns:
                lost[position] = (allow, value, winners[pattern_of(value)[0]])
    found = {line_at(at): rule for at, rule in lost.items() if at not in decided}
    for line, (allow, value, winner) in found.items():
        field = "allow" if allow else "disallow"
        reason = f"{ROBOTS_TXT} is always allowed"
        if winner is not None:
            reason = f"line {line_at(winner)} does"
        message = f"{field} {quoted(value)} never decides: {reason}"
        advice = "remove it; if it is the only rule of its group, write 'disallow:' alone"
        yield source.finding(line, Code.NEVER_DECIDES, message, advice)


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


def _about_sitemaps(source: Source, group: GroupText, steps: Steps) -> Iterator[Finding]:
    """Yield findings about rules that name a sitemap and disallow it."""
    rules = [rule for rule in group.rules() if b"sitemap" in rule[1].lower()]
    if all(allow for allow, _, _ in rules):
        return
    ranked = rank(group.rules(), strict=False)
    index = PatternIndex([pattern for _, _, _, pattern in ranked])
    named = {position for _, _, position in rules}
    found: dict[int, bytes] = {}
    steps.left -= _RULE_STEPS * len(ranked)
    for _, field, value in records(group.text, strict=False):
        origin = origin_of(value.decode("utf-8", "replace")) if field == SITEMAP.field else None
        if origin is not None and steps.left > 0:
            steps.left -= _RULE_STEPS
            number = index.first(path_of(value.decode("utf-8", "replace")), steps)
            if 0 <= number < len(ranked) and ranked[number][1] and ranked[number][2] in named:
                found.setdefault(ranked[number][2], value)
    for position, value in found.items():
        yield source.finding(
            line_number(group.text, position),
            Code.SITEMAP_DISALLOWED,
            f"this disallows the sitemap {quoted(value)}, which the file names",
            "remove one of the two lines",
        )


def _winners(group: GroupText, steps: Steps) -> dict[str, int | None]:
    """Return for each pattern the position of the rule that decides where the pattern matches.

    It is None if /robots.txt is the only path that matches.
    """
    ranked = rank(group.rules(), strict=False)
    patterns = [one_star(pattern) for _, _, _, pattern in ranked]
    index = PatternIndex(patterns)
    steps.left -= _RULE_STEPS * len(patterns)
    first: dict[str, int] = {}
    winners: dict[str, int | None] = {}
    for number, (_, _, position, written) in enumerate(ranked):
        pattern = patterns[number]
        winner = first.setdefault(_stem(pattern), number)
        if winner == number and steps.left >= 0:
            allotted = Steps(_MAX_STEPS)
            winner = _first_that_covers(pattern, number, index, allotted)
            steps.left -= _MAX_STEPS - allotted.left
        winners[written] = position if winner == number else ranked[winner][2]
        if pattern == f"{ROBOTS_TXT}$":
            winners[written] = None
    return winners


def _first_that_covers(pattern: str, number: int, index: PatternIndex, steps: Steps) -> int:
    """Return the number of the best pattern that matches each path that a pattern matches.

    It is the pattern's own number if there is no other, or if that is not certain.
    """
    if pattern_has_reserved_query(pattern):  # it may match the encoded form of a query alone
        return number
    best = number
    for sample in sample_paths(pattern):
        winner = index.first(sample, steps)
        if not 0 <= winner < number:
            return number
        best = winner
    return best


def _stem(pattern: str) -> str:
    """Return the shortest pattern that matches the same paths: without stars that match nothing."""
    return pattern.removesuffix("*$").removesuffix("*")
