"""The rules that an operator adds for a site, compared with URLs.

For example, the owner of a site may write that the crawler must not visit it, or may visit what the
robots.txt disallows. The rules are allow and disallow lines as in a robots.txt. Each rule has a
reason, and a time at which it expires.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from .agents import WILDCARD_AGENT
from .lines import read
from .lint import Severity, lint
from .parser import RULE_FIELDS, parse_line
from .robotstxt import RobotsTxt
from .verdict import Reason, Verdict


class LocalRule(NamedTuple):
    """Rules for one site that have the same reason."""

    rules: RobotsTxt
    detail: str
    """The reason, and the person who gave it."""
    expires_at: float = inf
    """In seconds since 1970."""


class LocalRules(NamedTuple):
    """All local rules for one origin."""

    disallows: tuple[LocalRule, ...] = ()
    exceptions: tuple[LocalRule, ...] = ()

    def disallowed(self, url: str, now: float) -> Verdict | None:
        """Return the verdict of the first rule that disallows a URL, or None.

        An Allow line limits the Disallow lines of its own rule. It does not allow what the site
        disallows.
        """
        for rule in self.disallows:
            if now < rule.expires_at and not rule.rules.allowed(url, WILDCARD_AGENT):
                return Verdict(False, Reason.LOCAL_RULE, detail=rule.detail)
        return None

    def excepted(self, url: str, now: float) -> Verdict | None:
        """Return the verdict of the first exception that allows a URL, or None.

        A Disallow line limits the Allow lines of its own exception.
        """
        for rule in self.exceptions:
            decided_by = rule.rules.verdict(url, WILDCARD_AGENT).rule
            if now < rule.expires_at and decided_by is not None and decided_by.allow:
                return Verdict(True, Reason.LOCAL_RULE, detail=rule.detail)
        return None


def parse_local_rules(text: str, *, allow: bool) -> RobotsTxt:
    """Return the allow and disallow lines of a text.

    Raises ValueError for any other line, for a pattern that never matches, and if there is no allow
    line, or no disallow line, whichever `allow` requires.
    """
    body = b"User-agent: *\n" + text.encode()
    fields = set()
    for number, line in enumerate(read(body).split(b"\n")[2:], 1):
        if not line.partition(b"#")[0].strip():
            continue
        record = parse_line(line, number, strict=True)
        if record is None or record.field not in RULE_FIELDS:
            raise ValueError(
                f"line {number} of the rules is neither 'Allow: PATTERN' nor 'Disallow: PATTERN'"
            )
        if not record.value:
            raise ValueError(f"line {number} of the rules has no pattern; write '/' for all URLs")
        fields.add(record.field.decode())
    for finding in lint(body):
        if finding.severity is Severity.ERROR:
            number = finding.line - 1
            raise ValueError(f"line {number} of the rules: {finding.message}; {finding.advice}")
    needed = "allow" if allow else "disallow"
    if needed not in fields:
        raise ValueError(f"the rules have no {needed} line")
    return RobotsTxt.parse(body, strict=True)
