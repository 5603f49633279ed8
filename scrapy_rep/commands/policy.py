"""One robots.txt in a tool: its rules, and where it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from ..protocol.access import REASONS
from ..protocol.access import Answer as AccessAnswer
from ..protocol.lines import read
from ..protocol.printable import printable
from ..protocol.robotstxt import RobotsTxt
from ..protocol.verdict import Verdict
from ..reports.records import LATEST, moment, utc

if TYPE_CHECKING:
    from ..origin import Origin
    from .texts import Row


class Access(Struct, kw_only=True, frozen=True):
    """Where a robots.txt came from.

    ``url`` is that of the robots.txt, or the name of a file. ``state``: ``rules``, ``unavailable``,
    ``not-robots-txt``, ``refused``, ``challenge``, ``disallowed-status``, ``unreachable``, or
    ``stale-copy``: the last good copy of a site that is unreachable. ``expires_at``: when it is
    fetched again at the latest; while it is unreachable, when the next attempt is.
    """

    url: str
    source: str
    state: str
    status: int | None = None
    final_url: str | None = None
    failure: str | None = None
    fetched_at: datetime | None = None
    expires_at: datetime | None = None
    unreachable_since: datetime | None = None

    @property
    def is_unreachable(self) -> bool:
        return self.state == "unreachable"

    @property
    def problem(self) -> str:
        return f"{self.url} is unreachable: {self.failure or self.status}"


@dataclass(frozen=True, slots=True)
class Policy:
    """The robots.txt of an origin, or a file."""

    origin: str | None
    """``scheme://host[:port]``; None for a file."""
    robots: RobotsTxt | None
    """The rules that apply; None if there are none, because of the status or of a failure."""
    verdict: Callable[[str, tuple[str, ...]], Verdict]
    """Returns the verdict on a URL for a crawler with these product tokens."""
    access: Access
    body: bytes | None = None
    """The file as it was received, if the session keeps it."""
    seconds_between: Callable[[tuple[str, ...]], float] = lambda _: 0
    """Returns the delay that a crawl keeps for a crawler with these product tokens."""
    answer: AccessAnswer | None = None
    """The last response of the site; None for a file, and for an entry of the store."""

    @property
    def text(self) -> bytes:
        """The lines that were read, without indentation. Each begins with a LF.

        Empty for a file of more than 500 KiB whose body is not kept.
        """
        if self.body is not None:
            return read(self.body)
        text = None if self.robots is None else self.robots.text
        return b"" if text is None else b"\n" + text


def access_of(origin: Origin) -> Access:
    is_unreachable = origin.state == "unreachable"  # the module of State needs Scrapy
    if origin.result.is_unavailable:
        state = REASONS[origin.result].value
    elif origin.content is None:
        state = "unreachable"
    else:
        state = "rules" if origin.failure is None else "stale-copy"
    return Access(
        url=origin.file_url,
        source=origin.source,
        state=state,
        status=origin.status,
        final_url=origin.url,
        failure=origin.failure,
        fetched_at=to_second(origin.fetched_at or None),
        expires_at=to_second((origin.refresh_at if is_unreachable else origin.expires_at) or None),
        unreachable_since=to_second(origin.unreachable_since),
    )


def access_rows(access: Access) -> Iterator[Row]:
    if access.source == "file":
        yield "robots.txt", f"the file {printable(access.url)}"
        return
    yield "robots.txt", printable(access.url)
    status = f"status {access.status}, " if access.status is not None else ""
    at = f", {moment(access.fetched_at)}" if access.fetched_at else ""
    state = ", the last good copy" if access.state == "stale-copy" else ""
    label = "Last attempt" if access.state == "unreachable" else "Fetched"
    yield label, f"{status}from the {access.source}{at}{state}"
    if access.final_url not in (None, access.url):
        yield "Redirected to", printable(access.final_url or "")
    if access.failure and access.state == "stale-copy":
        yield "Failure", printable(access.failure)
    if access.unreachable_since:
        yield "Since", moment(access.unreachable_since)
    if access.expires_at:
        is_unreachable = access.state in ("unreachable", "stale-copy")
        yield "Next attempt" if is_unreachable else "Valid until", moment(access.expires_at)


def to_second(seconds: float | None) -> datetime | None:
    return None if seconds is None else utc(min(round(seconds), LATEST))
