"""What every tool has in common: options, settings, files, output, errors and exit codes.

rich is imported when something is printed, Scrapy's engine when something is fetched.
"""

from __future__ import annotations

import functools
import json
import operator
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from enum import IntEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from .. import __version__
from ..protocol.lines import SIZE_LIMIT
from ..protocol.printable import printable
from ..reports.records import FileError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.status import Status
    from scrapy.settings import Settings as ScrapySettings

    from ..settings import Settings

T = TypeVar("T")

STANDARD_INPUT = "-"

HELP = {"help_option_names": ["-h", "--help"]}
with_version = click.version_option(
    __version__, "-V", "--version", message="scrapy-rep %(version)s"
)
_FILES = re.compile(r"\b(FILE|ROBOTS|OLD|NEW|EXPECTATIONS|LIST)\b").search
"""The values in the help that may name a file, which the shell then completes."""

MAX_BODY = 4 * SIZE_LIMIT
"""Bytes of a robots.txt file that are read. The rules are in the first `SIZE_LIMIT`."""

INTERVAL = 10.0
"""Seconds between two lines about long work."""

MAX_REMARK, MAX_REPEATED = 500, 3
"""Characters of a remark, and remarks of one kind, that are shown. The others are counted."""

MIN_WIDTH = 40
"""Characters of a line in a narrower terminal, which wraps them, and where COLUMNS is 0."""


class ExitCode(IntEnum):
    """The exit codes. If several apply, ``UNKNOWN`` takes precedence over ``FOUND``."""

    OK = 0
    FOUND = 1
    USAGE = 2
    UNKNOWN = 3
    INTERRUPTED = 130
    BROKEN_PIPE = 141


EXIT_CODES = {
    ExitCode.OK: "all URLs are allowed, or nothing was found",
    ExitCode.FOUND: "at least one URL is disallowed, or something was found",
    ExitCode.USAGE: "an argument, a file or a setting is wrong",
    ExitCode.UNKNOWN: "at least one answer is not known",
    ExitCode.INTERRUPTED: "Ctrl-C",
    ExitCode.BROKEN_PIPE: "the reader of the output has ended",
}


def exit_code(answers: Collection[bool | None]) -> ExitCode:
    """Return the exit code for some answers. None: it is not known."""
    found = ExitCode.FOUND if False in answers else ExitCode.OK
    return ExitCode.UNKNOWN if None in answers else found


class CommandError(click.ClickException):
    """Ends a tool with one line on standard error and an exit code.

    The message may quote text of a site or a file: it is escaped and cut where it is shown.
    """

    exit_code = ExitCode.USAGE


def refuse_if(is_wrong: object, message: str) -> None:
    """Raise :class:`CommandError` if an argument is wrong."""
    if is_wrong:
        raise CommandError(message)


class NoAnswerError(CommandError):
    """Ends a tool that cannot find an answer, although its arguments are right."""

    exit_code = ExitCode.UNKNOWN


