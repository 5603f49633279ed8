"""The crawlers that ``-a`` names: how each reads a robots.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy.settings import default_settings

from ..protocol.agents import WILDCARD_AGENT, AgentWarning, parse_user_agent, product_tokens
from ..protocol.verdict import Reason, Verdict
from .crawlers import Compliance, crawlers_of, similar_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..protocol.robotstxt import RobotsTxt
    from .crawlers import Crawler

DEFAULT_TOKENS = product_tokens(default_settings.USER_AGENT)
"""The product token of Scrapy's default USER_AGENT."""

_ANY_PATH = "/"
"""A path whose verdict names the group. That of robots.txt itself would not."""


class Agent(NamedTuple):
    """A crawler, as a robots.txt sees it."""

    name: str
    """The name to show."""
    tokens: tuple[str, ...]
    """Its product tokens in lower case, in order of preference. Empty: only ``*`` applies."""
    ignores_wildcard: bool = False
    """Whether it ignores the group for ``*``, as AdsBot-Google does."""
    ignores_robots_txt: bool = False
    """Whether it ignores every robots.txt."""
    warning: str | None = None
    """What the user should know about it."""

    def apply(self, verdict: Verdict) -> Verdict:
        """Return the verdict for this crawler. It differs if the crawler ignores the group."""
        if self.ignores_robots_txt:
            return Verdict(True, Reason.NO_RULES, detail=f"{self.name} ignores robots.txt")
        if self.ignores_wildcard and verdict.agent == WILDCARD_AGENT:
            return Verdict(True, Reason.NO_RULES, detail=f"{self.name} ignores the group for *")
        return verdict

    def group(self, robots: RobotsTxt) -> str | None:
        """Return the token of the group that applies; None if there is none."""
        if self.ignores_robots_txt:
            return None
        agent = robots.verdict(_ANY_PATH, self.tokens).agent
        return None if self.ignores_wildcard and agent == WILDCARD_AGENT else agent


def resolve(names: Iterable[str]) -> list[Agent]:
    """Return the crawlers that the values of ``-a`` stand for, each once.

    A value is the name of a well-known crawler, a purpose such as ``ai-training``, which stands for
    all crawlers with it, a product token, or a User-Agent header.
    """
    found: dict[Agent, None] = {}
    for name in names:
        agents = [_of_crawler(crawler) for crawler in crawlers_of(name)]
        found.update(dict.fromkeys(agents or [of_user_agent(name)]))
    return list(found)


def of_user_agent(user_agent: str | bytes | tuple[str, ...]) -> Agent:
    """Return the crawler with a product token, a User-Agent header, or several of these."""
    tokens, warning = parse_user_agent(user_agent)
    name = _name_of(user_agent)
    return Agent(name, tokens, warning=_warning(name, tokens, warning))


def _of_crawler(crawler: Crawler) -> Agent:
    is_ignored = crawler.compliance is Compliance.IGNORES
    warning = None
    if is_ignored:
        warning = f"{crawler.name} ignores robots.txt ({crawler.source.url})"
    elif crawler.compliance is Compliance.MAY_IGNORE:
        warning = f"{crawler.name} may ignore robots.txt ({crawler.source.url})"
    return Agent(
        crawler.name,
        product_tokens(crawler.tokens),
        ignores_wildcard=crawler.ignores_wildcard,
        ignores_robots_txt=is_ignored,
        warning=warning,
    )


def _name_of(user_agent: str | bytes | tuple[str, ...]) -> str:
    match user_agent:
        case bytes():
            return user_agent.decode("latin-1")
        case str():
            return user_agent
    return ", ".join(user_agent)


def _warning(name: str, tokens: tuple[str, ...], warning: AgentWarning | None) -> str | None:
    if tokens[:1] == DEFAULT_TOKENS:
        return (
            "Scrapy is the default name of every Scrapy crawler, and public block lists have it. "
            "Give your crawler a name of its own: -a NAME, or USER_AGENT in the settings"
        )
    if warning is AgentWarning.NO_TOKEN and "mozilla" in name.lower():
        return f"{name!r} is the User-Agent of a browser, not of a crawler: only rules for * apply"
    if warning is AgentWarning.NO_TOKEN:
        return f"{name!r}: {warning.value}"
    if warning is not None:
        return f"the product tokens of {name!r} are {', '.join(tokens)}: {warning.value}"
    similar = similar_name(name)
    return f"{name} is taken for a product token. Do you mean {similar}?" if similar else None
