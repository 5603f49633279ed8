"""Every setting of the package: its name, its default, its parser and its meaning.

They are read once, when the crawl starts, into a frozen :class:`Settings`. An unusable value stops
the crawl with a :class:`SettingError`. Only this module reads the settings of a crawl, also those
of Scrapy and of other plugins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.settings import default_settings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name
from w3lib.url import safe_url_string

from .exceptions import SettingError
from .protocol.agents import product_tokens
from .protocol.paths import origin_of
from .stores.registry import StoreSource, find_type, store_forms, without_password

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

_SCRAPY_NAMES = ("ROBOTSTXT_OBEY", "ROBOTSTXT_PARSER", "ROBOTSTXT_USER_AGENT")
"""Scrapy's own settings for robots.txt."""

_WITHOUT_POOL = tuple(f"scrapy.core.downloader.handlers.http{name}" for name in ("10", "11", "2"))
"""The modules of the download handlers that open as many connections as they get requests."""

_TEMPLATE = re.compile(r"(?:[^%\0]|%%|%\((?:name|time|pid)\)s)+")


# Parsers. Each takes the value of a setting, which is text if it comes from a command line, and
# returns it in the type that the package uses. It raises ValueError, which says what the value must
# be, for an unusable value.


def boolean(value: object) -> bool:
    """Parse True or False, or one of the texts and numbers that stand for them."""
    match value:
        case bool():
            return value
        case int() | str() if str(value).strip().lower() in {"1", "true"}:
            return True
        case int() | str() if str(value).strip().lower() in {"0", "false"}:
            return False
    raise ValueError("True or False")


def count(value: object) -> int:
    """Parse a whole number, 0 or more."""
    return _whole_number(value, minimum=0)


def positive_count(value: object) -> int:
    """Parse a whole number, 1 or more."""
    return _whole_number(value, minimum=1)


def seconds(value: object) -> float:
    """Parse a finite number of seconds above 0."""
    number = _number(value)
    if not 0 < number < float("inf"):
        raise ValueError("a number of seconds above 0")
    return number


def days(value: object) -> float:
    """Parse a finite number of days, 0 or more."""
    number = _number(value)
    if not 0 <= number < float("inf"):
        raise ValueError("a number of days, 0 or more")
    return number


