"""What a robots.txt says of one URL to one crawler, with all reasons: as a record and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from rich.text import Text

from ..protocol.matcher import Steps, matches, rank
from ..protocol.pacing import describe
from ..protocol.parser import agent_lines
from ..protocol.paths import path_of
from ..protocol.printable import printable
from ..protocol.refusals import line_text, refusing_line
from ..protocol.robotstxt import RobotsTxt
from ..protocol.usage import Signals, evaluated, policy_statements, refused
from ..protocol.verdict import NO_MATCH, Reason, Verdict
from ..protocol.verdict import Rule as ProtocolRule
from ..reports.answers import REASONS
from .crawlers import Agent
from .policy import Access, Policy, access_rows
from .sources import Target
from .texts import STYLES, Renderables, Row, listed, named_values, shown, word

CONTEXT_LINES = 2
"""Lines before and after the deciding rule that are shown."""

MAX_OTHER_RULES, MAX_SHOWN_RULES = 1000, 10
"""Other rules that match and are listed, and those that are shown as text. The rest is counted."""

MAX_URL = 2000
"""Characters of a URL that are shown in a text."""


class Rule(Struct, kw_only=True):
    """A rule of a robots.txt."""

    line: int
    allow: bool
    pattern: str

    def __str__(self) -> str:
        return str(ProtocolRule(self.allow, self.pattern, self.line))


class Usage(Struct):
    """What follows for the use of a URL's content, and the statements from which it does."""

    evaluated: dict[str, bool]
    stated: tuple[str, ...]

    def __str__(self) -> str:
        words = {True: "granted", False: "refused"}
        parts = [f"{name}: {words[value]}" for name, value in self.evaluated.items()]
        return "; ".join([*parts, *map(printable, self.stated)])


class Answer(Struct, kw_only=True):
    """An answer. ``allowed`` is null if it is not known."""

    allowed: bool | None = None
    reason: str = "unknown"
    detail: str | None = None
    group: str | None = None
    rule: Rule | None = None

    def judge(self, verdict: Verdict) -> None:
        self.allowed, self.reason, self.detail = verdict[0], verdict.reason.value, verdict.detail
        self.group = verdict.agent
        self.rule = verdict.rule and Rule(**verdict.rule._asdict())


class Check(Answer, kw_only=True, tag_field="type", tag="check"):
    """The answer for a URL and a crawler. Many URLs have only the fields up to ``rule``.

    ``group_lines``: the user-agent lines of the group. ``context``: the lines around the rule,
    which is marked. ``refused`` and ``since`` are those of ``--only``: each refused use with the
    line, and since when the page may not be fetched or used.
    """

    version: int = 1
    url: str
    agent: str
    group_lines: list[int] | UnsetType = UNSET
    context: list[str] | UnsetType = UNSET
    other_rules: list[Rule] | UnsetType = UNSET
    other_rules_left_out: int | UnsetType = UNSET
    pace: str | UnsetType = UNSET
    usage: Usage | UnsetType | None = UNSET
    licenses: tuple[str, ...] | UnsetType = UNSET
    robots_txt: Access | UnsetType | None = UNSET
    refused: list[str] | UnsetType = UNSET
    since: datetime | UnsetType | None = UNSET


def brief(target: Target, agent: Agent, verdict: Verdict | None) -> Check:
    """Return the record of one verdict without its reasons. None: it is not known."""
    record = Check(url=target.url, agent=agent.name)
    if verdict is not None:
        record.judge(verdict)
    elif not target.is_valid:
        record.reason = "invalid-url"
    return record


def explain(target: Target, agent: Agent, policy: Policy | None, verdict: Verdict | None) -> Check:
    """Return the record of one verdict with all its reasons. ``policy``: None if not known."""
    record = brief(target, agent, verdict)
    record.context, record.group_lines = [], []
    record.other_rules, record.other_rules_left_out = [], 0
    record.pace, record.usage, record.licenses = "", None, ()
    record.robots_txt = None if policy is None else policy.access
    if policy is None or policy.robots is None or verdict is None:
        return record
    robots, group = policy.robots, agent.group(policy.robots)
    record.licenses = robots.licenses
    # The verdict of a local rule names no group.
    record.group = group if verdict.reason is not Reason.LOCAL_RULE else None
    record.group_lines = lines_of_group(policy.text, record.group or "")
    line = None if verdict.rule is None or group is None else verdict.rule.line
    if line is not None:
        record.context = _context(policy.text, line)
    tokens = agent.tokens_in(robots)
    if agent.is_policy_token:
        record.usage = _usage_of(robots, target.url, ())
    if tokens is None:
        return record
    record.pace = describe(robots, tokens)
    record.usage = _usage_of(robots, target.url, tokens)
    if group is not None:
        matched = robots.matches(record.url, tokens)
        others = [Rule(**rule._asdict()) for rule in matched if rule.line != line]
        record.other_rules = others[:MAX_OTHER_RULES]
        record.other_rules_left_out = len(others[MAX_OTHER_RULES:])
    return record


