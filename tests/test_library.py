"""The package as a library by itself, used as its documentation says: parse, ask, list."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import pytest
from scrapy.utils.misc import load_object

import scrapy_rep
from scrapy_rep import Reason, RobotsTxt, Verdict, lint, robots_txt_url

ROBOTS_TXT = b"""\
User-agent: *
Disallow: /private
Crawl-delay: 2

User-agent: MyBot
User-agent: MJ12bot/1.4
Allow: /private/open
Disallow: /private
Disallow: /*.pdf$
Fetch-hint: slow

Sitemap: /sitemap.xml
Disallow: /late
"""

SITE = "https://example.com"


@pytest.fixture
def robots() -> RobotsTxt:
    return RobotsTxt.parse(ROBOTS_TXT, url=f"{SITE}/robots.txt")


# The truth of a verdict


def test_a_verdict_is_true_where_the_url_is_allowed(robots: RobotsTxt) -> None:
    for _ in range(3):  # from the text, while the index is built, and from the index
        assert not robots.verdict(f"{SITE}/private", "mybot")
        assert robots.verdict(f"{SITE}/public", "mybot")
    assert bool(Verdict(True, Reason.NO_RULES)) is True
    assert bool(Verdict(False, Reason.UNREACHABLE)) is False


# The constructor and the body


def test_the_constructor_reads_a_body_as_parse_does() -> None:
    rules = "User-agent: *\nDisallow: /a"
    late = b"User-agent: *\n" + b"#" * 512_000 + b"\nDisallow: /a"
    for body in (b"\xef\xbb\xbf" + rules.encode(), rules.encode("utf-16"), rules.encode()):
        assert not RobotsTxt(body).allowed("/a", "mybot")
        assert RobotsTxt(body) == RobotsTxt.parse(body)
    assert RobotsTxt(late).allowed("/a", "mybot")
    assert RobotsTxt(b"Useragent: *\nDisallow: /a", strict=True).allowed("/a", "mybot")


@pytest.mark.parametrize("body", ["User-agent: *\nDisallow: /" + "secret" * 100, None, bytearray()])
def test_a_body_of_another_type_is_refused_and_not_quoted(body: Any) -> None:
    for read in (RobotsTxt, RobotsTxt.parse, partial(RobotsTxt.from_response, 404), lint):
        with pytest.raises(TypeError, match=f"must be bytes, not {type(body).__name__}") as info:
            read(body)
        assert "secret" not in str(info.value)
        assert len(str(info.value)) < 100


# URLs


@pytest.mark.parametrize(
    "url",
    [
        "mybot", "://a", "x?u=http://h/", "mybot/1.0 (+https://example.com/bot)", "", "private",
        "?q", "#a", "example.com/a",
        "mailto:a@example.com", "file:///etc/passwd", "data:,a", "about:blank", "s3://bucket/a",
        "javascript:void(0)", "http:/a", "https:", "http//example.com", "https\u017f://example.com",
    ],
)  # fmt: skip
def test_a_url_that_is_neither_absolute_nor_a_path_is_refused(robots: RobotsTxt, url: str) -> None:
    robots.verdict("/a", "mybot")
    robots.verdict("/a", "mybot")  # there is an index now
    by_url = (robots.content_usage, robots.content_signals)
    for ask in (robots.allowed, robots.verdict, robots.matches, *by_url):
        with pytest.raises(ValueError, match="absolute") as info:
            ask(url, "mybot")
        assert repr(url) in str(info.value)
    with pytest.raises(ValueError, match="absolute"):
        robots.canonicalize(url)


def test_a_refused_url_is_cut_and_escaped(robots: RobotsTxt) -> None:
    with pytest.raises(ValueError, match=r"\\x1b") as info:
        robots.allowed("x\x1b[2J" + "a" * 10_000, "mybot")
    assert str(info.value).isprintable()
    assert len(str(info.value)) < 500


@pytest.mark.parametrize("url", ["/a", "example.com", "mailto:a", "http://", "http://a b/", ""])
def test_a_url_that_has_no_robots_txt_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"has no robots\.txt") as info:
        robots_txt_url(url)
    assert repr(url) in str(info.value)


# What the file says


@pytest.mark.parametrize(
    ("body", "groups"),
    [
        (b"", []),
        (b"Disallow: /a\nUser-agent: a", [(("a",), [])]),
        (b"User-agent: a\nUser-agent: A\nDisallow:\nUser-agent: a\nDisallow: b",
         [(("a",), []), (("a",), ["b"])]),
        (b"User-agent: a\nFoo: 1\nUser-agent: b\nDisallow: /", [(("a", "b"), ["/"])]),
        # A user-agent line that no crawler can match starts a group, too (RFC 9309 §2.2.1).
        (b"User-agent: a\nDisallow: /\nUser-agent:\nDisallow: /b", [(("a",), ["/"]), ((), ["/b"])]),
        (b"User-agent: b(x)\nUser-agent: 1(x)\nDisallow: /", [(("b",), ["/"])]),
        (b"User-agent: Foobot:1\nDisallow: /" + b"a" * 5000,
         [(("foobot",), ["/" + "a" * 998 + "\u2026"])]),
    ],
)  # fmt: skip
def test_groups(body: bytes, groups: list[tuple[tuple[str, ...], list[str]]]) -> None:
    found = [
        (group.agents, [rule.pattern for rule in group.rules])
        for group in RobotsTxt.parse(body).groups
    ]
    assert found == groups


@pytest.mark.rule("Length of a pattern")
@pytest.mark.parametrize(
    ("rules", "path", "lines"),
    [
        ("Disallow: /a\nAllow: /a", "/a", [3, 2]), ("Disallow: /a\nDisallow: /a", "/a", [2, 3]),
        ("Disallow: /a\nDisallow: /ab", "/ab", [3, 2]),
        ("Disallow: /ab\nDisallow: /a*", "/ab", [2, 3]),
        ("Disallow: /%61b\nAllow: /a", "/ab", [2, 3]),
        ("Disallow: /a \nDisallow: /a", "/a", [2, 3]),
        ("Disallow: /é\nDisallow: /%C3%A9*", "/é", [3, 2]),
        ("Disallow: /a b\nAllow: /a%20", "/a%20b", [3, 2]),  # 4 octets and 5
        ("Disallow: /a%20b\nAllow: /a b", "/a%20b", [3, 2]),  # one rule, and allow wins
        ("Disallow: /a%20b\nAllow: /a b\nDisallow: /a%20*", "/a%20b", [3, 2, 4]),  # with length 6
        ("Disallow: /a%20b\nDisallow: /a b", "/a%20b", [2, 3]),
        ("Disallow: /a b\nDisallow: /a%20b", "/a%20b", [3, 2]),
        ("Disallow: /\nAllow: /b/index.html", "/b/", [3, 2]),
        ("Allow: /*/index.html", "/b/index.html/", [2]),  # as itself, and as its directory
        ("Disallow: /x?u=/a", "/x?u=%2Fa", [2]), ("Disallow:\nDisallow: a\nDisallow: /b", "/a", []),
        ("Disallow: /", "/robots.txt", []),
    ],
)  # fmt: skip
def test_the_order_of_matching_rules(rules: str, path: str, lines: list[int]) -> None:
    robots = RobotsTxt.parse(f"User-agent: *\n{rules}".encode())
    found = robots.matches(path, "mybot/1.0 (+https://example.com)")
    assert [rule.line for rule in found] == lines
    for _ in range(3):  # from the text, while the index is built, and from the index
        assert next(iter(found), None) == robots.verdict(path, "mybot").rule


