"""What a subcommand writes: text or JSON Lines to standard output, remarks to standard error.

Text needs the package rich, which brings colors and tables. JSON does not need it.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..protocol.printable import printable
from .exits import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rich.console import Console, RenderableType
    from rich.progress import Progress

MAX_REMARK = 500
"""Characters of a remark that are shown."""

MAX_REPEATED = 3
"""Remarks of one kind that are shown. The rest are counted."""


MIN_WIDTH = 40
"""Characters of a line in a narrower terminal, which wraps them, and where COLUMNS is 0."""


class Output:
    """The output of one run of a subcommand."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._console: Console | None = None
        self._repeated: dict[str, int] = {}
        self._bar: Progress | None = None
        if not as_json:
            _require_rich()

    @property
    def console(self) -> Console:
        """Standard output with colors and the width of the terminal."""
        if self._console is None:
            self._console = _console(sys.stdout)
        return self._console

    def print(self, *renderables: RenderableType) -> None:
        """Print texts and tables of rich. Plain strings are printed as they are."""
        console = self.console
        with writing():
            if console.is_terminal:
                for renderable in renderables:
                    console.print(renderable)
                return
            with console.capture() as capture:
                for renderable in renderables:
                    console.print(renderable)
        # Tables fill their last column with spaces.
        self.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))

    def record(self, record: Mapping[str, Any]) -> None:
        """Write one record as a line of JSON."""
        self.write(json.dumps(record) + "\n")

    def write(self, text: str) -> None:
        """Write text as it is. Raises BrokenPipeError if nothing reads it any more."""
        with writing():
            sys.stdout.write(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with writing():
            sys.stdout.flush()

    def note(self, message: str) -> None:
        """Write a remark to standard error."""
        self._remark("note", message)

    def warn(self, message: str) -> None:
        """Write a warning to standard error."""
        self._remark("warning", message)

    def repeated_note(self, kind: str, message: str) -> None:
        """Write a note that many inputs may cause. Only the first few of a kind are written."""
        if self._is_new(kind):
            self.note(message)

    def repeated_warning(self, kind: str, message: str) -> None:
        """Write a warning that many inputs may cause, as `repeated_note` does."""
        if self._is_new(kind):
            self.warn(message)

    def close(self) -> None:
        """Say how many remarks were left out."""
        for kind, number in self._repeated.items():
            if number > MAX_REPEATED:
                self.note(f"{number - MAX_REPEATED:,} more: {kind}")

    @contextmanager
    def progress(self, what: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
        """Show a progress bar on standard error if that is a terminal.

        Yields a function to call with the number of items that are done.
        """
        if not sys.stderr.isatty() or not _has_rich():
            yield _show_nothing
            return
        is_first = self._bar is None
        bar = self._bar = self._bar or _started_bar()
        task = bar.add_task(what, total=total)
        try:
            yield lambda done: bar.update(task, completed=done)
        finally:
            bar.remove_task(task)
            if is_first:
                bar.stop()
                self._bar = None

    def _is_new(self, kind: str) -> bool:
        number = self._repeated[kind] = self._repeated.get(kind, 0) + 1
        return number <= MAX_REPEATED

    def _remark(self, kind: str, message: str) -> None:
        line = f"{kind}: {printable(' '.join(message.split()), MAX_REMARK)}"
        if self._bar is not None:
            self._bar.console.print(line)  # above the bar
            return
        try:
            sys.stderr.write(f"{line}\n")
        except BrokenPipeError:
            raise
        except OSError:  # such as a full disk: the answers are written all the same
            return


@contextmanager
def writing() -> Iterator[None]:
    """Raise :class:`CommandError` if standard output cannot be written, as to a full disk.

    A BrokenPipeError stays as it is.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"cannot write the output: {error.strerror or error}") from None


def _show_nothing(done: int) -> None:
    """Do nothing."""


def _started_bar() -> Progress:
    """Show an empty progress bar on standard error."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(
        *columns,
        TimeElapsedColumn(),
        console=_console(sys.stderr),
        transient=True,
        redirect_stdout=False,  # else rich writes the answers to the terminal, too
        redirect_stderr=False,
    )
    bar.start()
    return bar


def _console(file: Any) -> Console:
    from rich.console import Console

    class Raising(Console):
        """A console that raises BrokenPipeError. That of rich would end with exit code 1."""

        def on_broken_pipe(self) -> None:
            raise

    console = Raising(file=file, highlight=False, emoji=False, markup=False)
    if console.width < MIN_WIDTH:
        console.width = MIN_WIDTH
    return console


def _has_rich() -> bool:
    try:
        import rich  # noqa: F401
    except ImportError:
        return False
    return True


def _require_rich() -> None:
    if not _has_rich():
        raise CommandError("text needs the package rich: pip install rich; --json works without it")
