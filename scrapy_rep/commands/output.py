"""What every tool writes and how it ends: text or JSON Lines, remarks, an exit code.

rich is imported when something is printed: `--help` needs none of it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ..protocol.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

T = TypeVar("T")

MAX_REMARK = 500
"""Characters of a remark that are shown."""

MAX_REPEATED = 3
"""Remarks of one kind that are shown. The rest are counted."""

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
"""What each exit code means."""

TOOL_CODES = {
    "check": (
        "a URL is disallowed, or listed by --only",
        "a site does not answer, or an argument is not a URL",
    ),
    "show": ("", "the robots.txt is unreachable"),
    "diff": ("the files say different things", "a site is unreachable"),
    "test": ("an expectation failed", "a site is unreachable"),
    "view": (
        "the page is disallowed, or has a contradiction",
        "the page or its robots.txt could not be fetched",
    ),
    "lint": (
        "there is an error or a warning; with --diff: a correction",
        "a site does not answer",
    ),
    "rule": ("", ""),
    "report": ("a disallowed page was requested", "the report cannot tell"),
    "survey": ("", "a part of the input cannot be read"),
    "export": ("", "an entry cannot be read, or the store fails"),
    "import": ("", "a line cannot be read, or the store fails"),
    "crawlers": ("", ""),
}
"""What ``FOUND`` and ``UNKNOWN`` mean for a tool. Empty: it does not use the code."""


def exit_code(answers: Collection[bool | None]) -> ExitCode:
    """Return the exit code for some answers. None: it is not known."""
    if None in answers:
        return ExitCode.UNKNOWN
    return ExitCode.FOUND if False in answers else ExitCode.OK


class CommandError(Exception):
    """Ends a tool with one line on standard error and an exit code.

    The message may quote text of a site or a file: it is escaped and cut where it is shown.
    """

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code


class Output:
    """The output of one run of a tool."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        """Whether the output is JSON Lines."""
        self._repeated: Counter[str] = Counter()

    @cached_property
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
        """Write a record as JSON, or print its text."""
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

    def write(self, text: str) -> None:
        """Write text as it is. Raises BrokenPipeError if nothing reads it any more."""
        with writing():
            sys.stdout.write(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with writing():
            sys.stdout.flush()

    def note(self, message: str, kind: str | None = None) -> None:
        """Write a remark to standard error. Only the first few of a kind are written."""
        self._remark(f"note: {message}", kind)

    def warn(self, message: str, kind: str | None = None) -> None:
        """Write a warning to standard error. Only the first few of a kind are written."""
        self._remark(f"warning: {message}", kind)

    def close(self) -> None:
        """Say how many remarks were left out."""
        for kind, number in self._repeated.items():
            if number > MAX_REPEATED:
                self.note(f"{number - MAX_REPEATED:,} more: {kind}")

    def _remark(self, message: str, kind: str | None) -> None:
        if kind is not None:
            self._repeated[kind] += 1
            if self._repeated[kind] > MAX_REPEATED:
                return
        line = printable(" ".join(message.split()), MAX_REMARK)
        try:
            sys.stderr.write(f"{line}\n")
        except BrokenPipeError:
            raise
        except OSError:  # such as a full disk: the answers are written all the same
            return


def json_line(record: object) -> str:
    """Return a record as a line of JSON in ASCII."""
    try:
        line = msgspec.json.encode(record)
        if line.isascii():
            return f"{line.decode()}\n"
    except UnicodeEncodeError:  # a lone surrogate
        pass
    return json.dumps(msgspec.to_builtins(record)) + "\n"


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
