"""The events of a crawl (REP_REPORT), as lines of a file, and the report of them.

The methods of :class:`CrawlLog` run for each request, so they only make a line. Nothing is counted
while the crawl runs: when the spider closes, ``reading`` makes the report.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from errno import EACCES, EISDIR
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from secrets import token_hex
from socket import gethostname
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import msgspec
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.asyncio import create_looping_call

from ..clock import Clock
from ..exceptions import SettingError
from ..logs import spider_logger
from ..origin import Origin, State, UnreachablePolicy
from ..pages.directives import NO_DIRECTIVES, PageDirectives
from ..protocol.access import AccessResult, FetchResult, Unreachable
from ..protocol.agents import product_tokens, text_of
from ..protocol.pacing import Pacing
from ..protocol.paths import origin_of, path_of
from ..protocol.printable import cut, printable, without_credentials
from ..protocol.verdict import Reason, Verdict
from ..recorder import Events
from ..settings import (
    DONT_OBEY,
    IS_ROBOTSTXT_REQUEST,
    ROBOTSTXT,
    Settings,
    changed_settings,
    scrapy_settings,
)
from ..stores import Entry
from . import records
from .answers import SETTINGS
from .files import BackgroundFile, path_from, write_atomically
from .reading import read_reports
from .records import kept_text

if TYPE_CHECKING:
    from .archive import Archive

BUFFER_SIZE = 1 << 16  # bytes of lines that are written at once
WRITE_INTERVAL = 5.0  # seconds: a process that is killed loses the events of this time
REPORT_TIMEOUT = 600.0
"""Seconds that the spider waits for the report before it closes. The process ends only when the
thread of the file does. A report of a million requests takes about ten."""

DOWNLOAD_STATS = "downloader/request_method_count/", "downloader/response_status_count/"
"""The stats of Scrapy that the report has, by the start of their names."""

_WAITS = {"pace": "delayed", "robots_txt": "waited", "backoff": "backoff"}
"""The event of each kind of wait."""

REFUSALS = frozenset({401, 402, 403, 429})  # the statuses that refuse access

_NOT_STATED = frozenset({"expired", "licenses"})  # fields that are no directives


class CrawlLog(Events):
    """The events of one run. ``run`` describes it."""

    def __init__(
        self, run: records.Run, settings: Settings, clock: Clock, file: BackgroundFile
    ) -> None:
        self.run = run
        self._unreachable_policy = UnreachablePolicy(
            settings.on_unreachable == "allow", settings.unreachable_days
        )
        # The wall clock may be set while the crawl runs. Gaps between requests must not change.
        self._at = clock.steady
        self._file = file
        self._encode = msgspec.json.Encoder().encode
        self._lines = bytearray()
        self._sent: WeakSet[Request] = WeakSet()
        """The requests that were sent and have not ended."""
        self._known_files: set[str] = set()
        self._add(records.RunEvent(run))

    def flush(self) -> None:
        """Give what there is to the file."""
        data, self._lines = bytes(self._lines), bytearray()
        if not data:
            return
        events = data.count(b"\n")
        if self._file.lost:  # the first line of the file may be lost, too
            self.run.damage = f"the disk did not take {self._file.lost:,} events"
            data = self._encode(records.RunEvent(self.run)) + b"\n" + data
        # Level 6 would make the file smaller by an eighth, and take twice the time.
        self._file.append(len(data), lambda: gzip.compress(data, 1), events)

    def end(self, downloads: dict[str, int], reason: str) -> None:
        self.run.downloads = downloads
        self.run.finish_reason = reason
        self.run.ended_at = records.utc(self._at())
        self._add(records.RunEvent(self.run))
        self.flush()

    def _add(self, event: records.Event) -> None:
        self._lines += self._encode(event) + b"\n"
        if len(self._lines) > BUFFER_SIZE:
            self.flush()

    def sent(self, request: Request, delay: float, broken: Verdict | None = None) -> None:
        self._sent.add(request)
        meta = request.meta
        verdict, kind = meta.get(ROBOTSTXT), "sent"
        if meta.get(IS_ROBOTSTXT_REQUEST):
            verdict, kind, broken = "", "robots.txt", None
        elif meta.get(DONT_OBEY):
            verdict = records.EXEMPT
        elif not isinstance(verdict, Verdict):
            verdict = records.UNCHECKED
        self._add_request(kind, request.url, delay, verdict, broken)

    def ended(self, request: Request) -> None:
        if request in self._sent:
            self._sent.discard(request)
        elif self.run.sent_is_known:
            self.run.sent_is_known = False
            self._add(records.RunEvent(self.run))

    def answered(self, response: Response, request: Request) -> None:
        """Log a response that refuses a request which the robots.txt of its site allows."""
        verdict, status = request.meta.get(ROBOTSTXT), response.status
        if status not in REFUSALS or not isinstance(verdict, Verdict) or not verdict.allowed:
            return
        if verdict.reason is not Reason.LOCAL_RULE and (key := origin_of(request.url)) is not None:
            path = cut(path_of(request.url), records.MAX_TEXT - len(key))
            refusal = records.RequestEvent("refused", self._at(), key, path, 0.0)
            refusal.detail = str(status)
            self._add(refusal)

    def disallowed(self, url: str, verdict: Verdict, *, was_sent: bool = False) -> None:
        self._add_request("final-url" if was_sent else "dropped", url, 0.0, verdict, None)

    def waited(self, origin: str, kind: str, seconds: float) -> None:
        self._add_request(_WAITS[kind], origin + "/", seconds, "", None)

    def _add_request(
        self, kind: str, url: str, seconds: float, verdict: Verdict | str, broken: Verdict | None
    ) -> None:
        key = origin_of(url)
        if key is not None:
            path = cut(path_of(url), records.MAX_TEXT - len(key))
        elif kind in ("dropped", "final-url"):  # the URL has no valid host
            path = kept_text(without_credentials(url))
        else:  # data:, file: and other schemes without a robots.txt
            return
        decided, at = records.decided(verdict, broken), self._at()
        self._add(records.RequestEvent(kind, at, key, path, seconds, *decided))

    def fetched(self, origin: Origin, event: FetchResult | Entry, body: bytes | None) -> None:
        status, url, failure = origin.status, origin.url, None
        if isinstance(event, Unreachable):
            # The state of the origin may still be that of an earlier fetch.
            status, url, failure = event.status, event.url, event.failure
        elif origin.state is State.UNREACHABLE:
            failure = origin.failure
        expires_at, result = origin.expires_at, origin.result.value
        if failure is not None:
            expires_at, result = origin.refresh_at, AccessResult.UNREACHABLE.value
        elif origin.state is State.UNAVAILABLE and status is None:
            result = records.REDIRECT_LOOP
        digest = None
        if origin.content is not None:
            effect, text = "rules", origin.content.text
            digest = origin.copy.sha256 if origin.copy is not None else None
            if body is not None:
                digest = digest or sha256(body).hexdigest()
                self._add_file(digest, body, text)
            if failure is None and text is not None and not text.strip():
                result = records.EMPTY
        else:
            disallows_all = origin.disallows_all(self._at(), self._unreachable_policy)
            effect = "disallow" if disallows_all else "allow"
        found = records.FetchEvent(
            result,
            effect,
            origin.source,
            status,
            url and kept_text(url),
            [kept_text(each) for each in origin.redirects[:20]],
            failure and kept_text(failure),
            digest,
            at=self._at(),
            origin=origin.key,
            fetched_at=min(origin.fetched_at, records.LATEST),
            expires_at=min(expires_at, records.LATEST),
        )
        self._add(found)

    def _add_file(self, digest: str, body: bytes, text: bytes | None) -> None:
        if digest not in self._known_files:
            if len(self._known_files) == 10_000:  # beyond these, the log may have a file twice
                self._known_files.clear()
            self._known_files.add(digest)
            kept = None
            if text is not None and len(text) <= records.MAX_FILE_TEXT:
                kept = text.decode("utf-8", "replace")
            self._add(records.FileEvent(digest, len(body), kept))

    def paced(self, origin: Origin, pace: str, delay: float) -> None:
        pacing = origin.last_pacing
        if pace and pacing is None and origin.content is not None:  # without REP_OBEY_RATE_LIMITS
            pacing = Pacing.of(origin.content, tuple(self.run.tokens))
        asked = min(pacing.seconds_between(self._at()), 1e12) if pacing is not None else 0.0
        self._add(
            records.PaceEvent(kept_text(pace), asked, delay, at=self._at(), origin=origin.key)
        )

    def page(self, url: str, directives: PageDirectives, usage: Mapping[str, bool]) -> None:
        if directives is not NO_DIRECTIVES:
            for name, detail in _found(directives):
                self._add_page(url, "directive", name, detail)
        for name, is_granted in islice(usage.items(), records.MAX_NAMES):
            self._add_page(url, "usage", name, refused=not is_granted)

    def page_dropped(self, url: str, names: Sequence[str], *, is_usage: bool = False) -> None:
        kind = "usage" if is_usage else "directive"
        for name in names:
            self._add_page(url, kind, name, refused=is_usage, dropped=True)

    def _add_page(self, url: str, kind: str, name: str, detail: str = "", **flags: bool) -> None:
        key = origin_of(url)
        if key is not None:
            path = cut(path_of(url), records.MAX_TEXT - len(key))
            name, detail = kept_text(name), kept_text(detail)
            self._add(records.PageEvent(kind, self._at(), key, path, name, detail, **flags))


def _found(directives: PageDirectives) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each directive of a page. A flag has no value."""
    yield from (("license", url) for url in directives.licenses)
    for name in (each.name for each in fields(directives)):
        value = getattr(directives, name)
        if name == "tdm_reservation" and value is not None:
            yield name, str(int(value))
        elif name not in _NOT_STATED and value is not None and value is not False:
            text = value.isoformat() if isinstance(value, datetime) else str(value)
            yield name, "" if value is True else text


