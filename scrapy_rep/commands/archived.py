"""The robots.txt of an origin at a time, from an archive (REP_ARCHIVE, or ``--archive FILE``).

An archive has the responses that a site sent. The policy at a time is what they meant to a crawl
then: :mod:`scrapy_rep.origin` reads the last response before that time, and an earlier copy where
the crawl used one. An archive may have gigabytes: of each origin at most two files are kept.
"""

from __future__ import annotations

import glob
import re
from dataclasses import replace
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace as changed

from ..fetch.fetcher import status_policy
from ..origin import Origin
from ..protocol.access import (
    MAX_REDIRECTS,
    AccessResult,
    CopyInfo,
    NotModified,
    Rules,
    Unavailable,
    Unreachable,
    access_result,
)
from ..protocol.paths import robots_txt_url
from ..protocol.robotstxt import other_page
from .output import CommandError, ExitCode, reading
from .sources import moment, of_origin, time_text, verdict_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..protocol.access import FetchResult, StatusPolicy
    from ..reports.archive_reader import ArchivedRobotsTxt, ArchiveProblem
    from .context import Context
    from .sources import Moment, Policy

MAX_HOPS = 20
"""Redirects of one fetch that are kept. A crawl follows five."""

_PLACEHOLDER = re.compile(r"%(?:(%)|\(\w+\)s)")


def policies_of(moments: Iterable[Moment], context: Context) -> dict[Moment, Policy]:
    """Return the policies of some origins, each at a time. Each file is read once.

    Raises :class:`CommandError` for a file that is no archive, and for an origin that is not in it.
    """
    paths = _paths(context)
    histories = [
        _History(each, status_policy(context.settings, Origin(each.origin))) for each in moments
    ]
    origins = {history.moment.origin for history in histories}
    for path, found in _responses(paths, origins, context):
        for history in histories:
            if history.moment.origin == found.origin:
                history.add(path, found)
    return {history.moment: _policy(history, paths, context) for history in histories}


class _Response(NamedTuple):
    """A response that ended a fetch, or that was the last one of a fetch."""

    path: str
    found: ArchivedRobotsTxt
    result: AccessResult
    redirects: tuple[str, ...]
    """The URLs that redirected, in order."""


class _History:
    """What an archive has of one origin before a time. It keeps two files at most."""

    def __init__(self, moment: Moment, statuses: StatusPolicy) -> None:
        self.moment = moment
        self.last: _Response | None = None
        """The last response."""
        self.first: float = inf
        """The time of the first response, also if it is later than the moment."""
        self._copy: ArchivedRobotsTxt | None = None
        self._copy_removed_at = -inf
        """The time of the last response that removed the copy of a crawl."""
        self._statuses = statuses
        self._hops: list[str] = []

    @property
    def copy(self) -> ArchivedRobotsTxt | None:
        """The good copy that a crawl has after the last response; None if there is none."""
        copy = self._copy
        return copy if copy is not None and copy.time >= self._copy_removed_at else None

    def add(self, path: str, found: ArchivedRobotsTxt) -> None:
        """Add a response of the origin. The last one by its time counts."""
        self.first = min(self.first, found.time)
        if found.time >= self.moment.until:
            return
        result = AccessResult.RULES  # a file that came over FTP
        if found.status is not None:
            is_conditional = found.sha256 is not None
            result = access_result(found.status, self._statuses, conditional=is_conditional)
        if result is AccessResult.RULES and found.body is not None:
            result = other_page(found.body) or result
        if result is not AccessResult.RULES:
            found = found._replace(body=None)
        if found.url == robots_txt_url(found.origin):
            self._hops = []  # the first request of a fetch
        response = _Response(path, found, result, tuple(self._hops))
        if result is AccessResult.REDIRECT and len(self._hops) < MAX_HOPS:
            self._hops.append(found.url)
        if self.last is None or found.time >= self.last.found.time:
            self.last = response
        if found.body is not None and (self._copy is None or found.time >= self._copy.time):
            self._copy = found
        if result.is_unavailable:
            self._copy_removed_at = max(self._copy_removed_at, found.time)


