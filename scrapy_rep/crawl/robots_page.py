"""Answers a spider's own request for a robots.txt from memory (REP_ANSWER_ROBOTS_TXT).

Scrapy's SitemapSpider makes such requests, to find the sitemaps of a site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.http import TextResponse

from ..fetch.browsers import uses_browser
from ..meta_keys import CACHED_FLAG, IS_ROBOTSTXT_REQUEST
from ..origin import State
from ..protocol.paths import ROBOTS_TXT, robots_txt_url

if TYPE_CHECKING:
    from scrapy import Request

    from ..origin import Origin


def robots_txt_response(request: Request, origin: Origin) -> TextResponse | None:
    """Return the response to a request for the robots.txt of ``origin``, from memory.

    Returns None if the server has to answer: the request is for another URL, for a browser or for
    an uncached response, or the copy in memory is not exactly what the origin sends.
    """
    if not (_is_for_robots_txt(request) and _has_own_copy(origin)):
        return None
    text = origin.robots.text if origin.robots is not None else None
    if text is None:
        return None
    return TextResponse(
        request.url,
        headers={"Content-Type": "text/plain; charset=utf-8"},
        body=text,
        flags=[CACHED_FLAG],
        request=request,
    )


def _is_for_robots_txt(request: Request) -> bool:
    if request.method != "GET" or not request.url.endswith(ROBOTS_TXT):
        return False
    url, meta = urlsplit(request.url), request.meta
    return (
        url.scheme in ("http", "https")
        and (url.path, url.query, url.fragment) == (ROBOTS_TXT, "", "")
        and "@" not in url.netloc
        and not meta.get("dont_cache")
        and not meta.get(IS_ROBOTSTXT_REQUEST)
        and not uses_browser(meta)
    )


def _has_own_copy(origin: Origin) -> bool:
    """Whether the copy of an origin is fresh, and did not come from a redirect."""
    return origin.state is State.FRESH and (
        origin.copy is not None and origin.copy.url == robots_txt_url(origin.key)
    )
