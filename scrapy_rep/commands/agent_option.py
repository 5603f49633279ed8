"""The crawlers that ``-a`` names: how each reads a robots.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy.settings import default_settings

from ..protocol.agents import WILDCARD_AGENT, AgentWarning, parse_user_agent
from ..protocol.verdict import Reason, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..protocol.robotstxt import RobotsTxt

DEFAULT_TOKEN = parse_user_agent(default_settings.USER_AGENT).tokens
"""The product token of Scrapy's default USER_AGENT."""


class Agent(NamedTuple):
    """A crawler, as a robots.txt sees it."""

    name: str
    """The name to show."""
    tokens: tuple[str, ...]
    """Its product tokens in lower case, in order of preference. Empty: only ``*`` applies."""
    ignores_wildcard: bool = False
    """Whether it ignores the group for ``*``, as AdsBot-Google does."""
    warning: str | None = None
    """What the user should know about it."""

    def apply(self, verdict: Verdict) -> Verdict:
        """Return the verdict for this crawler. It differs if the crawler ignores ``*``."""
        if self.ignores_wildcard and verdict.agent == WILDCARD_AGENT:
            return Verdict(True, Reason.NO_RULES)
        return verdict

    def group(self, robots: RobotsTxt) -> str | None:
        """Return the token of the group that applies; None if there is none."""
        agents = set(robots.agents)
        last = () if self.ignores_wildcard else (WILDCARD_AGENT,)
        return next((token for token in (*self.tokens, *last) if token in agents), None)


def resolve(names: Iterable[str]) -> list[Agent]:
    """Return the crawlers that the values of ``-a`` stand for, each once.

    Each function of :data:`RESOLVERS` may know a name. A name that none of them knows is a product
    token or a User-Agent header.
    """
    found: dict[Agent, None] = {}
    for name in names:
        known = next((agents for each in RESOLVERS if (agents := each(name))), None)
        found.update(dict.fromkeys(known or [of_user_agent(name)]))
    return list(found)


RESOLVERS: list[Callable[[str], list[Agent]]] = []
"""Functions that return the crawlers that a name stands for; an empty list for an unknown name."""


def of_user_agent(user_agent: str | bytes | tuple[str, ...], name: str | None = None) -> Agent:
    """Return the crawler with a product token, a User-Agent header, or several of these."""
    tokens, warning = parse_user_agent(user_agent)
    if name is None:
        name = _name_of(user_agent)
    return Agent(name, tokens, warning=_warning(name, tokens, warning))


def _name_of(user_agent: str | bytes | tuple[str, ...]) -> str:
    match user_agent:
        case bytes():
            return user_agent.decode("latin-1")
        case str():
            return user_agent
    return ", ".join(user_agent)


def _warning(name: str, tokens: tuple[str, ...], warning: AgentWarning | None) -> str | None:
    if tokens == DEFAULT_TOKEN:
        return (
            "'Scrapy' is the default of Scrapy, which public block lists name. Give your crawler a "
            "name of its own: USER_AGENT, or -a NAME"
        )
    if warning is AgentWarning.NO_TOKEN:
        return f"{name!r} is no crawler's User-Agent but a browser's: only the rules for * apply"
    if warning is not None:
        return f"the product tokens of {name!r} are {', '.join(tokens)}: {warning.value}"
    return None
