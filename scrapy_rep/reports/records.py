"""The records of a report, which are also its JSON form, and the events of its log.

Each text is cut to a length. A site chose most of them, so a page has to escape them. The log of a
crawl has an event in each line::

    log     = run *(event / run)
    run     = a `RunEvent`: at the start, when the spider closes, and when it changes
    event   = `RequestEvent` / `FetchEvent` / `FileEvent` / `PaceEvent` / `PageEvent`

Each line is a JSON array, such as this request that was sent::

    ["request","sent",1795336200.123,"https://shop.example","/cart",…,"rules",true,"*",…]

A log is compressed with gzip, in members that end with a line. A process that is killed may leave a
last member that is cut: the lines before it are used.
"""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

VERSION = 1
"""The version of the JSON form. A field may be added without a new version."""

MAX_TEXT = 300
"""Characters of a URL, a pattern or another text of a site."""

MAX_FILE_TEXT = 20_000
"""Characters of a robots.txt. The text of a longer one is not kept."""

MAX_NAMES = 50
"""Directives, uses and licenses of one origin, of each kind."""

MAX_EXAMPLES = 5
"""The example URLs of each rule and of each directive."""

EXEMPT, UNCHECKED = "exempt", "unchecked"
"""The reasons of requests that were sent without a verdict: because of ``dont_obey_robotstxt``, and
because no component checked them. All other reasons are values of :class:`~scrapy_rep.Reason`."""

# A file that another program has written may have any number. Sums of these stay exact and finite.
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
Time = Annotated[datetime, Meta(tz=True)]
"""JSON has it in ISO 8601, in UTC."""


def utc(seconds: float) -> datetime:
    """Return a time in seconds since 1970 as a record has it."""
    return datetime.fromtimestamp(seconds, timezone.utc)


class Counts(Struct):
    """What happened to the requests for pages, and the requests for robots.txt files.

    A request that was sent several times, because it was retried, counts each time.
    """

    sent: Count = 0
    """Requests for pages. Their sum is divided by the verdict in the next four fields."""
    sent_allowed: Count = 0
    sent_exempt: Count = 0
    """With ``dont_obey_robotstxt``."""
    sent_disallowed: Count = 0
    """0 unless a component of the project sends requests past the middleware."""
    sent_unchecked: Count = 0
    """Without a verdict, and not exempt."""
    dropped: Count = 0
    """Requests for pages that were not sent."""
    dropped_for: dict[str, Count] = {}
    """The same by the reason of their verdict."""
    final_url_disallowed: Count = 0
    """Responses that came from a disallowed URL, because a browser or a download handler followed a
    redirect (REP_CHECK_FINAL_URL)."""
    final_url_dropped: Count = 0
    """Those of them that were dropped after they were received."""
    delayed: Count = 0
    """How often requests waited for the pace of their site."""
    delay_seconds: Seconds = 0.0
    """The time that they waited in total. Requests wait at the same time."""
    waited: Count = 0
    """How often requests waited for a robots.txt."""
    wait_seconds: Seconds = 0.0
    robots_txt: Count = 0
    """Requests for robots.txt files that were sent to this origin, redirects to it included; with
    REP_TDMREP, those for TDM files, too."""
    backoffs: Count = 0
    """How often sites asked for fewer requests, with status 429 or 503 of a page."""
    backoff_seconds: Seconds = 0.0
    """How long they were held because of that."""

    @property
    def disallowed(self) -> int:
        """The disallowed pages that were requested or received."""
        return self.sent_disallowed + self.final_url_disallowed


