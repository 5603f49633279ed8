"""The sites of the small web: what they answer, and what a crawler may fetch there."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

ROBOTS_TXT = "/robots.txt"
NEVER = 60.0  # seconds: no crawl here waits so long


@dataclass(frozen=True)
class Answer:
    """One response. It begins after `delay` seconds."""

    body: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0


@dataclass(frozen=True)
class Site:
    """One origin. A path that `pages` does not have is a small page.

    Of the paths, separated by spaces, the crawl asks for `allowed` and `disallowed`. Only links
    and redirects lead to the others: to `found`, which are allowed, to `redirected_to`, which are
    disallowed, and to `not_followed`, by nofollow links. They are sorted by hand, so that the
    crawl can be compared with them.
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
        """Return the URLs of paths that are separated by spaces."""
        return [self.origin + path for path in " ".join(paths).split()]

    def answer(self, path: str) -> Answer:
        if path == ROBOTS_TXT:
            return self.robots
        links = f"{self.allowed} {self.disallowed}".split() if path == "/" else ()
        return self.pages.get(path) or page("".join(map(link, links)), f"{self.name}: {path}")


def page(html: str, title: str = "A page", **headers: str) -> Answer:
    """Return a page of HTML. The names of its headers are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named["Content-Type"] = "text/html; charset=utf-8"
    return Answer(f"<!doctype html><title>{title}</title>{html}", headers=named)


def link(path: str, rel: str = "") -> str:
    return f'<p><a href="{path}" rel="{rel}">{path}</a>'


def redirect(location: str) -> Answer:
    return Answer(status=302, headers={"Location": location})


def everyone(*lines: str) -> Answer:
    """Return a robots.txt with one group, for every crawler."""
    return Answer("\n".join(("User-agent: *", *lines, "")))


GROUPS = """\
# There are two groups. The second one is for examplebot, so the first one is not.
User-agent: *
Disallow: /

User-agent: examplebot
Disallow: /docs/
Allow: /docs/faq/
Disallow: /*.pdf$
Disallow: /*sort=
"""

WILDCARD_AGENT = """\
User-agent: otherbot
Disallow:

User-agent: *
Disallow: /
Allow: /$
Allow: /shop/
Disallow: /shop/cart
Disallow: /shop/*/edit
"""

# Each path names what its page says about itself, and where.
PAGES = {
    "/nothing": page(link("/linked/1")),
    "/meta-noindex": page('<meta name="robots" content="noindex">' + link("/linked/2")),
    "/meta-examplebot": page('<meta name="examplebot" content="noindex">'),
    "/meta-otherbot": page('<meta name="otherbot" content="noindex">'),
    "/x-robots-tag": page("", X_Robots_Tag="noindex"),
    "/expired": page("", X_Robots_Tag="unavailable_after: Friday, 25-Jun-10 15:00:00 GMT"),
    "/meta-nofollow": page('<meta name="robots" content="nofollow">' + link("/linked/3")),
    "/rel-nofollow": page(link("/linked/4") + link("/linked/5", rel="nofollow")),
    "/art/picture": page(""),  # its robots.txt says it
    "/content-usage": page("", Content_Usage="train-ai=n"),
    "/tdm-reservation": page('<meta name="tdm-reservation" content="1">'),
}

# The address, what the site shows, its robots.txt, what that allows, and what it disallows.
# fmt: off
SITES = (
    Site("127.0.0.11", "a group for examplebot", Answer(GROUPS),
         "/ /docs/faq/1 /guide.pdf?page=2 /search?q=robots", "/docs/1 /guide.pdf /search?sort=new"),
    Site("127.0.0.12", "the group for everyone", Answer(WILDCARD_AGENT),
         "/ /shop/ /shop/shoes", "/about /shop/cart /shop/shoes/edit"),
    Site("127.0.0.13", "one port of a host", everyone("Disallow: /red/"), "/blue/", "/red/"),
    Site("127.0.0.13", "another port of that host", everyone("Disallow: /blue/"),
         "/red/", "/blue/", port=1),
    Site("127.0.0.14", "no robots.txt: a 404 with rules in its body",
         Answer("User-agent: *\nDisallow: /\n", status=404), "/ /anything"),
    Site("127.0.0.15", "robots.txt answers 503", Answer("Later\n", status=503), "", "/ /anything"),
    Site("127.0.0.16", "robots.txt redirects to another host", redirect("/policy"),
         "/", "/moved/ /moved/page", {"/policy": redirect("http://127.0.0.17:{port}/shared")}),
    Site("127.0.0.17", "that other host", everyone("Disallow: /only-here/"),
         "/moved/", "/only-here/", {"/shared": everyone("Disallow: /moved/")}),
    Site("127.0.0.18", "robots.txt does not answer", Answer(delay=NEVER), "", "/ /anything"),
    Site("127.0.0.19", "robots.txt is slow: ten requests wait for it",
         Answer("User-agent: *\nDisallow: /private/\n", delay=1),
         "/open/1 /open/2", " ".join(f"/private/{number}" for number in range(1, 9))),
    Site("127.0.0.20", "a page redirects to a disallowed one", everyone("Disallow: /private/"),
         "/old", pages={"/old": redirect("/private/new")}, redirected_to="/private/new"),
    Site("127.0.0.21", "Crawl-delay: 1", everyone("Crawl-delay: 1"), "/1 /2 /3", crawl_delay=1),
    Site("127.0.0.22", "pages that say what may be done with them",
         everyone("Content-Usage: /art/ train-ai=n"), " ".join(PAGES), pages=PAGES,
         found="/linked/1 /linked/2 /linked/4", not_followed="/linked/3 /linked/5"),
)
# fmt: on


def sites_at(port: int) -> list[Site]:
    """Return the sites, which listen on this port. The second one of a host has the next port."""
    return [replace(site, port=port + site.port) for site in SITES]