def strings(value: object) -> tuple[str, ...]:
    """Parse a list of texts, or one text that separates them by commas."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise ValueError("a list")
    texts = tuple(str(item).strip() for item in value)
    return tuple(text for text in texts if text)


def paths(value: object) -> tuple[str, ...]:
    """Parse a path, or a list of paths. A text separates them by commas. None means no path."""
    if value is None:
        return ()
    values = [value] if isinstance(value, PathLike) else value
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping)):
        values = [fspath(item) if isinstance(item, PathLike) else item for item in values]
        if not all(isinstance(item, str) for item in values):
            raise ValueError("None, a path or a list of paths")
    try:
        return strings(values)
    except ValueError:
        raise ValueError("None, a path or a list of paths") from None


def tokens(value: object) -> tuple[str, ...]:
    """Parse a list of product tokens. The result has them in lower case, each once."""
    found = [product_tokens(text) for text in strings(value)]
    if not all(found):
        raise ValueError("a list of product tokens")
    return tuple(dict.fromkeys(token for one in found for token in one))


def statuses(low: int, high: int) -> Callable[[object], frozenset[int]]:
    """Return a parser for a list of HTTP statuses from ``low`` to ``high``."""

    def parse(value: object) -> frozenset[int]:
        expected = f"a list of statuses from {low} to {high}"
        try:
            found = frozenset(int(text) for text in strings(value))
        except ValueError:
            raise ValueError(expected) from None
        if any(not low <= status <= high for status in found):
            raise ValueError(expected)
        return found

    return parse


def host_names(value: object) -> frozenset[str]:
    """Parse a list of host names. The result has them as :class:`~scrapy_rep.origin.Origin` has."""
    try:
        return frozenset(map(_host_name, strings(value)))
    except ValueError:
        raise ValueError("a list of host names, without scheme, port, path or wildcards") from None


def choice(*choices: str) -> Callable[[object], str]:
    """Return a parser for one of several texts."""

    def parse(value: object) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise ValueError(" or ".join(repr(text) for text in choices))

    return parse


def toml_path(value: object) -> str | None:
    """Parse the path of a TOML file. None and an empty text mean that there is none."""
    if value is None or value == "":
        return None
    if isinstance(value, (str, PathLike)):
        path = fspath(value)
        if isinstance(path, str):
            return path
    raise ValueError("None or the path of a TOML file")


def archive_path(value: object) -> str | None:
    """Parse the path of a WARC file. None and an empty text mean that there is none."""
    if value is None or value == "":
        return None
    if isinstance(value, (str, PathLike)):
        path = fspath(value)
        if isinstance(path, str) and path.endswith(".warc.gz") and _TEMPLATE.fullmatch(path):
            return path
    raise ValueError(
        "None or a path that ends in .warc.gz, in which %(name)s, %(time)s and %(pid)s are "
        "replaced and %% stands for %"
    )


def _whole_number(value: object, *, minimum: int) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = minimum - 1
    if isinstance(value, bool) or number < minimum:
        raise ValueError(f"a whole number, {minimum} or more")
    return number


def _number(value: object) -> float:
    """Return a value as a number; NaN if it is not a number."""
    try:
        return float("nan") if isinstance(value, bool) else float(str(value))
    except ValueError:
        return float("nan")


def _host_name(name: str) -> str:
    is_ipv6 = name.count(":") > 1 and not name.startswith("[")
    origin = origin_of(safe_url_string(f"http://[{name}]/" if is_ipv6 else f"http://{name}/"))
    parts = urlsplit(origin or "")
    if set(name) & set("/?#@*%") or parts.hostname is None or parts.port is not None:
        raise ValueError
    if not is_ipv6 and name.rstrip(".").rpartition("]")[2].count(":"):  # the default port
        raise ValueError
    return parts.hostname


def store(value: object) -> StoreSource | None:
    """Parse the URL of a store, or what returns one. None and the empty text mean no store."""
    if value is None or value == "":
        return None
    if callable(value) or (isinstance(value, str) and find_type(value) is not None):
        return value
    raise ValueError(f"None, {store_forms()}")


def user_agents(value: object) -> str | tuple[str, ...] | None:
    """Parse a User-Agent header, a product token, or a list of tokens. None means none of these."""
    if not value:
        return None
    # A header may contain commas. On a command line, commas separate the tokens of a list.
    if isinstance(value, str) and (set(value) & set("/( ") or "," not in value):
        return value
    try:
        return strings(value)
    except ValueError:
        expected = "a product token, a list of them, or a User-Agent header"
        raise ValueError(expected) from None


# The settings


_ROBOTS_AGENT = {"name": "ROBOTSTXT_USER_AGENT", "default": None, "parse": user_agents}


def _setting(name: str, default: Any, parse: Callable[[object], Any], meaning: str) -> Any:
    return field(metadata={"name": name, "default": default, "parse": parse, "meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one crawl. Times are seconds unless the meaning says otherwise."""

    strict: bool = _setting(
        "REP_STRICT",
        False,
        boolean,
        "Parse robots.txt files exactly as RFC 9309 defines them. By default, the parser also "
        "accepts what Google's parser accepts: misspelled field names, missing colons, and "
        "`Allow: /index.html` as a rule for the directory.",
    )
    conditional_get: bool = _setting(
        "REP_CONDITIONAL_GET",
        True,
        boolean,
        "Send `If-None-Match` or `If-Modified-Since` when a robots.txt is fetched again and the "
        "last response had an `ETag` or `Last-Modified` header. The server can then answer 304, "
        "without a body. `False` sends plain GET requests, as Google does.",
    )
    timeout: float = _setting(
        "REP_TIMEOUT",
        30.0,
        seconds,
        "Seconds after which one attempt to fetch a robots.txt fails. The time includes redirects "
        "and the body.",
    )
    retry_times: int = _setting(
        "REP_RETRY_TIMES",
        2,
        count,
        "How often the fetch of an unreachable robots.txt is retried at once, after pauses of 1, "
        "2, 4, … seconds. Requests to the site wait during these retries.",
    )
    too_many_redirects: str = _setting(
        "REP_TOO_MANY_REDIRECTS",
        "unavailable",
        choice("unavailable", "unreachable"),
        "The result of a robots.txt that redirects more than five times or in a loop. "
        "`unavailable` allows all requests to the site. `unreachable` uses the last good copy, or "
        "disallows all requests if there is none.",
    )
    allow_private_redirects: bool = _setting(
        "REP_ALLOW_PRIVATE_REDIRECTS",
        False,
        boolean,
        "Follow redirects of a robots.txt from a public site to an address that is not public, "
        "such as a loopback, private or link-local address. By default, such a redirect is "
        "refused and the robots.txt is *unreachable*, so that a site cannot make the crawler send "
        "requests to your internal services.",
    )
    inherit_meta: tuple[str, ...] = _setting(
        "REP_INHERIT_META",
        ("proxy", "bindaddress", "download_slot"),
        strings,
        "The `meta` keys that the request for a robots.txt copies from the request for the page. "
        "Add a key if your download handler needs it, such as `impersonate`. `proxy` is copied "
        "with its credentials. `download_slot` is copied only if the robots.txt is on the host of "
        "the page. Keys that select a browser are never copied.",
    )
    disallow_statuses: frozenset[int] = _setting(
        "REP_DISALLOW_STATUSES",
        (),
        statuses(400, 499),
        "The 4xx statuses of a robots.txt that disallow all requests to the site, such as `[401, "
        "403]`. By default, 4xx statuses allow all requests (RFC 9309 §2.3.1.3).",
    )
    unreachable_statuses: frozenset[int] = _setting(
        "REP_UNREACHABLE_STATUSES",
        (407, 429),
        statuses(400, 499),
        "The 4xx statuses of a robots.txt that mean *unreachable*, as 5xx statuses do.",
    )
    server_error_hosts: frozenset[str] = _setting(
        "REP_5XX_AS_404",
        (),
        host_names,
        "The host names of sites that respond with a 5xx status if a file does not exist. A 5xx "
        "status of a robots.txt on these hosts counts as 404. A name applies to all schemes and "
        "ports of the host, but not to its subdomains.",
    )
    unreachable: str = _setting(
        "REP_UNREACHABLE",
        "disallow",
        choice("disallow", "allow", "wait"),
        "What happens to requests to a site whose robots.txt is unreachable if there is no good "
        "copy of it. `disallow` drops them. `wait` keeps them until the next attempt to fetch the "
        "robots.txt, for up to `REP_MAX_WAIT` in all, and then drops them. `allow` sends them. "
        "This breaks RFC 9309 §2.3.1.4, which says that crawlers MUST assume complete disallow.",
    )
    unreachable_days: float = _setting(
        "REP_UNREACHABLE_DAYS",
        30.0,
        days,
        "Days after which a site is allowed if its robots.txt was unreachable all the time and "
        "there is no good copy of it (RFC 9309 §2.3.1.4).",
    )
    cache_min: float = _setting(
        "REP_CACHE_MIN",
        300.0,
        seconds,
        "Seconds for which a robots.txt is used at least before it is fetched again, even if its "
        "response headers give a shorter lifetime.",
    )
    cache_max: float = _setting(
        "REP_CACHE_MAX",
        86400.0,
        seconds,
        "Seconds for which a robots.txt is used at most before it is fetched again, even if its "
        "response headers give a longer lifetime. RFC 9309 §2.4 recommends no more than 24 hours.",
    )
    cache_size: int = _setting(
        "REP_CACHE_SIZE",
        1_000_000,
        positive_count,
        "How many origins (scheme, host and port) are kept in memory. The least recently used "
        "origins are removed first. The files of all but the 5,000 most recently used ones are "
        "compressed, to about 1 KB for each. See [scaling](../usage/scaling.md#memory).",
    )
    concurrent_fetches: int = _setting(
        "REP_CONCURRENT_FETCHES",
        100,
        positive_count,
        "How many robots.txt files are fetched at the same time, in addition to "
        "`CONCURRENT_REQUESTS`. A fetch that takes longer than 0.25 seconds no longer counts, so "
        "that slow sites do not block others. At most six times as many fetches run in total. "
        "If more are needed then, those that have taken 8 seconds are ended.",
    )
    obey_crawl_delay: bool = _setting(
        "REP_OBEY_CRAWL_DELAY",
        True,
        boolean,
        "Obey the `Crawl-delay`, `Request-rate` and `Visit-time` of a robots.txt.",
    )
    max_delay: float = _setting(
        "REP_MAX_DELAY",
        300.0,
        seconds,
        "Seconds between two requests to a site at most, even if its `Crawl-delay` or "
        "`Request-rate` requires more.",
    )
    max_wait: float = _setting(
        "REP_MAX_WAIT",
        300.0,
        seconds,
        "Seconds that the requests of a site wait at most until its `Visit-time` begins. If they "
        "would wait longer, they are dropped with the reason `visit-time`. With "
        '`REP_UNREACHABLE="wait"`, this is also the time that the requests of a site wait in all '
        "after the crawl has found its robots.txt unreachable; if the next attempt is later, they "
        "are dropped with the reason `unreachable`.",
    )
    check_final_url: str = _setting(
        "REP_CHECK_FINAL_URL",
        "annotate",
        choice("annotate", "drop", "ignore"),
        "What happens if the URL of a response is not the URL of its request, because a browser "
        "or a download handler followed redirects. `annotate` checks the URL of the response, "
        'stores the verdict in `response.meta["robotstxt"]` and counts it. `drop` also drops the '
        "response if its URL is disallowed. `ignore` checks nothing.",
    )
    answer_robots_txt: bool = _setting(
        "REP_ANSWER_ROBOTS_TXT",
        True,
        boolean,
        "Answer a spider's own request for a robots.txt, such as that of `SitemapSpider`, from "
        "memory if the copy there is fresh and complete. `False` sends the request to the server.",
    )
    filter_links: bool = _setting(
        "REP_FILTER_LINKS",
        False,
        boolean,
        "Drop the requests of a spider before they reach the scheduler if the robots.txt of their "
        "site is in memory and disallows them. Requests with an `errback` are not filtered. See "
        "[below](#filtering-links).",
    )
    noindex: str = _setting(
        "REP_NOINDEX",
        "annotate",
        choice("annotate", "drop"),
        "What happens to a page that says `noindex`, or whose `unavailable_after` date has "
        'passed. `annotate` records it in `response.meta["page_directives"]`. `drop` also drops '
        "the items of the page.",
    )
    nofollow: str = _setting(
        "REP_NOFOLLOW",
        "annotate",
        choice("annotate", "drop"),
        "What happens to a page that says `nofollow`. `annotate` records it in "
        '`response.meta["page_directives"]`. `drop` also drops the requests that come from the '
        'page, except those with `meta={"obey_nofollow": False}`.',
    )
    rel_nofollow: str = _setting(
        "REP_REL_NOFOLLOW",
        "annotate",
        choice("annotate", "drop"),
        'What happens to a request for a link with `rel="nofollow"`. `annotate` records it in '
        '`request.meta["link_rel"]`. `drop` drops the request, unless it has '
        '`meta={"obey_nofollow": False}`.',
    )
    require_usage: tuple[str, ...] = _setting(
        "REP_REQUIRE_USAGE",
        (),
        strings,
        "The uses for which you collect content, such as `['train-ai']`. Items of pages that "
        "refuse one of these uses are dropped. A use that a site does not mention is not refused.",
    )
    training_tokens: tuple[str, ...] = _setting(
        "REP_TRAINING_TOKENS",
        (),
        tokens,
        "Product tokens of crawlers that collect training data, such as `['Google-Extended', "
        "'Applebot-Extended', 'GPTBot', 'CCBot', 'ClaudeBot']`. If the robots.txt of a site has a "
        "group that names one of them, and disallows a URL to it, that is read as a refusal of "
        "`train-ai` for the URL. The group of `*` does not count. This reading is scrapy-rep's "
        "own: RFC 9309 gives such a group a meaning only for the crawler that it names.",
    )

    tdmrep: bool = _setting(
        "REP_TDMREP",
        False,
        boolean,
        "Also fetch the `/.well-known/tdmrep.json` of each origin, which reserves the rights to "
        "text and data mining for the pages that it names (TDMRep). The settings for robots.txt "
        "files apply to it, and the robots.txt of the origin must allow it. See "
        "[pages](../usage/pages.md#tdm-files).",
    )

    local_rules: str | None = _setting(
        "REP_LOCAL_RULES",
        None,
        toml_path,
        "The path of a TOML file with your own rules for sites: URLs that you do not crawl, longer "
        "delays, and exceptions that the owner of a site has granted. See [local "
        "rules](../usage/local-rules.md).",
    )

    store: str | Callable[..., Any] | None = _setting(  # noqa: RUF009 - it is not changed
        "REP_STORE",
        None,
        store,
        "The URL of a store that keeps robots.txt results for later crawls. `sqlite:///path` is "
        "for crawls on one machine, `redis://host:port/db` for crawlers on several machines. "
        "`redis+cluster://` and `redis+sentinel://` are for a Redis Cluster and for Sentinel. "
        "`memory://name` is shared by the crawls of one process, and ends with it. A class, or its "
        "import path, is a [store of your own](../usage/stores.md#a-store-of-your-own). `None` "
        "keeps the results in the memory of the crawl or, if `JOBDIR` is set, in a SQLite file in "
        "that directory.",
    )
    archive: str | None = _setting(
        "REP_ARCHIVE",
        None,
        archive_path,
        "The path of a WARC file, such as `'archive/%(name)s.warc.gz'`. Each request for a "
        "robots.txt is added to it, with its response. `%(name)s` is the name of the spider, "
        "`%(time)s` the start of the crawl, `%(pid)s` the number of the process. See "
        "[archive](../usage/archive.md). Needs the extra "
        "[`archive`](../usage/installation.md#extras).",
    )

    report: tuple[str, ...] = _setting(
        "REP_REPORT",
        None,
        paths,
        "The path of the report of the crawl, such as `'reports/%(name)s-%(time)s.json'`, or a "
        "list of paths. `.json` writes data, and `.html` a page. It is written when the spider "
        "closes. `%(name)s` is the name of the spider, `%(time)s` the start of the crawl, and any "
        "other name an attribute of the spider, as in `FEEDS`. `None` writes no report. See "
        "[reports](../usage/reports.md).",
    )

    # Settings of Scrapy and of other plugins, in the form in which the package uses them.
    robots_agent: str | tuple[str, ...] | None = None
    """ROBOTSTXT_USER_AGENT: a User-Agent header, or product tokens in order of preference."""
    jobdir: str | None = None
    concurrent_requests: int = 16
    """CONCURRENT_REQUESTS; 0 means no limit."""
    domain_concurrency: int = 8
    """CONCURRENT_REQUESTS_PER_DOMAIN."""
    slot_concurrency: Mapping[str, int] = field(default_factory=dict)
    """The concurrency of the slots in DOWNLOAD_SLOTS that set one."""
    connections: int | None = None
    """How many connections the download handler of HTTP has; None if it has no limit of its own."""
    zyte_api_params: tuple[str, ...] | None = None
    """The names in ZYTE_API_AUTOMAP_PARAMS; None if scrapy-zyte-api is not configured."""
    splash_url: str = ""
    """The URL of the Splash service that scrapy-splash uses."""
    zyte_api_transparent_mode: bool = False
    """Whether scrapy-zyte-api downloads every request."""
    http_cache: bool = False
    http_cache_only: bool = False
    """Whether Scrapy's HTTP cache ignores requests that it has no response to."""
    page_agent: str | bytes | None = None
    """The User-Agent header of requests that do not set one."""
    has_default_agent: bool = False
    """Whether the product token is that of Scrapy itself, because no setting names the crawler."""

    def __post_init__(self) -> None:
        if self.cache_min > self.cache_max:
            raise SettingError(
                f"REP_CACHE_MIN is {self.cache_min!r}: it must not be above REP_CACHE_MAX, "
                f"which is {self.cache_max!r}"
            )

    @classmethod
    def read(cls, settings: BaseSettings, spider: Spider | None = None) -> Settings:
        """Return the values of all settings, defaults included.

        Raises :class:`SettingError` for an unusable value.
        """
        values = {name: _read(settings, metadata) for name, metadata in _documented_fields()}
        robots_agent = _read(settings, _ROBOTS_AGENT)
        agent = page_agent(settings, spider)
        return cls(
            **values,
            robots_agent=robots_agent,
            jobdir=settings["JOBDIR"] or None,
            concurrent_requests=_integer(settings, "CONCURRENT_REQUESTS"),
            domain_concurrency=_integer(settings, "CONCURRENT_REQUESTS_PER_DOMAIN"),
            slot_concurrency=slot_concurrency(settings),
            connections=connection_limit(settings),
            zyte_api_params=zyte_api_params(settings),
            splash_url=str(settings.get("SPLASH_URL") or "http://127.0.0.1:8050"),
            zyte_api_transparent_mode=settings.getbool("ZYTE_API_TRANSPARENT_MODE"),
            http_cache=settings.getbool("HTTPCACHE_ENABLED"),
            http_cache_only=settings.getbool("HTTPCACHE_IGNORE_MISSING"),
            page_agent=agent,
            has_default_agent=robots_agent is None and agent == default_settings.USER_AGENT,
        )

    def concurrency_of(self, slot: str) -> int:
        """Return how many requests of a download slot may be in progress at once."""
        return self.slot_concurrency.get(slot, self.domain_concurrency)

    def user_agent(self, header: str | bytes | None) -> str | bytes | tuple[str, ...]:
        """Return the user agent whose rules apply to a request with this User-Agent header."""
        return self.robots_agent or header or self.page_agent or ""


