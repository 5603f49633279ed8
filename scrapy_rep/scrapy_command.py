"""The command ``scrapy robots``. Scrapy imports it for each of its commands."""

from __future__ import annotations

import argparse

from scrapy.commands import ScrapyCommand


class Command(ScrapyCommand):
    """Hands all arguments to :func:`scrapy_rep.commands.main.main`."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "TOOL [option ...] [argument ...]"

    def short_desc(self) -> str:
        return "Check, show and compare robots.txt files"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.prefix_chars = "\0"  # else Scrapy's parser drops options that it does not know
        parser.add_argument("arguments", nargs=argparse.REMAINDER)
        parser.set_defaults(profile=None)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Do nothing: the subcommand reads its options itself."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:  # noqa: ARG002
        from .commands.main import main  # only when it is used

        self.exitcode = main(opts.arguments, program="scrapy robots", settings=self.settings)
