"""``check``: whether crawlers may fetch URLs, and why."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from ..protocol.paths import lacks_host
from ..protocol.printable import printable
from ..protocol.verdict import Reason, Verdict
from .context import Context, agent_option, archive_option, tool
from .crawlers import ANY_CRAWLER, Agent, agents_of
from .explain import MAX_URL, Check, brief, explain, explanation, reason_text
from .inputs import input_options, urls_from
from .output import CommandError, ExitCode, exit_code, json_line
from .sources import FORMS, is_file, read_policies, site_of, with_http
from .texts import STYLES, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .session import Session
    from .sources import Policy, Target

FIRST_BATCH, MAX_BATCH = 64, 8192
"""URLs that are read before their robots.txt files are fetched. The number doubles from the first
to the maximum, so that the first answers come soon."""

MAX_BATCH_LENGTH = 4_000_000
"""Characters of the URLs after which a batch ends, however few they are."""

_Answered: TypeAlias = "tuple[Target, Policy | None, list[Verdict | None]]"
"""A URL, its policy if it is known, and a verdict for each crawler if that is known."""

NO_ROBOTS_TXT = Verdict(True, Reason.NO_RULES, detail="this scheme has no robots.txt")
INVALID_HOST = Verdict(False, Reason.INVALID_HOST)


@tool(
    "Say whether crawlers may fetch URLs, and why: the robots.txt and where it came from, the "
    "group, the rule that decides, and the other rules that match. Several URLs are shown as "
    "lines.",
    ("check https://example.com/a -a mybot", "may mybot fetch it?"),
    ("check https://example.com/a -a mybot -a Googlebot", "and may Googlebot?"),
    ("check --robots robots.txt /a /b", "check paths against a file, without the network"),
    ("check --from urls.txt --json > verdicts.jsonl", "check many URLs"),
    ("check --from sitemap.xml.gz -a mybot", "check the URLs of a sitemap"),
    records=(Check,),
)
@click.argument("urls", nargs=-1, metavar="[URL]...")
@agent_option
@click.option("--robots", metavar="ROBOTS", help=f"Use this robots.txt for every URL: {FORMS}.")
@click.option("--from", "source", metavar="FILE", help="Read URLs from a file; '-': standard input")
@input_options
@archive_option
def check_tool(
    context: Context,
    urls: Sequence[str],
    agents: Sequence[str],
    robots: str | None,
    source: str | None,
    from_format: str | None,
    url_field: str | None,
) -> int:
    """Check URLs."""
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
    checker = _Checker(
        context, agents_of(agents, context, outside=ANY_CRAWLER), given, is_detailed=source is None
    )
    if robots is not None:
        (policy,) = read_policies([robots], context)
        return checker.run(None, policy)
    return context.run(checker.run, keep_bodies=source is None)


class _Checker:
    """Answers for URLs as they are read, and writes the answers."""

    def __init__(
        self, context: Context, agents: Sequence[Agent], urls: Iterator[str], *, is_detailed: bool
    ) -> None:
        self._context = context
        self._output = context.output
        self._agents = agents
        self._urls = urls
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
                else:
                    output.write("".join(self._lines(batch)))
                    output.flush()
        finally:
            if answers:
                self._explain(answers)
            elif self._counts and not output.as_json:
                parts = (f"{self._counts[allowed]:,} {text}" for allowed, text in WORDS.items())
                output.note(f"{self._counts.total():,} answers: {', '.join(parts)}")
        if not self._counts:
            output.note("there are no URLs to check")
        return ExitCode.UNKNOWN if self._unknown else exit_code(+self._counts)

    def _batches(self, session: Session | None, file: Policy | None) -> Iterator[list[Target]]:
        """Yield the URLs, after their robots.txt files were fetched."""
        size = FIRST_BATCH
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
            if file is None and session is not None:
                self._fetch(targets, session)
            yield targets
            size = min(2 * size, MAX_BATCH)

    def _fetch(self, targets: list[Target], session: Session) -> None:
        known = self._policies
        origins = dict.fromkeys(target.origin for target in targets if target.origin)
        missing = [origin for origin in origins if origin not in known]
        with self._output.progress("robots.txt files", len(missing)) as progress:
            found = known | session.policies(missing, progress)
        targets[:] = with_http(targets, found, session, self._context)
        # Those of the last batch. The session keeps more of them.
        used = dict.fromkeys(target.origin for target in targets if target.origin)
        self._policies = {str(origin): found[str(origin)] for origin in used}
        for origin, policy in self._policies.items():
            if policy.access.is_unreachable and origin not in known:
                self._unknown += 1
                self._output.note(policy.access.problem, "unreachable robots.txt files")

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
        for verdict in verdicts:
            self._counts[None if verdict is None else verdict.allowed] += 1
        return target, policy if target.is_valid else None, verdicts

    def _lines(self, batch: Sequence[_Answered]) -> Iterator[str]:
        """Yield a line for each URL and crawler: a brief record, or text."""
        output, has_names = self._output, len(self._agents) > 1
        words = {key: output.styled(f"{text:<10}", STYLES[key]) for key, text in WORDS.items()}
        for target, _, verdicts in batch:
            for agent, verdict in zip(self._agents, verdicts, strict=True):
                record = brief(target, agent, verdict)
                if output.as_json:
                    yield json_line(record)
                else:
                    name = f"{printable(agent.name)}: " if has_names else ""
                    url = printable(target.url, MAX_URL)
                    yield f"{words[record.allowed]} {url}  {name}{_why(record)}\n"

    def _explain(self, answers: Sequence[_Answered]) -> None:
        """Write an explanation of each answer, or lines if there are several."""
        if len(answers) * len(self._agents) > 1 and not self._output.as_json:
            self._output.write("".join(self._lines(answers)))
            return
        for target, policy, verdicts in answers:
            for agent, verdict in zip(self._agents, verdicts, strict=True):
                self._output.show(explain(target, agent, policy, verdict), explanation)


def _why(record: Check) -> str:
    return "not known" if record.allowed is None else reason_text(record)
