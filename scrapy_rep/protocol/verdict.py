"""Whether a crawler may fetch a URL: the verdict, its reason, and the rule that decided."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from .printable import cut, printable

MAX_PATTERN_LENGTH = 1000
"""Characters of a pattern that a `Rule` holds. The bound keeps a stored verdict small."""

NO_MATCH = "no rule matches"
"""The text of `Reason.RULES` where no rule decides."""


class TextEnum(str, Enum):
    """An Enum whose members are texts: `str` of a member is its value."""

    __str__ = str.__str__


class Reason(TextEnum):
    """Why a URL is allowed or disallowed.

    Each reason is also a `str`, which is its value:

    >>> Reason.UNREACHABLE == "unreachable"
    True
    """

    RULES = "rules"
    """A rule of the crawler's group matches, or none of them does (RFC 9309 §2.2.2)."""
    NO_RULES = "no-rules"
    """No group is for the crawler, or its group has no rules, or the URL is that of robots.txt."""
    UNAVAILABLE = "unavailable"
    """There is no robots.txt (RFC 9309 §2.3.1.3). Everything is allowed."""
    NOT_ROBOTS_TXT = "not-robots-txt"
    """The site has another page instead of its robots.txt, in HTML. Everything is allowed."""
    REFUSED = "refused"
    """The status of the robots.txt is 401 or 403 (RFC 9309 §2.3.1.3). Everything is allowed."""
    CHALLENGE = "challenge"
    """The site has a test for browsers instead of its robots.txt. Everything is allowed."""
    DISALLOWED_STATUS = "disallowed-status"
    """The status of the robots.txt is one of REP_DISALLOW_STATUSES. Everything is disallowed."""
    UNREACHABLE = "unreachable"
    """The robots.txt cannot be fetched (RFC 9309 §2.3.1.4). Everything is disallowed at first."""
    TOO_COMPLEX = "too-complex"
    """The comparison of the rules with the URL exceeds its number of steps. The URL is disallowed,
    because a rule that was not compared may disallow it. No file of a real site is known to need so
    many steps (see `matcher`)."""
    INVALID_HOST = "invalid-host"
    """The URL has no valid host, and so no robots.txt. It is disallowed: a proxy might fetch it."""
    VISIT_TIME = "visit-time"
    """The rules allow the URL at another time of day: that of the group's Visit-time."""
    LOCAL_RULE = "local-rule"
    """A rule of REP_LOCAL_RULES decides: the operator disallows the URL, or has permission."""


class Rule(NamedTuple):
    """One allow or disallow rule, as it is written in the file (RFC 9309 §2.2.2).

    `str` is a short description for a log. It is cut, and has printable characters only.

    >>> str(Rule(allow=False, pattern="/private", line=3))
    'line 3, Disallow: /private'
    """

    allow: bool
    """True for Allow, False for Disallow."""
    pattern: str
    """The path pattern. A pattern of more than 1,000 characters is cut and ends in an ellipsis."""
    line: int
    """The number of the line in the file, from 1."""

    @classmethod
    def of(cls, value: bytes, line: int, *, allow: bool) -> Rule:
        """Return the rule of a line, from the bytes of its value."""
        # Four bytes are at least one character.
        text = value[: 4 * (MAX_PATTERN_LENGTH + 1)].decode("utf-8", "replace")
        return cls(allow, cut(text, MAX_PATTERN_LENGTH), line)

    def __str__(self) -> str:
        field = "Allow" if self.allow else "Disallow"
        return f"line {self.line}, {field}: {printable(self.pattern)}"


class Verdict(NamedTuple):
    """Whether a crawler may fetch a URL, and why.

    A verdict is true if the URL is allowed. It is immutable, hashable and picklable. `str` is the
    reason in the words of the log. It is cut, and has printable characters only.

    >>> verdict = Verdict(False, Reason.RULES, Rule(False, "/private", 3), "mybot")
    >>> bool(verdict)
    False
    >>> str(verdict)
    'line 3, Disallow: /private, for mybot'
    """

    allowed: bool
    """Whether the URL may be fetched."""
    reason: Reason
    """Why."""
    rule: Rule | None = None
    """The rule that decided; None if no rule did."""
    agent: str | None = None
    """The product token of the group that was used, in lower case; ``*`` for the group of all other
    crawlers; None if no group was used."""
    detail: str | None = None
    """More about the reason, such as ``status 403``, the hours of a Visit-time, or the disallowed
    path that a download handler may send for the URL."""

    def __bool__(self) -> bool:
        """Return whether the URL is allowed."""
        return self.allowed

    def __str__(self) -> str:
        text, mark = f"{self.rule}, for {printable(self.agent or '')}", ", "
        if self.rule is None:
            text, mark = NO_MATCH if self.reason is Reason.RULES else self.reason.value, ": "
        return f"{text}{mark}{printable(self.detail)}" if self.detail else text
