"""The sites of the small web: their responses, and what a crawler may fetch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

ROBOTS_TXT = "/robots.txt"
NEVER = 60.0  # seconds, longer than any crawl of this project waits


@dataclass(frozen=True)
class Answer:
    """A response, sent after `delay` seconds."""

    body: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass(frozen=True)
class Site:
    """One origin, and what a correct crawl of it does.

    The lists of paths are separated by spaces. The crawl starts with `allowed` and `disallowed`.
    Links lead to `found`, which is allowed. Redirects lead to `redirected_to`, which is
    disallowed. Nofollow links lead to `not_followed`. A path that is not in `pages` is a small
    page.
    """

    address: str
    name: str
    robots: Answer
    allowed: str = ""
    disallowed: str = ""
    pages: Mapping[str, Answer] = field(default_factory=dict)
    found: str = ""
    redirected_to: str = ""
    not_followed: str = ""
    crawl_delay: float = 0.0
    port: int = 0

    @property
    def origin(self) -> str:
        return f"http://{self.address}:{self.port}"

    @property
    def start_urls(self) -> list[str]:
        return self.urls(self.allowed, self.disallowed)

    def urls(self, *paths: str) -> list[str]:
        """Return the URLs of some lists of paths."""
        return [self.origin + path for path in " ".join(paths).split()]

    def answer(self, path: str) -> Answer:
        if path == ROBOTS_TXT:
            return self.robots
        links = f"{self.allowed} {self.disallowed}".split() if path == "/" else ()
        return self.pages.get(path) or page("".join(map(link, links)), f"{self.name}: {path}")


def page(html: str, title: str = "A page", **headers: str) -> Answer:
    """Return an HTML page. Names of headers have underscores instead of hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named["Content-Type"] = "text/html; charset=utf-8"
    return Answer(f"<!doctype html><title>{title}</title>{html}", headers=named)


def link(path: str, rel: str = "") -> str:
    return f'<p><a href="{path}" rel="{rel}">{path}</a>'


def redirect(location: str) -> Answer:
    return Answer(status=302, headers={"Location": location})


def rules(*lines: str) -> Answer:
    """Return a robots.txt with one group, for all crawlers."""
    return Answer("\n".join(("User-agent: *", *lines, "")))


TWO_GROUPS = """\
# The second group is for examplebot, so the first one does not apply to it.
User-agent: *
Disallow: /

User-agent: examplebot
Disallow: /docs/
Allow: /docs/faq/
Disallow: /*.pdf$
Disallow: /*sort=
"""

GROUP_FOR_ALL = """\
User-agent: otherbot
Disallow:

User-agent: *
Disallow: /
Allow: /$
Allow: /shop/
Disallow: /shop/cart
Disallow: /shop/*/edit
"""

# Each path names what the page says about itself, and where.
PAGES = {
    "/nothing": page(link("/linked/1")),
    "/meta-noindex": page('<meta name="robots" content="noindex">' + link("/linked/2")),
    "/meta-examplebot": page('<meta name="examplebot" content="noindex">'),
    "/meta-otherbot": page('<meta name="otherbot" content="noindex">'),
    "/x-robots-tag": page("", X_Robots_Tag="noindex"),
    "/expired": page("", X_Robots_Tag="unavailable_after: Friday, 25-Jun-10 15:00:00 GMT"),
    "/meta-nofollow": page('<meta name="robots" content="nofollow">' + link("/linked/3")),
    "/rel-nofollow": page(link("/linked/4") + link("/linked/5", rel="nofollow")),
    "/art/picture": page(""),  # its robots.txt refuses train-ai
    "/content-usage": page("", Content_Usage="train-ai=n"),
    "/tdm-reservation": page('<meta name="tdm-reservation" content="1">'),
}

# Address, what the site shows, robots.txt, allowed paths, disallowed paths.
# fmt: off
SITES = (
    Site("127.0.0.11", "a group for examplebot", Answer(TWO_GROUPS),
         "/ /docs/faq/1 /guide.pdf?page=2 /search?q=robots", "/docs/1 /guide.pdf /search?sort=new"),
    Site("127.0.0.12", "the group for all other crawlers", Answer(GROUP_FOR_ALL),
         "/ /shop/ /shop/shoes", "/about /shop/cart /shop/shoes/edit"),
    Site("127.0.0.13", "one port of a host", rules("Disallow: /red/"), "/blue/", "/red/"),
    Site("127.0.0.13", "another port of the same host", rules("Disallow: /blue/"),
         "/red/", "/blue/", port=1),
    Site("127.0.0.14", "no robots.txt: a 404 with rules in its body",
         Answer("User-agent: *\nDisallow: /\n", status=404), "/ /anything"),
    Site("127.0.0.15", "robots.txt answers 503", Answer("Later\n", status=503), "", "/ /anything"),
    Site("127.0.0.16", "robots.txt redirects to another host", redirect("/policy"),
         "/", "/moved/ /moved/page", {"/policy": redirect("http://127.0.0.17:{port}/shared")}),
    Site("127.0.0.17", "the host that it redirects to", rules("Disallow: /only-here/"),
         "/moved/", "/only-here/", {"/shared": rules("Disallow: /moved/")}),
    Site("127.0.0.18", "robots.txt does not answer", Answer(delay=NEVER), "", "/ /anything"),
    Site("127.0.0.19", "robots.txt is slow: ten requests wait for it",
         Answer("User-agent: *\nDisallow: /private/\n", delay=1),
         "/open/1 /open/2", " ".join(f"/private/{number}" for number in range(1, 9))),
    Site("127.0.0.20", "a page redirects to a disallowed one", rules("Disallow: /private/"),
         "/old", pages={"/old": redirect("/private/new")}, redirected_to="/private/new"),
    Site("127.0.0.21", "Crawl-delay: 0.5", rules("Crawl-delay: 0.5"), "/1 /2 /3", crawl_delay=0.5),
    Site("127.0.0.22", "pages that say what may be done with them",
         rules("Content-Usage: /art/ train-ai=n"), " ".join(PAGES), pages=PAGES,
         found="/linked/1 /linked/2 /linked/4", not_followed="/linked/3 /linked/5"),
)
# fmt: on


def sites_at(port: int) -> list[Site]:
    """Return the sites on this port. The second site of a host is on the next port."""
    return [replace(site, port=port + site.port) for site in SITES]
