from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.settings import Settings as ScrapySettings

from scrapy_rep.exceptions import SettingError
from scrapy_rep.settings import _SETTINGS, Settings, changed_settings

DEFAULTS = {
    setting.name: setting.default
    for setting in _SETTINGS.values()
    if setting.name.startswith("REP_")
}


def read(spider: Spider | None = None, **values: Any) -> Settings:
    return Settings.read(ScrapySettings(values), spider)


def test_defaults_are_what_the_reference_says() -> None:
    assert read(**DEFAULTS) == read()
    page: dict[str, Any] = {name: default.strip("'") for name, default in documented()}
    assert read(**page) == read()  # as on a command line


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        ({"REP_TDMREP": True}, "tdmrep", True),
        ({"REP_TDMREP": "True"}, "tdmrep", True),  # as on a command line
        ({"REP_TDMREP": None}, "tdmrep", False),  # Scrapy's way of saying: not set
        ({"REP_TIMEOUT": "2.5"}, "timeout", 2.5),
        ({"REP_RETRY_TIMES": "0"}, "retry_times", 0),
        ({"REP_DISALLOW_STATUSES": "401, 403"}, "disallow_statuses", {401, 403}),
        ({"REP_DISALLOW_STATUSES": []}, "disallow_statuses", set()),
        ({"REP_5XX_AS_404_HOSTS": ["Example.COM.", "b.example"]}, "server_error_hosts",
         {"example.com", "b.example"}),
        ({"REP_5XX_AS_404_HOSTS": ["::1", "[2001:DB8::0:1]", "münchen.example", "10.0.0.1"]},
         "server_error_hosts", {"::1", "2001:db8::1", "xn--mnchen-3ya.example", "10.0.0.1"}),
        ({"REP_UNREACHABLE_DAYS": 0}, "unreachable_days", 0),
        ({"REP_ON_TOO_MANY_REDIRECTS": "unreachable"}, "on_too_many_redirects", "unreachable"),
        ({"REP_NOINDEX": "drop"}, "noindex", "drop"),
        ({"REP_INTENDED_USES": "train-ai, search"}, "intended_uses", ("train-ai", "search")),
        ({"REP_ARCHIVE": ""}, "archive", None),
        ({"REP_ARCHIVE": Path("a/%(name)s-%(time)s-%(pid)s-%%.warc.gz")}, "archive",
         "a/%(name)s-%(time)s-%(pid)s-%%.warc.gz"),
        ({"ROBOTSTXT_USER_AGENT": "bot"}, "robots_agent", "bot"),
        ({"ROBOTSTXT_USER_AGENT": ["a", "b"]}, "robots_agent", ("a", "b")),
        ({"ROBOTSTXT_USER_AGENT": "a, b"}, "robots_agent", "a, b"),  # a space: a header
        ({"ROBOTSTXT_USER_AGENT": "a,b"}, "robots_agent", ("a", "b")),
        ({"USER_AGENT": "a/1", "DEFAULT_REQUEST_HEADERS": {"user-AGENT": "b/1"}},
         "page_agent", "b/1"),
        ({"USER_AGENT": "a/1", "DEFAULT_REQUEST_HEADERS": {"User-Agent": b"b/1"}},
         "page_agent", b"b/1"),
        ({"USER_AGENT": "a/1", "DEFAULT_REQUEST_HEADERS": {"User-Agent": None}},
         "page_agent", "a/1"),
        ({"REP_TTL_RANGE": "60, 3600"}, "ttl_range", (60, 3600)),
        ({"REP_DISALLOW_STATUSES": " [401, 403] "}, "disallow_statuses", {401, 403}),
        ({"REP_INTENDED_USES": "['tdm', \"use=full\"]"}, "intended_uses", ("tdm", "use=full")),
        ({"REP_5XX_AS_404_HOSTS": "[::1], b.example"}, "server_error_hosts", {"::1", "b.example"}),
        ({"ROBOTSTXT_USER_AGENT": "['a', 'b']"}, "robots_agent", ("a", "b")),
        ({}, "report", ()),
        ({"REP_REPORT": "a.json, b/%(name)s.json"}, "report", ("a.json", "b/%(name)s.json")),
        ({"REP_REPORT": [Path("a.json"), "b.json"]}, "report", ("a.json", "b.json")),
    ],
)  # fmt: skip
def test_a_value_is_read(values: dict[str, Any], field: str, expected: object) -> None:
    assert getattr(read(**values), field) == expected


def test_the_attribute_of_a_spider_is_its_user_agent() -> None:
    class Named(Spider):
        name = "named"
        user_agent = "named/1"

    assert read(Named(), USER_AGENT="a/1").page_agent == "named/1"


ARCHIVE = (
    "None or a path that ends in .warc.gz, in which %(name)s, %(time)s and %(pid)s are "
    "replaced and %% stands for %"
)
NO_ARCHIVES = (1, "a.warc", "%(nam)s.warc.gz", "100%.warc.gz", "a\0.warc.gz")
NO_HOSTS = ("b.example:8080", "[::1]:80", "http://b.example", "*.b.example", "b%2e.example")
HOSTS = "a list of host names, without scheme, port, path or wildcards"
RANGE = "two numbers of seconds above 0, the smaller one first"
NO_RANGES = (300, [300], [300, 200], [0, 300], [1, "inf"], [1, 2, 3], "a,b", "[1", "(1)")
USES = (
    "a list of 'train-ai', 'ai-use', 'search', 'tdm', 'ai-train', 'ai-input', 'use=immediate', "
    "'use=reference', 'use=full'"
)
SLOTS = "a dict of dicts, with integers as concurrency, and seconds as delay"


