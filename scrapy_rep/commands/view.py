"""``view``: a page as a crawler sees it.

A page may be of any size and shape: its tree is walked a few times, and what is kept has a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import click
from lxml import etree  # type: ignore[import-untyped]
from msgspec import Struct
from rich.text import Text
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response, TextResponse
from w3lib.html import HTML5_WHITESPACE
from w3lib.url import safe_url_string

from ..fetch.downloader import in_words
from ..fetch.redirects import redirect_target
from ..logs import plural
from ..pages.directives import (
    META,
    TDM_PLACE,
    directives_of,
    header_lines,
    not_understood,
    stated_in,
    uses_in,
)
from ..pages.html import MAX_PAGE as MAX_READ
from ..pages.html import document, iter_elements, markup, roots
from ..protocol import usage
from ..protocol.access import REDIRECT_STATUSES
from ..protocol.paths import origin_of
from ..protocol.printable import printable, without_credentials
from ..protocol.refusals import MAX_LENGTH
from ..protocol.tdmrep import TdmRule
from .context import CommandError, Context, ExitCode, completing, refuse_if, tool
from .crawlers import Agent, agent_names, agents_of
from .explain import Answer, Check, Usage, explain, explanation, reason_text
from .sources import is_file, note_age, site_of, start_session
from .texts import MAX_CELL, Renderables, Row, listed, named_values, table, word

if TYPE_CHECKING:
    from .session import Session

MAX_PAGE = 10 << 20
"""Bytes of a page. A larger one is not read."""

MAX_URL = 8000
"""Characters of a URL. A link with a longer one is skipped."""

MAX_TEXT, MAX_TITLE = 20_000, 500
"""Characters of the text of a page, and of its title, that are kept."""

MAX_STATEMENTS, MAX_LINKS, MAX_UNREAD = 200, 2000, 50
"""Directives and links of a page, each URL once, and statements that are not understood."""

MAX_SHOWN_LINES, MAX_SHOWN = 20, 30
"""Lines, and links and directives, that are shown as text. JSON has more."""

_WITHOUT_REMARK = ("all", "index", "follow", "license")
"""Rules that a crawler loses nothing by not seeing."""

_NOT_FOLLOWED = ("#", "javascript:", "mailto:", "tel:", "data:")
_URLS = {
    **dict.fromkeys(("a", "area"), ("href", "link")),
    "form": ("action", "form"),
    **dict.fromkeys(("iframe", "frame"), ("src", "frame")),
    **dict.fromkeys(
        ("audio", "embed", "img", "script", "source", "track", "video"), ("src", "resource")
    ),
    "object": ("data", "resource"),
    "link": ("href", "resource"),
}
"""The elements with the URL of something else: its attribute, and the kind of the URL."""
_LOADED = frozenset(["icon", "manifest", "modulepreload", "preload", "stylesheet"])
"""The link types for which a browser loads the URL with the page (HTML §4.6.7)."""
_IN_SCRIPT = re.compile(
    r"""location(?:\.href)?\s{0,9}=\s{0,9}['"]([^'"\s<>]+)|['"]((?:https?:/)?/[^'"\s<>]+)"""
)
_REFRESH = re.compile(r"[\d.\s]+[;,\s]\s*(?:url\s*=\s*)?['\"]?([^'\"]+)", re.IGNORECASE)
"""The value of a refresh that has a URL (HTML §4.2.5.3)."""

_NAMES = ("name", "property", "http-equiv")
"""The attributes of a meta element in which a name is written. Crawlers read the first."""
_ROBOTS_META = re.compile(rb"<meta\s[^<>]{0,500}\brobots\b", re.IGNORECASE).search
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)

_NO_TEXT = ("script", "style", "template", "head", "iframe", "svg")
"""Elements whose content is not text of the page."""
_INLINE = ("a", "abbr", "b", "code", "em", "font", "i", "img", "s", "small", "span", "strong", "u")
"""Elements within a line. All others begin a new line."""


class Directive(Struct):
    """A directive for the crawler, and the header or element that has it."""

    rule: str
    argument: str
    place: str
    agent: str


class Link(Answer, kw_only=True):
    """A URL of a page, and what the robots.txt says if it is on the site of the page.

    ``kind``: ``link``, ``form``, ``frame``, ``redirect``, ``refresh``, ``resource``, such as an
    image, or ``script``: a link that is only in a script, so that few crawlers find it.
    """

    url: str
    kind: str
    nofollow: bool = False


