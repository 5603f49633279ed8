"""What the user names: URLs, and robots.txt files on this machine, of a site, a store, an archive.

A robots.txt has one of these forms::

    FILE                    a file; "-" is standard input
    SITE                    https://example.com, example.com
    store:SITE              the copy in the store of REP_STORE
    archive:SITE[@TIME]     what a WARC file has, at the end or at a time such as 2026-11-22T10:00
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..protocol.paths import lacks_host, origin_of
from ..protocol.printable import without_credentials
from .context import STANDARD_INPUT
from .output import CommandError, ExitCode
from .policy import Policy, of_entry, of_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .context import Context
    from .session import Session

ARCHIVED, STORED = "archive:", "store:"
"""What stands before a site to name its robots.txt as an archive or the store has it."""

FORMS = f"a file ('-': standard input), a site, {STORED}SITE or {ARCHIVED}SITE@TIME"
"""The forms of a robots.txt, for help texts."""

DEFAULT_SCHEME = "https"
"""The scheme of a URL that is given without one."""

# "mailto:x", but not "example.com:8080/x".
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|(?!\d+(?:[/?#]|\Z)))").match
# How Python reads a byte of an argument or a file that is not UTF-8.
_NOT_UTF_8 = re.compile("[\udc80-\udcff]")
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.\d+)?)? ?(Z|[+-]\d\d:\d\d|UTC)?)?", re.ASCII
)
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
    """Return the end of a day, a minute or a second, in seconds since 1970. Raises ValueError.

    >>> until_of("2026-11-22") == until_of("2026-11-22T23:59Z")
    True
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("it has another form")
    day, minute, second, zone = found.groups()
    unit = timedelta(days=1) if minute is None else timedelta(minutes=1)
    if second is not None:
        unit = timedelta(seconds=1)
    offset = "+00:00" if zone in (None, "Z", "UTC") else zone
    start = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}{offset}")
    return (start + unit).timestamp()


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


def read_policies(names: Sequence[str], context: Context) -> list[Policy]:
    """Return the robots.txt files that arguments name, in their order.

    Raises :class:`CommandError` for one that names nothing, and for a file, an archive or a store
    that cannot be read.
    """
    found: dict[str, Policy] = {}
    moments: dict[str, Moment] = {}
    sites: dict[str, str] = {}
    stored: dict[str, str] = {}
    for given in dict.fromkeys(names):
        name = given.removeprefix(STORED)
        if is_file(given):
            found[given] = _read_file(given, context)
        elif given.startswith(ARCHIVED):
            moments[given] = moment_of(given)
        elif is_file(name):
            raise CommandError(f"cannot read {given}: no such file")
        else:
            target = target_of(name)
            if target.origin is None:
                raise CommandError(f"{given} is neither a file nor a site")
            (sites if name == given else stored)[given] = target.origin
            if target.url != target.given and name == given:
                context.output.note(f"{given} is not a file: it is taken for {target.url}")
    if moments:
        from .archived import policies_of  # only here, because it loads much

        at = policies_of(set(moments.values()), context)
        found |= {given: at[moment] for given, moment in moments.items()}
    if stored and context.settings.store is None:
        raise CommandError(f"{STORED} needs a store: set REP_STORE")
    if sites or stored:
        url = context.settings.store
        if stored:  # what is compared with the store comes from the site
            context.scrapy_settings.set("REP_STORE", None, priority="cmdline")

        def get(session: Session) -> None:
            policies = session.policies(dict.fromkeys(sites.values()))
            found.update((given, policies[origin]) for given, origin in sites.items())
            for given, origin in stored.items():
                found[given] = session.wait(_stored(url, origin))

        context.run(get)
    return [found[name] for name in names]


def _read_file(name: str, context: Context) -> Policy:
    body = context.read_file(name)
    if b"\0" in body[:_START] and not body.startswith(_UTF16_MARKS):
        raise CommandError(f"cannot read {name} as a robots.txt: it is a binary file")
    return of_file(name, body)


async def _stored(url: object, origin: str) -> Policy:
    from ..settings import without_passwords
    from ..stores import StoreError, open_store
    from ..stores.base import TTL

    name = str(without_passwords(url))
    try:
        store = open_store(url, jobdir=None, ttl=TTL)  # type: ignore[arg-type]
    except StoreError as error:
        raise CommandError(f"cannot open the store {name}: {error}") from None
    assert store is not None
    try:
        entry = await store.get(origin)  # a store that fails logs a warning, and has no entry
    finally:
        await store.close()
    if entry is None:
        raise CommandError(f"the store {name} has no robots.txt of {origin}", ExitCode.UNKNOWN)
    return of_entry(origin, entry, name)