def refusals(policy: Policy, agent: Agent, url: str, uses: Sequence[str]) -> list[str]:
    """Return which of some uses, or of all, are refused for a URL, each with the line that does."""
    robots = policy.robots
    tokens = None if robots is None else agent.tokens_in(robots)
    if robots is None or tokens is None or (usage := _usage_of(robots, url, tokens)) is None:
        return []
    names = refused(uses or tuple(usage.evaluated), usage.evaluated)
    find = partial(refusing_line, robots, policy.text, url, agent.group(robots))
    return [f"{name}: {line}" if (line := find(name)) else name for name in names]


def _usage_of(robots: RobotsTxt, url: str, tokens: tuple[str, ...]) -> Usage | None:
    if not robots.has_usage:
        return None
    signals, usage = robots.content_signals(url, tokens), robots.content_usage(url, tokens)
    named: list[tuple[str, Signals]] = [("Content-Signal", signals), ("Content-Usage", usage)]
    stated = [(f"{name}: {stated_text(values)}", values) for name, values in named if values]
    stated += policy_statements(robots.usage_policies(url))
    if not stated:
        return None
    return Usage(evaluated(values for _, values in stated), tuple(text for text, _ in stated))


def stated_text(values: Mapping[str, bool | str]) -> str:
    """Return statements about use as text, such as ``ai-train=no, use=reference``."""
    words: dict[bool | str, str] = {True: "yes", False: "no"}
    return printable(", ".join(f"{key}={words.get(value, value)}" for key, value in values.items()))


def lines_of_group(text: bytes, token: str) -> list[int]:
    """Return the numbers of the first user-agent lines of the groups of a token."""
    groups = agent_lines(text).get(token.encode(), [])
    return list(islice(chain.from_iterable(groups), MAX_OTHER_RULES))


def lines_text(lines: Sequence[int]) -> str:
    """Return numbers of lines as text; "" for less than two."""
    *first, last = shown(list(map(str, lines)), MAX_SHOWN_RULES) or [""]
    return f"lines {', '.join(first)} and {last.removeprefix('and ')}" if first else ""


def _context(text: bytes, line: int) -> list[str]:
    """Return the lines of a file around one of them, which is marked."""
    lines = text[1:].removesuffix(b"\n").split(b"\n")
    first = max(line - CONTEXT_LINES, 1)
    shown = dict(enumerate(lines[first - 1 : line + CONTEXT_LINES], first))
    width = len(str(max(shown, default=0)))
    return [
        f"{'>' if number == line else ' '} {number:>{width}} {line_text(each)}"
        for number, each in shown.items()
    ]


_TEXTS = {
    **REASONS,
    Reason.RULES: NO_MATCH,
    # The reasons that no verdict has.
    "invalid-url": "this is not a URL",
    "unknown": "its robots.txt was not fetched",
}


def reason_text(answer: Answer) -> str:
    """Return the reason of an answer in a few words."""
    detail = printable(answer.detail) if answer.detail else ""
    if answer.rule is not None and answer.reason != Reason.LOCAL_RULE:
        parts = (str(answer.rule), f"for {printable(answer.group or '')}", detail)
        return ", ".join(filter(None, parts))
    if answer.reason == Reason.NO_RULES and detail:
        return detail
    text = _TEXTS[answer.reason]
    return f"{text}: {detail}" if detail else text


def explanation(record: Check) -> Renderables:
    text = word(record.allowed)
    text.stylize("bold")
    yield text.append(f"  {printable(record.url, MAX_URL)}", style="not bold default")
    if record.context:
        yield Text()
        yield from context_lines(record)
    yield Text()
    yield named_values(_rows(record))


def context_lines(record: Any) -> Iterator[Text]:
    for line in record.context:
        style = f"bold {STYLES[record.rule.allow]}" if line.startswith(">") else ""
        yield Text(printable(line, 170), style=style)


def _how_it_wins(record: Any) -> str:
    """Return why a rule decides: alone, as the longest, or as an Allow or the first of equals."""
    if not record.other_rules:
        return "is the only rule that matches"
    rule, other = record.rule, record.other_rules[0]
    if _length(rule, record.url) != _length(other, record.url):
        return "is the longest rule that matches"
    if rule.allow != other.allow:
        return "wins over an equally long rule, as an Allow does"
    return "is the first of the longest rules that match"


def _length(rule: Rule, url: str) -> int:
    """Return the length of a rule for precedence, or of its folder if it names an index page."""
    ranked = rank([(rule.allow, rule.pattern.encode(), rule.line)], strict=False)
    path = path_of(url)
    steps = Steps.of(path)
    return next((length for length, _, _, pattern in ranked if matches(pattern, path, steps)), 0)


def _rows(record: Any) -> Iterator[Row]:
    rule, others = record.rule, list(map(str, record.other_rules))
    why = reason_text(record)
    if rule is not None and record.reason == "rules" and not record.detail:
        why = f"{rule} {_how_it_wins(record)}"
    yield "Why", why
    group = f"by the group for {printable(record.group)}" if record.group else "no group applies"
    yield "Crawler", f"{printable(record.agent)}, {group}"
    if lines := lines_text(record.group_lines):
        yield "Group", lines
    yield from listed("Also matches", others, MAX_SHOWN_RULES, record.other_rules_left_out)
    if record.pace:
        yield "Pace", record.pace
    if record.usage:
        yield "Usage", str(record.usage)
    yield from listed("License", record.licenses, 3)
    if record.robots_txt:
        yield from access_rows(record.robots_txt)