class Page(Struct, kw_only=True):
    """A page. ``usage``: which uses of the content the robots.txt and the page grant together.
    ``unread``: what is stated in a form that no crawler reads, each with what to write instead.
    ``behind_html``: the text behind ``</html>``. ``beyond``: the bytes behind the first 2 MiB, up
    to which Google reads a page. ``text`` may be cut. ``left_out`` counts further directives and
    links.
    """

    url: str
    status: int
    content_type: str | None
    size: int
    directives: list[Directive]
    indexable: bool
    nofollow: bool
    usage: dict[str, bool]
    licenses: tuple[str, ...]
    unread: list[str] = []
    behind_html: str = ""
    beyond: int = 0
    title: str | None = None
    text: str = ""
    links: list[Link] = []
    left_out: int = 0


class Contradiction(Struct):
    """What contradicts itself in a page and the robots.txt."""

    code: str
    text: str


class View(Struct, kw_only=True, tag_field="type", tag="view"):
    """A page as a crawler sees it. ``failure``: why it was not fetched."""

    version: int = 1
    url: str
    check: Check
    failure: str | None = None
    page: Page | None = None
    contradictions: list[Contradiction] = []


@tool(
    "Show a page as a crawler sees it: the verdict of robots.txt, the status, the directives of "
    "the page and where each stands, its text, the verdict on its links, forms, frames and "
    "resources, and what contradicts itself. A page that robots.txt disallows is not requested.",
    ("view https://example.com/", "as your crawler sees it"),
    ("view https://example.com/ -a Googlebot", "judged by what the site says to Googlebot"),
    ("view https://example.com/ --json", "with all links, as JSON"),
    found="the page is disallowed, or has a contradiction",
    unknown="the page or its robots.txt could not be fetched",
    records=(View,),
    reads_sites=True,
)
@click.argument("url", metavar="URL")
@click.option(
    "-a",
    "--agent",
    metavar="AGENT",
    shell_complete=completing(agent_names),
    help="Judge by what the site says to this crawler. The page is requested with the User-Agent "
    "of the settings.",
)
def view_tool(context: Context, url: str, agent: str | None) -> int:
    refuse_if(is_file(url), f"{url} is a file, and view shows pages of sites: use show or lint")
    target = site_of(url, context)
    if target.origin is None or len(target.url) > MAX_URL:
        raise CommandError(f"not a URL with a robots.txt: {url}")
    crawler, *others = agents_of([agent] if agent else [], context)
    refuse_if(others, f"-a {agent} stands for {len(others) + 1} crawlers: name one")
    with start_session(context, reads_tdm_files=True) as session:
        (policy,) = session.policies([target.origin], target.url)
        note_age(policy.access, context)
        check = explain(target, crawler, policy, crawler.verdict(policy, target.url))
        record = View(url=target.url, check=check)
        response = _download(session, record)
        if response is not None:
            _, tdm = session.middleware.policies.stated_usage(response)
            page = record.page = _page(response, crawler, check, tdm)
            for link in page.links:
                if origin_of(link.url) == target.origin:
                    link.judge(crawler.verdict(policy, link.url))
            record.contradictions = list(_contradictions(check, page))
    context.show(record, listing)
    if policy.access.is_unreachable or (check.allowed and record.page is None):
        return ExitCode.UNKNOWN
    return ExitCode.OK if check.allowed and not record.contradictions else ExitCode.FOUND


def _download(session: Session, record: View) -> Response | None:
    meta = {"dont_redirect": True, "handle_httpstatus_all": True, "download_maxsize": MAX_PAGE}
    try:
        return session.download(Request(record.url, meta=meta, dont_filter=True))
    except IgnoreRequest as error:  # also if the robots.txt disallows the page for your crawler
        record.failure = str(error)[:MAX_LENGTH] or "a middleware dropped the request"
    except Exception as error:  # of any download handler
        record.failure = in_words(error).replace("REP_TIMEOUT", "DOWNLOAD_TIMEOUT")
    return None


def _page(response: Response, agent: Agent, check: Check, tdm: TdmRule | None) -> Page:
    found_in = stated_in(response, agent.tokens, tdm)
    stated = dict.fromkeys(each._replace(line=0) for each in found_in)
    found = directives_of(response, stated)
    robots = [check.usage.evaluated] if check.usage else []
    page = Page(
        url=response.url,
        status=response.status,
        content_type="".join(header_lines(response, "Content-Type")[:1])[:MAX_LENGTH] or None,
        size=len(response.body),
        directives=[
            Directive(rule, argument[:MAX_LENGTH], place, name)
            for rule, argument, place, name, _ in islice(stated, MAX_STATEMENTS)
        ],
        left_out=max(len(stated) - MAX_STATEMENTS, 0),
        indexable=found.indexable,
        nofollow=found.nofollow,
        usage=usage.evaluated([*robots, *uses_in(response).values()], found.tdm_reservation),
        licenses=tuple(found.licenses),
    )
    location = response.headers.get("Location")
    if location and response.status in REDIRECT_STATUSES:
        url = redirect_target(response.url, location)
        page.links = [] if url is None else [Link(url=url, kind="redirect")]
    read_content(response, page)
    others = (
        f"'{written}' is not understood: write {wanted}"
        for written, wanted in not_understood(response, agent.tokens)
    )
    page.unread += islice(dict.fromkeys(others), MAX_UNREAD)
    return page