@pytest.mark.parametrize(
    ("name", "value", "may_be"),
    [
        ("REP_TDMREP", "maybe", "True or False"),
        ("REP_TIMEOUT", 0, "a number of seconds above 0"),
        ("REP_TIMEOUT", float("nan"), "a number of seconds above 0"),
        ("REP_RETRY_TIMES", -1, "a whole number, 0 or more"),
        ("REP_RETRY_TIMES", 1.5, "a whole number, 0 or more"),
        *(("REP_TTL_RANGE", seconds, RANGE) for seconds in NO_RANGES),
        ("REP_CACHE_SIZE", 0, "a whole number, 1 or more"),
        ("REP_UNREACHABLE_DAYS", "inf", "a number of days, 0 or more"),
        ("REP_DISALLOW_STATUSES", [500], "a list of statuses from 400 to 499"),
        ("REP_DISALLOW_STATUSES", ["no"], "a list of statuses from 400 to 499"),
        *(("REP_ARCHIVE", path, ARCHIVE) for path in NO_ARCHIVES),
        *(("REP_5XX_AS_404_HOSTS", ["a.example", host], HOSTS) for host in NO_HOSTS),
        ("REP_5XX_AS_404_HOSTS", 1, HOSTS),
        ("REP_ON_UNREACHABLE", "ignore", "'disallow' or 'allow' or 'wait'"),
        ("REP_ON_TOO_MANY_REDIRECTS", 5, "'unavailable' or 'unreachable'"),
        ("REP_NOINDEX", True, "'annotate' or 'drop'"),
        ("REP_REL_NOFOLLOW", "Drop", "'annotate' or 'drop'"),
        *(("REP_INTENDED_USES", value, USES) for value in (1, ["tdm", "use"], ["train_ai"])),
        ("REP_REPORT", 7, "None, a path or a list of paths"),
        ("REP_REPORT", ["a.json", 7], "None, a path or a list of paths"),
        ("REP_REPORT", {"a.json": {}}, "None, a path or a list of paths"),
        ("ROBOTSTXT_USER_AGENT", 7, "a product token, a list of them, or a User-Agent header"),
        ("CONCURRENT_REQUESTS", "abc", "a whole number, 0 or more"),
        ("HTTPCACHE_IGNORE_MISSING", "maybe", "True or False"),
        ("ZYTE_API_TRANSPARENT_MODE", "x", "True or False"),
        ("DOWNLOAD_SLOTS", {"a": {"concurrency": "x"}}, SLOTS),
        ("DOWNLOAD_SLOTS", {"a": {"concurrency": None}}, SLOTS),
        ("DOWNLOAD_SLOTS", {"a": {"delay": "long"}}, SLOTS),
    ],
)
def test_an_unusable_value_is_named_with_what_it_may_be(name: str, value: Any, may_be: str) -> None:
    with pytest.raises(SettingError) as error:
        read(**{name: value})
    assert str(error.value) == f"{name} is {value!r}: it must be {may_be}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("postgres://user:Zk9@h/db", "'postgres://user:***@h/db'"),
        (b"redis://:Zk9@h/0", "b'redis://:***@h/0'"),
        ({"url": ["redis://:Zk9@h/0"]}, "{'url': ['redis://:***@h/0']}"),
    ],
)
def test_a_password_is_not_shown(value: object, shown: str) -> None:
    with pytest.raises(SettingError) as error:
        read(REP_STORE=value)
    assert str(error.value).startswith(f"REP_STORE is {shown}: it must be None, 'sqlite:")


def documented() -> list[tuple[str, str]]:
    path = Path(__file__).parent.parent / "docs" / "reference" / "settings.md"
    return re.findall(r"^\| `(REP_\w+)` \| `(.+?)` \| .{20}", path.read_text("utf-8"), re.MULTILINE)


def test_the_documentation_has_every_setting_with_its_default() -> None:
    assert sorted(documented()) == sorted(
        (name, repr(list(default) if isinstance(default, tuple) else default))
        for name, default in DEFAULTS.items()
    )


def test_changed_settings_are_listed_without_passwords() -> None:
    settings = {
        "REP_STORE": "redis://:Zk9@h/0",
        "REP_TIMEOUT": "30",  # the default, as text
        "REP_NOINDEX": "drop",
        "REP_TDMREP": "1",
        "REP_REPORT": "a.json",
        "REP_DISALLOW_STATUSES": "403,401",
    }
    assert changed_settings(Settings.read(ScrapySettings(settings))) == {
        "REP_NOINDEX": "drop",
        "REP_STORE": "redis://:***@h/0",
        "REP_TDMREP": True,
        "REP_REPORT": ["a.json"],
        "REP_DISALLOW_STATUSES": [401, 403],
    }
