"""The crawlers that ``-a`` names: the well-known ones, which ``crawlers`` lists, and any other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple, get_args

import click
from msgspec import Struct, convert, field, toml

from ..protocol.agents import WILDCARD_AGENT, parse_user_agent, product_tokens, text_of
from ..protocol.lint import Code, lint
from ..protocol.robotstxt import RobotsTxt
from ..protocol.usage import POLICY_PREFIX
from ..protocol.verdict import Reason, Verdict
from .context import Context, ExitCode, completing, refuse_if, tool
from .policy import Policy
from .texts import table

_SCRAPY = ("scrapy",)
"""The product token of Scrapy's default USER_AGENT."""

Purpose = Literal["search", "ads", "ai-training", "ai-use", "archive", "seo", "preview", "other"]
"""What a crawler fetches pages for. ``ads`` are also checks of the pages that ads link to,
``ai-use`` is input for the answers of a model, and ``other`` are feeds, tests and the like."""

Compliance = Literal["follows", "may-ignore", "ignores", "unknown"]
"""Whether a crawler follows robots.txt, in the words of its source. It may ignore the file for
some pages, such as those that a person asked for; it ignores it always; the source does not say."""

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


class Crawler(Struct, frozen=True, kw_only=True, tag_field="type", tag="crawler"):
    """A well-known crawler.

    ``tokens`` are its product tokens in order of preference: the first that a file names selects
    the group. ``ignores_wildcard``: the group for ``*`` never applies. ``source``: the page that
    says so, of the operator or a list of others, and the date of the copy that was ``seen``.
    """

    version: int = 1
    name: str
    operator: str
    tokens: tuple[str, ...]
    purposes: tuple[Purpose, ...]
    compliance: Compliance = field(default="follows", name="robots_txt")
    ignores_wildcard: bool = False
    note: str | None = None
    source: str
    seen: date

    @property
    def groups(self) -> str:
        """The groups that apply, the first that the file has: ``Applebot, Googlebot, *``."""
        return ", ".join(self.tokens if self.ignores_wildcard else (*self.tokens, "*"))

    def has(self, words: Sequence[str]) -> bool:
        """Return whether a word is a part of its name, operator, tokens or purposes; if any."""
        text = " ".join((self.name, self.operator, *self.tokens, *self.purposes)).lower()
        return not words or any(word.lower() in text for word in words)

    @property
    def agent(self) -> Agent:
        verb = {"ignores": "ignores", "may-ignore": "may ignore"}.get(self.compliance)
        warning = verb and f"{self.name} {verb} robots.txt ({self.source})"
        return Agent(self.name, product_tokens(self.tokens), self.ignores_wildcard, warning)


class Agent(NamedTuple):
    """A crawler, as a robots.txt sees it."""

    name: str
    tokens: tuple[str, ...]
    """Its product tokens in lower case, in order of preference. Empty: only ``*`` applies."""
    ignores_wildcard: bool = False
    """Whether it ignores the group for ``*``, as AdsBot-Google does."""
    warning: str | None = None
    doubt: str = ""
    """What to write instead of a token that is near a known one; empty for all others."""

    def misspelling(self, robots: RobotsTxt | None) -> str:
        """Return the doubt about a token that a robots.txt does not name either."""
        is_named = self.doubt and robots is not None and self.tokens[0] in robots.agents
        return "" if is_named else self.doubt

    @property
    def is_policy_token(self) -> bool:
        """Whether it is a token for a use, which no crawler has: ``*`` never applies to it."""
        return self.tokens[:1] != () and self.tokens[0].startswith(POLICY_PREFIX)

    def verdict(self, policy: Policy | RobotsTxt, url: str) -> Verdict:
        """Return what a robots.txt says of a URL to this crawler.

        Every tool gets its verdicts here. Raises ValueError for a URL that has no robots.txt, and
        CommandError for a misspelled token.
        """
        robots = policy if isinstance(policy, RobotsTxt) else policy.robots
        refuse_if(doubt := self.misspelling(robots), doubt)
        verdict = policy.verdict(url, self.tokens)
        if self.is_policy_token and robots is not None:
            silent = Verdict(True, Reason.NO_RULES, detail=f"nothing is stated for {self.name}")
            return robots.usage_policies(url).get(self.tokens[0], silent)
        if self.ignores_wildcard and verdict.agent == WILDCARD_AGENT:
            return Verdict(True, Reason.NO_RULES, detail=f"{self.name} ignores the group for *")
        return verdict

    def group(self, robots: RobotsTxt) -> str | None:
        """Return the token of the group that applies; None if there is none."""
        if self.is_policy_token:
            return next((token for token in self.tokens if token in robots.agents), None)
        # Of any path: only the verdict on robots.txt itself names no group.
        return self.verdict(robots, "/").agent

    def tokens_in(self, robots: RobotsTxt) -> tuple[str, ...] | None:
        """Return the tokens for which a file states more than rules; None if nothing applies."""
        group = self.group(robots)
        if self.is_policy_token or (group is None and self.ignores_wildcard):
            return None
        return () if group in (None, WILDCARD_AGENT) else (group,)


ANY_CRAWLER = Agent(WILDCARD_AGENT, ())
"""A crawler that no group names: only the group for ``*`` applies."""