def _contradictions(check: Check, page: Page) -> Iterator[Contradiction]:
    for link in page.links:
        if link.kind in ("redirect", "refresh") and check.allowed and link.allowed is False:
            text = f"The page has a {link.kind} to {link.url}, which is disallowed."
            yield Contradiction(f"{link.kind}-to-disallowed", text)
    yield from (Contradiction("not-understood", text) for text in page.unread)
    rules = dict.fromkeys(one.rule for one in page.directives)
    restrictions = [rule for rule in rules if rule not in _WITHOUT_REMARK]
    if not check.allowed and restrictions:
        yield Contradiction(
            "directives-behind-disallow",
            f"The page says {', '.join(restrictions)}, but {check.agent} never sees it: robots.txt "
            "disallows the page. Its URL may be indexed without its content.",
        )


def read_content(response: Response, page: Page) -> None:
    """Put the title, the text and the links of a response into a record."""
    if not isinstance(response, HtmlResponse):
        if isinstance(response, TextResponse):
            page.text = response.body[: 4 * MAX_TEXT].decode("utf-8", "replace")[:MAX_TEXT]
        return
    selector, _, base = document(response)
    root = selector.root
    if not hasattr(root, "iter"):  # an empty page
        return
    page.title = _words(root.xpath("string(//title)")) or None
    page.unread = list(islice(_unread(root), MAX_UNREAD))
    body = markup(response)
    page.beyond = max(len(body) - MAX_READ, 0)
    if page.beyond and _ROBOTS_META(body, MAX_READ):
        page.unread.append("A robots meta element is behind the first 2 MiB: move it to the head")
    behind = _COMMENT.sub(b"", body.rpartition(b"</html>")[2] if b"</html>" in body else b"")
    page.behind_html = _words(behind.decode("utf-8", "replace"))
    found: dict[tuple[str, str], Link] = {}
    for kind, value, rel in _links(root):
        if len(found) >= MAX_LINKS:
            page.left_out += 1
            continue
        url = _resolved(value, base)
        if url is not None and (kind != "script" or ("link", url) not in found):
            nofollow = kind == "link" and (page.nofollow or "nofollow" in rel)
            link = found.setdefault((kind, url), Link(url=url, kind=kind, nofollow=nofollow))
            link.nofollow &= nofollow  # a crawler follows the link that it may follow
    page.links += found.values()
    page.text = _text(root)


def _unread(root: Any) -> Iterator[str]:
    """Yield the meta elements that are meant for crawlers, and that none of them reads."""
    for element in iter_elements(root, "meta"):
        names = [str(element.get(each) or "").strip().lower() for each in _NAMES]
        is_meant = "robots" in element.attrib or get_close_matches(
            "".join(names), ("robots", "x-robots-tag"), 1, 0.8
        )
        said = element.get("robots") or element.get("content") or element.get("value")
        is_read = names[0] == "robots" and "content" in element.attrib
        if said and is_meant and not is_read:
            written = " ".join(f'{name}="{value}"' for name, value in element.attrib.items())
            wanted = f'<meta name="robots" content="{_words(said)}">'
            yield f"<meta {_words(written)}> is not understood: write {wanted}"


def _links(root: Any) -> Iterator[tuple[str, str, str]]:
    """Yield kind, value and link types of each element with a URL, then the URLs in scripts."""
    scripts: list[str] = []
    for element in iter_elements(root, "meta", *_URLS):
        attribute, kind = _URLS.get(element.tag, ("content", "refresh"))
        value = element.get(attribute)
        if value is None:
            continue
        rel = (element.get("rel") or "")[:MAX_LENGTH].lower()
        if kind == "refresh":
            is_refresh = (element.get("http-equiv") or "").strip().lower() == kind
            refresh = _REFRESH.match(value[:MAX_URL]) if is_refresh else None
            if refresh is not None:
                yield kind, refresh[1], ""
        elif element.tag != "link" or not _LOADED.isdisjoint(rel.split()):
            if value.strip().lower().startswith("javascript:"):
                scripts.append(value)
            yield kind, value, rel
    scripts += root.xpath("//@onclick")
    urls = ("".join(url) for script in scripts for url in _IN_SCRIPT.findall(script[:MAX_URL]))
    for url in islice(dict.fromkeys(urls), MAX_LINKS):
        yield "script", url, ""


