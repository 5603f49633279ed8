"""The events of a crawl (REP_REPORT), as lines of a file.

The methods of :class:`CrawlLog` run for each request, so they only make a line. Nothing is counted
while the crawl runs: ``reading`` makes the report from the file.
"""

from __future__ import annotations

import gzip
import re
from collections import OrderedDict
from dataclasses import asdict
from datetime import datetime
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

import msgspec

from ..meta_keys import DONT_OBEY, IS_ROBOTSTXT_REQUEST, ROBOTSTXT
from ..origin import Origin, State, UnreachablePolicy
from ..pages.directives import NO_DIRECTIVES
from ..protocol.access import AccessResult, Unreachable
from ..protocol.paths import origin_of, path_of
from ..protocol.printable import cut, without_credentials
from ..protocol.records import describe
from ..protocol.verdict import Verdict
from .records import (
    ALLOWED_ANYWAY,
    EMPTY,
    EXEMPT,
    LATEST,
    MAX_FILE_TEXT,
    MAX_NAMES,
    MAX_TEXT,
    REDIRECT_LOOP,
    UNCHECKED,
    Event,
    FetchEvent,
    FileEvent,
    PaceEvent,
    PageEvent,
    RequestEvent,
    Run,
    RunEvent,
    utc,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scrapy import Request

    from ..frontier.clock import Clock
    from ..pages.directives import PageDirectives
    from ..protocol.access import FetchResult
    from ..settings import Settings
    from .background_file import BackgroundFile

BUFFER_SIZE = 1 << 16
"""Bytes of lines that are written at once. Fewer are written after some seconds."""

KNOWN_FILES = 10_000
"""The robots.txt files that are known to be in the log. A file beyond them may be in it twice."""

COMPRESSION = 1
"""The level of gzip. Six makes the files smaller by an eighth, and takes twice the time."""


_WITHOUT_HOST = frozenset({"dropped", "final-url", "final-url-dropped"})
"""The events of URLs that have no valid host."""

_NOT_STATED = frozenset({"expired", "access_terms", "licenses", "tdm_reservation"})
"""The fields of page directives that are no directives, or are logged otherwise."""

_USERINFO = re.compile("//[^/?#]*@")


class CrawlLog:
    """The events of one run. ``run`` describes it."""

    def __init__(self, run: Run, settings: Settings, clock: Clock, file: BackgroundFile) -> None:
        self.run = run
        self._unreachable_policy = UnreachablePolicy(
            settings.unreachable == "allow", settings.unreachable_days
        )
        self._now, self._monotonic = clock.time, clock.monotonic
        # The wall clock may be set while the crawl runs. Gaps between requests must not change.
        self._epoch = clock.time() - clock.monotonic()
        self._file = file
        self._encode = msgspec.json.Encoder().encode
        self._lines: list[bytes] = []
        self._size = 0
        self._sent: WeakSet[Request] = WeakSet()
        """The requests that were sent and have not ended."""
        self._excepted: WeakKeyDictionary[Request, Verdict] = WeakKeyDictionary()
        """What the robots.txt says about requests that start as exceptions."""
        self._known_files: OrderedDict[str, int] = OrderedDict()
        self._add(RunEvent(run))

    def flush(self) -> None:
        """Give what there is to the file."""
        lines, self._lines, self._size = self._lines, [], 0
        if not lines:
            return
        events = len(lines)
        if self._file.lost:  # the first line of the file may be lost, too
            self.run.damage = f"the disk did not take {self._file.lost:,} events"
            lines.insert(0, self._encode(RunEvent(self.run)) + b"\n")
        octets = b"".join(lines)
        self._file.append(len(octets), lambda: gzip.compress(octets, COMPRESSION), events)

    def end(self, downloads: dict[str, int], reason: str) -> None:
        """Add the end of the run."""
        self.run.downloads = downloads
        self.run.finish_reason = reason
        self.run.ended_at = utc(self._at())
        self._add(RunEvent(self.run))
        self.flush()

    def _add(self, event: Event) -> None:
        octets = self._encode(event)
        self._lines.append(octets + b"\n")
        self._size += len(octets)
        if self._size > BUFFER_SIZE:
            self.flush()

    def _at(self) -> float:
        return self._epoch + self._monotonic()

    # Requests.

    def excepted(self, request: Request, verdict: Verdict) -> None:
        """Note what the robots.txt says about a request that starts as an exception."""
        self._excepted[request] = verdict

    def sent(self, request: Request, delay: float) -> None:
        """Log a request that a download handler gets."""
        self._sent.add(request)
        meta, url = request.meta, request.url
        if meta.get(IS_ROBOTSTXT_REQUEST):
            self._add_request("robots.txt", url, delay)
        else:
            broken = self._excepted.pop(request, None) if self._excepted else None
            self._add_request("sent", url, delay, _verdict_in(meta), broken=broken)

    def ended(self, request: Request) -> None:
        """Note that a request has ended which its site may have received."""
        if request in self._sent:
            self._sent.discard(request)
        elif self.run.sent_is_known:
            self.run.sent_is_known = False
            self._add(RunEvent(self.run))

    def dropped(self, url: str, verdict: Verdict) -> None:
        """Log a request that is not sent."""
        self._add_request("dropped", url, 0.0, verdict)

    def waited(self, origin: str, kind: str, seconds: float) -> None:
        """Log a wait of the requests to an origin."""
        waits = (0.0, seconds) if kind == "pace" else (seconds, 0.0)
        self._add_request("waited", origin + "/", 0.0, "", *waits)

    def backed_off(self, origin: str, seconds: float) -> None:
        """Log that a site has asked for fewer requests, and is held for so many seconds more."""
        self._add_request("backoff", origin + "/", seconds)

    def final_url_disallowed(self, url: str, verdict: Verdict, *, dropped: bool) -> None:
        """Log a response whose URL is disallowed."""
        self._add_request("final-url-dropped" if dropped else "final-url", url, 0.0, verdict)

    def _add_request(
        self,
        kind: str,
        url: str,
        delay: float,
        verdict: Verdict | str = "",
        *waits: float,
        broken: Verdict | None = None,
    ) -> None:
        key = origin_of(url)
        if key is not None:
            path = cut(path_of(url), MAX_TEXT - len(key))
        elif kind in _WITHOUT_HOST:
            path = _text(_USERINFO.sub("//", url, count=1))
        else:  # data:, file: and other schemes without a robots.txt
            return
        allowed, rule, agent, detail = None, None, None, None
        if isinstance(verdict, Verdict):
            allowed, reason, rule, agent, detail = verdict
            verdict = reason.value
        if broken is not None:  # an exception
            if not broken.allowed:
                rule, agent = broken.rule, broken.agent
            if rule is None:
                detail = detail or (ALLOWED_ANYWAY if broken.allowed else str(broken))
        allow, pattern, line = rule or (None, None, None)
        texts = _optional(agent), allow, _optional(pattern), line, _optional(detail)
        self._add(
            RequestEvent(kind, self._at(), key, path, delay, verdict, allowed, *texts, *waits)
        )

    # Robots.txt files.

    def fetched(self, origin: Origin, event: FetchResult | None, body: bytes | None) -> None:
        """Log the result of a fetch; None if the store had the file.

        ``body`` is the file as it was received; None if none was received.
        """
        copy, digest = origin.copy, None
        text = None if origin.robots is None else origin.robots.text
        if origin.robots is not None:
            digest = copy.sha256 if copy is not None else None
            if body is not None:
                digest = digest or sha256(body).hexdigest()
                if digest not in self._known_files:
                    self._add_file(digest, body, text)
        status, url, failure = origin.status, origin.url, None
        if isinstance(event, Unreachable):
            # The state of the origin may still be that of an earlier fetch.
            status, url, failure = event.status, event.url, event.failure
        elif origin.state is State.UNREACHABLE:
            failure = origin.failure
        is_unreachable = failure is not None
        result = (AccessResult.UNREACHABLE if is_unreachable else origin.result).value
        if text is not None and not is_unreachable and (not text or text.isspace()):
            result = EMPTY
        elif origin.state is State.UNAVAILABLE and status is None:
            result = REDIRECT_LOOP
        self._add(
            FetchEvent(
                self._at(),
                origin.key,
                min(origin.fetched_at, LATEST),
                result,
                self._effect(origin),
                "store" if event is None else "http-cache" if origin.from_cache else "site",
                status,
                _optional(url),
                [cut(each, MAX_TEXT) for each in origin.redirects[:20]],
                _optional(failure),
                digest,
                self._known_files.get(digest) if digest is not None else None,
                min(origin.refresh_at if is_unreachable else origin.expires_at, LATEST),
            )
        )

    def _add_file(self, digest: str, body: bytes, text: bytes | None) -> None:
        self._known_files[digest] = len(body)
        if len(self._known_files) > KNOWN_FILES:
            self._known_files.popitem(last=False)
        if text is not None and len(text) <= MAX_FILE_TEXT:
            self._add(FileEvent(digest, len(body), text.decode("utf-8", "replace")))
        else:
            self._add(FileEvent(digest, len(body), None))

    def _effect(self, origin: Origin) -> str:
        if origin.robots is not None:
            return "rules"
        if origin.state is State.UNAVAILABLE:
            return "disallow" if origin.disallow_all else "allow"
        is_disallowed = origin.next_attempt(self._now(), self._unreachable_policy) is not None
        return "disallow" if is_disallowed else "allow"

    def paced(
        self, origin: Origin, agents: tuple[str, ...], local_delay: float, delay: float
    ) -> None:
        """Log the pace that a site asks for."""
        records = "" if origin.robots is None else describe(origin.robots, agents)
        self._add(PaceEvent(self._at(), origin.key, _text(records), local_delay, delay))

    # Pages.

    def page(self, url: str, directives: PageDirectives, usage: Mapping[str, bool]) -> None:
        """Log the directives and uses of a response."""
        if directives is not NO_DIRECTIVES:
            for name, detail in _found(directives):
                self._add_page("directive", url, name, detail)
            for license_url in directives.licenses[:MAX_NAMES]:
                self._add_page("license", url, without_credentials(license_url))
            terms = directives.access_terms
            if terms is not None and terms.payment_required:
                self._add_page("terms", url, "payment", str(terms))
            if terms is not None and terms.license_required:
                self._add_page("terms", url, "license", str(terms))
        for name, is_granted in islice(usage.items(), MAX_NAMES):
            self._add_page("usage", url, name, refused=not is_granted)

    def dropped_for_directive(self, url: str, name: str) -> None:
        """Log an item or a request that is dropped because of a directive."""
        self._add_page("directive", url, name, dropped=True)

    def dropped_for_usage(self, url: str, names: Sequence[str]) -> None:
        """Log an item that is dropped because its page refuses uses."""
        for name in names:
            self._add_page("usage", url, name, refused=True, dropped=True)

    def _add_page(
        self,
        kind: Any,
        url: str,
        name: str,
        detail: str = "",
        *,
        refused: bool = False,
        dropped: bool = False,
    ) -> None:
        key = origin_of(url)
        if key is not None:
            path = cut(path_of(url), MAX_TEXT - len(key))
            texts = _text(name), _text(detail)
            self._add(PageEvent(kind, self._at(), key, path, *texts, refused, dropped))


def _optional(text: str | None) -> str | None:
    return None if text is None else _text(text)


def _text(text: str) -> str:
    """Return a text that is not too long, and that JSON can have."""
    if not text.isascii():  # it may have a lone surrogate
        text = text[: MAX_TEXT + 1].encode("utf-8", "backslashreplace").decode()
    return cut(text, MAX_TEXT)


def _verdict_in(meta: dict[str, Any]) -> Verdict | str:
    if meta.get(DONT_OBEY):
        return EXEMPT
    verdict = meta.get(ROBOTSTXT)
    return verdict if isinstance(verdict, Verdict) else UNCHECKED


def _found(directives: PageDirectives) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each directive of a page. A flag has no value."""
    for name, value in asdict(directives).items():
        if name == "tdm_reservation" and value is not None:
            yield name, str(int(value))
        elif name not in _NOT_STATED and value is not None and value is not False:
            text = value.isoformat() if isinstance(value, datetime) else str(value)
            yield name, "" if value is True else text
