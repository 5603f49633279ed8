"""The download handler for FTP, which limits the size of a robots.txt.

Scrapy's own handler reads a whole file before it reports anything. It downloads all other files.
"""

from __future__ import annotations

from scrapy import Request
from scrapy.core.downloader.handlers.ftp import FTPDownloadHandler as BuiltInHandler
from scrapy.http import Response, TextResponse
from scrapy.utils.httpobj import urlparse_cached

from ..meta_keys import IS_ROBOTSTXT_REQUEST


class FTPDownloadHandler(BuiltInHandler):
    """The handler for ``ftp`` in DOWNLOAD_HANDLERS. The add-on puts it there."""

    async def download_request(self, request: Request) -> Response:
        """Download a file. If the server has no robots.txt, the status is 404.

        Any other failure raises the error of Twisted.
        """
        if not request.meta.get(IS_ROBOTSTXT_REQUEST):
            return await super().download_request(request)
        from .ftp_client import retrieve  # imports the reactor, which Scrapy must have installed

        url = urlparse_cached(request)
        login = request.meta["ftp_user"], request.meta["ftp_password"]
        address = url.hostname or "", url.port or 21
        body = await retrieve(address, login, url.path, passive=bool(self.passive_mode))
        if body is None:
            return Response(request.url, status=404)
        return TextResponse(request.url, body=body)
