"""``view``: a page as a crawler sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from w3lib.url import safe_url_string

from ..exceptions import RobotsTxtDisallowed
from ..protocol.access import REDIRECT_STATUSES
from ..protocol.paths import origin_of
from .agent_option import of_user_agent
from .exits import CommandError, ExitCode
from .explain import MAX_LINE_LENGTH, answer_of, explain
from .page import MAX_URL, content_of
from .page_view import Page, contradictions, page_record
from .targets import target_of

if TYPE_CHECKING:
    import argparse

    from scrapy.http import Response

    from ..protocol.verdict import Verdict
    from .agent_option import Agent
    from .context import Context
    from .policy import Policy
    from .session import Session

DESCRIPTION = (
    "Show a page as a crawler sees it: the verdict of robots.txt, status and redirects, the\n"
    "directives of the page and where each stands, its text, its links with the verdict on each,\n"
    "and what contradicts itself. A page that robots.txt disallows is not requested."
)
EXAMPLES = (
    ("view https://example.com/", "as your crawler sees it"),
    ("view https://example.com/ -a Googlebot", "judged by what the site says to Googlebot"),
    ("view https://example.com/ --json", "with all links, as JSON"),
)

VERSION = 1
"""The version of the record. A field may be added without a new one."""

MAX_REDIRECTS = 10
"""Redirects that are followed."""

MAX_PAGE = 10 << 20
"""Octets of a page. A larger one is not read."""

MAX_ORIGINS = 20
"""Other sites whose robots.txt is fetched for the links to them."""

_META = {"dont_redirect": True, "handle_httpstatus_all": True, "download_maxsize": MAX_PAGE}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subcommand."""
    parser.add_argument("url", metavar="URL", help="a URL; https:// may be left out")
    parser.add_argument(
        "-a",
        "--agent",
        metavar="AGENT",
        help="judge by what the site says to this crawler; the page is requested with the "
        "User-Agent of the settings; default: ROBOTSTXT_USER_AGENT or USER_AGENT of the settings",
    )


def run(arguments: argparse.Namespace, context: Context) -> int:
    """Run this subcommand."""
    target = target_of(arguments.url)
    if target.origin is None or len(target.url) > MAX_URL:
        raise CommandError(f"no URL with a robots.txt: {arguments.url}")
    if target.has_default_scheme:
        context.output.note(f"{arguments.url} has no scheme: it is taken for {target.url}")
    agents = context.agents([arguments.agent] if arguments.agent else [])
    if len(agents) > 1:
        raise CommandError(f"-a {arguments.agent} stands for {len(agents)} crawlers: name one")
    own = of_user_agent(context.settings.user_agent(None))
    view = _View(agents[0], own, strict=context.settings.strict)

    async def look(session: Session) -> dict[str, Any]:
        return await view.record(session, target.url)

    context.reads_tdm_files = True
    record = context.run(look, keep_bodies=True)
    if context.output.as_json:
        context.output.record(record)
    else:
        from .view_text import listing

        context.output.print(*listing(record))
    context.output.flush()
    return _code(record)


def _code(record: dict[str, Any]) -> int:
    access = record["check"]["robots_txt"]
    if record["failure"] is not None or access["state"] == "unreachable":
        return ExitCode.UNKNOWN
    is_ok = record["allowed"] and record["page"] is not None and not record["contradictions"]
    return ExitCode.OK if is_ok else ExitCode.FOUND


class _Hop(NamedTuple):
    """One URL on the way to the page."""

    url: str
    verdict: Verdict
    """What its robots.txt says to the crawler."""
    status: int | None = None
    location: str | None = None
    """Where it redirects to."""

    def as_json(self) -> dict[str, Any]:
        """Return the part of a record."""
        record = {"url": self.url, "status": self.status, "location": self.location}
        return {**record, **answer_of(self.verdict)}


