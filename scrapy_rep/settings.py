"""Every setting: its name, its default, its meaning, and how it is read.

The only module that reads Scrapy's settings. They are read once, when the crawl starts, into a
frozen :class:`Settings`; a value that cannot be read stops the crawl there, naming the setting,
the value and what it may be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy.settings import default_settings
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object
from w3lib.url import safe_url_string

from .exceptions import SettingError
from .protocol.paths import origin_of
from .stores import url as store_url

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


def _boolean(value: object) -> bool:
    match value:
        case bool():
            return value
        case int() | str() if str(value).strip().lower() in {"1", "true"}:
            return True
        case int() | str() if str(value).strip().lower() in {"0", "false"}:
            return False
    raise ValueError("True or False")


def _whole(value: object, *, least: int = 0) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise ValueError(f"a whole number, {least} or more")
    return number


def _count(value: object) -> int:
    return _whole(value, least=1)


def _seconds(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = -1
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise ValueError("a number of seconds above 0")
    return number


def _days(value: object) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = -1
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        raise ValueError("a number of days, 0 or more")
    return number


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Iterable) or isinstance(value, (bytes, Mapping)):
        raise ValueError("a list")
    words = tuple(str(word).strip() for word in value)
    return tuple(word for word in words if word)


def _statuses(low: int, high: int) -> Callable[[object], frozenset[int]]:
    def read(value: object) -> frozenset[int]:
        meant = f"a list of statuses from {low} to {high}"
        try:
            statuses = frozenset(int(word) for word in _words(value))
        except ValueError:
            raise ValueError(meant) from None
        if any(not low <= status <= high for status in statuses):
            raise ValueError(meant)
        return statuses

    return read


def _hosts(value: object) -> frozenset[str]:
    try:
        return frozenset(map(_host, _words(value)))
    except ValueError:
        raise ValueError("a list of host names, without scheme, port, path or wildcards") from None


def _host(name: str) -> str:
    """A host as origins have it. Raises ValueError for what can be the host of none."""
    is_ipv6 = name.count(":") > 1 and not name.startswith("[")
    key = origin_of(safe_url_string(f"http://[{name}]/" if is_ipv6 else f"http://{name}/"))
    parts = urlsplit(key or "")
    if set(name) & set("/?#@*%") or parts.hostname is None or parts.port is not None:
        raise ValueError
    if not is_ipv6 and name.rstrip(".").rpartition("]")[2].count(":"):  # the default port
        raise ValueError
    return parts.hostname


def _choice(*choices: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise ValueError(" or ".join(repr(choice) for choice in choices))

    return read


def _path(value: object) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, (str, PathLike)):
        path = fspath(value)
        if isinstance(path, str):
            return path
    raise ValueError("None or the path of a TOML file")


_MEMORY_NAME = re.compile("[A-Za-z0-9._-]+")


def _store(value: object) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        scheme, slashes, rest = value.partition("://")
        if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
            return value
        if scheme in ("redis", "rediss", "unix") and slashes and rest:
            return value
        if scheme == "memory" and _MEMORY_NAME.fullmatch(rest):
            return value
    raise ValueError(
        "None, 'sqlite:///path', 'redis://host:port/db' or 'memory://name' (a name of letters, "
        "digits, '-', '_' and '.')"
    )


_SCRAPYS_NAMES = ("ROBOTSTXT_OBEY", "ROBOTSTXT_PARSER", "ROBOTSTXT_USER_AGENT")
"""The settings for robots.txt that Scrapy has."""


def _setting(name: str, default: Any, read: Callable[[object], Any], meaning: str) -> Any:
    return field(metadata={"name": name, "default": default, "read": read, "meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one crawl. Times are seconds unless the meaning says otherwise."""

    strict: bool = _setting(
        "REP_STRICT",
        False,
        _boolean,
        "Read robots.txt files by the letter of RFC 9309, without Google's tolerance of misspelt "
        "field names, missing colons and `Allow: /index.html`.",
    )
    conditional_get: bool = _setting(
        "REP_CONDITIONAL_GET",
        True,
        _boolean,
        "Ask again for a robots.txt with `If-None-Match` or `If-Modified-Since` where the last "
        "answer had a validator. `False` asks plainly, as Google does.",
    )
    timeout: float = _setting(
        "REP_TIMEOUT",
        30.0,
        _seconds,
        "Seconds that one attempt at a robots.txt may take, redirects and body included.",
    )
    retry_times: int = _setting(
        "REP_RETRY_TIMES",
        2,
        _whole,
        "How often an unreachable robots.txt is asked for again at once, after pauses of 1, 2, 4 … "
        "seconds, while requests wait for it.",
    )
    too_many_redirects: str = _setting(
        "REP_TOO_MANY_REDIRECTS",
        "unavailable",
        _choice("unavailable", "unreachable"),
        "What a sixth redirect, or a redirect loop, means: `unavailable` (everything is allowed) "
        "or `unreachable` (everything is disallowed, or the last good copy used).",
    )
    allow_private_redirects: bool = _setting(
        "REP_ALLOW_PRIVATE_REDIRECTS",
        False,
        _boolean,
        "Follow a redirect of a robots.txt from a public site to an address that is not public: "
        "of this machine, of a private network, link-local and the like. By default it is refused, "
        "and the robots.txt is *unreachable*.",
    )
    inherit_meta: tuple[str, ...] = _setting(
        "REP_INHERIT_META",
        ("proxy", "bindaddress", "download_slot"),
        _words,
        "The `meta` keys that the request for a robots.txt gets from the request of the page: "
        "`impersonate`, say, where a download handler needs it. `proxy` comes with its "
        "credentials, `download_slot` only on the host of the page. A key that asks for a browser "
        "is never handed on.",
    )
    disallow_statuses: frozenset[int] = _setting(
        "REP_DISALLOW_STATUSES",
        (),
        _statuses(400, 499),
        "4xx statuses of a robots.txt that disallow the whole site, such as `[401, 403]`. By RFC "
        "9309 they allow it.",
    )
    unreachable_statuses: frozenset[int] = _setting(
        "REP_UNREACHABLE_STATUSES",
        (407, 429),
        _statuses(400, 499),
        "4xx statuses of a robots.txt that are treated as 5xx are: as *unreachable*.",
    )
    server_error_hosts: frozenset[str] = _setting(
        "REP_5XX_AS_404",
        (),
        _hosts,
        "Host names of sites that answer 5xx for every page that is missing: their 5xx counts as "
        "404. A name holds for all ports and schemes, and not for the hosts below it.",
    )
    unreachable: str = _setting(
        "REP_UNREACHABLE",
        "disallow",
        _choice("disallow", "allow", "wait"),
        "What holds for a site whose robots.txt is unreachable and of which there is no copy. "
        "`wait` lets its requests wait for the next attempt, as many as REP_MAX_WAITING and as "
        "long as REP_MAX_WAIT allow; the others are dropped. "
        "`allow` breaks RFC 9309, section 2.3.1.4, which says that such a site MUST be treated as "
        "disallowed.",
    )
    unreachable_days: float = _setting(
        "REP_UNREACHABLE_DAYS",
        30.0,
        _days,
        "Days after which a site whose robots.txt has been unreachable all the time, and of which "
        "there is no copy, is allowed.",
    )
    cache_min: float = _setting(
        "REP_CACHE_MIN",
        300.0,
        _seconds,
        "Seconds that a robots.txt is believed at least, whatever its Cache-Control says.",
    )
    cache_max: float = _setting(
        "REP_CACHE_MAX",
        86400.0,
        _seconds,
        "Seconds that a robots.txt is believed at most. RFC 9309, section 2.4, advises no more "
        "than a day.",
    )
    cache_size: int = _setting(
        "REP_CACHE_SIZE",
        100_000,
        _count,
        "How many origins are kept in memory; the least recently used goes first.",
    )
    max_waiting: int = _setting(
        "REP_MAX_WAITING",
        10_000,
        _count,
        "How many requests that wait for a robots.txt or for the pace of their site are kept in "
        "memory, outside of the scheduler. Where it is reached, the sites with the most waiting "
        "requests give theirs back to the scheduler. A process that is killed loses them.",
    )
    concurrent_fetches: int = _setting(
        "REP_CONCURRENT_FETCHES",
        100,
        _count,
        "How many robots.txt files are fetched at once, besides CONCURRENT_REQUESTS. A fetch that "
        "takes more than 2 seconds counts no longer; four times as many are under way in all.",
    )
    obey_crawl_delay: bool = _setting(
        "REP_OBEY_CRAWL_DELAY",
        True,
        _boolean,
        "Keep the pace that a site asks for with Crawl-delay, Request-rate and Visit-time.",
    )
    max_delay: float = _setting(
        "REP_MAX_DELAY",
        300.0,
        _seconds,
        "Seconds between two requests to a site at most, whatever it asks for.",
    )
    max_wait: float = _setting(
        "REP_MAX_WAIT",
        300.0,
        _seconds,
        "Seconds that a request waits at most for the Visit-time of its site to begin; one that "
        "would have to wait longer is dropped, with the reason `visit-time`. Also the seconds that "
        'it waits at most in all for an unreachable site, where REP_UNREACHABLE is "wait"; then '
        "the reason is `unreachable`.",
    )
    check_final_url: str = _setting(
        "REP_CHECK_FINAL_URL",
        "annotate",
        _choice("annotate", "drop", "ignore"),
        "What is done with a page that ends at another URL than it was asked for at, because a "
        "browser or a download handler follows redirects itself. `annotate` judges that URL, too, "
        "notes the verdict in `response.meta` and counts it; `drop` also drops the page if it is "
        "disallowed; `ignore` does nothing.",
    )
    answer_robots_txt: bool = _setting(
        "REP_ANSWER_ROBOTS_TXT",
        True,
        _boolean,
        "Answer a spider's own request for a robots.txt, such as that of `SitemapSpider`, with the "
        "copy in memory, where that is fresh and complete. `False` asks the server.",
    )
    noindex: str = _setting(
        "REP_NOINDEX",
        "annotate",
        _choice("annotate", "drop"),
        "What is done with a page that says `noindex`, or whose `unavailable_after` is past: "
        "`annotate` notes it in `response.meta`, `drop` drops its items too.",
    )
    nofollow: str = _setting(
        "REP_NOFOLLOW",
        "annotate",
        _choice("annotate", "drop"),
        "The same for a page that says `nofollow`: `drop` drops the requests that come from it, "
        'but those with `meta={"obey_nofollow": False}`.',
    )
    rel_nofollow: str = _setting(
        "REP_REL_NOFOLLOW",
        "annotate",
        _choice("annotate", "drop"),
        'The same for links with `rel="nofollow"`: they are noted in `request.meta`, or dropped.',
    )
    require_usage: tuple[str, ...] = _setting(
        "REP_REQUIRE_USAGE",
        (),
        _words,
        "The uses that content is collected for, such as `['train-ai']`: items of pages that "
        "refuse one of them are dropped. What a site does not mention is not refused.",
    )

    local_rules: str | None = _setting(
        "REP_LOCAL_RULES",
        None,
        _path,
        "The path of a TOML file of your own: URLs that you do not crawl, slower paces, and "
        "exceptions that the owner of a site has allowed. See [local rules](local-rules.md).",
    )

    store: str | None = _setting(
        "REP_STORE",
        None,
        _store,
        "Where what is known of robots.txt files outlives the crawl: `sqlite:///path` for crawls "
        "of one machine, `redis://host:port/db` for the workers of many. `memory://name` is shared "
        "by the crawls of one process, and ends with it. `None` is the memory of the crawl; with "
        "JOBDIR, a SQLite file in there.",
    )
    store_days: float = _setting(
        "REP_STORE_DAYS",
        60.0,
        _days,
        "Days after which the store forgets a site of which nothing new was learnt.",
    )
    shared_pace: bool = _setting(
        "REP_SHARED_PACE",
        True,
        _boolean,
        "Keep the pace that a site asks for across all crawlers that share the store which "
        "REP_STORE names, not in each of them.",
    )

    # Scrapy's own, in the form in which the middleware uses them.
    robots_agent: str | tuple[str, ...] | None = None
    """ROBOTSTXT_USER_AGENT: a header, or product tokens in their order; None if it is not set."""
    jobdir: str | None = None
    zyte_api_params: tuple[str, ...] | None = None
    """Names of ZYTE_API_AUTOMAP_PARAMS; None where no setting of scrapy-zyte-api is."""
    splash_url: str = ""
    """Where the service of scrapy-splash is."""
    zyte_api_transparent_mode: bool = False
    """Whether it downloads every request."""
    http_cache: bool = False
    http_cache_only: bool = False
    """Whether what is not in Scrapy's HTTP cache is not asked for."""
    page_agent: str | bytes | None = None
    """The User-Agent that a request is sent with which has none of its own."""
    has_default_agent: bool = False
    """Whether nothing names the crawler, so that it is `Scrapy`, as all are that have no name."""

    def __post_init__(self) -> None:
        if self.cache_min > self.cache_max:
            raise SettingError(
                f"REP_CACHE_MIN is {self.cache_min!r}: it must not be above REP_CACHE_MAX, "
                f"which is {self.cache_max!r}"
            )

    @classmethod
    def read(cls, settings: BaseSettings, spider: Spider | None = None) -> Settings:
        """The settings as ``settings`` has them, defaults included.

        Raises :class:`SettingError` for a value that cannot be read.
        """
        values = {name: _read(settings, meta) for name, meta in _described()}
        robots_agent = _robots_agent(settings["ROBOTSTXT_USER_AGENT"])
        page_agent = _page_agent(settings, spider)
        return cls(
            **values,
            robots_agent=robots_agent,
            jobdir=settings["JOBDIR"] or None,
            zyte_api_params=_zyte_api_params(settings),
            splash_url=str(settings.get("SPLASH_URL") or "http://127.0.0.1:8050"),
            zyte_api_transparent_mode=settings.getbool("ZYTE_API_TRANSPARENT_MODE"),
            http_cache=settings.getbool("HTTPCACHE_ENABLED"),
            http_cache_only=settings.getbool("HTTPCACHE_IGNORE_MISSING"),
            page_agent=page_agent,
            has_default_agent=robots_agent is None and page_agent == default_settings.USER_AGENT,
        )

    def user_agent(self, header: str | bytes | None) -> str | bytes | tuple[str, ...]:
        """Who a request with this User-Agent header is made as, where rules name crawlers."""
        return self.robots_agent or header or self.page_agent or ""


