"""What every tool has in common: its options, the settings, the output, the files."""

from __future__ import annotations

import functools
import json
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from ..protocol.lines import SIZE_LIMIT
from .output import EXIT_CODES, TOOL_CODES, CommandError, ExitCode, Output, reading

if TYPE_CHECKING:
    from scrapy.settings import Settings as ScrapySettings

    from .session import Session

T = TypeVar("T")

STANDARD_INPUT = "-"
"""The file name that stands for standard input."""

MAX_BODY = 4 * SIZE_LIMIT
"""Bytes of a robots.txt file that are read. The rules are in the first `SIZE_LIMIT`."""


class Context:
    """The surroundings of one run of a tool."""

    def __init__(
        self,
        project: ScrapySettings | None = None,
        *,
        as_json: bool = False,
        given: Sequence[str] = (),
    ) -> None:
        from ..exceptions import SettingError
        from ..settings import Settings, unknown_names

        self.output = Output(as_json=as_json)
        self.scrapy_settings = _project_settings() if project is None else project
        for each in given:
            name, equals, value = each.partition("=")
            if not (name and equals):
                raise CommandError("-s takes NAME=VALUE")
            try:
                self.scrapy_settings.set(name, value, priority="cmdline")
            except ValueError as error:  # a setting of Scrapy that is a dict, and not JSON
                raise CommandError(f"{name} is {value!r}, which is not JSON: {error}") from None
        try:
            self.settings = Settings.read(self.scrapy_settings)
        except SettingError as error:
            raise CommandError(str(error)) from None
        for name, similar in unknown_names(self.scrapy_settings):
            hint = f" Do you mean {similar}?" if similar else ""
            self.output.warn(f"the setting {name} does not exist and is ignored.{hint}")

    def read_file(self, name: str) -> bytes:
        """Return the start of a file, or of standard input for ``-``. It may be of any size."""
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read(MAX_BODY)
        with reading(name), Path(name).open("rb") as file:
            return file.read(MAX_BODY)

    def run(self, work: Callable[[Session], T], *, reads_tdm_files: bool = False) -> T:
        """Start Scrapy, and return the result of ``work``, which gets a session."""
        from .session import opened  # only what needs the network starts Scrapy

        settings = self.scrapy_settings.copy()
        if not reads_tdm_files:  # they are fetched together with the robots.txt
            settings.set("REP_TDMREP", False, priority="cmdline")
        with opened(settings) as session:
            return work(session)


def tool(
    text: str,
    *examples: tuple[str, str],
    records: Sequence[type] = (),
) -> Callable[[Callable[..., int]], click.Command]:
    """Return a decorator that makes a tool of a function.

    The function gets a :class:`Context` and the values of its options, and returns an exit code.
    ``records`` are the types of its JSON records.
    """

    def decorate(function: Callable[..., int]) -> click.Command:
        own = len(getattr(function, "__click_params__", ()))

        @functools.wraps(function)
        @click.pass_context
        def run(ctx: click.Context, /, **values: Any) -> int:
            form, as_json = values.pop("format", None), values.pop("json", False)
            if as_json and form == "text":
                raise click.UsageError("--json and --format text exclude each other")
            _check_streams(values.values())
            context = Context(
                ctx.obj,
                as_json=as_json or form == "json",
                given=values.pop("set"),
            )
            try:
                return function(context, **values)
            finally:
                context.output.close()

        for option in reversed(_common_options(records)):
            option(run)
        command = click.command(help=text, epilog=_epilog(function.__name__, examples))(run)
        common = len(command.params) - own
        command.params = command.params[common:] + command.params[:common]
        return command

    return decorate


def exit_code_help(tool_name: str | None = None) -> str:
    """Return the exit codes for help texts, of one tool or of all."""
    texts = dict(EXIT_CODES)
    if tool_name is not None:
        texts[ExitCode.OK] = "none of the following"
        texts[ExitCode.FOUND], texts[ExitCode.UNKNOWN] = TOOL_CODES[tool_name]
    codes = (f"  {code.value:>3}  {text}" for code, text in texts.items() if text)
    return "\n".join(["\b", "Exit codes:", *codes])


def _common_options(records: Sequence[type]) -> list[Any]:
    settings = click.option(
        "-s",
        "--set",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set a setting of Scrapy or of this package. May be repeated. -s LOG_LEVEL=INFO "
        "writes the log of Scrapy to standard error.",
    )
    if not records:
        return [settings]

    def show(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted:
            click.echo(json.dumps(schema(records), indent=2))
            ctx.exit()

    return [
        click.option("--format", type=click.Choice(("text", "json")), help="Default: text."),
        click.option("--json", is_flag=True, help="JSON Lines, as --format json."),
        settings,
        click.option(
            "--schema",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=show,
            help="Print the JSON Schema of the records, and exit.",
        ),
    ]


def schema(records: Sequence[type]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of some records."""
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**dialect, **msgspec.json.schema(functools.reduce(operator.or_, records))}


def _epilog(function: str, examples: Sequence[tuple[str, str]]) -> str:
    lines = ["\b", "Examples:"]
    for arguments, meaning in examples:
        lines += [f"  scrapy-rep {arguments}", f"      {meaning}"]
    return "\n".join(lines) + "\n\n" + exit_code_help(function.removesuffix("_tool"))


def _check_streams(values: Iterable[Any]) -> None:
    """Refuse to read standard input as two things."""
    given = chain.from_iterable(each if isinstance(each, tuple) else [each] for each in values)
    if list(given).count(STANDARD_INPUT) > 1:
        raise click.UsageError("only one argument can be standard input")


def _project_settings() -> ScrapySettings:
    from scrapy.utils.project import get_project_settings

    try:
        return get_project_settings()
    except Exception as error:  # of the project's own code
        raise CommandError(
            f"the settings of the project cannot be loaded: {type(error).__name__}: {error}"
        ) from None
