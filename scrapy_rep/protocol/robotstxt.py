"""A parsed robots.txt and the questions it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from .agents import WILDCARD_AGENT, product_tokens
from .group import GroupMatcher
from .lines import read
from .parser import LENIENT, STRICT, GroupText, groups
from .paths import path_of, plain_url
from .record_reader import Records, RecordValues
from .records import (
    CLEAN_PARAM,
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    CRAWL_DELAY,
    HOST,
    NOINDEX,
    REQUEST_RATE,
    VISIT_TIME,
    CleanParam,
    RequestRate,
    Window,
)
from .verdict import Reason, Rule, Verdict

if TYPE_CHECKING:
    from .matcher import PatternIndex

    _Indexed: TypeAlias = tuple[PatternIndex, list[Verdict | None], tuple[bool, ...]]

__all__ = ["Reason", "RobotsTxt", "Rule", "Verdict"]

UserAgent: TypeAlias = str | bytes | Sequence[str]
"""A product token, a whole User-Agent header, or tokens in order of preference."""

_MAX_USER_AGENTS = 64
"""How many values of user agents are remembered; a crawl has one or a few."""


class RobotsTxt:
    """One robots.txt file, made with `RobotsTxt.parse`."""

    __slots__ = ("_groups", "_indexed", "_records", "_spans", "_strict", "_text", "_url")

    def __init__(self, text: bytes, *, strict: bool = False, url: str | None = None) -> None:
        self._text = text
        self._strict = strict
        self._url = url
        self._spans = groups(text, strict=strict)
        self._indexed: dict[object, _Indexed] = {}
        self._groups: dict[str | None, GroupMatcher] = {}
        self._records: Records | None = None

    @classmethod
    def parse(cls, body: bytes, *, strict: bool = False, url: str | None = None) -> RobotsTxt:
        """Read a body as it came; `url` is where it came from, to resolve relative sitemaps."""
        if not isinstance(body, bytes):
            raise TypeError(f"the body of a robots.txt is bytes, not {body!r}")
        return cls(read(body), strict=strict, url=url)

    def allowed(self, url: str, user_agent: UserAgent) -> bool:
        """Whether a crawler may fetch a URL, an absolute one or a path."""
        try:
            index, _, allows = self._indexed[user_agent]
            plain = plain_url(url)
        except (KeyError, TypeError):
            plain = None
        if plain is None:
            return self._verdict(path_of(url), user_agent).allowed
        return allows[index.first(plain[1])]

    def verdict(self, url: str, user_agent: UserAgent) -> Verdict:
        """The same with its reason."""
        # Nearly every question of a crawl takes this way, so there is no call that could be spared.
        try:
            index, verdicts, _ = self._indexed[user_agent]
            plain = plain_url(url)
        except (KeyError, TypeError):
            plain = None
        if plain is None:
            return self._verdict(path_of(url), user_agent)
        return verdicts[index.first(plain[1])] or self._verdict(plain[1], user_agent)

    @property
    def has_pacing(self) -> bool:
        """Whether there is anything in the file that the next four tell of."""
        return self._extensions.has_pacing

    def crawl_delay(self, user_agent: UserAgent) -> float | None:
        """The seconds between two requests that are asked of a crawler."""
        return self._group_records(user_agent).get(CRAWL_DELAY)

    def request_rate(self, user_agent: UserAgent) -> RequestRate | None:
        """The last of `request_rates`."""
        return next(reversed(self.request_rates(user_agent)), None)

    def request_rates(self, user_agent: UserAgent) -> tuple[RequestRate, ...]:
        """The rates that are asked of a crawler, each for a time of day or for all of it."""
        return self._group_records(user_agent).get(REQUEST_RATE)

    def visit_time(self, user_agent: UserAgent) -> Window | None:
        """The time of day in which a crawler is welcome."""
        return self._group_records(user_agent).get(VISIT_TIME)

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps, in the order of the file, each once."""
        return self._extensions.sitemaps

    @property
    def host(self) -> str | None:
        """The site's main mirror (Yandex)."""
        return self._extensions.file.get(HOST)

    @property
    def clean_params(self) -> tuple[CleanParam, ...]:
        """Query parameters that do not change a page (Yandex)."""
        return self._extensions.file.get(CLEAN_PARAM)

    @property
    def noindex(self) -> tuple[str, ...]:
        """The patterns that are not to be indexed (Google until 2019)."""
        return self._extensions.file.get(NOINDEX)

    @property
    def has_usage(self) -> bool:
        """Whether there is anything in the file that the next two tell of."""
        return self._extensions.has_usage

    def content_signals(self, user_agent: UserAgent) -> dict[str, bool]:
        """What is signalled to a crawler, by name; else what is signalled before any group."""
        stated = self._group_records(user_agent).get(CONTENT_SIGNAL)
        return dict(stated or self._extensions.file.get(CONTENT_SIGNAL))

    def content_usage(self, url: str, user_agent: UserAgent) -> dict[str, bool]:
        """The preferences for the use of what is at a URL, by name; none for a disallowed one."""
        stated = self._group_records(user_agent).get(CONTENT_USAGE)
        if not stated or not self.allowed(url, user_agent):
            return {}
        return stated.of(path_of(url))

    @property
    def _extensions(self) -> Records:
        if self._records is None:
            self._records = Records(self._text, strict=self._strict, url=self._url)
        return self._records

    def _group_records(self, user_agent: UserAgent) -> RecordValues:
        token = self._token(product_tokens(user_agent))
        return self._extensions.of(token.encode() if token else b"")

    def _verdict(self, path: str, user_agent: UserAgent) -> Verdict:
        token = self._token(product_tokens(user_agent))
        group = self._groups.get(token)
        if group is None:
            spans = self._spans[token.encode()] if token else []
            text = GroupText(self._text, spans, STRICT if self._strict else LENIENT)
            group = self._groups[token] = GroupMatcher(token, text, strict=self._strict)
        verdict = group.verdict(path)
        if group.index is not None and not isinstance(user_agent, list):
            if len(self._indexed) >= _MAX_USER_AGENTS:
                self._indexed.clear()
            self._indexed[user_agent] = group.index, group.verdicts, group.allows
        return verdict

    def _token(self, tokens: tuple[str, ...]) -> str | None:
        """The first token that a group names; else everyone's (§2.2.1), if that has a group."""
        for token in (*tokens, WILDCARD_AGENT):
            if token.encode("ascii") in self._spans:
                return token
        return None