class _View:
    """The view of one page."""

    def __init__(self, agent: Agent, own: Agent, *, strict: bool) -> None:
        self._agent = agent
        self._own = own
        self._strict = strict
        self._policies: dict[str, Policy] = {}
        self._hops: list[_Hop] = []
        self._failure: str | None = None
        self._refusal: Verdict | None = None
        """Why the page was not requested."""

    async def record(self, session: Session, url: str) -> dict[str, Any]:
        """Return the record of a page."""
        response = await self._fetch(session, url)
        hop = self._hops[-1]
        policy = self._policies[origin_of(hop.url) or ""]
        record: dict[str, Any] = {
            "type": "view",
            "version": VERSION,
            "url": url,
            "agent": self._agent.name,
            "requested_as": self._own.name,
            "allowed": hop.verdict.allowed,
            "hops": [each.as_json() for each in self._hops],
            "failure": self._failure,
            "refusal": None if self._refusal is None else answer_of(self._refusal),
            "check": explain(
                target_of(hop.url), self._agent, policy, hop.verdict, strict=self._strict
            ),
            "page": None,
            "contradictions": self._blocked_redirects(),
        }
        if response is not None:
            content = content_of(response)
            urls = [content.canonical, *(link.url for link in content.links)]
            await self._fetch_policies(session, [url for url in urls if url], response.url)
            tdm = session.tdm_rule(response)
            page = Page(response, content, self._agent, self._policies, tdm)
            record["page"] = page_record(page)
            record["contradictions"] += contradictions(page, record["page"], hop.verdict)
        return record

    async def _fetch(self, session: Session, url: str) -> Response | None:
        """Return the response at the end of the redirects, or None if there is none."""
        while True:
            origin = origin_of(url) or ""
            policy = await session.get_policy(origin, url)
            if policy is None:
                raise KeyboardInterrupt
            self._policies[origin] = policy
            verdict = self._agent.apply(policy.verdict(url, self._agent.tokens))
            self._hops.append(_Hop(url, verdict))
            response = await self._download(session, url)
            if response is None:
                return None
            location = _location(response)
            self._hops[-1] = _Hop(url, verdict, response.status, location)
            if location is None:
                return response
            if len(self._hops) > MAX_REDIRECTS:
                self._failure = f"more than {MAX_REDIRECTS} redirects"
                return None
            url = location

    async def _download(self, session: Session, url: str) -> Response | None:
        try:
            return await session.download(Request(url, meta=dict(_META), dont_filter=True))
        except RobotsTxtDisallowed as error:
            self._refusal = error.verdict
        except IgnoreRequest as error:
            if session.is_closing:
                raise KeyboardInterrupt from None
            self._failure = str(error) or "a middleware dropped the request"
        except Exception as error:  # of any download handler
            if session.is_closing:
                raise KeyboardInterrupt from None
            self._failure = _failure(error)
        return None

    async def _fetch_policies(self, session: Session, urls: list[str], page_url: str) -> None:
        """Fetch the policies of links. With the URL of their page, no TDM file is fetched."""
        origins = dict.fromkeys(origin_of(url) or "" for url in urls)
        missing = [origin for origin in origins if origin not in self._policies]
        self._policies.update(await session.get_policies(missing[:MAX_ORIGINS], page_url=page_url))

    def _blocked_redirects(self) -> list[dict[str, str]]:
        return [
            {
                "code": "redirect-to-disallowed",
                "text": f"{before.url} redirects to {hop.url}, which is disallowed for "
                f"{self._agent.name}.",
            }
            for before, hop in zip(self._hops, self._hops[1:], strict=False)
            if not hop.verdict.allowed
        ]


def _location(response: Response) -> str | None:
    """Return the URL that a response redirects to, if it can be requested."""
    value = response.headers.get("Location")
    if response.status not in REDIRECT_STATUSES or not value:
        return None
    try:
        url = urljoin(response.url, safe_url_string(value))
    except ValueError:
        return None
    is_web = url.startswith(("http://", "https://")) and len(url) <= MAX_URL
    return url if is_web and origin_of(url) is not None else None


def _failure(error: Exception) -> str:
    reasons = getattr(error, "reasons", None)  # of Twisted's ResponseFailed
    inner = reasons[0].value if reasons else error
    return f"{type(inner).__name__}: {inner}"[:MAX_LINE_LENGTH]
