"""A robots.txt that an argument names: a file, a site, or a site in the store or an archive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..origin import DAY
from ..protocol.access import AccessResult
from ..protocol.paths import robots_txt_url
from ..protocol.robotstxt import RobotsTxt
from ..setting_types import without_passwords
from ..stores import StoreError, open_store
from .context import STANDARD_INPUT
from .exits import CommandError, ExitCode
from .moments import ARCHIVED, moment_of
from .policy import Access, Policy
from .targets import target_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..stores import Entry, Store
    from ..stores.registry import StoreSource
    from .context import Context
    from .moments import Moment
    from .session import Session

STORED = "store:"
"""What stands before a site to name its robots.txt as the store has it."""

_FILE_ENDING = ".txt"
"""No domain ends so. A name that does, and that is no file, is a file that is missing."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_START = 1024

_STATES = {
    AccessResult.RULES: "rules",
    AccessResult.UNAVAILABLE: "unavailable",
    AccessResult.DISALLOWED: "disallowed-status",
    AccessResult.UNREACHABLE: "unreachable",
}


class Source(NamedTuple):
    """A robots.txt that was named. Exactly one of the last four is set."""

    given: str
    file: str | None = None
    origin: str | None = None
    stored: str | None = None
    """The origin whose robots.txt the store has."""
    moment: Moment | None = None
    """The origin whose robots.txt an archive has."""

    @property
    def is_local(self) -> bool:
        """Whether it is read without a request and without a store."""
        return self.file is not None or self.moment is not None

    @property
    def key(self) -> str:
        """What tells it from other sources that are not local."""
        return self.origin or f"{STORED}{self.stored}"


def source_of(given: str, context: Context) -> Source:
    """Return what an argument names. Raises :class:`CommandError` if it names nothing."""
    if given == STANDARD_INPUT or Path(given).exists():
        return Source(given, file=given)
    if given.startswith(ARCHIVED):
        return Source(given, moment=moment_of(given))
    is_stored = given.startswith(STORED)
    name = given.removeprefix(STORED)
    if names_file(name):
        raise CommandError(f"cannot read {given}: no such file")
    target = target_of(name)
    if target.origin is None:
        raise CommandError(f"{given} is neither a file nor a site")
    if is_stored:
        return Source(given, stored=target.origin)
    if target.has_default_scheme:
        context.output.note(f"{given} is no file: it is taken for {target.url}")
    return Source(given, origin=target.origin)


def names_file(name: str) -> bool:
    """Whether a name that is no file can only be meant as one.

    >>> names_file("robots.txt"), names_file("public/robots.txt"), names_file("./robots")
    (True, True, True)
    >>> names_file("example.com/robots.txt"), names_file("example.com")
    (False, False)
    """
    if name.startswith(("/", ".")):
        return True
    folder, slash, _ = name.partition("/")
    return name.endswith(_FILE_ENDING) and "://" not in name and not (slash and "." in folder)


def read_file(name: str, context: Context) -> Policy:
    """Return the policy of a file. Raises :class:`CommandError` for a binary file."""
    policy = context.read_policy(name)
    start = (policy.body or b"")[:_START]
    if b"\0" in start and not start.startswith(_UTF16_MARKS):
        raise CommandError(f"cannot read {name} as a robots.txt: it is a binary file")
    return policy


def read_local(given: str, context: Context) -> Policy:
    """Return the policy of a file, or of a site in an archive.

    Raises :class:`CommandError` if it cannot be read.
    """
    if given.startswith(STORED) and not Path(given).exists():
        raise CommandError(f"{given}: only show and diff read a store")
    if not given.startswith(ARCHIVED) or Path(given).exists():
        return read_file(given, context)
    source = source_of(given, context)
    return _read_all([source], context)[source]


def _read_all(sources: Sequence[Source], context: Context) -> dict[Source, Policy]:
    """Return the policies of those sources that are local."""
    found = {
        source: read_file(source.file, context) for source in sources if source.file is not None
    }
    moments = {source: source.moment for source in sources if source.moment is not None}
    if moments:
        from .archived import policies_of  # only here, because it loads much

        policies = policies_of(set(moments.values()), context)
        found |= {source: policies[moment] for source, moment in moments.items()}
    return found


def get_policies(sources: Sequence[Source], context: Context) -> list[Policy]:
    """Return the policies of some sources, in their order.

    Raises :class:`CommandError` for a file, an archive or a store that cannot be read.
    """
    local = _read_all(sources, context)
    if len(local) == len(set(sources)):
        return [local[source] for source in sources]
    stored = [source.stored for source in sources if source.stored]
    store_url = context.settings.store
    if stored and store_url is None:
        raise CommandError(f"{STORED} needs a store: set REP_STORE")
    if stored:
        # What is compared with the store comes from the site.
        context.scrapy_settings.set("REP_STORE", None, priority="cmdline")

    async def get(session: Session) -> list[Policy]:
        return await fetch(session, sources, local, store_url, context)

    return context.run(get, keep_bodies=True)


async def fetch(
    session: Session,
    sources: Sequence[Source],
    local: Mapping[Source, Policy],
    store_url: StoreSource | None,
    context: Context,
) -> list[Policy]:
    """Return the policies of some sources, in their order. ``local`` has those that are local."""
    origins = dict.fromkeys(source.origin for source in sources if source.origin)
    found = await session.get_policies(origins)
    if len(found) < len(origins):
        raise KeyboardInterrupt
    stored = [source.stored for source in sources if source.stored]
    if stored and store_url is not None:
        found |= await _read_store(store_url, stored, context)
    return [local.get(source) or found[source.key] for source in sources]


async def _read_store(
    url: StoreSource, origins: Sequence[str], context: Context
) -> dict[str, Policy]:
    name = without_passwords(url)
    try:
        store = open_store(url, jobdir=None, ttl=context.settings.store_days * DAY)
    except StoreError as error:
        raise CommandError(f"cannot open the store {name}: {error}") from None
    assert store is not None
    try:
        return {
            STORED + origin: await _stored(store, origin, f"{name}", context) for origin in origins
        }
    finally:
        await store.close()


async def _stored(store: Store, origin: str, name: str, context: Context) -> Policy:
    try:
        entry = await store.get(origin)
    except StoreError as error:
        raise CommandError(f"cannot read the store {name}: {error}", ExitCode.UNKNOWN) from None
    if entry is None:
        raise CommandError(f"the store {name} has no robots.txt of {origin}", ExitCode.UNKNOWN)
    return _of_entry(origin, entry, name, strict=context.settings.strict)


def _of_entry(origin: str, entry: Entry, store: str, *, strict: bool) -> Policy:
    robots = None if entry.body is None else RobotsTxt(entry.body, strict=strict)
    state = _STATES[entry.result]
    if robots is not None and state == "unreachable":
        state = "stale-copy"
    access = Access(
        robots_txt_url(origin),
        "store",
        state,
        status=entry.status,
        final_url=entry.url,
        failure=entry.failure,
        fetched_at=entry.fetched_at,
        expires_at=entry.expires_at or None,
        unreachable_since=entry.unreachable_since,
        store=store,
    )
    verdict = (robots or RobotsTxt.from_response(entry.status)).verdict
    return Policy(origin, robots, verdict, access, entry.body)
