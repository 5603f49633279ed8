"""What reading page directives costs: beside building a selector, and beside a crawl without it.

    python -m benchmarks.pages [PAIRS]

First the time per page, for pages of some sizes that say nothing and that say something. Then
hostile pages of 1 MB: their directives beside a selector, their links beside a LinkExtractor. Then
PAIRS (10) pairs of crawls of 2,000 pages of 30 KB on loopback, without any robots.txt, with the
spider middleware and without it, in processes of their own; the figure to look at is the ratio of
the CPU of the crawling process, pair by pair.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING, Any

from scrapy import Request, Selector, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor

from scrapy_rep import PageDirectivesMiddleware, page_directives
from scrapy_rep.links import Links
from testing.web import Page, Web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PAGES = 2000
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
    """A page of about so many octets."""
    paragraph = (
        f'<div class="text"><p>A sentence of the article, and another one of some length.</p>'
        f'<a href="/articles/{{}}.html"{rel}>Another article</a></div>\n'
    )
    count = max(1, (octets - len(HEAD)) // len(paragraph))
    paragraphs = "".join(paragraph.format(number) for number in range(count))
    return f"{HEAD}{said}</head><body>{paragraphs}</body></html>".encode()


def best(run: Callable[[HtmlResponse], object], page: bytes) -> float:
    """Microseconds a page, the best of some rounds."""
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


def of_pages() -> None:
    """The table of single pages."""
    print(f"{'page':<34}{'directives':>12}{'selector':>12}{'of it':>8}{'rel':>10}{'of it':>8}")
    for octets in (2_000, 30_000, 100_000, 1_000_000):
        for name, said, rel in (
            ("nothing", "", ""),
            ("a robots meta", ROBOTS, ""),
            ("links with rel=nofollow", "", ' rel="nofollow"'),
        ):
            page = html(octets, said, rel)
            read = best(lambda response: page_directives(response, ("examplebot",)), page)
            build = best(lambda response: Selector(response), page)
            links = best(lambda response: Links(response).rel(response.url), page)
            title = f"{len(page) // 1000} KB, {name}"
            print(
                f"{title:<34}{read:9.1f} µs{build:9.1f} µs{read / build:8.1%}"
                f"{links:7.0f} µs{links / build:8.1%}"
            )


URL = "http://site.example/1"
MEGABYTE = 1_000_000
NAMED = b"<meta name=robots content=noindex>"
# What stands between two meta elements, again and again.
FLOODS = [
    "<", "< ", "<p>x</p>", "<a ", "<a b='", '<a b="', "<!--", "<!-- -->", "<!>", "</p>", "<p =a>",
    "<p a=b c='d' e>", "<template></template>", "<script></script>", "<meta>", "<meta x ",
    "<meta name=robots content=noindex>", "<meta name='robot&#115;'>", "<meta name='", "&#00000",
]  # fmt: skip
# Links, each with a number.
LINK_FLOODS = [
    "<a rel=nofollow href=/{}>", "<a rel=nofollow href=/?a={}&b=2>", "<a rel=ugc href=../{}>",
    "<a rel=nofollow href='/%61/{}'>", "<a rel=nofollow href=http://{}.example/>",
    "<a rel=nofollow href=é{}>", "<a href=/%61{} rel=nofollow><a href=/{}>",
]  # fmt: skip


def once(run: Callable[[HtmlResponse], object], page: bytes) -> float:
    """Milliseconds, the best of three."""
    rounds = []
    for _ in range(3):
        response = HtmlResponse("http://site.example/a/", body=page, encoding="utf-8")
        start = time.process_time()
        run(response)
        rounds.append(time.process_time() - start)
    return min(rounds) * 1e3


def of_hostile_pages() -> None:
    """The tables of hostile pages."""
    print(f"\n{'1 MB of':<40}{'directives':>12}{'selector':>12}{'ratio':>8}")
    for flood in FLOODS:
        octets = flood.encode()
        page = NAMED + octets * (MEGABYTE // len(octets)) + NAMED
        read = once(lambda response: page_directives(response, ("examplebot",)), page)
        build = once(lambda response: Selector(response), page)
        print(f"{flood:<40}{read:9.1f} ms{build:9.1f} ms{read / build:8.1f}")
    print(f"\n{'1 MB of':<52}{'rel':>12}{'extractor':>12}{'ratio':>8}")
    extractor = LinkExtractor()
    for flood in LINK_FLOODS:
        count = MEGABYTE // len(flood.encode())
        page = "".join(flood.format(*[number] * 2) for number in range(count)).encode()
        # Both use the selector of the response, which is not what is measured here.
        read = once(lambda response: Links(response).rel(URL), page)
        read -= once(lambda response: response.selector, page)
        extract = once(extractor.extract_links, page)
        extract -= once(lambda response: response.selector, page)
        print(f"{flood:<52}{read:9.1f} ms{extract:9.1f} ms{read / extract:8.2f}")


class Visitor(Spider):
    """Asks for every page, and takes nothing from it."""

    name = "visitor"

    async def start(self) -> AsyncIterator[Any]:
        for page in range(PAGES):
            yield Request(f"{self.settings['ROOT']}/articles/{page}.html")

    def parse(self, response: Any, **_: Any) -> Any:
        yield {"url": response.url}


def crawl(middleware: str, root: str) -> None:
    """One crawl in this process; prints its CPU seconds and its items."""
    process = AsyncCrawlerProcess(
        {"LOG_ENABLED": False, "ROOT": root, "TELNETCONSOLE_ENABLED": False}
        | {"CONCURRENT_REQUESTS": 32, "SPIDER_MIDDLEWARES": MIDDLEWARES[middleware]}
    )
    crawler = process.create_crawler(Visitor)
    process.crawl(crawler)
    before = time.process_time()
    process.start()
    seconds = time.process_time() - before
    assert crawler.stats is not None
    print(json.dumps([seconds, crawler.stats.get_value("item_scraped_count")]))


def run(middleware: str, root: str) -> float:
    """The CPU seconds of one crawl in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.pages", "--crawl", middleware, root]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    seconds, items = json.loads(output.stdout)
    assert items == PAGES, items
    return float(seconds)


def of_crawls(pairs: int) -> None:
    """Each pair of crawls, and the median."""
    web = Web()
    site = web.site(pages={"*": Page(html(30_000), headers=HEADERS)})
    ratios = []
    for pair in range(pairs):
        order = list(MIDDLEWARES) if pair % 2 else list(reversed(MIDDLEWARES))
        seconds = {}
        for middleware in order:
            seconds[middleware] = run(middleware, site.root)
            site.received.clear()
        ratios.append(seconds["with"] / seconds["without"])
        print(
            f"pair {pair + 1}: with {seconds['with']:.3f} s, without {seconds['without']:.3f} s, "
            f"{ratios[-1]:.3f}"
        )
    print(f"median ratio with / without: {median(ratios):.3f}")
    web.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--crawl"]:
        crawl(*sys.argv[2:])
    else:
        of_pages()
        of_hostile_pages()
        of_crawls(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