def read_settings(crawler: Crawler) -> Settings:
    """Return the settings of a crawl. Raises :class:`SettingError` for an unusable value."""
    return Settings.read(crawler.settings, crawler.spider)


def changed_settings(settings: Settings) -> dict[str, object]:
    """Return the values that differ from their defaults, by the name of the setting.

    They are without passwords. A sequence or set is a list.
    """
    return {
        metadata["name"]: _plain(without_passwords(value))
        for name, metadata in _documented_fields()
        if (value := getattr(settings, name)) != metadata["parse"](metadata["default"])
    }


def _plain(value: object) -> object:
    match value:
        case tuple():
            return list(value)
        case frozenset():
            return sorted(value)
    return value


def unknown_settings(crawler: Crawler) -> list[tuple[str, str | None]]:
    """Return settings with a prefix of robots.txt settings that do not exist.

    Each comes with the most similar setting that exists, or None.
    """
    return unknown_names(crawler.settings)


def unknown_names(settings: BaseSettings) -> list[tuple[str, str | None]]:
    """Return what :func:`unknown_settings` does, for settings without a crawl."""
    known = [metadata["name"] for _, metadata in _documented_fields()] + list(_SCRAPY_NAMES)
    return [
        (name, next(iter(get_close_matches(name, known, n=1)), None))
        for name in sorted(str(name) for name in settings)
        if name.startswith(("REP_", "ROBOTSTXT_")) and name not in known
    ]


