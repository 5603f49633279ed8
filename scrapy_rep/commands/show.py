"""``show``: the rules of a site or of a file, as a crawl understands them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..protocol.records import CONTENT_SIGNAL, LICENSE
from .exits import ExitCode
from .groups import GroupList, group_records
from .moments import ARCHIVED, add_archive_argument
from .sources import STORED, get_policies, source_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from .agent_option import Agent
    from .context import Context
    from .policy import Policy
    from .session import Session

DESCRIPTION = (
    "Show a robots.txt as a crawl understands it: groups that name the same crawler merged, "
    "the rules in the order in which they win, delays, sitemaps, usage and licenses."
)
EXAMPLES = (
    ("show example.com", "the robots.txt of a site"),
    ("show robots.txt -a mybot", "what a file says to one crawler"),
    ("show - --json < robots.txt", "a file from standard input, as JSON"),
    (
        "show archive:example.com@2026-03-01 --archive crawl.warc.gz",
        "what a site said on a day, from the archive of a crawl",
    ),
)

VERSION = 1
"""The version of the record. A field may be added without a new one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument(
        "source",
        metavar="ORIGIN|FILE",
        help=f"a site, such as example.com, or a file; '-': standard input; {STORED}SITE: the copy "
        f"in the store of REP_STORE; {ARCHIVED}SITE@TIME: what an archive has",
    )
    parser.add_argument(
        "-a",
        "--agent",
        action="append",
        default=[],
        metavar="AGENT",
        help="show only what applies to this crawler; may be repeated",
    )
    add_archive_argument(parser)


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    agents = context.agents(arguments.agent) if arguments.agent else None
    source = source_of(arguments.source, context)
    if source.origin is None:
        (policy,) = get_policies([source], context)
        return _show(policy, agents, context)
    origin = source.origin

    async def work(session: Session) -> int:
        policy = await session.get_policy(origin)
        if policy is None:
            raise KeyboardInterrupt  # the session closes only after Ctrl-C
        return _show(policy, agents, context)

    return context.run(work, keep_bodies=True)


def _show(policy: Policy, agents: Sequence[Agent] | None, context: Context) -> int:
    record = record_of(policy, agents, strict=context.settings.strict)
    if context.output.as_json:
        context.output.record(record)
    else:
        from .show_text import listing

        context.output.print(*listing(record))
    return ExitCode.UNKNOWN if policy.access.is_unreachable else ExitCode.OK


def record_of(policy: Policy, agents: Sequence[Agent] | None, *, strict: bool) -> dict[str, Any]:
    """Return the record of a robots.txt."""
    robots = policy.robots
    record = {
        "type": "show",
        "version": VERSION,
        "origin": policy.origin,
        "robots_txt": policy.access.as_json(),
        "groups": [],
        "content_signal": [],
        "licenses": [],
        "sitemaps": [],
        "host": None,
        "clean_params": [],
        "noindex": [],
    }
    if robots is not None:
        listed = GroupList.of(policy.text, strict=strict)
        record["groups"] = list(group_records(listed, robots, agents, strict=strict))
        record["content_signal"] = listed.above.values(CONTENT_SIGNAL.field)
        record["licenses"] = listed.above.values(LICENSE.field)
        record["sitemaps"] = list(robots.sitemaps)
        record["host"] = robots.host
        record["clean_params"] = [
            {"parameters": list(row.parameters), "path": row.path} for row in robots.clean_params
        ]
        record["noindex"] = list(robots.noindex)
    return record
