"""``lint``: lines that do not do what they seem to, and their corrections."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_write import write_atomically
from ..protocol.lint import lint
from ..protocol.lint_codes import Code, Severity, chosen_codes, codes_of
from ..protocol.lint_fix import fix
from ..protocol.lint_formats import to_github, to_json, to_sarif, to_text
from ..protocol.lint_pages import hidden_noindex
from .context import STANDARD_INPUT
from .exits import CommandError, ExitCode
from .moments import ARCHIVED, add_archive_argument
from .output import writing
from .page_inputs import pages_from
from .sources import names_file, read_local
from .targets import target_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..protocol.lint_findings import Finding
    from .context import Context
    from .policy import Policy
    from .session import Session
    from .targets import Target

DESCRIPTION = (
    "Report lines of a robots.txt that do not do what they seem to, or that other crawlers\n"
    "read otherwise. docs/reference/lint.md explains each code, such as R202 or missing-colon."
)
EXAMPLES = (
    ("lint robots.txt", "a file"),
    ("lint robots.txt --fix", "correct the findings that have one safe correction"),
    ("lint example.com --ignore R206,R3", "the robots.txt of a site, without these findings"),
    ("lint robots.txt --format github", "annotate the lines of a pull request"),
    ("lint robots.txt --pages pages.csv", "pages whose noindex a disallow hides, too"),
)

FORMATS = ("text", "json", "github", "sarif")


class _Format(argparse.Action):
    """Keeps the format, and marks formats for programs as ``--json`` does."""

    def __call__(self, _parser: Any, namespace: Any, values: Any, _option: Any = None) -> None:
        namespace.format = values
        namespace.json = values != "text"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument(
        "source",
        nargs="+",
        metavar="FILE|URL",
        help="a file, '-' for standard input, a site, such as https://example.com, or "
        f"{ARCHIVED}SITE@TIME for what an archive has",
    )
    parser.add_argument("--format", choices=FORMATS, action=_Format, help="default: text")
    for option, help_text in (
        ("--select", "report only these findings: codes, beginnings of codes, or names"),
        ("--ignore", "leave out these findings"),
    ):
        parser.add_argument(
            option, action="append", default=[], metavar="CODE[,CODE…]", help=help_text
        )
    parser.add_argument(
        "--strict", action="store_true", help="read as with REP_STRICT: mistakes are errors"
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="correct the files; standard input is written to standard output",
    )
    parser.add_argument(
        "--pages",
        metavar="FILE",
        help="CSV or JSON Lines with a URL and its robots directives for each page",
    )
    parser.add_argument(
        "-a",
        "--agent",
        default="*",
        metavar="AGENT",
        help="the crawler for which --pages are compared; default: all others",
    )
    add_archive_argument(parser)


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    select, ignore = _codes(arguments.select), _codes(arguments.ignore)
    names: list[str] = arguments.source
    if arguments.pages and len(names) > 1:
        raise CommandError("--pages takes one FILE or URL")
    if arguments.agent != "*" and not arguments.pages:
        raise CommandError("-a belongs to --pages FILE")
    strict = arguments.strict or context.settings.strict
    found: list[tuple[str, Finding]] = []
    unknown = False
    for name, body in _bodies(names, context, fixing=arguments.fix):
        if body is None:
            unknown = True
            continue
        if arguments.fix:
            body = _fix(name, body, select, ignore, context)
        findings = lint(body, strict=strict, select=select, ignore=ignore)
        if arguments.pages:
            findings += _hidden(body, arguments, select, ignore, context, strict=strict)
        found += [(name, one) for one in sorted(findings, key=lambda one: one.line)]
    if not (arguments.fix and STANDARD_INPUT in names):
        _write(found, arguments.format or ("json" if arguments.json else "text"), context)
    if unknown:
        return ExitCode.UNKNOWN
    matters = any(finding.severity is not Severity.INFO for _, finding in found)
    return ExitCode.FOUND if matters else ExitCode.OK


def _codes(options: Sequence[str]) -> list[str]:
    names = [name for option in options for name in option.split(",")]
    try:
        codes_of(names)
    except ValueError as error:
        raise CommandError(str(error)) from None
    return names


def _bodies(
    names: Sequence[str], context: Context, *, fixing: bool
) -> Iterator[tuple[str, bytes | None]]:
    """Yield each name with its robots.txt; None if a site does not answer."""
    archived = [name for name in names if name.startswith(ARCHIVED) and not _is_file(name)]
    if fixing and archived:
        raise CommandError(f"--fix corrects files, and {archived[0]} is none")
    targets = {
        name: target_of(name) for name in names if name not in archived and not _is_file(name)
    }
    for name, target in targets.items():
        if target.origin is None:
            raise CommandError(f"{name} is neither a file nor a site")
        if fixing:
            raise CommandError(f"--fix corrects files, and {name} is none")
        if target.has_default_scheme:
            context.output.note(f"{name} is no file: it is taken for {target.url}")
    policies = _fetch(targets, context)
    for name in names:
        if name in policies:
            policy = policies[name]
            yield policy.access.url, _body_of(policy, context)
        elif name in archived:
            yield name, _body_of(read_local(name, context), context)
        else:
            yield name, context.read_file(name)


def _is_file(name: str) -> bool:
    """Return whether a name stands for a file. ``robots.txt`` does, even if it is missing."""
    return name == STANDARD_INPUT or Path(name).exists() or names_file(name)


def _fetch(targets: dict[str, Target], context: Context) -> dict[str, Policy]:
    if not targets:
        return {}

    async def get(session: Session) -> dict[str, Policy | None]:
        return {
            name: await session.get_policy(target.origin)
            for name, target in targets.items()
            if target.origin is not None
        }

    policies = context.run(get, keep_bodies=True)
    found = {name: policy for name, policy in policies.items() if policy is not None}
    if len(found) < len(targets):
        raise KeyboardInterrupt
    return found


def _body_of(policy: Policy, context: Context) -> bytes | None:
    access = policy.access
    if access.is_unreachable:
        context.output.warn(f"{access.url} is unreachable: {access.failure or access.status}")
        return None
    if policy.robots is None:
        context.output.note(f"{access.url} does not exist: status {access.status}")
        return b""
    return policy.text[1:] if policy.body is None else policy.body


def _fix(
    name: str, body: bytes, select: Sequence[str], ignore: Sequence[str], context: Context
) -> bytes:
    fixed = fix(body, [code.code for code in chosen_codes(select, ignore)])
    if name == STANDARD_INPUT:
        with writing():
            sys.stdout.buffer.write(fixed)
    elif fixed != body:
        try:
            write_atomically(Path(name), fixed)
        except OSError as error:
            raise CommandError(f"cannot write {name}: {error.strerror or error}") from None
        context.output.note(f"{name} is corrected")
    return fixed


def _hidden(
    body: bytes,
    arguments: argparse.Namespace,
    select: Sequence[str],
    ignore: Sequence[str],
    context: Context,
    *,
    strict: bool,
) -> list[Finding]:
    if Code.HIDDEN_NOINDEX not in chosen_codes(select, ignore):
        return []
    agents = [] if arguments.agent == "*" else context.agents([arguments.agent])
    if len(agents) > 1:
        raise CommandError(f"-a takes one crawler, and {arguments.agent} stands for {len(agents)}")
    tokens = agents[0].tokens if agents else ()
    pages = pages_from(arguments.pages, context.output)
    return hidden_noindex(body, pages, user_agent=tokens, strict=strict)


def _write(found: list[tuple[str, Finding]], form: str, context: Context) -> None:
    output = context.output
    match form:
        case "json" | "github":
            for line in (to_json if form == "json" else to_github)(found):
                output.write(line + "\n")
        case "sarif":
            from .. import __version__

            output.write(to_sarif(found, version=__version__) + "\n")
        case _ if sys.stdout.isatty():
            from .lint_text import print_findings

            print_findings(found, output)
        case _:
            for line in to_text(found):
                output.write(line + "\n")
    if form == "text" and found:
        fixable = sum(finding.is_fixable for _, finding in found)
        number = "1 finding" if len(found) == 1 else f"{len(found):,} findings"
        output.flush()
        output.note(f"{number}; --fix corrects {fixable:,}" if fixable else number)
