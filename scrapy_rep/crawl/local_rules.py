"""The file of REP_LOCAL_RULES: how it is read, and how it applies to the origins of a crawl.

    [[disallow]]
    site = "*.example.com"
    rules = "Disallow: /members/"
    reason = "the owner does not want to be crawled"
    given_by = "owner@example.com, mail of 2026-03-02"

The other table is ``[[exception]]``. The file may change during a crawl.
"""

from __future__ import annotations

import os
import sys
from calendar import timegm
from datetime import date
from functools import lru_cache
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from w3lib.url import safe_url_string

from ..exceptions import SettingError
from ..fetch.redirects import plain_address
from ..logs import get_logger
from ..protocol.local_rules import LocalRule, LocalRules, parse_local_rules
from ..protocol.paths import host_of, origin_of, other_paths, verdict_as_sent

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from collections.abc import Callable, Iterator, Mapping

from scrapy import Spider

from ..origin import Origin
from ..protocol.verdict import Verdict

logger = get_logger(__name__)

SETTING = "REP_LOCAL_RULES"
MAX_CACHED = 1000
"""How many origins are cached with their rules, which each request needs several times."""
_DAY = 86_400
_TEXTS = ("reason", "given_by")
# For each kind of table: the required keys, and the optional ones.
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "disallow": (("site", "rules", *_TEXTS), ("until",)),
    "exception": (("site", "rules", *_TEXTS, "until"), ()),
}
_SITE_FORMS = "'https://example.com', 'example.com' or '*.example.com'"


