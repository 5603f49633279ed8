"""What every subcommand gets: settings, output, files, and the way to the network."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from scrapy.utils.conf import arglist_to_dict
from scrapy.utils.project import get_project_settings

from ..exceptions import SettingError
from ..protocol.lines import SIZE_LIMIT
from ..settings import Settings, unknown_names
from .agent_option import Agent, of_user_agent, resolve
from .exits import CommandError
from .output import Output
from .policy import Policy, of_file

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence

    from scrapy.settings import Settings as ScrapySettings

    from .session import Session

T = TypeVar("T")

STANDARD_INPUT = "-"
"""The file name that stands for standard input."""

MAX_BODY = 4 * SIZE_LIMIT
"""Octets of a robots.txt file that are read. The rules are in the first `SIZE_LIMIT`."""


class Context:
    """The surroundings of one run of a subcommand."""

    def __init__(self, arguments: argparse.Namespace, settings: ScrapySettings) -> None:
        self.scrapy_settings = settings
        self.output = Output(as_json=arguments.json)
        self.archives: list[str] = getattr(arguments, "archive", None) or []
        """The archives that the user names. Only some subcommands read archives."""
        self.is_incomplete = False
        """Whether a part of the input cannot be read, so that the answer may be another one."""
        self.reads_tdm_files = False
        """Whether REP_TDMREP holds. The other subcommands do not show what these files say."""
        self._log_level: str | None = arguments.loglevel
        try:
            self.settings = Settings.read(settings)
        except SettingError as error:
            raise CommandError(str(error)) from None
        for name, similar in unknown_names(settings):
            hint = f" Do you mean {similar}?" if similar else ""
            self.output.warn(f"the setting {name} does not exist and is ignored.{hint}")

    @classmethod
    @contextmanager
    def open(
        cls, arguments: argparse.Namespace, settings: ScrapySettings | None
    ) -> Iterator[Context]:
        """Yield the context of the common arguments of a subcommand."""
        if settings is None:
            settings = _project_settings()
        try:
            given = arglist_to_dict(arguments.set)
        except ValueError:
            given = {"": ""}
        if "" in given:
            raise CommandError("-s takes NAME=VALUE")
        for name, value in given.items():
            try:
                settings.set(name, value, priority="cmdline")
            except ValueError as error:  # a setting of Scrapy that is a dict, and no JSON
                raise CommandError(f"{name} is {value!r}, which is no JSON: {error}") from None
        context = cls(arguments, settings)
        try:
            yield context
        finally:
            context.output.close()

    def agents(self, names: Sequence[str]) -> list[Agent]:
        """Return the crawlers that ``-a`` names; without one, that of the settings.

        Warns about names that a site cannot tell apart.
        """
        agents = resolve(names) if names else [of_user_agent(self.settings.user_agent(None))]
        for agent in agents:
            if agent.warning:
                self.output.repeated_warning("warnings about crawlers", agent.warning)
        return agents

    def read_file(self, name: str) -> bytes:
        """Return the start of a file, or of standard input for ``-``. It may be of any size."""
        try:
            if name == STANDARD_INPUT:
                return standard_input().read(MAX_BODY)
            with Path(name).open("rb") as file:
                return file.read(MAX_BODY)
        except OSError as error:
            raise CommandError(f"cannot read {name}: {error.strerror or error}") from None

    def read_policy(self, name: str) -> Policy:
        """Return the policy of a robots.txt file on this machine."""
        return of_file(name, self.read_file(name), strict=self.settings.strict)

    def run(self, work: Callable[[Session], Awaitable[T]], *, keep_bodies: bool = False) -> T:
        """Start Scrapy, and return the result of ``work``, which gets a session.

        Raises KeyboardInterrupt after Ctrl-C.
        """
        from .session import run  # only what needs the network starts Scrapy

        settings = self.scrapy_settings
        if not self.reads_tdm_files:
            settings = settings.copy()
            settings.set("REP_TDMREP", False, priority="cmdline")
        return run(settings, work, log_level=self._log_level, keep_bodies=keep_bodies)


def standard_input() -> BinaryIO:
    """Return standard input. Raises :class:`CommandError` if it is closed."""
    if sys.stdin is None:
        raise CommandError("cannot read standard input: it is closed")
    return sys.stdin.buffer


def run_without_network(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise RuntimeError("the coroutine waits for something")


def _project_settings() -> ScrapySettings:
    try:
        return get_project_settings()
    except Exception as error:  # of the project's own code
        raise CommandError(
            f"the settings of the project cannot be loaded: {type(error).__name__}: {error}"
        ) from None
