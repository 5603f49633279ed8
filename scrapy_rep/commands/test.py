"""``test``: a robots.txt against a file of expectations.

::

    file        = *( [expectation] [comment] NL )
    expectation = ("allow" / "disallow") WS agent WS target
                / ("grant" / "refuse") WS use [WS agent] WS target
    agent       = "*" / name, or a text in quotation marks     the values of -a
    use         = "train-ai" / "ai-use" / "search" / "ai-train" / "ai-input"
    target      = a path that starts with "/", or a URL
    comment     = "#" at the start of a line or behind white space, and the rest of the line
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import click
from msgspec import Struct
from rich.text import Text

from ..logs import plural
from ..protocol.printable import printable
from ..protocol.usage import REQUIRABLE, TDM, use_of
from ..protocol.verdict import Verdict
from . import sources
from .context import CommandError, Context, exit_code, refuse_if, tool
from .crawlers import ANY_CRAWLER, Agent, resolve
from .explain import Check, Usage, context_lines, explain, reason_text
from .policy import Policy
from .sources import FORMS, Target, read_policies
from .texts import STYLES, WORDS, Renderables, indented

MAX_EXPECTATIONS = 100_000
"""Lines of a file that are read."""

KINDS = {"allow": True, "disallow": False, "grant": True, "refuse": False}
_FORMS = "'allow AGENT PATH'", "'disallow AGENT PATH'", "'grant USE PATH' or 'refuse USE PATH'"
_USES = tuple(use for use in REQUIRABLE if use != TDM)  # which no robots.txt states

_COMMENT = re.compile(r"(?:\A|\s)#.*")
_WORD = re.compile(r'"([^"]*)"|(\S+)')


class Expectation(NamedTuple):
    """A line of the file, for one crawler."""

    line: int
    kind: str
    use: str
    """Empty if it is not about a use."""
    agent: Agent
    target: Target

    def __str__(self) -> str:
        name = "" if self.use and self.agent == ANY_CRAWLER else self.agent.name
        return " ".join(filter(None, (self.kind, self.use, name, self.target.given)))

    def holds(self, verdict: Verdict | None, usage: Usage | None) -> bool | None:
        """Return whether it holds. ``usage`` is what is stated about the use of the URL."""
        if verdict is None:
            return None
        if self.use:
            stated = {} if usage is None else usage.evaluated
            return stated.get(use_of(self.use)) is KINDS[self.kind]
        # A use that no rule grants is not granted.
        is_silent = self.agent.is_policy_token and verdict.allowed and verdict.rule is None
        return not is_silent and verdict.allowed == KINDS[self.kind]


class Test(Struct, kw_only=True, tag_field="type", tag="test"):
    """An expectation, and what the robots.txt says. ``holds`` is null if it is not known."""

    version: int = 1
    line: int
    expectation: str
    holds: bool | None
    check: Check


@tool(
    "Test a robots.txt against a file of expectations. Each line is 'allow AGENT PATH' or "
    "'disallow AGENT PATH', such as 'disallow * /admin', or about a use of the content, such as "
    "'refuse train-ai /art/' or 'grant search /'. '*' is any crawler without a group of its own. "
    "'#' starts a comment.",
    ("test expectations.txt", "test ./robots.txt before it is published"),
    ("test expectations.txt --robots example.com", "test the robots.txt of a site"),
    found="an expectation failed",
    unknown="a site is unreachable",
    records=(Test,),
    reads_sites=True,
)
@click.argument("name", metavar="EXPECTATIONS")
@click.option(
    "--robots",
    metavar="ROBOTS",
    help=f"{FORMS}. Default: ./robots.txt for paths, and for a URL its site.",
)
def test_tool(context: Context, name: str, robots: str | None) -> int:
    text = context.read_file(name)
    given = None if robots is None else read_policies([robots], context)[0]
    origin = None if given is None else given.origin
    expectations = read_expectations(text, name, origin or "")
    policies = _policies(expectations, given, context)
    for warning in filter(None, dict.fromkeys(each.agent.warning for each in expectations)):
        context.warn(warning)
    for each in expectations:
        doubt = each.agent.misspelling(policies[each.target.origin].robots)
        refuse_if(doubt, f"{name}, line {each.line}: {doubt}")
    counts: Counter[bool | None] = Counter()
    for each in expectations:
        agent, url, policy = each.agent, each.target.url, policies[each.target.origin]
        verdict = None if policy.access.is_unreachable else agent.verdict(policy, url)
        check = explain(each.target, agent, policy, verdict)
        holds = each.holds(verdict, check.usage or None)
        record = Test(line=each.line, expectation=str(each), holds=holds, check=check)
        counts[holds] += 1
        if context.as_json:
            context.record(record)
        elif not holds:
            context.print(_failure(record, each.use))
    if not context.as_json:
        context.print([_summary(counts)])
    return exit_code(+counts)


def _policies(
    expectations: Sequence[Expectation], given: Policy | None, context: Context
) -> dict[str | None, Policy]:
    """Return the policies that are tested, by the origins of the expectations; None for paths."""
    origins = list(dict.fromkeys(each.target.origin for each in expectations))
    if given is not None:
        return dict.fromkeys(origins, given)
    names = [origin or sources.robots_txt_here(context) for origin in origins]
    return dict(zip(origins, read_policies(names, context), strict=True))


def read_expectations(text: bytes, name: str, origin: str) -> list[Expectation]:
    """Return the expectations of a file. ``origin`` is that of paths, or empty."""
    try:
        lines = text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise CommandError(f"cannot read {name}: it is not UTF-8 text") from None
    found: list[Expectation] = []
    for number, line in enumerate(lines, 1):
        pairs = _WORD.findall(_COMMENT.sub("", line))
        words = [quoted or word for quoted, word in pairs if quoted or word]
        if words:
            try:
                found += _expectations(number, words, origin)
            except CommandError as error:
                raise CommandError(f"{name}, line {number}: {error}") from None
        is_long = len(found) > MAX_EXPECTATIONS
        refuse_if(is_long, f"{name} has more than {MAX_EXPECTATIONS:,} expectations")
    refuse_if(not found, f"{name} has no expectations")
    return found


def _expectations(number: int, words: Sequence[str], origin: str) -> Iterator[Expectation]:
    """Yield the expectations of the words of a line, one for each crawler."""
    kind, names, given = words[0].lower(), list(words[1:-1]), words[-1]
    use = names.pop(0) if kind in ("grant", "refuse") and names else ""
    is_wrong = kind not in KINDS or len(names) > 1 or not (use or names)
    refuse_if(is_wrong, f"write {', '.join(_FORMS)}")
    refuse_if(use and use not in _USES, f"{use!r} is not a use: write {', '.join(_USES)}")
    lacks_slash = sources.lacks_slash(given)
    refuse_if(lacks_slash, f"{given!r} is neither a path nor a URL: write '/{given}'")
    is_path = sources.is_path(given)
    target = sources.target_of(origin + given if is_path else given, in_file=True)
    is_wrong = not target.is_valid or (target.origin is None and not is_path)
    refuse_if(is_wrong, f"{given!r} is neither a path nor a URL with a robots.txt")
    for agent in resolve(names or [ANY_CRAWLER.name]):
        yield Expectation(number, kind, use, agent, target._replace(given=given))


def _failure(record: Test, use: str) -> Renderables:
    found = record.check
    is_known = record.holds is not None
    text = Text("failed" if is_known else "unknown", style=STYLES[False if is_known else None])
    expectation = printable(record.expectation, 400)
    yield text.append(f"  line {record.line}: {expectation}", style="bold default")
    if not is_known:
        access = found.robots_txt
        yield indented(printable(access.problem if access else ""))
        return
    if use:
        yield indented(str(found.usage or "nothing is stated about any use"))
        return
    group = f", for {found.group}" if found.reason == "rules" and found.rule is None else ""
    yield indented(f"{WORDS[found.allowed]}: {reason_text(found)}{group}")
    if found.context:
        yield from map(indented, context_lines(found))


def _summary(counts: Counter[bool | None]) -> Text:
    total = counts.total()
    if counts[True] == total:
        holds = plural(total, "expectation holds", "expectations hold")
        return Text(f"{holds}.", style=STYLES[True])
    words = {True: "hold", False: "failed", None: "not known"}
    parts = (f"{counts[key]:,} {text}" for key, text in words.items() if counts[key] or key)
    return Text(f"{plural(total, 'expectation')}: {', '.join(parts)}.")
