"""A parsed robots.txt and the questions it answers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from .agents import product_tokens
from .lines import text_of
from .matcher import RuleIndex
from .parser import groups
from .paths import path_of


class Reason(str, Enum):
    """What decided about a request."""

    RULES = "rules"
    NO_RULES = "no-rules"
    UNAVAILABLE = "unavailable"
    UNREACHABLE = "unreachable"

    def __str__(self) -> str:
        return self.value


class Rule(NamedTuple):
    """A rule as its author wrote it."""

    allow: bool
    pattern: str
    line: int


class Verdict(NamedTuple):
    """May this URL be fetched, and why."""

    allowed: bool
    reason: Reason
    rule: Rule | None = None
    agent: str | None = None


class RobotsTxt:
    """One robots.txt file, made with `RobotsTxt.parse`."""

    __slots__ = ("_answers", "_groups", "_strict", "_url")

    def __init__(self, text: bytes, *, strict: bool = False, url: str | None = None) -> None:
        self._strict = strict
        self._url = url
        self._groups = groups(text, strict=strict)
        self._answers: dict[object, tuple[str | None, RuleIndex | None]] = {}

    @classmethod
    def parse(cls, body: bytes, *, strict: bool = False, url: str | None = None) -> RobotsTxt:
        """Read a body as it came; `url` is where it came from, to resolve relative sitemaps."""
        if not isinstance(body, bytes):
            raise TypeError(f"the body of a robots.txt is bytes, not {body!r}")
        return cls(text_of(body), strict=strict, url=url)

    def allowed(self, url: str, user_agent: str | bytes | Sequence[str]) -> bool:
        """Whether a crawler may fetch a URL, an absolute one or a path."""
        return self.verdict(url, user_agent).allowed

    def verdict(self, url: str, user_agent: str | bytes | Sequence[str]) -> Verdict:
        """The same with its reason."""
        agent, index = self._group(product_tokens(user_agent))
        path = path_of(url)
        if index is None or not index.rules or path == "/robots.txt":
            return Verdict(True, Reason.NO_RULES, None, agent)
        rank = index.decide(path)
        if rank == len(index.rules):
            return Verdict(True, Reason.RULES, None, agent)
        rule = index.rules[rank]
        pattern = rule.value.decode("utf-8", "replace")
        return Verdict(rule.allow, Reason.RULES, Rule(rule.allow, pattern, rule.line), agent)

    def _group(self, tokens: tuple[str, ...]) -> tuple[str | None, RuleIndex | None]:
        answer = self._answers.get(tokens)
        if answer is None:
            answer = None, None
            for token in (*tokens, "*"):
                rules = self._groups.get(token.encode("ascii"))
                if rules is not None:
                    answer = token, RuleIndex(rules, strict=self._strict)
                    break
            self._answers[tokens] = answer
        return answer
