"""The robots.txt of an origin at a time, from WARC files (``--archive FILE``).

An archive has the responses that a site sent. :mod:`scrapy_rep.origin` reads them in the order of
their time, as a crawl did.
"""

from __future__ import annotations

from dataclasses import replace
from heapq import merge
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any

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
from .sources import moment, of_origin, verdict_at

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ..protocol.access import FetchResult, StatusPolicy
    from ..reports.archive_reader import ArchivedRobotsTxt, ArchiveProblem
    from .context import Context
    from .sources import Moment, Policy


def policy_at(at: Moment, context: Context) -> Policy:
    """Return the policy of an origin at a time.

    Raises :class:`CommandError` for a file that is not an archive, and for an origin that is not in
    it.
    """
    policy = None
    for policy in replay({at.origin}, context, at.until):  # noqa: B007
        pass
    if policy is None:
        text = f" at {at.time}" if at.time else ""
        raise CommandError(f"the archive has no robots.txt of {at.origin}{text}", ExitCode.UNKNOWN)
    return policy


def replay(origins: Container[str], context: Context, until: float = inf) -> Iterator[Policy]:
    """Yield the policy of an origin after each of its responses, in the order of their time.

    A policy holds until the next one of its origin.
    """
    if not context.archives:
        raise CommandError("archive: needs a WARC file: name it with --archive")
    read = archive_reader().read
    known: dict[str, _ArchivedOrigin] = {}
    files = [_responses(read, path, origins, context) for path in context.archives]
    for found, path in merge(*files, key=lambda response: response[0].time):
        if found.time >= until:
            return
        if found.origin not in known:
            known[found.origin] = _ArchivedOrigin(found.origin, context)
        yield known[found.origin].policy_after(found, path)


class _ArchivedOrigin:
    """An origin, whose responses are read one after the other."""

    def __init__(self, origin: str, context: Context) -> None:
        self._origin = Origin(origin)
        self._statuses = status_policy(context.settings, self._origin)
        self._copy: ArchivedRobotsTxt | None = None
        self._hops = 0

    def policy_after(self, found: ArchivedRobotsTxt, path: str) -> Policy:
        """Return the policy after a response."""
        origin = self._origin
        if found.url == robots_txt_url(origin.key):
            self._hops = 0
        result = _result(found, self._statuses)
        self._hops += result is AccessResult.REDIRECT
        if result is AccessResult.RULES:
            self._copy = found
        copy = self._copy
        origin.start_fetch(found.time)
        if result is AccessResult.NOT_MODIFIED and (
            copy is None or origin.copy is None or copy.sha256 != found.sha256
        ):
            failure = "a 304 for a file that is not in the archive"
            origin.apply(Unreachable(failure, found.status, found.url), found.time)
        else:
            origin.apply(_event(origin, found, result, self._hops), found.time)
        body = copy and copy.body
        policy = of_origin(origin, verdict_at(origin, found.time), body=body, store=None)
        # Further times depend on the headers, and on attempts that got no response.
        access = changed(
            policy.access,
            source="archive",
            archive=path,
            fetched_at=moment(found.time),
            expires_at=None,
            unreachable_since=None,
        )
        return replace(policy, access=access)


def _result(found: ArchivedRobotsTxt, statuses: StatusPolicy) -> AccessResult:
    if found.status is None:  # a file that came over FTP
        return AccessResult.RULES
    result = access_result(found.status, statuses, conditional=found.sha256 is not None)
    if result is AccessResult.RULES and found.body is not None:
        return other_page(found.body) or result
    return AccessResult.UNREACHABLE if result is AccessResult.RULES else result


def _event(
    origin: Origin, found: ArchivedRobotsTxt, result: AccessResult, hops: int
) -> FetchResult:
    if result is AccessResult.RULES:
        content = origin.resource.parse(found.body or b"", strict=False, url=found.url)
        return Rules(content, found.status or 200, CopyInfo(found.url), found.time)
    if result is AccessResult.NOT_MODIFIED:
        return NotModified(found.time)
    if result.is_unavailable:
        return Unavailable(found.url, found.time, found.status, result)
    if hops > MAX_REDIRECTS:
        return Unavailable(found.url, found.time)
    failure = f"status {found.status}"
    if hops:
        failure += ", a redirect that was not followed"
    elif found.status is not None and found.status < 300:
        failure = "a body that is cut off, cannot be decoded, or is not in its record"
    return Unreachable(failure, found.status, found.url)


def _responses(
    read: Any, path: str, origins: Container[str], context: Context
) -> Iterator[tuple[ArchivedRobotsTxt, str]]:
    """Yield the responses of some origins, each with the path of its file."""
    problems: list[ArchiveProblem] = []
    has_responses = False
    with reading(path):
        for found in read(path, problems.append, origins=origins):
            has_responses = True
            yield found, path
    if problems:
        first = problems[0]
        if first.offset == 0 and not has_responses:
            raise CommandError(f"cannot read {path} as a WARC file: {first.reason}")
        parts = "A part" if len(problems) == 1 else f"{len(problems):,} parts"
        context.is_incomplete = True
        context.output.warn(
            f"{parts} of {path} cannot be read, at offset {first.offset}: {first.reason}. "
            "A robots.txt there is missing",
            "parts of archives that cannot be read",
        )


def archive_reader() -> Any:
    """Return the module that reads archives. Raises :class:`CommandError` without warcio."""
    try:
        return import_module("..reports.archive_reader", __package__)  # which imports warcio
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "warcio":
            raise
        raise CommandError("archives need the package warcio: pip install warcio") from None
