"""The sites of `scrapy crawl demo`: each shows one thing that a robots.txt can mean.

The last one shows what pages can say.
"""

from __future__ import annotations

from example.web.pages import pages_site
from example.web.sites import ROBOTS_TXT, Answer, Site

GROUPS = b"""\
# Of these two groups examplebot obeys the second one only.
User-agent: *
Disallow: /

User-agent: examplebot
Disallow: /private/
Allow: /private/open/
Disallow: /*.pdf$
Disallow: /search?*sort=
"""

WILDCARD_AGENT = b"""\
User-agent: otherbot
Disallow:

User-agent: *
Disallow: /
Allow: /$
Allow: /shop/
Disallow: /shop/cart
Disallow: /shop/*/edit
"""

FIRST_PORT = b"User-agent: *\nDisallow: /red/\n"
SECOND_PORT = b"User-agent: *\nDisallow: /blue/\n"
AFTER_REDIRECTS = b"User-agent: *\nDisallow: /moved/\n"
NOT_FOUND = b"User-agent: *\nDisallow: /  # the body of a 404 means nothing\n"
LATE = b"User-agent: *\nDisallow: /late/\n"
OLD_PAGE = b"User-agent: *\nDisallow: /private/\n"


def demo_sites(port: int) -> tuple[Site, ...]:
    """All sites, on `port` of 127.0.0.11 and following; one of them also on `port + 1`."""
    chain = f"http://127.0.0.16:{port}"
    return (
        Site(
            "a group for examplebot",
            "127.0.0.11",
            port,
            {ROBOTS_TXT: Answer(GROUPS)},
            allowed=("/", "/private/open/page", "/guide.pdf?page=2", "/search?q=robots"),
            disallowed=("/private/page", "/guide.pdf", "/search?sort=new"),
        ),
        Site(
            "the group for everyone",
            "127.0.0.12",
            port,
            {ROBOTS_TXT: Answer(WILDCARD_AGENT)},
            allowed=("/", "/shop/", "/shop/shoes"),
            disallowed=("/about", "/shop/cart", "/shop/shoes/edit"),
        ),
        Site(
            "first port of a host",
            "127.0.0.13",
            port,
            {ROBOTS_TXT: Answer(FIRST_PORT)},
            allowed=("/blue/",),
            disallowed=("/red/",),
        ),
        Site(
            "second port of it",
            "127.0.0.13",
            port + 1,
            {ROBOTS_TXT: Answer(SECOND_PORT)},
            allowed=("/red/",),
            disallowed=("/blue/",),
        ),
        Site(
            "404: no robots.txt",
            "127.0.0.14",
            port,
            {ROBOTS_TXT: Answer(NOT_FOUND, status=404)},
            allowed=("/", "/anything"),
        ),
        Site(
            "503: server in trouble",
            "127.0.0.15",
            port,
            {ROBOTS_TXT: Answer(b"Try again later\n", status=503)},
            disallowed=("/", "/anything"),
        ),
        Site(
            "redirects elsewhere",
            "127.0.0.16",
            port,
            {
                ROBOTS_TXT: Answer(status=301, location=f"{chain}/policy"),
                "/policy": Answer(status=302, location=f"http://127.0.0.17:{port}/shared.txt"),
            },
            allowed=("/",),
            disallowed=("/moved/", "/moved/page"),
        ),
        Site(
            "where those lead",
            "127.0.0.17",
            port,
            {
                ROBOTS_TXT: Answer(b"User-agent: *\nDisallow: /only-here/\n"),
                "/shared.txt": Answer(AFTER_REDIRECTS),
            },
            allowed=("/moved/",),
            disallowed=("/only-here/",),
        ),
        Site(
            "silent: never answers",
            "127.0.0.18",
            port,
            {ROBOTS_TXT: Answer(delay=None)},
            disallowed=("/", "/anything"),
        ),
        Site(
            "late: many wait for it",
            "127.0.0.19",
            port,
            {ROBOTS_TXT: Answer(LATE, delay=1.0)},
            allowed=tuple(f"/early/{number}" for number in range(1, 4)),
            disallowed=tuple(f"/late/{number}" for number in range(1, 11)),
        ),
        Site(
            "a page that redirects",
            "127.0.0.20",
            port,
            {
                ROBOTS_TXT: Answer(OLD_PAGE),
                "/old": Answer(status=302, location="/private/new"),
            },
            allowed=("/old",),
            redirected_to=("/private/new",),
        ),
        pages_site("127.0.0.21", port),
    )
