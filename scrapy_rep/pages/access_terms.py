"""What a site requires before it sends a page, a payment or a license, and the middleware for it.

Sources: RFC 9110 (statuses and authentication), Cloudflare's pay per crawl (``crawler-price``),
x402 (``PAYMENT-REQUIRED``) and RSL 1.0 §6.3 (``WWW-Authenticate: License``).
`protocol.usage.VOCABULARIES` has their versions::

    crawler-price    = currency SP amount                      such as "USD 0.01"
    PAYMENT-REQUIRED = base64 of a JSON object with "accepts", an array of payment requirements

    WWW-Authenticate = #challenge                                           RFC 9110 §11.6.1
    challenge        = auth-scheme [ 1*SP ( token68 / #auth-param ) ]       RFC 9110 §11.3
    auth-param       = token BWS "=" BWS ( token / quoted-string )

Nothing here pays or acquires a license. Values are short, and hold printable characters only. The
downloader middleware counts such a response, logs it once for each site, and prevents its retry.
The spider middleware annotates it.

The answer to a request for a robots.txt is not a page: its status decides whether the robots.txt is
unavailable (RFC 9309 §2.3.1.3).
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import signals

from ..crawl.middleware import RobotsTxtMiddleware
from ..logs import get_logger
from ..meta_keys import DONT_RETRY, IS_ROBOTSTXT_REQUEST
from ..protocol.paths import origin_of
from ..protocol.printable import printable
from .directives import BETWEEN_COMMAS, header_lines, licenses, remove_annotations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from typing_extensions import Self

    from ..reports.event_log import CrawlLog

logger = get_logger(__name__)

PAYMENT_REQUIRED = 402
"""RFC 9110 §15.5.3."""
STATUSES = frozenset({401, PAYMENT_REQUIRED})
"""The statuses of responses that can require a payment or a license."""

_PRICE, _ERROR, _PAYMENT, _AUTHENTICATE = HEADERS = (
    "crawler-price",
    "crawler-error",
    "payment-required",
    "www-authenticate",
)
"""The names of the headers that are read, in lower case."""

_SCHEME_NAME = "license"
"""The authentication scheme of RSL. The case of a scheme does not matter (RFC 9110 §11.1)."""

MAX_OFFERS = 20
"""The payment offers of a response that are listed (ours). A response has one or a few."""
MAX_PAYMENT_REQUIRED = 16_384
"""Characters of a PAYMENT-REQUIRED header. A longer one is not read (ours)."""
MAX_LINES = 10
MAX_LINE = 4096
"""The WWW-Authenticate lines that are read, and the characters of each (ours)."""
MAX_URL = 2000
"""Characters of a URL. A longer one is not kept (ours)."""

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SCHEME = re.compile(rf"[ \t]* ({_TOKEN}) (?: [ \t]+ (?![ \t=]) | [ \t]* \Z )", re.VERBOSE)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)

MAX_LOGGED_SITES = 10_000
"""The sites that are known to be in the log. The first one is forgotten when there are more."""

MAX_URL_LENGTH = 300
"""Characters of a URL in a log message."""

_NOT_RETRIED = "access terms"
"""The value of ``dont_retry`` that this middleware sets. It differs from the value of a user."""


class PaymentOffer(NamedTuple):
    """One way to pay that x402 offers. Text that the site leaves out is empty."""

    amount: str
    """In the smallest unit of the asset."""
    asset: str
    """The address of a token contract, or the code of a currency (ISO 4217)."""
    network: str
    """The network of the payment (CAIP-2), such as ``eip155:8453``."""
    scheme: str
    """The payment scheme, such as ``exact``."""
    pay_to: str
    """The address of the recipient."""


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
    offers: tuple[PaymentOffer, ...] = ()
    """The ways to pay (``PAYMENT-REQUIRED``), at most `MAX_OFFERS`."""
    authorization_uri: str | None = None
    """The URL of the license server, as the site wrote it. Only drafts of RSL define it."""
    error: str | None = None
    """Why the page is not sent, as the site wrote it."""

    def __str__(self) -> str:
        price = self.price or (f"x402, {self.offers[0].amount}" if self.offers else None)
        required = []
        if self.payment_required:
            required.append(f"a payment ({price})" if price else "a payment")
        if self.license_required:
            required.append("a license")
        return " and ".join(required)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types. They can also be marshalled."""
        return {**asdict(self), "offers": [offer._asdict() for offer in self.offers]}


def access_terms(status: int, headers: Mapping[str, Sequence[str]]) -> AccessTerms | None:
    """Return what a response requires; None if it requires neither a payment nor a license.

    `headers` has the lines of each header in `HEADERS` that the response has. Unreadable values are
    skipped.
    """
    if status not in STATUSES:
        return None
    parameters = _license_parameters(headers.get(_AUTHENTICATE, ()))
    if parameters is None and status != PAYMENT_REQUIRED:
        return None
    payment = _payment_required(headers.get(_PAYMENT, ()))
    errors = ((parameters or {}).get("error"), _first(headers.get(_ERROR, ())), payment.error)
    return AccessTerms(
        payment_required=status == PAYMENT_REQUIRED,
        license_required=parameters is not None,
        price=_first(headers.get(_PRICE, ())),
        offers=payment.offers,
        authorization_uri=_url((parameters or {}).get("authorization_uri", "")),
        error=next((printable(error) for error in errors if error), None),
    )


