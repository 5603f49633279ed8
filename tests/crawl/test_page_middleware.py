"""The directives of pages, and the items and requests that they drop."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request, Spider, signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.http import HtmlResponse, Response, TextResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.logformatter import LogFormatter
from scrapy.pipelines.files import FilesPipeline
from twisted.python.failure import Failure

from scrapy_rep import AccessTerms, PageDirectives, PageDirectivesMiddleware, page_directives
from scrapy_rep.exceptions import ItemNotIndexable, ItemUsageRefused, PageNotIndexable
from scrapy_rep.pages.directives import UnreadDirectives, directives_when_asked
from scrapy_rep.protocol.paths import path_of
from testing.web import Page, Site, Web, text

from .conftest import Crawl, Outcome, Visitor, in_turn, make_crawler

pytestmark = pytest.mark.rule('noindex, nofollow, unavailable_after, rel="nofollow"')
NOINDEX_META = '<meta name="robots" content="noindex">'
DROP = {"REP_NOINDEX": "drop", "REP_NOFOLLOW": "drop", "REP_REL_NOFOLLOW": "drop"}


def html(body: str, **headers: str) -> Page:
    """A page of HTML, its headers written with underscores."""
    return Page(body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def scraped(item: dict[str, str], spider: Any) -> None:
    spider.items.append(item["path"])


async def dropped(item: dict[str, str], response: Any, exception: Exception, spider: Any) -> None:
    assert item["path"] in response.url
    spider.dropped.append((item["path"], exception))


class Reader(Visitor):
    """Makes an item of every page, and a request of every link, with some values in its meta."""

    on = MappingProxyType({signals.item_scraped: scraped, signals.item_dropped: dropped})
    marks: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.items: list[str] = []
        self.dropped: list[tuple[str, Exception]] = []

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        yield {"path": "/" + response.url.split("/", 3)[3]}
        if isinstance(response, HtmlResponse):
            yield from self.follow(response)

    def follow(self, response: HtmlResponse) -> Iterator[Request]:
        links = LinkExtractor(unique=False).extract_links(response)
        yield from response.follow_all(links, callback=self.parse, meta=dict(self.marks))


Read = Callable[..., Awaitable[tuple[Site, Outcome, Any]]]


@pytest.fixture
def read(web: Web, crawl: Crawl) -> Read:
    """Crawl these pages of a site. Returns the site, the outcome and the spider."""

    async def run(
        pages: dict[str, Page],
        settings: dict[str, Any] | None = None,
        *first: str,
        robots: str | None = None,
        spider: type[Reader] = Reader,
        **arguments: Any,
    ) -> tuple[Site, Outcome, Any]:
        site = web.site(robots, pages)
        outcome = await crawl(site.urls(*first, *pages), settings, spider=spider, **arguments)
        return site, outcome, outcome.crawler.spider

    return run


# What a response says

UTF_16 = {"Content-Type": "text/html; charset=UTF-16"}


@pytest.mark.parametrize(
    ("response", "noindex"),
    [
        (HtmlResponse("http://a/", body=NOINDEX_META.encode()), True),
        (HtmlResponse("http://a/", body=b"<title>A page</title>"), False),
        (HtmlResponse("http://a/", body=NOINDEX_META, encoding="utf-16"), True),
        (HtmlResponse("http://a/", body="é" * 9 + NOINDEX_META, encoding="utf-16-le"), True),
        (HtmlResponse("http://a/", headers=UTF_16, body=NOINDEX_META.encode("utf-16")), True),
        (HtmlResponse("http://a/", headers=UTF_16, body=NOINDEX_META.encode()), True),  # it is not
        (HtmlResponse("http://a/", body=("ツ" * 9 + NOINDEX_META).encode("utf-16")), True),
        (HtmlResponse("http://a/", body=b"\xef\xbb\xbf" + NOINDEX_META.encode()), True),
        # In ISO 2022 the octets of a Japanese letter are those of quotes and brackets.
        (HtmlResponse("http://a/", headers={"Content-Type": "text/html; charset=iso-2022-jp"},
                      body=f"<p title='圧'>{NOINDEX_META}".encode("iso-2022-jp")), True),
        (HtmlResponse("http://a/", body=b"\0" + NOINDEX_META.encode()), True),
        (HtmlResponse("http://a/", body=b""), False),
        (TextResponse("http://a/", body=NOINDEX_META.encode()), False),
        (Response("http://a/", headers={"X-Robots-Tag": ["nofollow", "mybot: noindex"]}), True),
        (Response("http://a/", headers={"X-Robots-Tag": "elsebot: noindex"}), False),
        (Response("http://a/", headers={"X-Robots-Tag": b"\xff, noindex"}), True),
        (Response("http://a/"), False),
    ],
)  # fmt: skip
def test_any_response_can_be_asked(response: Response, noindex: bool) -> None:
    for agent in ("mybot", "MyBot/1.0 (+https://example.com)", ["first", "mybot"]):
        assert page_directives(response, agent).noindex is noindex


@pytest.mark.parametrize(
    ("date", "expired"),
    [
        ("Thu, 24 Jun 2010 15:00:00 GMT", False),
        ("Sat, 26 Jun 2010 15:00:00 GMT", True),
        ("Fri, 31 Dec 9999 23:59:59 -0100", True),  # no time that there is, so now
        (None, True),
    ],
)
def test_unavailable_after_is_compared_with_the_date(date: str | None, expired: bool) -> None:
    headers = {"X-Robots-Tag": "unavailable_after: 25 Jun 2010 15:00:00 GMT"}
    if date is not None:
        headers["Date"] = date
    directives = page_directives(Response("http://a/", headers=headers), "mybot")
    assert (directives.expired, directives.indexable) == (expired, not expired)
    assert not directives.noindex


# Annotations


async def test_responses_are_annotated_before_the_spider_sees_them(read: Read) -> None:
    pages = {
        "/meta": html('<meta name="testbot" content="nofollow, max-snippet:9">'),
        "/header": html("", X_Robots_Tag="elsebot: noai, testbot: noindex"),
        "/image": Page(b"\x89PNG", headers={"X-Robots-Tag": "none"}),
        "/gone": Page(NOINDEX_META, 404),
    }
    robots = "User-agent: *\nContent-Signal: search=yes\n"
    site, outcome, reader = await read(pages, {}, "/", robots=robots)
    seen = {url.removeprefix(site.root): r.meta for url, r in outcome.responses.items()}
    assert {path: meta["page_directives"] for path, meta in seen.items()} == {
        "/": PageDirectives(),
        "/meta": PageDirectives(nofollow=True, max_snippet=9),
        "/header": PageDirectives(noindex=True),
        "/image": PageDirectives(noindex=True, nofollow=True),
    }
    assert all(meta["robotstxt_usage"] == {"search": True} for meta in seen.values())
    # The page that is missing went to the errback.
    gone: Any = outcome.failures[site.url("/gone")]
    assert gone.response.meta["page_directives"].noindex
    # All are noted, nothing is dropped.
    assert sorted(reader.items) == ["/", "/header", "/image", "/meta"]
    assert outcome.stats["robotstxt/noindex"] == 3
    assert outcome.stats["robotstxt/nofollow"] == 2
    assert "item_dropped_count" not in outcome.stats


@pytest.mark.parametrize(
    ("settings", "headers", "token"),
    [
        ({}, {}, "testbot"),
        ({}, {"User-Agent": "ownbot/1.0"}, "ownbot"),
        ({"ROBOTSTXT_USER_AGENT": ["a", "rulebot"]}, {}, "rulebot"),
    ],
)
async def test_the_tokens_are_the_same_as_for_robots_txt(
    web: Web, crawl: Crawl, settings: dict[str, Any], headers: dict[str, str], token: str
) -> None:
    said = "".join(
        f"<meta name={name} content={'noindex' if name == token else 'max-snippet:1'}>"
        for name in ("testbot", "ownbot", "rulebot")
    )
    site = web.site(None, {"/": html(said)})
    request = Request(site.url("/"), headers=headers)
    outcome = await crawl([request], settings)
    directives = outcome.responses[site.url("/")].meta["page_directives"]
    assert directives == PageDirectives(noindex=True)


class Copier(Reader):
    """Passes the meta of a response on to the next request, as many spiders do."""

    def follow(self, response: HtmlResponse) -> Iterator[Request]:
        for link in LinkExtractor().extract_links(response):
            yield Request(link.url, self.parse, meta=response.meta)


async def test_annotations_are_of_the_response_alone(web: Web, crawl: Crawl) -> None:
    pages = {"/": html(f'{NOINDEX_META}<a rel="ugc" href="/b">b</a>'), "/b": html("<a href=/c>c")}
    site = web.site(None, pages)
    outcome = await crawl(site.urls("/"), {"REP_NOINDEX": "drop"}, spider=Copier)
    reader: Any = outcome.crawler.spider
    assert ([path for path, _ in reader.dropped], reader.items) == (["/"], ["/b", "/c"])
    metas = [outcome.responses[url].meta for url in site.urls("/b", "/c")]
    assert not any(meta["page_directives"].noindex for meta in metas)
    assert [meta.get("robotstxt_link_rel") for meta in metas] == [("ugc",), None]


# Items


async def test_items_of_pages_with_noindex_are_dropped(read: Read) -> None:
    past, future = (
        format_datetime(datetime.now(timezone.utc) + timedelta(days=days)) for days in (-1, 1)
    )
    old = {"X_Robots_Tag": "unavailable_after: 2010-06-25", "Date": "Thu, 24 Jun 2010 15:00:00 GMT"}
    pages = {
        "/meta": html(NOINDEX_META),
        "/header": text("x", X_Robots_Tag="noindex"),
        "/past": text("x", X_Robots_Tag=f"unavailable_after: {past}"),
        "/future": text("x", X_Robots_Tag=f"unavailable_after: {future}"),
        "/old": text("x", **old),
    }
    site, outcome, reader = await read(pages, {"REP_NOINDEX": "drop"}, "/")
    assert sorted(reader.items) == ["/", "/future", "/old"]
    dropped = dict(reader.dropped)
    assert all(isinstance(exception, ItemNotIndexable) for exception in dropped.values())
    assert {path: str(exception) for path, exception in dropped.items()} == {
        "/meta": f"{site.url('/meta')} says noindex (line 1, meta: noindex)",
        "/header": f"{site.url('/header')} says noindex (X-Robots-Tag: noindex)",
        "/past": f"{site.url('/past')} says unavailable_after "
        f"(X-Robots-Tag: unavailable_after: {past})",
    }
    # Those of the package, and Scrapy's own, of its signal, with its log.
    names = ["robotstxt/noindex", "robotstxt/noindex/dropped", "item_dropped_count",
             "item_dropped_reasons_count/ItemNotIndexable"]  # fmt: skip
    assert [outcome.stats[name] for name in names] == [3] * 4
    records = outcome.log.records
    levels = [each.levelname for each in records if each.msg.startswith("Dropped: ")]
    assert levels == ["DEBUG"] * 3


class Quiet(LogFormatter):
    """Has nothing to say about dropped items."""

    def dropped(self, *_: Any) -> None:  # type: ignore[override]
        return None


class NoneYielder(Reader):
    """Yields what some spiders yield by mistake, and an item from an errback."""

    def parse(self, response: Response, **_: Any) -> Any:
        yield None
        yield from super().parse(response)

    def failed(self, failure: Any) -> Any:
        super().failed(failure)
        yield {"path": "/" + failure.value.response.url.split("/", 3)[3]}


@pytest.mark.parametrize(
    "settings",
    [
        {"LOG_FORMATTER": Quiet},
        # By hand behind HttpErrorMiddleware, which sends error pages straight to the errback: such
        # a page is read at the output.
        {"SPIDER_MIDDLEWARES": {PageDirectivesMiddleware: 500}},
    ],
)
async def test_items_of_errbacks_are_dropped_too(read: Read, settings: dict[str, Any]) -> None:
    pages = {"/gone": Page(NOINDEX_META, 404), "/missing": Page("", 404)}
    settings = {"REP_NOINDEX": "drop", **settings}
    *_, reader = await read(pages, settings, "/", spider=NoneYielder)
    assert sorted(reader.items) == ["/", "/missing"]
    assert [path for path, _ in reader.dropped] == ["/gone"]


# Requests

NOFOLLOW_PAGE = '<meta name="robots" content="nofollow"><a href="/next">next</a>'


async def test_requests_of_pages_with_nofollow_are_dropped(read: Read) -> None:
    pages = {
        "/meta": html(NOFOLLOW_PAGE),
        "/header": html('<a href="/other">other</a>', X_Robots_Tag="testbot: none"),
        "/free": html('<a href="/third">third</a>'),
    }
    site, outcome, reader = await read(pages, {"REP_NOFOLLOW": "drop"})
    assert site.page_paths == sorted(reader.items) == sorted([*pages, "/third"])
    assert outcome.stats["robotstxt/nofollow"] == 2
    assert outcome.stats["robotstxt/nofollow/dropped"] == 2
    assert sum("Dropped because of nofollow on" in line for line in outcome.log.messages) == 2


async def test_marked_requests_are_followed_all_the_same(read: Read) -> None:
    pages = {"/": html(NOFOLLOW_PAGE.replace("<a ", '<a rel="nofollow" '))}
    site, *_ = await read(pages, DROP, marks={"robotstxt_obey_nofollow": False})
    assert site.page_paths == ["/", "/next"]


# rel

LINKS = """\
<a href="/plain">plain</a>
<a href="/nofollow" rel="nofollow">nofollow</a>
<a href=" /mixed?b=2&amp;a=1#part " rel="external NoFollow,ugc">mixed</a>
<a href="/ugc" rel="ugc">ugc</a>
<a href="/sponsored" rel="sponsored">sponsored</a>
<area href="/area" rel="nofollow">
<a href="/twice" rel="nofollow">once</a> <a href="/twice">twice</a>
<a href="/both" rel="nofollow ugc">once</a> <a href="/both" rel="nofollow">twice</a>
<a href="/follow" rel="me">me</a>
<a href="caf\u00e9" rel="nofollow">encoded</a>
<a href="http://[" rel="nofollow">no URL</a>
<a rel="nofollow">no href</a>
"""
FOLLOWED = ["/follow", "/plain", "/sponsored", "/twice", "/ugc"]
NOT_FOLLOWED = ["/area", "/both", "/caf%C3%A9", "/mixed?b=2&a=1", "/nofollow"]
REL = {
    "/area": ("nofollow",),
    "/both": ("nofollow",),
    "/caf%C3%A9": ("nofollow",),
    "/mixed?b=2&a=1": ("nofollow", "ugc"),
    "/nofollow": ("nofollow",),
    "/sponsored": ("sponsored",),
    "/ugc": ("ugc",),
}


class ByHand(Reader):
    def follow(self, response: HtmlResponse) -> Iterator[Request]:
        if "followed" not in response.meta:
            for path in [*FOLLOWED, *NOT_FOLLOWED]:
                yield Request(response.urljoin(path), self.parse, meta={"followed": 1})


@pytest.mark.parametrize(
    ("spider", "dropped"),
    [(Reader, 6), (ByHand, 5)],  # with each link to /both or not
)
async def test_links_with_rel_nofollow_are_not_followed(
    read: Read, spider: type[Reader], dropped: int
) -> None:
    pages = {"/": html(f'<meta charset="utf-8">{LINKS}')}
    site, outcome, _ = await read(pages, {"REP_REL_NOFOLLOW": "drop"}, spider=spider)
    assert site.page_paths == ["/", *FOLLOWED]
    assert outcome.stats["robotstxt/rel_nofollow/dropped"] == dropped


async def test_the_rel_of_a_link_is_noted_on_its_request(read: Read) -> None:
    pages = {"/": html(f'<meta charset="utf-8">{LINKS}')}
    site, outcome, _ = await read(pages, spider=ByHand)
    found = {url.removeprefix(site.root): each.meta for url, each in outcome.responses.items()}
    assert {path: meta.get("robotstxt_link_rel") for path, meta in found.items()} == {
        path: REL.get(path) for path in ["/", *FOLLOWED, *NOT_FOLLOWED]
    }


# Robots-Tag and licenses


@pytest.mark.rule("Licenses of pages")
async def test_robots_tag_and_licenses_are_annotated(read: Read) -> None:
    pages = {
        "/tag": html("", Robots_Tag="*;nosnippet, testbot;noindex;noml"),
        "/a/license": html('<link rel="license" href="b.xml">', Link="</c.xml>; rel=license"),
        "/file": Page(b"\x89PNG", headers={"Link": '<http://x.example/>; rel="license"'}),
    }
    moved = {"/moved": Page("", 302, {"Location": "/a/license"})}
    robots = "License: https://example.com/all.xml\n"
    site, outcome, _ = await read({**moved, **pages}, robots=robots)
    found = {url: r.meta["page_directives"] for url, r in outcome.responses.items()}
    expected = PageDirectives(noindex=True, nosnippet=True, noml=True)
    assert found[site.url("/tag")] == expected
    # Licenses are resolved against the URL of the page, not against that of its request.
    licenses = (site.url("/c.xml"), site.url("/a/b.xml"))
    assert found[site.url("/a/license")].licenses == licenses
    assert found[site.url("/file")].licenses == ("http://x.example/",)
    # Nothing fetches a license.
    assert {*site.paths} == {*pages, *moved, "/robots.txt"}


# Responses that no spider middleware gets


class Files(FilesPipeline):
    """Notes what is known of each file, and why others fail."""

    def media_downloaded(self, response: Any, *args: Any, **kwargs: Any) -> Any:
        self.crawler.spider.seen[path_of(response.url)] = response.meta["page_directives"]  # type: ignore[union-attr]
        return super().media_downloaded(response, *args, **kwargs)

    def media_failed(self, failure: Failure, *args: Any) -> Any:
        self.crawler.spider.errors.append(failure.value)  # type: ignore[union-attr]
        return super().media_failed(failure, *args)


class Collector(Visitor):
    """Yields an item with the files of a site, and downloads them itself."""

    paths: list[str]

    async def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        self.seen, self.called = dict[str, Any](), dict[str, Any]()
        self.errors: list[Any] = []
        for path in self.paths:
            called = await self.engine.download_async(Request(response.urljoin(path)))
            self.called[path] = called.meta["page_directives"]
        return {"file_urls": [*map(response.urljoin, self.paths)]}


@pytest.mark.each_loop
@pytest.mark.parametrize("noindex", ["annotate", "drop"])
async def test_callers_get_directives_and_noindex_drops_files(
    web: Web, crawl: Crawl, tmp_path: Path, noindex: str
) -> None:
    files = {
        "/free.pdf": Page("free"),
        "/secret.pdf": Page("secret", headers={"X-Robots-Tag": "testbot: none"}),
        "/other.pdf": Page("other", headers={"X-Robots-Tag": "otherbot: noindex"}),
        "/photo.jpg": Page("photo", headers={"X-Robots-Tag": "noimageindex"}),
        "/page": html('<meta name="robots" content="noindex">'),
    }
    site, pipelines = web.site(None, files), {"ITEM_PIPELINES": {Files: 1}}
    settings = {**pipelines, "FILES_STORE": str(tmp_path), "REP_NOINDEX": noindex}
    outcome = await crawl(site.urls("/"), settings, spider=Collector, paths=list(files))
    # The pipeline and the callback request each file, if it is dropped or not.
    assert sorted(site.page_paths) == sorted(["/", *files, *files])
    spider: Any = outcome.crawler.spider
    indexed = {path: each.indexable for path, each in spider.called.items()}
    assert indexed == {path: path not in ("/secret.pdf", "/page") for path in files}
    assert spider.called["/photo.jpg"].noimageindex
    dropped = {"/secret.pdf"} if noindex == "drop" else set()
    assert spider.seen == {path: spider.called[path] for path in files if path not in dropped}
    assert [type(error) for error in spider.errors] == [PageNotIndexable] * len(dropped)
    assert all("/secret.pdf says noindex (X-Robots-Tag: " in str(each) for each in spider.errors)
    assert outcome.stats.get("robotstxt/noindex/media_dropped", 0) == len(dropped)


# Usage

EVERYTHING = """\
User-agent: *
Content-Signal: search=yes, ai-train=no
Content-Usage: /open/ train-ai=y
Content-Usage: /shut/ search=n, train-ai=n
Disallow: /secret/
"""


@pytest.mark.parametrize(
    ("robots", "headers", "is_obeyed", "expected"),
    [
        ("User-agent: *\nContent-Signal: ai-train=no\n", {}, True, {"train-ai": False}),
        ("User-agent: *\nContent-Usage: train-ai=y\n", {"Content-Usage": "train-ai=n"}, True,
         {"train-ai": False}),
        ("", {"Content-Signal": "ai-input=no, search=yes"}, True,
         {"ai-use": False, "search": True}),
        ("", {"TDM-Reservation": "1"}, True, {"tdm": False}),
        (EVERYTHING, {"Content-Usage": "search=n"}, False, {"search": False}),
    ],
)  # fmt: skip
async def test_usage_is_what_the_file_and_the_response_state(
    web: Web, crawl: Crawl, robots: str, headers: dict[str, str], is_obeyed: bool, expected: Any
) -> None:
    site = web.site(robots, {"/a": Page(headers=headers)})
    outcome = await crawl(site.urls("/a"), {"ROBOTSTXT_OBEY": is_obeyed})
    assert outcome.responses[site.url("/a")].meta["robotstxt_usage"] == expected
    assert site.robots_fetches == is_obeyed


async def test_usage_is_that_of_the_origin_where_the_page_was_found(web: Web, crawl: Crawl) -> None:
    there = web.site("User-agent: *\nContent-Usage: train-ai=n\n", host="127.0.0.2")
    here = web.site(
        "User-agent: *\nContent-Usage: train-ai=y\n",
        {"/a": Page("", 302, {"Location": there.url("/b")})},
    )
    outcome = await crawl(here.urls("/a"))
    assert outcome.responses[there.url("/b")].meta["robotstxt_usage"] == {"train-ai": False}


async def test_a_cache_smaller_than_the_crawl_loses_no_refusal(web: Web, crawl: Crawl) -> None:
    sites = [web.site("User-agent: *\nContent-Signal: ai-train=no\n") for _ in range(8)]
    for site in sites[:4]:  # the others remove their files from memory meanwhile
        site.pages["/a"] = Page(delay=0.5)
    urls = [site.url("/a") for site in sites]
    outcome = await crawl(urls, {"REP_CACHE_SIZE": 1})
    refused = [outcome.responses[url].meta["robotstxt_usage"] for url in urls]
    assert refused == [{"train-ai": False}] * 8


@pytest.mark.rule("Usage of content")
@pytest.mark.parametrize(
    ("required", "kept"),
    [
        ([], ["/a", "/full", "/open/a", "/quoted", "/shut/a", "/tdm"]),
        (["train-ai"], []),  # the Content-Signal holds everywhere
        (["search", "tdm"], ["/a", "/full", "/open/a", "/quoted"]),
        (["use=full"], ["/a", "/full", "/open/a", "/shut/a", "/tdm"]),
        (["use=reference"], ["/a", "/full", "/open/a", "/quoted", "/shut/a", "/tdm"]),
    ],
)
async def test_items_of_pages_that_refuse_a_required_use_are_dropped(
    read: Read, required: list[str], kept: list[str]
) -> None:
    pages = {
        "/tdm": html('<meta name="tdm-reservation" content="1">'),
        "/quoted": html("", Content_Signal="use=reference"),
        "/full": html("", Content_Signal="use=full"),
    }
    settings, others = {"REP_INTENDED_USES": required}, ("/a", "/open/a", "/shut/a")
    _, outcome, reader = await read(pages, settings, *others, robots=EVERYTHING)
    assert sorted(reader.items) == kept
    assert all(isinstance(exception, ItemUsageRefused) for _, exception in reader.dropped)
    assert all("refuses" in str(exception) for _, exception in reader.dropped)
    assert outcome.stats.get("robotstxt/usage/dropped", 0) == 6 - len(kept)


TRAINING = """\
User-agent: *
Disallow: /shut/

