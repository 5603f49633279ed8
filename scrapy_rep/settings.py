"""Every setting of the package: its name, its default and the values that it may have.

They are read once, when the crawl starts, into a frozen :class:`Settings`. An unusable value stops
the crawl with a :class:`SettingError`. Only this module reads the settings of a crawl, also those
of Scrapy and of other plugins. What one request sets, or gets, is in its ``meta``.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from importlib.util import find_spec
from math import inf
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from scrapy import Spider
from scrapy.dupefilters import RFPDupeFilter
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name
from w3lib.url import safe_url_string

from .exceptions import SettingError
from .protocol.paths import origin_of
from .protocol.usage import REQUIRABLE
from .stores.urls import find_form, store_forms, without_password

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

# The keys of Request.meta and the flag of Response.flags that are part of the interface for users.
# Other keys are in the module that uses them.
ROBOTSTXT = "robotstxt"  # the Verdict on the request
PAGE_DIRECTIVES = "page_directives"  # the PageDirectives of the response
USAGE = "robotstxt_usage"  # the uses that the response grants (True) or refuses (False), by name
LINK_REL = "robotstxt_link_rel"  # the `rel` values of the request's link, as a sorted tuple
OBEY_NOFOLLOW = "robotstxt_obey_nofollow"  # False: sent although its page or link says nofollow
# Each of these is True or missing. The names of the first two are Scrapy's.
DONT_OBEY = "dont_obey_robotstxt"  # the request is exempt from robots.txt
DONT_RETRY = "dont_retry"  # the request is not retried
IS_ROBOTSTXT_REQUEST = "is_robotstxt_request"  # a middleware makes the request for a robots.txt

CACHED_FLAG = "cached"  # the response comes from a cache, such as Scrapy's HTTP cache

_WITHOUT_POOL = tuple(f"scrapy.core.downloader.handlers.http{name}" for name in ("10", "11", "2"))

_ARCHIVE_PATH = r"(?:[^%\0]|%%|%\((?:name|time|pid)\)s)*\.warc\.gz"


class Kind(NamedTuple):
    """The values that a setting may have."""

    expected: str
    """What a value must be, for error messages."""
    parse: Callable[[Any], Any]
    """Returns a value in the type that the package uses. From a command line, it is text. Raises
    LookupError, TypeError or ValueError for an unusable value."""
    is_usable: Callable[[Any], object] = lambda _: True
    """Whether the package can use what ``parse`` returns."""


def _whole_numbers(least: int) -> Kind:
    expected = f"a whole number, {least} or more"
    return Kind(expected, lambda value: int(str(value)), lambda number: number >= least)


def _number(value: object) -> float:
    return float(str(value))


def _choice(*choices: str) -> Kind:
    return Kind(" or ".join(map(repr, choices)), lambda value: choices[choices.index(str(value))])


def _boolean(value: object) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[str(value).strip().lower()]


def _items(value: Any) -> Iterable[Any]:
    """Return the items of a list, or of a text: ``[10, 20]``, or ``10, 20``."""
    if isinstance(value, (bytes, Mapping)):
        raise TypeError
    if isinstance(value, str) and value.strip().startswith(("[", "(")):
        with suppress(SyntaxError, ValueError):  # such as [::1]
            value = literal_eval(value.strip())
    return value.split(",") if isinstance(value, str) else iter(value)


def _strings(value: object) -> tuple[str, ...]:
    return tuple(text for item in _items(value) if (text := str(item).strip()))


def _path(value: Any) -> str | None:
    """Return a path; None for None and for an empty text."""
    path = fspath(value or "")
    if not isinstance(path, str):
        raise TypeError
    return path or None


def _paths(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    items = [value] if isinstance(value, PathLike) else _items(value)
    return _strings(_path(item) or "" for item in items)


def _host_name(name: str) -> str:
    """Return a host name as :class:`~scrapy_rep.origin.Origin` has it."""
    is_ipv6 = name.count(":") > 1 and not name.startswith("[")
    has_port = not is_ipv6 and ":" in name.rpartition("]")[2].rstrip(".")
    origin = origin_of(safe_url_string(f"http://[{name}]/" if is_ipv6 else f"http://{name}/"))
    host = urlsplit(origin or "").hostname
    if has_port or host is None or set(name) & set("/?#@*%"):
        raise ValueError
    return host


def _slots(value: Any) -> dict[str, dict[str, float]]:
    slots = json.loads(value) if isinstance(value, str) else dict(value or {})
    kinds = {"concurrency": int, "delay": float}
    return {
        str(key): {name: kind(slot[name]) for name, kind in kinds.items() if name in slot}
        for key, slot in slots.items()
    }


def _user_agents(value: object) -> str | tuple[str, ...] | None:
    if not value:
        return None
    # A header may contain commas. On a command line, commas separate the tokens of a list.
    if isinstance(value, str) and not value.startswith("["):
        return value if set(value) & set("/( ") or "," not in value else _strings(value)
    return _strings(value)


BOOLEAN = Kind("True or False", _boolean)
SECONDS = Kind("a number of seconds above 0", _number, lambda seconds: 0 < seconds < inf)
SECONDS_RANGE = Kind(
    "two numbers of seconds above 0, the smaller one first",
    lambda value: tuple(map(_number, _items(value))),
    lambda seconds: len(seconds) == 2 and 0 < seconds[0] <= seconds[1] < inf,
)
INTERVAL = Kind("a number of seconds, 0 or more", _number, lambda seconds: 0 <= seconds < inf)
DAYS = Kind("a number of days, 0 or more", _number, lambda days: 0 <= days < inf)
WHOLE, COUNT = _whole_numbers(0), _whole_numbers(1)
ACCESS_RESULT = _choice("unavailable", "unreachable")
ON_UNREACHABLE = _choice("disallow", "allow", "wait")
ON_DIRECTIVE = _choice("annotate", "drop")
ON_FINAL_URL = _choice("annotate", "drop", "ignore")
USES = Kind(f"a list of {', '.join(map(repr, REQUIRABLE))}", _strings, set(REQUIRABLE).issuperset)
HOST_NAMES = Kind(
    "a list of host names, without scheme, port, path or wildcards",
    lambda value: frozenset(map(_host_name, _strings(value))),
)
CLIENT_ERRORS = Kind(
    "a list of statuses from 400 to 499",
    lambda value: frozenset(map(int, _strings(value))),
    frozenset(range(400, 500)).issuperset,
)
PATH = Kind("None or a path", _path)
TOML_PATH = Kind("None or the path of a TOML file", _path)
PATHS = Kind("None, a path or a list of paths", _paths)
ARCHIVE_PATH = Kind(
    "None or a path that ends in .warc.gz, in which %(name)s, %(time)s and %(pid)s are replaced "
    "and %% stands for %",
    _path,
    lambda path: path is None or re.fullmatch(_ARCHIVE_PATH, path),
)
STORE = Kind(
    f"None, {store_forms()}",
    lambda value: None if value == "" else value,
    lambda value: value is None or callable(value) or find_form(value),
)
SLOTS = Kind("a dict of dicts, with integers as concurrency, and seconds as delay", _slots)
USER_AGENTS = Kind("a product token, a list of them, or a User-Agent header", _user_agents)


class Setting(NamedTuple):
    """One setting, as the reference has it."""

    name: str
    default: Any
    kind: Kind

    def read(self, settings: BaseSettings) -> Any:
        """Return its value in a crawl. Raises :class:`SettingError` for an unusable one."""
        value = settings.get(self.name, self.default)
        if value == "None" and self.name.startswith("REP_"):  # on a command line
            value = self.default
        with suppress(LookupError, TypeError, ValueError):
            parsed = self.kind.parse(value)
            if self.kind.is_usable(parsed):
                return parsed
        shown = without_passwords(value)
        raise SettingError(f"{self.name} is {shown!r}: it must be {self.kind.expected}")


def _setting(name: str, default: Any, kind: Kind) -> Any:
    return field(metadata={"setting": Setting(name, default, kind)})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """The settings of one crawl. docs/reference/settings.md says what each of them means."""

    timeout: float = _setting("REP_TIMEOUT", 30.0, SECONDS)
    retry_times: int = _setting("REP_RETRY_TIMES", 2, WHOLE)
    on_too_many_redirects: str = _setting("REP_ON_TOO_MANY_REDIRECTS", "unavailable", ACCESS_RESULT)
    not_robots: str = _setting("REP_NOT_ROBOTS", "unavailable", ACCESS_RESULT)
    disallow_statuses: frozenset[int] = _setting("REP_DISALLOW_STATUSES", (), CLIENT_ERRORS)
    server_error_hosts: frozenset[str] = _setting("REP_5XX_AS_404_HOSTS", (), HOST_NAMES)
    on_unreachable: str = _setting("REP_ON_UNREACHABLE", "disallow", ON_UNREACHABLE)
    unreachable_days: float = _setting("REP_UNREACHABLE_DAYS", 30.0, DAYS)
    ttl_range: tuple[float, float] = _setting("REP_TTL_RANGE", (300.0, 86400.0), SECONDS_RANGE)
    cache_size: int = _setting("REP_CACHE_SIZE", 1_000_000, COUNT)
    concurrent_robotstxt_requests: int = _setting("REP_CONCURRENT_ROBOTSTXT_REQUESTS", 600, COUNT)
    obey_rate_limits: bool = _setting("REP_OBEY_RATE_LIMITS", True, BOOLEAN)
    max_crawl_delay: float = _setting("REP_MAX_CRAWL_DELAY", 300.0, SECONDS)
    backoff: bool = _setting("REP_BACKOFF", True, BOOLEAN)
    max_backoff: float = _setting("REP_MAX_BACKOFF", 300.0, SECONDS)
    max_wait: float = _setting("REP_MAX_WAIT", 300.0, SECONDS)
    check_final_url: str = _setting("REP_CHECK_FINAL_URL", "annotate", ON_FINAL_URL)
    noindex: str = _setting("REP_NOINDEX", "annotate", ON_DIRECTIVE)
    nofollow: str = _setting("REP_NOFOLLOW", "annotate", ON_DIRECTIVE)
    rel_nofollow: str = _setting("REP_REL_NOFOLLOW", "annotate", ON_DIRECTIVE)
    intended_uses: tuple[str, ...] = _setting("REP_INTENDED_USES", (), USES)
    tdmrep: bool = _setting("REP_TDMREP", False, BOOLEAN)
    local_rules: str | None = _setting("REP_LOCAL_RULES", None, TOML_PATH)
    store: str | Callable[..., Any] | None = _setting(  # noqa: RUF009 - it is not changed
        "REP_STORE", None, STORE
    )
    archive: str | None = _setting("REP_ARCHIVE", None, ARCHIVE_PATH)
    report: tuple[str, ...] = _setting("REP_REPORT", None, PATHS)

    # Settings of Scrapy and of other plugins.
    obey: bool = _setting("ROBOTSTXT_OBEY", False, BOOLEAN)
    robots_agent: str | tuple[str, ...] | None = _setting("ROBOTSTXT_USER_AGENT", None, USER_AGENTS)
    jobdir: str | None = _setting("JOBDIR", None, PATH)
    concurrent_requests: int = _setting("CONCURRENT_REQUESTS", 16, WHOLE)
    """0 means no limit."""
    domain_concurrency: int = _setting("CONCURRENT_REQUESTS_PER_DOMAIN", 8, WHOLE)
    slots: Mapping[str, Mapping[str, float]] = _setting("DOWNLOAD_SLOTS", None, SLOTS)
    logstats_interval: float = _setting("LOGSTATS_INTERVAL", 60.0, INTERVAL)
    http_cache_only: bool = _setting("HTTPCACHE_IGNORE_MISSING", False, BOOLEAN)
    zyte_api_transparent_mode: bool = _setting("ZYTE_API_TRANSPARENT_MODE", False, BOOLEAN)

    # What follows from several settings.
    connections: int | None  # `connection_limit`
    own_delay: float
    """The delay of download slots by default, in seconds: DOWNLOAD_DELAY, or 1 for AutoThrottle,
    which changes it. 0: none."""
    page_agent: str | bytes | None
    unknown: list[tuple[str, str | None]]  # `unknown_names`

    @classmethod
    def read(cls, settings: BaseSettings, spider: Spider | None = None) -> Settings:
        """Return all settings, defaults included. Raises :class:`SettingError`."""
        values = {name: setting.read(settings) for name, setting in _SETTINGS.items()}
        delay = getattr(spider, "download_delay", None) or settings.getfloat("DOWNLOAD_DELAY")
        return cls(
            **values,
            connections=connection_limit(settings, values["concurrent_requests"]),
            own_delay=float(delay or settings.getbool("AUTOTHROTTLE_ENABLED")),
            page_agent=page_agent(settings, spider),
            unknown=unknown_names(settings),
        )

    def limits_of(self, slot: str) -> tuple[float, float]:
        """Return the concurrency of a download slot, and its delay. See ``own_delay``."""
        own = self.slots.get(slot, {})
        return own.get("concurrency", self.domain_concurrency), own.get("delay", self.own_delay)

    def user_agent(self, header: str | bytes | None) -> str | bytes | tuple[str, ...]:
        """Return the user agent whose rules apply to a request with this User-Agent header."""
        return self.robots_agent or header or self.page_agent or ""


_SETTINGS: dict[str, Setting] = {
    item.name: item.metadata["setting"] for item in fields(Settings) if item.metadata
}
"""The settings by their attribute."""


def read_settings(crawler: Crawler) -> Settings:
    """Return the settings of a crawl. Raises :class:`SettingError` for an unusable value."""
    return Settings.read(crawler.settings, crawler.spider)


class QueueSettings(NamedTuple):
    """What a crawl says about its queue in Redis. The names are those of scrapy-redis."""

    redis_url: str
    redis_url_name: str
    """The setting that has the URL."""
    queue_key: str
    persist: bool
    flush_on_start: bool
    serializer: str
    """The import path of a module with ``dumps`` and ``loads``."""
    concurrent_requests: int
    turn: int
    """How many requests of a host a worker leases at once."""


def read_queue_url(settings: BaseSettings) -> tuple[str, str]:
    """Return the setting that names the Redis of a queue, and its URL. Raises SettingError."""
    name = "REDIS_URL" if settings.get("REDIS_URL") else "REP_STORE"
    url = settings.get(name)
    if not isinstance(url, str) or not re.match(r"(?:redis|rediss|unix)(?:\+\w+)?://", url):
        raise SettingError(
            "scrapy_rep.frontier.redis.Scheduler needs the URL of a Redis in REDIS_URL, such as "
            f"'redis://localhost:6379'. {name} is {without_passwords(url)!r}"
        )
    return name, url


def read_queue_settings(crawler: Crawler) -> QueueSettings:
    """Return the settings of a queue in Redis. Raises :class:`SettingError` for an unusable one."""
    settings = crawler.settings
    name, url = read_queue_url(settings)
    if not is_asyncio_available():
        raise SettingError(
            "SCHEDULER is scrapy_rep.frontier.redis.Scheduler, which needs asyncio. Set "
            "TWISTED_REACTOR to 'twisted.internet.asyncioreactor.AsyncioSelectorReactor'"
        )
    dupefilter = load_object(settings["DUPEFILTER_CLASS"])
    if dupefilter is not RFPDupeFilter:
        raise SettingError(
            f"DUPEFILTER_CLASS is {global_object_name(dupefilter)}, but the queue in Redis has its "
            "own filter, with the fingerprints of REQUEST_FINGERPRINTER_CLASS. Remove "
            "DUPEFILTER_CLASS"
        )
    key = settings.get("SCHEDULER_QUEUE_KEY", "%(spider)s:requests")
    serializer = settings.get("SCHEDULER_SERIALIZER") or "pickle"
    if not isinstance(serializer, str) or find_spec(serializer) is None:
        raise SettingError(
            f"SCHEDULER_SERIALIZER is {serializer!r}, but it must be the import path of a module "
            "with the functions dumps and loads, such as 'scrapy_rep.frontier.json_requests'"
        )
    concurrent = settings.getint("CONCURRENT_REQUESTS")
    assert crawler.spidercls is not None
    return QueueSettings(
        url,
        name,
        key % {"spider": getattr(crawler.spider, "name", None) or crawler.spidercls.name},
        settings.getbool("SCHEDULER_PERSIST"),
        settings.getbool("SCHEDULER_FLUSH_ON_START"),
        serializer,
        concurrent,
        settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN") or concurrent or 8,
    )


def changed_settings(settings: Settings) -> dict[str, object]:
    """Return the values that differ from their defaults, by the name of the setting.

    They are without passwords. A sequence or set is a list.
    """
    return {
        setting.name: _plain(without_passwords(value))
        for name, setting in _SETTINGS.items()
        if setting.name.startswith("REP_")
        and (value := getattr(settings, name)) != setting.kind.parse(setting.default)
    }


def _plain(value: object) -> object:
    if isinstance(value, frozenset):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


def unknown_names(settings: BaseSettings) -> list[tuple[str, str | None]]:
    """Return settings with a prefix of robots.txt settings that do not exist.

    Each comes with the most similar setting that exists, or None.
    """
    known = ["ROBOTSTXT_PARSER", *(setting.name for setting in _SETTINGS.values())]
    return [
        (name, next(iter(get_close_matches(name, known, n=1)), None))
        for name in sorted(str(name) for name in settings)
        if name.startswith(("REP_", "ROBOTSTXT_")) and name not in known
    ]


def without_passwords(value: object) -> object:
    """Return the value of a setting with ``***`` in place of each password in a URL."""
    match value:
        case str():
            return without_password(value)
        case bytes():
            return without_password(value.decode("latin-1")).encode("latin-1")
        case list() | tuple():
            return type(value)(without_passwords(item) for item in value)
        case Mapping():
            return {without_passwords(key): without_passwords(item) for key, item in value.items()}
    return value


# Settings of Scrapy and of other plugins


def turns_obeying_off(settings: BaseSettings) -> bool:
    """Whether a project turns ROBOTSTXT_OBEY off itself. Scrapy's default is ignored."""
    obey = _SETTINGS["obey"]
    is_set = (settings.getpriority(obey.name) or 0) > SETTINGS_PRIORITIES["default"]
    return is_set and not obey.read(settings)


