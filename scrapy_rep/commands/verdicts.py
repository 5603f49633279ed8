"""The verdicts on many URLs for some crawlers, in batches and in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import nullcontext
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..protocol.paths import lacks_host
from ..protocol.verdict import Reason, Verdict
from .exits import ExitCode
from .targets import Target, target_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from .agent_option import Agent
    from .output import Output
    from .policy import Policy

FIRST_BATCH, MAX_BATCH = 64, 8192
"""URLs that are read before their robots.txt files are fetched. The number doubles from the first
to the maximum, so that the first answers come soon."""

MAX_BATCH_LENGTH = 4_000_000
"""Characters of the URLs after which a batch ends, however few they are."""

MAX_POLICIES = 20_000
"""Origins whose policy is kept between two batches. The session keeps REP_CACHE_SIZE of them."""

NO_ROBOTS_TXT = Verdict(True, Reason.NO_RULES, detail="this scheme has no robots.txt")
INVALID_HOST = Verdict(False, Reason.INVALID_HOST)


class PolicySource(Protocol):
    """Where the policies come from: a :class:`~.session.Session`, or a :class:`OneFile`."""

    @property
    def is_closing(self) -> bool:
        """Whether the user has pressed Ctrl-C."""

    async def get_policies(
        self, origins: Iterable[str], done: Callable[[], object] = lambda: None
    ) -> dict[str, Policy]:
        """Return the policies of origins. Those that are not known are missing."""

    async def pause(self) -> None:
        """Handle what has happened in the meantime."""

    def interruptible(self) -> AbstractContextManager[None]:
        """Raise KeyboardInterrupt at once if Ctrl-C is pressed."""


class OneFile:
    """The policies where one file holds for every URL."""

    is_closing = False

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    async def get_policies(
        self,
        origins: Iterable[str],  # noqa: ARG002
        done: Callable[[], object] = lambda: None,  # noqa: ARG002
    ) -> dict[str, Policy]:
        return {}

    async def pause(self) -> None:
        """Do nothing."""

    def interruptible(self) -> AbstractContextManager[None]:
        return nullcontext()


class Answered(NamedTuple):
    """One URL with its answers."""

    target: Target
    policy: Policy | None
    """None if the URL has no robots.txt, or if it is not known."""
    verdicts: list[Verdict | None]
    """One for each crawler. None: it is not known."""


class Tally:
    """What has been found until now."""

    def __init__(self) -> None:
        self.counts: dict[bool | None, int] = {True: 0, False: 0, None: 0}
        """How many answers there are: allowed, disallowed and not known."""
        self.unreachable = 0
        """How many sites did not answer, so that nothing is known about their rules."""
        self.invalid = 0
        """How many URLs are invalid. Some of these have a verdict, because a crawl drops them."""

    def count(self, batch: Iterable[Answered]) -> None:
        """Count the answers of a batch."""
        counts = self.counts
        for target, _, verdicts in batch:
            self.invalid += not target.is_valid
            for verdict in verdicts:
                counts[None if verdict is None else verdict.allowed] += 1

    @property
    def exit_code(self) -> ExitCode:
        """The exit code for these answers."""
        if self.counts[None] or self.unreachable or self.invalid:
            return ExitCode.UNKNOWN
        return ExitCode.FOUND if self.counts[False] else ExitCode.OK


async def answer_all(
    urls: Iterator[str],
    agents: Sequence[Agent],
    source: PolicySource,
    output: Output,
    tally: Tally,
) -> AsyncIterator[list[Answered]]:
    """Yield the answers for all URLs in their order, a batch at a time, and count them.

    Raises KeyboardInterrupt after Ctrl-C, when what is known then has been yielded.
    """
    policies: OrderedDict[str, Policy] = OrderedDict()
    size, file = FIRST_BATCH, getattr(source, "policy", None)
    while True:
        given: list[str] = []
        interrupted, room = False, MAX_BATCH_LENGTH
        try:
            with source.interruptible():
                for url in islice(urls, size):
                    given.append(url)  # so that what was read before Ctrl-C is kept
                    room -= len(url)
                    if room < 0:
                        break
        except KeyboardInterrupt:
            interrupted = True
        if not given:
            break
        targets = [target_of(url, in_file=file is not None) for url in given]
        for target in targets:
            if target.has_default_scheme:
                _note_scheme(target, output)
        if file is None:
            tally.unreachable += await _fetch_missing(targets, policies, source, output)
        batch = [_answer(target, file or _policy(target, policies), agents) for target in targets]
        tally.count(batch)
        yield batch
        await source.pause()
        if interrupted or source.is_closing:
            raise KeyboardInterrupt
        while len(policies) > MAX_POLICIES:
            policies.popitem(last=False)
        size = min(2 * size, MAX_BATCH)
    if interrupted:
        raise KeyboardInterrupt


async def _fetch_missing(
    targets: Iterable[Target],
    policies: OrderedDict[str, Policy],
    source: PolicySource,
    output: Output,
) -> int:
    """Fetch the policies of the origins that have none. Returns how many are unreachable."""
    missing = dict.fromkeys(
        target.origin for target in targets if target.origin and target.origin not in policies
    )
    if not missing:
        return 0
    with output.progress("robots.txt files", len(missing)) as progress:
        number = 0

        def done() -> None:
            nonlocal number
            number += 1
            progress(number)

        found = await source.get_policies(missing, done)
    policies.update(found)
    unreachable = [policy.access for policy in found.values() if policy.access.is_unreachable]
    for access in unreachable:
        text = f"{access.url} is unreachable: {access.failure}"
        output.repeated_note("unreachable robots.txt files", text)
    return len(unreachable)


def _policy(target: Target, policies: OrderedDict[str, Policy]) -> Policy | None:
    return None if target.origin is None else policies.get(target.origin)


def _answer(target: Target, policy: Policy | None, agents: Sequence[Agent]) -> Answered:
    if policy is not None and target.is_valid:
        verdict_of, url = policy.verdict, target.url
        try:
            return Answered(
                target,
                policy,
                [
                    agent.apply(verdict_of(url, agent.tokens))
                    if agent.ignores_wildcard or agent.ignores_robots_txt
                    else verdict_of(url, agent.tokens)
                    for agent in agents
                ],
            )
        except ValueError:  # a file, and a URL whose scheme has no robots.txt
            return Answered(target, None, [NO_ROBOTS_TXT] * len(agents))
    verdict = None
    if target.origin is None:
        if target.is_valid:
            verdict = NO_ROBOTS_TXT
        elif lacks_host(target.url):
            verdict = INVALID_HOST
    return Answered(target, None, [verdict] * len(agents))


def _note_scheme(target: Target, output: Output) -> None:
    text = f"{target.given} has no scheme: it is taken for {target.url}"
    output.repeated_note("URLs without a scheme", text)
