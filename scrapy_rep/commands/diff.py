"""``diff``: what has changed in the meaning of a robots.txt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .context import STANDARD_INPUT
from .difference import VERSION, Comparison, Side
from .exits import CommandError, ExitCode
from .flips import Flips
from .inputs import add_format_arguments, urls_from
from .moments import ARCHIVED, add_archive_argument
from .sources import STORED, get_policies, source_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from .context import Context
    from .policy import Policy

DESCRIPTION = (
    "Say what differs in meaning between two robots.txt files: rules that gain or lose effect,\n"
    "pace, sitemaps, usage and licenses. The order of groups and rules, comments and spelling\n"
    "make no difference."
)
EXAMPLES = (
    ("diff old.txt new.txt", "compare two files"),
    ("diff example.com robots.txt", "compare a site with a file that will replace its robots.txt"),
    ("diff example.com robots.txt --urls urls.txt", "list the URLs whose verdict differs, too"),
    ("diff old.txt new.txt -a Googlebot -a ai-training", "compare what they say to some crawlers"),
    (
        "diff store:example.com example.com -s REP_STORE=sqlite:///robots.db",
        "compare the copy of a crawl with the site",
    ),
    (
        "diff archive:example.com@2026-03-01 archive:example.com",
        "compare what a site said on a day with what it said last",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    text = (
        f"a file ('-': standard input), a site such as example.com, {STORED}SITE for the copy in "
        f"the store of REP_STORE, or {ARCHIVED}SITE@TIME for what an archive has"
    )
    parser.add_argument("old", metavar="OLD", help=text)
    parser.add_argument("new", metavar="NEW", help="another one, in one of the same forms")
    parser.add_argument(
        "-a",
        "--agent",
        action="append",
        default=[],
        metavar="AGENT",
        help="compare only what applies to this crawler; may be repeated",
    )
    parser.add_argument(
        "--urls",
        metavar="FILE",
        help="list the URLs of a file whose verdict differs; '-': standard input",
    )
    add_format_arguments(parser)
    add_archive_argument(parser)


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    names: list[str] = [arguments.old, arguments.new]
    if [*names, arguments.urls].count(STANDARD_INPUT) > 1:
        raise CommandError("only one argument can be standard input")
    if arguments.urls is None and (arguments.format or arguments.field):
        raise CommandError("--format and --field belong to --urls FILE")
    if arguments.urls not in (None, STANDARD_INPUT) and not Path(arguments.urls).exists():
        raise CommandError(f"cannot read {arguments.urls}: No such file or directory")
    agents = context.agents(arguments.agent) if arguments.agent else None
    policies = get_policies([source_of(name, context) for name in names], context)
    unknown = [policy for policy in policies if policy.access.is_unreachable]
    if unknown:
        for policy in unknown:
            context.output.note(f"{policy.access.url} is unreachable: {policy.access.failure}")
        _write(_record(policies, _UNKNOWN), context)
        return ExitCode.UNKNOWN
    sides = _sides(policies, strict=context.settings.strict)
    comparison = Comparison(*sides, agents)
    record = _record(policies, comparison.record())
    _write(record, context)
    code = {True: ExitCode.OK, False: ExitCode.FOUND, None: ExitCode.UNKNOWN}[record["same"]]
    if arguments.urls is None:
        return code
    origins = frozenset(policy.origin for policy in policies if policy.origin)
    flips = Flips(sides, comparison.changed, origins, context.output)
    _write_flips(flips, arguments, context)
    return ExitCode.UNKNOWN if flips.invalid else code


_UNKNOWN: dict[str, Any] = {
    "same": None,
    "complete": False,
    "severity": None,
    "crawlers": [],
    "crawlers_left_out": 0,
    "file": [],
}


def _sides(policies: Sequence[Policy], *, strict: bool) -> tuple[Side, Side]:
    old, new = policies
    urls = [_url(policy) for policy in policies]
    # The relative URLs of a file are those of the site that it is compared with.
    return (
        Side.of(old, url=urls[0] or urls[1], strict=strict),
        Side.of(new, url=urls[1] or urls[0], strict=strict),
    )


def _url(policy: Policy) -> str | None:
    access = policy.access
    return None if access.source == "file" else access.final_url or access.url


def _record(policies: Sequence[Policy], difference: dict[str, Any]) -> dict[str, Any]:
    old, new = (policy.access.as_json() for policy in policies)
    return {"type": "diff", "version": VERSION, "old": old, "new": new, **difference}


def _write(record: dict[str, Any], context: Context) -> None:
    if context.output.as_json:
        context.output.record(record)
        return
    from .diff_text import listing

    context.output.print(*listing(record))


def _write_flips(flips: Flips, arguments: argparse.Namespace, context: Context) -> None:
    output = context.output
    urls = urls_from(arguments.urls, form=arguments.format, field=arguments.field)
    for flip in flips.find(urls):
        if output.as_json:
            output.record(flip.as_json())
        else:
            from .diff_text import flip_line

            output.console.print(flip_line(flip), soft_wrap=True)
    output.flush()
    differ = "1 verdict differs" if flips.found == 1 else f"{flips.found:,} verdicts differ"
    output.note(f"{flips.urls:,} URL{'s' * (flips.urls != 1)}: {differ}")
