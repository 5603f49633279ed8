"""Every setting of the package: its name, its default, its parser and its meaning.

They are read once, when the crawl starts, into a frozen :class:`Settings`. An unusable value stops
the crawl with a :class:`SettingError`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from scrapy.settings import default_settings

from .exceptions import SettingError
from .scrapy_settings import page_agent, zyte_api_params
from .setting_types import (
    archive_path,
    boolean,
    choice,
    count,
    days,
    host_names,
    paths,
    positive_count,
    seconds,
    statuses,
    store,
    strings,
    tokens,
    toml_path,
    user_agents,
    without_passwords,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


_SCRAPY_NAMES = ("ROBOTSTXT_OBEY", "ROBOTSTXT_PARSER", "ROBOTSTXT_USER_AGENT")
"""Scrapy's own settings for robots.txt."""


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
        "2, 4, … seconds. Requests to the site wait during these retries. If many sites do not "
        "answer, their retries wait for each other while pages are downloaded.",
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
        "robots.txt; it drops those that exceed `REP_MAX_WAITING` or `REP_MAX_WAIT`. `allow` "
        "sends them. This breaks RFC 9309 §2.3.1.4, which says that crawlers MUST assume complete "
        "disallow.",
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
    max_waiting: int = _setting(
        "REP_MAX_WAITING",
        10_000,
        positive_count,
        "How many requests may wait in memory, ready to start, for a robots.txt or for the delay "
        "of their site. More requests are kept as the scheduler keeps them: in memory; with "
        "`JOBDIR` in a temporary file; with scrapy-redis in Redis. If the process is killed, "
        "those that are not in Redis are lost.",
    )
    concurrent_fetches: int = _setting(
        "REP_CONCURRENT_FETCHES",
        100,
        positive_count,
        "How many robots.txt files are fetched at the same time, in addition to "
        "`CONCURRENT_REQUESTS`. A fetch that takes longer than 0.25 seconds no longer counts, so "
        "that slow sites do not block others. At most six times as many fetches run in total. "
        "If more are needed then, those that have taken 8 seconds are ended. While pages are "
        "downloaded, fewer fetches are for sites that have not answered before.",
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
        "Seconds that a request waits at most until the `Visit-time` of its site begins. A "
        "request that would wait longer is dropped with the reason `visit-time`. With "
        '`REP_UNREACHABLE="wait"`, this is also the total time that a request waits for an '
        "unreachable robots.txt; after that, it is dropped with the reason `unreachable`.",
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
    bing_usage: bool = _setting(
        "REP_BING_USAGE",
        False,
        boolean,
        "Read `noarchive` and `nocache` of a page as a refusal of `train-ai` and `ai-use`. This is "
        "Microsoft's reading for Bing, announced in September 2023: content with `noarchive` is "
        "used neither in chat answers nor for training, and of content with `nocache` only URL, "
        "title and snippet are used. Other sites and crawlers may mean only cached copies.",
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
    store_days: float = _setting(
        "REP_STORE_DAYS",
        60.0,
        days,
        "Days after which the store deletes the entry of a site that was not updated.",
    )
    shared_pace: bool = _setting(
        "REP_SHARED_PACE",
        True,
        boolean,
        "Apply the delay between two requests to a site across all crawlers that share the store "
        "in `REP_STORE`. `False` applies it in each crawler on its own.",
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
            zyte_api_params=zyte_api_params(settings),
            splash_url=str(settings.get("SPLASH_URL") or "http://127.0.0.1:8050"),
            zyte_api_transparent_mode=settings.getbool("ZYTE_API_TRANSPARENT_MODE"),
            http_cache=settings.getbool("HTTPCACHE_ENABLED"),
            http_cache_only=settings.getbool("HTTPCACHE_IGNORE_MISSING"),
            page_agent=agent,
            has_default_agent=robots_agent is None and agent == default_settings.USER_AGENT,
        )

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
    value = settings.get(metadata["name"], metadata["default"])
    try:
        return metadata["parse"](value)
    except ValueError as expected:
        name, shown = metadata["name"], without_passwords(value)
        raise SettingError(f"{name} is {shown!r}: it must be {expected}") from None