def is_strict(crawler: Crawler) -> bool:
    """Return REP_STRICT. Raises :class:`SettingError` for an unusable value."""
    return bool(_read(crawler.settings, dict(_documented_fields())["strict"]))


def setting_reference() -> list[tuple[str, Any, str]]:
    """Return the name, default and meaning of every setting, in the order of this module."""
    return [
        (metadata["name"], metadata["default"], metadata["meaning"])
        for _, metadata in _documented_fields()
    ]


def _documented_fields() -> list[tuple[str, Mapping[str, Any]]]:
    return [(item.name, item.metadata) for item in fields(Settings) if item.metadata]


def _read(settings: BaseSettings, metadata: Mapping[str, Any]) -> Any:
    name = metadata["name"]
    value = settings.get(name, metadata["default"])
    try:
        return metadata["parse"](value)
    except ValueError as expected:
        raise _unusable(name, value, str(expected)) from None


def _unusable(name: str, value: object, expected: str) -> SettingError:
    return SettingError(f"{name} is {without_passwords(value)!r}: it must be {expected}")


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


@contextmanager
def _readable(settings: BaseSettings, name: str, expected: str) -> Iterator[None]:
    """Raise :class:`SettingError` if the value of a setting cannot be read."""
    try:
        yield
    except (TypeError, ValueError):
        raise _unusable(name, settings[name], expected) from None


