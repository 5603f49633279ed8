"""Which download handlers limit their connections."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler

from scrapy_rep.scheduling.handlers import UNLIMITED_HANDLERS, is_limited


class Renamed(HTTP11DownloadHandler):
    """A handler with a name of its own, such as one that only sets headers."""


class Pooled(HTTP11DownloadHandler):
    """A handler that downloads by itself, as that of scrapy-playwright does."""

    def download_request(self, request: Any, *spider: Any) -> Any:
        raise NotImplementedError


class Derived(Pooled):
    """A handler that is derived from such a one."""


@pytest.mark.parametrize(
    ("handler", "limited"),
    [
        *((name, False) for name in sorted(UNLIMITED_HANDLERS) if "http11" in name),
        (HTTP11DownloadHandler, False),
        (Renamed, False),
        (Pooled, True),
        (Derived, True),
        (f"{__name__}.Pooled", True),
        ("no.such.Handler", False),
    ],
)
def test_handlers_that_may_limit_their_connections(handler: Any, limited: bool) -> None:
    assert is_limited(handler) is limited
