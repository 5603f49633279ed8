"""``view``: a page as a crawler sees it.

A page may be of any size and shape: its tree is walked once, and everything that is kept has a
limit.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import click
from msgspec import Struct
from rich.text import Text

from ..pages.directives import header_lines, link_targets
from ..protocol import usage
from ..protocol.access import REDIRECT_STATUSES
from ..protocol.paths import origin_of
from ..protocol.printable import printable, without_credentials
from .context import Context, tool
from .crawlers import agents_of, of_user_agent
from .explain import MAX_LENGTH, Answer, Check, explain, explanation, reason_text
from .output import CommandError, ExitCode
from .sources import site_of
from .texts import answer_table, listed, named_values, quantity, word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import RenderableType
    from scrapy.http import Response

    from ..protocol.tdmrep import TdmRule
    from ..settings import Settings
    from .crawlers import Agent
    from .session import Session
    from .sources import Target
    from .texts import Row

MAX_PAGE = 10 << 20
"""Bytes of a page. A larger one is not read."""

MAX_URL = 8000
"""Characters of a URL. A link with a longer one is counted as unreadable."""

MAX_TEXT, MAX_TITLE = 20_000, 500
"""Characters of the text of a page, and of its title and the text of a link, that are kept."""

MAX_STATEMENTS, MAX_LINKS, MAX_PARTS = 200, 2000, 50
"""Directives and links of a page, each URL once, and elements within a link that are read."""

MAX_SHOWN_LINES, MAX_SHOWN = 20, 30
"""Lines, and links and directives, that are shown as text. JSON has more."""

_META = {"dont_redirect": True, "handle_httpstatus_all": True, "download_maxsize": MAX_PAGE}
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

_NO_TEXT = ("script", "style", "template", "head", "iframe", "svg")
"""Elements whose content is not text of the page."""
_BLOCK_NAMES = """
address article aside blockquote br caption dd div dl dt fieldset figcaption figure footer form h1
h2 h3 h4 h5 h6 header hr li main nav ol p pre section table td th tr ul
"""
_BLOCKS = frozenset(_BLOCK_NAMES.split())
"""Elements that begin a new line."""


class Directive(Struct):
    """A directive for the crawler, and the header or element that has it."""

    rule: str
    argument: str
    place: str
    agent: str


class PageUse(Struct):
    """A use of the content: whether it is granted, and what the robots.txt and the page state."""

    granted: bool
    robots_txt: bool | None
    page: bool | None


class Link(Answer, kw_only=True):
    """A URL of a page, and what the robots.txt says if it is on the site of the page.

    ``kind``: ``link``, ``form``, ``frame``, ``resource``, such as an image, or ``script``: a link
    that is only in a script, so that few crawlers find it. The ``text`` of a form is its method.
    """

    url: str
    kind: str = "link"
    text: str = ""
    nofollow: bool = False


class Page(Struct, kw_only=True):
    """A page. ``access_terms``: the payment or license that the site requires; ``location``: where
    it redirects to. ``unread``: the values of robots meta elements that have a ``value`` in place
    of a ``content``. ``text`` may be cut. ``left_out`` counts further directives and links."""

    url: str
    status: int
    content_type: str | None
    size: int
    directives: list[Directive]
    indexable: bool
    nofollow: bool
    usage: dict[str, PageUse]
    licenses: tuple[str, ...]
    access_terms: dict[str, Any] | None
    location: Link | None = None
    canonical: Link | None = None
    refresh: Link | None = None
    unread: list[str] = []
    title: str | None = None
    text: str = ""
    links: list[Link] = []
    other_links: int = 0
    left_out: int = 0


class Contradiction(Struct):
    """What contradicts itself in a page and the robots.txt files."""

    code: str
    text: str


class View(Struct, kw_only=True, tag_field="type", tag="view"):
    """A page as a crawler sees it. ``refusal``: why the page was not requested; ``failure``: why
    it could not be fetched."""

    version: int = 1
    url: str
    requested_as: str
    check: Check
    refusal: Answer | None = None
    failure: str | None = None
    page: Page | None = None
    contradictions: list[Contradiction] = []


@tool(
    "Show a page as a crawler sees it: the verdict of robots.txt, status and redirects, the "
    "directives of the page and where each stands, its text, the verdict on its links, forms, "
    "frames and resources, and what contradicts itself. A page that robots.txt disallows is not "
    "requested.",
    ("view https://example.com/", "as your crawler sees it"),
    ("view https://example.com/ -a Googlebot", "judged by what the site says to Googlebot"),
    ("view https://example.com/ --json", "with all links, as JSON"),
    records=(View,),
)
@click.argument("url", metavar="URL")
@click.option(
    "-a",
    "--agent",
    metavar="AGENT",
    help="Judge by what the site says to this crawler. The page is requested with the User-Agent "
    "of the settings.",
)
def view_tool(context: Context, url: str, agent: str | None) -> int:
    """View a page."""
    target = site_of(url, context)
    if target.origin is None or len(target.url) > MAX_URL:
        raise CommandError(f"not a URL with a robots.txt: {url}")
    agents = agents_of([agent] if agent else [], context)
    if len(agents) > 1:
        raise CommandError(f"-a {agent} stands for {len(agents)} crawlers: name one")
    record = context.run(
        lambda session: _view(session, target, agents[0], context.settings), reads_tdm_files=True
    )
    context.output.show(record, listing)
    access = record.check.robots_txt
    if record.failure is not None or (access and access.is_unreachable):
        return ExitCode.UNKNOWN
    is_ok = record.check.allowed and record.page is not None and not record.contradictions
    return ExitCode.OK if is_ok else ExitCode.FOUND


def _view(session: Session, target: Target, agent: Agent, settings: Settings) -> View:
    """Return the record of a page."""
    (policy,) = session.each_policy([target.origin or ""], target.url)
    check = explain(target, agent, policy, agent.verdict(policy, target.url))
    record = View(
        url=target.url, requested_as=of_user_agent(settings.user_agent(None)).name, check=check
    )
    response = _download(session, record)
    if response is not None:
        page = record.page = _page(response, agent, check, session.tdm_rule(response))
        for link in [*page.links, page.canonical, page.location, page.refresh]:
            if link is not None and origin_of(link.url) == target.origin:
                link.judge(agent.verdict(policy, link.url))
        record.contradictions = list(_contradictions(check, page))
    return record


def _download(session: Session, record: View) -> Response | None:
    from scrapy import Request
    from scrapy.exceptions import IgnoreRequest

    from ..exceptions import RobotsTxtDisallowed

    try:
        return session.download(Request(record.url, meta=dict(_META), dont_filter=True))
    except RobotsTxtDisallowed as error:
        record.refusal = Answer.of(error.verdict)
    except IgnoreRequest as error:
        record.failure = str(error) or "a middleware dropped the request"
    except Exception as error:  # of any download handler
        reasons = getattr(error, "reasons", None)  # of Twisted's ResponseFailed
        inner = reasons[0].value if reasons else error
        record.failure = f"{type(inner).__name__}: {inner}"[:MAX_LENGTH]
    return None


def _page(response: Response, agent: Agent, check: Check, tdm: TdmRule | None) -> Page:
    from ..fetch.redirects import redirect_target
    from ..pages.middleware import directives_of, statements_in

    stated = dict.fromkeys(statements_in(response, agent.tokens, tdm))
    found = directives_of(response, list(stated))
    content_type = header_lines(response, "Content-Type")
    own = usage.of_response(
        *(header_lines(response, name) for name in ("Content-Signal", "Content-Usage"))
    )
    robots = [check.usage.evaluated] if check.usage else []
    by_robots = usage.evaluated(robots)
    by_page = usage.evaluated(own, found.tdm_reservation)
    evaluated = usage.evaluated([*robots, *own], found.tdm_reservation)
    page = Page(
        url=response.url,
        status=response.status,
        content_type=content_type[0][:MAX_LENGTH] if content_type else None,
        size=len(response.body),
        directives=[
            Directive(rule, argument[:MAX_LENGTH], place, name)
            for rule, argument, place, name in islice(stated, MAX_STATEMENTS)
        ],
        left_out=max(len(stated) - MAX_STATEMENTS, 0),
        indexable=found.indexable,
        nofollow=found.nofollow,
        usage={
            use: PageUse(granted, by_robots.get(use), by_page.get(use))
            for use, granted in evaluated.items()
        },
        licenses=tuple(found.licenses),
        access_terms=None if found.access_terms is None else asdict(found.access_terms),
    )
    location = response.headers.get("Location")
    if location and response.status in REDIRECT_STATUSES:
        url = redirect_target(response.url, location)
        page.location = None if url is None else Link(url=url)
    read_content(response, page)
    return page


def _contradictions(check: Check, page: Page) -> Iterator[Contradiction]:
    name = check.agent
    for code, link in (("redirect", page.location), ("refresh", page.refresh)):
        if link is not None and check.allowed and link.allowed is False:
            text = f"The page has a {code} to {link.url}, which is disallowed for {name}."
            yield Contradiction(f"{code}-to-disallowed", text)
    for value in page.unread:
        text = f"A robots meta element has {value} as its value: crawlers read only its content."
        yield Contradiction("value-without-content", text)
    rules = dict.fromkeys(one.rule for one in page.directives)
    restrictions = [rule for rule in rules if rule not in _WITHOUT_REMARK]
    if not check.allowed and restrictions:
        yield Contradiction(
            "directives-behind-disallow",
            f"The page says {', '.join(restrictions)}, but {name} never sees it: robots.txt "
            "disallows the page. Its URL may be indexed without its content.",
        )
    if {"noindex", "none"} & rules.keys() and {"index", "all"} & rules.keys():
        text = "The page says both index and noindex: noindex holds."
        yield Contradiction("index-and-noindex", text)
    if page.canonical is not None and page.canonical.allowed is False:
        text = f"The canonical URL is disallowed for {name}, so its content is not known."
        yield Contradiction("canonical-disallowed", text)
    if page.canonical is not None and page.canonical.url != page.url and not page.indexable:
        text = "The page says noindex, but names another URL as canonical."
        yield Contradiction("noindex-with-canonical", text)
    for name, use in page.usage.items():
        if use.robots_txt is not None and use.page is not None and use.robots_txt != use.page:
            text = f"robots.txt and the page differ about {name}: it is refused."
            yield Contradiction("usage-differs", text)


# The content of a page


def read_content(response: Response, page: Page) -> None:
    """Put the title, the text and the links of a response into a record.

    Never raises for what a site sends.
    """
    from scrapy.http import HtmlResponse, TextResponse

    from ..pages.html import document, elements, markup

    named = [
        target
        for line in header_lines(response, "Link")
        for target in link_targets(line, "canonical")
    ]
    page.canonical = _link(named[0], response.url) if named else None
    if not isinstance(response, HtmlResponse):
        if isinstance(response, TextResponse):
            page.text = response.body[: 4 * MAX_TEXT].decode("utf-8", "replace")[:MAX_TEXT]
        return
    selector, _, base = document(response)
    root = selector.root
    if not hasattr(root, "iter"):  # an empty page
        return
    if not named:
        values = (element.value for element in elements(markup(response), (), "canonical"))
        first = next((value for value in values if value.strip()), None)
        page.canonical = None if first is None else _link(first, base)
    title = next(root.iter("title"), None)
    page.title = None if title is None else _words([title.text or ""]) or None
    for element in root.iter("meta"):
        kind, name = ((element.get(key) or "").strip().lower() for key in ("http-equiv", "name"))
        content = element.get("content")
        found = _REFRESH.match((content or "")[:MAX_URL]) if kind == "refresh" else None
        if found is not None and page.refresh is None:
            page.refresh = _link(found[1], base)
        if name == "robots" and content is None and len(page.unread) < MAX_PARTS:
            page.unread += [_words([value]) for value in (element.get("value"),) if value]
    _read_links(root, base, page)
    page.text = _text(root)


def _read_links(root: Any, base: str, page: Page) -> None:
    found: dict[tuple[str, str], Link] = {}

    def add(value: str, kind: str, rel: str = "", texts: Iterable[str] = ()) -> None:
        if len(found) >= MAX_LINKS:
            page.left_out += 1
            return
        link = _link(value, base)
        if link is None:
            page.other_links += kind == "link"
        elif kind != "script" or ("link", link.url) not in found:
            link.kind = kind
            link.nofollow = kind == "link" and (page.nofollow or "nofollow" in rel)
            known = found.setdefault((kind, link.url), link)
            known.nofollow &= link.nofollow  # a crawler follows the link that it may follow
            if known is link:
                link.text = _words(texts)

    scripts = []
    for element in root.iter(*_URLS):
        attribute, kind = _URLS[element.tag]
        value, rel = element.get(attribute), (element.get("rel") or "")[:MAX_LENGTH].lower()
        if value is None or (element.tag == "link" and _LOADED.isdisjoint(rel.split())):
            continue
        if value.strip().lower().startswith("javascript:"):
            scripts.append(value)
        add(value, kind, rel, _texts(element) if kind == "link" else [element.get("method") or ""])
    scripts += root.xpath("//@onclick")
    urls = ("".join(url) for script in scripts for url in _IN_SCRIPT.findall(script[:MAX_URL]))
    for url in islice(dict.fromkeys(urls), MAX_LINKS):
        add(url, "script")
    page.links = list(found.values())


def _link(href: str, base: str) -> Link | None:
    from w3lib.html import HTML5_WHITESPACE
    from w3lib.url import safe_url_string

    href = href.strip(HTML5_WHITESPACE)
    if len(href) > MAX_URL or href.lower().startswith(_NOT_FOLLOWED):
        return None
    try:
        url = safe_url_string(urljoin(base, href)).partition("#")[0]
    except ValueError:
        return None
    return Link(url=without_credentials(url)) if origin_of(url) is not None else None


def _text(root: Any) -> str:
    """Return the text of a page, a line for each block. Removes elements from the tree."""
    from lxml import etree  # type: ignore[import-untyped]

    etree.strip_elements(root, etree.Comment, etree.PI, *_NO_TEXT, with_tail=False)
    parts: list[str] = []
    room = 4 * MAX_TEXT
    for event, element in etree.iterwalk(root, ("start", "end")):
        text = (element.text if event == "start" else element.tail) or ""
        if event == "start" and element.get("alt"):
            text = f" {element.get('alt')} {text}"
        parts += ["\n"] * (element.tag in _BLOCKS)
        parts.append(text[:room].replace("\n", " "))
        room -= len(text)
        if room < 0:
            break
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return "\n".join(line for line in lines if line)[:MAX_TEXT]


def _texts(link: Any) -> Iterator[str]:
    """Yield the texts of the first elements within a link. Links may be within each other."""
    for element in islice(link.iter(), MAX_PARTS):
        if isinstance(element.tag, str):  # a comment has none
            yield element.text or ""
            yield element.get("alt") or ""
        if element is not link:
            yield element.tail or ""


def _words(texts: Iterable[str]) -> str:
    """Return some texts in one line, cut."""
    parts = (text[: 2 * MAX_TITLE] for text in texts)
    return " ".join(" ".join(parts).split())[:MAX_TITLE]


# Texts

_HEADERS = {name: f"in the header {name}" for name in ("tdm-reservation", "tdm-policy")} | {
    "x-robots-tag": "in the header X-Robots-Tag",
    "robots-tag": "in the header Robots-Tag",
    "link": "in the header Link",
    "tdmrep.json": "in the file tdmrep.json",
}


def listing(record: View) -> Iterator[RenderableType]:
    """Yield the text of a record."""
    yield from explanation(record.check)
    yield ""
    yield named_values(_rows(record))
    for one in record.contradictions:
        yield ""
        text = Text("Contradiction  ", style="bold red")
        yield text.append(printable(one.text, 1000), style="default not bold")
    page = record.page
    if page is None:
        return
    if page.text:
        yield ""
        yield Text("Text", style="bold")
        lines = page.text.split("\n")
        yield from (Text(f"  {printable(line, 300)}") for line in lines[:MAX_SHOWN_LINES])
        if lines[MAX_SHOWN_LINES:]:
            yield Text(f"  and {len(lines[MAX_SHOWN_LINES:]):,} more lines", style="dim")
    links = [one for one in page.links if one.kind != "resource" or one.allowed is False]
    if links:
        yield ""
        rows = [(one, (one.url, _why(one))) for one in links[:MAX_SHOWN]]
        yield answer_table("Link", "Why", rows=rows)
    left = len(links[MAX_SHOWN:]) + page.left_out
    if left:
        yield f"and {left:,} more links"
    if page.other_links:
        yield f"and {page.other_links:,} that are not URLs of pages, such as mailto:"


def _rows(record: View) -> Iterator[Row]:
    if record.refusal is not None:
        name = printable(record.requested_as, 80)
        yield "Page", Text(f"not requested: robots.txt disallows it for {name}", style="yellow")
    elif record.failure is not None:
        yield "Page", Text(f"not fetched: {printable(record.failure)}", style="yellow")
    page = record.page
    if page is None:
        return
    kind = printable(page.content_type or "no content type", 80)
    yield "Page", f"status {page.status}, {kind}, {page.size:,} bytes"
    if page.location:
        text = word(page.location.allowed).append(f"  {printable(page.location.url)}", "default")
        yield "Redirects to", text
    if page.access_terms:
        from ..pages.directives import AccessTerms

        yield "Requires", Text(str(AccessTerms(**page.access_terms)), style="yellow")
    yield "Title", printable(page.title or "none")
    directives = [
        f"{one.rule}{': ' * bool(one.argument)}{one.argument[:80]}  "
        f"{_HEADERS.get(one.place, 'in the page')}"
        f"{'' if one.agent == '*' else f', for {one.agent}'}"
        for one in page.directives
    ]
    yield from listed("Directives", directives or ["none"], MAX_SHOWN)
    if not page.indexable:
        yield "Effect", "the page is not indexed"
    if page.nofollow:
        yield "Effect", "its links are not followed"
    if page.usage:
        yield "Usage", _usage_text(page.usage)
    yield from listed("License", page.licenses, 3)
    for name, link in (("Canonical", page.canonical), ("Refresh to", page.refresh)):
        if link is not None:
            yield name, word(link.allowed).append(f"  {printable(link.url)}", style="default")
    resources = [link.allowed for link in page.links if link.kind == "resource"]
    if resources:
        blocked = resources.count(False)
        yield "Resources", f"{quantity(len(resources), 'URL')}, of which {blocked:,} disallowed"


def _usage_text(uses: dict[str, PageUse]) -> str:
    parts = []
    for name, use in uses.items():
        places = {"robots.txt": use.robots_txt, "the page": use.page}
        sources = [place for place, stated in places.items() if stated == use.granted]
        word = "granted" if use.granted else "refused"
        parts.append(f"{name}: {word} (by {' and '.join(sources)})")
    return ", ".join(parts)


def _why(link: Link) -> str:
    why = "robots.txt not fetched" if link.reason == "unknown" else reason_text(link)
    if link.kind != "link":
        why = f"{'only in a script' if link.kind == 'script' else link.kind}; {why}"
    return f"{why}; nofollow" if link.nofollow else why
