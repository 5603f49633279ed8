"""What a survey takes from one site: a :class:`Row`, a line of JSON or a row of a Parquet file."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, json

from ..protocol.access import AccessResult
from ..protocol.agents import WILDCARD_AGENT
from ..protocol.lines import SIZE_LIMIT, read
from ..protocol.lint import lint
from ..protocol.parser import list_groups, records
from ..protocol.printable import printable
from ..protocol.records import KNOWN_FIELDS, parse_delay
from ..protocol.robotstxt import other_page
from ..protocol.usage import POLICY_TOKENS, parse_signal_rule, parse_usage_rule
from .records import EMPTY, REDIRECT_LOOP, utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..protocol.verdict import Rule

MAX_NAMES = 5_000
"""Agents of one file that count, and delays, preferences and unknown fields. The most agents that
we have seen in a file are 1,100."""

MAX_TEXT = 100
"""Characters of a name of a file. Invisible ones are escaped."""

MAX_DELAY = 1_000_000
"""Seconds. A longer Crawl-delay is taken for one of this length."""

_KNOWN_FIELDS = frozenset(field.decode() for field in KNOWN_FIELDS)


class Row(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a survey has of one site. Without a file, the numbers are None and the lists empty."""

    site: str
    result: str
    """The state of the robots.txt, such as ``rules``, ``empty`` and ``unavailable``."""
    status: int | None = None
    date: str | None = None
    """The day on which the file was requested, or has changed: ``2026-11-22``."""
    size: int | None = None
    """Bytes."""
    lines: int | None = None
    groups: int | None = None
    agents: int | None = None
    rules: int | None = None
    longest_pattern: int | None = None
    sitemaps: int | None = None
    crawl_delays: list[float] = []
    """Seconds."""
    features: list[str] = []
    """What the file has, such as ``sitemap``."""
    everything: list[str] = []
    """The agents, in lower case, for which the file disallows every path and allows none."""
    something: list[str] = []
    """Those for which rules disallow some paths, or all but some."""
    nothing: list[str] = []
    """Those for which no rule disallows a path."""
    findings: list[str] = []
    """What lint finds, such as ``R404 never-decides``."""
    preferences: list[str] = []
    """Usage preferences, such as ``Content-Signal: ai-train=no``."""
    unknown_fields: list[str] = []


encode = json.Encoder().encode
"""Returns the line of JSON of a row."""


def row_of(
    site: str,
    body: bytes | None,
    status: int | None = None,
    result: str = AccessResult.RULES,
    at: float | None = None,
) -> Row:
    """Return the row of a site, whose content never raises an error.

    ``site`` is the origin, or the name of the file. ``body`` is None if there is no file.
    ``result`` is what the response means, as a value of `AccessResult`. ``at`` is the time of the
    file in seconds since 1970.
    """
    page = None if body is None else other_page(body)
    if page is not None:
        body, result = None, page.value
    state = str(result)
    facts: dict[str, Any] = {}
    if body is not None:
        facts = _facts(body)
        if result == AccessResult.RULES and not body.strip(b"\xef\xbb\xbf \t\r\n"):
            state = EMPTY
    elif result == AccessResult.UNAVAILABLE and status is None:
        state = REDIRECT_LOOP
    date = None
    with suppress(
        ValueError, OverflowError, OSError
    ):  # a tar file may have any time, and 0 for none
        date = None if not at else f"{utc(at):%Y-%m-%d}"
    return Row(site=printable(site), result=state, status=status, date=date, **facts)