def _integer(settings: BaseSettings, name: str) -> int:
    with _readable(settings, name, "a whole number"):
        return settings.getint(name)


def robotstxt_obey(crawler: Crawler) -> bool:
    """Whether the setting ROBOTSTXT_OBEY is on."""
    return crawler.settings.getbool("ROBOTSTXT_OBEY")


def uses_async_process(settings: BaseSettings) -> bool:
    """Return whether Scrapy's own commands use an AsyncCrawlerProcess with these settings."""
    # The next setting exists since Scrapy 2.15.
    if not settings.getbool("TWISTED_REACTOR_ENABLED", True):
        return True
    is_asyncio = settings["TWISTED_REACTOR"] == default_settings.TWISTED_REACTOR
    return is_asyncio and not settings.getbool("FORCE_CRAWLER_PROCESS")


def scrapy_settings(crawler: Crawler, names: Iterable[str]) -> dict[str, str]:
    """Return those of some settings of Scrapy that have a value, as text."""
    return {
        name: global_object_name(value) if isinstance(value, type) else str(value)
        for name in names
        if (value := crawler.settings.get(name)) is not None
    }


def downloader_middlewares(crawler: Crawler) -> list[type]:
    """Return the enabled downloader middlewares, in the order in which they process requests."""
    priorities = crawler.settings.getwithbase("DOWNLOADER_MIDDLEWARES")
    return [load_object(middleware) for middleware in build_component_list(priorities)]


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


