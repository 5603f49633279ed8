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

import click
from msgspec import Struct
from rich.text import Text

from ..protocol.printable import printable
from ..protocol.verdict import Verdict
from ..reports.records import count
from .context import CommandError, Context, exit_code, refuse_if, tool
from .crawlers import Agent, resolve
from .explain import Check, context_lines, explain, reason_text
from .sources import FORMS, Target, read_policies, target_of
from .texts import STYLES, WORDS, Renderables, indented

MAX_EXPECTATIONS = 100_000
"""Lines of a file that are read."""

_COMMENT = re.compile(r"(?:\A|\s)#.*")
_WORD = re.compile(r'"([^"]*)"|(\S+)')


class Test(Struct, kw_only=True, tag_field="type", tag="test"):
    """An expectation, and what the robots.txt says. ``holds`` is null if it is not known."""

    version: int = 1
    line: int
    expectation: str
    holds: bool | None
    check: Check


@tool(
    "Test a robots.txt against a file of expectations. Each line is 'allow AGENT PATH' or "
    "'disallow AGENT PATH', such as 'disallow * /admin'. '*' is any crawler without a group of its "
    "own. '#' starts a comment.",
    ("test expectations.txt --robots robots.txt", "test a file before it is published"),
    ("test expectations.txt --robots example.com", "test the robots.txt of a site"),
    found="an expectation failed",
    unknown="a site is unreachable",
    records=(Test,),
)
@click.argument("name", metavar="EXPECTATIONS")
@click.option("--robots", required=True, metavar="ROBOTS", help=f"{FORMS}.")
def test_tool(context: Context, name: str, robots: str) -> int:
    text = context.read_file(name)
    (policy,) = read_policies([robots], context)
    expectations = read_expectations(text, name, policy.origin or "")
    for warning in filter(None, dict.fromkeys(agent.warning for _, _, agent, _ in expectations)):
        context.warn(warning)
    counts: Counter[bool | None] = Counter()
    for line, kind, agent, target in expectations:
        verdict = None if policy.access.is_unreachable else agent.verdict(policy, target.url)
        record = Test(
            line=line,
            expectation=f"{kind} {agent.name} {target.given}",
            holds=_holds(kind, agent, verdict),
            check=explain(target, agent, policy, verdict),
        )
        counts[record.holds] += 1
        if context.as_json:
            context.record(record)
        elif not record.holds:
            context.print(_failure(record))
    if not context.as_json:
        context.print([_summary(counts)])
    return exit_code(+counts)


def _holds(kind: str, agent: Agent, verdict: Verdict | None) -> bool | None:
    if verdict is None:
        return None
    # A use that no rule grants is not granted.
    is_silent = agent.is_policy_token and verdict.allowed and verdict.rule is None
    return not is_silent and verdict.allowed == (kind == "allow")


def read_expectations(text: bytes, name: str, origin: str) -> list[tuple[int, str, Agent, Target]]:
    """Return line, kind, crawler and URL of expectations. ``origin`` is that of paths, or empty."""
    try:
        lines = text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise CommandError(f"cannot read {name}: it is not UTF-8 text") from None
    found: list[tuple[int, str, Agent, Target]] = []
    for number, line in enumerate(lines, 1):
        pairs = _WORD.findall(_COMMENT.sub("", line))
        words = [quoted or word for quoted, word in pairs if quoted or word]
        if not words:
            continue
        where, kind = f"{name}, line {number}", words[0].lower()
        is_wrong = kind not in ("allow", "disallow") or len(words) != 3
        refuse_if(is_wrong, f"{where}: write 'allow AGENT PATH' or 'disallow AGENT PATH'")
        given = words[2]
        is_path = given.startswith("/") and not given.startswith("//")
        target = target_of(origin + given if is_path else given, in_file=True)
        is_wrong = not target.is_valid or (target.origin is None and not is_path)
        refuse_if(is_wrong, f"{where}: {given!r} is neither a path nor a URL with a robots.txt")
        target = target._replace(given=given)
        found += ((number, kind, agent, target) for agent in resolve([words[1]]))
        is_long = len(found) > MAX_EXPECTATIONS
        refuse_if(is_long, f"{name} has more than {MAX_EXPECTATIONS:,} expectations")
    refuse_if(not found, f"{name} has no expectations")
    return found


def _failure(record: Test) -> Renderables:
    found = record.check
    is_known = record.holds is not None
    text = Text("failed" if is_known else "unknown", style=STYLES[False if is_known else None])
    expectation = printable(record.expectation, 400)
    yield text.append(f"  line {record.line}: {expectation}", style="bold default")
    if not is_known:
        access = found.robots_txt
        yield indented(printable(access.problem if access else ""))
        return
    group = f", for {found.group}" if found.reason == "rules" and found.rule is None else ""
    yield indented(f"{WORDS[found.allowed]}: {reason_text(found)}{group}")
    if found.context:
        yield from map(indented, context_lines(found))


def _summary(counts: Counter[bool | None]) -> Text:
    total = counts.total()
    if counts[True] == total:
        holds = count(total, "expectation holds", "expectations hold")
        return Text(f"{holds}.", style=STYLES[True])
    words = {True: "hold", False: "failed", None: "not known"}
    parts = (f"{counts[key]:,} {text}" for key, text in words.items() if counts[key] or key)
    return Text(f"{count(total, 'expectation')}: {', '.join(parts)}.")