def _facts(body: bytes) -> dict[str, Any]:
    """Return the columns of a file."""
    text = read(body)
    groups = list_groups(text, strict=False)
    rules = [rule for group in groups for rule in group.rules]
    summaries: dict[str, _Rules] = {}
    for group in groups:
        summary = _Rules.of(group.rules)
        for agent in group.agents:
            if agent in summaries or len(summaries) < MAX_NAMES:
                summaries[agent] = summaries.get(agent, summary) | summary
    extents: dict[str, list[str]] = {"everything": [], "something": [], "nothing": []}
    for agent, summary in summaries.items():
        extents[summary.extent].append(printable(agent, MAX_TEXT))
    fields = [
        (name.decode("utf-8", "replace"), value) for _, name, value in records(text, strict=False)
    ]
    known = [field for field in fields if field[0] in _KNOWN_FIELDS and field[1]]
    is_page = not known and text.lstrip().startswith(b"<")
    # Of a page, these are parts in front of a colon.
    unknown = () if is_page else (name for name, _ in fields if name not in _KNOWN_FIELDS)
    delays = (parse_delay(value) for name, value in known if name == "crawl-delay")
    findings = {f"{each.code.code} {each.code.short_name}" for each in lint(body)}
    everyone = summaries.get(WILDCARD_AGENT)
    features = {
        "group for *": everyone is not None,
        f"{everyone and everyone.extent} disallowed for *": everyone is not None,
        "group for a named agent": bool(summaries.keys() - {WILDCARD_AGENT}),
        "no group": not groups,
        "pattern with *": any("*" in rule.pattern for rule in rules),
        "pattern that ends in $": any(rule.pattern.endswith("$") for rule in rules),
        "findings of lint": bool(findings),
        "nothing but white space": not text.strip(),
        "page of HTML": is_page,
        "more than 500 KiB": len(body) > SIZE_LIMIT,
    }
    return {
        "size": len(body),
        "lines": text.count(b"\n") if text.strip() else 0,
        "groups": len(groups),
        "agents": len(summaries),
        "rules": len(rules),
        "longest_pattern": max((len(rule.pattern) for rule in rules), default=0),
        "sitemaps": sum(name == "sitemap" for name, _ in known),
        "crawl_delays": [
            min(delay, MAX_DELAY) for delay in islice(delays, MAX_NAMES) if delay is not None
        ],
        "features": sorted(
            {name for name, _ in known if name != "user-agent"}
            | {name for name, holds in features.items() if holds}
        ),
        **extents,
        "findings": sorted(findings),
        "preferences": _names(
            [
                *_preferences(known),
                *(
                    f"{token}: {summaries[token].extent} disallowed"
                    for token in POLICY_TOKENS
                    if token in summaries
                ),
            ]
        ),
        "unknown_fields": _names(unknown),
    }


def _names(texts: Iterable[str]) -> list[str]:
    return sorted({printable(text, MAX_TEXT) for text in islice(dict.fromkeys(texts), MAX_NAMES)})


def _preferences(known: Iterable[tuple[str, bytes]]) -> Iterator[str]:
    for name, value in known:
        stated: Iterable[tuple[str, bool | str]] = ()
        words = ("no", "yes")
        if name == "content-signal" and (rule := parse_signal_rule(value)) is not None:
            stated = rule[1].items()
        elif name == "content-usage":
            stated, words = parse_usage_rule(value)[1].items(), ("n", "y")
        for label, meaning in stated:
            text = meaning if isinstance(meaning, str) else words[meaning]
            yield f"{name.title()}: {label}={text}"


class _Rules(NamedTuple):
    """A summary of rules. The lengths are those of patterns that match every path."""

    disallow_all: int
    allow_all: int
    disallows_some: bool
    allows_some: bool

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> _Rules:
        lengths = [
            (rule.allow, len(rule.pattern) if rule.pattern.rstrip("*") in ("", "/") else 0)
            for rule in rules
        ]
        disallowed = [length for allow, length in lengths if not allow]
        allowed = [length for allow, length in lengths if allow]
        most = max(disallowed, default=0), max(allowed, default=0)
        return cls(*most, 0 in disallowed, 0 in allowed)

    def __or__(self, other: _Rules) -> _Rules:
        return _Rules(*map(max, self, other))  # type: ignore[arg-type]

    @property
    def extent(self) -> str:
        # RFC 9309 §2.2.2: the longer pattern wins, and allow if both have the same length.
        if self.disallow_all > self.allow_all:
            return "something" if self.allows_some or self.allow_all else "everything"
        return "something" if self.disallows_some else "nothing"
