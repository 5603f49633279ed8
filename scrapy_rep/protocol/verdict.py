"""What a question about a URL is answered with."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Reason(str, Enum):
    """What decided."""

    RULES = "rules"
    """A group: one of its rules, or that none of them matches."""
    NO_RULES = "no-rules"
    """No group is ours, or ours has no rules, or the URL is that of robots.txt itself."""
    UNAVAILABLE = "unavailable"
    """There is no robots.txt (RFC 9309 §2.3.1.3)."""
    UNREACHABLE = "unreachable"
    """There may be a robots.txt and it could not be had (RFC 9309 §2.3.1.4)."""
    VISIT_TIME = "visit-time"
    """The rules allow it, at another hour: outside of the group's Visit-time."""

    def __str__(self) -> str:
        return self.value


class Rule(NamedTuple):
    """A rule as its author wrote it."""

    allow: bool
    pattern: str
    line: int


class Verdict(NamedTuple):
    """Whether a URL may be fetched, and why."""

    allowed: bool
    reason: Reason
    rule: Rule | None = None
    """The rule that decided, if one did."""
    agent: str | None = None
    """The lower-case token of the group used, ``*`` for everyone's, None if there was none."""
