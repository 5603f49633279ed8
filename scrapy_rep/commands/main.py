"""The console script ``scrapy-rep``, and the table of tools.

``scrapy robots`` (see :mod:`scrapy_rep.scrapy_command`) calls :func:`main`, so both are the same.
This module imports Scrapy only in a tool, where Ctrl-C ends without a traceback.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import ChainMap
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NoReturn

from ..protocol.printable import printable

try:
    import click

    from .context import HELP, ExitCode, NoAnswerError, exit_code_help, with_version, writing

    if find_spec("rich") is None:  # it is imported only where it is needed
        raise ImportError(name="rich")
except ImportError:  # of the extra
    packages = ("click", "msgspec", "rich")
    missing = " ".join(each for each in packages if find_spec(each) is None)
    sys.stderr.write(f"scrapy-rep: the tools need other packages: pip install {missing}\n")
    sys.exit(2)  # as without the package of one tool; 1 would say that a URL is disallowed

if TYPE_CHECKING:
    from scrapy.settings import Settings

TOOLS = {
    "Sites": {
        "check": ("check", "Say whether URLs are allowed, and why."),
        "lint": ("lint", "Find lines that do not do what they seem to, and correct them."),
        "rule": ("lint", "Explain findings of lint."),
        "test": ("test", "Test a robots.txt against a file of expectations."),
        "diff": ("show", "Say what two robots.txt files say differently."),
        "show": ("show", "Show the rules of a site or a file as a crawl understands them."),
        "view": ("view", "Show a page as a crawler sees it."),
    },
    "Crawls": {
        "report": ("report", "Show the report of a crawl, or of several (REP_REPORT)."),
        "queue": ("queue", "Show what waits in a queue in Redis. Hold and drop hosts."),
        "export": ("transfer", "Write the robots.txt files of a store as JSON Lines."),
        "import": ("transfer", "Put files that export has written into a store."),
    },
    "Research": {
        "survey": ("survey", "Count what the robots.txt files of many sites have."),
        "crawlers": ("crawlers", "List the well-known crawlers that -a knows by name."),
    },
}
"""By group: the tools, each with its module and one line of help. A module has its tool as
``NAME_tool``, and is imported when the tool is used."""


class Tools(click.Group):
    """The tools, by their groups."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return [name for group in TOOLS.values() for name in group]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        rows = ChainMap(*TOOLS.values())
        if name not in rows:  # Click looks for similar names in these
            self.commands = dict.fromkeys(self.list_commands(ctx), click.Command(None))
            return None
        module, text = rows[name]
        found: click.Command = getattr(import_module(f"{__package__}.{module}"), f"{name}_tool")
        found.short_help = text
        return found

    def invoke(self, ctx: click.Context) -> int:
        """Run a tool and return its exit code. Click has other codes for Ctrl-C and pipes."""
        try:
            code: int = super().invoke(ctx) or ExitCode.OK
            with writing():
                sys.stdout.flush()
            return code
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED
        except BrokenPipeError:
            return ExitCode.BROKEN_PIPE
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (OSError, MemoryError) as error:  # of the machine, such as a full disk
            raise NoAnswerError(f"{type(error).__name__}: {error}") from error
        except Exception as error:  # a tool ends without a traceback
            message = f"internal error: {type(error).__name__}: {error}. Please report it."
            raise NoAnswerError(message) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        for name, group in TOOLS.items():
            with formatter.section(name):
                formatter.write_dl([(each, text) for each, (_, text) in group.items()])


@click.command(
    cls=Tools,
    help="Tools for robots.txt files. 'TOOL --help' shows the options and examples of a tool.\n\n"
    "Begin with: scrapy-rep check https://www.example.com/ -a mybot",
    epilog=exit_code_help(),
    subcommand_metavar="TOOL [OPTION ...] [ARGUMENT ...]",
    options_metavar="",
    invoke_without_command=True,
    context_settings=HELP,
)
@with_version
@click.pass_context
def tools(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(
    arguments: Sequence[str] | None = None,
    *,
    program: str = "scrapy-rep",
    settings: Settings | None = None,
) -> int:
    """Run a tool and return its exit code.

    ``settings`` are those of a Scrapy project: by default, of the one in the current folder.
    """
    _prepare_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code: int = tools.main(given, program, standalone_mode=False, obj=settings)
    except click.ClickException as error:
        message = error.format_message()
        if isinstance(error, click.UsageError):
            message += f" (see {program if error.ctx is None else error.ctx.command_path} --help)"
        with contextlib.suppress(OSError):  # what was answered until then
            sys.stdout.flush()
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{program}: {printable(' '.join(message.split()), 1000)}\n")
        code = error.exit_code
    try:
        sys.stdout.flush()
    except OSError as error:  # Python would complain about what is left when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.BROKEN_PIPE if isinstance(error, BrokenPipeError) else ExitCode.USAGE
    return code


def console() -> NoReturn:
    sys.exit(main())


def _prepare_streams() -> None:
    """Replace a stream that is closed, as with ``>&-``: Python sets it to None, and the next file
    would get its number. Escape characters that the encoding of the terminal does not have."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    console()