def read_settings(crawler: Crawler) -> Settings:
    """The settings of a crawl. Raises :class:`SettingError` for a value that cannot be read."""
    return Settings.read(crawler.settings, crawler.spider)


def robotstxt_obey(crawler: Crawler) -> bool:
    """Whether ROBOTSTXT_OBEY is on."""
    return crawler.settings.getbool("ROBOTSTXT_OBEY")


def unknown_settings(crawler: Crawler) -> list[tuple[str, str | None]]:
    """The settings of a crawl whose names look like ours or Scrapy's for robots.txt, and are not.

    Each comes with the known name that is the most like it, None where none is.
    """
    known = [meta["name"] for _, meta in _described()] + list(_SCRAPYS_NAMES)
    return [
        (name, next(iter(get_close_matches(name, known, n=1)), None))
        for name in sorted(filter(_looks_like_ours, crawler.settings))
        if name not in known
    ]


def _looks_like_ours(name: object) -> bool:
    return isinstance(name, str) and name.startswith(("REP_", "ROBOTSTXT_"))


def downloader_middlewares(crawler: Crawler) -> list[type]:
    """The downloader middlewares that are not switched off, in the order in which requests pass."""
    written = crawler.settings.getwithbase("DOWNLOADER_MIDDLEWARES")
    return [load_object(each) for each in build_component_list(written)]