def _first(lines: Sequence[str]) -> str | None:
    """Return the first of several header lines, as text that can be shown. None if it is empty."""
    return printable(lines[0].strip()) or None if lines else None


def _url(text: str) -> str | None:
    return text if text and len(text) <= MAX_URL and text.isprintable() else None


# PAYMENT-REQUIRED


class _PaymentRequired(NamedTuple):
    offers: tuple[PaymentOffer, ...] = ()
    error: str = ""


def _payment_required(lines: Sequence[str]) -> _PaymentRequired:
    """Return what the first of several PAYMENT-REQUIRED headers says; nothing if unreadable."""
    text = lines[0].strip() if lines else ""
    if not 0 < len(text) <= MAX_PAYMENT_REQUIRED:
        return _PaymentRequired()
    plain = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        required = json.loads(b64decode(plain + "=" * (-len(plain) % 4), validate=True))
    except (ValueError, RecursionError):  # no base64, no JSON, or JSON that is nested too deeply
        return _PaymentRequired()
    if not isinstance(required, dict):
        return _PaymentRequired()
    return _PaymentRequired(tuple(_offers(required.get("accepts"))), _text(required.get("error")))


def _offers(accepts: object) -> Iterator[PaymentOffer]:
    for offer in accepts[:MAX_OFFERS] if isinstance(accepts, list) else ():
        if isinstance(offer, dict) and _text(offer.get("amount")):
            names = ("amount", "asset", "network", "scheme", "payTo")
            yield PaymentOffer(*(_text(offer.get(name)) for name in names))


def _text(value: object) -> str:
    return printable(value) if isinstance(value, str) else ""


# WWW-Authenticate


def _license_parameters(lines: Sequence[str]) -> dict[str, str] | None:
    """Return the parameters of the challenges with the scheme License; None without any.

    The names are in lower case. Of duplicate parameters the first holds.
    """
    found: dict[str, str] | None = None
    for line in lines[:MAX_LINES]:
        is_license = False
        for part in BETWEEN_COMMAS.findall(line[:MAX_LINE]):
            rest = part
            if scheme := _SCHEME.match(part):
                is_license = scheme[1].lower() == _SCHEME_NAME
                rest = part[scheme.end() :]
            if is_license:
                name, _, value = rest.partition("=")
                found = {} if found is None else found
                found.setdefault(name.strip().lower(), _unquoted(value.strip()))
    return found


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    return _ESCAPED.sub(r"\1", value[1:].removesuffix('"'))


# The middleware


def terms_of(response: Response) -> AccessTerms | None:
    """Return what a response requires; None if it requires neither a payment nor a license."""
    if response.status not in STATUSES:
        return None
    return access_terms(response.status, {name: header_lines(response, name) for name in HEADERS})


class AccessTermsMiddleware:
    """Counts and logs responses that require a payment or a license, and prevents their retry.

    Scrapy's RetryMiddleware and others do not retry a request with ``dont_retry`` in its ``meta``.
    This middleware sets it for these responses, and so it has to process them first: its value in
    DOWNLOADER_MIDDLEWARES is higher than theirs.
    """

    def __init__(self, crawler: Crawler) -> None:
        assert crawler.stats is not None
        self._crawler = crawler
        self._stats = crawler.stats
        self._logged: dict[str, None] = {}
        self._events: CrawlLog | None = None
        crawler.signals.connect(self._on_spider_opened, signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        return cls(crawler)

    async def process_request(self, request: Request) -> None:
        """Remove what this part of the package has noted in a ``meta`` that was copied."""
        meta = request.meta
        remove_annotations(meta)
        if meta.get(DONT_RETRY) == _NOT_RETRIED:
            del meta[DONT_RETRY]

    async def process_response(self, request: Request, response: Response) -> Response:
        """Return the response, after it is counted, logged and excluded from retries."""
        terms = terms_of(response)
        if terms is None or request.meta.get(IS_ROBOTSTXT_REQUEST):
            return response
        if not request.meta.get(DONT_RETRY):
            request.meta[DONT_RETRY] = _NOT_RETRIED
        if terms.payment_required:
            self._stats.inc_value("robotstxt/payment_required")
        if terms.license_required:
            self._stats.inc_value("robotstxt/license_required")
        if self._events is not None:
            self._events.terms(response.url, terms)
        self._log(response, terms)
        return response

    def _on_spider_opened(self) -> None:
        robots = self._crawler.get_downloader_middleware(RobotsTxtMiddleware)
        self._events = robots.events if robots is not None else None

    def _log(self, response: Response, terms: AccessTerms) -> None:
        site = origin_of(response.url) or ""
        if site in self._logged:
            return
        if len(self._logged) >= MAX_LOGGED_SITES:
            del self._logged[next(iter(self._logged))]
        self._logged[site] = None
        urls = licenses(response)
        logger.info(
            "%(site)s requires %(terms)s for %(url)s (status %(status)d).%(license)s The response "
            "is not retried. scrapy-rep pays nothing and acquires no license. Later responses of "
            "this site are only counted.",
            {
                "site": site or "A site",
                "terms": terms,
                "url": printable(response.url, MAX_URL_LENGTH),
                "status": response.status,
                "license": f" License: {printable(urls[0], MAX_URL_LENGTH)}." if urls else "",
            },
            extra={"spider": self._crawler.spider},
        )
