"""The records of a report. They are counters: a crawl and a merge change them.

All times are seconds since 1970. In JSON they are texts in ISO 8601 (see ``codec``). Every text is
cut to a length; a site chose most of them, so a renderer has to escape them. ``DERIVED`` names the
properties of a record that JSON has, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NewType

from .gaps import Gaps

VERSION = 1
"""The version of the JSON form. A field may be added without a new version."""

Time = NewType("Time", float)
"""Seconds since 1970."""

MAX_EXAMPLES = 5
"""The example URLs that are kept of each rule and of each directive."""

EXEMPT, UNCHECKED = "exempt", "unchecked"
"""The reasons of requests that were sent without a verdict: because of ``dont_obey_robotstxt``, and
because no component checked them. All other reasons are values of :class:`~scrapy_rep.Reason`."""


@dataclass(slots=True)
class Counts:
    """What happened to the requests for pages, and the requests for robots.txt files.

    A request that was sent several times, because it was retried, counts each time.
    """

    DERIVED = ("sent", "dropped")

    sent_allowed: int = 0
    """Requests that were sent after a verdict that allows them."""
    sent_exempt: int = 0
    """Requests that were sent with ``dont_obey_robotstxt``."""
    sent_disallowed: int = 0
    """Requests that were sent in spite of a verdict that disallows them. 0 unless a component of
    the project sends requests past the middleware."""
    sent_unchecked: int = 0
    """Requests that were sent without a verdict, and were not exempt."""
    dropped_for: dict[str, int] = field(default_factory=dict)
    """Requests that were not sent, by the reason of their verdict."""
    final_url_disallowed: int = 0
    """Responses that came from a disallowed URL, because a browser or a download handler followed a
    redirect (REP_CHECK_FINAL_URL)."""
    final_url_dropped: int = 0
    """Those of them that were dropped after they were received."""
    delayed: int = 0
    """Requests that waited for the pace of their site."""
    delay_seconds: float = 0.0
    """The time that they waited in total. Requests wait at the same time."""
    waited: int = 0
    """Requests that waited for a robots.txt."""
    wait_seconds: float = 0.0
    robots_txt: int = 0
    """Requests for robots.txt files that were sent to this origin, redirects to it included; with
    REP_TDMREP, those for TDM files, too."""

    @property
    def sent(self) -> int:
        """The requests for pages that were sent."""
        return self.sent_allowed + self.sent_exempt + self.sent_disallowed + self.sent_unchecked

    @property
    def dropped(self) -> int:
        """The requests for pages that were not sent."""
        return sum(self.dropped_for.values())

    def add(self, other: Counts) -> None:
        """Add the counts of another record."""
        for each in fields(self):
            own, more = getattr(self, each.name), getattr(other, each.name)
            if isinstance(own, dict):
                for key, number in more.items():
                    own[key] = own.get(key, 0) + number
            else:
                setattr(self, each.name, own + more)


@dataclass(slots=True)
class RuleText:
    """An allow or disallow rule, as it is written in its file."""

    allow: bool
    pattern: str
    line: int


@dataclass(slots=True)
class Deciding:
    """What decided about requests, and what happened to them.

    This is a rule of a robots.txt, a local rule, or a reason without a rule.
    """

    reason: str
    """A value of :class:`~scrapy_rep.Reason`, ``exempt`` or ``unchecked``."""
    allowed: bool | None = None
    """The verdict. None for ``exempt`` and ``unchecked``."""
    sha256: str | None = None
    """The robots.txt that has the rule. None where no file decided, or where it is not known."""
    agent: str | None = None
    """The product token of the group that was used; ``*`` for that of all other crawlers."""
    rule: RuleText | None = None
    detail: str | None = None
    """More about the reason: the status, the hours of a Visit-time, the reason of a local rule."""
    sent: int = 0
    dropped: int = 0
    final_url: int = 0
    """Responses that came from a URL with this verdict, in place of the URL of their request."""
    delayed: int = 0
    """Requests that waited for the pace of their site, and then had this verdict."""
    delay_seconds: float = 0.0
    examples: list[str] = field(default_factory=list)
    """Up to five URLs."""


@dataclass(slots=True)
class Version:
    """One state of a robots.txt, from the first fetch that found it to the last."""

    result: str
    """What the fetch found: ``rules``, ``unavailable``, ``disallowed`` (the status is one of
    REP_DISALLOW_STATUSES), or ``unreachable``."""
    effect: str
    """What the crawl then applied: ``rules`` (of the file with this ``sha256``), ``allow``
    (everything) or ``disallow`` (everything)."""
    source: str
    """``site``, ``store`` (another crawl fetched it) or ``http-cache``."""
    status: int | None = None
    """The status of the last response. None without an HTTP response, and after too many
    redirects."""
    url: str | None = None
    """The URL of the last response, after redirects."""
    redirects: list[str] = field(default_factory=list)
    """The URLs that redirected, in order."""
    failure: str | None = None
    """Why it is unreachable, by the last fetch."""
    sha256: str | None = None
    """The SHA-256 of the file as it was received, up to 500 KiB and one octet. Of an unreachable
    site: that of its last good copy. None without a file, and if its octets are not known."""
    octets: int | None = None
    """The size of the file, up to this limit."""
    first_at: Time = Time(0)
    last_at: Time = Time(0)
    """When the first and the last fetch ended that found this state."""
    fetches: int = 0
    """How many fetches found it, 304 responses included."""
    expires_at: Time | None = None
    """Until when the crawl uses the result of the last fetch. Of an unreachable robots.txt: when
    the next attempt is due."""


@dataclass(slots=True)
class AskedPace:
    """The pace that a site asked for, and what the crawl made of it."""

    at: Time
    """When this was first known."""
    records: str
    """``Crawl-delay: 2, Visit-time: 06:00-08:45``: the records for this crawler. Empty for none."""
    local_delay: float
    """Seconds, of a ``[[crawl_delay]]`` in REP_LOCAL_RULES. 0 for none."""
    applied: float
    """Seconds between two requests to the host that the crawl then kept. 0 for none."""


@dataclass(slots=True)
class Seen:
    """A directive, a use or a demand, and the responses that have it."""

    responses: int = 0
    dropped: int = 0
    """The items or requests that were dropped because of it."""
    examples: list[str] = field(default_factory=list)
    """Up to five URLs."""
    details: list[str] = field(default_factory=list)
    """Up to five different texts, such as prices."""


@dataclass(slots=True)
class Usage:
    """What the responses of an origin say about one use of their content."""

    granted: int = 0
    refused: int = 0
    dropped: int = 0
    """The items that were dropped because of it (REP_REQUIRE_USAGE)."""
    examples: list[str] = field(default_factory=list)
    """Up to five URLs that refuse the use."""


@dataclass(slots=True)
class OriginReport:
    """One origin."""

    DERIVED = ("state",)

    origin: str
    """``scheme://host[:port]``."""
    host: str
    counts: Counts = field(default_factory=Counts)
    versions: list[Version] = field(default_factory=list)
    """The states of its robots.txt, in order. Of too many, the first and the last are kept."""
    versions_left_out: int = 0
    deciding: list[Deciding] = field(default_factory=list)
    deciding_left_out: int = 0
    """The requests whose rule or reason is not listed, because there are too many."""
    pace: list[AskedPace] = field(default_factory=list)
    directives: dict[str, Seen] = field(default_factory=dict)
    """By the name of the directive, such as ``noindex`` and ``rel-nofollow``."""
    usage: dict[str, Usage] = field(default_factory=dict)
    """By the name of the use, such as ``train-ai``."""
    terms: dict[str, Seen] = field(default_factory=dict)
    """``payment`` and ``license``: demands of the site before it sends a page."""
    licenses: dict[str, Seen] = field(default_factory=dict)
    """By the URL of a license that pages link to."""

    @property
    def state(self) -> str:
        """What its robots.txt means now: ``unknown`` or the last result of :class:`Version`."""
        return self.versions[-1].result if self.versions else "unknown"