def is_strict(crawler: Crawler) -> bool:
    """REP_STRICT alone, for those who only parse."""
    return bool(_read(crawler.settings, dict(_described())["strict"]))


def without_password(value: object) -> object:
    """``value`` as it may be shown: in a URL that holds a password, stars in place of it."""
    match value:
        case str():
            return store_url.without_password(value)
        case bytes():
            return store_url.without_password(value.decode("latin-1")).encode("latin-1")
        case list() | tuple():
            return type(value)(without_password(each) for each in value)
        case Mapping():
            return {without_password(key): without_password(each) for key, each in value.items()}
    return value


def setting_reference() -> list[tuple[str, Any, str]]:
    """Name, default and meaning of every setting of this package, in the order of this module."""
    return [(meta["name"], meta["default"], meta["meaning"]) for _, meta in _described()]


def _described() -> list[tuple[str, Mapping[str, Any]]]:
    return [(each.name, each.metadata) for each in fields(Settings) if each.metadata]


def _read(settings: BaseSettings, meta: Mapping[str, Any]) -> Any:
    value = settings.get(meta["name"], meta["default"])
    try:
        return meta["read"](value)
    except ValueError as expected:
        name, shown = meta["name"], without_password(value)
        raise SettingError(f"{name} is {shown!r}: it must be {expected}") from None