@dataclass
class Context:
    """The settings, the input and the output of one run of a tool."""

    project: ScrapySettings | None
    given: Sequence[str]
    """The settings that ``-s`` sets."""
    as_json: bool
    fresh: bool
    quiet: bool
    is_interrupted: bool = False
    repeated: Counter[str] = field(default_factory=Counter)
    """How many remarks there were of each kind."""

    def __post_init__(self) -> None:
        if self.given:
            self.settings  # noqa: B018 - what is given is checked, also if no tool needs it

    @functools.cached_property
    def has_settings(self) -> bool:
        """Whether there may be settings: of the user, or of a project, which only Scrapy finds."""
        folders = (Path.cwd(), *Path.cwd().parents)
        is_project = any(Path(each, "scrapy.cfg").is_file() for each in folders)
        is_named = is_project or "SCRAPY_SETTINGS_MODULE" in os.environ
        return is_named or self.project is not None or bool(self.given)

    @functools.cached_property
    def scrapy_settings(self) -> ScrapySettings:
        """The settings of the project, with those that are given. They need Scrapy."""
        from scrapy.utils.project import get_project_settings

        try:
            settings = get_project_settings() if self.project is None else self.project
        except Exception as error:  # of the project's own code
            text = f"the settings of the project cannot be loaded: {type(error).__name__}: {error}"
            raise CommandError(text) from None
        for each in self.given:
            name, equals, value = each.partition("=")
            refuse_if(not (name and equals), "-s takes NAME=VALUE")
            try:
                settings.set(name, value, priority="cmdline")
            except ValueError as error:  # a setting of Scrapy that is a dict, and not JSON
                raise CommandError(f"{name} is {value!r}, which is not JSON: {error}") from None
        return settings

    @functools.cached_property
    def settings(self) -> Settings:
        from ..settings import Settings

        with naming_settings():
            settings = Settings.read(self.scrapy_settings)
        for name, similar in settings.unknown:
            hint = f" Do you mean {similar}?" if similar else ""
            self.warn(f"the setting {name} does not exist and is ignored.{hint}")
        return settings

    def read_file(self, name: str) -> bytes:
        """Return the start of a file, or of standard input for ``-``. It may be of any size."""
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read(MAX_BODY)
        with reading(name), Path(name).open("rb") as file:
            return file.read(MAX_BODY)

    @functools.cached_property
    def console(self) -> Console:
        """Standard output with colors and the width of the terminal."""
        from rich.console import Console

        class Raising(Console):
            """rich also flushes the file, and would end with exit code 1 for a broken pipe."""

            def on_broken_pipe(self) -> None:
                raise

        console = Raising(file=sys.stdout, highlight=False, emoji=False, markup=False)
        console.width = max(console.width, MIN_WIDTH)
        return console

    def show(self, record: T, listing: Callable[[T], Iterable[RenderableType]]) -> None:
        if self.as_json:
            self.record(record)
        else:
            self.print(listing(record))

    def print(self, renderables: Iterable[RenderableType]) -> None:
        """Print texts and tables of rich. Plain strings are printed as they are."""
        with writing(), self.console.capture() as capture:
            for renderable in renderables:
                self.console.print(renderable)
        # Tables fill their last column with spaces.
        self.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))

    def styled(self, text: str, style: str) -> str:
        """Return a text with the escape sequences of a color, if there are colors."""
        with writing(), self.console.capture() as capture:
            self.console.print(text, style=style, end="", soft_wrap=True)
        return capture.get()

    def record(self, record: object) -> None:
        """Write one record as a line of JSON, in ASCII: nothing in it acts on a terminal."""
        self.write(json_line(record))

    def write(self, text: str, *, flush: bool = False) -> None:
        """Write text as it is. Raises BrokenPipeError if nothing reads it any more."""
        with writing():
            sys.stdout.write(text)
            if flush:
                sys.stdout.flush()

    def note(self, message: str, kind: str | None = None, *, level: str = "note") -> None:
        """Write a remark to standard error. Only the first few of a kind are written.

        With ``-q``, only warnings are.
        """
        if self.quiet and level == "note":
            return
        if kind is not None:
            self.repeated[kind] += 1
            if self.repeated[kind] > MAX_REPEATED:
                return
        line = printable(" ".join(f"{level}: {message}".split()), MAX_REMARK)
        try:
            sys.stderr.write(f"{line}\n")
        except BrokenPipeError:
            raise
        except OSError:  # such as a full disk: the answers are written all the same
            return

    def counted(
        self,
        items: Iterable[T],
        what: str,
        total: int | None = None,
        size: Callable[[T], int] = lambda _: 1,
    ) -> Iterator[T]:
        """Yield the items of long work, and say on standard error how many are done, and how fast.

        ``size`` returns how many an item stands for.
        """
        of = "" if total is None else f" of {total:,}"
        done, started = 0, time.monotonic()
        said = started
        with self._display() as display:
            for item in items:
                yield item
                done, now = done + size(item), time.monotonic()
                text = f"{done:,}{of} {what}, {done / max(now - started, 0.001):,.0f} a second"
                if display is not None:
                    display.update(text)
                elif now - said >= INTERVAL:
                    said = now
                    self.note(text)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """End work at Ctrl-C, and not the tool, which can then write what is known."""
        try:
            yield
        except KeyboardInterrupt:
            self.is_interrupted = True

    def _display(self) -> AbstractContextManager[Status | None]:
        """Return a line of a terminal with a text that changes; None if there is no terminal."""
        if self.quiet or not sys.stderr.isatty() or sys.stdout.isatty():
            return nullcontext()
        from rich.console import Console

        return Console(stderr=True).status("")

    def end_code(self, code: int, *, reads_sites: bool = False) -> int:
        """Return the exit code at the end. After Ctrl-C, say how the work goes on."""
        if not self.is_interrupted:
            return code
        how = "run it again"
        if reads_sites and self.settings.store is None:
            how += "; with -s REP_STORE=sqlite:///store.sqlite, what was fetched is not asked again"
        self.warn(f"interrupted: this is what is known until now. To go on, {how}")
        return ExitCode.INTERRUPTED

    def warn(self, message: str, kind: str | None = None) -> None:
        self.note(message, kind, level="warning")

    def close(self) -> None:
        """Say how many remarks were left out."""
        for kind, number in self.repeated.items():
            if number > MAX_REPEATED:
                self.note(f"{number - MAX_REPEATED:,} more: {kind}")


def json_line(record: object) -> str:
    """Return a record as a line of JSON in printable ASCII."""
    try:
        line = msgspec.json.encode(record).decode("ascii")
    except UnicodeError:  # other characters, or a lone surrogate
        line = json.dumps(msgspec.to_builtins(record))
    return line.replace("\x7f", "\\u007f") + "\n"  # which JSON need not escape


