"""What the response to a request for a robots.txt means for its origin (RFC 9309 §2.3.1).

A response to a request for another file of an origin has the same meaning for that file. How a
whole fetch ended is a :data:`FetchResult`, an event for the state machine in `scrapy_rep.origin`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, NamedTuple

from .freshness import DEFAULT_LIFETIME, ERROR_LIFETIME, age_of, delta_seconds, http_date, lifetime
from .lines import decoded, file_of, first_tag, read
from .parser import has_rules, records
from .records import KNOWN_FIELDS
from .verdict import Reason, TextEnum

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
UNREACHABLE_STATUSES = frozenset({407, 429})
"""The 4xx that say nothing about the file: a proxy wants a login, or the crawler is too fast
(Google treats 429 like a 5xx; 407 is ours)."""
NO_ROBOTS_TXT = "not a robots.txt"
"""The end of the failure of a page that is treated as unreachable (REP_NOT_ROBOTS)."""
TOO_MANY_REDIRECTS = "too many redirects"
BROKEN_BODY = "a body that is cut off or cannot be decoded"
MAX_REDIRECTS = 5
"""RFC 9309 §2.3.1.2: "Crawlers SHOULD follow at least five consecutive redirects"."""
MAX_RETRY_AFTER = DEFAULT_LIFETIME
"""Seconds: the longest time that a file is used without a new request (RFC 9309 §2.4)."""


class AccessResult(TextEnum):
    """What the response to a request for a robots.txt means for its origin (RFC 9309 §2.3.1)."""

    SUCCESSFUL = "rules"
    """The body has the rules (§2.3.1.1)."""
    NOT_MODIFIED = "not-modified"
    """A 304 to a conditional request: the stored copy is still valid."""
    REDIRECT = "redirect"
    """The robots.txt is at another URL."""
    UNAVAILABLE = "unavailable"
    """There is no robots.txt: everything is allowed."""
    DISALLOWED = "disallowed"
    """A setting treats this status as a refusal: everything is disallowed."""
    NOT_ROBOTS_TXT = "not-robots-txt"
    """The body of a successful response is another page, in HTML: everything is allowed."""
    REFUSED = "refused"
    """The status is 401 or 403: everything is allowed."""
    CHALLENGE = "challenge"
    """A test that only a browser passes, instead of the robots.txt: everything is allowed."""
    UNREACHABLE = "unreachable"
    """The server or the network failed, so it is not known whether there are rules."""

    @property
    def is_unavailable(self) -> bool:
        """Whether there are no rules, although the server has answered."""
        return self in REASONS


REASONS = {
    AccessResult.UNAVAILABLE: Reason.UNAVAILABLE,
    AccessResult.DISALLOWED: Reason.DISALLOWED_STATUS,
    AccessResult.NOT_ROBOTS_TXT: Reason.NOT_ROBOTS_TXT,
    AccessResult.REFUSED: Reason.REFUSED,
    AccessResult.CHALLENGE: Reason.CHALLENGE,
}
"""The reason of a verdict if there are no rules, although the server has answered."""


class AccessPolicy(NamedTuple):
    """The choices that a user can make about responses. The defaults follow RFC 9309."""

    disallow_statuses: AbstractSet[int] = frozenset()
    server_errors_are_unavailable: bool = False
    not_robots: str | None = "unavailable"
    """What another page than a robots.txt means: ``unavailable`` or ``unreachable``. None for
    another file."""
    min_ttl: float = 300
    max_ttl: float = DEFAULT_LIFETIME
    shared: bool = False
    """Whether several crawlers use the copies."""
    clock_step: float = 0
    """How far the clock of the responses is ahead of the one on which they become stale."""

    def expires_at(
        self, headers: Mapping[str, str], now: float, default: float = DEFAULT_LIFETIME
    ) -> float:
        """Return when a response that has just arrived becomes stale.

        ``default`` is its lifetime if its headers, whose names are in lower case, state none.
        """
        own = lifetime(headers, now, shared=self.shared)
        remaining = default if own is None else own - age_of(headers, now)
        return now - self.clock_step + min(max(remaining, self.min_ttl), self.max_ttl)


_ANUBIS = re.compile(b"/[.]within[.]website/x/cmd/anubis/|id=[\"']anubis_challenge[\"']")
"""What is in the page of Anubis, whose status is 200 by default."""


def is_challenge(cf_mitigated: str | None, body: bytes | None) -> bool:
    """Return whether this header or a body has the marks of Cloudflare's or Anubis' challenge."""
    is_cloudflare = (cf_mitigated or "").strip().lower() == "challenge"
    return is_cloudflare or (body is not None and _ANUBIS.search(body) is not None)


def access_result(
    status: int, policy: AccessPolicy, *, conditional: bool = False, challenge: bool = False
) -> AccessResult:
    """Return what a status means.

    `conditional`: the request had a validator. `challenge`: the response has its marks.
    """
    if status == 304 and conditional:
        return AccessResult.NOT_MODIFIED
    if status in REDIRECT_STATUSES:
        return AccessResult.REDIRECT
    if 200 <= status <= 299 and status != 206:  # a 206 has only a part of the rules
        return AccessResult.SUCCESSFUL
    if status in policy.disallow_statuses:
        return AccessResult.DISALLOWED
    if status in (401, 403):
        return AccessResult.CHALLENGE if challenge else AccessResult.REFUSED
    last = 599 if policy.server_errors_are_unavailable else 499
    is_unavailable = 400 <= status <= last and status not in UNREACHABLE_STATUSES
    return AccessResult.UNAVAILABLE if is_unavailable else AccessResult.UNREACHABLE


class Recognized(NamedTuple):
    """What the body of a successful response is."""

    result: AccessResult | None = None
    """What it means; None: it is read as a robots.txt, with or without rules."""
    form: str = ""
    """What it looks like, such as "an HTML page"; empty for a robots.txt."""


_FORMS = {
    rb"\x1f\x8b": "a gzip file",
    rb"PK\x03\x04[\s\S]*?word/": "a Word document (docx)",
    rb"PK[\x03\x05]": "a zip file",
    rb"\{\\rtf": "an RTF document",
    rb"%PDF-": "a PDF document",
    rb"\xd0\xcf\x11\xe0": "a document of an old Word (doc)",
    rb"\x89PNG|GIF8|\xff\xd8\xff": "an image",
}
"""What files that no crawler can read begin with, and what they are."""
_JSON = re.compile(rb"\s*(?:\{\s*[\"}]|\[\s*[\"{\[\]])").match
_TAGS = {
    **dict.fromkeys((b"!doctype", b"html", b"head"), "an HTML page"),
    b"?xml": "an XML document",
}
"""What files begin with that are another page, if they have no rules."""
_OTHER_TAGS = dict.fromkeys(
    b"a article b body br center div font form h1 h2 h3 h4 iframe img link main meta noscript p "
    b"pre script section span strong style svg table title ul".split(),
    "a part of an HTML page",
) | dict.fromkeys((b"error", b"rss", b"sitemapindex", b"urlset"), "an XML document")
_OTHER_TAGS[b"?php"] = "a PHP script"


def recognize(
    body: bytes, content_type: str | None = None, cf_mitigated: str | None = None
) -> Recognized:
    r"""Return what the body of a successful response means, and what it looks like.

    Not a robots.txt is a body that begins as HTML or XML and has no rules, one that the server
    calls HTML and that has no known field, and a page that a browser made whose text has neither a
    known field nor a comment at its start. The last two arguments are headers of the response.

    Other files, such as a gzip file, are read as a robots.txt is, as Google's parser reads them.

    >>> recognize(b"<!doctype html><title>Log in</title>").form
    'an HTML page'
    """
    tag, is_page = first_tag(body), file_of(body) is not body
    if tag in _TAGS:
        is_robots_txt = has_rules(read(body))
    else:
        is_robots_txt = not (is_page or _is_html(content_type)) or _has_field(body, is_page)
    if is_robots_txt:
        return Recognized(None, _form(body, tag))
    if is_challenge(cf_mitigated, body):
        return Recognized(AccessResult.CHALLENGE, "a challenge for browsers")
    return Recognized(AccessResult.NOT_ROBOTS_TXT, _TAGS.get(tag, "an HTML page"))


def _is_html(content_type: str | None) -> bool:
    return (content_type or "").partition(";")[0].strip().lower() == "text/html"


def _has_field(body: bytes, is_page: bool) -> bool:
    """Whether a text may be a robots.txt: an empty one, or one with a known field.

    The text that a page of a browser shows may also begin with a comment, but not be empty.
    """
    text = read(body)
    is_comment = is_page and text.lstrip().startswith(b"#")
    fields = {record.field for record in records(text, strict=False)}
    return is_comment or not (is_page or body.strip()) or not KNOWN_FIELDS.isdisjoint(fields)


def _form(body: bytes, tag: bytes) -> str:
    """Return what a body looks like that is read as a robots.txt."""
    for start, form in _FORMS.items():
        if re.match(start, body):
            return form
    form = "JSON" if _JSON(decoded(body)) else _OTHER_TAGS.get(tag, "")
    return "" if form and has_rules(read(body)) else form


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds of a Retry-After header, at most a day (RFC 9110 §10.2.3).

    None for 0, for a date that has passed, and for what is neither a number of seconds nor a date.
    """
    value = (value or "")[:100].strip()  # a date has 29 characters
    seconds = delta_seconds(value)
    if seconds is None:
        seconds = (http_date(value) or now) - now
    return min(seconds, MAX_RETRY_AFTER) if seconds > 0 else None