def _policy(history: _History, paths: Sequence[str], context: Context) -> Policy:
    last, key = history.last, history.moment.origin
    if last is None:
        at = "" if history.moment.time is None else f" at {history.moment.time}"
        if history.first < inf:
            at += f": its first response is of {time_text(moment(history.first))}"
        raise CommandError(f"the archive has no robots.txt of {key}{at}", ExitCode.UNKNOWN)
    copy, found = history.copy, last.found
    if last.result is AccessResult.NOT_MODIFIED and (copy is None or copy.sha256 != found.sha256):
        copy = _copy_of(found, paths, context)
    origin = Origin(key)
    if copy is not None:
        assert copy.body is not None
        content = origin.resource.parse(copy.body, strict=False, url=copy.url)
        origin.start_fetch(copy.time)
        origin.apply(Rules(content, copy.status or 200, CopyInfo(copy.url), copy.time), copy.time)
    if copy is not found:
        origin.start_fetch(found.time)
        event = _event(last, too_many=context.settings.too_many_redirects)
        origin.apply(event, found.time)
    origin.redirects = last.redirects
    body = None if copy is None else copy.body
    policy = of_origin(origin, verdict_at(origin, found.time), body=body, store=None)
    access = changed(
        policy.access,
        source="archive",
        archive=last.path,
        fetched_at=moment(found.time),
        # These depend on the headers, and on attempts that got no response.
        expires_at=None,
        unreachable_since=None,
    )
    return replace(policy, access=access)


def _event(last: _Response, *, too_many: str) -> FetchResult:
    found = last.found
    match last.result:
        case AccessResult.NOT_MODIFIED:
            return NotModified(found.time)
        case result if result.is_unavailable:
            return Unavailable(found.url, found.time, found.status, result)
        case AccessResult.RULES:
            failure = "a body that is cut off, cannot be decoded, or is not in its record"
        case AccessResult.REDIRECT:
            if len(last.redirects) >= MAX_REDIRECTS and too_many != "unreachable":
                return Unavailable(found.url, found.time)
            failure = f"status {found.status}, a redirect that was not followed"
        case _:
            failure = f"status {found.status}"
    return Unreachable(failure, found.status, found.url)


def _copy_of(found: ArchivedRobotsTxt, paths: Sequence[str], context: Context) -> ArchivedRobotsTxt:
    """Return the copy that a 304 refers to."""
    for _, other in _responses(paths, {found.origin}, context, is_first=False):
        if other.body is not None and other.sha256 == found.sha256:
            return other._replace(time=min(other.time, found.time))
    raise CommandError(
        f"the archive has no robots.txt of {found.origin} for its 304 of "
        f"{time_text(moment(found.time))}: the crawl had the file from a store or a cache",
        ExitCode.UNKNOWN,
    )


def _paths(context: Context) -> list[str]:
    if context.archives:
        return context.archives
    template = context.settings.archive
    if template is None:
        raise CommandError("archive: needs a WARC file: name it with --archive, or set REP_ARCHIVE")
    pattern, position = "", 0
    for match in _PLACEHOLDER.finditer(template):
        pattern += glob.escape(template[position : match.start()]) + (match[1] or "*")
        position = match.end()
    pattern += glob.escape(template[position:])
    # A crawl adds a number to the name of a file that there is already.
    stem, suffix, end = pattern.partition(".warc")
    paths = sorted({*glob.glob(pattern), *glob.glob(f"{stem}-[0-9]*{suffix}{end}")})
    if not paths:
        raise CommandError(f"there is no file {template}, which REP_ARCHIVE names")
    return paths


def _responses(
    paths: Sequence[str], origins: set[str], context: Context, *, is_first: bool = True
) -> Iterator[tuple[str, ArchivedRobotsTxt]]:
    """Yield the responses of some origins, each with the path of its file.

    ``is_first``: whether the files are read for the first time, so that problems are reported.
    """
    read = archive_reader().read
    with context.output.progress("files of the archive", len(paths)) as progress:
        for number, path in enumerate(paths, 1):
            problems: list[ArchiveProblem] = []
            has_responses = False
            with reading(path):
                for found in read(path, problems.append, origins=origins):
                    has_responses = True
                    yield path, found
            if problems and is_first:
                first = problems[0]
                if first.offset == 0 and not has_responses:
                    raise CommandError(f"cannot read {path} as a WARC file: {first.reason}")
                parts = "A part" if len(problems) == 1 else f"{len(problems):,} parts"
                context.is_incomplete = True
                context.output.warn(
                    f"{parts} of {path} cannot be read, at offset {first.offset}: {first.reason}. "
                    "A robots.txt there is missing"
                )
            progress(number)


def archive_reader() -> Any:
    """Return the module that reads archives. Raises :class:`CommandError` without warcio."""
    try:
        return import_module("..reports.archive_reader", __package__)  # which imports warcio
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "warcio":
            raise
        raise CommandError("archives need the package warcio: pip install warcio") from None