@pytest.mark.rule("Any other record")
def test_records_are_given_by_name(robots: RobotsTxt) -> None:
    assert robots.records("fetch-hint") == robots.records("Fetch-Hint ", "mybot") == ("slow",)
    assert robots.records("fetch-hint", "otherbot") == ()
    assert robots.records("crawl-delay") == robots.records("crawl-delay", "otherbot") == ("2",)
    assert robots.records("crawl-delay", "mybot") == ()
    assert robots.records("sitemap") == ("/sitemap.xml",)
    assert robots.records("disallow", "mybot") == ("/private", "/*.pdf$", "/late")
    assert robots.records("user-agent") == ("*", "MyBot", "MJ12bot/1.4")
    assert robots.records("user-agent", "mj12bot") == ("MJ12bot/1.4",)
    assert robots.records("nothing") == robots.records("") == ()
    assert RobotsTxt(b"Allow: /a").records("allow", "mybot") == ()  # it has no group


# What a status means


@pytest.mark.parametrize("status", [200, 201, 203, 299, HTTPStatus.OK])
def test_rfc_successful_status_holds_the_rules(status: int) -> None:
    robots = RobotsTxt.from_response(status, ROBOTS_TXT, f"{SITE}/robots.txt")
    assert robots == RobotsTxt.parse(ROBOTS_TXT, url=f"{SITE}/robots.txt")
    assert robots.sitemaps == (f"{SITE}/sitemap.xml",)


