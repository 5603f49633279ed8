"""One robots.txt as the tools show it: its rules, its verdicts, and how it was had."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from ..origin import Origin, State
from ..protocol.lines import read
from ..protocol.paths import robots_txt_url
from ..protocol.robotstxt import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..protocol.verdict import Verdict


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
    """How the file was had."""
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


@dataclass(frozen=True, slots=True)
class Access:
    """How a robots.txt was had. Times are seconds since 1970."""

    url: str
    """The URL of the robots.txt, or the name of the file."""
    source: str
    """``site``, ``store``, ``http-cache``, ``archive`` or ``file``."""
    state: str
    """``rules``, ``unavailable``, ``disallowed-status``, ``unreachable``, or ``stale-copy``: the
    last good copy of a site that is unreachable."""
    status: int | None = None
    redirects: tuple[str, ...] = ()
    """The URLs that redirected, in order. From a store: unknown."""
    final_url: str | None = None
    """The URL of the last response."""
    failure: str | None = None
    fetched_at: float | None = None
    expires_at: float | None = None
    """When it is fetched again at the latest. While it is unreachable: when the next attempt is."""
    unreachable_since: float | None = None
    store: str | None = None
    """The URL of the store in use, without its password."""
    archive: str | None = None
    """The path of the archive that has the last response."""

    @property
    def is_unreachable(self) -> bool:
        """Whether there are no rules because the site failed."""
        return self.state == "unreachable"

    def as_json(self, now: float | None = None) -> dict[str, Any]:
        """Return the fields that are known, with times in ISO 8601."""
        now = time.time() if now is None else now
        age = None if self.fetched_at is None else round(max(now - self.fetched_at, 0), 3)
        return {
            "url": self.url,
            "source": self.source,
            "store": self.store,
            "archive": self.archive,
            "state": self.state,
            "status": self.status,
            "redirects": list(self.redirects),
            "final_url": self.final_url,
            "failure": self.failure,
            "fetched_at": _iso(self.fetched_at),
            "age": age,
            "expires_at": _iso(self.expires_at),
            "unreachable_since": _iso(self.unreachable_since),
        }


def of_file(name: str, body: bytes, *, strict: bool = False) -> Policy:
    """Return the policy of a file on this machine."""
    robots = RobotsTxt(body, strict=strict)
    return Policy(None, robots, robots.verdict, Access(name, "file", "rules"), body)


def of_origin(
    origin: Origin,
    verdict: Callable[[str, tuple[str, ...]], Verdict],
    *,
    body: bytes | None,
    store: str | None,
) -> Policy:
    """Return the policy of an origin after its robots.txt was fetched or found in a store."""
    source = "store" if origin.from_store else "http-cache" if origin.from_cache else "site"
    is_unreachable = origin.state is State.UNREACHABLE
    access = Access(
        robots_txt_url(origin.key),
        source,
        _state(origin),
        status=origin.status,
        redirects=origin.redirects,
        final_url=origin.url,
        failure=origin.failure,
        fetched_at=origin.fetched_at or None,
        expires_at=(origin.refresh_at if is_unreachable else origin.expires_at) or None,
        unreachable_since=origin.unreachable_since,
        store=store,
    )
    if origin.robots is not None and type(origin) is Origin:  # the fastest way to the same verdict
        verdict = origin.robots.verdict
    return Policy(origin.key, origin.robots, verdict, access, body if origin.robots else None)


def _state(origin: Origin) -> str:
    if origin.state is State.UNAVAILABLE:
        return "disallowed-status" if origin.disallow_all else "unavailable"
    if origin.robots is None:
        return "unreachable"
    return "stale-copy" if origin.failure is not None else "rules"


def _iso(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(round(seconds), timezone.utc).isoformat().replace("+00:00", "Z")
