"""The file of REP_LOCAL_RULES: allow and disallow lines that an operator adds for a site.

    [[disallow]]
    site = "*.example.com"
    rules = "Disallow: /members/"
    reason = "the owner does not want to be crawled"
    given_by = "owner@example.com, mail of 2026-03-02"

The other table is ``[[exception]]``, which allows what the robots.txt disallows. The file may
change during a crawl.
"""

from __future__ import annotations

import os
import sys
from calendar import timegm
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from scrapy import Spider
from w3lib.url import safe_url_string

from ..exceptions import SettingError
from ..fetch.redirects import plain_address
from ..logs import get_logger
from ..origin import Origin
from ..protocol.agents import WILDCARD_AGENT
from ..protocol.lines import read
from ..protocol.lint import Severity, lint
from ..protocol.parser import RULE_FIELDS, parse_line
from ..protocol.paths import host_of, origin_of, other_paths, verdict_as_sent
from ..protocol.robotstxt import RobotsTxt
from ..protocol.verdict import Reason, Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

logger = get_logger(__name__)

MAX_CACHED = 1000
"""How many origins are cached with their rules, which each request needs several times."""
_DAY = 86_400
_KINDS = ("disallow", "exception")
_KEYS = ("site", "rules", "reason", "given_by", "until")


class LocalRule(NamedTuple):
    """The lines of one table: an exception, or else a disallow."""

    lines: RobotsTxt
    is_exception: bool
    detail: str
    """The reason, and the person who gave it."""
    expires_at: float = inf
    """In seconds since 1970."""

    def verdict(self, url: str, now: float) -> Verdict | None:
        """Return the verdict on a URL if the rule decides, else None.

        The Allow lines of a disallow, and the Disallow lines of an exception, only limit it.
        """
        verdict = self.lines.verdict(url, WILDCARD_AGENT)
        is_silent = verdict.allowed and verdict.rule is None
        if is_silent or verdict.allowed is not self.is_exception or now >= self.expires_at:
            return None
        return Verdict(self.is_exception, Reason.LOCAL_RULE, detail=self.detail)