@pytest.mark.parametrize(
    ("status", "reason", "detail"),
    [
        *((status, Reason.UNAVAILABLE, f"status {status:d}")
          for status in (400, 404, 410, 451, 499, HTTPStatus.NOT_FOUND)),
        *((status, Reason.REFUSED, f"status {status}") for status in (401, 403)),
        *((status, Reason.UNREACHABLE, f"status {status}")
          for status in (500, 503, 599, 407, 429, 206, 304, 300, 100, 999, 0)),
        *((status, Reason.UNREACHABLE, f"status {status}, a redirect that was not followed")
          for status in (301, 308)),
        (None, Reason.UNREACHABLE, "no response"),
    ],
)  # fmt: skip
def test_rfc_another_status_has_no_rules(status: int | None, reason: Reason, detail: str) -> None:
    body = b"User-agent: *\nAllow: /a\nDisallow: /"
    robots = RobotsTxt.from_response(status, body, f"{SITE}/robots.txt")
    is_allowed = reason is not Reason.UNREACHABLE
    for url in ("/a", f"{SITE}/b", "/a"):
        assert robots.verdict(url, "mybot") == Verdict(is_allowed, reason, detail=detail)
        assert robots.allowed(url, "mybot") is is_allowed
        # "The /robots.txt URI is implicitly allowed" (RFC 9309 §2.2.2).
        itself = robots.verdict("/robots.txt", "mybot")
        assert itself == Verdict(True, reason, detail=detail)
    assert str(itself) == f"{reason}: {detail}"
    assert [*robots.groups, *robots.agents, *robots.sitemaps] == []
    assert robots.matches("/a", "mybot") == ()
    assert robots.crawl_delay("mybot") is None
    assert robots.content_usage("/a", "mybot") == {}


NO_STATUS, NO_URL, NO_TEXT, NO_AGENT = (
    "must be int or None, not", "must be str or None, not", "must be str, not",
    "must be str, bytes, or a list",
)  # fmt: skip


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (RobotsTxt.from_response, ("404", b""), NO_STATUS),
        (RobotsTxt.from_response, (4.04, b""), NO_STATUS),
        (RobotsTxt.from_response, (404, b"", b"url"), NO_URL),
        (RobotsTxt(b"").records, (b"sitemap",), NO_TEXT),
        (RobotsTxt(b"").records, ("sitemap", 1), NO_AGENT),
        *((RobotsTxt(b"").allowed, ("/", agent), NO_AGENT)
          for agent in (None, 1, {"a": 1}, ["a", 1], ("a", None))),
        (RobotsTxt(b"").allowed, (None, "mybot"), NO_TEXT),
        (RobotsTxt(b"").allowed, (b"/private", "mybot"), NO_TEXT),
        (robots_txt_url, (1,), NO_TEXT),
    ],
)  # fmt: skip
def test_an_argument_of_another_type_is_refused(
    call: Callable[..., object], arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        call(*arguments)


# What a parsed file looks like


def test_files_that_say_the_same_are_equal(robots: RobotsTxt) -> None:
    url = f"{SITE}/robots.txt"
    same = RobotsTxt.parse(b"\xef\xbb\xbf" + ROBOTS_TXT.replace(b"\n", b"\r\n"), url=url)
    same.verdict("/a", "mybot")
    assert robots == same
    assert hash(robots) == hash(same)
    assert {robots: 1}[same] == 1
    others = [
        RobotsTxt.parse(ROBOTS_TXT),
        RobotsTxt.parse(ROBOTS_TXT, url=url, strict=True),
        RobotsTxt.parse(ROBOTS_TXT + b"#", url=url),
        RobotsTxt.from_response(404, b"", url),
        RobotsTxt.from_response(410, b"", url),
        RobotsTxt.from_response(503, b"", url),
    ]
    assert len({robots, *others}) == len(others) + 1
    assert robots != ROBOTS_TXT
    assert pickle.loads(pickle.dumps(robots)) == robots


def test_a_file_in_words(robots: RobotsTxt) -> None:
    assert str(robots) == "groups for 3 agents"
    assert repr(robots) == f"<RobotsTxt {SITE}/robots.txt: groups for 3 agents>"
    assert repr(RobotsTxt.parse(b"User-agent: *")) == "<RobotsTxt: groups for 1 agent>"
    assert str(RobotsTxt.parse(b"")) == "no groups"
    assert repr(RobotsTxt.from_response(404)) == "<RobotsTxt: unavailable: status 404>"
    assert str(RobotsTxt.from_response(503)) == "unreachable: status 503"
    hostile = RobotsTxt.parse(b"", url="https://example.com/\x1b[2J" + "a" * 10_000)
    assert repr(hostile).isprintable()
    assert len(repr(hostile)) < 300


# The names


def test_names_are_imported_when_they_are_used() -> None:
    assert sorted(scrapy_rep._MODULES) == scrapy_rep.__all__
    code = (
        "import sys, scrapy_rep; assert set(scrapy_rep.__all__) <= set(dir(scrapy_rep));"
        "assert not [name for name in sys.modules if name.startswith('scrapy_rep.')];"
        "scrapy_rep.RobotsTxt; assert 'scrapy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_scrapy_and_pickle_find_the_public_names() -> None:
    for name in scrapy_rep.__all__:
        thing = getattr(scrapy_rep, name)
        assert load_object(f"scrapy_rep.{name}") is thing
        assert pickle.loads(pickle.dumps(thing)) is thing
