"""The last answer for a robots.txt, for spiders that request one, such as Scrapy's SitemapSpider.

The crawl has fetched the file already, so its site gets no second request.
"""

from __future__ import annotations

from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response, TextResponse

from ..origin import Origin, State
from ..protocol.paths import is_robots_txt
from ..settings import CACHED_FLAG, DONT_OBEY, IS_ROBOTSTXT_REQUEST

FLAG = "scrapy_rep"
"""The flag of such a response. It has another one, so that Scrapy's HTTP cache does not store it.
"""


def gets_last_answer(request: Request) -> bool:
    """Whether a request gets the last answer for a robots.txt, if the crawl has it."""
    is_exempt = request.meta.get(DONT_OBEY) or request.meta.get(IS_ROBOTSTXT_REQUEST)
    return is_robots_txt(request.url) and request.method == "GET" and not is_exempt


def last_answer(origin: Origin, request: Request) -> Response | None:
    """Return the last answer as a response to a request, with the URL of the request.

    An error has no body. None if there is a body that is not in memory. Raises IgnoreRequest if the
    file has too many redirects, or is unreachable, and no response with an error status says so.
    """
    status, body = origin.status or 0, b"" if (origin.status or 0) >= 400 else None
    if origin.content is not None:
        status, body = 200, origin.content.text
    elif body is None and (origin.state is State.UNREACHABLE or not status):
        failure = origin.failure or "too many redirects"
        raise IgnoreRequest(f"The robots.txt of {origin.key} cannot be fetched: {failure}")
    if body is None:
        return None
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    return TextResponse(request.url, status, headers, body, [CACHED_FLAG, FLAG], request)
