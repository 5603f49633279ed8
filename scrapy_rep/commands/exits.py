"""The exit codes of all subcommands, and the error that ends a subcommand."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes. If several apply, ``UNKNOWN`` takes precedence over ``FOUND``."""

    OK = 0
    """Every URL is allowed, or nothing was found."""
    FOUND = 1
    """At least one URL is disallowed, or something was found."""
    USAGE = 2
    """An argument, a file or a setting is wrong. The message says which."""
    UNKNOWN = 3
    """At least one answer is not known: a site does not answer, or a URL is invalid."""
    INTERRUPTED = 130
    """Ctrl-C ended the command. What it had until then is written (128 + SIGINT)."""
    BROKEN_PIPE = 141
    """The reader of the output has ended, as in ``… | head`` (128 + SIGPIPE)."""


EXIT_CODES = {
    ExitCode.OK: "all URLs are allowed, or nothing was found",
    ExitCode.FOUND: "at least one URL is disallowed, or something was found",
    ExitCode.USAGE: "an argument, a file or a setting is wrong",
    ExitCode.UNKNOWN: "at least one answer is not known",
    ExitCode.INTERRUPTED: "Ctrl-C; what was known until then is written",
    ExitCode.BROKEN_PIPE: "the reader of the output has ended",
}
"""One line for each exit code, for help texts."""


class CommandError(Exception):
    """Ends a subcommand with one line on standard error and an exit code.

    The message may quote text of a site or a file: it is escaped and cut where it is shown.
    """

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code