def retry_pause(retry: int) -> float:
    """Return the seconds before a retry of one fetch (ours): 1, 2, 4 and so on, at most 60."""
    return float(min(2**retry, 60))


def retry_interval(failures: int) -> int:
    """Return the seconds until the next attempt, after this number of failures in a row (ours)."""
    return min(60 << min(failures - 1, 10), 3600)


class CopyInfo(NamedTuple):
    """Where a good copy came from, and what is needed to revalidate it."""

    url: str
    """The URL that answered 200, after redirects. The validators are for this URL only."""
    etag: str | None = None
    last_modified: str | None = None
    lifetime: float | None = None
    """The seconds that the headers gave. They apply again after a 304 that gives none."""
    sha256: str | None = None
    """The SHA-256 of the file as it was received, decoded, up to the size limit, in hexadecimal."""


class Rules(NamedTuple):
    """A fetch ended with a 2xx response."""

    content: Any
    """The file as its parser returned it, such as a :class:`~.robotstxt.RobotsTxt`."""
    status: int
    copy: CopyInfo
    expires_at: float
    body: bytes = b""
    """The file as it was received, up to the size limit, for a store."""
    from_cache: bool = False
    """Whether the response came from an HTTP cache, not from the site."""


class NotModified(NamedTuple):
    """A fetch ended with a 304: the stored copy is fresh again."""

    expires_at: float


