"""A robots.txt over the size limit ends as a response for all other components of a crawl."""

from __future__ import annotations

import gzip
import logging
import zlib
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Response

from scrapy_rep.protocol.lines import SIZE_LIMIT
from testing.faults import (
    BOMB,
    DISALLOWED,
    PATHS,
    RULES,
    RULES_HOLD,
    TOO_LARGE,
    fault,
    meaning_of,
    outcome_of,
)
from testing.web import Web

from .conftest import Crawl, ScrapysHandler


class Witness:
    """A downloader middleware that records the response or exception of each robots.txt."""

    seen: list[Response | Exception]

    def __init__(self) -> None:
        type(self).seen = []

    def process_response(self, request: Request, response: Response) -> Response:
        if request.meta.get("is_robotstxt_request"):
            self.seen.append(response)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        if request.meta.get("is_robotstxt_request"):
            self.seen.append(exception)


class NearWitness(Witness):
    """Next to the downloader, as a cache is."""


class FarWitness(Witness):
    """Next to the engine, after Scrapy's HttpCompressionMiddleware has decoded the response."""


WITNESSES = {"DOWNLOADER_MIDDLEWARES": {NearWitness: 950, FarWitness: 110}}

DEFLATED = zlib.compress(RULES + bytes(60 << 20))


@pytest.mark.parametrize("name", ["sends gzip that is none", *TOO_LARGE])
async def test_other_middlewares_receive_one_response(web: Web, crawl: Crawl, name: str) -> None:
    site = web.site(fault(name))
    outcome = await crawl(site.urls(*PATHS), WITNESSES)
    assert outcome_of(site) == meaning_of(name)
    exceptions = {
        key.rpartition(".")[2] for key in outcome.stats if "/exception_type_count/" in key
    }
    assert exceptions == {"RobotsTxtDisallowed"}, "those of pages"
    assert not any(key.startswith("robotstxt/exception_count") for key in outcome.stats)
    for witness in (NearWitness, FarWitness):
        (response,) = witness.seen
        assert isinstance(response, Response)
        assert response.status == 200
        assert len(response.body) <= 2 * SIZE_LIMIT


class Silent(ScrapysHandler):
    """A download handler that sends no signals, and leaves the decoding to Scrapy."""

    answers: dict[str, tuple[bytes, str]]

    async def download_request(self, request: Request) -> Response:
        body, coding = self.answers.get(request.url, (b"a page", ""))
        headers = {"Content-Encoding": coding} if coding else {}
        return Response(request.url, headers=headers, body=body)


@pytest.mark.parametrize(
    ("body", "coding", "expected"),
    [
        (RULES, "", RULES_HOLD),
        (gzip.compress(RULES), "gzip", RULES_HOLD),
        (RULES + bytes(SIZE_LIMIT), "", RULES_HOLD),
        (BOMB, "gzip", RULES_HOLD),
        (BOMB[:1000], "gzip", RULES_HOLD),
        (gzip.compress(RULES)[:-9], "gzip", DISALLOWED),
        (zlib.compress(RULES), "deflate", RULES_HOLD),
        (DEFLATED, "deflate", DISALLOWED),
        (bytes(2 * SIZE_LIMIT + 1), "br", DISALLOWED),
    ],
    ids=[
        "plain", "gzip", "plain, too large", "gzip bomb", "gzip bomb, cut off", "gzip, cut off",
        "deflate", "deflate bomb", "brotli, too large",
    ],
)  # fmt: skip
async def test_a_handler_that_sends_no_signals(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch, body: bytes, coding: str, expected: str
) -> None:
    root = "http://silent.example"
    monkeypatch.setattr(Silent, "answers", {root + "/robots.txt": (body, coding)}, raising=False)
    settings: dict[str, Any] = {**WITNESSES, "DOWNLOAD_HANDLERS": {"http": Silent}}
    outcome = await crawl([root + path for path in PATHS], settings)
    fetched = tuple(path for path in PATHS if root + path in outcome.responses)
    assert fetched == {RULES_HOLD: ("/public",), DISALLOWED: ()}[expected]
    (near,) = NearWitness.seen
    assert isinstance(near, Response)
    assert len(near.body) <= 2 * SIZE_LIMIT
    assert all(len(far.body) <= 2 * SIZE_LIMIT for far in FarWitness.seen)  # type: ignore[union-attr]
    assert not [record for record in outcome.log.records if record.levelno >= logging.ERROR]
