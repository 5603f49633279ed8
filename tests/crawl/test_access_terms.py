"""Pages that require a payment or a license, judged by what the server received."""

from __future__ import annotations

from typing import Any

from scrapy import Request
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.http import Response

from scrapy_rep import AccessTerms
from testing.web import Page, Web

from .conftest import Crawl, Visitor, in_turn

PAID = Page("", 402, {"crawler-price": "USD 0.01"})
LICENSED = Page(
    "",
    401,
    {
        "WWW-Authenticate": 'License error="invalid_token"',
        "Link": '</license.xml>; rel="license"; type="application/rsl+xml"',
    },
)
PASSWORD = Page("", 401, {"WWW-Authenticate": 'Basic realm="License"'})

# All statuses that a site answers with here are retried, by the settings of the user.
RETRIES = {
    "RETRY_ENABLED": True,
    "RETRY_TIMES": 2,
    "RETRY_HTTP_CODES": [401, 402, 503],
    "HTTPERROR_ALLOW_ALL": True,
}


async def test_a_page_that_requires_a_payment_or_a_license_is_not_retried(
    web: Web, crawl: Crawl
) -> None:
    site = web.site(None, {"/paid": PAID, "/licensed": LICENSED, "/password": PASSWORD,
                           "/broken": Page("", 503)})  # fmt: skip
    paths = ("/paid", "/licensed", "/password", "/broken")
    outcome = await crawl(site.urls(*paths), RETRIES)
    assert site.page_paths == ["/broken"] * 3 + ["/licensed", "/paid"] + ["/password"] * 3
    assert outcome.stats["robotstxt/payment_required"] == 1
    assert outcome.stats["robotstxt/license_required"] == 1
    assert outcome.stats["retry/count"] == 4
    seen = {url.removeprefix(site.root): r.meta for url, r in outcome.responses.items()}
    assert seen["/paid"]["page_directives"].access_terms == AccessTerms(
        payment_required=True, price="USD 0.01"
    )
    licensed = seen["/licensed"]["page_directives"]
    assert licensed.access_terms == AccessTerms(license_required=True)
    assert licensed.licenses == (site.url("/license.xml"),)
    assert seen["/password"]["page_directives"].access_terms is None
    # Nothing but pages was requested.
    assert set(site.paths) == {"/robots.txt", *paths}


class Retrier(Visitor):
    """Retries a page itself."""

    def parse(self, response: Response, **_: Any) -> Any:
        super().parse(response)
        if response.status == 402:
            assert response.request is not None
            yield get_retry_request(response.request, spider=self, reason="402")


async def test_a_spider_may_retry_a_page_itself(web: Web, crawl: Crawl) -> None:
    site = web.site(None, {"/": in_turn(PAID, Page("", 503), Page("open"))})
    outcome = await crawl(site.urls("/"), RETRIES, spider=Retrier)
    assert site.page_paths == ["/"] * 3
    assert outcome.responses[site.url("/")].body == b"open"


async def test_the_value_of_a_user_stays(web: Web, crawl: Crawl) -> None:
    site = web.site(None, {"/": PAID})
    outcome = await crawl([Request(site.url("/"), meta={"dont_retry": "access"})], RETRIES)
    assert outcome.responses[site.url("/")].meta["dont_retry"] == "access"
