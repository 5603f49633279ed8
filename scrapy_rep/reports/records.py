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

import csv
import json
from datetime import datetime, timezone
from functools import lru_cache
from io import StringIO
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from ..logs import plural
from ..protocol.printable import cut
from ..protocol.verdict import Verdict

MAX_TEXT = 300  # characters of a URL, a pattern or another text of a site
MAX_FILE_TEXT = 20_000  # characters of a robots.txt: the text of a longer one is not kept
MAX_NAMES = 50  # directives, uses and licenses of one origin, of each kind

EXEMPT, UNCHECKED = "exempt", "unchecked"
"""The reasons of requests that were sent without a verdict: because of ``dont_obey_robotstxt``, and
because no component checked them. All other reasons are values of :class:`~scrapy_rep.Reason`."""

ALLOWED_ANYWAY = "its robots.txt allows it"  # the detail of exempt requests that broke no rule

EMPTY, REDIRECT_LOOP = "empty", "redirect-loop"
"""The states of a robots.txt that a crawl does not tell from others: as ``rules`` and as
``unavailable``, everything is allowed."""

# A damaged log may have any number. Sums of these stay exact and finite.
Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
Time = Annotated[datetime, Meta(tz=True)]


class FileError(Exception):
    """Files cannot be used for a report or a survey. The message says why."""


@lru_cache(maxsize=1000)  # most requests of a crawl have one of a few verdicts
def decided(verdict: Verdict | str, broken: Verdict | None) -> tuple[Any, ...]:
    """Return the fields of a `RequestEvent` from ``reason`` on."""
    allowed, rule, agent, detail = None, None, None, None
    if isinstance(verdict, Verdict):
        allowed, verdict, rule, agent, detail = verdict
    if broken is not None:  # an exception
        if not broken.allowed:
            rule, agent = broken.rule, broken.agent
        if rule is None:
            detail = detail or (ALLOWED_ANYWAY if broken.allowed else str(broken))
    allow, pattern, line = rule or (None, None, None)
    agent, pattern, detail = (each and kept_text(each) for each in (agent, pattern, detail))
    return verdict, allowed, agent, allow, pattern, line, detail


def kept_text(text: str) -> str:
    """Return a text that is not too long for a line of the log, and that JSON can have."""
    if not text.isascii():  # it may have a lone surrogate
        text = text[: MAX_TEXT + 1].encode("utf-8", "backslashreplace").decode()
    return cut(text, MAX_TEXT)


def utc(seconds: float) -> datetime:
    """Return a time in seconds since 1970 as a record has it."""
    return datetime.fromtimestamp(seconds, timezone.utc)


