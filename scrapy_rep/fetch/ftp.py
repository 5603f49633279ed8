"""The download handler for FTP: a robots.txt within its limit, every other file as Scrapy has it.

Scrapy's own handler reads a file to its end before it says anything of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.core.downloader.handlers.ftp import FTPDownloadHandler as BuiltInHandler
from scrapy.http import Response, TextResponse
from scrapy.utils.httpobj import urlparse_cached

if TYPE_CHECKING:
    from scrapy import Request


class FTPDownloadHandler(BuiltInHandler):
    """For ``DOWNLOAD_HANDLERS``; the add-on puts it where Scrapy's own would be."""

    async def download_request(self, request: Request) -> Response:
        """Called by Scrapy for each download.

        The body of a robots.txt ends one octet above the limit; the status is 404 where there is
        none. Whatever else a server does instead of sending it raises.
        """
        if not request.meta.get("is_robotstxt_request"):
            return await super().download_request(request)
        from .ftp_client import retrieve  # not before Scrapy has its reactor

        url = urlparse_cached(request)
        login = request.meta["ftp_user"], request.meta["ftp_password"]
        address = url.hostname or "", url.port or 21
        body = await retrieve(address, login, url.path, passive=bool(self.passive_mode))
        if body is None:
            return Response(request.url, status=404)
        return TextResponse(request.url, body=body)
