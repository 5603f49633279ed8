"""An origin at a time, as an argument names it: ``archive:SITE`` and ``archive:SITE@TIME``."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from .exits import CommandError
from .targets import target_of

if TYPE_CHECKING:
    import argparse

ARCHIVED = "archive:"
"""What stands before a site to name its robots.txt as an archive has it."""

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.\d+)?)? ?(Z|[+-]\d\d:\d\d|UTC)?)?", re.ASCII
)


class Moment(NamedTuple):
    """An origin at a time."""

    origin: str
    until: float = inf
    """Responses to requests before this time count, in seconds since 1970."""
    time: str | None = None
    """The time as it was given. None: the end of the archive."""


def moment_of(given: str) -> Moment:
    """Return what an argument names that begins with :data:`ARCHIVED`.

    Raises :class:`CommandError` if it names nothing.
    """
    site, at, time = given.removeprefix(ARCHIVED).partition("@")
    origin = target_of(site).origin
    if origin is None:
        raise CommandError(f"{given} names no site")
    if not at:
        return Moment(origin)
    try:
        return Moment(origin, until_of(time), time)
    except (ValueError, OverflowError):
        raise CommandError(
            f"{time!r} is no time: write 2026-11-22 or 2026-11-22T10:00, in UTC"
        ) from None


def until_of(text: str) -> float:
    """Return the end of a day, a minute or a second, in seconds since 1970. Raises ValueError.

    >>> until_of("2026-11-22") == until_of("2026-11-22T23:59Z")
    True
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("it has another form")
    day, minute, second, zone = found.groups()
    unit = timedelta(days=1) if minute is None else timedelta(minutes=1)
    if second is not None:
        unit = timedelta(seconds=1)
    offset = "+00:00" if zone in (None, "Z", "UTC") else zone
    start = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}{offset}")
    return (start + unit).timestamp()


def add_archive_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names archives."""
    parser.add_argument(
        "--archive",
        action="append",
        metavar="FILE",
        help=f"the WARC file for {ARCHIVED}SITE; may be repeated; default: the files of "
        "REP_ARCHIVE",
    )
