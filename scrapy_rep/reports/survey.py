"""The state of the robots.txt files of many sites: counts in bounded memory, and their JSON form.

A :class:`Survey` of a part of the files can be pickled, and merged with that of another part.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..protocol.access import AccessResult
from .distribution import Distribution
from .survey_file import Extent, facts_of
from .top_counts import TopCounts

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
"""The version of the JSON form. A field may be added without a new one."""

MAX_STRATA = 50
"""Strata that are counted apart. The files of others count only in the total."""

CAPACITY = 10_000
"""Agents, unknown fields and preferences that are counted in the total."""

STRATUM_CAPACITY = 500
"""Agents, unknown fields and preferences that are counted in a stratum."""

MAX_LISTED = 100
"""Agents, unknown fields and preferences in the JSON form."""

MAX_NAME = 100
"""Characters of the name of a stratum."""

AI_PURPOSES = ("ai-training", "ai-use")
"""The purposes whose agents are listed apart."""

NUMBERS = ("size", "lines", "groups", "agents", "rules", "longest-pattern", "sitemaps")
"""The numbers of each file. The size is in octets."""

DELAY = "crawl-delay"
"""The distribution of the Crawl-delays, in milliseconds."""


class Sample(NamedTuple):
    """What is known of the robots.txt of one site."""

    body: bytes | None
    """The file. None if there is none, or if it is not known."""
    status: int | None = None
    """The status of the response, if it is known."""
    result: str = AccessResult.RULES.value
    """What the response means: a value of `AccessResult`."""
    stratum: str | None = None
    """The part of the survey to which the site belongs."""


class Tally:
    """The counts of one stratum, or of all files."""

    def __init__(self, capacity: int) -> None:
        self.responses = 0
        """The samples."""
        self.files = 0
        """The samples with a file. Each share is one of these."""
        self.statuses: Counter[int] = Counter()
        self.results: Counter[str] = Counter()
        self.features: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.purposes: dict[str, Counter[str]] = {}
        """For each purpose of crawlers, the files that name one, and the extents."""
        self.numbers = {name: Distribution() for name in NUMBERS}
        self.numbers[DELAY] = Distribution(digits=12)  # multiples of a second stay what they are
        self.named = TopCounts(capacity)
        """The files that name an agent."""
        self.extents = {extent: TopCounts(capacity) for extent in Extent}
        """The files with a group that disallows an agent everything, something or nothing."""
        self.unknown_fields = TopCounts(capacity)
        self.preferences = TopCounts(capacity)

    def merge(self, other: Tally) -> None:
        """Add the counts of another part."""
        self.responses += other.responses
        self.files += other.files
        for mine, theirs in (
            (self.statuses, other.statuses),
            (self.results, other.results),
            (self.features, other.features),
            (self.codes, other.codes),
        ):
            mine.update(theirs)  # type: ignore[arg-type]
        for purpose, counts in other.purposes.items():
            self.purposes.setdefault(purpose, Counter()).update(counts)
        for name, numbers in other.numbers.items():
            self.numbers[name].merge(numbers)
        self.named.merge(other.named)
        for extent, agents in other.extents.items():
            self.extents[extent].merge(agents)
        self.unknown_fields.merge(other.unknown_fields)
        self.preferences.merge(other.preferences)

    def as_json(self, purposes: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        """Return the counts as JSON types."""
        known = [agent for agent in purposes if agent in self.named.counts]
        in_order = sorted(known, key=lambda agent: (-self.named.counts[agent], agent))
        return {
            "responses": self.responses,
            "files": self.files,
            "statuses": {str(key): value for key, value in sorted(self.statuses.items())},
            "results": dict(sorted(self.results.items())),
            "features": dict(self.features.most_common()),
            "numbers": {name: numbers.as_json() for name, numbers in self.numbers.items()},
            "agents": [self._agent(agent, purposes) for agent, _ in self.named.most(MAX_LISTED)],
            "ai_agents": [
                self._agent(agent, purposes)
                for agent in in_order
                if any(purpose in AI_PURPOSES for purpose in purposes[agent])
            ],
            "blocked_agents": _listed(self.extents[Extent.EVERYTHING], "agent"),
            "agents_error": max(top.error for top in (self.named, *self.extents.values())),
            "purposes": {key: dict(value) for key, value in sorted(self.purposes.items())},
            "findings": dict(self.codes.most_common()),
            "unknown_fields": _listed(self.unknown_fields, "field"),
            "unknown_fields_error": self.unknown_fields.error,
            "preferences": _listed(self.preferences, "preference"),
            "preferences_error": self.preferences.error,
        }

    def _agent(self, agent: str, purposes: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        return {
            "agent": agent,
            "purposes": list(purposes.get(agent, ())),
            "files": self.named.counts[agent],
            **{extent.value: self.extents[extent].counts.get(agent, 0) for extent in Extent},
        }


def _listed(top: TopCounts, name: str) -> list[dict[str, Any]]:
    return [{name: text, "files": files} for text, files in top.most(MAX_LISTED)]


class Survey:
    """The counts of all files, and those of each stratum.

    ``purposes`` has the purposes of the well-known crawlers by product token, in lower case.
    """

    def __init__(self, purposes: Mapping[str, tuple[str, ...]]) -> None:
        self._purposes = purposes
        self.total = Tally(CAPACITY)
        self.strata: dict[str, Tally] = {}
        self.strata_left_out = 0
        """Samples of strata beyond `MAX_STRATA`."""

    def add(self, sample: Sample) -> None:
        """Count what is known of a site. No content raises an error."""
        tallies = [self.total]
        if sample.stratum is not None:
            stratum = self._stratum(sample.stratum[:MAX_NAME])
            if stratum is None:
                self.strata_left_out += 1
            else:
                tallies.append(stratum)
        for tally in tallies:
            tally.responses += 1
            tally.results[sample.result] += 1
            if sample.status is not None:
                tally.statuses[sample.status] += 1
        if sample.body is not None:
            self._add_file(sample.body, tallies)

    def merge(self, other: Survey) -> None:
        """Add the counts of another part of the files."""
        self.total.merge(other.total)
        self.strata_left_out += other.strata_left_out
        for name, tally in other.strata.items():
            stratum = self._stratum(name)
            if stratum is None:
                self.strata_left_out += tally.responses
            else:
                stratum.merge(tally)

    def as_json(self) -> dict[str, Any]:
        """Return the survey as JSON types."""
        return {
            "total": self.total.as_json(self._purposes),
            "strata": {
                name: self.strata[name].as_json(self._purposes) for name in sorted(self.strata)
            },
            "strata_left_out": self.strata_left_out,
        }

    def _stratum(self, name: str) -> Tally | None:
        found = self.strata.get(name)
        if found is None and len(self.strata) < MAX_STRATA:
            found = self.strata[name] = Tally(STRATUM_CAPACITY)
        return found

    def _add_file(self, body: bytes, tallies: list[Tally]) -> None:
        facts = facts_of(body)
        purposes = self._purposes_of(facts.agents)
        for tally in tallies:
            tally.files += 1
            tally.features.update(facts.features)
            tally.codes.update(facts.codes)
            for purpose, extents in purposes.items():
                tally.purposes.setdefault(purpose, Counter()).update(extents)
            for name, number in facts.numbers.items():
                tally.numbers[name].add(number)
            for delay in facts.delays:
                tally.numbers[DELAY].add(delay)
            tally.named.add(facts.agents)
            for extent, top in tally.extents.items():
                top.add(agent for agent, found in facts.agents.items() if found is extent)
            tally.unknown_fields.add(facts.unknown_fields)
            tally.preferences.add(facts.preferences)

    def _purposes_of(self, agents: Mapping[str, Extent]) -> dict[str, list[str]]:
        """Return the purposes of the crawlers that a file names, with ``named`` and extents."""
        found: dict[str, set[str]] = {}
        for agent, extent in agents.items():
            for purpose in self._purposes.get(agent, ()):
                found.setdefault(purpose, {"named"}).add(extent.value)
        return {purpose: sorted(extents) for purpose, extents in found.items()}
