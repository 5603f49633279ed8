"""``check``: whether crawlers may fetch URLs, and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from heapq import merge
from itertools import chain, islice, product
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click
from msgspec import Struct

from ..logs import plural
from ..protocol.access import Answer, CopyInfo, NotModified, event_of
from ..protocol.pacing import describe
from ..protocol.paths import host_of, lacks_host
from ..protocol.printable import printable
from ..protocol.refusals import MAX_LENGTH
from ..protocol.verdict import Reason, Verdict
from ..reports.records import moment
from . import sources
from .context import (
    Context,
    ExitCode,
    completing,
    exit_code,
    json_line,
    reading,
    refuse_if,
    tool,
)
from .crawlers import ANY_CRAWLER, Agent, agent_names, agents_of
from .explain import MAX_URL, Check, brief, explain, explanation, reason_text, refusals
from .policy import Policy, access_of, to_second
from .sources import FORMATS, FORMS, Target
from .texts import MAX_CELL, STYLES, WORDS, Renderables, table

if TYPE_CHECKING:
    from ..reports.archive import ArchivedRobotsTxt
    from .session import Session

FIRST_BATCH, MAX_BATCH = 64, 8192
"""URLs that are read before their robots.txt files are fetched. The number doubles from the first
to the maximum, so that the first answers come soon."""

MAX_HOSTS = 50
"""Hosts of a plan that are shown as text. JSON has all."""

DISALLOWED, REFUSED = "disallowed", "refused"

_Answer: TypeAlias = "tuple[Target, Agent, Policy | None, Verdict | None]"
"""A URL, a crawler, and the policy and the verdict if they are known."""

NO_ROBOTS_TXT = Verdict(True, Reason.NO_RULES, detail="this scheme has no robots.txt")


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
    found="a URL is disallowed, or listed by --only",
    unknown="a site does not answer, or an argument is not a URL",
    records=(Check, Plan),
    reads_sites=True,
)
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "-a",
    "--agent",
    "agents",
    multiple=True,
    metavar="AGENT",
    shell_complete=completing(agent_names),
    help="A product token (the name in a User-agent line), a User-Agent header, a known crawler, a "
    "purpose such as ai-training, or '*'. May be repeated.",
)
@click.option(
    "--robots",
    metavar="ROBOTS",
    help=f"Use this robots.txt for every URL: {FORMS}. Default for paths: ./robots.txt.",
)
@click.option("--from", "source", metavar="FILE", help="Read URLs from a file; '-': standard input")
@click.option(
    "--from-format",
    type=click.Choice(FORMATS),
    help="The format of that file. Default: its name and its first bytes tell.",
)
@click.option(
    "--url-field", metavar="NAME", help="The field with the URL, in JSON Lines. Default: url."
)
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
@click.option(
    "--archive",
    "archives",
    multiple=True,
    metavar="FILE",
    help="With --only: take the robots.txt files from this WARC file. May be repeated.",
)
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
    archives: Sequence[str],
) -> int:
    kinds = frozenset(only.split(",") if only else ())
    others = kinds - {DISALLOWED, REFUSED}
    refuse_if(others, f"--only takes {DISALLOWED}, {REFUSED}, or {DISALLOWED},{REFUSED}")
    refuse_if(plan and (robots or only), "--plan asks the sites: it excludes --robots and --only")
    is_misplaced = archives and (robots or not only)
    refuse_if(is_misplaced, "--archive belongs to --only, and excludes --robots")
    refuse_if(not urls and source is None, "give URLs, or a file with URLs: --from FILE")
    is_formed = from_format or url_field
    refuse_if(is_formed and not source, "--from-format and --url-field belong to a file with URLs")
    for name in urls:
        is_file = not name.startswith("/") and Path(name).is_file()
        hint = "--robots FILE uses it as a robots.txt, --from FILE reads URLs"
        refuse_if(is_file, f"{name} is a file: {hint}")
        is_wrong = robots and sources.lacks_slash(name)
        refuse_if(is_wrong, f"{name} is neither a path nor a URL: write /{name}, or https://{name}")
    listed = sources.numbered_urls(source, form=from_format, field=url_field) if source else ()
    _warn_if_off(context)
    named = agents_of(agents, context, outside=ANY_CRAWLER)
    refuse_if(plan and len(named) > 1, "--plan is for one crawler")
    # What is in the arguments is explained. What is in a file may be long.
    explains = not (source or plan or only) and (context.as_json or len(urls) * len(named) == 1)
    if robots is None and not (source or plan or archives) and all(map(sources.is_path, urls)):
        robots = sources.robots_txt_here(context)
    file = None if robots is None else sources.read_policies([robots], context)[0]
    every = chain(urls, (url for _, url in listed))
    total = None if source is None else sources.lines_in(source)
    checker = _Checker(context, named, every, kinds, file, archives, plan, explains, total)
    with nullcontext() if file or archives else sources.start_session(context) as session:
        return checker.run(session)


def _warn_if_off(context: Context) -> None:
    if context.has_settings:
        from ..settings import turns_obeying_off  # it needs Scrapy

        if turns_obeying_off(context.scrapy_settings):
            text = "a crawl of this project ignores all of this"
            context.warn(f"the settings turn ROBOTSTXT_OBEY off: {text}")


@dataclass
class _Checker:
    """Answers for URLs as they are read, and writes the answers."""

    context: Context
    agents: Sequence[Agent]
    urls: Iterator[str]
    kinds: frozenset[str]
    file: Policy | None
    """The policy of a file, which holds for every URL."""
    archives: Sequence[str]
    has_plan: bool
    explains: bool
    total: int | None
    """How many URLs there are, if that is known."""
    plans: dict[str | None, Plan] = field(default_factory=dict)
    counts: Counter[bool | None] = field(default_factory=Counter)
    unknown: int = 0
    """Sites that did not answer, invalid URLs, and archives that cannot be read as a whole. Some of
    these URLs have a verdict, because a crawl drops them."""
    batch: list[Target] = field(default_factory=list)
    """The URLs whose robots.txt files are being fetched."""
    policies: dict[str | None, Policy] = field(default_factory=dict)
    since: dict[tuple[str, str], datetime | None] = field(default_factory=dict)
    """For URLs and crawlers, since when a page may not be fetched or used."""

    def run(self, session: Session | None) -> int:
        try:
            batches = self.context.counted(self._batches(session), "URLs", self.total, len)
            with self.context.interruptible():
                for targets in batches:
                    self._write(targets)
            if self.context.is_interrupted:
                self._write([each for each in self.batch if each.origin in self.policies])
        finally:
            self._write_totals()
        if not (self.counts or self.context.is_interrupted):
            self.context.note("there are no URLs to check")
        code = ExitCode.UNKNOWN if self.unknown else exit_code(+self.counts)
        return self.context.end_code(code, reads_sites=session is not None)

    def _write(self, targets: Sequence[Target]) -> None:
        batch = [self._answer(*each) for each in product(targets, self.agents)]
        if self.explains:
            for answer in batch:
                self.context.show(explain(*answer), explanation)
        elif self.has_plan:
            self._plan(batch)
        else:
            self.context.write("".join(self._lines(batch)), flush=True)

    def _write_totals(self) -> None:
        output = self.context
        if self.plans and output.as_json:
            output.write("".join(map(json_line, self.plans.values())))
        elif self.plans:
            output.print(_listing(self.plans.values()))
        if self.counts and not (self.explains or output.as_json):
            words = {True: "left out", False: "found", None: "unknown"} if self.kinds else WORDS
            parts = (f"{self.counts[allowed]:,} {text}" for allowed, text in words.items())
            output.note(f"{plural(self.counts.total(), 'answer')}: {', '.join(parts)}")

    def _batches(self, session: Session | None) -> Iterator[list[Target]]:
        """Yield the URLs, after their robots.txt files were fetched."""
        size = MAX_BATCH if self.archives else FIRST_BATCH  # each batch reads the whole archives
        while True:
            targets = self.batch = []
            length = 0
            for url in islice(self.urls, size):
                targets.append(sources.site_of(url, self.context, in_file=self.file is not None))
                length += len(url)
                if length > 4_000_000:  # characters, however few URLs these are
                    break
            if not targets:
                return
            if self.archives:
                self._replay(targets)
            elif session is not None:
                self._fetch(targets, session)
            self.unknown += sum(not target.is_valid for target in targets)
            self.batch = []
            yield targets
            size = min(2 * size, MAX_BATCH)

    def _fetch(self, targets: list[Target], session: Session) -> None:
        known = set(self.policies)
        targets[:] = sources.fetch_policies(targets, self.policies, session, self.context)
        # Those of the last batch. The session keeps more of them.
        used = {target.origin for target in targets}
        self.policies = {key: policy for key, policy in self.policies.items() if key in used}
        for origin, policy in self.policies.items():
            if policy.access.is_unreachable and origin not in known:
                self.unknown += 1
                self.context.note(policy.access.problem, "unreachable robots.txt files")

    def _replay(self, targets: list[Target]) -> None:
        """Read policies in the archives, and note since when pages may not be fetched or used."""
        from ..fetch.fetcher import access_policy  # they need Scrapy
        from ..origin import Origin, UnreachablePolicy

        self.policies, self.since = {}, {}
        wanted = defaultdict(list)
        for target in targets:
            if target.origin:
                wanted[target.origin].append(target)
        origins = {key: Origin(key) for key in wanted}
        files = [self._responses(path, wanted) for path in self.archives]
        for found in merge(*files, key=lambda each: each.time):
            origin = origins[found.origin]
            copy = None if found.sha256 is None else CopyInfo(found.url)
            answer = Answer(found.url, found.status, found.body, copy=copy)
            policy = access_policy(self.context.settings, origin)._replace(min_ttl=0, max_ttl=0)
            event = event_of(answer, policy, origin.parse, found.time)
            if event is None or isinstance(event, NotModified):
                continue
            origin.start_fetch(found.time)
            origin.apply(event, found.time)
            verdict = partial(origin.verdict, now=found.time, unreachable=UnreachablePolicy())
            known = Policy(origin.key, origin.content, verdict, access_of(origin))
            self.policies[origin.key] = known
            for target, agent in product(wanted[origin.key], self.agents):
                record = brief(target, agent, agent.verdict(known, target.url))
                if self._is_found(record, known, agent):
                    self.since.setdefault((record.url, record.agent), to_second(found.time))
                else:
                    self.since.pop((record.url, record.agent), None)

    def _responses(self, path: str, origins: Container[str]) -> Iterator[ArchivedRobotsTxt]:
        def report(problem: str) -> None:
            self.unknown += 1
            self.context.warn(problem, "parts of archives that cannot be read")

        with reading(path):
            yield from sources.archive_reader().read(path, report, origins=origins)

    def _is_found(self, record: Check, policy: Policy | None, agent: Agent) -> bool:
        """Whether ``--only`` lists a URL. Adds to the record why, and since when."""
        record.refused, record.since = [], self.since.get((record.url, record.agent))
        if REFUSED in self.kinds and policy is not None:
            uses = self.context.settings.intended_uses if self.context.has_settings else ()
            record.refused = refusals(policy, agent, record.url, uses)
        if policy is not None and policy.access.source == "store":
            record.since = policy.access.unreachable_since or policy.access.fetched_at
        return bool(record.refused) or (DISALLOWED in self.kinds and record.allowed is False)

    def _plan(self, batch: Sequence[_Answer]) -> None:
        for target, agent, policy, verdict in batch:
            host = host_of(target.origin) if target.origin else None
            plan = self.plans.setdefault(host, Plan(host=host))
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

    def _answer(self, target: Target, agent: Agent) -> _Answer:
        policy = (self.file or self.policies.get(target.origin)) if target.is_valid else None
        verdict = NO_ROBOTS_TXT if target.is_valid and target.origin is None else None
        if policy is not None:
            try:
                verdict = agent.verdict(policy, target.url)
            except ValueError:  # a file, and a URL whose scheme has no robots.txt
                policy = None
        elif target.origin is None and lacks_host(target.url):
            verdict = Verdict(False, Reason.INVALID_HOST)
        if not self.kinds:
            self.counts[_known(target, policy, verdict)] += 1
        return target, agent, policy, verdict

    def _lines(self, batch: Sequence[_Answer]) -> Iterator[str]:
        """Yield a line for each URL and crawler: a brief record, or text."""
        output, has_names = self.context, len(self.agents) > 1
        words = {key: output.styled(f"{text:<10}", STYLES[key]) for key, text in WORDS.items()}
        refused = output.styled(f"{REFUSED:<10}", "yellow")
        for target, agent, policy, verdict in batch:
            record = brief(target, agent, verdict)
            if self.kinds:
                is_found = self._is_found(record, policy, agent)
                is_known = _known(target, policy, verdict) is not None
                self.counts[not is_found if is_known else None] += 1
                if not is_found:
                    continue
            if output.as_json:
                yield json_line(record)
            else:
                name = f"{printable(agent.name)}: " if has_names else ""
                word = refused if record.allowed and record.refused else words[record.allowed]
                yield f"{word} {printable(target.url, MAX_URL)}  {name}{_why(record)}\n"


def _known(target: Target, policy: Policy | None, verdict: Verdict | None) -> bool | None:
    """Return the answer; None if it is not known, whatever a crawl does until it is."""
    is_unreachable = policy is not None and policy.access.is_unreachable
    is_unknown = verdict is None or is_unreachable or not target.is_valid
    return None if is_unknown or verdict is None else verdict.allowed


def _why(record: Check) -> str:
    if record.allowed is None:
        return "not known"
    refused = [printable(each, MAX_LENGTH) for each in record.refused or ()]
    parts = refused if record.allowed and refused else [reason_text(record), *refused]
    if record.since:
        parts.append(f"since {moment(record.since)}")
    return "; ".join(parts)


def _listing(plans: Collection[Plan]) -> Renderables:
    """Yield the table of a plan, the slowest hosts first. A crawl requests all of them at once."""
    made = table("Host", "Allowed", "Dropped", "Pace", "At least", right=(1, 2, 4))
    shown = sorted(plans, key=lambda each: (-each.seconds, -each.allowed))
    allowed, dropped = sum(each.allowed for each in plans), sum(each.dropped for each in plans)
    total = Plan(host="Total", allowed=allowed, dropped=dropped, seconds=shown[0].seconds)
    for plan in (*shown[:MAX_HOSTS], total):
        if plan is total:
            if left := len(shown[MAX_HOSTS:]):
                made.add_row(f"and {plural(left, 'more host')}")
            made.add_section()
        name = printable(plan.host or "no robots.txt", MAX_CELL)
        seconds = round(plan.seconds)
        time = str(timedelta(seconds=seconds)) if seconds else "less than a second"
        pace = printable(plan.pace, MAX_CELL)
        made.add_row(name, f"{plan.allowed:,}", f"{plan.dropped:,}", pace, time)
    yield made
