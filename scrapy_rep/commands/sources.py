"""What the user names: URLs, files with URLs, stores, and robots.txt files here or of a site."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import sys
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ..protocol.access import recognize
from ..protocol.lines import read
from ..protocol.parser import has_rules
from ..protocol.paths import ROBOTS_TXT, lacks_host, origin_of, verdict_as_sent
from ..protocol.printable import without_credentials
from ..protocol.robotstxt import RobotsTxt
from ..reports.records import age
from .context import STANDARD_INPUT, CommandError, Context, NoAnswerError, need, reading, refuse_if
from .policy import Access, Policy

if TYPE_CHECKING:
    from ..stores.threaded import ThreadedStore
    from .session import Session

FORMS = "a file ('-': standard input), or a site"

# "mailto:x", but not "example.com:8080/x".
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|(?!\d+(?:[/?#]|\Z)))").match
# The file names of the web, of which none is a host.
_FILE_NAME = re.compile(
    r".*\.(?:aspx?|cgi|css|gif|html?|jpe?g|js|json|jsp|pdf|php|png|txt|xml)"
).fullmatch
# How Python reads a byte of an argument or a file that is not UTF-8.
_NOT_UTF_8 = re.compile("[\udc80-\udcff]")


class Target(NamedTuple):
    """One URL that was given."""

    given: str
    url: str
    origin: str | None
    """None if it has no robots.txt."""
    is_valid: bool = True
    """False: nothing can be said about it. A URL whose scheme has no robots.txt is valid."""


def is_path(given: str) -> bool:
    return given.startswith("/") and not given.startswith("//")


def lacks_slash(given: str) -> bool:
    """Return whether a text is probably meant for a path, as ``admin``, and not for a host.

    >>> [lacks_slash(text) for text in ("admin", "a/b", "index.html", "/a", "example.com/a")]
    [True, True, True, False, False]
    """
    first = given.partition("/")[0]
    is_host = first == "" or ":" in first or ("." in first and not _FILE_NAME(first))
    return not (is_host or _SCHEME(given))


def target_of(given: str, *, in_file: bool = False) -> Target:
    """Return what a text stands for.

    Bytes that are not UTF-8 are percent-encoded. User names and passwords are removed.
    ``in_file``: the rules are those of a file, so that a path is enough.
    """
    if not given.isascii():
        given = _NOT_UTF_8.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", given)
    if is_path(given):
        return Target(given, given, None, in_file)
    given = url = without_credentials(given)
    if in_file and lacks_slash(given):
        return Target(given, given, None, is_valid=False)
    if not _SCHEME(given):
        url = f"https://{given.lstrip('/')}"
    origin = origin_of(url)
    return Target(given, url, origin, origin is not None or not lacks_host(url))


def site_of(given: str, context: Context, *, in_file: bool = False) -> Target:
    """Return what a text stands for, and say so if it has no scheme."""
    target = target_of(given, in_file=in_file)
    if target.url != target.given:
        text = f"{target.given} has no scheme: it is taken for {target.url}"
        context.note(text, "URLs without a scheme")
    return target


def is_file(name: str) -> bool:
    """Whether a name stands for a file, also for one that is missing.

    >>> is_file("robots.txt"), is_file("public/robots.txt"), is_file("./robots")
    (True, True, True)
    >>> is_file("example.com/robots.txt"), is_file("example.com")
    (False, False)
    """
    if name.startswith(("/", ".")) or name == STANDARD_INPUT or os.path.exists(name or "."):
        return True
    folder, slash, _ = name.partition("/")
    # No domain ends so. A name that does, and that is not a file, is a file that is missing.
    return name.endswith(".txt") and "://" not in name and not (slash and "." in folder)


def robots_txt_here(context: Context) -> str:
    """Return the name of the robots.txt in the current folder, and say that it is used."""
    name = ROBOTS_TXT.removeprefix("/")
    is_missing = not Path(name).is_file()
    refuse_if(
        is_missing, f"there is no {name} in this folder: name one with --robots, or write URLs"
    )
    context.note(f"the {name} of this folder is used; --robots names another one")
    return name


def of_file(name: str, body: bytes) -> Policy:
    robots, page = RobotsTxt.from_response(200, body), recognize(body).result
    access = Access(url=name, source="file", state="rules" if page is None else str(page))
    return Policy(None, robots, partial(verdict_as_sent, robots.verdict), access, body)


def start_session(
    context: Context, *, reads_tdm_files: bool = False
) -> AbstractContextManager[Session]:
    """Start Scrapy, and return a session that ends it. ``reads_tdm_files``: as a crawl does."""
    from .session import open_session  # only what needs the network starts Scrapy

    if not reads_tdm_files:
        context.scrapy_settings.set("REP_TDMREP", False, priority="cmdline")
    return open_session(context.scrapy_settings, fresh=context.fresh)


def read_policies(names: Sequence[str], context: Context) -> list[Policy]:
    """Return the robots.txt files that arguments name, in their order."""
    found: dict[str, Policy] = {}
    sites: dict[str, Target] = {}
    for given in dict.fromkeys(names):
        if is_file(given):
            found[given] = of_file(given, context.read_file(given))
            continue
        target = sites[given] = target_of(given)
        if target.origin is None:
            raise CommandError(f"{given} is neither a file nor a site")
        if target.url != given:
            context.note(f"{given} is not a file: it is taken for {target.url}")
    if sites:
        policies: dict[str | None, Policy] = {}
        with start_session(context) as session:
            targets = fetch_policies(sites.values(), policies, session, context)
        fetched = zip(sites, targets, strict=True)
        found |= {given: policies[target.origin] for given, target in fetched}
    return [found[name] for name in names]


def fetch_policies(
    targets: Collection[Target], known: dict[str | None, Policy], session: Session, context: Context
) -> list[Target]:
    """Add the policies of targets to those that are known, each by its origin.

    Return the targets, with http where no scheme was given and only http is answered. Only for
    hosts with a port, and on this machine: others are expected to have https.
    """

    def fetch(targets: Iterable[Target]) -> None:
        origins = dict.fromkeys(target.origin for target in targets if target.origin)
        missing = [origin for origin in origins if origin not in known]
        for policy in session.policies(missing):
            known[policy.origin] = policy
            note_age(policy.access, context)

    def is_unreachable(target: Target) -> bool:
        return target.origin in known and known[target.origin].access.is_unreachable

    fetch(targets)
    others = {}
    for target in filter(is_unreachable, targets):
        host = urlsplit(target.origin or "")
        name = host.hostname or ""
        is_expected = host.port or name in ("localhost", "::1") or name.startswith("127.")
        if is_expected and not _SCHEME(target.given):
            http = [f"http{url.removeprefix('https')}" for url in (target.url, target.origin or "")]
            others[target] = target._replace(url=http[0], origin=http[1])
    fetch(others.values())
    used = {target: other for target, other in others.items() if not is_unreachable(other)}
    for target, other in used.items():
        text = f"{target.origin} does not answer: {other.origin} is used"
        context.note(text, "hosts without https")
    return [used.get(target, target) for target in targets]


def note_age(access: Access, context: Context) -> None:
    """Say so if a robots.txt is from the store, and how old it is."""
    if access.source == "store" and access.fetched_at is not None:
        seconds = max(time.time() - access.fetched_at.timestamp(), 0)
        kind = "robots.txt files from the store"
        context.note(
            f"{access.url} is from the store, {age(seconds)} old; --fresh asks the site", kind
        )


def archive_reader() -> Any:
    """Return the module that reads archives. Raises :class:`CommandError` without warcio."""
    need("archives need", "warcio")
    return import_module("..reports.archive", __package__)


@contextmanager
def using_store(url: str, *, must_exist: bool) -> Iterator[ThreadedStore]:
    """Open a store, and disconnect it. An error of the store becomes a CommandError."""
    from ..stores.base import StoreError  # they need Scrapy
    from ..stores.registry import open_for_tool
    from ..stores.urls import without_password

    name = without_password(url)
    is_name = "://" not in url
    refuse_if(is_name, f"{name} is not the URL of a store: write sqlite:///{name}, or redis://…")
    try:
        store = open_for_tool(url, must_exist=must_exist)
    except StoreError as error:
        raise CommandError(f"the store {name} cannot be used: {error}") from None
    try:
        yield store
    except StoreError as error:
        raise NoAnswerError(f"the store {name} failed: {error}") from None
    finally:
        store.disconnect()


# Files with URLs, which are read as streams

FORMATS = ("lines", "jsonl", "sitemap")

MAX_LINE = 1 << 20
"""Characters of a line, or of a URL in a sitemap. A longer one is cut."""

_HEAD = 1 << 12


def lines_in(name: str) -> int | None:
    """Return about how many URLs a file has: its lines. None if they cannot be counted in advance.

    That is so for standard input, and for files that are compressed or in XML.
    """
    if name.endswith((".gz", ".xml")) or not Path(name).is_file():
        return None
    with reading(name), Path(name).open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(partial(file.read, 1 << 20), b"")) or None


def numbered_urls(
    name: str, *, form: str | None = None, field: str | None = None
) -> Iterator[tuple[int, str]]:
    """Yield the URLs of a file, each behind the number of its line, or of itself in a sitemap.

    ``form`` is one of :data:`FORMATS`; without it the name and the start of the file tell.
    ``field`` is the JSON field. Raises :class:`CommandError` for a file that cannot be read.
    """
    with reading(name, form or "URLs", ValueError, zlib.error), opened(name) as stream:
        form = form or ("jsonl" if field else _form_of(name, stream))
        if form == "sitemap":
            yield from enumerate(_of_sitemap(stream), 1)
            return
        text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
        try:
            if form == "jsonl":
                yield from _of_json_lines(text, field or "url")
            else:
                lines = enumerate(map(str.strip, _lines_of(text)), 1)
                yield from ((number, url) for number, url in lines if url and url[0] != "#")
        finally:
            text.detach()


@contextmanager
def opened(name: str) -> Iterator[Any]:
    """Open a file to read its bytes, of a gzip file those before gzip. ``-`` is standard input."""
    raw: Any
    with nullcontext(sys.stdin.buffer) if name == STANDARD_INPUT else Path(name).open("rb") as raw:
        is_gzip = raw.peek(2)[:2] == b"\x1f\x8b"
        yield io.BufferedReader(gzip.GzipFile(fileobj=raw)) if is_gzip else raw


def _form_of(name: str, stream: Any) -> str:
    """Guess the format of a file. Raises ValueError for a binary file."""
    start = stream.peek(_HEAD)[:_HEAD].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"SQLite format 3"):
        raise ValueError(f"it is a database: write sqlite:///{name}")
    if b"\0" in start:
        raise ValueError("it is a binary file")
    if has_rules(read(start)):
        raise ValueError("this is a robots.txt: use lint or show, or check --robots")
    if start.startswith(b"<"):
        return "sitemap"
    is_json = name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson", ".jl"))
    return "jsonl" if is_json or start.startswith(b"{") else "lines"


def _lines_of(text: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a text. A line of more than `MAX_LINE` characters is cut into pieces."""
    while line := text.readline(MAX_LINE):
        if len(line) == MAX_LINE and "\0" in line:
            raise ValueError("it is a binary file")
        yield line