class RuleText(Struct):
    """An allow or disallow rule. ``str`` is the rule as it is written in its file."""

    allow: bool
    pattern: str
    line: Count

    def __str__(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {self.pattern}"


class Deciding(Struct):
    """What decided about requests, and what happened to them.

    This is a rule of a robots.txt, a local rule, or a reason without a rule.
    """

    reason: str
    """A value of :class:`~scrapy_rep.Reason`, ``exempt`` or ``unchecked``."""
    allowed: bool | None = None
    """The verdict. None for ``exempt`` and ``unchecked``."""
    sha256: str | None = None
    """The robots.txt that has the rule, if it is known."""
    agent: str | None = None
    """The product token of the group that was used."""
    rule: RuleText | None = None
    detail: str | None = None
    """More about the reason: the status, the hours of a Visit-time, the reason of a local rule."""
    sent: Count = 0
    dropped: Count = 0
    final_url: Count = 0
    """Responses that came from a URL with this verdict, in place of the URL of their request."""
    examples: list[str] = []
    """Up to five URLs."""

    @property
    def requests(self) -> int:
        """The requests that it decided."""
        return self.sent + self.dropped + self.final_url


class Version(Struct):
    """One state of a robots.txt, from the first fetch that found it to the last."""

    result: str
    """What the fetch found: ``rules``, ``unavailable``, ``disallowed`` (the status is one of
    REP_DISALLOW_STATUSES), or ``unreachable``."""
    effect: str
    """What the crawl then applied: ``rules`` (of the file with this ``sha256``), ``allow``
    (everything) or ``disallow`` (everything)."""
    source: str
    """``site``, ``store`` (another crawl fetched it) or ``http-cache``."""
    first_at: Time
    last_at: Time
    """When the first and the last fetch ended that found this state."""
    status: Count | None = None
    """The status of the last response. None without an HTTP response, and after too many
    redirects."""
    url: str | None = None
    """The URL of the last response, after redirects."""
    redirects: list[str] = []
    """The URLs that redirected, in order."""
    failure: str | None = None
    """Why it is unreachable, by the last fetch."""
    sha256: str | None = None
    """The SHA-256 of the file as it was received, up to 500 KiB and one byte. Of an unreachable
    site: that of its last good copy. None without a file, and if its bytes are not known."""
    octets: Count | None = None
    """The size of the file, up to this limit."""
    fetches: Count = 1
    """How many fetches found it, 304 responses included."""
    expires_at: Time | None = None
    """Until when the crawl uses the result of the last fetch. Of an unreachable robots.txt: when
    the next attempt is due."""


class AskedPace(Struct):
    """The pace that a site asked for, and what the crawl made of it."""

    at: Time
    """When this was first known."""
    records: str
    """``Crawl-delay: 2, Visit-time: 06:00-08:45``: the records for this crawler. Empty for none."""
    local_delay: Seconds
    """Of a ``[[crawl_delay]]`` in REP_LOCAL_RULES. 0 for none."""
    applied: Seconds
    """Between two requests to the host, which the crawl then kept. 0 for none."""


class Seen(Struct):
    """A directive, a use, a demand or a license, and the responses that have it."""

    responses: Count = 0
    dropped: Count = 0
    """The items or requests that were dropped because of it."""
    examples: list[str] = []
    """Up to five URLs. Of a use: those that refuse it."""
    details: list[str] = []
    """Up to five different texts, such as prices."""
    refused: Count = 0
    """Of a use: the responses that refuse it. The others grant it."""


class OriginReport(Struct):
    """One origin."""

    origin: str
    """``scheme://host[:port]``."""
    host: str
    state: str = "unknown"
    """What its robots.txt means now: ``unknown`` or the last result of :class:`Version`."""
    counts: Counts = field(default_factory=Counts)
    versions: list[Version] = []
    """The states of its robots.txt, in order. Of too many, the first and the last are kept."""
    versions_left_out: Count = 0
    deciding: list[Deciding] = []
    deciding_left_out: Count = 0
    """The requests whose rule or reason is not listed, because there are too many."""
    pace: list[AskedPace] = []
    directives: dict[str, Seen] = {}
    """By the name of the directive, such as ``noindex`` and ``rel-nofollow``."""
    usage: dict[str, Seen] = {}
    """By the name of the use, such as ``train-ai``."""
    terms: dict[str, Seen] = {}
    """``payment`` and ``license``: demands of the site before it sends a page."""
    licenses: dict[str, Seen] = {}
    """By the URL of a license that pages link to."""


class Gaps(Struct):
    """The gaps between consecutive requests, in seconds."""

    count: Count = 0
    smallest: Seconds | None = None
    median: Seconds | None = None
    """Of an even number of gaps: the longer one of the two in the middle."""


class HostPace(Struct):
    """The requests to one host, on all ports and with both schemes, robots.txt included.

    The gaps are those between consecutive requests of one run, as they were sent.
    """

    host: str
    requests: Count
    first_at: Time
    last_at: Time
    gaps: Gaps = field(default_factory=Gaps)
    """All gaps."""
    shortest_delay: Seconds | None = None
    longest_delay: Seconds | None = None
    """The delays that the crawl had to keep, as the sites asked for them. None without any."""
    paced_gaps: Gaps = field(default_factory=Gaps)
    """The gaps before requests that were sent while the crawl had to keep a delay. A shorter gap
    before the first of them is ignored: that request left before the delay was known."""
    too_short: Count = 0
    """Those of them that were shorter than the delay at both requests."""


class RobotsFile(Struct):
    """A robots.txt file that at least one origin had. Many origins may have the same file."""

    octets: Count
    text: str | None = None
    """The lines as the parser read them. None if the file is too long, or if the report has too
    many."""


class Limits(Struct):
    """The bounds of a report, and what is left out beyond them.

    The counts of the whole crawl are complete all the same.
    """

    max_origins: Count = 10_000
    """Origins, and hosts with their pace."""
    max_deciding: Count = 100
    """Rules and reasons of one origin."""
    max_versions: Count = 10
    """States of the robots.txt of one origin."""
    max_files_text: Count = 10_000_000
    """Characters of all robots.txt files together whose text is kept."""
    max_names: Count = MAX_NAMES
    max_examples: Count = MAX_EXAMPLES
    origins_left_out: Count = 0
    """Requests for pages, sent or dropped, to origins that are not listed."""
    hosts_left_out: Count = 0
    """Requests to hosts that are not listed."""
    deciding_left_out: Count = 0
    """Requests whose rule or reason is not listed, although their origin is."""
    versions_left_out: Count = 0
    files_left_out: Count = 0
    """Robots.txt files without their text."""


class Run(Struct):
    """One run of a spider in one process. A resumed job has several runs."""

    id: str
    spider: str
    software: str
    """The versions of this package and of Scrapy."""
    user_agent: str
    """The value that selects the rules: ROBOTSTXT_USER_AGENT, or the User-Agent of the crawl."""
    started_at: Time
    written_at: Time
    """When its last event happened. Those of a process that was killed end here."""
    tokens: list[str] = []
    """The product tokens in the user agent."""
    settings: dict[str, str] = {}
    """The settings of this package that differ from their defaults, without passwords."""
    ended_at: Time | None = None
    """When the spider closed. None if the process was killed, or if it still runs."""
    finish_reason: str | None = None
    sent_is_known: bool = True
    """False if the downloader of the crawl does not show what it sends."""
    damage: str | None = None
    """What of the events of this run is missing."""
    scrapy_settings: dict[str, str] = {}
    """The settings of Scrapy on which best practice depends, such as USER_AGENT and
    HTTPCACHE_ENABLED, with the values of the crawl. Empty if they are not known."""
    downloads: dict[str, Count] = {}
    """Scrapy's own counts of the methods, the statuses and the errors of downloads, by the name of
    the stat without ``downloader/``. Unlike other counts, they have the requests for robots.txt
    files, too, and the responses from Scrapy's HTTP cache."""


class Report(Struct, tag_field="type", tag="report"):
    """A report of one or more runs."""

    generated_at: Time
    runs: Annotated[list[Run], Meta(min_length=1)]
    version: Annotated[int, Meta(ge=VERSION, le=VERSION)] = VERSION
    limits: Limits = field(default_factory=Limits)
    totals: Counts = field(default_factory=Counts)
    """Of all origins, those included that are not listed."""
    origins: list[OriginReport] = []
    """Those with disallowed requests come first, then unreachable ones, then those with the most
    requests."""
    hosts: list[HostPace] = []
    files: dict[str, RobotsFile] = {}
    """By the SHA-256 of the file as it was received."""


def json_text(report: Report) -> str:
    """Return the JSON form of a report, in ASCII, so that no text of a site changes a terminal."""
    text = msgspec.json.format(msgspec.json.encode(report), indent=1).decode()
    return text if text.isascii() else _BEYOND_ASCII.sub(_escape, text)


_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


# The events of a log

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
