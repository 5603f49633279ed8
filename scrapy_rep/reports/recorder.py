"""Counts what happens in a crawl: the :class:`~scrapy_rep.crawl.recorder.Recorder` of REP_REPORT.

Its methods run for each request, so they only count. Memory is bounded by ``live``.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from ..meta_keys import DONT_OBEY, IS_ROBOTSTXT_REQUEST, ROBOTSTXT
from ..origin import Origin, State, UnreachablePolicy
from ..protocol.access import AccessResult, Unreachable
from ..protocol.pacing import describe
from ..protocol.pages import NO_DIRECTIVES
from ..protocol.paths import host_of, origin_of
from ..protocol.verdict import Verdict
from ..scheduling.rendering import RenderingService
from .live import MAX_TEXTS, LiveHost, LiveOrigin, Texts, default_limits
from .model import (
    EXEMPT,
    MAX_EXAMPLES,
    UNCHECKED,
    AskedPace,
    Counts,
    Deciding,
    OriginReport,
    Report,
    RobotsFile,
    Run,
    Seen,
    Time,
    Usage,
    Version,
)
from .part_format import crawl_record, file_record, head, host_record, origin_record
from .timeline import LiveTimeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from scrapy import Request

    from ..protocol.access import FetchResult
    from ..protocol.access_terms import AccessTerms
    from ..protocol.pages import PageDirectives
    from ..scheduling.clock import Clock
    from ..settings import Settings

T = TypeVar("T")

_FLAGS = (
    "noindex", "nofollow", "noarchive", "nocache", "nosnippet", "noimageindex", "notranslate",
    "indexifembedded", "nositelinkssearchbox", "noodp", "noai", "noimageai", "noml",
)  # fmt: skip
_VALUES = ("max_snippet", "max_image_preview", "max_video_preview", "tdm_policy")


class CrawlRecorder:
    """The counts of one run. ``run`` describes it."""

    def __init__(self, settings: Settings, clock: Clock, run: Run) -> None:
        self.run = run
        self.delay_of: Callable[[str], float] = lambda _: 0
        self.is_complete: Callable[[], bool] = lambda: True
        self._page_url = RenderingService(settings.splash_url).page_url
        self._unreachable_policy = UnreachablePolicy(
            settings.unreachable == "allow", settings.unreachable_days
        )
        self._now, self._monotonic = clock.time, clock.monotonic
        self._limits = default_limits()
        self._texts = Texts(self._limits)
        self._totals = Counts()
        self._timeline = LiveTimeline()
        self._invalid_hosts: list[str] = []
        self._origins: dict[str, LiveOrigin] = {}
        self._hosts: dict[str, LiveHost] = {}
        self._files: dict[str, RobotsFile] = {}
        self._others = LiveOrigin("", None)
        """Stands for all origins beyond the limit."""
        self._rows = 0
        self._changed_origins: dict[str, LiveOrigin] = {}
        self._changed_hosts: dict[str, LiveHost] = {}
        self._new_files: list[str] = []

    # What the crawl has done.

    def report(self) -> Report:
        """Return the report until now. Its records go on counting."""
        report = self._crawl()
        report.origins = [live.report for live in self._origins.values()]
        report.hosts = [host.report for host in self._hosts.values() if host.report.requests]
        report.files = dict(self._files)
        return report

    def head(self) -> str:
        """Return the first record of the part file."""
        return head(self.run, self._limits)

    def changes(self) -> Iterator[str]:
        """Yield the records of what has changed since the last call, for the part file."""
        self.run.written_at = Time(self._now())
        files, self._new_files = self._new_files, []
        origins, self._changed_origins = self._changed_origins, {}
        hosts, self._changed_hosts = self._changed_hosts, {}
        yield from (file_record(each, self._files[each]) for each in files)
        yield from (origin_record(live.report) for live in origins.values())
        yield from (host_record(live.report) for live in hosts.values())
        yield crawl_record(self._crawl())

    def mark_all_as_changed(self) -> None:
        """Have the next :meth:`changes` yield everything."""
        self._new_files = list(self._files)
        self._changed_origins = dict(self._origins)
        self._changed_hosts = {
            name: host for name, host in self._hosts.items() if host.report.requests
        }

    def _crawl(self) -> Report:
        counts = self._others.report.counts
        self._limits.origins_left_out = counts.sent + counts.dropped
        timeline, invalid_hosts = self._timeline.timeline, self._invalid_hosts
        return Report(self._limits, [self.run], self._totals, invalid_hosts, timeline)

    # Requests.

    def sent(self, request: Request) -> None:
        """Count a request that a download handler gets."""
        url = self._page_url(request)
        key = origin_of(url)
        if key is None:  # data:, file: and other schemes without a robots.txt
            return
        now, meta = self._now(), request.meta
        live, totals = self._origin(key), self._totals
        counts, slot = live.report.counts, self._timeline.slot(now)
        self._count_gap(live, key, now)
        if meta.get(IS_ROBOTSTXT_REQUEST):
            counts.robots_txt += 1
            totals.robots_txt += 1
            slot.robots_txt += 1
            return
        slot.sent += 1
        verdict = _verdict_in(meta)
        if verdict is EXEMPT:
            counts.sent_exempt += 1
            totals.sent_exempt += 1
        elif not isinstance(verdict, Verdict):
            counts.sent_unchecked += 1
            totals.sent_unchecked += 1
        elif verdict.allowed:
            counts.sent_allowed += 1
            totals.sent_allowed += 1
        else:
            counts.sent_disallowed += 1
            totals.sent_disallowed += 1
        row = self._row(live, verdict, url)
        if row is not None:
            row.sent += 1

    def dropped(self, url: str, verdict: Verdict) -> None:
        """Count a request that is not sent."""
        reason = verdict.reason.value
        _count(self._timeline.slot(self._now()).dropped_for, reason)
        _count(self._totals.dropped_for, reason)
        key = origin_of(url)
        if key is None:
            if len(self._invalid_hosts) < MAX_EXAMPLES:
                self._texts.add_example(self._invalid_hosts, url)
            return
        live = self._origin(key)
        _count(live.report.counts.dropped_for, reason)
        row = self._row(live, verdict, url)
        if row is not None:
            row.dropped += 1

    def waited(self, request: Request, policy_seconds: float, pace_seconds: float) -> None:
        """Count a request that has waited."""
        url = self._page_url(request)
        key = origin_of(url)
        if key is None:
            return
        live = self._origin(key)
        for counts in (live.report.counts, self._totals):
            counts.waited += policy_seconds > 0
            counts.wait_seconds += policy_seconds
            counts.delayed += pace_seconds > 0
            counts.delay_seconds += pace_seconds
        if pace_seconds:
            verdict = _verdict_in(request.meta)
            row = self._row(live, verdict, url, is_counted=False)
            if row is not None:
                row.delayed += 1
                row.delay_seconds += pace_seconds

    def final_url_disallowed(self, url: str, verdict: Verdict, *, dropped: bool) -> None:
        """Count a response whose URL is disallowed."""
        key = origin_of(url)
        origins = [] if key is None else [self._origin(key)]
        for counts in (*(live.report.counts for live in origins), self._totals):
            counts.final_url_disallowed += 1
            counts.final_url_dropped += dropped
        for live in origins:
            row = self._row(live, verdict, url, is_counted=False)
            if row is not None:
                row.final_url += 1

    def _origin(self, key: str) -> LiveOrigin:
        """Return the origin with this normal form, to change it."""
        live = self._origins.get(key)
        if live is None:
            if len(self._origins) >= self._limits.max_origins:
                return self._others
            live = self._origins[key] = LiveOrigin(key, self._host(host_of(key)))
        self._changed_origins[key] = live
        return live

    def _host(self, name: str) -> LiveHost | None:
        host = self._hosts.get(name)
        if host is None and len(self._hosts) < self._limits.max_hosts:
            host = self._hosts[name] = LiveHost(name)
        return host

    def _count_gap(self, live: LiveOrigin, key: str, now: float) -> None:
        host = live.host if live is not self._others else self._host(host_of(key))
        if host is None:
            self._limits.hosts_left_out += 1
            return
        name = host.report.host
        self._changed_hosts[name] = host
        host.add(now, self._monotonic(), self.delay_of(name))

    def _row(
        self, live: LiveOrigin, verdict: Verdict | str, url: str, *, is_counted: bool = True
    ) -> Deciding | None:
        """Return the row of what decided, with the URL as an example if it has room for one.

        Returns None if there are too many rows. This is counted if the request is one of those that
        a row counts.
        """
        row = live.current.get(verdict)
        if row is None:
            limits = self._limits
            is_full = (
                live is self._others
                or len(live.report.deciding) >= limits.max_deciding_per_origin
                or self._rows >= limits.max_deciding
            )
            if is_full:
                if live is not self._others and is_counted:
                    live.report.deciding_left_out += 1
                    limits.deciding_left_out += 1
                return None
            self._rows += 1
            row = live.add_deciding(verdict, self._texts.cut)
        if len(row.examples) < MAX_EXAMPLES:
            self._texts.add_example(row.examples, url)
        return row

    # Robots.txt files.

    def fetched(
        self, origin: Origin, event: FetchResult, body: bytes | None, *, from_store: bool
    ) -> None:
        """Record the result of a fetch, or of a look into the store."""
        live = self._origin(origin.key)
        if live is self._others:
            return
        digest = live.sha256
        if origin.robots is None:
            digest = None
        elif body is not None:
            copy = origin.copy
            digest = (copy.sha256 if copy is not None else None) or sha256(body).hexdigest()
            if digest not in self._files:
                self._files[digest] = self._texts.file(body, origin.robots.text)
                self._new_files.append(digest)
        live.set_file(digest)
        live.add_version(self._version(origin, event, digest, from_store), self._limits)

    def _version(
        self, origin: Origin, event: FetchResult, digest: str | None, from_store: bool
    ) -> Version:
        cut, at = self._texts.cut, Time(origin.fetched_at)
        status, url, failure = origin.status, origin.url, None
        if not from_store and isinstance(event, Unreachable):
            # The state of the origin may still be that of an earlier fetch.
            status, url, failure = event.status, event.url, event.failure
        elif origin.state is State.UNREACHABLE:
            failure = origin.failure
        is_unreachable = failure is not None
        return Version(
            _result(origin, is_unreachable=is_unreachable),
            self._effect(origin),
            "store" if from_store else "http-cache" if origin.from_cache else "site",
            status=status,
            url=None if url is None else cut(url),
            redirects=[cut(each) for each in origin.redirects],
            failure=None if failure is None else cut(failure),
            sha256=digest,
            octets=self._files[digest].octets if digest in self._files else None,
            first_at=at,
            last_at=at,
            fetches=1,
            expires_at=Time(origin.refresh_at if is_unreachable else origin.expires_at),
        )

    def _effect(self, origin: Origin) -> str:
        if origin.robots is not None:
            return "rules"
        if origin.state is State.UNAVAILABLE:
            return "disallow" if origin.disallow_all else "allow"
        is_disallowed = origin.next_attempt(self._now(), self._unreachable_policy) is not None
        return "disallow" if is_disallowed else "allow"

    def paced(self, origin: Origin, agents: tuple[str, ...], local_delay: float) -> None:
        """Record the pace that a site asks for, if it has changed."""
        records = "" if origin.robots is None else describe(origin.robots, agents)
        applied = self.delay_of(origin.host)
        paces = self._origin(origin.key).report.pace
        pace = AskedPace(Time(self._now()), self._texts.cut(records), local_delay, applied)
        last = paces[-1] if paces else AskedPace(Time(0), "", 0, 0)
        if (pace.records, pace.local_delay) == (last.records, last.local_delay):
            return
        if len(paces) < self._limits.max_versions:
            paces.append(pace)
        else:
            paces[-1] = pace

    # Pages.

    def page(self, url: str, directives: PageDirectives, usage: Mapping[str, bool]) -> None:
        """Count the directives and uses of a response."""
        if directives is NO_DIRECTIVES and not usage:
            return
        report = self._report_of(url)
        if report is None:
            return
        for name, detail in _found(directives):
            self._see(report.directives, name, url, detail)
        for license_url in directives.licenses:
            self._see(report.licenses, self._texts.cut(license_url), url)
        for name, is_granted in usage.items():
            use = _entry(report.usage, self._texts.cut(name), Usage)
            if use is None:
                continue
            use.granted += is_granted
            use.refused += not is_granted
            if not is_granted and len(use.examples) < MAX_EXAMPLES:
                self._texts.add_example(use.examples, url)

    def dropped_for_directive(self, url: str, name: str) -> None:
        """Count an item or a request that is dropped because of a directive."""
        report = self._report_of(url)
        seen = None if report is None else _entry(report.directives, name, Seen)
        if seen is not None:
            seen.dropped += 1
            if len(seen.examples) < MAX_EXAMPLES:
                self._texts.add_example(seen.examples, url)

    def dropped_for_usage(self, url: str, names: Sequence[str]) -> None:
        """Count an item that is dropped because its page refuses uses."""
        report = self._report_of(url)
        for name in names if report is not None else ():
            assert report is not None
            use = _entry(report.usage, self._texts.cut(name), Usage)
            if use is not None:
                use.dropped += 1

    def terms(self, url: str, terms: AccessTerms) -> None:
        """Count a response that requires a payment or a license."""
        report = self._report_of(url)
        if report is None:
            return
        if terms.payment_required:
            self._see(report.terms, "payment", url, str(terms))
        if terms.license_required:
            self._see(report.terms, "license", url, str(terms))

    def _report_of(self, url: str) -> OriginReport | None:
        key = origin_of(url)
        live = None if key is None else self._origin(key)
        return None if live is None or live is self._others else live.report

    def _see(self, found: dict[str, Seen], name: str, url: str, detail: str = "") -> None:
        seen = _entry(found, name, Seen)
        if seen is None:
            return
        seen.responses += 1
        if len(seen.examples) < MAX_EXAMPLES:
            self._texts.add_example(seen.examples, url)
        detail = self._texts.cut(detail)
        if detail and detail not in seen.details and len(seen.details) < MAX_EXAMPLES:
            seen.details.append(detail)


def _verdict_in(meta: dict[str, Any]) -> Verdict | str:
    if meta.get(DONT_OBEY):
        return EXEMPT
    verdict = meta.get(ROBOTSTXT)
    return verdict if isinstance(verdict, Verdict) else UNCHECKED


def _count(numbers: dict[str, int], name: str) -> None:
    numbers[name] = numbers.get(name, 0) + 1


def _entry(found: dict[str, T], name: str, new: Callable[[], T]) -> T | None:
    """Return the entry of a name; None if there are too many names."""
    entry = found.get(name)
    if entry is None and len(found) < MAX_TEXTS:
        entry = found[name] = new()
    return entry


def _found(directives: PageDirectives) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each directive of a page. A flag has no value."""
    for name in _FLAGS:
        if getattr(directives, name):
            yield name, ""
    for name in _VALUES:
        value = getattr(directives, name)
        if value is not None:
            yield name, str(value)
    if directives.unavailable_after is not None:
        name = "unavailable_after"
        yield name, directives.unavailable_after.isoformat()
    if directives.tdm_reservation is not None:
        yield "tdm_reservation", str(int(directives.tdm_reservation))


def _result(origin: Origin, *, is_unreachable: bool) -> str:
    if is_unreachable:
        return AccessResult.UNREACHABLE.value
    if origin.state is State.UNAVAILABLE:
        result = AccessResult.DISALLOWED if origin.disallow_all else AccessResult.UNAVAILABLE
        return result.value
    return AccessResult.RULES.value
