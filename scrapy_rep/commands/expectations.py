"""A file of expectations: what a robots.txt must say, one expectation on each line.

::

    file        = *( [expectation] [comment] NL )
    expectation = ("allow" / "disallow") WS agent WS target
                / ("refuse" / "grant") WS agent WS use WS target
    agent       = "*" / name, or a text in quotation marks     the values of -a
    target      = a path that starts with "/", or a URL
    comment     = "#" at the start of a line or behind white space, and the rest of the line
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from ..protocol.usage import use
from ..protocol.vocabularies import AIPREF, GRANTS, SIGNALS
from .agent_option import Agent, resolve
from .exits import CommandError
from .targets import Target, target_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..protocol.verdict import Verdict

MAX_EXPECTATIONS = 100_000
"""Lines of a file that are read."""

USES = tuple(dict.fromkeys([*AIPREF, *SIGNALS]))
"""The names of uses: those of AIPREF, and those of Content-Signal, which stand for them."""

ALL_OTHERS = "*"

_COMMENT = re.compile(r"(?:\A|\s)#.*")
_WORD = re.compile(r'"([^"]*)"|(\S+)')


class Kind(str, Enum):
    """What is expected."""

    ALLOW = "allow"
    DISALLOW = "disallow"
    REFUSE = "refuse"
    GRANT = "grant"

    def __str__(self) -> str:
        return self.value

    @property
    def has_use(self) -> bool:
        """Whether the use of the content is expected, not a verdict."""
        return self in (Kind.REFUSE, Kind.GRANT)


class Expectation(NamedTuple):
    """One expectation for one crawler."""

    line: int
    kind: Kind
    agent: Agent
    use: str | None
    """The use, as the file names it."""
    target: Target

    def __str__(self) -> str:
        words = [self.kind.value, self.agent.name, self.use, self.target.given]
        return " ".join(word for word in words if word)

    def holds(self, verdict: Verdict | None, uses: dict[str, bool]) -> bool | None:
        """Return whether it holds; None if it is not known."""
        if verdict is None:
            return None
        match self.kind:
            case Kind.ALLOW:
                return verdict.allowed
            case Kind.DISALLOW:
                return not verdict.allowed
            case Kind.REFUSE:
                return uses.get(use(self.use or "")) is False
            case Kind.GRANT:
                return uses.get(use(self.use or "")) is True


def read_expectations(text: bytes, name: str, *, paths: str | None) -> list[Expectation]:
    """Return the expectations of a file, at least one.

    ``paths``: the origin that paths belong to; empty for a robots.txt file; None if a path is not
    enough. Raises :class:`CommandError` for an unreadable line, with its number.
    """
    try:
        lines = text.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise CommandError(f"cannot read {name}: it is no UTF-8 text") from None
    found: list[Expectation] = []
    for number, line in enumerate(lines, 1):
        try:
            found += _read_line(number, line, paths)
        except ValueError as error:
            raise CommandError(f"{name}, line {number}: {error}") from None
        if len(found) > MAX_EXPECTATIONS:
            raise CommandError(f"{name} has more than {MAX_EXPECTATIONS:,} expectations")
    if not found:
        raise CommandError(f"{name} has no expectations")
    return found


def _read_line(number: int, line: str, paths: str | None) -> Iterator[Expectation]:
    words = [
        quoted or word for quoted, word in _WORD.findall(_COMMENT.sub("", line)) if quoted or word
    ]
    if not words:
        return
    kinds = {kind.value: kind for kind in Kind}
    kind = kinds.get(words[0].lower())
    if kind is None:
        raise ValueError(f"{words[0]!r} is none of {', '.join(kinds)}")
    form = f"{kind} AGENT {'USE ' if kind.has_use else ''}PATH"
    if len(words) != len(form.split()):
        raise ValueError(f"write {form!r}")
    _, name, *others, given = words
    name_of_use = _use(others[0], kind) if others else None
    target = _target(given, paths)
    for agent in _agents(name):
        yield Expectation(number, kind, agent, name_of_use, target)


def _use(name: str, kind: Kind) -> str:
    if name not in USES:
        raise ValueError(f"{name!r} is none of the uses {', '.join(USES)}")
    if kind is Kind.GRANT and name not in GRANTS:
        raise ValueError(f"{name!r} can be refused, but its grant has no effect")
    return name


def _target(given: str, paths: str | None) -> Target:
    is_path = given.startswith("/") and not given.startswith("//")
    if is_path and paths is None:
        raise ValueError(f"{given} is a path: name the robots.txt with --robots, or write a URL")
    if is_path and paths:
        return target_of(paths + given)._replace(given=given)
    target = target_of(given, in_file=True)
    if not target.is_valid or (target.origin is None and not is_path):
        raise ValueError(f"{given!r} is neither a path nor a URL with a robots.txt")
    return target


def _agents(name: str) -> list[Agent]:
    if name == ALL_OTHERS:
        return [Agent(ALL_OTHERS, ())]
    return resolve([name])