class LocalRulesFile:
    """The local rules of one crawl. Raises SettingError for a file that cannot be used."""

    def __init__(self, path: str) -> None:
        self._by_site: dict[str, list[LocalRules]] = {}
        self._of_origin = lru_cache(maxsize=MAX_CACHED)(self._find)
        self._path = path
        self._version = _version(path)
        """What shows that the file may have changed."""
        self._text = ""
        self._read()

    def reload(self, spider: Spider | None) -> bool:
        """Read the file again if it has changed. Returns whether other rules apply now.

        A file that cannot be used changes nothing, and is logged once.
        """
        version = _version(self._path)
        if version == self._version:
            return False
        self._version = version  # before the file is read: it may change meanwhile
        try:
            if not self._read():
                return False  # it was only touched
        except SettingError as error:
            logger.error(
                "%(error)s. The rules that were read before still apply.",
                {"error": error},
                extra={"spider": spider},
            )
            return False
        logger.info(
            "The local rules in %(path)s (REP_LOCAL_RULES) have changed, and apply now.",
            {"path": self._path},
            extra={"spider": spider},
        )
        return True

    def _read(self) -> bool:
        """Read the file. Returns whether its text is another one."""
        text = self._read_text()
        if text == self._text:
            return False
        by_site: dict[str, list[LocalRules]] = {}
        for kind, name, table in self._tables(text):
            try:
                sites, rules = _parsed(kind, table)
            except ValueError as error:
                raise self._error(f"{name}: {error}") from None
            for site in sites:
                by_site.setdefault(site, []).append(rules)
        self._by_site, self._text = by_site, text
        self._of_origin.cache_clear()
        return True

    def __bool__(self) -> bool:
        """Whether there are any rules."""
        return bool(self._by_site)

    def find(self, key: str) -> LocalRules | None:
        """Return the rules for an origin, or None if there are none."""
        return self._of_origin(key) if self._by_site else None

    def _find(self, key: str) -> LocalRules | None:
        key = _with_plain_address(key)
        host = host_of(key)
        labels = host.split(".")
        sites = [key, host, *(f"*.{'.'.join(labels[index:])}" for index in range(len(labels)))]
        found = [rules for site in sites for rules in self._by_site.get(site, ())]
        return _joined(found) if found else None

    def disallowed(self, key: str, url: str, now: float) -> Verdict | None:
        """Return the verdict of a rule that disallows a URL of an origin, or None."""
        rules = self.find(key)
        if rules is None:
            return None
        for path in (url, *other_paths(url)):
            if (verdict := rules.disallowed(path, now)) is not None:
                return verdict
        return None

    def verdict(
        self, origin: Origin, url: str, now: float, verdict_on: Callable[[str], Verdict]
    ) -> Verdict:
        """Return the verdict of an origin on a URL, as the rules for it change it.

        ``verdict_on`` returns what the robots.txt says about a path alone. A local disallow decides
        before it. An exception decides if the robots.txt, its status or its absence disallows.
        """

        def decide(path: str) -> Verdict:
            rules = self.find(origin.key) or LocalRules()
            local = rules.disallowed(path, now)
            if local is not None:
                return local
            verdict = verdict_on(path)
            return verdict if verdict.allowed else rules.excepted(path, now) or verdict

        return verdict_as_sent(decide, url)

    def excepts(self, key: str, url: str, now: float) -> bool:
        """Return whether an exception allows a URL of an origin."""
        rules = self.find(key)
        return rules is not None and all(
            rules.excepted(path, now) is not None for path in (url, *other_paths(url))
        )

    def _read_text(self) -> str:
        try:
            text = Path(self._path).read_text("utf-8")
        except UnicodeDecodeError:
            raise self._error("it is not UTF-8") from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise self._error(f"it cannot be read: {error}") from None
        if not text and self._by_site:  # it is probably being written
            raise self._error("it is empty")
        return text

    def _tables(self, text: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
        """Yield the kind, the name and the content of each table."""
        try:
            document = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise self._error(f"it is not TOML: {error}") from None
        for kind, tables in document.items():
            if kind not in _KEYS:
                known = ", ".join(f"[[{each}]]" for each in _KEYS)
                raise self._error(f"unknown table {kind!r}: it must be one of {known}")
            if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
                raise self._error(f"write [[{kind}]], in two brackets each")
            for number, table in enumerate(tables, 1):
                yield kind, f"[[{kind}]] number {number}", table

    def _error(self, problem: str) -> SettingError:
        return SettingError(f"{SETTING} is {self._path!r}: {problem}")


def _version(path: str) -> tuple[int, ...] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def _parsed(kind: str, table: Mapping[str, Any]) -> tuple[list[str], LocalRules]:
    """Return the sites of a table, and its rules. Raises ValueError."""
    required, optional = _KEYS[kind]
    for name in table:
        if name not in required + optional:
            known = ", ".join(map(repr, required + optional))
            raise ValueError(f"unknown key {name!r}: it must be one of {known}")
    for name in required:
        if name not in table:
            raise ValueError(f"the key {name!r} is missing")
    expires_at = _expires_at(table["until"]) if "until" in table else inf
    reason, given_by = (_checked_text(name, table[name]) for name in _TEXTS)
    sites = _sites(table["site"])
    is_exception = kind == "exception"
    parsed = parse_local_rules(_checked_text("rules", table["rules"]), allow=is_exception)
    rule = LocalRule(parsed, f"{reason} ({given_by})", expires_at)
    return sites, LocalRules((), (rule,)) if is_exception else LocalRules((rule,))


def _joined(rules: list[LocalRules]) -> LocalRules:
    return LocalRules(*(tuple(chain.from_iterable(each)) for each in zip(*rules, strict=True)))


def _checked_text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name!r} is {value!r}: it must be a text")
    return value.strip()


def _expires_at(value: object) -> float:
    """Return the end of a day in UTC."""
    if type(value) is not date:
        raise ValueError(f"'until' is {value!r}: it must be a date such as 2027-01-31, unquoted")
    return timegm(value.timetuple()) + _DAY


def _sites(value: object) -> list[str]:
    sites = value if isinstance(value, list) else [value]
    if not sites:
        raise ValueError(f"'site' is []: it must be {_SITE_FORMS}, or a list of these")
    return [_site(site) for site in sites]


def _site(value: object) -> str:
    """Return a site in the form in which origins and hosts are written."""
    problem = ValueError(f"'site' is {value!r}: it must be {_SITE_FORMS}, or a list of these")
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
    if is_suffix and is_origin:
        raise problem
    if not is_origin and not has_only_host:
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
