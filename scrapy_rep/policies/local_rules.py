"""The file of REP_LOCAL_RULES: allow and disallow lines that an operator adds for a site.

    [[disallow]]
    site = "*.example.com"
    rules = "Disallow: /members/"
    reason = "the owner does not want to be crawled"
    given_by = "owner@example.com, mail of 2026-03-02"

The other table is ``[[exception]]``, which allows what the robots.txt disallows.
"""

from __future__ import annotations

import sys
from calendar import timegm
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from w3lib.url import safe_url_string

from ..ip_addresses import plain_address
from ..protocol.agents import WILDCARD_AGENT
from ..protocol.lines import read
from ..protocol.lint import Severity, lint
from ..protocol.parser import RULE_FIELDS, parse_line
from ..protocol.paths import host_of, origin_of, verdict_as_sent
from ..protocol.robotstxt import RobotsTxt
from ..protocol.verdict import Reason, Verdict
from ..settings import HOST_NAMES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_CACHED = 1000
"""How many origins are cached with their rules, which each request needs several times."""
_KEYS = ("site", "rules", "reason", "given_by", "until")
_ALLOWED, _DISALLOWED = Verdict(True, Reason.RULES), Verdict(False, Reason.RULES)


class LocalRule(NamedTuple):
    """The lines of one table."""

    lines: RobotsTxt
    verdict: Verdict
    """What the rule decides: an exception allows, any other rule disallows."""
    expires_at: float
    """In seconds since 1970."""

    def decides(self, url: str, now: float) -> bool:
        """Whether the rule decides on a URL.

        The Allow lines of a disallow, and the Disallow lines of an exception, only limit it.
        """
        found = self.lines.verdict(url, WILDCARD_AGENT)
        is_silent = found.allowed and found.rule is None
        return now < self.expires_at and not is_silent and found.allowed is self.verdict.allowed


class LocalRules:
    """The local rules of one crawl, from the text of a file.

    Raises ValueError for a text that cannot be used.
    """

    def __init__(self, text: str) -> None:
        self.by_site = parsed(text)
        self.find = lru_cache(maxsize=MAX_CACHED)(self._find)
        """Returns the rules for an origin, those that disallow first."""

    def replace(self, by_site: dict[str, list[LocalRule]]) -> bool:
        """Take other rules. Returns whether they differ."""
        has_changed = by_site != self.by_site
        self.by_site = by_site
        self.find.cache_clear()
        return has_changed

    def _find(self, key: str) -> list[LocalRule]:
        key = _with_plain_address(key)
        host = host_of(key)
        labels = host.split(".")
        sites = [key, host, *(f"*.{'.'.join(labels[index:])}" for index in range(len(labels)))]
        rules = [rule for site in sites for rule in self.by_site.get(site, ())]
        return sorted(rules, key=lambda rule: rule.verdict.allowed)

    def disallowed(self, key: str, url: str, now: float) -> Verdict | None:
        """Return the verdict of a rule that disallows a URL of an origin, or None."""
        verdict = self.verdict(key, url, now, lambda _: _ALLOWED)
        return None if verdict.allowed else verdict

    def excepts(self, key: str, url: str, now: float) -> bool:
        """Return whether an exception allows a URL of an origin, and no other rule disallows it."""
        return self.verdict(key, url, now, lambda _: _DISALLOWED).allowed

    def verdict(
        self, key: str, url: str, now: float, verdict_on: Callable[[str], Verdict]
    ) -> Verdict:
        """Return the verdict of an origin on a URL, as the rules for it change it.

        ``verdict_on`` returns what the robots.txt says about a path alone. A local disallow decides
        before it. An exception decides if the robots.txt, its status or its absence disallows.
        """
        rules = self.find(key)

        def decide(path: str) -> Verdict:
            local = next((rule.verdict for rule in rules if rule.decides(path, now)), None)
            if local is not None and not local.allowed:
                return local
            verdict = verdict_on(path)
            return verdict if verdict.allowed or local is None else local

        return verdict_as_sent(decide, url)


# The functions below raise ValueError for what cannot be used.