class Unavailable(NamedTuple):
    """A fetch ended with a 4xx, after too many redirects, or with a page that has no rules."""

    url: str
    expires_at: float
    status: int | None = None
    """None after too many redirects."""
    result: AccessResult = AccessResult.UNAVAILABLE
    """Why there are no rules."""
    from_cache: bool = False


class Unreachable(NamedTuple):
    """A fetch ended with a 5xx, or with a failure of the network."""

    failure: str
    status: int | None = None
    url: str | None = None
    retry_after: float | None = None
    """The seconds of the Retry-After header, if it has a valid one."""
    may_retry: bool = True
    """Whether another attempt at once may have another result."""


class Cancelled:
    """The crawl cancelled a fetch, so there is no result."""


FetchResult = Rules | NotModified | Unavailable | Unreachable | Cancelled
"""The event that a fetch ends with. It drives the state of an origin."""


class Answer(NamedTuple):
    """A response to a request for a file, as far as its meaning depends on it."""

    url: str
    status: int
    body: bytes | None
    """The decoded body, up to the size limit. None if it is cut off or cannot be decoded."""
    headers: Mapping[str, str] = MappingProxyType({})
    """The first value of each header, by its name in lower case. Cache-Control has all values."""
    copy: CopyInfo | None = None
    """The good copy that the request validates; None if it was not conditional."""
    from_cache: bool = False
    """Whether an HTTP cache answered."""


def event_of(
    answer: Answer, policy: AccessPolicy, parse: Callable[..., Any], now: float
) -> FetchResult | None:
    """Return what a fetch that ends with a response means; None for a redirect.

    ``parse`` parses a body, with the URL it came from as ``url``. ``now`` is when the response has
    arrived, in seconds since 1970.
    """
    url, status, body, headers, copy, from_cache = answer
    result, failure = meaning(answer, policy)
    if result is AccessResult.SUCCESSFUL:
        own = lifetime(headers, now, shared=policy.shared)
        file, expires = file_of(body or b""), policy.expires_at(headers, now)
        made_from = CopyInfo(url, lifetime=own)
        return Rules(parse(file, url=url), status, made_from, expires, file, from_cache)
    if result is AccessResult.NOT_MODIFIED:
        # RFC 9111 §3.2: a 304 updates the stored headers, and the others stay.
        known = None if copy is None else copy.lifetime
        default = DEFAULT_LIFETIME if known is None else known
        return NotModified(policy.expires_at(headers, now, default))
    if result is AccessResult.REDIRECT:
        return None
    if result.is_unavailable:
        return unavailable(answer, policy, now, result)
    is_busy = status == 429 or status >= 500
    pause = retry_after(headers.get("retry-after"), now) if is_busy else None
    return Unreachable(failure, status, url, pause)


def unavailable(
    answer: Answer,
    policy: AccessPolicy,
    now: float,
    result: AccessResult = AccessResult.UNAVAILABLE,
) -> Unavailable:
    """Return the event of a fetch that ends with a response without rules."""
    is_cacheable = answer.status < 300 or answer.status in (404, 410)  # RFC 9110 §15.1
    default = DEFAULT_LIFETIME if is_cacheable else ERROR_LIFETIME
    expires = policy.expires_at(answer.headers, now, default)
    return Unavailable(answer.url, expires, answer.status, result, answer.from_cache)


def meaning(answer: Answer, policy: AccessPolicy) -> tuple[AccessResult, str]:
    """Return what a response means, and the failure if the file is unreachable."""
    status, mark = answer.status, answer.headers.get("cf-mitigated")
    is_test = status >= 400 and is_challenge(mark, answer.body)
    conditional = answer.copy is not None
    result = access_result(status, policy, conditional=conditional, challenge=is_test)
    if result is not AccessResult.SUCCESSFUL:
        return result, f"status {status}{', a challenge' if is_test else ''}"
    if answer.body is None:
        return AccessResult.UNREACHABLE, BROKEN_BODY
    page = None
    if policy.not_robots is not None:
        page = recognize(answer.body, answer.headers.get("content-type"), mark).result
    if page is None or policy.not_robots == "unavailable":
        return page or result, ""
    what = "a challenge, " if page is AccessResult.CHALLENGE else ""
    return AccessResult.UNREACHABLE, f"status {status}, {what}{NO_ROBOTS_TXT}"