class CrawlReport(CrawlLog):
    """The event log of a crawl, from which its report is made. Raises as :func:`paths_of` does."""

    def __init__(
        self, crawler: Crawler, settings: Settings, clock: Clock, archive: Archive | None
    ) -> None:
        assert crawler.stats is not None
        self._logger = spider_logger(__name__, crawler.spider)
        self._stats, self._archive = crawler.stats, archive
        now = clock.time()
        run_id = f"{records.utc(now):%Y%m%dT%H%M%S}-{os.getpid()}-{token_hex(4)}"
        self._targets, self._log_path = paths_of(settings.report, crawler.spider, run_id, now)
        self._failures = 0
        agent = settings.user_agent(None)
        of_scrapy = scrapy_settings(crawler, SETTINGS)
        run = records.Run(
            run_id,
            str(getattr(crawler.spider, "name", "")),
            f"scrapy-rep {version('scrapy-rep')}, Scrapy {version('scrapy')}",
            kept_text(text_of(agent)),
            records.utc(now),
            records.utc(now),
            [kept_text(token) for token in product_tokens(agent)[: records.MAX_NAMES]],
            {name: kept_text(repr(value)) for name, value in changed_settings(settings).items()},
            archive=None if archive is None else kept_text(archive.file.path),
            scrapy_settings={name: kept_text(value) for name, value in of_scrapy.items()},
            machine=kept_text(gethostname()),
            max_crawl_delay=settings.max_crawl_delay,
        )
        super().__init__(run, settings, clock, BackgroundFile(self._log_path))
        self._looping: Any = None
        crawler.signals.connect(self._on_spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(self._on_spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(self.answered, signal=signals.response_downloaded)

    async def _on_spider_opened(self) -> None:
        self._looping = create_looping_call(self._write)
        self._looping.start(WRITE_INTERVAL, now=True)

    def _write(self) -> None:
        self.flush()
        self._report_file_failure()

    def _report_file_failure(self) -> None:
        if self._file.failure and not self._failures:
            self._report_failure(self._log_path, self._file.failure)

    async def _on_spider_closed(self, reason: str) -> None:
        if self._looping is not None and self._looping.running:
            self._looping.stop()
        if self._archive is not None:
            await self._archive.close()
            self.run.archive_sha256 = self._archive.file.sha256
        downloads = {
            name.removeprefix("downloader/"): value
            for name, value in sorted(self._stats.get_stats().items())
            if name.startswith(DOWNLOAD_STATS) and type(value) is int
        }
        self.end(downloads, reason)
        try:  # the report has the hash of the closed log
            await self._file.close(self._write_report, REPORT_TIMEOUT)
        # Whatever it is, the crawl has to end as without a report.
        except Exception as error:
            self._report_failure(self._log_path, error)
        self._report_file_failure()

    def _report_failure(self, path: Path, error: object) -> None:
        self._failures += 1
        self._stats.set_value("robotstxt/report_error_count", self._failures)
        if self._failures == 1:
            self._logger.error(
                "The report of the crawl cannot be written to %(path)s (REP_REPORT): %(error)s. "
                "The crawl continues. Later failures are counted in the stat "
                "robotstxt/report_error_count.",
                {"path": path, "error": printable(str(error) or type(error).__name__)},
            )

    def _write_report(self) -> None:
        """Write the report. The thread of the file calls this."""
        self._report_file_failure()
        report = read_reports([self._log_path])
        for path in self._targets:
            try:
                kind = path.suffix.lower()
                text = records.csv_text(report) if kind == ".csv" else records.json_text(report)
                if kind == ".html":
                    from .pages import report_page  # loads libraries that only a page needs

                    text = report_page(report)
                write_atomically(path, text.encode("utf-8", "backslashreplace"))
            # One form that fails must not cost the other.
            except Exception as error:
                self._report_failure(path, error)
            else:
                self._logger.info(
                    "The report of the crawl is %(path)s.",
                    {"path": path},
                )


def paths_of(
    templates: Sequence[str], spider: object, run_id: str, started_at: float
) -> tuple[list[Path], Path]:
    """Return the paths of the reports of a run, after creating their folders, and of its event log.

    Raises OSError, ValueError or :class:`~scrapy_rep.exceptions.SettingError` for one that cannot
    be written, and ModuleNotFoundError if a page needs a package.
    """
    targets = []
    for template in templates:
        path = Path(path_from("REP_REPORT", template, spider, started_at))
        if path.suffix.lower() not in (".json", ".html", ".csv"):
            problem = "it must be a path that ends in .json, .html or .csv"
            raise SettingError(f"REP_REPORT is {template!r}: {problem}")
        if path.suffix.lower() == ".html" and find_spec("jinja2") is None:
            raise ModuleNotFoundError(name="jinja2")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(EISDIR, "it is a directory", str(path))
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(EACCES, "its folder cannot be written to", str(path))
        targets.append(path)
    # A file name has at most 255 bytes.
    stem = os.fsencode(targets[0].stem)[:150].decode(errors="ignore")
    return targets, targets[0].with_name(f"{stem}.{run_id}.events.gz")