def moment(time: datetime) -> str:
    """Return a time as pages, summaries and tools show it: ``2026-11-22 09:30:00 UTC``."""
    return f"{time.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def age(seconds: float) -> str:
    """Return an age in its largest unit: ``2 hours``, ``less than a minute``."""
    units = (("day", 86_400), ("hour", 3600), ("minute", 60))
    return next(
        (plural(int(seconds // length), unit) for unit, length in units if seconds >= length),
        "less than a minute",
    )


class Counts(Struct):
    """What happened to the requests for pages, and the requests for robots.txt files.

    A request that was retried counts each time. Requests wait at the same time.
    """

    sent: int = 0
    """Requests for pages: the sum of the next five fields."""
    sent_allowed: int = 0
    sent_excepted: int = 0
    """Disallowed by robots.txt, and allowed by an exception of REP_LOCAL_RULES."""
    sent_exempt: int = 0
    """With ``dont_obey_robotstxt``. The robots.txt allows those that no field ``exempt_`` has."""
    sent_disallowed: int = 0
    """0 unless a component of the project sends requests past the middleware."""
    sent_unchecked: int = 0
    """Without a verdict, and not exempt."""
    exempt_disallowed: int = 0
    """Of the exempt ones: disallowed by the robots.txt that held then."""
    exempt_disallowed_later: int = 0
    """Of the exempt ones: disallowed by the first robots.txt that was fetched after the request."""
    exempt_not_known: int = 0
    """Of the exempt ones: the record has no robots.txt to judge by."""
    dropped: int = 0
    """Requests for pages that were not sent."""
    dropped_for: dict[str, int] = {}
    """The same by the reason of their verdict."""
    final_url_disallowed: int = 0
    """Responses from a disallowed URL, to which a browser or a download handler was redirected."""
    refused_for: dict[str, int] = {}
    """Responses with status 401, 402, 403 or 429 to requests that robots.txt allows, by status."""
    delayed: int = 0
    """How often requests waited for the pace of their site, and how long in total."""
    delay_seconds: float = 0.0
    waited: int = 0
    """How often requests waited for a robots.txt, and how long in total."""
    wait_seconds: float = 0.0
    robots_txt: int = 0
    """Requests for robots.txt files (and TDM files) to this origin, also after redirects."""
    backoffs: int = 0
    """How often sites asked for fewer requests (429 or 503), and how long they were held."""
    backoff_seconds: float = 0.0

    @property
    def disallowed(self) -> int:
        """The disallowed pages that were requested or received."""
        return self.sent_disallowed + self.final_url_disallowed

    @property
    def exempt_disallowing(self) -> int:
        """The exempt requests that a robots.txt disallows, or of which none is known."""
        return self.exempt_disallowed + self.exempt_disallowed_later + self.exempt_not_known

    @property
    def excepted(self) -> int:
        """The requests that are exceptions if no other disallowed page was requested."""
        return self.sent_excepted + self.exempt_disallowing


class RuleText(Struct):
    """An allow or disallow rule. ``str`` is the rule as it is written in its file."""

    allow: bool
    pattern: str
    line: int

    def __str__(self) -> str:
        return f"{'Allow' if self.allow else 'Disallow'}: {self.pattern}"


class Deciding(Struct):
    """What decided about requests (a rule, a local rule or a reason), and what happened to them."""

    reason: str
    """A value of :class:`~scrapy_rep.Reason`, ``exempt`` or ``unchecked``."""
    allowed: bool | None = None
    """The verdict. None for ``exempt`` and ``unchecked``."""
    sha256: str | None = None
    """The robots.txt that has the rule, if it is known."""
    agent: str | None = None
    """The product token of the group that was used."""
    rule: RuleText | None = None
    """The rule that decided. For an exception (``exempt``, and a local rule that allows), the rule
    of the robots.txt that would have disallowed the requests."""
    detail: str | None = None
    """More about the reason, such as the status. Of exempt requests: what the robots.txt says about
    them, if no rule does. Without rule and detail, no robots.txt is known."""
    judged_at: datetime | None = None
    """When the robots.txt was fetched that has judged the exempt requests, if later than them."""
    sent: int = 0
    dropped: int = 0
    final_url: int = 0
    """Responses from a URL with this verdict, to which their request was redirected."""
    examples: list[str] = []
    """Up to five URLs."""


class Fetched(Struct):
    """What a fetch of a robots.txt found."""

    result: str
    """``rules``, ``empty`` (a file without any line), ``not-robots-txt``, ``unavailable`` (404 and
    others), ``refused`` (401, 403), ``challenge``, ``redirect-loop`` (too many redirects),
    ``disallowed`` (REP_DISALLOW_STATUSES), or ``unreachable``."""
    effect: str
    """What the crawl then applied: ``rules``, or ``allow`` or ``disallow`` for everything."""
    source: str
    """``site``, ``store`` (another crawl fetched it) or ``http-cache``."""
    status: Count | None
    """Of the last response. None without an HTTP response, and after too many redirects."""
    url: str | None
    """The URL of the last response, after redirects."""
    redirects: list[str]
    """The URLs that redirected, in order."""
    failure: str | None
    """Why it is unreachable, by the last fetch."""
    sha256: str | None
    """Of the file as it was received, up to 500 KiB and one byte, or of the last good copy. None
    without a file, and if its bytes are not known."""


class Version(Fetched, kw_only=True):
    """One state of a robots.txt, from the first fetch that found it to the last."""

    first_at: datetime
    last_at: datetime
    """When the first and the last fetch ended that found this state."""
    size: int | None = None
    """Bytes of the file, up to this limit."""
    fetches: int = 1
    """How many fetches found it, 304 responses included."""
    expires_at: datetime | None = None
    """Until when the crawl uses the last result. If unreachable: when the next attempt is due."""


class AskedPace(Struct):
    """The pace that a site asked for, and what the crawl made of it."""

    records: str
    """``Crawl-delay: 2, Visit-time: 06:00-08:45``: the records for this crawler. Empty for none."""
    asked: Seconds
    """Between two requests, by these records. 0 for none."""
    applied: Seconds
    """Between two requests to the host. 0 for none. Less than ``asked`` with REP_MAX_CRAWL_DELAY,
    and without REP_OBEY_RATE_LIMITS."""


class Statement(Struct):
    """What responses of a site say: a directive, or whether their use for a purpose is allowed."""

    kind: str
    """``directive`` or ``usage``."""
    name: str
    """Such as ``noindex`` and ``train-ai``."""
    responses: int = 0
    dropped: int = 0
    """The items or requests that were dropped because of it."""
    refused: int = 0
    """Of a use: the responses that refuse it. The others grant it."""
    examples: list[str] = []
    """Up to five URLs. Of a use: those that refuse it."""
    details: list[str] = []
    """Up to five different values."""


class OriginReport(Struct):
    """One origin."""

    origin: str
    """``scheme://host[:port]``."""
    host: str
    state: str = "unknown"
    """What its robots.txt means now: ``unknown`` or the last result of :class:`Version`."""
    counts: Counts = field(default_factory=Counts)
    versions: list[Version] = []
    """The last states of its robots.txt, in order."""
    versions_left_out: int = 0
    deciding: list[Deciding] = []
    deciding_left_out: int = 0
    """The requests whose rule or reason is not listed, because there are too many."""
    pace: AskedPace | None = None
    """The last one. None if its robots.txt was never known."""
    statements: list[Statement] = []

    @property
    def marks(self) -> list[str]:
        """What a reader looks for first, in this order, as a page and a CSV file name it."""
        counts = self.counts
        found = {
            "disallowed": counts.disallowed,
            "exempt": counts.sent_exempt + counts.sent_excepted,
            "held": counts.backoffs,
            "paying": "402" in counts.refused_for,
        }
        return [name for name, applies in found.items() if applies]


class HostPace(Struct):
    """The requests to one host, on all ports and with both schemes, robots.txt included.

    The gaps are those between consecutive requests of one run: with a delay that was asked for or
    applied, only those before requests that had to keep it. A shorter gap before the first of them
    is ignored: that request left before the delay was known.
    """

    host: str
    requests: int
    gaps: int
    smallest_gap: float | None = None
    """In seconds."""
    median_gap: float | None = None
    """Of an even number of gaps: the longer one of the two in the middle."""
    asked: float | None = None
    """The longest delay that a robots.txt of the host asked for before a request. None for none."""
    applied: float | None = None
    """The shortest delay that the crawl applied. None without any."""
    capped: int = 0
    """The requests before which the site asked for a longer delay than was applied."""
    below_applied: int = 0
    """The gaps that were shorter than the delay that applied to both requests."""
    below_asked: int = 0
    """The gaps that were shorter than the delay that both requests were asked to keep."""

    @property
    def delay(self) -> float:
        """The longer delay of the two. 0 for none."""
        return max(self.asked or 0, self.applied or 0)


class Sites(Struct):
    """Numbers of origins, those included that are not listed."""

    requested: int = 0
    """To which requests for pages were sent."""
    asked_pace: int = 0
    """Whose robots.txt asked for a pace: Crawl-delay, Request-rate or Visit-time."""
    refused: dict[str, int] = {}
    """Whose server refused a request that their robots.txt allows, by status. A site counts once
    for each."""


class Timeline(Struct):
    """When requests were sent, those for robots.txt files included."""

    started_at: datetime
    seconds: int
    """The length of each part: a minute, or more in a long crawl."""
    requests: list[int]
    """How many were sent in each part, of up to 120."""
    longest_gap: float = 0.0
    """The longest time without a request, in seconds, and when it ended."""
    gap_ended_at: datetime | None = None


class RobotsFile(Struct):
    """A robots.txt file that at least one origin had. Many origins may have the same file."""

    size: int
    text: str | None = None
    """The lines as the parser read them. None if the file is too long, or there are too many."""


class LeftOut(Struct):
    """What a report does not have, because there is too much of it. Its totals are complete."""

    origins: int = 0
    """Requests for pages, sent or dropped, to origins that are not listed."""
    hosts: int = 0
    """Requests to hosts that are not listed."""
    deciding: int = 0
    """Requests whose rule or reason is not listed, although their origin is."""
    files: int = 0
    """Robots.txt files without their text."""


class Run(Struct):
    """One run of a spider in one process. A resumed job has several runs."""

    id: str
    spider: str
    software: str
    """The versions of this package and of Scrapy."""
    user_agent: str
    """What selects the rules: ROBOTSTXT_USER_AGENT, or the User-Agent of the crawl."""
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
    archive: str | None = None
    """The file in which each robots.txt is (REP_ARCHIVE)."""
    archive_sha256: str | None = None
    """None if the run was killed, or if the disk did not answer."""
    log: str | None = None
    log_sha256: str | None = None
    """The event log from which the report was made, and its SHA-256."""
    machine: str | None = None
    """The name of the machine. Only the JSON form has it."""
    sent_is_known: bool = True
    """False if the downloader of the crawl does not show what it sends."""
    max_crawl_delay: Seconds | None = None
    """REP_MAX_CRAWL_DELAY, in seconds. None if it is not known."""
    damage: str | None = None
    """What of the events of this run is missing."""
    scrapy_settings: dict[str, str] = {}
    """The settings of Scrapy on which best practice depends, such as USER_AGENT."""
    downloads: dict[str, Count] = {}
    """Scrapy's own counts of the methods and the statuses of downloads, by the name of the stat
    without ``downloader/``. They include robots.txt files and Scrapy's HTTP cache."""

    def __post_init__(self) -> None:
        for time in (self.started_at, self.written_at, self.ended_at or self.written_at):
            utc(time.timestamp())  # ValueError for a time that is not in the years 1 to 9999 in UTC


class Report(Struct, tag_field="type", tag="report"):
    """A report of one or more runs."""

    generated_at: datetime
    runs: list[Run]
    version: int = 1
    """Of the JSON form. A field may be added without a new version."""
    left_out: LeftOut = field(default_factory=LeftOut)
    totals: Counts = field(default_factory=Counts)
    """Of all origins, those included that are not listed."""
    sites: Sites = field(default_factory=Sites)
    timeline: Timeline | None = None
    """None if no request was sent."""
    origins: list[OriginReport] = []
    """Those with disallowed requests, exempt, held, paying and unreachable ones come first, then
    those with the most requests."""
    hosts: list[HostPace] = []
    """Those with short gaps, then those with a delay, then those with the most requests."""
    files: dict[str, RobotsFile] = {}
    """By the SHA-256 of the file as it was received."""


def csv_text(report: Report) -> str:
    """Return the table of origins as CSV, without its details."""
    file = StringIO()
    write = csv.writer(file, lineterminator="\n").writerow
    counts = [each.name for each in msgspec.structs.fields(Counts) if each.type in (int, float)]
    write(["origin", "state", "status", "checked", "size", "marks", *counts])
    for origin in report.origins:
        last = origin.versions[-1] if origin.versions else None
        known = (last.status, last.last_at.isoformat(), last.size) if last else ("", "", "")
        values = (getattr(origin.counts, name) for name in counts)
        # An origin begins with its scheme, so no program reads it as a formula.
        write([origin.origin, origin.state, *known, " ".join(origin.marks), *values])
    return file.getvalue()


def json_text(report: Report) -> str:
    """Return the JSON form of a report, in ASCII, so that no text of a site changes a terminal."""
    return msgspec.json.format(json.dumps(msgspec.to_builtins(report)), indent=1)


LATEST = 253_402_200_000.0  # seconds from 1970 to the end of 9999, the latest time in a log
At = Annotated[float, Meta(ge=0, le=LATEST)]


class RunEvent(Struct, array_like=True, tag="run"):
    """A crawl begins or ends."""

    run: Run


class RequestEvent(Struct, array_like=True, tag="request"):
    """Something happens to a request, or to its response."""

    kind: str
    """``sent``, ``dropped``; ``robots.txt``: a request for such a file is sent; ``final-url``: a
    response came from a disallowed URL; ``refused``: one has a status that refuses an allowed
    request, which is its ``detail``; ``delayed`` and ``waited``: a request waited for the pace
    of its site, or for its robots.txt; ``backoff``: the site has asked for fewer requests."""
    at: At
    origin: str | None
    """None if the URL has no valid host."""
    path: str
    """The path and query, or the whole URL if it has no valid host."""
    seconds: Seconds
    """Of a request that is sent: the delay of its host. Of the others: how long it waits."""
    reason: str = ""
    """As `Deciding.reason`, or empty. This field and those below are the verdict."""
    allowed: bool | None = None
    agent: str | None = None
    allow: bool | None = None
    pattern: str | None = None
    line: Count | None = None
    detail: str | None = None


class FetchEvent(Fetched, array_like=True, tag="fetch", kw_only=True):
    """A robots.txt was fetched, or found in the store."""

    at: At
    origin: str
    fetched_at: At
    """When the last fetch ended: before ``at`` if the file was found in the store."""
    expires_at: At | None


class FileEvent(Struct, array_like=True, tag="file"):
    """The content of a robots.txt."""

    sha256: str
    size: Count
    text: str | None


class PaceEvent(AskedPace, array_like=True, tag="pace", kw_only=True):
    """The pace of an origin is known."""

    at: At
    origin: str


class PageEvent(Struct, array_like=True, tag="page"):
    """A response says something, or something is dropped because of what it says."""

    kind: str
    """As `Statement.kind`."""
    at: At
    origin: str
    path: str
    name: str
    detail: str
    refused: bool = False
    """Whether a use is refused."""
    dropped: bool = False
    """Whether this is about an item or a request that is dropped."""


Event = RunEvent | RequestEvent | FetchEvent | FileEvent | PaceEvent | PageEvent
