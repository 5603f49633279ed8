"""The robots.txt files that state a usage, for the responses to requests in progress.

REP_CACHE_SIZE may remove an origin from memory before the response to its last request arrives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from ..protocol.paths import origin_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.http import Response

    from ..origin import Origin
    from ..protocol.robotstxt import RobotsTxt


class UsageFiles:
    """The files of one crawl that state a usage.

    ``origins`` are those in memory. With ``any_file``, every file can state a usage.
    """

    def __init__(self, origins: Mapping[str, Origin], *, any_file: bool) -> None:
        self._origins = origins
        self._any_file = any_file
        self._origin_of: WeakKeyDictionary[Request, Origin] = WeakKeyDictionary()

    def add(self, request: Request, origin: Origin) -> None:
        """Keep the origin of a request that is about to be sent, if its file states a usage."""
        content = origin.content
        if content is not None and (content.has_usage or self._any_file):
            self._origin_of[request] = origin

    def file(self, response: Response) -> RobotsTxt | None:
        """Return the file that states the usage of a response; None if no file is known to."""
        key = origin_of(response.url)
        origin = self._origins.get(key or "")
        if origin is None and response.request is not None:
            origin = self._origin_of.get(response.request)
        if origin is None or origin.key != key or origin.content is None:
            return None
        return origin.content if self._any_file or origin.content.has_usage else None
