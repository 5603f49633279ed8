"""A request for /robots.txt as a page, answered with the copy in memory (REP_ANSWER_ROBOTS_TXT).

Scrapy's SitemapSpider makes such requests, to find the sitemaps of a site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.http import TextResponse

from ..fetch.browsers import asks_for_browser
from ..meta_keys import IS_ROBOTSTXT_REQUEST
from ..origin import ROBOTS_TXT, State
from ..protocol.paths import robots_txt_url

if TYPE_CHECKING:
    from scrapy import Request

    from ..origin import Origin

FROM_CACHE = "cached"
"""The flag of a response that no server has sent, as Scrapy's HTTP cache has it."""


def answer(request: Request, origin: Origin) -> TextResponse | None:
    """The response to a request for the robots.txt of ``origin``, which can be asked.

    None where the server has to answer: the request is for something else or asks for a browser
    or for no cache, or the copy in memory is not all of what the origin itself sends.
    """
    if not (_asks_for_robots_txt(request) and _is_its_own(origin)):
        return None
    text = origin.robots.text if origin.robots is not None else None
    if text is None:
        return None
    return TextResponse(
        request.url,
        headers={"Content-Type": "text/plain; charset=utf-8"},
        body=text,
        flags=[FROM_CACHE],
        request=request,
    )


def _asks_for_robots_txt(request: Request) -> bool:
    if request.method != "GET" or not request.url.endswith(ROBOTS_TXT):
        return False
    url, meta = urlsplit(request.url), request.meta
    return (
        url.scheme in ("http", "https")
        and (url.path, url.query, url.fragment) == (ROBOTS_TXT, "", "")
        and "@" not in url.netloc
        and not meta.get("dont_cache")
        and not meta.get(IS_ROBOTSTXT_REQUEST)
        and not asks_for_browser(meta)
    )


def _is_its_own(origin: Origin) -> bool:
    """Whether the copy is fresh, and the origin's own answer: no redirect led to it."""
    return origin.state is State.FRESH and (
        origin.copy is not None and origin.copy.url == robots_txt_url(origin.key)
    )
