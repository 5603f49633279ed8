"""``agents``: the well-known crawlers, which ``-a`` knows by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .crawler_list import crawler_record
from .crawlers import Purpose, crawlers_of, similar_name, well_known_crawlers
from .exits import CommandError, ExitCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from .context import Context
    from .crawlers import Crawler

DESCRIPTION = (
    "List the well-known crawlers that -a knows: the groups that each follows, the first that\n"
    "a robots.txt has, what it fetches pages for, and the page that says so, with its date."
)
EXAMPLES = (
    ("agents", "all of them"),
    ("agents --purpose ai-training", "those that -a ai-training stands for"),
    ("agents Googlebot-Image", "one crawler, with its source"),
    ("agents --json > crawlers.jsonl", "the whole table, with sources and notes"),
)

VERSION = 1
"""The version of the record. A field may be added without a new one."""

HINTS = (
    "",
    "-a NAME answers as a crawler does; -a PURPOSE, as all with that purpose.",
    "The source of an entry, with its date: 'agents NAME' or --json.",
)
"""Lines below a table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="AGENT",
        help="the name or the User-Agent header of a crawler, or a purpose; default: all crawlers",
    )
    parser.add_argument(
        "--purpose",
        action="append",
        default=[],
        choices=[purpose.value for purpose in Purpose],
        help="list only crawlers with this purpose; may be repeated",
    )


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    crawlers = _select(arguments.names, set(map(Purpose, arguments.purpose)))
    if context.output.as_json:
        for crawler in crawlers:
            context.output.record({"type": "agent", "version": VERSION, **crawler_record(crawler)})
        return ExitCode.OK
    from .agents_text import details, table

    if not crawlers:
        context.output.note("no crawler has this name and this purpose")
    elif len(crawlers) == 1:
        context.output.print(details(crawlers[0]))
    else:
        context.output.print(table(crawlers), *HINTS)
    return ExitCode.OK


def _select(names: Iterable[str], purposes: set[Purpose]) -> list[Crawler]:
    """Return the crawlers that the arguments name, each once."""
    selected: dict[Crawler, None] = {}
    for name in names:
        found = crawlers_of(name)
        if not found:
            raise CommandError(_unknown(name))
        selected.update(dict.fromkeys(found))
    return [
        crawler
        for crawler in selected or well_known_crawlers()
        if not purposes or purposes.intersection(crawler.purposes)
    ]


def _unknown(name: str) -> str:
    similar = similar_name(name)
    hint = f"do you mean {similar}?" if similar else "-a takes it for a product token"
    return f"{name} is no well-known crawler: {hint}"