def _of_json_lines(text: io.TextIOWrapper, field: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(_lines_of(text), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except RecursionError:
            raise ValueError(f"line {number}: the JSON is nested too deeply") from None
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if isinstance(value, dict):
            value = value.get(field)
        if not isinstance(value, str):
            raise ValueError(f"line {number} has no text in the field {field}")
        yield number, value.strip()


def _of_sitemap(stream: Any) -> Iterator[str]:
    """Yield the URLs in ``<loc>`` elements (sitemaps.org). An index yields its sitemaps.

    Entities of the file are refused, because a few of them can expand to gigabytes.
    """
    from lxml import etree  # type: ignore[import-untyped]

    try:
        document = None
        for _, element in etree.iterparse(
            stream, resolve_entities=False, remove_comments=True, remove_pis=True
        ):
            if document is None:
                document = element.getroottree().docinfo
                if document.internalDTD is not None and document.internalDTD.entities():
                    raise ValueError("it declares entities")
            parent = element.getparent()
            # An image also has a <loc>.
            if element.tag.endswith("loc") and parent is not None:
                names = [name.rpartition("}")[2] for name in (element.tag, parent.tag)]
                if names in (["loc", "url"], ["loc", "sitemap"]):
                    yield (element.text or "")[:MAX_LINE].strip()
            element.clear()
            while element.getprevious() is not None:
                del parent[0]
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from None
