"""A parsed robots.txt and the questions it answers."""

from __future__ import annotations

from collections.abc import Sequence

from .agents import EVERYONE, product_tokens
from .group import Group
from .lines import read
from .parser import LENIENT, STRICT, GroupText, groups
from .paths import path_of
from .verdict import Reason, Rule, Verdict

__all__ = ["Reason", "RobotsTxt", "Rule", "Verdict"]

_MOST_USER_AGENTS = 64
"""How many values of user agents are remembered; a crawl has one or a few."""


class RobotsTxt:
    """One robots.txt file, made with `RobotsTxt.parse`."""

    __slots__ = ("_asked", "_groups", "_spans", "_strict", "_text", "_url")

    def __init__(self, text: bytes, *, strict: bool = False, url: str | None = None) -> None:
        self._text = text
        self._strict = strict
        self._url = url
        self._spans = groups(text, strict=strict)
        self._asked: dict[object, Group] = {}
        self._groups: dict[str | None, Group] = {}

    @classmethod
    def parse(cls, body: bytes, *, strict: bool = False, url: str | None = None) -> RobotsTxt:
        """Read a body as it came; `url` is where it came from, to resolve relative sitemaps."""
        if not isinstance(body, bytes):
            raise TypeError(f"the body of a robots.txt is bytes, not {body!r}")
        return cls(read(body), strict=strict, url=url)

    def allowed(self, url: str, user_agent: str | bytes | Sequence[str]) -> bool:
        """Whether a crawler may fetch a URL, an absolute one or a path."""
        try:
            group = self._asked[user_agent]
        except (KeyError, TypeError):
            group = self._group(user_agent)
        return group.verdict(path_of(url)).allowed

    def verdict(self, url: str, user_agent: str | bytes | Sequence[str]) -> Verdict:
        """The same with its reason."""
        try:
            group = self._asked[user_agent]
        except (KeyError, TypeError):
            group = self._group(user_agent)
        return group.verdict(path_of(url))

    def _group(self, user_agent: str | bytes | Sequence[str]) -> Group:
        token = self._token(product_tokens(user_agent))
        group = self._groups.get(token)
        if group is None:
            spans = self._spans.get(token.encode()) if token else []
            group = Group(
                token,
                GroupText(self._text, spans, STRICT if self._strict else LENIENT),
                strict=self._strict,
            )
            self._groups[token] = group
        if not isinstance(user_agent, list):
            if len(self._asked) >= _MOST_USER_AGENTS:
                self._asked.clear()
            self._asked[user_agent] = group
        return group

    def _token(self, tokens: tuple[str, ...]) -> str | None:
        """The first token that a group names; else everyone's (§2.2.1), if that has a group."""
        for token in (*tokens, EVERYONE):
            if token.encode("ascii") in self._spans:
                return token
        return None
