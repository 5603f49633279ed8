"""What the user names: URLs, and robots.txt files on this machine, of a site, an archive.

A robots.txt has one of these forms, and becomes a :class:`Policy`::

    FILE                    a file; "-" is standard input
    SITE                    https://example.com, example.com
    archive:SITE[@TIME]     what a WARC file has, at the end or at a time such as 2026-11-22T10:00
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from ..origin import Origin, State, UnreachablePolicy
from ..protocol.lines import read
from ..protocol.paths import lacks_host, origin_of, verdict_as_sent
from ..protocol.printable import printable, without_credentials
from ..protocol.robotstxt import REASONS, RobotsTxt, other_page
from .context import STANDARD_INPUT
from .output import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..protocol.verdict import Verdict
    from .context import Context
    from .session import Session
    from .texts import Row

Verdicts: TypeAlias = "Callable[[str, tuple[str, ...]], Verdict]"
"""Returns the verdict on a URL for a crawler with these product tokens."""

ARCHIVED = "archive:"
"""What stands before a site to name its robots.txt as an archive has it."""

FORMS = f"a file ('-': standard input), a site, or {ARCHIVED}SITE@TIME"
"""The forms of a robots.txt, for help texts."""

DEFAULT_SCHEME = "https"
"""The scheme of a URL that is given without one."""

# "mailto:x", but not "example.com:8080/x".
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|(?!\d+(?:[/?#]|\Z)))").match
# How Python reads a byte of an argument or a file that is not UTF-8.
_NOT_UTF_8 = re.compile("[\udc80-\udcff]")
_FILE_ENDING = ".txt"
"""No domain ends so. A name that does, and that is not a file, is a file that is missing."""
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_START = 1024


class Target(NamedTuple):
    """One URL that was given."""

    given: str
    url: str
    origin: str | None
    """None if it has no robots.txt."""
    is_valid: bool = True
    """False: nothing can be said about it. A URL whose scheme has no robots.txt is valid."""


class Moment(NamedTuple):
    """An origin at a time."""

    origin: str
    until: float = inf
    """Responses to requests before this time count, in seconds since 1970."""
    time: str | None = None
    """The time as it was given. None: the end of the archive."""


def target_of(given: str, *, in_file: bool = False) -> Target:
    """Return what a text stands for.

    Bytes that are not UTF-8 are percent-encoded. User names and passwords are removed.
    ``in_file``: the rules are those of a file, so that a path is enough.

    >>> target_of("example.com/x").url
    'https://example.com/x'
    """
    if not given.isascii():
        given = _NOT_UTF_8.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", given)
    if given.startswith("/") and not given.startswith("//"):
        return Target(given, given, None, in_file)
    given = url = without_credentials(given)
    if not _SCHEME(given):
        url = f"{DEFAULT_SCHEME}://{given.lstrip('/')}"
    origin = origin_of(url)
    return Target(given, url, origin, origin is not None or not lacks_host(url))


def site_of(given: str, context: Context, *, in_file: bool = False) -> Target:
    """Return what a text stands for, and say so if it has no scheme."""
    target = target_of(given, in_file=in_file)
    if target.url != target.given:
        text = f"{target.given} has no scheme: it is taken for {target.url}"
        context.output.note(text, "URLs without a scheme")
    return target


def moment_of(given: str) -> Moment:
    """Return what an argument names that begins with :data:`ARCHIVED`.

    Raises :class:`CommandError` if it names nothing.
    """
    site, at, time = given.removeprefix(ARCHIVED).partition("@")
    origin = target_of(site).origin
    if origin is None:
        raise CommandError(f"{given} names no site")
    if not at:
        return Moment(origin)
    try:
        return Moment(origin, until_of(time), time)
    except (ValueError, OverflowError):
        raise CommandError(
            f"{time!r} is not a time: write 2026-11-22 or 2026-11-22T10:00, in UTC"
        ) from None


def until_of(text: str) -> float:
    """Return the end of a day or of a second, in seconds since 1970. Raises ValueError.

    >>> until_of("2026-11-22") == until_of("2026-11-22T23:59:59Z")
    True
    """
    start = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if start.tzinfo is None:
        start = start.replace(tzinfo=timezone.utc)
    unit = timedelta(days=1) if len(text) == len("2026-11-22") else timedelta(seconds=1)
    return (start.replace(microsecond=0) + unit).timestamp()


def is_file(name: str) -> bool:
    """Whether a name stands for a file, also for one that is missing.

    >>> is_file("robots.txt"), is_file("public/robots.txt"), is_file("./robots")
    (True, True, True)
    >>> is_file("example.com/robots.txt"), is_file("example.com")
    (False, False)
    """
    if name.startswith(("/", ".")) or name == STANDARD_INPUT or Path(name).exists():
        return True
    folder, slash, _ = name.partition("/")
    return name.endswith(_FILE_ENDING) and "://" not in name and not (slash and "." in folder)


# One robots.txt

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
    verdict: Verdicts
    access: Access
    body: bytes | None = None
    """The file as it was received, if the session keeps it."""
    seconds_between: Callable[[tuple[str, ...]], float] = lambda _: 0
    """Returns the delay that a crawl keeps for a crawler with these product tokens."""

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
    page = other_page(body)
    robots = RobotsTxt(body) if page is None else RobotsTxt.from_response(200, body)
    access = Access(url=name, source="file", state="rules" if page is None else str(page))
    return Policy(None, robots, verdict_of(robots), access, body)


def of_origin(
    origin: Origin, verdict: Verdicts, *, body: bytes | None, store: str | None
) -> Policy:
    """Return the policy of an origin after its robots.txt was fetched or found in a store."""
    is_unreachable = origin.state is State.UNREACHABLE
    at = origin.fetched_at or None
    access = Access(
        url=origin.file_url,
        source="store" if origin.from_store else "http-cache" if origin.from_cache else "site",
        store=store,
        state=_state(origin),
        status=origin.status,
        redirects=origin.redirects,
        final_url=origin.url,
        failure=origin.failure,
        fetched_at=moment(at),
        age=None if at is None else round(max(time.time() - at, 0), 3),
        expires_at=moment((origin.refresh_at if is_unreachable else origin.expires_at) or None),
        unreachable_since=moment(origin.unreachable_since),
    )
    return Policy(origin.key, origin.robots, verdict, access, body if origin.robots else None)


def verdict_of(robots: RobotsTxt) -> Verdicts:
    """Return a function for :attr:`Policy.verdict` that applies the rules of a file."""
    return lambda url, tokens: verdict_as_sent(partial(robots.verdict, user_agent=tokens), url)


def verdict_at(origin: Origin, now: float) -> Verdicts:
    """Return a function for :attr:`Policy.verdict` that answers as a crawl does at a time."""
    return lambda url, tokens: origin.verdict(url, tokens, now, UnreachablePolicy())


def read_policies(names: Sequence[str], context: Context) -> list[Policy]:
    """Return the robots.txt files that arguments name, in their order.

    Raises :class:`CommandError` for one that names nothing, or a file that cannot be read.
    """
    found: dict[str, Policy] = {}
    sites: dict[str, Target] = {}
    for given in dict.fromkeys(names):
        if is_file(given):
            found[given] = _read_file(given, context)
        elif given.startswith(ARCHIVED):
            from .archived import policy_at  # only here, because it loads much

            found[given] = policy_at(moment_of(given), context)
        else:
            sites[given] = _named_site(given, context)

    def get(session: Session) -> None:
        policies = session.policies({str(target.origin) for target in sites.values()})
        targets = with_http(sites.values(), policies, session, context)
        found.update(
            (given, policies[str(target.origin)])
            for given, target in zip(sites, targets, strict=True)
        )

    if sites:
        context.run(get)
    return [found[name] for name in names]


def with_http(
    targets: Iterable[Target], policies: dict[str, Policy], session: Session, context: Context
) -> list[Target]:
    """Return targets, with http where no scheme was given and only http is answered.

    Only for hosts with a port, and on this machine: others are expected to have https. Policies
    that are fetched are added to ``policies``.
    """
    others = {}
    for target in targets:
        policy = policies.get(target.origin or "")
        if policy is None or not policy.access.is_unreachable or _SCHEME(target.given):
            continue
        host = urlsplit(target.origin or "")
        name = host.hostname or ""
        if host.port or name in ("localhost", "::1") or name.startswith("127."):
            http = [f"http{url.removeprefix('https')}" for url in (target.url, policy.origin or "")]
            others[target] = target._replace(url=http[0], origin=http[1])
    if others:
        policies |= session.policies({str(other.origin) for other in others.values()})
    for target, other in list(others.items()):
        if policies[str(other.origin)].access.is_unreachable:
            del others[target]
        else:
            text = f"{target.origin} does not answer: {other.origin} is used"
            context.output.note(text, "hosts without https")
    return [others.get(target, target) for target in targets]


def _named_site(given: str, context: Context) -> Target:
    target = target_of(given)
    if target.origin is None:
        raise CommandError(f"{given} is neither a file nor a site")
    if target.url != given:
        context.output.note(f"{given} is not a file: it is taken for {target.url}")
    return target


def _read_file(name: str, context: Context) -> Policy:
    body = context.read_file(name)
    if b"\0" in body[:_START] and not body.startswith(_UTF16_MARKS):
        raise CommandError(f"cannot read {name} as a robots.txt: it is a binary file")
    return of_file(name, body)


def _state(origin: Origin) -> str:
    if origin.result.is_unavailable:
        return REASONS[origin.result].value
    if origin.robots is None:
        return "unreachable"
    return "stale-copy" if origin.failure is not None else "rules"


# Texts


def access_rows(access: Access) -> Iterator[Row]:
    """Yield names and texts that say where a robots.txt came from."""
    if access.source == "file":
        yield "robots.txt", f"the file {printable(access.url)}"
        return
    yield "robots.txt", printable(access.url)
    status = f"status {access.status}, " if access.status is not None else ""
    name = {"store": access.store, "archive": access.archive}.get(access.source) or ""
    source = f"{_SOURCES[access.source]} {printable(name)}".rstrip()
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


def _ago(seconds: float) -> str:
    for unit, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            number = int(seconds / unit)
            return f"{number} {name}{'s' * (number != 1)} ago"
    return "just now" if seconds < 1 else f"{seconds:.0f} s ago"
