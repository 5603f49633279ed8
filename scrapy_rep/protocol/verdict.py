"""What a question about a URL is answered with."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from .printable import cut, printable

MAX_PATTERN_LENGTH = 1000
"""Characters of a pattern that a `Rule` holds, so that a verdict is small when it is stored."""


class Reason(str, Enum):
    """What decided."""

    RULES = "rules"
    """A group: one of its rules, or that none of them matches."""
    NO_RULES = "no-rules"
    """No group is ours, or ours has no rules, or the URL is that of robots.txt itself."""
    UNAVAILABLE = "unavailable"
    """There is no robots.txt (RFC 9309 §2.3.1.3): everything is allowed."""
    DISALLOWED_STATUS = "disallowed-status"
    """There is no robots.txt, and a setting takes its status for a refusal of the whole site."""
    UNREACHABLE = "unreachable"
    """There may be a robots.txt and it could not be had (RFC 9309 §2.3.1.4)."""
    TOO_COMPLEX = "too-complex"
    """The rules take more steps to compare with the URL than a question has, and may disallow it.

    No file of a real site is known that does (see `comparison`)."""
    INVALID_HOST = "invalid-host"
    """The URL has no valid host, so there is no robots.txt to ask. A proxy might fetch it."""
    VISIT_TIME = "visit-time"
    """The rules allow it, at another hour: outside of the group's Visit-time."""

    def __str__(self) -> str:
        return self.value


class Rule(NamedTuple):
    """A rule as its author wrote it. ``str(rule)`` is a line for a log, cut and escaped."""

    allow: bool
    pattern: str
    """At most 1,000 characters of the pattern; a longer one is cut and ends in an ellipsis."""
    line: int

    @classmethod
    def of(cls, value: bytes, line: int, *, allow: bool) -> Rule:
        """Return the rule that a line with this value states."""
        # Four octets are at least one character.
        text = value[: 4 * (MAX_PATTERN_LENGTH + 1)].decode("utf-8", "replace")
        return cls(allow, cut(text, MAX_PATTERN_LENGTH), line)

    def __str__(self) -> str:
        field = "Allow" if self.allow else "Disallow"
        return f"line {self.line}, {field}: {printable(self.pattern)}"


class Verdict(NamedTuple):
    """Whether a URL may be fetched, and why. ``str(verdict)`` says why, cut and escaped."""

    allowed: bool
    reason: Reason
    rule: Rule | None = None
    """The rule that decided, if one did."""
    agent: str | None = None
    """The lower-case token of the group used, ``*`` for everyone's, None if there was none."""
    detail: str | None = None
    """More about the reason, such as ``status 403``, or the hours of a Visit-time."""

    def __str__(self) -> str:
        if self.rule is None:
            detail = f": {printable(self.detail)}" if self.detail else ""
            return f"{self.reason}{detail}"
        return f"{self.rule}, for {printable(self.agent or '')}"
