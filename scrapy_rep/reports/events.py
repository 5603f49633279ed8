"""The events of a crawl, as the lines of its event log.

    log     = run *(event / run)
    run     = a `RunEvent`: at the start, when the spider closes, and when it changes
    event   = `RequestEvent` / `FetchEvent` / `FileEvent` / `PaceEvent` / `PageEvent`

Each line is a JSON array, such as this request that was sent::

    ["request","sent",1795336200.123,"https://shop.example","/cart",…,"rules",true,"*",…]

A log is compressed with gzip, in members that end with a line. A process that is killed may leave a
last member that is cut: the lines before it are used.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from .records import MAX_FILE_TEXT, MAX_TEXT, Count, Run, Seconds

# A file that another program has written may have any text and any time.
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
LATEST = 253_402_200_000.0
"""Seconds from 1970 to the end of 9999."""
At = Annotated[float, Meta(ge=0, le=LATEST)]

ReasonText = Literal[
    "",
    "rules",
    "no-rules",
    "unavailable",
    "not-robots-txt",
    "refused",
    "challenge",
    "disallowed-status",
    "unreachable",
    "too-complex",
    "invalid-host",
    "visit-time",
    "local-rule",
    "exempt",
    "unchecked",
]
"""Reports count by reason, so there are no others."""


class RunEvent(Struct, array_like=True, tag="run"):
    """A crawl begins or ends."""

    run: Run


class RequestEvent(Struct, array_like=True, tag="request"):
    """Something happens to a request, or to its response."""

    kind: Literal[
        "sent", "robots.txt", "dropped", "final-url", "final-url-dropped", "waited", "backoff"
    ]
    """``robots.txt``: a request for such a file is sent. ``final-url``: a response came from a
    disallowed URL. ``backoff``: the site has asked for fewer requests."""
    at: At
    origin: Text | None
    """None if the URL has no valid host."""
    path: Text
    """The path and query, or the whole URL if it has no valid host."""
    delay: Seconds
    """Of a request that is sent: the delay that the crawl keeps for its host. 0 for none. Of a
    back-off: how long it lasts."""
    reason: ReasonText = ""
    """A value of :class:`~scrapy_rep.Reason`, ``exempt`` or ``unchecked``. Empty for a request
    for a robots.txt. This field and those below are the verdict."""
    allowed: bool | None = None
    agent: Text | None = None
    allow: bool | None = None
    pattern: Text | None = None
    line: Count | None = None
    detail: Text | None = None
    policy_seconds: Seconds = 0.0
    """How long the request waited for its robots.txt."""
    pace_seconds: Seconds = 0.0
    """How long it waited for the pace of its site."""


class FetchEvent(Struct, array_like=True, tag="fetch"):
    """A robots.txt was fetched, or found in the store: the fields of a ``Version``."""

    at: At
    origin: Text
    fetched_at: At
    """When the last fetch ended. It is earlier than ``at`` if the file was found in the store."""
    result: Text
    effect: Text
    source: Text
    status: Count | None
    url: Text | None
    redirects: Annotated[list[Text], Meta(max_length=20)]
    failure: Text | None
    sha256: Text | None
    octets: Count | None
    expires_at: At | None


class FileEvent(Struct, array_like=True, tag="file"):
    """The content of a robots.txt."""

    sha256: Text
    octets: Count
    text: Annotated[str, Meta(max_length=MAX_FILE_TEXT)] | None


class PaceEvent(Struct, array_like=True, tag="pace"):
    """The pace of an origin is known."""

    at: At
    origin: Text
    records: Text
    local_delay: Seconds
    delay: Seconds


class PageEvent(Struct, array_like=True, tag="page"):
    """A response says something, or something is dropped because of what it says."""

    kind: Literal["directive", "usage", "terms", "license"]
    at: At
    origin: Text
    path: Text
    name: Text
    detail: Text
    refused: bool
    """Whether a use is refused."""
    dropped: bool
    """Whether this is about an item or a request that is dropped."""


Event = RunEvent | RequestEvent | FetchEvent | FileEvent | PaceEvent | PageEvent
