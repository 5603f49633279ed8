"""The output of ``check``: JSON, lines, a table, or an explanation."""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Protocol

from ..protocol.printable import printable
from .explain import VERSION, answer_of, brief, explain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..protocol.verdict import Verdict
    from .agent_option import Agent
    from .output import Output
    from .verdicts import Answered, Tally

WORDS = {True: "allowed", False: "disallowed", None: "unknown"}
STYLES = {True: "green", False: "red", None: "yellow"}
"""The word for each answer, and its color."""

MAX_CACHED = 50_000
"""Verdicts whose text is kept. Most URLs of a site share a few verdicts."""

MAX_URL = 2000
"""Characters of a URL that are shown in a text."""


class Writer(Protocol):
    """Writes answers."""

    def write(self, batch: Sequence[Answered]) -> None:
        """Write the answers for some URLs."""

    def finish(self) -> None:
        """Write what is left. Also called if an error has ended the answers."""


class DetailedJson:
    """A JSON record for each URL and crawler, with all reasons."""

    def __init__(self, output: Output, agents: Sequence[Agent], *, strict: bool) -> None:
        self._output = output
        self._agents = agents
        self._strict = strict

    def write(self, batch: Sequence[Answered]) -> None:
        for target, policy, verdicts in batch:
            for agent, verdict in zip(self._agents, verdicts, strict=True):
                self._output.record(explain(target, agent, policy, verdict, strict=self._strict))

    def finish(self) -> None:
        self._output.flush()


class BriefJson:
    """A JSON record for each URL and crawler, without reasons. Written as fast as can be."""

    def __init__(self, output: Output, agents: Sequence[Agent]) -> None:
        self._output = output
        self._agents = agents
        self._start = json.dumps({"type": "check", "version": VERSION})[:-1]
        self._tails: dict[tuple[int, int], tuple[Verdict, str]] = {}

    def write(self, batch: Sequence[Answered]) -> None:
        lines: list[str] = []
        quote, start, tails = encode_basestring_ascii, f'{self._start}, "url": ', self._tails
        for target, _, verdicts in batch:
            head = f"{start}{quote(target.url)}, "
            for number, verdict in enumerate(verdicts):
                if verdict is None:
                    lines.append(json.dumps(brief(target, self._agents[number], None)) + "\n")
                    continue
                # The verdicts of a rule are one object, which this entry keeps alive.
                known = tails.get((number, id(verdict)))
                lines.append(head + (known[1] if known else self._tail(number, verdict)))
        self._output.write("".join(lines))

    def finish(self) -> None:
        self._output.flush()

    def _tail(self, number: int, verdict: Verdict) -> str:
        record = {"agent": self._agents[number].name, **answer_of(verdict)}
        tail = json.dumps(record)[1:] + "\n"
        if len(self._tails) >= MAX_CACHED:
            self._tails.clear()
        self._tails[number, id(verdict)] = verdict, tail
        return tail


class Lines:
    """A line for each URL and crawler: verdict, URL, reason. For many URLs."""

    def __init__(self, output: Output, agents: Sequence[Agent], tally: Tally) -> None:
        self._output = output
        self._tally = tally
        self._names = [f"{printable(agent.name)}: " if len(agents) > 1 else "" for agent in agents]
        self._words = {
            allowed: _styled(output, word, STYLES[allowed]) for allowed, word in WORDS.items()
        }
        self._known: dict[tuple[int, int], tuple[Verdict, str, str]] = {}

    def write(self, batch: Sequence[Answered]) -> None:
        lines: list[str] = []
        known = self._known
        for target, _, verdicts in batch:
            url = printable(target.url, MAX_URL)
            for number, verdict in enumerate(verdicts):
                if verdict is None:
                    lines.append(f"{self._words[None]} {url}  {self._names[number]}not known\n")
                    continue
                found = known.get((number, id(verdict))) or self._texts(number, verdict)
                lines.append(f"{found[1]} {url}  {found[2]}")
        self._output.write("".join(lines))

    def finish(self) -> None:
        self._output.flush()
        counts = self._tally.counts
        parts = ", ".join(f"{counts[key]:,} {word}" for key, word in WORDS.items())
        self._output.note(f"{sum(counts.values()):,} answers: {parts}")

    def _texts(self, number: int, verdict: Verdict) -> tuple[Verdict, str, str]:
        from .check_text import short_reason

        if len(self._known) >= MAX_CACHED:
            self._known.clear()
        found = (
            verdict,
            self._words[verdict.allowed],
            f"{self._names[number]}{short_reason(verdict)}\n",
        )
        self._known[number, id(verdict)] = found
        return found


class Table:
    """A table of a few URLs, with a column for the reason or for each crawler."""

    def __init__(self, output: Output, agents: Sequence[Agent]) -> None:
        self._output = output
        self._agents = agents
        self._answers: list[Answered] = []

    def write(self, batch: Sequence[Answered]) -> None:
        self._answers += batch

    def finish(self) -> None:
        from .check_text import matrix, table

        if self._answers:
            if len(self._agents) == 1:
                made = table(self._answers, self._agents)
            else:
                made = matrix(self._answers, self._agents, self._output.console.width)
            self._output.print(made)
        self._output.flush()


class Explanation:
    """All that there is to say about one URL and one crawler, as text."""

    def __init__(self, output: Output, agents: Sequence[Agent], *, strict: bool) -> None:
        self._output = output
        self._agent = agents[0]
        self._strict = strict

    def write(self, batch: Sequence[Answered]) -> None:
        from .check_text import explanation

        for target, policy, (verdict,) in batch:
            record = explain(target, self._agent, policy, verdict, strict=self._strict)
            self._output.print(*explanation(record))

    def finish(self) -> None:
        self._output.flush()


def _styled(output: Output, word: str, style: str) -> str:
    """Return a word of a fixed width with the escape sequences of a color, if there are colors."""
    from rich.text import Text

    with output.console.capture() as capture:
        output.console.print(Text(f"{word:<10}", style=style), end="")
    return capture.get()