def agents_of(
    names: Sequence[str], context: Context, *, outside: Agent | None = None
) -> list[Agent]:
    """Return the crawlers that ``-a`` names, or else the one that the settings name.

    ``outside`` is the one outside of a project whose settings name none.
    """
    agents = resolve(names)
    if not agents and outside is not None and not context.has_settings:
        agents = [outside]
    if not agents:
        from scrapy.utils.project import inside_project

        agents = [of_user_agent(context.settings.user_agent(None))]
        if outside is not None and agents[0].tokens == _SCRAPY and not inside_project():
            agents = [outside]
    for warning in filter(None, (agent.warning for agent in agents)):
        context.warn(warning, "warnings about crawlers")
    return agents


def resolve(names: Iterable[str]) -> list[Agent]:
    """Return the crawlers that the values of ``-a`` stand for, each once.

    A value that stands for no well-known crawler is a product token, a User-Agent header, or ``*``.
    """
    found: dict[Agent, None] = {}
    for name in names:
        agents = [crawler.agent for crawler in crawlers_of(name)]
        other = ANY_CRAWLER if name == WILDCARD_AGENT else _other(name)
        found.update(dict.fromkeys(agents or [other]))
    return list(found)


def _other(name: str) -> Agent:
    agent = of_user_agent(name)
    if agent.tokens != (name.strip().lower(),):
        return agent  # who writes a whole header, with a version, means it
    line = f"User-agent: {name}".encode("utf-8", "surrogateescape")
    codes = [Code.SIMILAR_TOKEN, Code.UNKNOWN_POLICY_TOKEN]
    found = lint(line, select=codes, crawlers=known_tokens())
    other = "" if agent.is_policy_token else f"; for another crawler, write '{name}/1.0'"
    return agent._replace(doubt="".join(f"{each.message}: {each.advice}{other}" for each in found))


def of_user_agent(user_agent: str | bytes | tuple[str, ...]) -> Agent:
    """Return the crawler with a product token, a User-Agent header, or several of these."""
    parsed = parse_user_agent(user_agent)
    problem = parsed.problem(user_agent)
    if parsed.tokens[:1] == _SCRAPY:
        problem = (
            "Scrapy is the default name of every Scrapy crawler, and public block lists have it. "
            "Give your crawler a name of its own: -a NAME, or USER_AGENT in the settings"
        )
    return Agent(text_of(user_agent), parsed.tokens, warning=problem)


@lru_cache(maxsize=1)
def well_known_crawlers() -> tuple[Crawler, ...]:
    """Return the crawlers of the table, in its order: those of an operator follow each other."""
    document = toml.decode(files("scrapy_rep").joinpath("crawlers.toml").read_bytes())
    sources = {key: {**row, "source": row["url"]} for key, row in document["source"].items()}
    rows = [{"tokens": [row["name"]], **row} for row in document["crawler"]]
    return tuple(convert(row | sources[row["source"]], Crawler) for row in rows)


@lru_cache(maxsize=1)
def known_tokens() -> dict[str, str]:
    """Return the product tokens of the well-known crawlers, by their lower case."""
    return {token.lower(): token for each in well_known_crawlers() for token in each.tokens}


@lru_cache(maxsize=1024)
def crawlers_of(value: str) -> tuple[Crawler, ...]:
    """Return the well-known crawlers that a value of ``-a`` stands for.

    It is a name, a User-Agent header with its token, or the purpose of all of them, in any case.
    """
    name = value.strip().lower()
    crawlers = well_known_crawlers()
    if name in PURPOSES:
        return tuple(each for each in crawlers if name in each.purposes)
    # A header has one token. Text without a token is a browser's, or no name at all.
    for wanted in (name, *product_tokens(value)):
        for each in crawlers:
            if wanted in (each.name.lower(), each.tokens[0].lower()):
                return (each,)
    return ()


def agent_names() -> Iterable[str]:
    """Return the names that ``-a`` knows: those of crawlers, and purposes."""
    return (*(crawler.name for crawler in well_known_crawlers()), *PURPOSES)


@tool(
    "List the well-known crawlers that -a knows: what each one fetches pages for, which group of a "
    "robots.txt it follows if none names it, and whether its operator says that it follows the "
    "file. JSON also has the page that says so, with its date.",
    ("crawlers", "all of them"),
    ("crawlers google ai-use", "those of an operator, and those with a purpose"),
    ("crawlers --json > crawlers.jsonl", "the whole table, with sources and notes"),
    records=(Crawler,),
)
@click.argument("words", nargs=-1, metavar="[WORD]...", shell_complete=completing(agent_names))
def crawlers_tool(context: Context, words: Sequence[str]) -> int:
    # It is readable at 80 columns.
    heads = ("Crawler", "Operator", "Purposes", "Falls back to", "robots.txt")
    made = table(*heads, padding=(0, 1, 0, 0))
    for column, width in zip(made.columns, (24, 9, 15, 13, 10), strict=True):
        column.max_width, column.no_wrap, column.overflow = width, True, "ellipsis"
    found = [crawler for crawler in well_known_crawlers() if crawler.has(words)]
    refuse_if(not found, f"no well-known crawler has {' or '.join(words)}")
    for crawler in found:
        if context.as_json:
            context.record(crawler)
        others = crawler.groups.partition(", ")[2] or "no other"
        purposes = ", ".join(crawler.purposes)
        made.add_row(crawler.name, crawler.operator, purposes, others, crawler.compliance)
    if not context.as_json:
        hint = "-a NAME answers as a crawler does; -a PURPOSE, as all with that purpose."
        context.print([made, "", hint])
    return ExitCode.OK
