"""The crawlers that ``-a`` names: the well-known ones in ``crawlers.toml``, and any other.

``crawlers`` lists the well-known ones. A crawl imports none of this.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import click
from msgspec import Struct, convert, field
from rich.text import Text

from ..known_crawlers import read_table
from ..protocol.agents import WILDCARD_AGENT, parse_user_agent, product_tokens
from ..protocol.verdict import Reason, Verdict
from .context import Context, tool
from .output import CommandError, ExitCode
from .texts import named_values, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..protocol.robotstxt import RobotsTxt
    from .sources import Policy

_SCRAPY = ("scrapy",)
"""The product token of Scrapy's default USER_AGENT."""

_ANY_PATH = "/"
"""A path whose verdict names the group. That of robots.txt itself would not."""


Purpose = Literal["search", "ads", "ai-training", "ai-use", "archive", "seo", "preview", "other"]
"""What a crawler fetches pages for. ``ads`` are also checks of the pages that ads link to,
``ai-use`` is input for the answers of a model, and ``other`` are feeds, tests and the like."""

Compliance = Literal["follows", "may-ignore", "ignores", "unknown"]
"""Whether a crawler follows robots.txt, in the words of its source. It may ignore the file for
some pages, such as those that a person asked for; it ignores it always; the source does not say."""

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


class Source(Struct, frozen=True):
    """A page of the operator, or a list of others, that describes crawlers.

    ``seen`` is the date of the copy that was read.
    """

    url: str
    seen: date
    kind: Literal["operator", "list"]


class Crawler(Struct, frozen=True, kw_only=True, tag_field="type", tag="crawler"):
    """A well-known crawler.

    ``tokens`` are its product tokens in order of preference: the first that a file names selects
    the group. ``ignores_wildcard``: the group for ``*`` never applies. ``user_triggered``: each
    request is the direct result of what a person does.
    """

    version: int = 1
    name: str
    operator: str
    tokens: tuple[str, ...]
    purposes: tuple[Purpose, ...]
    compliance: Compliance = field(default="follows", name="robots_txt")
    ignores_wildcard: bool = False
    user_triggered: bool = False
    note: str | None = None
    source: Source

    @property
    def groups(self) -> str:
        """The groups that apply, the first that the file has.

        >>> crawlers_of("Applebot")[0].groups
        'Applebot, Googlebot, *'
        """
        if self.compliance == "ignores":
            return "none"
        return ", ".join(self.tokens if self.ignores_wildcard else (*self.tokens, "*"))

    @property
    def compliance_text(self) -> str:
        """Whether it follows robots.txt, and who says so if it is not its operator."""
        by_others = self.compliance != "unknown" and self.source.kind == "list"
        return f"{self.compliance}, says a list" if by_others else self.compliance


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

    def verdict(self, policy: Policy | RobotsTxt, url: str) -> Verdict:
        """Return what a robots.txt says of a URL to this crawler.

        Every tool gets its verdicts here. Those of a site are the ones of a crawl. Raises
        ValueError for a URL that has no robots.txt.
        """
        verdict = policy.verdict(url, self.tokens)
        if self.ignores_robots_txt:
            return Verdict(True, Reason.NO_RULES, detail=f"{self.name} ignores robots.txt")
        if self.ignores_wildcard and verdict.agent == WILDCARD_AGENT:
            return Verdict(True, Reason.NO_RULES, detail=f"{self.name} ignores the group for *")
        return verdict

    def group(self, robots: RobotsTxt) -> str | None:
        """Return the token of the group that applies; None if there is none."""
        return self.verdict(robots, _ANY_PATH).agent

    @property
    def ignores_unnamed(self) -> bool:
        """Whether nothing applies to it in a file that does not name it."""
        return self.ignores_wildcard or self.ignores_robots_txt


ANY_CRAWLER = Agent(WILDCARD_AGENT, ())
"""A crawler that no group names: only the group for ``*`` applies."""


def agents_of(
    names: Sequence[str], context: Context, *, outside: Agent | None = None
) -> list[Agent]:
    """Return the crawlers that ``-a`` names; without one, that of the settings.

    ``outside`` is the one outside of a project, if no setting names any. Warns about names that a
    site cannot tell apart.
    """
    agents = resolve(names)
    if not agents:
        from scrapy.utils.project import inside_project

        agents = [of_user_agent(context.settings.user_agent(None))]
        if outside is not None and agents[0].tokens == _SCRAPY and not inside_project():
            agents = [outside]
    for agent in agents:
        if agent.warning:
            context.output.warn(agent.warning, "warnings about crawlers")
    return agents


def resolve(names: Iterable[str]) -> list[Agent]:
    """Return the crawlers that the values of ``-a`` stand for, each once.

    A value is the name of a well-known crawler, a purpose such as ``ai-training``, which stands for
    all crawlers with it, a product token, a User-Agent header, or ``*``.
    """
    found: dict[Agent, None] = {}
    for name in names:
        agents = [_of_crawler(crawler) for crawler in crawlers_of(name)]
        other = ANY_CRAWLER if name == WILDCARD_AGENT else of_user_agent(name)
        found.update(dict.fromkeys(agents or [other]))
    return list(found)


