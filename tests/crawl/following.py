"""A download handler that follows redirects itself, as a browser does."""

from __future__ import annotations

from scrapy import Request
from scrapy.http import Response

from .conftest import ScrapysHandler


class FollowingHandler(ScrapysHandler):
    """Downloads with Scrapy's own handler, and returns the page at the end of the redirects."""

    async def download_request(self, request: Request) -> Response:
        while True:
            response = await super().download_request(request)
            location = response.headers.get("Location")
            if location is None or request.meta.get("is_robotstxt_request"):
                return response
            request = request.replace(url=response.urljoin(location.decode()))


FOLLOWING = {"DOWNLOAD_HANDLERS": {"http": FollowingHandler}}