def zyte_api_params(settings: BaseSettings) -> tuple[str, ...] | None:
    """Return the names in ZYTE_API_AUTOMAP_PARAMS; None without scrapy-zyte-api."""
    with _readable(settings, "ZYTE_API_AUTOMAP_PARAMS", "a dict"):
        params = settings.getdict("ZYTE_API_AUTOMAP_PARAMS")
    return tuple(params) if params or settings.getbool("ZYTE_API_TRANSPARENT_MODE") else None


def slot_concurrency(settings: BaseSettings) -> dict[str, int]:
    """Return the concurrency of the download slots in DOWNLOAD_SLOTS that set one."""
    with _readable(settings, "DOWNLOAD_SLOTS", "a dict of dicts, with integers as concurrency"):
        slots = settings.getdict("DOWNLOAD_SLOTS").items()
        return {str(key): int(slot["concurrency"]) for key, slot in slots if "concurrency" in slot}


def connection_limit(settings: BaseSettings) -> int | None:
    """Return how many connections the download handler of HTTP has; None if it has no limit.

    Scrapy's own handlers for Twisted open as many as they get requests. Others have a pool, of
    CONCURRENT_REQUESTS connections in most cases.
    """
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    paths = [handlers.get(scheme) for scheme in ("http", "https")]
    has_pool = any(path is not None and _has_pool(path) for path in paths)
    return _integer(settings, "CONCURRENT_REQUESTS") or None if has_pool else None


def _has_pool(path: str | type) -> bool:
    try:
        bases = load_object(path).__mro__
    except Exception:  # Scrapy logs an error for it
        return False
    for base in bases:
        if base.__module__.startswith(_WITHOUT_POOL):
            return False
        if {"download_request", "_make_request"} & vars(base).keys():
            return True
    return True