def of_user_agent(user_agent: str | bytes | tuple[str, ...]) -> Agent:
    """Return the crawler with a product token, a User-Agent header, or several of these."""
    parsed = parse_user_agent(user_agent)
    problem = parsed.problem(user_agent)
    if isinstance(user_agent, bytes):
        user_agent = user_agent.decode("latin-1")
    name = user_agent if isinstance(user_agent, str) else ", ".join(user_agent)
    if parsed.tokens[:1] == _SCRAPY:
        problem = (
            "Scrapy is the default name of every Scrapy crawler, and public block lists have it. "
            "Give your crawler a name of its own: -a NAME, or USER_AGENT in the settings"
        )
    return Agent(name, parsed.tokens, warning=problem)


@lru_cache(maxsize=1)
def well_known_crawlers() -> tuple[Crawler, ...]:
    """Return the crawlers of the table, in its order: those of an operator follow each other."""
    document = read_table()
    sources = document["source"]
    return tuple(
        convert({"tokens": [row["name"]], **row, "source": sources[row["source"]]}, Crawler)
        for row in document["crawler"]
    )


def crawlers_of(value: str) -> tuple[Crawler, ...]:
    """Return the crawlers that a value of ``-a`` stands for. Empty: it is a token like any other.

    It is the name of a crawler, a User-Agent header with its token, or a purpose, which stands for
    all crawlers with that purpose. The case does not matter.

    >>> [crawler.name for crawler in crawlers_of("GPTBOT")]
    ['GPTBot']
    >>> "CCBot" in [crawler.name for crawler in crawlers_of("archive")]
    True
    >>> crawlers_of("mybot")
    ()
    """
    name = value.strip().lower()
    found = tuple(each for each in well_known_crawlers() if name in each.purposes)
    if found:
        return found
    # A header has one token. Text without a token is a browser's, or no name at all.
    by_name = _by_name()
    named = (by_name[each] for each in (name, *product_tokens(value)) if each in by_name)
    return tuple(islice(named, 1))


@lru_cache(maxsize=1)
def _by_name() -> dict[str, Crawler]:
    """Return the crawlers by name, and by their own token, in lower case."""
    crawlers = well_known_crawlers()
    by_name = {crawler.tokens[0].lower(): crawler for crawler in crawlers}
    by_name.update((crawler.name.lower(), crawler) for crawler in crawlers)
    return by_name


def _of_crawler(crawler: Crawler) -> Agent:
    verb = {"ignores": "ignores", "may-ignore": "may ignore"}.get(crawler.compliance)
    return Agent(
        crawler.name,
        product_tokens(crawler.tokens),
        ignores_wildcard=crawler.ignores_wildcard,
        ignores_robots_txt=crawler.compliance == "ignores",
        warning=verb and f"{crawler.name} {verb} robots.txt ({crawler.source.url})",
    )


@tool(
    "List the well-known crawlers that -a knows: the group of a robots.txt that each one follows, "
    "what it fetches pages for, and the page that says so, with its date.",
    ("crawlers", "all of them"),
    ("crawlers ai-training", "those that -a ai-training stands for"),
    ("crawlers Googlebot-Image", "one crawler, with its source"),
    ("crawlers --json > crawlers.jsonl", "the whole table, with sources and notes"),
    records=(Crawler,),
)
@click.argument("names", nargs=-1, metavar="[CRAWLER|PURPOSE]...")
def crawlers_tool(context: Context, names: Sequence[str]) -> int:
    """List the well-known crawlers."""
    selected: dict[Crawler, None] = {}
    for name in names:
        found = crawlers_of(name)
        if not found:
            text = f"{name} is not a well-known crawler: -a takes it for a product token"
            raise CommandError(text)
        selected.update(dict.fromkeys(found))
    crawlers = list(selected) or well_known_crawlers()
    if context.output.as_json:
        for crawler in crawlers:
            context.output.record(crawler)
    else:
        context.output.print(_listing(crawlers))
    return ExitCode.OK


_STYLES = {"ignores": "red", "may-ignore": "yellow"}


def _listing(crawlers: Sequence[Crawler]) -> Iterator[Any]:
    """Yield a table of crawlers, which is readable at 80 columns."""
    made = table(
        "Crawler", "Operator", "Purposes", "Falls back to", "robots.txt", padding=(0, 1, 0, 0)
    )
    for column, width in zip(made.columns, (25, 11, 12, 13, 10), strict=True):
        column.width = width
    for crawler in crawlers:
        made.add_row(
            crawler.name,
            crawler.operator,
            ", ".join(crawler.purposes),
            crawler.groups.partition(", ")[2] or "no other",
            Text(crawler.compliance_text, style=_STYLES.get(crawler.compliance, "")),
        )
    yield made
    yield ""
    if len(crawlers) == 1:
        source, note = crawlers[0].source, crawlers[0].note or "none"
        seen = source.seen.isoformat()
        yield named_values([("Source", source.url), ("Seen", seen), ("Note", note)])
        return
    yield "-a NAME answers as a crawler does; -a PURPOSE, as all with that purpose."
    yield "The source of an entry, with its date: 'crawlers NAME' or --json."
