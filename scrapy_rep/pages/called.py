"""The directives of responses that the spider middleware does not get.

They are those of media pipelines, and of other callers of ``engine.download_async``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from scrapy.http import HtmlResponse, Response

from ..protocol.tdmrep import TdmRule
from .directives import PageDirectives, directives_of, stated_in


class UnreadDirectives(PageDirectives):
    """The directives of a page that is parsed when one of them is first asked for."""

    __slots__ = ("_read",)
    _read: Callable[[], PageDirectives]

    def __init__(self, read: Callable[[], PageDirectives]) -> None:
        object.__setattr__(self, "_read", read)

    def __getattr__(self, name: str) -> Any:
        """Set all fields. Python calls this only for a field that is not set."""
        found = object.__getattribute__(self, "_read")()
        for field in fields(found):
            object.__setattr__(self, field.name, getattr(found, field.name))
        object.__setattr__(self, "_read", lambda: found)  # which frees the page
        return getattr(found, name)


def directives_when_asked(
    response: Response, tokens: tuple[str, ...], tdm: TdmRule | None
) -> PageDirectives:
    """Return the directives of a response for a crawler. HTML is not parsed before it is needed."""
    if not isinstance(response, HtmlResponse):
        return directives_of(response, stated_in(response, tokens, tdm))
    # Without its request: in a cycle with its meta, the body would stay in memory for long.
    page = HtmlResponse(response.url, response.status, response.headers, response.body)
    return UnreadDirectives(lambda: directives_of(page, stated_in(page, tokens, tdm)))
