"""Gateways: a middleware that sends requests of many sites to one host."""

from __future__ import annotations

from collections.abc import Mapping

from scrapy import Request

from ..logs import get_logger
from ..recorder import Recorder
from ..scrapy_internals import Engine
from ..settings import ROBOTSTXT
from .hosts import InProgress

logger = get_logger(__name__)


def log_replacement(
    request: Request,
    host: str,
    in_progress: Mapping[Request, InProgress],
    engine: Engine,
    recorder: Recorder,
) -> None:
    """Log, once, a request that a middleware has returned in place of one to another host.

    The replaced request has just ended, and was not sent. The new one has a copy of its meta, or
    its host in the URL. So has a request after a redirect that came from a cache, but that has
    ``redirect_urls``.
    """
    verdict = request.meta.get(ROBOTSTXT)
    for old, started in in_progress.items():
        name = started.host.name
        if (
            not engine.is_active(old)
            and name not in ("", host)
            and "download_slot" not in old.meta
            and "redirect_urls" not in request.meta
            and (old.meta.get(ROBOTSTXT, old) is verdict or name in request.url)
        ):
            if recorder.is_first("replacement"):
                logger.info(
                    "A middleware has replaced %(request)s with a request to %(host)s. If that is "
                    "a gateway to other sites, their delays and their back-off do not apply: one "
                    "site that asks for fewer requests makes all of them wait. To avoid this, see "
                    "Gateways in the documentation of scrapy-rep.",
                    {"request": old, "host": host},
                )
            return