@contextmanager
def reading(
    name: str, form: str = "", *wrong: type[Exception], verb: str = "read"
) -> Iterator[None]:
    """Raise :class:`CommandError` if a file cannot be read, or not as ``form``.

    ``wrong`` are the errors that mean that it has another form. A BrokenPipeError stays as it is.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandError(f"cannot {verb} {name}: {reason}") from None
    except wrong as error:
        raise CommandError(f"cannot {verb} {name} as {form}: {error}") from None


def writing(name: str = "the output") -> AbstractContextManager[None]:
    """Raise :class:`CommandError` if a file cannot be written, as to a full disk."""
    return reading(name, verb="write")


@contextmanager
def naming_settings() -> Iterator[None]:
    """Raise :class:`CommandError` for a setting that cannot be read."""
    from ..exceptions import SettingError

    try:
        yield
    except SettingError as error:
        raise CommandError(str(error)) from None


def need(what: str, *packages: str) -> None:
    """Raise :class:`CommandError` if packages are missing. ``what`` begins its message."""
    missing = [each for each in packages if find_spec(each) is None]
    noun = "package" if len(missing) == 1 else "packages"
    names = " and ".join(missing)
    refuse_if(missing, f"{what} the {noun} {names}: pip install {' '.join(missing)}")


def tool(
    text: str,
    *examples: tuple[str, str],
    found: str = "",
    unknown: str = "",
    records: Sequence[type] = (),
    reads_sites: bool = False,
) -> Callable[[Callable[..., int]], click.Command]:
    """Return a decorator that makes a tool of a function.

    The function gets a :class:`Context` and the values of its options, and returns an exit code.
    ``found`` and ``unknown`` say what these codes mean; without a text, it does not use the code.
    ``records`` are the types of its JSON records. ``reads_sites``: it has the option ``--fresh``.
    """

    def decorate(function: Callable[..., int]) -> click.Command:
        @functools.wraps(function)
        @click.pass_context
        def run(ctx: click.Context, /, **values: Any) -> int:
            form, as_json = values.pop("format", None), values.pop("json", False)
            if as_json and form == "text":
                raise click.UsageError("--json and --format text exclude each other")
            given, options = values.pop("set"), {"quiet": values.pop("quiet")}
            options |= {"as_json": as_json or form == "json", "fresh": values.pop("fresh", False)}
            words = (each if isinstance(each, tuple) else (each,) for each in values.values())
            if sum(each.count(STANDARD_INPUT) for each in words) > 1:
                raise click.UsageError("only one argument can be standard input")
            try:
                with closing(Context(ctx.obj, given, **options)) as context:
                    return function(context, **values)
            except FileError as error:
                raise CommandError(str(error)) from None

        lines = [f"  scrapy-rep {arguments}\n      {meaning}" for arguments, meaning in examples]
        codes = {**EXIT_CODES, ExitCode.OK: "none of the following"}
        codes |= {ExitCode.FOUND: found, ExitCode.UNKNOWN: unknown}
        epilog = "\n".join(["\b", "Examples:", *lines, "", exit_code_help(codes)])
        command = click.command(help=text, epilog=epilog, context_settings=HELP)(run)
        for parameter in command.params:
            if _FILES(parameter.metavar or ""):
                parameter.type = click.Path()
        command.params += _common_options(records, reads_sites)
        return with_version(command)

    return decorate


def exit_code_help(texts: Mapping[ExitCode, str] = EXIT_CODES) -> str:
    codes = (f"  {code.value:>3}  {text}" for code, text in texts.items() if text)
    return "\n".join(["\b", "Exit codes:", *codes])


def completing(
    values: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return what completes a value in the shell, or the last one of a list with commas."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        found = (each for each in values() if each.lower().startswith(last.lower()))
        return [f"{before}{comma}{each}" for each in found]

    return complete


def _settings() -> Iterable[str]:
    from scrapy.settings import default_settings

    from ..settings import Settings

    own = (each.metadata["setting"].name for each in fields(Settings) if each.metadata)
    names = dict.fromkeys((*own, *filter(str.isupper, dir(default_settings))))
    return (f"{name}=" for name in names)


def _common_options(records: Sequence[type], reads_sites: bool) -> list[click.Option]:
    def show(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted:
            click.echo(json.dumps(schema(records), indent=2))
            ctx.exit()

    settings = click.Option(
        ["-s", "--set"],
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a setting of Scrapy or of this package. May be repeated. -s LOG_LEVEL=INFO "
        "writes the log of Scrapy to standard error.",
        shell_complete=completing(_settings),
    )
    quiet = click.Option(["-q", "--quiet"], is_flag=True, help="Leave out the notes.")
    form = click.Option(["--format"], type=click.Choice(("text", "json")), help="Default: text.")
    as_json = click.Option(["--json"], is_flag=True, help="JSON Lines, as --format json.")
    text = "Print the JSON Schema of the records, and exit."
    values: Any = {"is_eager": True, "expose_value": False, "callback": show, "help": text}
    described = click.Option(["--schema"], is_flag=True, **values)
    fresh = click.Option(
        ["--fresh"],
        is_flag=True,
        help="Ask each site, also if the store has its robots.txt. The answer replaces that one.",
    )
    others = [fresh, quiet, settings] if reads_sites else [quiet, settings]
    return [form, as_json, *others, described] if records else others


def schema(records: Sequence[type]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of some records."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**dialect, **msgspec.json.schema(functools.reduce(operator.or_, records))}