def scrapy_settings(crawler: Crawler, names: Iterable[str]) -> dict[str, str]:
    """Return those of some settings of Scrapy that have a value, as text."""
    return {
        name: global_object_name(value) if isinstance(value, type) else str(value)
        for name in names
        if (value := crawler.settings.get(name)) is not None
    }


def page_agent(settings: BaseSettings, spider: Spider | None) -> str | bytes | None:
    """Return the User-Agent header of requests that do not set one; None if there is none."""
    # Scrapy sets the header after this middleware: DefaultHeadersMiddleware first, then
    # UserAgentMiddleware, which prefers the attribute of the spider to the setting.
    for name, value in settings.getdict("DEFAULT_REQUEST_HEADERS").items():
        if value is not None and str(name).lower() == "user-agent":
            return value if isinstance(value, bytes) else str(value)
    for agent in (getattr(spider, "user_agent", None), settings["USER_AGENT"]):
        if isinstance(agent, (str, bytes)) and agent:
            return agent
    return None


def connection_limit(settings: BaseSettings, concurrent_requests: int) -> int | None:
    """Return how many connections the download handler of HTTP has; None if it has no limit.

    Scrapy's own handlers for Twisted (`_WITHOUT_POOL`) open as many as they get requests. Others
    have a pool, of CONCURRENT_REQUESTS connections in most cases.
    """
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    for path in (handlers.get("http"), handlers.get("https")):
        try:
            bases = load_object(path).__mro__
        except Exception:  # there is none, or Scrapy logs an error for it
            continue
        if not any(base.__module__.startswith(_WITHOUT_POOL) for base in bases):
            return concurrent_requests or None
    return None
