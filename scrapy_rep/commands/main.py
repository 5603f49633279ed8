"""The console script ``scrapy-rep``, and the table of subcommands.

``scrapy robots`` (see ``robots``) calls :func:`main`, too, so both are the same. This module
imports Scrapy in :func:`main`, where Ctrl-C ends without a traceback.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from ..protocol.printable import printable
from .exits import EXIT_CODES, CommandError, ExitCode
from .output import writing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from scrapy.settings import Settings

HELP_WIDTH = 78
"""Characters of a line of a help text."""

MAX_MESSAGE = 1000
"""Characters of an error message that are shown."""

GC_THRESHOLD = 50_000
"""Objects after which Python searches for cycles. The answers for many URLs are small objects that
hold no cycles: with Python's 700, the search takes a fifth of the time."""


class Subcommand(NamedTuple):
    """A row of the table."""

    module: str
    """The module in this package. It is imported when the subcommand is used."""
    help: str
    """One line that says what the subcommand does."""


SUBCOMMANDS = {
    "agents": Subcommand("agents", "list the well-known crawlers that -a knows by name"),
    "check": Subcommand("check", "say whether URLs are allowed, and why"),
    "lint": Subcommand("lint", "find lines that do not do what they seem to, and correct them"),
    "report": Subcommand("report", "merge and show the reports of crawls (REP_REPORT)"),
    "show": Subcommand("show", "show the rules of a site or a file as a crawl understands them"),
    "diff": Subcommand("diff", "say what differs in meaning between two robots.txt files"),
    "test": Subcommand("test", "test a robots.txt against a file of expectations"),
    "view": Subcommand("view", "show a page as a crawler sees it"),
    "survey": Subcommand("survey", "count what the robots.txt files of many sites have"),
    "export": Subcommand("export", "write the policies of a store as JSON Lines or WARC"),
    "import": Subcommand("import_", "put policies that export has written into a store"),
}
"""The table. A module has these names:

``DESCRIPTION``
    What the subcommand does, in a few sentences.
``EXAMPLES``
    Command lines, each with what it does.
``add_arguments(parser)``
    Adds its arguments. Those of :func:`_add_common_arguments` are there already.
``run(arguments, context)``
    Runs it, and returns an exit code. Raises :class:`CommandError`.
"""

_WITH_VALUE = ("-s", "--set", "-L", "--loglevel")


