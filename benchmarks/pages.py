"""Page directives, compared with a selector; crawls with them.

The first part measures the time per page, for pages of several sizes with and without directives.
The second part measures hostile pages of 5 MB: their directives and their links, compared with a
LinkExtractor. The third part runs pairs of crawls of 2,000 pages of 30 KB on
loopback, with and without the spider middleware. Compare the ratios of the CPU time of the pairs.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from statistics import median
from typing import Any

from scrapy import Request, Selector, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from scrapy_rep import PageDirectivesMiddleware, page_directives
from scrapy_rep.pages.html import Links
from testing.harness import Duration, Options, Parameter, Result, Row, call
from testing.web import Page, Web

DURATION = Duration(150, 40)
PARAMETERS = {
    "pairs": Parameter(10, 2, "pairs of crawls"),
    "pages": Parameter(2000, 400, "pages of each crawl"),
    "every": Parameter(1, 6, "measure every n-th hostile page only"),
}
MIDDLEWARES: dict[str, dict[Any, int]] = {"with": {PageDirectivesMiddleware: 40}, "without": {}}

HEAD = (
    "<!doctype html><html lang=en><head><title>An article</title>"
    '<link rel="stylesheet" href="/style.css"><script>var settings = {"a": "b"};</script>'
    + "".join(f'<meta property="og:key{n}" content="Something of the article">' for n in range(15))
)
ROBOTS = '<meta name="robots" content="index, follow, max-image-preview:large">'
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Date": "Sun, 01 Nov 2026 08:00:00 GMT",
    "Server": "a server",
    "Cache-Control": "max-age=60",
    "Vary": "Accept-Encoding",
}


def html(octets: int, said: str = "", rel: str = "") -> bytes:
    """Return a page of about so many octets."""
    paragraph = (
        f'<div class="text"><p>A sentence of the article, and another one of some length.</p>'
        f'<a href="/articles/{{}}.html"{rel}>Another article</a></div>\n'
    )
    count = max(1, (octets - len(HEAD)) // len(paragraph))
    paragraphs = "".join(paragraph.format(number) for number in range(count))
    return f"{HEAD}{said}</head><body>{paragraphs}</body></html>".encode()


def best(run: Callable[[HtmlResponse], object], page: bytes) -> float:
    """Return the microseconds per page in the best of several rounds."""
    rounds = []
    number = max(5, 2_000_000 // len(page))
    for _ in range(7):
        responses = [
            HtmlResponse("http://site.example/", headers=HEADERS, body=page, encoding="utf-8")
            for _ in range(number)
        ]
        start = time.process_time()
        for response in responses:
            run(response)
        rounds.append((time.process_time() - start) / number)
    return min(rounds) * 1e6


def of_pages(sizes: tuple[int, ...]) -> Iterator[Row]:
    """Return the rows of single pages."""
    for octets in sizes:
        for name, said, rel in (
            ("nothing", "", ""),
            ("a robots meta", ROBOTS, ""),
            ("links with rel=nofollow", "", ' rel="nofollow"'),
        ):
            page = html(octets, said, rel)
            read = best(lambda response: page_directives(response, ("examplebot",)), page)
            build = best(lambda response: Selector(response), page)
            links = best(lambda response: Links(response).rel(response.url), page)
            yield Row(f"{len(page) // 1000} KB, {name}", read, "us")
            yield Row("  part of a selector's time", read / build, "ratio")
            yield Row("  rel", links, "us")
            yield Row("  part of a selector's time", links / build, "ratio")


URL = "http://site.example/1"
OCTETS = 5_000_000
SHORT = 50.0
"""Milliseconds. For a page that takes a LinkExtractor less, this is the unit."""
MOST = 1.0
"""The limit in parts of a LinkExtractor's time."""
NAMED = b"<meta name=robots content=noindex><link rel=license href=/a>"
# The text between two meta and two link elements, which are repeated.
FLOODS = [
    "<", "< ", "<p>x</p>", "<a ", "<a b='", '<a b="', "<!--", "<!-- -->", "<!>", "</p>", "<p =a>",
    "<p a=b c='d' e>", "<template></template>", "<script></script>", "<meta>", "<meta x ",
    "<meta name=robots content=noindex>", "<meta name='robot&#115;'>", "<meta name='", "&#00000",
    "<meta name=robots content='noindex,nofollow'>", "<meta name=tdm-policy content=/a>",
    "<link rel=license href=/a>", "<link x ", "license ", "<p>", "<div>", "<template>",
]  # fmt: skip
# Links, each with a number.
LINK_FLOODS = [
    "<a rel=nofollow href=/{}>", "<a rel=nofollow href=/?a={}&b=2>", "<a rel=ugc href=../{}>",
    "<a rel=nofollow href='/%61/{}'>", "<a rel=nofollow href=http://{}.example/>",
    "<a rel=nofollow href=é{}>", "<a href=/%61{} rel=nofollow><a href=/{}>",
]  # fmt: skip


