"""Findings about several lines: rules that never decide, and what is stated more than once.

A rule never decides if, for each path that it matches, a rule of a better rank matches, too. Two
patterns are compared by a sample path: the first, with a character that no pattern has for each
star. The second pattern matches this path only with a star in place of that character, and so it
matches every path that the first matches.

Not found: a rule that several others cover together, such as ``/a*`` by ``/ab*``, ``/ac*`` and so
on. To find all of them would take a time that grows exponentially with the number of rules.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from .agents import tokens_of_line
from .comparison import matches
from .lines import SIZE_LIMIT
from .lint_codes import Code
from .matcher import PatternIndex, rank
from .parser import LENIENT, STRICT, GroupText, groups, records
from .paths import ROBOTS_TXT, encode_query, pattern_has_reserved_query, pattern_of
from .printable import printable
from .records import CRAWL_DELAY, RECORD_TYPES, VISIT_TIME, Scope

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from .lint_findings import Finding, Source

_MAX_OCTETS = 4 * SIZE_LIMIT
"""Octets of groups that are searched for rules that never decide. It bounds the time. A file in
which each token has its own groups has at most one `SIZE_LIMIT` of them."""
_MAX_COST = 4_000_000
"""The comparisons of rules with each other. A rule costs one more than there are patterns with
stars in its group, of which `_MAX_WILDCARDS` count."""
_MAX_WILDCARDS = 1_000
_QUERY_COST = 4
"""How much more a rule costs that is compared in two forms."""
_MAX_STEPS = 2_000
"""The steps to compare one rule with the others."""

_ANY = "\0"
"""Stands for a star in a sample path. No pattern in comparable form has it."""
_STARS = re.compile(r"\*\*+")

_RULES = (b"allow", b"disallow")
_LAST_COUNTS = {row.field: row for row in (CRAWL_DELAY, VISIT_TIME)}
"""The records of which the last one counts."""
_ENDS_RUN = {row.field: row.scope is not Scope.FILE for row in RECORD_TYPES}


class _Budget:
    """What may still be spent on comparisons of rules."""

    __slots__ = ("cost", "octets")

    def __init__(self) -> None:
        self.cost = _MAX_COST
        self.octets = _MAX_OCTETS


def findings_of_groups(source: Source, *, strict: bool) -> Iterator[Finding]:
    """Yield findings about tokens with several groups, and rules that never decide."""
    text = source.text
    dialect = STRICT if strict else LENIENT
    line_feeds = [match.start() for match in re.finditer(b"\n", text)]

    def line_at(position: int) -> int:
        return bisect_left(line_feeds, position)

    pieces = groups(text, strict=strict)
    for token, spans in pieces.items():
        if len(spans) > 2:
            yield source.finding(
                line_at(spans[2]),
                Code.REPEATED_GROUP,
                f"another group for {_quoted(token)}: the two are one",
                "write the rules of a crawler in one place",
            )
    budget = _Budget()
    decided: set[int] = set()
    lost: dict[int, tuple[bool, bytes, int | None]] = {}
    for spans in {tuple(spans): spans for spans in pieces.values()}.values():
        group = GroupText(text, spans, dialect)
        budget.octets -= sum(spans[1::2]) - sum(spans[::2])
        if budget.octets < 0:
            # The number of ways in which tokens share groups can grow with the square of the file.
            yield source.finding(
                line_at(spans[0]) or 1,
                Code.NOT_SEARCHED,
                "too many groups share their rules: rules that never decide are not searched for",
                "write the rules of a crawler in one place",
            )
            return
        winners = _winners(group, budget, strict=strict)
        for rule in group.rules():
            allow, value, position = rule
            patterns = [pattern for _, _, _, pattern in rank([rule], strict=strict)]
            if any(winners[pattern] == position for pattern in patterns):
                decided.add(position)
            elif patterns:
                lost[position] = (allow, value, winners[pattern_of(value)[0]])
    found = {line_at(at + 1): rule for at, rule in lost.items() if at not in decided}
    separating = _separating_lines(text, found, strict=strict) if found else frozenset()
    for line, (allow, value, winner) in found.items():
        field = "allow" if allow else "disallow"
        reason = f"{ROBOTS_TXT} is always allowed"
        if winner is not None:
            reason = f"line {line_at(winner + 1)} does"
        message = f"{field} {_quoted(value)} never decides: {reason}"
        advice = "remove it"
        if line in separating:
            advice = "write 'disallow:' alone, as it keeps the groups above and below it apart"
        yield source.finding(line, Code.NEVER_DECIDES, message, advice)
    if budget.cost < 0:
        message = "too many rules with stars: not all were compared with each other"
        yield source.finding(1, Code.NOT_SEARCHED, message, "write fewer rules with '*'")


def _separating_lines(text: bytes, removable: Container[int], *, strict: bool) -> frozenset[int]:
    """Return the lines without which the user-agent lines above and below them were one group.

    These are the rules between them, if all of these are `removable`.
    """
    found: list[int] = []
    run: list[int] = []
    for line, field, _ in records(text, strict=strict):
        if field in _RULES:
            run.append(line)
        elif field == b"user-agent":
            if all(rule in removable for rule in run):
                found += run
            run = []
    return frozenset(found)


def findings_of_repeated_values(source: Source, *, strict: bool) -> Iterator[Finding]:
    """Yield findings about crawlers with several Crawl-delays or Visit-times that differ."""
    # For each token and field: the last line of the token's last run of records.
    last: dict[tuple[bytes, bytes], list[Any]] = {}
    found: dict[int, Finding] = {}
    agents: list[bytes] = []
    run: dict[bytes, list[Any]] = {}
    naming = False

    def replace(earlier: list[Any], line: int, meaning: object, token: bytes) -> None:
        if earlier[1] != meaning and earlier[0] not in found:
            message = f"{field} is stated again for {_quoted(token)}: line {line} counts here"
            advice = f"write one {field} for each crawler"
            found[earlier[0]] = source.finding(earlier[0], Code.REPEATED_VALUE, message, advice)

    for line, name, value in records(source.text, strict=strict):
        if name == b"user-agent":
            if not naming:
                agents, run = [], {}
            naming = True
            agents += tokens_of_line(value)
        elif _ENDS_RUN.get(name, name in _RULES):
            naming = False
        row = _LAST_COUNTS.get(name)
        meaning = None if row is None else row.parse(value)
        if meaning is None or not agents:
            continue
        field = name.decode()
        if name in run:
            replace(run[name], line, meaning, agents[0])
            run[name][:] = line, meaning
            continue
        run[name] = [line, meaning]
        for token in dict.fromkeys(agents):
            if (token, name) in last:
                replace(last[token, name], line, meaning, token)
            last[token, name] = run[name]
    yield from found.values()


def _winners(group: GroupText, budget: _Budget, *, strict: bool) -> dict[str, int | None]:
    """Return for each pattern the position of the rule that decides where the pattern matches.

    It is None if /robots.txt is the only path that matches.
    """
    ranked = rank(group.rules(), strict=strict)
    patterns = [_without_double_stars(pattern) for _, _, _, pattern in ranked]
    index = PatternIndex(patterns)
    cost = 1 + min(sum("*" in _stem(pattern) for pattern in patterns), _MAX_WILDCARDS)
    first: dict[str, int] = {}
    winners: dict[str, int | None] = {}
    for number, (_, _, position, written) in enumerate(ranked):
        pattern = patterns[number]
        winner = first.setdefault(_stem(pattern), number)
        if winner == number and budget.cost >= 0:
            reserved = pattern_has_reserved_query(pattern)
            budget.cost -= cost * _QUERY_COST if reserved else cost
            winner = _first_that_covers(pattern, number, patterns, index)
        winners[written] = position if winner == number else ranked[winner][2]
        if pattern == f"{ROBOTS_TXT}$":
            winners[written] = None
    return winners


def _first_that_covers(pattern: str, number: int, patterns: list[str], index: PatternIndex) -> int:
    """Return the number of the best pattern that matches each path that a pattern matches.

    It is the pattern's own number if there is no other, or if that is not certain.
    """
    best = number
    for sample in _sample_paths(pattern):
        if pattern_has_reserved_query(pattern):
            winner = _first_that_covers_query(sample, patterns, index)
        else:
            # No pattern matches it only in encoded form: the query has nothing to encode.
            winner = index.first(sample, _MAX_STEPS)
        if not 0 <= winner < number:
            return number
        best = winner
    return best


def _first_that_covers_query(sample: str, patterns: list[str], index: PatternIndex) -> int:
    """Return as `_first_that_covers`, for a pattern that also matches the encoded form of queries.

    -1 if none is certain.
    """
    path = sample.partition("?")[0]
    if _ANY in path:
        return -1
    whole = f"{path}?{_ANY}"
    winner = index.first(whole, _MAX_STEPS)
    if 0 <= winner < len(patterns) and matches(patterns[winner], whole):
        return winner
    encoded = encode_query(sample)
    winner = index.first(encoded, _MAX_STEPS)
    if (
        0 <= winner < len(patterns)
        and pattern_has_reserved_query(patterns[winner])
        and matches(encode_query(patterns[winner]), encoded)
    ):
        return winner
    return -1


def _sample_paths(pattern: str) -> list[str]:
    """Return the paths that stand for all paths that a pattern matches.

    Every path begins with a slash. So a star at the beginning matches nothing, or a slash and more.
    """
    text = pattern[:-1] if pattern[-1] == "$" else _without_double_stars(pattern + "*")
    if text[:1] != "*":
        return [text.replace("*", _ANY)]
    rest = text[1:].replace("*", _ANY)
    samples = [f"/{_ANY}{rest}"]
    return [rest, *samples] if rest[:1] == "/" else samples


def _stem(pattern: str) -> str:
    """Return the shortest pattern that matches the same paths: without stars that match nothing."""
    return pattern.removesuffix("*$").removesuffix("*")


def _without_double_stars(pattern: str) -> str:
    return _STARS.sub("*", pattern) if "**" in pattern else pattern


def _quoted(octets: bytes) -> str:
    return f"'{printable(octets.decode('utf-8', 'replace'))}'"