def parsed(text: str) -> dict[str, list[LocalRule]]:
    """Return the rules in the text of a file by site."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"it is not TOML: {error}") from None
    by_site: dict[str, list[LocalRule]] = {}
    for kind, tables in document.items():
        if kind not in ("disallow", "exception"):
            raise ValueError(
                f"unknown table {kind!r}: it must be one of [[disallow]], [[exception]]"
            )
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            raise ValueError(f"write [[{kind}]], in two brackets each")
        for number, table in enumerate(tables, 1):
            try:
                rule = _rule(table, is_exception=kind == "exception")
                sites = table["site"]
                for site in sites if isinstance(sites, list) and sites else [sites]:
                    by_site.setdefault(_site(site), []).append(rule)
            except ValueError as error:
                raise ValueError(f"[[{kind}]] number {number}: {error}") from None
    return by_site


def _rule(table: Mapping[str, Any], *, is_exception: bool) -> LocalRule:
    for name in (*table, *_KEYS):
        value = table.get(name)
        if name not in _KEYS:
            known = ", ".join(map(repr, _KEYS))
            raise ValueError(f"unknown key {name!r}: it must be one of {known}")
        is_text = isinstance(value, str) and value.strip()
        if value is None and (is_exception or name != "until"):
            raise ValueError(f"the key {name!r} is missing")
        if name in ("rules", "reason", "given_by") and not is_text:
            raise ValueError(f"{name!r} is {value!r}: it must be a text")
    until = table.get("until")
    if until is not None and type(until) is not date:
        raise ValueError(f"'until' is {until!r}: it must be a date such as 2027-01-31, unquoted")
    detail = f"{table['reason'].strip()} ({table['given_by'].strip()})"
    return LocalRule(
        _lines_of(table["rules"], allow=is_exception),
        Verdict(is_exception, Reason.LOCAL_RULE, detail=detail),
        inf if until is None else timegm(until.timetuple()) + 86_400,  # the end of the day in UTC
    )


def _site(value: object) -> str:
    """Return a site in the form in which origins and hosts are written."""
    name = value.removeprefix("*.") if isinstance(value, str) else ""
    is_origin, is_suffix = "://" in name, name != value
    with suppress(ValueError):
        if not is_origin:
            (host,) = HOST_NAMES.parse([name])
            return f"*.{host}" if is_suffix else (plain_address(host) or host).strip("[]")
        key, rest = origin_of(safe_url_string(name)), name.partition("://")[2].removesuffix("/")
        if key is not None and not is_suffix and not set(rest) & set("/*?#@%"):
            return _with_plain_address(key)
    raise ValueError(
        f"'site' is {value!r}: it must be 'https://example.com', 'example.com' or "
        "'*.example.com', or a list of these"
    )


def _with_plain_address(key: str) -> str:
    """Return an origin with its host in the usual spelling, if that is an IP address."""
    host = host_of(key)
    written = f"[{host}]" if ":" in host else host
    return key.replace(f"//{written}", f"//{plain_address(host) or written}")


def _lines_of(text: str, *, allow: bool) -> RobotsTxt:
    """Return the allow and disallow lines of a text.

    No other line, no pattern that never matches, and at least one allow line, or one disallow line,
    whichever `allow` requires.
    """
    body = b"User-agent: *\n" + text.encode()
    for number, line in enumerate(read(body).split(b"\n")[2:], 1):
        record = parse_line(line, number, strict=True)
        if record is None or record.field not in RULE_FIELDS:
            if line.partition(b"#")[0].strip():
                raise ValueError(
                    f"line {number} of the rules is neither 'Allow: PATTERN' nor 'Disallow: "
                    "PATTERN'"
                )
        elif not record.value:
            raise ValueError(f"line {number} of the rules has no pattern; write '/' for all URLs")
    for finding in lint(body):
        if finding.severity is Severity.ERROR:
            number = finding.line - 1
            raise ValueError(f"line {number} of the rules: {finding.message}; {finding.advice}")
    lines = RobotsTxt.parse(body, strict=True)
    if all(rule.allow is not allow for group in lines.groups for rule in group.rules):
        raise ValueError(f"the rules have no {'allow' if allow else 'disallow'} line")
    return lines
