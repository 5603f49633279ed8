"""The URLs whose verdict differs between two robots.txt files. Nothing holds all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .difference import VERSION, Crawlers, Side, verdict_for
from .explain import answer_of
from .targets import target_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..protocol.verdict import Verdict
    from .output import Output

MAX_CRAWLERS = 100
"""Crawlers for which URLs are checked."""

MAX_NAMES = 20
"""Names of crawlers that are listed with a URL."""


class Flip(NamedTuple):
    """A URL whose verdict differs."""

    url: str
    crawlers: Crawlers
    old: Verdict
    new: Verdict

    def as_json(self) -> dict[str, Any]:
        """Return the record."""
        return {
            "type": "diff-url",
            "version": VERSION,
            "url": self.url,
            "names": self.crawlers.names[:MAX_NAMES],
            "names_left_out": len(self.crawlers.names[MAX_NAMES:]),
            "old": answer_of(self.old),
            "new": answer_of(self.new),
        }


class Flips:
    """Finds them. :attr:`urls`, :attr:`found` and :attr:`invalid` count."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        crawlers: Sequence[Crawlers],
        origins: frozenset[str],
        output: Output,
    ) -> None:
        self._sides = sides
        self._crawlers = crawlers[:MAX_CRAWLERS]
        self._origins = origins
        self._output = output
        self.urls = self.found = self.invalid = 0
        if len(crawlers) > MAX_CRAWLERS:
            output.note(
                f"the URLs are checked for {MAX_CRAWLERS} of {len(crawlers):,} crawlers: name some "
                "with -a"
            )

    def find(self, urls: Iterator[str]) -> Iterator[Flip]:
        """Yield the URLs whose verdict differs, in their order."""
        for given in urls:
            target = target_of(given, in_file=True)
            if not target.is_valid:
                self._skip_invalid(given)
                continue
            if self._origins and target.origin is not None and target.origin not in self._origins:
                text = f"{given} is a URL of another site: it is not checked"
                self._output.repeated_note("URLs of other sites", text)
                continue
            self.urls += 1
            try:
                for flip in self._of(target.url):
                    self.found += 1
                    yield flip
            except ValueError:
                self.urls -= 1
                self._skip_invalid(given)

    def _of(self, url: str) -> Iterator[Flip]:
        old_side, new_side = self._sides
        for crawlers in self._crawlers:
            old = verdict_for(old_side.robots, url, crawlers)
            new = verdict_for(new_side.robots, url, crawlers)
            if old.allowed != new.allowed:
                yield Flip(url, crawlers, old, new)

    def _skip_invalid(self, given: str) -> None:
        self.invalid += 1
        self._output.repeated_note("texts that are no URLs", f"{given} is no URL with a robots.txt")