def once(run: Callable[[HtmlResponse], object], page: bytes) -> float:
    """Return the milliseconds of the best of three rounds."""
    rounds = []
    for _ in range(3):
        response = HtmlResponse("http://site.example/a/", body=page, encoding="utf-8")
        start = time.process_time()
        run(response)
        rounds.append(time.process_time() - start)
    return min(rounds) * 1e3


def of_hostile_pages(every: int) -> tuple[list[Row], list[str]]:
    """Return the slowest page for each part of the middleware, and all pages."""
    pages = [
        NAMED + flood.encode() * (OCTETS // len(flood.encode())) + NAMED for flood in FLOODS
    ] + [
        "".join(flood.format(number, number) for number in range(OCTETS // len(flood))).encode()
        for flood in LINK_FLOODS
    ]
    extractor = LinkExtractor()
    parts: dict[str, Callable[[HtmlResponse], object]] = {
        "directives": lambda response: page_directives(response, ("examplebot",)),
        "rel": lambda response: Links(response).rel(URL),
    }
    slowest = dict.fromkeys(parts, (0.0, ""))
    details = []
    for flood, page in list(zip([*FLOODS, *LINK_FLOODS], pages, strict=True))[::every]:
        extract = once(extractor.extract_links, page)
        detail = f"extractor {extract:7.1f} ms"
        for name, part in parts.items():
            ratio = once(part, page) / max(extract, SHORT)
            slowest[name] = max(slowest[name], (ratio, flood))
            detail += f", {name} {ratio:5.2f}"
        details.append(f"{detail}: {flood}")
    rows = [
        Row(f"5 MB, slowest {name}, to a LinkExtractor: {flood}", ratio, "ratio", MOST)
        for name, (ratio, flood) in slowest.items()
    ]
    return rows, details


class Visitor(Spider):
    """Requests every page, and extracts nothing."""

    name = "visitor"

    async def start(self) -> AsyncIterator[Any]:
        for page in range(self.settings["PAGES"]):
            yield Request(f"{self.settings['ROOT']}/articles/{page}.html")

    def parse(self, response: Any, **_: Any) -> Any:
        yield {"url": response.url}


def crawl(middleware: str, root: str, pages: int) -> tuple[float, int]:
    """Crawl in this process. Returns the CPU seconds and the number of items."""
    process = AsyncCrawlerProcess(
        {"LOG_ENABLED": False, "ROOT": root, "TELNETCONSOLE_ENABLED": False, "PAGES": pages}
        | {"CONCURRENT_REQUESTS": 32, "SPIDER_MIDDLEWARES": MIDDLEWARES[middleware]}
    )
    crawler = process.create_crawler(Visitor)
    process.crawl(crawler)
    before = time.process_time()
    process.start()
    seconds = time.process_time() - before
    assert crawler.stats is not None
    return seconds, crawler.stats.get_value("item_scraped_count")


def of_crawls(pairs: int, pages: int) -> tuple[list[Row], list[str]]:
    """Return the median, with each pair as a detail."""
    web = Web()
    site = web.site(pages={"*": Page(html(30_000), headers=HEADERS)})
    ratios = []
    details = []
    for pair in range(pairs):
        order = list(MIDDLEWARES) if pair % 2 else list(reversed(MIDDLEWARES))
        seconds = {}
        for middleware in order:
            seconds[middleware], items = call(crawl, middleware, site.root, pages)
            assert items == pages, items
            site.received.clear()
        ratios.append(seconds["with"] / seconds["without"])
        took = f"with {seconds['with']:.3f} s, without {seconds['without']:.3f} s"
        details.append(f"pair {pair + 1}: {took}, {ratios[-1]:.3f}")
    web.close()
    return [Row("crawl with it, median, to one without", median(ratios), "ratio")], details


def run(options: Options) -> Result:
    """Return the rows of all three parts. Each hostile page and each pair is a detail."""
    sizes = (2_000, 30_000) if options.quick else (2_000, 30_000, 100_000, 1_000_000)
    hostile, floods = of_hostile_pages(options.number("every"))
    crawls, pairs = of_crawls(options.number("pairs"), options.number("pages"))
    return Result([*of_pages(sizes), *hostile, *crawls], [*pairs, *floods])