@dataclass(slots=True)
class HostPace:
    """The requests to one host, on all ports and with both schemes, robots.txt included.

    The gaps are those between consecutive requests of one run, as they were sent.
    """

    host: str
    requests: int = 0
    first_at: Time = Time(0)
    last_at: Time = Time(0)
    gaps: Gaps = field(default_factory=Gaps)
    """All gaps."""
    shortest_delay: float | None = None
    longest_delay: float | None = None
    """Seconds: the delays that the crawl had to keep, as the sites asked for them. None without
    any."""
    paced_gaps: Gaps = field(default_factory=Gaps)
    """The gaps before requests that were sent while the crawl had to keep a delay. A shorter gap
    before the first of them does not count: that request left before the delay was known."""
    too_short: int = 0
    """Those of them that were shorter than the delay at both requests."""


@dataclass(slots=True)
class TimeSlot:
    """What happened in one interval of the timeline."""

    DERIVED = ("dropped",)

    at: Time
    """The start of the interval."""
    sent: int = 0
    """Requests for pages that were sent."""
    dropped_for: dict[str, int] = field(default_factory=dict)
    """Requests for pages that were not sent, by the reason of their verdict."""
    robots_txt: int = 0
    """Requests for robots.txt files, as in :class:`Counts`."""

    @property
    def dropped(self) -> int:
        """The requests for pages that were not sent."""
        return sum(self.dropped_for.values())


