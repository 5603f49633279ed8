"""A page as a crawler sees it, as a record of ``view``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy.http import HtmlResponse

from ..pages.html import markup
from ..pages.middleware import directives_of
from ..protocol import usage
from ..protocol.pages import HEADERS, statements, statements_of
from ..protocol.paths import origin_of
from .explain import MAX_LINE_LENGTH, answer, answer_of, usage_record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scrapy.http import Response

    from ..protocol.pages import PageDirectives, Statement
    from ..protocol.tdmrep import TdmRule
    from ..protocol.verdict import Verdict
    from .agent_option import Agent
    from .page import Content, PageLink
    from .policy import Policy

MAX_STATEMENTS = 200
"""Directives that are listed."""

_WITHOUT_REMARK = ("all", "index", "follow", "license")
"""Rules that a crawler loses nothing by not seeing."""


class Page(NamedTuple):
    """A page that was fetched, and what is known of the sites that it links to."""

    response: Response
    content: Content
    agent: Agent
    policies: Mapping[str, Policy]
    """By origin. Those that were not fetched are missing."""
    tdm: TdmRule | None = None
    """The rule of the TDM file for the page. None if there is none, and without REP_TDMREP."""


def page_record(page: Page) -> dict[str, Any]:
    """Return the record of a page that was fetched."""
    response, content = page.response, page.content
    stated = _statements(page)
    directives = directives_of(response, page.agent.tokens, page.tdm)
    terms = directives.access_terms
    canonical = content.canonical
    return {
        "url": response.url,
        "status": response.status,
        "content_type": _header(response, "Content-Type"),
        "size": len(response.body),
        "directives": [_statement(one) for one in stated[:MAX_STATEMENTS]],
        "directives_left_out": len(stated[MAX_STATEMENTS:]),
        "indexable": directives.indexable,
        "nofollow": directives.nofollow,
        "usage": _usage(page, directives),
        "licenses": list(directives.licenses),
        "access_terms": None if terms is None else terms.to_dict(),
        "canonical": None
        if canonical is None
        else {"url": canonical, **verdict_on(canonical, page)},
        "refresh": content.refresh,
        "title": content.title,
        "text": content.text,
        "text_cut": content.is_text_cut,
        "links": [_link(link, page, nofollow=directives.nofollow) for link in content.links],
        "links_left_out": content.links_left_out,
        "other_links": content.other_links,
    }


def contradictions(page: Page, record: dict[str, Any], verdict: Verdict) -> list[Any]:
    """Return what contradicts itself in a page and the robots.txt files. Each has a code."""
    found: list[tuple[str, str]] = []
    name, rules = page.agent.name, [one["rule"] for one in record["directives"]]
    restrictions = [rule for rule in dict.fromkeys(rules) if rule not in _WITHOUT_REMARK]
    if not verdict.allowed and restrictions:
        found.append(
            (
                "directives-behind-disallow",
                f"The page says {', '.join(restrictions)}, but {name} never sees it: robots.txt "
                "disallows the page. Its URL may be indexed without its content.",
            )
        )
    if {"noindex", "none"} & set(rules) and {"index", "all"} & set(rules):
        found.append(("index-and-noindex", "The page says both index and noindex: noindex holds."))
    canonical = record["canonical"]
    if canonical is not None:
        if canonical["allowed"] is False:
            text = f"The canonical URL is disallowed for {name}, so its content is not known."
            found.append(("canonical-disallowed", text))
        if canonical["url"] != record["url"] and not record["indexable"]:
            text = "The page says noindex, but names another URL as canonical."
            found.append(("noindex-with-canonical", text))
    stated = record["usage"]
    if stated is not None:
        both = (
            use
            for use, granted in stated["robots_txt"].items()
            if stated["page"].get(use) not in (None, granted)
        )
        found += [
            (
                "usage-differs",
                f"robots.txt and the page differ about {use}: it is refused.",
            )
            for use in both
        ]
    return [{"code": code, "text": text} for code, text in found]


def verdict_on(url: str, page: Page) -> dict[str, Any]:
    """Return what the robots.txt of a URL says to the crawler, as a part of a record."""
    policy = page.policies.get(origin_of(url) or "")
    if policy is None:
        return answer(None, "unknown")
    return answer_of(page.agent.apply(policy.verdict(url, page.agent.tokens)))


def _statements(page: Page) -> list[Statement]:
    response = page.response
    lines = [
        (name, line.decode("latin-1"))
        for name in HEADERS
        for line in response.headers.getlist(name)
    ]
    html = markup(response) if isinstance(response, HtmlResponse) else b""
    stated = statements(lines, html, page.agent.tokens)
    if page.tdm is not None:
        stated += statements_of(page.tdm)
    return list(dict.fromkeys(stated))


def _statement(statement: Statement) -> dict[str, Any]:
    (rule, place, agent), argument = statement
    return {"rule": rule, "argument": argument[:MAX_LINE_LENGTH], "place": place, "agent": agent}


def _usage(page: Page, directives: PageDirectives) -> dict[str, Any] | None:
    """Return what is stated about the use of a page; None if nothing is."""
    response, agent = page.response, page.agent
    policy = page.policies.get(origin_of(response.url) or "")
    robots: list[usage.Signals] = []
    if policy is not None and policy.robots is not None:
        group = agent.group(policy.robots)
        if group is not None or not (agent.ignores_wildcard or agent.ignores_robots_txt):
            tokens = (group,) if group is not None and group != "*" else ()
            stated = usage_record(policy.robots, response.url, tokens)
            robots = [] if stated is None else [stated["content_signal"], stated["content_usage"]]
    own = usage.of_response(
        *(_lines(response, name) for name in ("Content-Signal", "Content-Usage"))
    )
    evaluated = usage.evaluated([*robots, *own], directives.tdm_reservation)
    if not evaluated:
        return None
    reserved, by_file = directives.tdm_reservation, None
    if page.tdm is not None:
        reserved = directives_of(response, agent.tokens).tdm_reservation
        if reserved is None:  # what the page states wins over the file
            by_file = page.tdm.reservation
    return {
        "evaluated": evaluated,
        "robots_txt": usage.evaluated(robots),
        "page": usage.evaluated(own, reserved),
        "tdm_file": usage.evaluated([], by_file),
    }


def _lines(response: Response, name: str) -> Sequence[str]:
    return [line.decode("latin-1") for line in response.headers.getlist(name)]


def _header(response: Response, name: str) -> str | None:
    lines = _lines(response, name)
    return lines[0][:MAX_LINE_LENGTH] if lines else None


def _link(link: PageLink, page: Page, *, nofollow: bool) -> dict[str, Any]:
    return {
        "url": link.url,
        "text": link.text,
        "rel": list(link.rel),
        "nofollow": nofollow or "nofollow" in link.rel,
        **verdict_on(link.url, page),
    }
