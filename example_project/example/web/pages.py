"""A site whose pages say what may become of them: in their HTML, their headers, its robots.txt."""

from __future__ import annotations

from dataclasses import replace

from example.web.sites import ROBOTS_TXT, Answer, Site, page

ROBOTS = b"""\
User-agent: *
Content-Signal: search=yes
Content-Usage: /art/ train-ai=n
"""

HTML = "text/html; charset=utf-8"

# What each page says, in words, and the page.
PAGES = {
    "/says/nothing": ("nothing", Answer(page("A page", ("/linked/1",)))),
    "/says/noindex": (
        "meta robots: noindex",
        Answer(page("Not to be indexed", ("/linked/2",), meta={"robots": "noindex"})),
    ),
    "/says/ours": (
        "meta examplebot: noindex",
        Answer(page("Not by us", (), meta={"examplebot": "noindex"})),
    ),
    "/says/theirs": (
        "meta otherbot: noindex",
        Answer(page("Not by others", (), meta={"otherbot": "noindex"})),
    ),
    "/says/header": (
        "X-Robots-Tag: noindex",
        Answer(page("By a header", ()), headers={"X-Robots-Tag": "noindex"}),
    ),
    "/says/expired": (
        "unavailable_after, long past",
        Answer(
            page("Over", ()),
            headers={"X-Robots-Tag": "unavailable_after: Friday, 25-Jun-10 15:00:00 GMT"},
        ),
    ),
    "/says/nofollow": (
        "meta robots: nofollow",
        Answer(page("Not to be followed", ("/linked/3",), meta={"robots": "nofollow"})),
    ),
    "/says/rel": (
        "rel=nofollow on 1 of 2 links",
        Answer(page("Links", ("/linked/4",), nofollow=("/linked/5",))),
    ),
    "/art/picture": ("robots.txt: train-ai=n", Answer(page("A picture", ()))),
    "/says/usage": (
        "Content-Usage: train-ai=n",
        Answer(page("A text", ()), headers={"Content-Usage": "train-ai=n"}),
    ),
    "/says/tdm": (
        "meta tdm-reservation: 1",
        Answer(page("Rights reserved", (), meta={"tdm-reservation": "1"})),
    ),
}


def pages_site(address: str, port: int) -> Site:
    """The site, with the paths that its links lead to."""
    return Site(
        "pages that say something",
        address,
        port,
        {ROBOTS_TXT: Answer(ROBOTS)}
        | {path: replace(answer, content_type=HTML) for path, (_, answer) in PAGES.items()},
        allowed=tuple(PAGES),
        says={path: words for path, (words, _) in PAGES.items()},
        followed=("/linked/1", "/linked/2", "/linked/4"),
        not_followed=("/linked/3", "/linked/5"),
    )