User-agent: __usage_ai-training
Disallow: /art/
Allow: /art/free/
"""


@pytest.mark.rule("__usage_ai-training")
async def test_the_training_preference_signal_is_no_verdict(read: Read) -> None:
    pages = {"/art/picture": text("a picture")}
    others, settings = ("/", "/art/1", "/art/free/1"), {"REP_INTENDED_USES": ["ai-train"]}
    site, outcome, reader = await read(pages, settings, *others, "/shut/", robots=TRAINING)
    # It changes no verdict: all pages but the one that the group of everyone disallows are fetched.
    assert site.page_paths == sorted([*others, *pages])
    metas = {url.removeprefix(site.root): r.meta for url, r in outcome.responses.items()}
    assert {path: metas[path]["robotstxt_usage"] for path in site.page_paths} == {
        "/": {},
        "/art/1": {"train-ai": False},
        "/art/free/1": {"train-ai": True},
        "/art/picture": {"train-ai": False},
    }
    dropped = dict(reader.dropped)
    assert sorted(dropped) == ["/art/1", "/art/picture"]
    for path, exception in dropped.items():
        assert str(exception).startswith(f"{site.url(path)} refuses ai-train (robots.txt, line ")
        assert str(exception).endswith(", for __usage_ai-training)")


# Pages that require a payment or a license

PAID = Page("", 402, {"crawler-price": "USD 0.01"})
LICENSED = Page("", 401, {"WWW-Authenticate": "License", "Link": '</l.xml>; rel="license"'})
PASSWORD = Page("", 401, {"WWW-Authenticate": 'Basic realm="License"'})

# All statuses that a site answers with here are retried, by the settings of the user.
RETRIES = {
    "RETRY_ENABLED": True,
    "RETRY_TIMES": 2,
    "RETRY_HTTP_CODES": [401, 402, 503],
    "HTTPERROR_ALLOW_ALL": True,
}


@pytest.mark.rule("402, and 401 with WWW-Authenticate: License")
@pytest.mark.parametrize("obey", [True, False])
async def test_a_page_that_requires_a_payment_or_a_license_is_not_retried(
    web: Web, crawl: Crawl, obey: bool
) -> None:
    site = web.site(None, {"/paid": PAID, "/licensed": LICENSED, "/password": PASSWORD,
                           "/broken": Page("", 503)})  # fmt: skip
    paths = ("/paid", "/licensed", "/password", "/broken")
    outcome = await crawl(site.urls(*paths), RETRIES | {"ROBOTSTXT_OBEY": obey})
    assert site.page_paths == ["/broken"] * 3 + ["/licensed", "/paid"] + ["/password"] * 3
    assert outcome.stats["robotstxt/payment_required"] == 1
    assert outcome.stats["robotstxt/license_required"] == 1
    assert outcome.stats["retry/count"] == 4
    seen = {url.removeprefix(site.root): r.meta for url, r in outcome.responses.items()}
    assert seen["/paid"]["page_directives"].access_terms == AccessTerms(
        payment_required=True, price="USD 0.01"
    )
    licensed = seen["/licensed"]["page_directives"]
    assert licensed.access_terms == AccessTerms(license_required=True)
    assert licensed.licenses == (site.url("/l.xml"),)
    assert seen["/password"]["page_directives"].access_terms is None
    assert {*site.paths} - {"/robots.txt"} == {*paths}  # nothing but pages was requested


class Retrier(Visitor):
    """Retries a page itself."""

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        if response.status == 402:
            assert response.request is not None
            yield get_retry_request(response.request, spider=self, reason="402")


async def test_a_spider_may_retry_a_page_itself(web: Web, crawl: Crawl) -> None:
    site = web.site(None, {"/": in_turn(PAID, Page("", 503), Page("open"))})
    outcome = await crawl(site.urls("/"), RETRIES, spider=Retrier)
    assert site.page_paths == ["/"] * 3
    assert outcome.responses[site.url("/")].body == b"open"


async def test_the_value_of_a_user_stays(web: Web, crawl: Crawl) -> None:
    site = web.site(None, {"/": PAID})
    outcome = await crawl([Request(site.url("/"), meta={"dont_retry": "access"})], RETRIES)
    assert outcome.responses[site.url("/")].meta["dont_retry"] == "access"


# Whatever a site sends

NO_TEXT = ("unicode_escape", "rot13", "idna", "punycode", "undefined", "hex", "zip", "uu")
CODECS = (
    "utf-8", "utf-7", "utf-16", "utf-16-be", "utf-32", "cp037", "cp500", "iso2022_jp", "iso2022_kr",
    "hz", "big5", "shift_jis", "johab", "gb18030", "koi8-r", "mbcs", "unknown",
)  # fmt: skip


def middleware(settings: dict[str, Any] | None = None) -> PageDirectivesMiddleware:
    crawler = make_crawler(Reader, settings or {})
    crawler._apply_settings()
    crawler.spider = Spider.from_crawler(crawler, "spider")
    return PageDirectivesMiddleware.from_crawler(crawler)


async def passed(
    response: Response, urls: list[str], settings: dict[str, Any] | None = None
) -> list[Request]:
    """What comes of requests for these URLs that a spider makes of a response."""
    pages = middleware(settings)
    response.request = Request("http://site.example/")

    async def made() -> AsyncIterator[Request]:
        for url in urls:  # with the meta of a call of download_async, which would keep its page
            yield Request(url, meta={"page_directives": directives_when_asked(response, (), None)})

    pages.process_spider_input(response)
    assert {"page_directives", "robotstxt_usage"} <= response.meta.keys()
    json.dumps(asdict(response.meta["page_directives"]), default=str)
    requests = [request async for request in pages.process_spider_output(response, made())]
    kept = [request.meta.get("page_directives") for request in requests]
    assert not any(isinstance(directives, UnreadDirectives) for directives in kept)
    return requests


async def test_no_charset_costs_the_page() -> None:
    body = f"{NOINDEX_META}<a href=/a?b=c rel=nofollow>a-b \\d \\ud800 ~{{ +2AA-</a>".encode()
    found = {}
    for codec in (*CODECS, *NO_TEXT):
        headers = {"Content-Type": f"text/html; charset={codec}", "X-Robots-Tag": "noarchive"}
        page = HtmlResponse("http://site.example/", headers=headers, body=body + b"\x1b\0\xff\x80")
        (request,) = await passed(page, ["http://site.example/a?b=c"])
        directives = page.meta["page_directives"]
        found[codec] = (directives.noindex, request.meta.get("robotstxt_link_rel"))
        assert directives.noarchive, codec
    # Other encodings that are no text are read as ASCII.
    assert {codec: found[codec] for codec in NO_TEXT} == dict.fromkeys(
        NO_TEXT, (True, ("nofollow",))
    )


HEADER_PIECES = [
    "noindex", "max-snippet:", "max-video-preview:", "unavailable_after:", "0" * 5000, "9" * 5000,
    "-1", "31 Dec 9999 23:59:59 -0100", "9999-12-31T23:59:59-01:00", "0001-01-01T00:00+14:00",
    "GMT", ",", ";", ":", "=", '"', "*", "mybot:", "yes", "no", "y", "n", "ai-train", "train-ai",
    "(", ")", "\0", "\xff", "\u0663", " ", "1", "text/html", "charset=", "utf-16", "utf-7",
    "unicode_escape", "idna", "hz", "cp037", "iso-2022-jp", "rot13", "punycode", "x" * 300, "/",
    "-", "1.5", "?1", "@1", "<", ">", "rel=license", "http://[", "noml", "\\",
]  # fmt: skip
header_values = st.lists(st.sampled_from(HEADER_PIECES), max_size=8).map(
    lambda pieces: "".join(pieces).encode("latin-1", "replace")
) | st.binary(max_size=40).map(lambda value: value.replace(b"\r", b"").replace(b"\n", b""))
READ_HEADERS = ("X-Robots-Tag", "Robots-Tag", "Link", "TDM-Reservation", "TDM-Policy",
                "Content-Signal", "Content-Usage", "Date", "Content-Type",
                "Content-Encoding")  # fmt: skip
PAGE_PIECES = [
    "<base href=http://[>", "<a rel=nofollow href=/a>", "<a rel=ugc href=http://[>", NOINDEX_META,
    "<meta name='robots' content='", "<meta name=&#114;obots content=", "noindex", "max-snippet:",
    "0" * 5000, "&#" + "9" * 5000 + ";", "&#xD800;", "&#0;", "'>", ">", "<base href='", "http://[",
    "<a rel=nofollow href='", "<a rel='&#110;ofollow' href=", "/a", "?q=é", "//", "\\",
    "http://a:x/", "javascript:x", "http://" + "a" * 300 + "/", "http://\u0130/",
    "http://a:99999999/", "%", "<!--", "<area href='#' rel=ugc>", "<svg>", "\0", "\x1b$B", "\x1b(B",
    "~{", "+2AA-", "\\d", "<meta charset=", "utf-16", "idna", "unicode_escape", "\ufeff",
    "<template>", "tdm-policy", "\t", "http://a.\u3002/", "<link rel=license href='", "<link ",
]  # fmt: skip
ENCODINGS = ["utf-8", "utf-16", "utf-16-le", "utf-32-be", "cp500", "iso2022_jp", "latin-1", "utf-7"]
bodies = st.builds(
    lambda pieces, encoding: "".join(pieces).encode(encoding, "replace"),
    st.lists(st.sampled_from(PAGE_PIECES), max_size=12),
    st.sampled_from(ENCODINGS),
) | st.binary(max_size=60)
REQUESTED = ["http://site.example/a", "http://a:80/?q=%E9", "data:,x", "http://site.example/%5C"]


@given(
    st.dictionaries(st.sampled_from(READ_HEADERS), st.lists(header_values, min_size=1, max_size=2)),
    bodies,
    st.sampled_from([HtmlResponse, TextResponse, Response]),
    st.sampled_from([None, None, *ENCODINGS]),
    st.sampled_from([{}, DROP]),
)
def test_nothing_that_is_sent_raises(
    headers: dict[str, list[bytes]], body: bytes, kind: Any, encoding: str | None, settings: Any
) -> None:
    response = kind("http://site.example/", headers=headers, body=body)
    if isinstance(response, TextResponse) and encoding:
        response = response.replace(encoding=encoding)
    with pytest.raises(StopIteration):  # nothing is awaited for requests
        passed(response, REQUESTED, {"REP_INTENDED_USES": ["train-ai"], **settings}).send(None)
