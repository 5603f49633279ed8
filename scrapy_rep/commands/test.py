"""``test``: a robots.txt against a file of expectations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..protocol.agents import tokens_of_line
from ..protocol.parser import records
from ..protocol.records import CONTENT_SIGNAL, CONTENT_USAGE
from .context import STANDARD_INPUT
from .exits import CommandError, ExitCode
from .expectations import Expectation, read_expectations
from .explain import MAX_LINE_LENGTH, explain
from .moments import ARCHIVED, add_archive_argument
from .sources import read_local, source_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from .context import Context
    from .policy import Policy
    from .session import Session

DESCRIPTION = (
    "Test a robots.txt against a file of expectations. Each line is 'allow AGENT PATH',\n"
    "'disallow AGENT PATH', 'refuse AGENT USE PATH' or 'grant AGENT USE PATH', such as\n"
    "'disallow * /admin' or 'refuse GPTBot train-ai /art/'. '*' is any crawler without a group of\n"
    "its own. '#' starts a comment."
)
EXAMPLES = (
    ("test expectations.txt --robots robots.txt", "test a file before it is published"),
    ("test expectations.txt --robots example.com", "test the robots.txt of a site"),
    ("test expectations.txt", "test URLs, each with the robots.txt of its site"),
)

VERSION = 1
"""The version of the records. A field may be added without a new one."""

MAX_STATEMENTS = 20
"""Lines about the use of content that a record has."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("expectations", metavar="EXPECTATIONS", help="a file; '-': standard input")
    parser.add_argument(
        "--robots",
        metavar="FILE|URL",
        help="the robots.txt: a file ('-': standard input), a site such as example.com, or "
        f"{ARCHIVED}SITE@TIME for what an archive has; default: that of the site of each URL",
    )
    add_archive_argument(parser)


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    name: str = arguments.expectations
    if name == arguments.robots == STANDARD_INPUT:
        raise CommandError("EXPECTATIONS and --robots cannot both read standard input")
    source = None if arguments.robots is None else source_of(arguments.robots, context)
    if source is not None and source.stored:
        raise CommandError("--robots is a file, a site, or a site in an archive")
    paths = None if source is None else source.origin or ""
    expectations = read_expectations(context.read_file(name), name, paths=paths)
    for warning in dict.fromkeys(each.agent.warning for each in expectations):
        if warning:
            context.output.warn(warning)
    if source is not None and source.is_local:
        policy = read_local(source.given, context)
        return _test(expectations, lambda _: policy, context)
    origins = dict.fromkeys(each.target.origin for each in expectations if each.target.origin)

    async def get(session: Session) -> Mapping[str, Policy]:
        return await session.get_policies(origins)

    policies = context.run(get, keep_bodies=True)
    code = _test(expectations, lambda each: policies.get(each.target.origin or ""), context)
    if len(policies) < len(origins):
        raise KeyboardInterrupt
    return code


def _test(expectations: Sequence[Expectation], policy_of: Any, context: Context) -> int:
    counts: dict[bool | None, int] = {True: 0, False: 0, None: 0}
    output = context.output
    for each in expectations:
        record = record_of(each, policy_of(each), strict=context.settings.strict)
        counts[record["holds"]] += 1
        if output.as_json:
            output.record(record)
        elif not record["holds"]:
            from .expectations_text import failure

            output.print(*failure(record))
    if not output.as_json:
        from .expectations_text import summary

        output.print(summary(counts))
    output.flush()
    if counts[None]:
        return ExitCode.UNKNOWN
    return ExitCode.FOUND if counts[False] else ExitCode.OK


def record_of(expectation: Expectation, policy: Policy | None, *, strict: bool) -> dict[str, Any]:
    """Return the record of an expectation. ``policy`` is None if it is not known."""
    target, agent = expectation.target, expectation.agent
    verdict = None
    if policy is not None and not policy.access.is_unreachable:
        verdict = agent.apply(policy.verdict(target.url, agent.tokens))
    found = explain(target, agent, policy, verdict, strict=strict)
    usage = found["usage"]
    uses: dict[str, bool] = {} if usage is None else usage["evaluated"]
    statements: list[dict[str, Any]] = []
    if expectation.use and policy is not None and verdict is not None:
        lines = _statements(policy, found["group"], strict=strict)
        statements = [line for line, _ in zip(lines, range(MAX_STATEMENTS), strict=False)]
    return {
        "type": "test",
        "version": VERSION,
        "line": expectation.line,
        "expectation": str(expectation),
        "expected": expectation.kind.value,
        "use": expectation.use,
        "holds": expectation.holds(verdict, uses),
        **{
            key: found[key]
            for key in (
                "url",
                "agent",
                "allowed",
                "reason",
                "detail",
                "group",
                "rule",
                "context",
                "usage",
                "robots_txt",
            )
        },
        "statements": statements,
    }


def _statements(policy: Policy, group: str | None, *, strict: bool) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file that state the use of content for a group.

    Without a Content-Signal of its own, those above all groups hold for it.
    """
    token = (group or "").encode()
    found = list(_usage_lines(records(policy.text, strict=strict), token))
    lines = policy.lines
    has_own_signal = any(is_own and field == CONTENT_SIGNAL.field for _, field, is_own in found)
    for number, _, is_own in found:
        if is_own or not has_own_signal:
            text = lines[number - 1][: 4 * MAX_LINE_LENGTH].decode("utf-8", "replace")
            yield {"line": number, "text": text[:MAX_LINE_LENGTH]}


def _usage_lines(
    lines: Iterable[tuple[int, bytes, bytes]], token: bytes
) -> Iterator[tuple[int, bytes, bool]]:
    """Yield number and field of each line about usage, and whether the group has it."""
    naming = started = applies = False
    for number, field, value in lines:
        if field == b"user-agent":
            applies = (applies and naming) or token in tokens_of_line(value)
            naming = started = True
        elif field in (CONTENT_SIGNAL.field, CONTENT_USAGE.field):
            naming = False
            if applies or (not started and field == CONTENT_SIGNAL.field):
                yield number, field, applies
        elif field in (b"allow", b"disallow"):
            naming = False