@dataclass(slots=True)
class Timeline:
    """Requests over time, in intervals of one length. Empty intervals are left out."""

    seconds: int = 1
    """The length of an interval: a power of two. Each starts at a multiple of it."""
    slots: list[TimeSlot] = field(default_factory=list)


@dataclass(slots=True)
class RobotsFile:
    """A robots.txt file that at least one origin had. Many origins may have the same file."""

    octets: int
    text: str | None = None
    """The lines as the parser read them. None if the file is too long, or if the report has too
    many."""


@dataclass(slots=True)
class Limits:
    """The bounds of the memory that a crawl uses for its report, and what is left out beyond them.

    The counts of the whole crawl are complete all the same.
    """

    max_origins: int
    max_hosts: int
    max_deciding: int
    """Rules and reasons of all origins together."""
    max_deciding_per_origin: int
    max_versions: int
    """States of the robots.txt of one origin."""
    max_text: int
    """Characters of a URL, a pattern or another text."""
    max_file_text: int
    max_files_text: int
    """Characters of one robots.txt and of all together whose text is kept."""
    max_examples: int
    max_example_text: int
    """Example URLs of a rule, and characters of all together."""
    origins_left_out: int = 0
    """Requests for pages, sent or dropped, to origins that are not listed."""
    hosts_left_out: int = 0
    """Requests to hosts that are not listed."""
    deciding_left_out: int = 0
    """Requests whose rule or reason is not listed."""
    versions_left_out: int = 0
    examples_left_out: int = 0
    """Examples that were not kept, because of ``max_example_text``."""
    files_left_out: int = 0
    """Robots.txt files without their text."""


@dataclass(slots=True)
class Run:
    """One run of a spider in one process. A resumed job has several runs."""

    id: str
    spider: str
    software: str
    """The versions of this package and of Scrapy."""
    user_agent: str
    """The value that selects the rules: ROBOTSTXT_USER_AGENT, or the User-Agent of the crawl."""
    tokens: list[str] = field(default_factory=list)
    """The product tokens in it."""
    settings: dict[str, str] = field(default_factory=dict)
    """The settings of this package that differ from their defaults, without passwords."""
    started_at: Time = Time(0)
    written_at: Time = Time(0)
    """When the counts were last written. Those of a process that was killed end here."""
    ended_at: Time | None = None
    """When the spider closed. None if the process was killed, or if it still runs."""
    finish_reason: str | None = None
    sent_is_known: bool = True
    """False if the downloader of the crawl does not show what it sends."""
    damage: str | None = None
    """What of the file of this run could not be read."""
    scrapy_settings: dict[str, str] = field(default_factory=dict)
    """The settings of Scrapy on which best practice depends, such as USER_AGENT and
    HTTPCACHE_ENABLED, with the values of the crawl. Empty if they are not known."""
    downloads: dict[str, int] = field(default_factory=dict)
    """Scrapy's own counts of the methods, the statuses and the errors of downloads, by the name of
    the stat without ``downloader/``. Unlike other counts, they have the requests for robots.txt
    files, too, and the responses from Scrapy's HTTP cache."""


@dataclass(slots=True)
class Report:
    """A report of one or more runs. See :func:`scrapy_rep.reports.reading.read_reports`."""

    limits: Limits
    runs: list[Run] = field(default_factory=list)
    totals: Counts = field(default_factory=Counts)
    """Of all origins, those included that are not listed."""
    invalid_hosts: list[str] = field(default_factory=list)
    """Up to five URLs without a valid host, which were dropped."""
    timeline: Timeline = field(default_factory=Timeline)
    origins: list[OriginReport] = field(default_factory=list)
    hosts: list[HostPace] = field(default_factory=list)
    files: dict[str, RobotsFile] = field(default_factory=dict)
    """By the SHA-256 of the file as it was received."""
