"""``check``: whether crawlers may fetch URLs, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta
from itertools import chain, islice, product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click
from msgspec import Struct

from ..protocol.paths import host_of, lacks_host
from ..protocol.printable import printable
from ..protocol.records import describe
from ..protocol.verdict import Reason, Verdict
from .context import Context, agent_option, archive_option, tool
from .crawlers import ANY_CRAWLER, Agent, agents_of
from .explain import MAX_URL, Check, brief, explain, explanation, reason_text, refusals
from .inputs import input_options, urls_from
from .output import CommandError, ExitCode, exit_code, json_line
from .sources import FORMS, is_file, read_policies, site_of, time_text, with_http
from .texts import MAX_CELL, STYLES, WORDS, table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from rich.console import RenderableType

    from .session import Session
    from .sources import Policy, Target

FIRST_BATCH, MAX_BATCH = 64, 8192
"""URLs that are read before their robots.txt files are fetched. The number doubles from the first
to the maximum, so that the first answers come soon."""

MAX_BATCH_LENGTH = 4_000_000
"""Characters of the URLs after which a batch ends, however few they are."""

MAX_HOSTS = 50
"""Hosts of a plan that are shown as text. JSON has all."""

DISALLOWED, REFUSED = "disallowed", "refused"
"""What ``--only`` takes."""

_Answered: TypeAlias = "tuple[Target, Policy | None, list[Verdict | None]]"
"""A URL, its policy if it is known, and a verdict for each crawler if that is known."""

NO_ROBOTS_TXT = Verdict(True, Reason.NO_RULES, detail="this scheme has no robots.txt")
INVALID_HOST = Verdict(False, Reason.INVALID_HOST)


class Plan(Struct, kw_only=True, tag_field="type", tag="plan"):
    """What a crawl of the URLs does at a host; null: those without one.

    ``delay``: the seconds between two requests, and ``pace`` what the site asks for. ``seconds``:
    how long the requests for the pages take at least.
    """

    version: int = 1
    host: str | None
    allowed: int = 0
    dropped: int = 0
    pace: str = ""
    delay: float = 0
    seconds: float = 0


@tool(
    "Say whether crawlers may fetch URLs, and why: the robots.txt and where it came from, the "
    "group, the rule that decides, and the other rules that match. Several URLs are shown as "
    "lines.",
    ("check https://example.com/a -a mybot", "may mybot fetch it?"),
    ("check https://example.com/a -a mybot -a Googlebot", "and may Googlebot?"),
    ("check --robots robots.txt /a /b", "check paths against a file, without the network"),
    ("check --from urls.txt --json > verdicts.jsonl", "check many URLs"),
    (
        "check --from sitemap.xml.gz --plan",
        "what a crawl of these URLs drops, and how long it takes",
    ),
    ("check --from items.jsonl --only disallowed,refused", "items whose page is now off limits"),
    records=(Check, Plan),
)
@click.argument("urls", nargs=-1, metavar="[URL]...")
@agent_option
@click.option("--robots", metavar="ROBOTS", help=f"Use this robots.txt for every URL: {FORMS}.")
@click.option("--from", "source", metavar="FILE", help="Read URLs from a file; '-': standard input")
@input_options
@click.option(
    "--plan",
    is_flag=True,
    help="For each host: how many URLs a crawl requests and drops, the pace that the host asks "
    "for, and how long the crawl takes at least.",
)
@click.option(
    "--only",
    metavar="KINDS",
    help=f"Only URLs that are '{DISALLOWED}', or whose content is '{REFUSED}' for the uses of "
    f"REP_INTENDED_USES (without them, for any), or both: {DISALLOWED},{REFUSED}. With a store or "
    "--archive, it says since when.",
)
@archive_option
def check_tool(
    context: Context,
    urls: Sequence[str],
    agents: Sequence[str],
    robots: str | None,
    source: str | None,
    from_format: str | None,
    url_field: str | None,
    plan: bool,
    only: str | None,
) -> int:
    """Check URLs."""
    kinds = frozenset(only.split(",") if only else ())
    if not kinds <= {DISALLOWED, REFUSED}:
        raise CommandError(f"--only takes {DISALLOWED}, {REFUSED}, or {DISALLOWED},{REFUSED}")
    if plan and (robots or only):
        raise CommandError("--plan asks the sites: it excludes --robots and --only")
    if not urls and source is None:
        raise CommandError("give URLs, or a file with URLs: --from FILE")
    for name in urls:
        if is_file(name) and not name.startswith("/") and Path(name).is_file():
            raise CommandError(
                f"{name} is a file: --robots FILE uses it as a robots.txt, --from FILE reads URLs"
            )
    given: Iterator[str] = iter(urls)
    if source is not None:
        given = chain(given, urls_from(source, form=from_format, field=url_field))
    # What is in the arguments is explained. What is in a file may be long.
    from ..settings import turns_obeying_off  # it imports Scrapy

    if turns_obeying_off(context.scrapy_settings):
        context.output.warn(
            "the settings turn ROBOTSTXT_OBEY off: a crawl of this project ignores all of this"
        )
    named = agents_of(agents, context, outside=ANY_CRAWLER)
    if plan and len(named) > 1:
        raise CommandError("--plan is for one crawler")
    is_detailed = source is None and not plan and not only
    checker = _Checker(context, named, given, kinds, plans=plan, is_detailed=is_detailed)
    if robots is not None:
        (policy,) = read_policies([robots], context)
        return checker.run(None, policy)
    if context.archives:
        return checker.run(None)
    return context.run(checker.run)


class _Checker:
    """Answers for URLs as they are read, and writes the answers."""

    def __init__(
        self,
        context: Context,
        agents: Sequence[Agent],
        urls: Iterator[str],
        kinds: frozenset[str],
        *,
        plans: bool,
        is_detailed: bool,
    ) -> None:
        self._context = context
        self._output = context.output
        self._agents = agents
        self._urls = urls
        self._kinds = kinds
        self._plans: dict[str | None, Plan] | None = {} if plans else None
        self._since: dict[tuple[str, str], datetime | None] = {}
        """For URLs and crawlers, since when a page may not be fetched or used."""
        self._is_detailed = is_detailed
        self._counts: Counter[bool | None] = Counter()
        self._unknown = 0
        """Sites that did not answer, and invalid URLs. Some of these have a verdict, because a
        crawl drops them."""
        self._policies: dict[str, Policy] = {}

    def run(self, session: Session | None, policy: Policy | None = None) -> int:
        """Check all URLs. ``policy`` is that of a file, which holds for every URL."""
        output = self._output
        answers: list[_Answered] = []
        try:
            for targets in self._batches(session, policy):
                batch = [self._answer(target, policy) for target in targets]
                if self._is_detailed:
                    answers += batch
                elif self._plans is not None:
                    self._plan(self._plans, batch)
                else:
                    output.write("".join(self._lines(batch)))
                    output.flush()
        finally:
            if answers:
                self._explain(answers)
            elif self._plans and output.as_json:
                output.write("".join(map(json_line, self._plans.values())))
            elif self._plans:
                output.print(_listing(self._plans.values()))
            if self._counts and not (answers or output.as_json):
                words = (
                    {True: "left out", False: "found", None: "unknown"} if self._kinds else WORDS
                )
                parts = (f"{self._counts[allowed]:,} {text}" for allowed, text in words.items())
                output.note(f"{self._counts.total():,} answers: {', '.join(parts)}")
        if not self._counts:
            output.note("there are no URLs to check")
        return ExitCode.UNKNOWN if self._unknown else exit_code(+self._counts)

    def _batches(self, session: Session | None, file: Policy | None) -> Iterator[list[Target]]:
        """Yield the URLs, after their robots.txt files were fetched."""
        is_archived = file is None and session is None
        size = MAX_BATCH if is_archived else FIRST_BATCH  # each batch reads the whole archives
        while True:
            targets: list[Target] = []
            length = 0
            for url in islice(self._urls, size):
                targets.append(site_of(url, self._context, in_file=file is not None))
                length += len(url)
                if length > MAX_BATCH_LENGTH:
                    break
            if not targets:
                return
            if is_archived:
                self._replay(targets)
            elif session is not None:
                self._fetch(targets, session)
            yield targets
            size = min(2 * size, MAX_BATCH)

    def _fetch(self, targets: list[Target], session: Session) -> None:
        known = self._policies
        origins = dict.fromkeys(target.origin for target in targets if target.origin)
        missing = [origin for origin in origins if origin not in known]
        found = known | session.policies(missing)
        targets[:] = with_http(targets, found, session, self._context)
        # Those of the last batch. The session keeps more of them.
        used = dict.fromkeys(target.origin for target in targets if target.origin)
        self._policies = {str(origin): found[str(origin)] for origin in used}
        for origin, policy in self._policies.items():
            if policy.access.is_unreachable and origin not in known:
                self._unknown += 1
                self._output.note(policy.access.problem, "unreachable robots.txt files")

    def _replay(self, targets: list[Target]) -> None:
        """Read policies in the archives, and note since when pages may not be fetched or used."""
        from .archived import replay  # only here, because it loads much

        self._policies, self._since = {}, {}
        wanted = defaultdict(list)
        for target in targets:
            wanted[target.origin or ""].append(target)
        for policy in replay(wanted, self._context):
            key = str(policy.origin)
            before = self._policies.get(key)
            self._policies[key] = policy
            state = policy.robots, policy.access.state
            if before is not None and state == (before.robots, before.access.state):
                continue
            for target, agent in product(wanted[key], self._agents):
                record = brief(target, agent, agent.verdict(policy, target.url))
                if self._is_found(record, policy, agent):
                    at = policy.access.fetched_at
                    self._since.setdefault((record.url, record.agent), at)
                else:
                    self._since.pop((record.url, record.agent), None)

    def _is_found(self, record: Check, policy: Policy | None, agent: Agent) -> bool:
        """Whether ``--only`` lists a URL. Adds to the record why, and since when."""
        record.refused, record.since = [], self._since.get((record.url, record.agent))
        if REFUSED in self._kinds and policy is not None:
            uses = self._context.settings.intended_uses
            record.refused = refusals(policy, agent, record.url, uses)
        if policy is not None and policy.access.source == "store":
            record.since = policy.access.unreachable_since or policy.access.fetched_at
        is_disallowed = DISALLOWED in self._kinds and record.allowed is False
        return is_disallowed or bool(record.refused)

    def _plan(self, plans: dict[str | None, Plan], batch: Sequence[_Answered]) -> None:
        """Add URLs to the plans of their hosts."""
        (agent,) = self._agents
        for target, policy, (verdict,) in batch:
            host = host_of(target.origin) if target.origin else None
            plan = plans.setdefault(host, Plan(host=host))
            is_allowed = verdict is not None and verdict.allowed
            plan.allowed += is_allowed
            plan.dropped += not is_allowed
            if policy is not None and policy.robots is not None:
                delay = policy.seconds_between(agent.tokens)
                # The longest delay of a host applies.
                if delay > plan.delay or not (plan.delay or plan.pace):
                    plan.pace, plan.delay = describe(policy.robots, agent.tokens), delay
            # The first page does not wait after the robots.txt.
            plan.seconds = max(plan.allowed - 1, 0) * plan.delay

    def _answer(self, target: Target, file: Policy | None) -> _Answered:
        policy = file or self._policies.get(target.origin or "")
        verdicts: list[Verdict | None] = [None] * len(self._agents)
        self._unknown += not target.is_valid
        if policy is not None and target.is_valid:
            try:
                verdicts = [agent.verdict(policy, target.url) for agent in self._agents]
            except ValueError:  # a file, and a URL whose scheme has no robots.txt
                policy, verdicts = None, [NO_ROBOTS_TXT] * len(self._agents)
        elif target.origin is None and target.is_valid:
            verdicts = [NO_ROBOTS_TXT] * len(self._agents)
        elif target.origin is None and lacks_host(target.url):
            verdicts = [INVALID_HOST] * len(self._agents)
        for verdict in () if self._kinds else verdicts:
            self._counts[None if verdict is None else verdict.allowed] += 1
        return target, policy if target.is_valid else None, verdicts

    def _lines(self, batch: Sequence[_Answered]) -> Iterator[str]:
        """Yield a line for each URL and crawler: a brief record, or text."""
        output, has_names = self._output, len(self._agents) > 1
        words = {key: output.styled(f"{text:<10}", STYLES[key]) for key, text in WORDS.items()}
        refused = output.styled(f"{REFUSED:<10}", "yellow")
        for target, policy, verdicts in batch:
            for agent, verdict in zip(self._agents, verdicts, strict=True):
                record = brief(target, agent, verdict)
                if self._kinds:
                    is_found = self._is_found(record, policy, agent)
                    self._counts[None if verdict is None else not is_found] += 1
                    if not is_found:
                        continue
                if output.as_json:
                    yield json_line(record)
                else:
                    name = f"{printable(agent.name)}: " if has_names else ""
                    url = printable(target.url, MAX_URL)
                    is_refused = record.allowed and record.refused
                    word = refused if is_refused else words[record.allowed]
                    yield f"{word} {url}  {name}{_why(record)}\n"

    def _explain(self, answers: Sequence[_Answered]) -> None:
        """Write an explanation of each answer, or lines if there are several."""
        if len(answers) * len(self._agents) > 1 and not self._output.as_json:
            self._output.write("".join(self._lines(answers)))
            return
        for target, policy, verdicts in answers:
            for agent, verdict in zip(self._agents, verdicts, strict=True):
                self._output.show(explain(target, agent, policy, verdict), explanation)


def _why(record: Check) -> str:
    if record.allowed is None:
        return "not known"
    refused = [str(each) for each in record.refused or ()]
    parts = refused if record.allowed and refused else [reason_text(record), *refused]
    if record.since:
        parts.append(f"since {time_text(record.since)}")
    return "; ".join(parts)


def _listing(plans: Collection[Plan]) -> Iterator[RenderableType]:
    """Yield the table of a plan, the slowest hosts first."""
    made = table("Host", "Allowed", "Dropped", "Pace", "At least", right=(1, 2, 4))
    for plan in sorted(plans, key=lambda each: (-each.seconds, -each.allowed))[:MAX_HOSTS]:
        made.add_row(
            printable(plan.host or "no robots.txt", MAX_CELL),
            f"{plan.allowed:,}",
            f"{plan.dropped:,}",
            printable(plan.pace, MAX_CELL),
            str(timedelta(seconds=round(plan.seconds))),
        )
    yield made
    if len(plans) > MAX_HOSTS:
        yield f"and {len(plans) - MAX_HOSTS:,} more hosts"