class Parser(argparse.ArgumentParser):
    """A parser that refuses unknown and abbreviated options in one line."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **arguments
        )

    def error(self, message: str) -> NoReturn:
        """Raise :class:`CommandError`."""
        raise CommandError(f"{message} (see {self.prog} --help)")


def main(
    arguments: Sequence[str] | None = None,
    *,
    program: str = "scrapy-rep",
    settings: Settings | None = None,
) -> int:
    """Run a subcommand and return its exit code.

    ``settings`` are those of a Scrapy project. Without them, the project in the current folder
    counts, if there is one.
    """
    _open_closed_streams()
    _escape_unencodable()
    code: int = ExitCode.OK
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments), program, settings)
        with writing():
            sys.stdout.flush()
    except SystemExit as stop:  # of argparse, after --help
        code = stop.code if isinstance(stop.code, int) else ExitCode.USAGE
    except CommandError as error:
        _complain(program, str(error))
        code = error.code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        code = ExitCode.BROKEN_PIPE
    except Exception as error:  # a tool ends without a traceback
        _complain(program, f"internal error: {type(error).__name__}: {error}. Please report it.")
        if os.environ.get("SCRAPY_REP_DEBUG"):
            raise
        code = ExitCode.UNKNOWN
    return _flushed(code)


def console() -> NoReturn:
    """Run the console script."""
    gc.set_threshold(GC_THRESHOLD)
    sys.exit(main())


def _run(arguments: list[str], program: str, settings: Settings | None) -> int:
    number = 0
    while number < len(arguments) and arguments[number].startswith("-"):
        number += 2 if arguments[number] in _WITH_VALUE else 1
    options, rest = arguments[:number], arguments[number:]
    if not rest:
        return _run_without_subcommand(options, program)
    name, *others = rest
    row = SUBCOMMANDS.get(name)
    if row is None:
        raise CommandError(f"no subcommand {printable(name)!r}: there are {', '.join(SUBCOMMANDS)}")
    from .context import Context  # Scrapy, which takes most of the time

    module = importlib.import_module(f"{__package__}.{row.module}")
    parser = _parser_of(module, program, name)
    parsed = parser.parse_args([*options, *others])
    _check_values(parsed, parser)
    with Context.open(parsed, settings) as context:
        code: int = module.run(parsed, context)
        is_known = not context.is_incomplete or code not in (ExitCode.OK, ExitCode.FOUND)
        return code if is_known else ExitCode.UNKNOWN


def _check_values(parsed: argparse.Namespace, parser: Parser) -> None:
    """Refuse values that no subcommand can use, such as those of shell variables that are unset."""
    from .moments import ARCHIVED

    given = [
        value if isinstance(value, list) else [value]
        for name, value in vars(parsed).items()
        if name != "agent"  # an empty one is warned about
    ]
    texts = [text for values in given for text in values if isinstance(text, str)]
    if not all(text.strip() for text in texts):
        parser.error("an argument is empty")
    if getattr(parsed, "archive", None) and not any(text.startswith(ARCHIVED) for text in texts):
        parser.error(f"--archive belongs to {ARCHIVED}SITE")


def _run_without_subcommand(options: list[str], program: str) -> int:
    rows = "\n".join(f"  {name:<8} {row.help}" for name, row in SUBCOMMANDS.items())
    parser = Parser(
        prog=program,
        usage=f"{program} SUBCOMMAND [option ...] [argument ...]",
        description=f"Tools for robots.txt files.\n\nsubcommands:\n{rows}\n\n"
        f"'{program} SUBCOMMAND --help' shows the options and examples of a subcommand.",
        epilog=_exit_code_help(),
    )
    parser.add_argument("--version", action="version", version=_version())
    parser.parse_args(options)
    parser.print_help()
    return ExitCode.OK if not options else ExitCode.USAGE


def _parser_of(module: ModuleType, program: str, name: str) -> Parser:
    parser = Parser(
        prog=f"{program} {name}",
        description=textwrap.fill(module.DESCRIPTION, HELP_WIDTH),
        epilog=f"{_examples_of(module.EXAMPLES, program)}\n\n{_exit_code_help()}",
    )
    module.add_arguments(parser)
    _add_common_arguments(parser)
    return parser


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("options of all subcommands")
    group.add_argument("--json", action="store_true", help="write JSON Lines instead of text")
    group.add_argument(
        "-s",
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a setting of Scrapy or of this package; may be repeated",
    )
    group.add_argument(
        "-L",
        "--loglevel",
        metavar="LEVEL",
        choices=("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG"),
        help="write the log of Scrapy to standard error, from this level on",
    )


def _examples_of(examples: Sequence[tuple[str, str]], program: str) -> str:
    lines = ["examples:"]
    for arguments, meaning in examples:
        lines += [f"  {program} {arguments}", f"      {meaning}"]
    return "\n".join(lines)


def _exit_code_help() -> str:
    return "\n".join(
        ["exit codes:", *(f"  {code.value:>3}  {text}" for code, text in EXIT_CODES.items())]
    )


def _version() -> str:
    import scrapy

    import scrapy_rep

    return f"scrapy-rep {scrapy_rep.__version__}, Scrapy {scrapy.__version__}"


def _complain(program: str, message: str) -> None:
    line = printable(" ".join(message.split()), MAX_MESSAGE)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{program}: {line}\n")


def _open_closed_streams() -> None:
    """Discard what is written to a stream that is closed, as with ``>&-``.

    Python sets such a stream to None. The next file or connection would get its number.
    """
    if sys.stdin is None:
        os.open(os.devnull, os.O_RDONLY)  # only the number: `context.standard_input` tells
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _escape_unencodable() -> None:
    """Escape characters that the encoding of the terminal does not have."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _flushed(code: int) -> int:
    """Write what is left. Python would complain about an error when it exits."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.BROKEN_PIPE if isinstance(error, BrokenPipeError) else ExitCode.USAGE
    return code


if __name__ == "__main__":
    console()
