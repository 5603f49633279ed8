"""What a site requires before it sends a page: a payment or a license.

Sources: RFC 9110 (statuses and authentication), Cloudflare's pay per crawl (``crawler-price``),
x402 (``PAYMENT-REQUIRED``) and RSL 1.0 §6.3 (``WWW-Authenticate: License``).
`protocol.usage.VOCABULARIES` has their versions::

    crawler-price    = currency SP amount                      such as "USD 0.01"
    PAYMENT-REQUIRED = base64 of a JSON object with the offers of the site

    WWW-Authenticate = #challenge                                           RFC 9110 §11.6.1
    challenge        = auth-scheme [ 1*SP ( token68 / #auth-param ) ]       RFC 9110 §11.3
    auth-param       = token BWS "=" BWS ( token / quoted-string )

Nothing here pays or acquires a license. The spider middleware annotates and counts such a response.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..meta_keys import DONT_RETRY, IS_ROBOTSTXT_REQUEST
from ..protocol.printable import printable
from .directives import BETWEEN_COMMAS, header_lines

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

PAYMENT_REQUIRED = 402
"""RFC 9110 §15.5.3."""

_LICENSE = "license"
"""The authentication scheme of RSL. The case of a scheme does not matter (RFC 9110 §11.1)."""

MAX_OFFERS = 16_384
"""Characters of a PAYMENT-REQUIRED header. A longer one is not kept (ours)."""
MAX_LINES = 10
MAX_LINE = 4096
"""The WWW-Authenticate lines that are read, and the characters of each (ours)."""

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SCHEME = re.compile(rf"[ \t]* ({_TOKEN}) (?: [ \t]+ (?![ \t=]) | [ \t]* \Z )", re.VERBOSE)

_NOT_RETRIED = "access terms"
"""The value of ``dont_retry`` that the middleware sets. It differs from the value of a user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessTerms:
    """What a site requires before it sends a page. `str` is short and safe to log.

    >>> str(AccessTerms(payment_required=True, price="USD 0.01"))
    'a payment (USD 0.01)'
    """

    payment_required: bool = False
    """Whether the status is 402 (Payment Required)."""
    license_required: bool = False
    """Whether the response has the header ``WWW-Authenticate: License`` (RSL)."""
    price: str | None = None
    """The price of the page, as the site wrote it (``crawler-price``)."""
    offers: str | None = None
    """The ways to pay (x402), as the site wrote them: the PAYMENT-REQUIRED header, which is a JSON
    object in base64."""

    def __str__(self) -> str:
        price = self.price or ("x402" if self.offers else None)
        required = []
        if self.payment_required:
            required.append(f"a payment ({price})" if price else "a payment")
        if self.license_required:
            required.append("a license")
        return " and ".join(required)


def terms_of(response: Response) -> AccessTerms | None:
    """Return what a response requires; None if it requires neither a payment nor a license."""
    if response.status not in (401, PAYMENT_REQUIRED):
        return None
    needs_payment = response.status == PAYMENT_REQUIRED
    lines = header_lines(response, "WWW-Authenticate")[:MAX_LINES]
    needs_license = any(_LICENSE in _schemes(line[:MAX_LINE]) for line in lines)
    if not (needs_payment or needs_license):
        return None
    price = _first(response, "crawler-price")
    offers = _first(response, "PAYMENT-REQUIRED")
    return AccessTerms(
        payment_required=needs_payment,
        license_required=needs_license,
        price=printable(price) or None,
        offers=offers if 0 < len(offers) <= MAX_OFFERS and offers.isprintable() else None,
    )


def _first(response: Response, name: str) -> str:
    """Return the first of several header lines."""
    return next(iter(header_lines(response, name)), "").strip()


def _schemes(line: str) -> list[str]:
    """Return the authentication schemes of the challenges in a line, in lower case."""
    found = map(_SCHEME.match, BETWEEN_COMMAS.findall(line))
    return [scheme[1].lower() for scheme in found if scheme]


class AccessTermsMiddleware:
    """Prevents the retry of responses that require a payment or a license.

    Scrapy's RetryMiddleware and others do not retry a request with ``dont_retry`` in its ``meta``.
    This middleware sets it for these responses, and so it has to process them first: its value in
    DOWNLOADER_MIDDLEWARES is higher than theirs. The answer to a request for a robots.txt is not a
    page: its status decides what it means (RFC 9309 §2.3.1.3).
    """

    async def process_request(self, request: Request) -> None:
        """Remove the mark of this middleware from a ``meta`` that was copied."""
        if request.meta.get(DONT_RETRY) == _NOT_RETRIED:
            del request.meta[DONT_RETRY]

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return the response, after it is excluded from retries."""
        meta = request.meta
        is_retryable = not (meta.get(DONT_RETRY) or meta.get(IS_ROBOTSTXT_REQUEST))
        if is_retryable and terms_of(response) is not None:
            meta[DONT_RETRY] = _NOT_RETRIED
        return response