def _resolved(href: str, base: str) -> str | None:
    href = href.strip(HTML5_WHITESPACE)
    if len(href) > MAX_URL or href.lower().startswith(_NOT_FOLLOWED):
        return None
    try:
        url = safe_url_string(urljoin(base, href)).partition("#")[0]
    except ValueError:
        return None
    return None if origin_of(url) is None else without_credentials(url)


def _text(root: Any) -> str:
    """Return the text of a page, a line for each block. Removes elements from the tree."""
    parts: list[str] = []
    for each in roots(root):
        etree.strip_elements(each, etree.Comment, etree.PI, *_NO_TEXT, with_tail=False)
        for event, element in etree.iterwalk(each, ("start", "end")):
            text = (element.text if event == "start" else element.tail) or ""
            if event == "start" and element.get("alt"):
                text = f" {element.get('alt')} {text}"
            parts += ("" if element.tag in _INLINE else "\n", text.replace("\n", " "))
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(filter(None, lines))[:MAX_TEXT]


def _words(text: str | None) -> str:
    return " ".join((text or "")[: 4 * MAX_TITLE].split())[:MAX_TITLE]


_PLACES = {META: "in the page", TDM_PLACE: f"in the file {TDM_PLACE}"}


def listing(record: View) -> Renderables:
    yield from explanation(record.check)
    yield ""
    yield named_values(_rows(record))
    for one in record.contradictions:
        yield ""
        name = "Not understood" if one.code == "not-understood" else "Contradiction"
        text = Text(f"{name}  ", style="bold red")
        yield text.append(printable(one.text, 1000), style="default not bold")
    page = record.page
    if page is None:
        return
    if page.text:
        yield ""
        yield Text("Text", style="bold")
        lines = page.text.split("\n")
        yield from (Text(f"  {printable(line, 1000)}") for line in lines[:MAX_SHOWN_LINES])
        if lines[MAX_SHOWN_LINES:]:
            yield Text(f"  and {len(lines[MAX_SHOWN_LINES:]):,} more lines", style="dim")
    links = [one for one in page.links if one.kind != "resource" or one.allowed is False]
    if links:
        yield ""
        made = table("Verdict", "Link", "Why")
        made.columns[0].no_wrap = True
        made.columns[1].ratio, made.columns[2].ratio = 3, 2
        for link in links[:MAX_SHOWN]:
            made.add_row(word(link.allowed), Text(printable(link.url, MAX_CELL)), Text(_why(link)))
        yield made
    left = len(links[MAX_SHOWN:]) + page.left_out
    if left:
        yield f"and {left:,} more links"


def _rows(record: View) -> Iterator[Row]:
    page = record.page
    if page is None:
        yield "Page", Text(f"not fetched: {printable(record.failure or '')}", style="yellow")
        return
    kind = printable(page.content_type or "no content type", 80)
    yield "Page", f"status {page.status}, {kind}, {page.size:,} bytes"
    yield "Title", printable(page.title or "none")
    directives = [
        f"{one.rule}{': ' * bool(one.argument)}{one.argument[:80]}  "
        f"{_PLACES.get(one.place) or f'in the header {one.place.title()}'}"
        f"{'' if one.agent == '*' else f', for {one.agent}'}"
        for one in page.directives
    ]
    yield from listed("Directives", directives or ["none"], MAX_SHOWN)
    if page.behind_html:
        yield "Behind it", f"{printable(page.behind_html, 200)}  behind </html>"
    if page.beyond:
        yield (
            "Beyond",
            f"{page.beyond:,} bytes are behind the first 2 MiB: Google does not read them",
        )
    if not page.indexable:
        yield "Effect", "the page is not indexed"
    if page.nofollow:
        yield "Effect", "its links are not followed"
    if page.usage:
        yield "Usage", str(Usage(page.usage, ()))
    yield from listed("License", page.licenses, 3)
    resources = [link.allowed for link in page.links if link.kind == "resource"]
    if resources:
        blocked = resources.count(False)
        yield "Resources", f"{plural(len(resources), 'URL')}, of which {blocked:,} disallowed"


def _why(link: Link) -> str:
    why = "robots.txt not fetched" if link.reason == "unknown" else reason_text(link)
    if link.kind != "link":
        why = f"{'only in a script' if link.kind == 'script' else link.kind}; {why}"
    return f"{why}; nofollow" if link.nofollow else why
