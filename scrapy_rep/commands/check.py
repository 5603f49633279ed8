"""``check``: whether crawlers may fetch URLs, and why."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from . import check_output
from .context import run_without_network
from .exits import CommandError
from .inputs import add_format_arguments, urls_from
from .moments import ARCHIVED, add_archive_argument
from .sources import names_file, read_local
from .verdicts import OneFile, Tally, answer_all

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from .agent_option import Agent
    from .context import Context
    from .verdicts import PolicySource

DESCRIPTION = (
    "Say whether crawlers may fetch URLs, and why: the robots.txt and how it was had, the group, "
    "the rule that decides, and the other rules that match. Several URLs are shown as a table, "
    "several crawlers as a table of URLs and crawlers."
)
EXAMPLES = (
    ("check https://example.com/a -a mybot", "may mybot fetch it?"),
    ("check https://example.com/a -a mybot -a Googlebot", "and may Googlebot?"),
    ("check --robots robots.txt /a /b", "check paths against a file, without the network"),
    ("check --from urls.txt --json > verdicts.jsonl", "check many URLs"),
    ("check --from sitemap.xml.gz -a mybot", "check the URLs of a sitemap"),
)

MAX_IN_TABLE, MAX_TABLE_LENGTH = 100, 1_000_000
"""URLs up to which there is a table, and their characters. More are written as lines."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("urls", nargs="*", metavar="URL", help="a URL; https:// may be left out")
    parser.add_argument(
        "-a",
        "--agent",
        action="append",
        default=[],
        metavar="AGENT",
        help="a product token, a User-Agent header or the name of a known crawler; may be "
        "repeated; default: ROBOTSTXT_USER_AGENT or USER_AGENT of the settings",
    )
    parser.add_argument(
        "--robots",
        metavar="FILE",
        help="use this robots.txt for every URL; '-': standard input; "
        f"{ARCHIVED}SITE@TIME: what an archive has",
    )
    parser.add_argument(
        "--from", dest="source", metavar="FILE", help="read URLs from a file; '-': standard input"
    )
    add_format_arguments(parser)
    add_archive_argument(parser)


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    if not arguments.urls and arguments.source is None:
        raise CommandError("give URLs, or a file with URLs: --from FILE")
    if arguments.robots == arguments.source == "-":
        raise CommandError("--robots and --from cannot both read standard input")
    if arguments.source is None and (arguments.format or arguments.field):
        raise CommandError("--format and --field belong to --from FILE")
    for name in arguments.urls:
        if names_file(name) and not name.startswith("/") and Path(name).is_file():
            raise CommandError(
                f"{name} is a file: --robots FILE uses it as a robots.txt, --from FILE reads URLs"
            )
    agents = context.agents(arguments.agent)
    urls: Iterator[str] = iter(arguments.urls)
    if arguments.source is not None:
        urls = chain(
            urls, urls_from(arguments.source, form=arguments.format, field=arguments.field)
        )
    # What is in the arguments is explained. What is in a file may be long.
    is_detailed = arguments.source is None
    work = _Work(context, agents, urls, is_detailed=is_detailed)
    if arguments.robots is not None:
        policy = read_local(arguments.robots, context)
        return run_without_network(work.run(OneFile(policy)))
    return context.run(work.run, keep_bodies=is_detailed)


class _Work:
    """The work of one run, which needs the policies."""

    def __init__(
        self,
        context: Context,
        agents: Sequence[Agent],
        urls: Iterator[str],
        *,
        is_detailed: bool,
    ) -> None:
        self._context = context
        self._agents = agents
        self._urls = urls
        self._is_detailed = is_detailed

    async def run(self, source: PolicySource) -> int:
        output, tally = self._context.output, Tally()
        writer = self._writer(source, tally)
        batches = answer_all(self._urls, self._agents, source, output, tally)
        number = 0
        try:
            with nullcontext(_ignore) if self._shows_lines else output.progress("URLs") as progress:
                async for batch in batches:
                    writer.write(batch)
                    output.flush()
                    number += len(batch)
                    progress(number)
        finally:
            writer.finish()
        if not number:
            output.note("there are no URLs to check")
        return tally.exit_code

    @property
    def _shows_lines(self) -> bool:
        """Whether the user sees the answers as they come, or asks for a few."""
        return self._is_detailed or sys.stdout.isatty()

    def _writer(self, source: PolicySource, tally: Tally) -> check_output.Writer:
        output, agents = self._context.output, self._agents
        strict = self._context.settings.strict
        first: list[str] = []
        room = MAX_TABLE_LENGTH
        try:
            with source.interruptible():
                for url in islice(self._urls, MAX_IN_TABLE + 1):
                    first.append(url)  # so that what was read before Ctrl-C is kept
                    room -= len(url)
                    if room < 0:
                        break
            self._urls = chain(first, self._urls)
        except KeyboardInterrupt:
            self._urls = chain(first, iter(_press_ctrl_c, ""))
        if output.as_json:
            if self._is_detailed:
                return check_output.DetailedJson(output, agents, strict=strict)
            return check_output.BriefJson(output, agents)
        if len(first) > MAX_IN_TABLE or room < 0:
            return check_output.Lines(output, agents, tally)
        if self._is_detailed and len(first) == len(agents) == 1:
            return check_output.Explanation(output, agents, strict=strict)
        return check_output.Table(output, agents)


def _press_ctrl_c() -> str:
    """Raise KeyboardInterrupt, as an input that Ctrl-C has ended."""
    raise KeyboardInterrupt


def _ignore(_: int) -> None:
    """Show no progress."""