def _robots_agent(value: object) -> str | tuple[str, ...] | None:
    if not value:
        return None
    # A header may hold commas, a list of tokens (as given on a command line) has nothing but.
    if isinstance(value, str) and (set(value) & set("/( ") or "," not in value):
        return value
    try:
        return _words(value)
    except ValueError:
        raise SettingError(
            f"ROBOTSTXT_USER_AGENT is {value!r}: it must be a product token, a list of them, or a "
            "User-Agent header"
        ) from None


def _zyte_api_params(settings: BaseSettings) -> tuple[str, ...] | None:
    params = settings.getdict("ZYTE_API_AUTOMAP_PARAMS")
    return tuple(params) if params or settings.getbool("ZYTE_API_TRANSPARENT_MODE") else None


def _page_agent(settings: BaseSettings, spider: Spider | None) -> str | bytes | None:
    # The middleware runs before Scrapy puts these on the request: DefaultHeadersMiddleware first,
    # then UserAgentMiddleware, which lets a spider's attribute take precedence.
    for name, value in settings.getdict("DEFAULT_REQUEST_HEADERS").items():
        if value is not None and str(name).lower() == "user-agent":
            return value if isinstance(value, bytes) else str(value)
    for agent in (getattr(spider, "user_agent", None), settings["USER_AGENT"]):
        if isinstance(agent, (str, bytes)) and agent:
            return agent
    return None
