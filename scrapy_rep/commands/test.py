"""``test``: a robots.txt against a file of expectations.

::

    file        = *( [expectation] [comment] NL )
    expectation = ("allow" / "disallow") WS agent WS target
    agent       = "*" / name, or a text in quotation marks     the values of -a
    target      = a path that starts with "/", or a URL
    comment     = "#" at the start of a line or behind white space, and the rest of the line
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import click
from msgspec import Struct
from rich.text import Text

from ..protocol.printable import printable
from .context import Context, tool
from .crawlers import Agent, resolve
from .explain import Check, context_lines, explain, reason_text
from .output import CommandError, exit_code
from .sources import FORMS, Target, read_policies, target_of
from .texts import STYLES, WORDS, indented, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from .sources import Policy

MAX_EXPECTATIONS = 100_000
"""Lines of a file that are read."""

KINDS = ("allow", "disallow")

_COMMENT = re.compile(r"(?:\A|\s)#.*")
_WORD = re.compile(r'"([^"]*)"|(\S+)')


class Test(Struct, kw_only=True, tag_field="type", tag="test"):
    """An expectation, and what the robots.txt says. ``holds`` is null if it is not known."""

    version: int = 1
    line: int
    expectation: str
    expected: str
    holds: bool | None
    check: Check


class Expectation(NamedTuple):
    """One expectation for one crawler."""

    line: int
    kind: str
    agent: Agent
    target: Target

    def __str__(self) -> str:
        return f"{self.kind} {self.agent.name} {self.target.given}"


@tool(
    "Test a robots.txt against a file of expectations. Each line is 'allow AGENT PATH' or "
    "'disallow AGENT PATH', such as 'disallow * /admin'. '*' is any crawler without a group of its "
    "own. '#' starts a comment.",
    ("test expectations.txt --robots robots.txt", "test a file before it is published"),
    ("test expectations.txt --robots example.com", "test the robots.txt of a site"),
    ("test expectations.txt", "test URLs, each with the robots.txt of its site"),
    records=(Test,),
)
@click.argument("name", metavar="EXPECTATIONS")
@click.option("--robots", metavar="ROBOTS", help=f"{FORMS}. Default: that of the site of each URL.")
def test_tool(context: Context, name: str, robots: str | None) -> int:
    """Test expectations."""
    policy = None if robots is None else read_policies([robots], context)[0]
    paths = None if policy is None else policy.origin or ""
    expectations = read_expectations(context.read_file(name), name, paths=paths)
    for warning in dict.fromkeys(each.agent.warning for each in expectations):
        if warning:
            context.output.warn(warning)
    if policy is not None:
        return _test(expectations, context, {}, policy)
    origins = dict.fromkeys(each.target.origin for each in expectations if each.target.origin)

    return context.run(lambda session: _test(expectations, context, session.policies(origins)))


def _test(
    expectations: Sequence[Expectation],
    context: Context,
    policies: dict[str, Policy],
    policy: Policy | None = None,
) -> int:
    counts: Counter[bool | None] = Counter()
    for each in expectations:
        record = record_of(each, policy or policies.get(each.target.origin or ""))
        counts[record.holds] += 1
        if context.output.as_json:
            context.output.record(record)
        elif not record.holds:
            context.output.print(_failure(record))
    if not context.output.as_json:
        context.output.print([_summary(counts)])
    return exit_code(+counts)


def record_of(expectation: Expectation, policy: Policy | None) -> Test:
    """Return the record of an expectation. ``policy`` is None if it is not known."""
    target, agent = expectation.target, expectation.agent
    verdict = None
    if policy is not None and not policy.access.is_unreachable:
        verdict = agent.verdict(policy, target.url)
    found = explain(target, agent, policy, verdict)
    return Test(
        line=expectation.line,
        expectation=str(expectation),
        expected=expectation.kind,
        holds=None if found.allowed is None else found.allowed == (expectation.kind == "allow"),
        check=found,
    )


def read_expectations(text: bytes, name: str, *, paths: str | None) -> list[Expectation]:
    """Return the expectations of a file, at least one.

    ``paths``: the origin that paths belong to; empty for a robots.txt file; None if a path is not
    enough. Raises :class:`CommandError` for an unreadable line, with its number.
    """
    try:
        lines = text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise CommandError(f"cannot read {name}: it is not UTF-8 text") from None
    found: list[Expectation] = []
    for number, line in enumerate(lines, 1):
        try:
            found += _read_line(number, line, paths)
        except ValueError as error:
            raise CommandError(f"{name}, line {number}: {error}") from None
        if len(found) > MAX_EXPECTATIONS:
            raise CommandError(f"{name} has more than {MAX_EXPECTATIONS:,} expectations")
    if not found:
        raise CommandError(f"{name} has no expectations")
    return found


def _read_line(number: int, line: str, paths: str | None) -> Iterator[Expectation]:
    words = [
        quoted or word for quoted, word in _WORD.findall(_COMMENT.sub("", line)) if quoted or word
    ]
    if not words:
        return
    kind = words[0].lower()
    if kind not in KINDS:
        raise ValueError(f"{words[0]!r} is not one of {', '.join(KINDS)}")
    if len(words) != 3:
        raise ValueError(f"write '{kind} AGENT PATH'")
    target = _target(words[2], paths)
    for agent in resolve([words[1]]):
        yield Expectation(number, kind, agent, target)


def _target(given: str, paths: str | None) -> Target:
    is_path = given.startswith("/") and not given.startswith("//")
    if is_path and paths is None:
        raise ValueError(f"{given} is a path: name the robots.txt with --robots, or write a URL")
    if is_path and paths:
        return target_of(paths + given)._replace(given=given)
    target = target_of(given, in_file=True)
    if not target.is_valid or (target.origin is None and not is_path):
        raise ValueError(f"{given!r} is neither a path nor a URL with a robots.txt")
    return target


def _failure(record: Test) -> Iterator[RenderableType]:
    """Yield the text of an expectation that does not hold."""
    found = record.check
    is_known = record.holds is not None
    text = Text("failed" if is_known else "unknown", style=STYLES[False if is_known else None])
    expectation = printable(record.expectation, 400)
    yield text.append(f"  line {record.line}: {expectation}", style="bold default")
    if not is_known:
        access = found.robots_txt
        yield indented(printable(access.problem if access else "the robots.txt is not known"))
        return
    group = f", for {found.group}" if found.reason == "rules" and found.rule is None else ""
    yield indented(f"{WORDS[found.allowed]}: {reason_text(found)}{group}")
    if found.context:
        yield from map(indented, context_lines(found))


def _summary(counts: Counter[bool | None]) -> Text:
    """Return the last line of the text."""
    total = counts.total()
    if counts[True] == total:
        holds = "expectation holds" if total == 1 else "expectations hold"
        return Text(f"{total:,} {holds}.", style=STYLES[True])
    words = {True: "hold", False: "failed", None: "not known"}
    parts = (f"{counts[key]:,} {text}" for key, text in words.items() if counts[key] or key)
    return Text(f"{quantity(total, 'expectation')}: {', '.join(parts)}.")