class LocalRulesFile:
    """The local rules of one crawl. Raises SettingError for a file that cannot be used."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._version = _version(path)
        """What shows that the file may have changed."""
        self._by_site: dict[str, list[LocalRule]] = {}
        self._by_site = self._read()
        self.find = lru_cache(maxsize=MAX_CACHED)(self._find)
        """Returns the rules for an origin, or None if there are none."""

    def reload(self, spider: Spider | None) -> bool:
        """Read the file again if it has changed. Returns whether other rules apply now.

        A file that cannot be used changes nothing, and is logged once.
        """
        version = _version(self._path)
        if version == self._version:
            return False
        self._version = version  # before the file is read: it may change meanwhile
        try:
            by_site = self._read()
        except SettingError as error:
            logger.error(
                "%(error)s. The rules that were read before still apply.",
                {"error": error},
                extra={"spider": spider},
            )
            return False
        if by_site == self._by_site:
            return False
        self._by_site = by_site
        self.find.cache_clear()
        logger.info(
            "The local rules in %(path)s (REP_LOCAL_RULES) have changed, and apply now.",
            {"path": self._path},
            extra={"spider": spider},
        )
        return True

    def _read(self) -> dict[str, list[LocalRule]]:
        """Return the rules in the file by site."""
        by_site: dict[str, list[LocalRule]] = {}
        try:
            for name, kind, table in _tables(self._read_text()):
                try:
                    sites, rule = _parsed(kind, table)
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
                for site in sites:
                    by_site.setdefault(site, []).append(rule)
        except ValueError as error:
            raise SettingError(f"REP_LOCAL_RULES is {self._path!r}: {error}") from None
        return by_site

    def _read_text(self) -> str:
        try:
            text = Path(self._path).read_text("utf-8")
        except UnicodeDecodeError:
            raise ValueError("it is not UTF-8") from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise ValueError(f"it cannot be read: {error}") from None
        if not text and self._by_site:  # it is probably being written
            raise ValueError("it is empty")
        return text

    def _find(self, key: str) -> list[LocalRule] | None:
        key = _with_plain_address(key)
        host = host_of(key)
        labels = host.split(".")
        sites = [key, host, *(f"*.{'.'.join(labels[index:])}" for index in range(len(labels)))]
        return [rule for site in sites for rule in self._by_site.get(site, ())] or None

    def _decided(
        self, key: str, paths: Iterable[str], now: float, *, allow: bool
    ) -> Verdict | None:
        """Return the verdict of the first rule that allows or disallows one of the paths."""
        rules = [rule for rule in self.find(key) or () if rule.is_exception is allow]
        verdicts = (rule.verdict(path, now) for path in paths for rule in rules)
        return next((verdict for verdict in verdicts if verdict is not None), None)

    def disallowed(self, key: str, url: str, now: float) -> Verdict | None:
        """Return the verdict of a rule that disallows a URL of an origin, or None."""
        return self._decided(key, (url, *other_paths(url)), now, allow=False)

    def excepts(self, key: str, url: str, now: float) -> bool:
        """Return whether an exception allows a URL of an origin."""
        paths = (url, *other_paths(url))
        return all(self._decided(key, [path], now, allow=True) is not None for path in paths)

    def verdict(
        self, origin: Origin, url: str, now: float, verdict_on: Callable[[str], Verdict]
    ) -> Verdict:
        """Return the verdict of an origin on a URL, as the rules for it change it.

        ``verdict_on`` returns what the robots.txt says about a path alone. A local disallow decides
        before it. An exception decides if the robots.txt, its status or its absence disallows.
        """

        def decide(path: str) -> Verdict:
            local = self._decided(origin.key, [path], now, allow=False)
            if local is not None:
                return local
            verdict = verdict_on(path)
            if verdict.allowed:
                return verdict
            return self._decided(origin.key, [path], now, allow=True) or verdict

        return verdict_as_sent(decide, url)


def _version(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


# The functions below raise ValueError for what cannot be used.


def _tables(text: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the name, the kind and the content of each table."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"it is not TOML: {error}") from None
    for kind, tables in document.items():
        if kind not in _KINDS:
            known = ", ".join(f"[[{each}]]" for each in _KINDS)
            raise ValueError(f"unknown table {kind!r}: it must be one of {known}")
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            raise ValueError(f"write [[{kind}]], in two brackets each")
        for number, table in enumerate(tables, 1):
            yield f"[[{kind}]] number {number}", kind, table


def _parsed(kind: str, table: Mapping[str, Any]) -> tuple[list[str], LocalRule]:
    """Return the sites of a table, and its rule."""
    is_exception = kind == "exception"
    for name in table:
        if name not in _KEYS:
            known = ", ".join(map(repr, _KEYS))
            raise ValueError(f"unknown key {name!r}: it must be one of {known}")
    for name in _KEYS:
        if name not in table and (is_exception or name != "until"):
            raise ValueError(f"the key {name!r} is missing")
    expires_at = _expires_at(table["until"]) if "until" in table else inf
    reason, given_by, text = (_text_of(table, name) for name in ("reason", "given_by", "rules"))
    sites = table["site"]
    sites = [_site(each) for each in (sites if isinstance(sites, list) and sites else [sites])]
    lines = parse_lines(text, allow=is_exception)
    return sites, LocalRule(lines, is_exception, f"{reason} ({given_by})", expires_at)


def _text_of(table: Mapping[str, Any], name: str) -> str:
    value = table[name]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name!r} is {value!r}: it must be a text")
    return value.strip()


def _expires_at(value: object) -> float:
    """Return the end of a day in UTC."""
    if type(value) is not date:
        raise ValueError(f"'until' is {value!r}: it must be a date such as 2027-01-31, unquoted")
    return timegm(value.timetuple()) + _DAY


def _site(value: object) -> str:
    """Return a site in the form in which origins and hosts are written."""
    problem = ValueError(
        f"'site' is {value!r}: it must be 'https://example.com', 'example.com' or "
        "'*.example.com', or a list of these"
    )
    if not isinstance(value, str):
        raise problem
    name = value.removeprefix("*.")
    is_origin, is_suffix = "://" in name, name != value
    try:
        url = safe_url_string(name if is_origin else f"http://{name}/")
        parts = urlsplit(url)
        has_only_host = parts.port is None and "/" not in name
    except ValueError:
        raise problem from None
    key = origin_of(url)
    if key is None or parts.path not in ("", "/") or set(name) & set("*?#@%"):
        raise problem
    if is_suffix if is_origin else not has_only_host:
        raise problem
    if is_origin:
        return _with_plain_address(key)
    return f"*.{host_of(key)}" if is_suffix else host_of(_with_plain_address(key))


def _with_plain_address(key: str) -> str:
    """Return an origin with its host in the usual spelling, if that is an IP address."""
    address = plain_address(host_of(key))
    if address is None:
        return key
    parts = urlsplit(key)
    return f"{parts.scheme}://{address}" + (f":{parts.port}" if parts.port is not None else "")


def parse_lines(text: str, *, allow: bool) -> RobotsTxt:
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
        fields.add(record.field)
    for finding in lint(body):
        if finding.severity is Severity.ERROR:
            number = finding.line - 1
            raise ValueError(f"line {number} of the rules: {finding.message}; {finding.advice}")
    needed = "allow" if allow else "disallow"
    if needed.encode() not in fields:
        raise ValueError(f"the rules have no {needed} line")
    return RobotsTxt.parse(body, strict=True)
