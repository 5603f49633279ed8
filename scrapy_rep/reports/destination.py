"""Where a crawl writes its report: the paths of REP_REPORT, and the path of its part file.

``%(name)s`` is the name of the spider and ``%(time)s`` the start of the crawl, as in Scrapy's
FEEDS. Any other name is an attribute of the spider.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime, timezone
from errno import EISDIR
from pathlib import Path
from secrets import token_hex
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any, NamedTuple

from ..exceptions import SettingError
from .rendering import renderer_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scrapy import Spider

    from .model import Report

SETTING = "REP_REPORT"

PART_SUFFIX = ".part"

JOB_FOLDER = "robots-report"
"""The folder in JOBDIR for the part files of all runs of a job."""


class Target(NamedTuple):
    """A file of the report."""

    path: Path
    render: Callable[[Report], str]


class Destination(NamedTuple):
    """The files of one run."""

    targets: list[Target]
    part: Path
    is_job: bool
    """Whether the other part files in the folder are of the same job."""


class _Parameters(dict[str, Any]):
    """The values for ``%(name)s`` in a path."""

    def __init__(self, spider: Spider | None, **values: str) -> None:
        super().__init__(values)
        self._spider = spider

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._spider, name)
        except AttributeError:
            raise KeyError(name) from None


def destination_of(
    templates: Sequence[str],
    spider: Spider | None,
    run_id: str,
    started_at: float,
    jobdir: str | None,
) -> Destination:
    """Return the files of a run, after creating their folders.

    Raises :class:`~scrapy_rep.exceptions.SettingError` if one of them cannot be written.
    """
    time = datetime.fromtimestamp(started_at, timezone.utc).replace(microsecond=0)
    name = str(getattr(spider, "name", None) or "spider")
    parameters = _Parameters(spider, name=name, time=time.isoformat().replace(":", "-"))
    targets = [_target(template, parameters) for template in templates]
    for template, target in zip(templates, targets, strict=True):
        _check_folder(template, target.path)
    if jobdir:
        folder = Path(jobdir, JOB_FOLDER)
        part = folder / f"{run_id}{PART_SUFFIX}"
    else:
        first = targets[0].path
        # A file name has at most 255 octets.
        part = first.with_name(f"{first.stem[:150]}.{run_id}{PART_SUFFIX}")
    _check_folder(templates[0], part)
    return Destination(targets, part, bool(jobdir))


def has_other_parts(part: Path, since: float) -> bool:
    """Return whether another run has written a part file of the same report since a time.

    Raises OSError.
    """
    name, _, _ = part.name.rsplit(".", 2)
    for other in part.parent.iterdir():
        is_part = other.name.startswith(f"{name}.") and other.suffix == PART_SUFFIX
        if is_part and other != part:
            with suppress(FileNotFoundError):  # its run has just ended
                if other.stat().st_mtime >= since:
                    return True
    return False


def new_run_id(started_at: float) -> str:
    """Return an identifier that no other run has. It is a part of a file name."""
    time = datetime.fromtimestamp(started_at, timezone.utc)
    return f"{time:%Y%m%dT%H%M%S}-{os.getpid()}-{token_hex(4)}"


def _target(template: str, parameters: Mapping[str, Any]) -> Target:
    try:
        render = renderer_for(template)
    except ValueError as expected:
        raise _error(template, f"it must be {expected}") from None
    try:
        path = template % parameters
    except KeyError as error:
        raise _error(template, f"the spider has no attribute {error}") from None
    except (TypeError, ValueError) as error:
        raise _error(template, f"it is no template such as '%(name)s.json': {error}") from None
    return Target(Path(path), render)


def _check_folder(template: str, path: Path) -> None:
    """Create the folder of a file, and check that the file can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            if S_ISDIR(path.stat().st_mode):
                raise IsADirectoryError(EISDIR, "it is a directory")
        # The file is written under another name first, and then replaces the old one.
        probe = path.with_name(f".{token_hex(8)}.tmp")
        probe.touch(exist_ok=False)
        probe.unlink()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _error(template, f"{path} cannot be written: {problem}") from None


def _error(template: str, problem: str) -> SettingError:
    return SettingError(f"{SETTING} is {template!r}: {problem}")
