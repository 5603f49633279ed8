"""One robots.txt as the tools show it: its rules, its verdicts, and where it came from."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..origin import Origin, State
from ..protocol.access import AccessResult
from ..protocol.lines import read
from ..protocol.paths import robots_txt_url, verdict_as_sent
from ..protocol.printable import printable
from ..protocol.robotstxt import REASONS, RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..protocol.verdict import Verdict
    from ..stores import Entry
    from .texts import Row

_RESULTS = {
    AccessResult.RULES: "rules",
    AccessResult.UNREACHABLE: "unreachable",
    **{result: reason.value for result, reason in REASONS.items()},
}
_SOURCES = {
    "site": "from the site",
    "store": "from the store",
    "http-cache": "from Scrapy's HTTP cache",
    "archive": "from the archive",
}


class Access(Struct, kw_only=True, frozen=True):
    """Where a robots.txt came from.

    ``url`` is that of the robots.txt, or the name of a file. ``state``: ``rules``, ``unavailable``,
    ``not-robots-txt``, ``refused``, ``challenge``, ``disallowed-status``, ``unreachable``, or
    ``stale-copy``: the last good copy of a site that is unreachable. ``age`` is in seconds.
    ``expires_at``: when it is fetched again at the latest; while it is unreachable, when the next
    attempt is. From a store, ``redirects`` are not known.
    """

    url: str
    source: str
    store: str | None = None
    archive: str | None = None
    state: str
    status: int | None = None
    redirects: tuple[str, ...] = ()
    final_url: str | None = None
    failure: str | None = None
    fetched_at: datetime | None = None
    age: float | None = None
    expires_at: datetime | None = None
    unreachable_since: datetime | None = None

    @property
    def is_unreachable(self) -> bool:
        """Whether there are no rules because the site failed."""
        return self.state == "unreachable"

    @property
    def problem(self) -> str:
        """What to say of a site that is unreachable."""
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

    @property
    def text(self) -> bytes:
        """The lines that were read, without indentation. Each begins with a LF.

        Empty for a file of more than 500 KiB whose body is not kept.
        """
        if self.body is not None:
            return read(self.body)
        text = None if self.robots is None else self.robots.text
        return b"" if text is None else b"\n" + text

    @property
    def lines(self) -> list[bytes]:
        """The lines of :attr:`text`. The first is line 1."""
        return self.text[1:].removesuffix(b"\n").split(b"\n")


def of_file(name: str, body: bytes) -> Policy:
    """Return the policy of a robots.txt file."""
    robots = RobotsTxt(body)
    access = Access(url=name, source="file", state="rules")
    return Policy(None, robots, verdict_of(robots), access, body)


def of_entry(origin: str, entry: Entry, store: str) -> Policy:
    """Return the policy of an entry of a store."""
    robots = None if entry.body is None else RobotsTxt(entry.body)
    state = _RESULTS[entry.result]
    if robots is not None and state == "unreachable":
        state = "stale-copy"
    access = _access(entry, origin, "store", state, store, entry.expires_at)
    verdict = verdict_of(robots or RobotsTxt.from_response(entry.status))
    return Policy(origin, robots, verdict, access, entry.body)


def of_origin(
    origin: Origin,
    verdict: Callable[[str, tuple[str, ...]], Verdict],
    *,
    body: bytes | None,
    store: str | None,
) -> Policy:
    """Return the policy of an origin after its robots.txt was fetched or found in a store."""
    expires_at = origin.refresh_at if origin.state is State.UNREACHABLE else origin.expires_at
    source = "store" if origin.from_store else "http-cache" if origin.from_cache else "site"
    access = _access(origin, origin.key, source, _state(origin), store, expires_at)
    access = replace(access, redirects=origin.redirects)
    return Policy(origin.key, origin.robots, verdict, access, body if origin.robots else None)


def access_rows(access: Access) -> Iterator[Row]:
    """Yield names and texts that say where a robots.txt came from."""
    if access.source == "file":
        yield "robots.txt", f"the file {printable(access.url)}"
        return
    yield "robots.txt", printable(access.url)
    status = f"status {access.status}, " if access.status is not None else ""
    source = f"{_SOURCES[access.source]} {printable(access.store or access.archive or '')}".rstrip()
    age = "" if access.age is None else f", {_ago(access.age)}"
    if access.source == "archive":
        age = f", requested at {time_text(access.fetched_at)}"
    state = ", the last good copy" if access.state == "stale-copy" else ""
    yield "Fetched", f"{status}{source}{age}{state}"
    if access.redirects and access.final_url:
        yield "Redirects", " → ".join(map(printable, (*access.redirects, access.final_url)))
    elif access.final_url not in (None, access.url):
        yield "Redirected to", printable(access.final_url or "")
    if access.failure and access.state == "stale-copy":
        yield "Failure", printable(access.failure)
    if access.unreachable_since:
        yield "Since", time_text(access.unreachable_since)
    if access.expires_at:
        is_unreachable = access.state in ("unreachable", "stale-copy")
        yield "Next attempt" if is_unreachable else "Valid until", time_text(access.expires_at)


def moment(seconds: float | None) -> datetime | None:
    """Return a time, to the second."""
    return None if seconds is None else datetime.fromtimestamp(round(seconds), timezone.utc)


def time_text(at: datetime | None) -> str:
    """Return a time as text."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def verdict_of(robots: RobotsTxt) -> Callable[[str, tuple[str, ...]], Verdict]:
    """Return a function for :attr:`Policy.verdict` that applies the rules of a file."""
    return lambda url, tokens: verdict_as_sent(partial(robots.verdict, user_agent=tokens), url)


def _state(origin: Origin) -> str:
    if origin.state is State.UNAVAILABLE:
        return _RESULTS[origin.unavailable]
    if origin.robots is None:
        return "unreachable"
    return "stale-copy" if origin.failure is not None else "rules"


def _access(
    fetch: Origin | Entry, key: str, source: str, state: str, store: str | None, expires_at: float
) -> Access:
    at = fetch.fetched_at or None
    return Access(
        url=robots_txt_url(key),
        source=source,
        store=store,
        state=state,
        status=fetch.status,
        final_url=fetch.url,
        failure=fetch.failure,
        fetched_at=moment(at),
        age=None if at is None else round(max(time.time() - at, 0), 3),
        expires_at=moment(expires_at or None),
        unreachable_since=moment(fetch.unreachable_since),
    )


def _ago(seconds: float) -> str:
    for unit, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            number = int(seconds / unit)
            return f"{number} {name}{'s' * (number != 1)} ago"
    return "just now" if seconds < 1 else f"{seconds:.0f} s ago"
