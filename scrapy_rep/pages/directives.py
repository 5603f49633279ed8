"""The directives of a page: X-Robots-Tag, robots meta elements, TDM reservation and licenses.

Sources: Google's specification of robots meta tags and X-Robots-Tag, draft-illyes-repext for
Robots-Tag, TDMRep (W3C Community Group) and RSL 1.0; for pages that require a payment, Cloudflare's
pay per crawl (``crawler-price``) and x402. `protocol.usage.VOCABULARIES` has their versions.

All statements that apply to a crawler are merged: those for every crawler and those for its
tokens, in headers and in the page. The most restrictive one applies. The grammar of the headers::

    X-Robots-Tag = rule *("," rule)
    rule         = [agent ":"] name [":" argument]

    Robots-Tag   = member *("," member)
    member       = agent *(";" name ["=" argument]) / rule
    agent        = token / DQUOTE token DQUOTE

    crawler-price    = currency SP amount                      such as "USD 0.01"
    PAYMENT-REQUIRED = base64 of a JSON object with the offers of the site

Nothing here pays or acquires a license. Each flag is a field of `PageDirectives`.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, fields, replace
from datetime import datetime
from difflib import get_close_matches
from itertools import islice
from math import inf
from typing import Any, NamedTuple

from scrapy.http import HtmlResponse, Response

from ..protocol import usage
from ..protocol.agents import WILDCARD_AGENT
from ..protocol.freshness import http_date, parse_date
from ..protocol.paths import resolve
from ..protocol.printable import printable
from ..protocol.tdmrep import TdmRule
from .html import MAX_VALUE, elements, markup

_ROBOTS, _ROBOTS_TAG, _LINK = "robots", "robots-tag", "link"
_TDM_RESERVATION, _TDM_POLICY = _TDM = ("tdm-reservation", "tdm-policy")
LICENSE = "license"
"""The link type of RSL and of the HTML standard."""

_TAGS = ("x-robots-tag", _ROBOTS_TAG)
_HEADERS = {name.title().encode(): name for name in (*_TAGS, *_TDM, _LINK)}
"""The names of the headers that are read: as Scrapy's Headers has them, and in lower case."""

META, TDM_PLACE = "meta", "tdmrep.json"
"""The places of rules in the page, and in the TDM file of the origin."""

MAX_LICENSES = 100
"""The licenses of a page that are listed (ours). A page has one or a few."""

_PREVIEWS = ("none", "standard", "large")
"""The values of max-image-preview, the most restrictive first."""
_UNAVAILABLE_AFTER = "unavailable_after"

# agent = token ["/" version] ":"
# A name or the end of the part follows. So "foo: 5" and the time of a date have no agent.
_NAME = r"(?: \* | [A-Za-z0-9_][A-Za-z0-9_.-]* )"
_AGENT = re.compile(rf"\s* ({_NAME}) (?: / \S* )? \s* : \s* (?= [A-Za-z*] | \Z )", re.VERBOSE)
_NUMBER = re.compile("-1|[0-9]{1,9}")

# Text up to a separator that is not in quotation marks, for one separator each. The last quotation
# mark may be missing, and so may the character behind the last backslash. This is linear in the
# length of a line: no part of a match can be given to another part.
_QUOTED = r'" [^"\\]* (?: \\. [^"\\]* )* (?: " | \\? \Z )'
_BETWEEN_COMMAS, _BETWEEN_SEMICOLONS = (
    re.compile(rf'(?: [^{separator}"]+ | {_QUOTED} )+', re.VERBOSE | re.DOTALL)
    for separator in ",;"
)

# Link (RFC 8288 §3): "<" target ">" *( ";" parameter )
_LINK_VALUE = re.compile(rf'< ([^<>]*) > ( (?: [^,"]+ | {_QUOTED} )* )', re.VERBOSE | re.DOTALL)
# A challenge with the scheme of RSL (RFC 9110 §11.3), in a line without quoted strings.
_LICENSE_CHALLENGE = re.compile(
    r"(?:^|,) [ \t]* license (?: [ \t]+ (?! [ \t=] ) | [ \t]* (?: , | \Z ) )",
    re.VERBOSE | re.IGNORECASE,
)
_QUOTED_STRING = re.compile(_QUOTED, re.VERBOSE | re.DOTALL)
MAX_CHALLENGES, MAX_CHALLENGE = 10, 4096
"""The WWW-Authenticate lines that are read, and the characters of each (ours)."""
MAX_OFFERS = 16_384
"""Characters of a PAYMENT-REQUIRED header. A longer one is not kept (ours)."""

_BARE_AGENT = re.compile(_NAME, re.VERBOSE)


class Statement(NamedTuple):
    """A rule that applies to this crawler, and where it was found. Names are in lower case."""

    rule: str
    argument: str
    place: str
    """``meta``, ``tdmrep.json``, or the name of the header."""
    agent: str = WILDCARD_AGENT
    """The product token for which the rule is meant, or ``*``."""
    line: int = 0
    """The line of the page, for ``meta``."""

    def __str__(self) -> str:
        place = TDM_PLACE if self.place == TDM_PLACE else self.place.title()
        place = f"line {self.line}, {META}" if self.line else place
        return ": ".join(
            filter(None, (place, self.rule * (self.rule != self.place), self.argument))
        )


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
        payment = f"a payment ({price})" if price else "a payment"
        required = {payment: self.payment_required, "a license": self.license_required}
        return " and ".join(text for text, is_required in required.items() if is_required)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDirectives:
    """What a page states to one crawler. The defaults are those of a page that states nothing."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    nocache: bool = False
    nosnippet: bool = False
    """Also true for ``max-snippet:0``."""
    noimageindex: bool = False
    notranslate: bool = False
    indexifembedded: bool = False
    nositelinkssearchbox: bool = False
    noodp: bool = False
    noai: bool = False
    noimageai: bool = False
    noml: bool = False
    max_snippet: int | None = None
    """Characters. -1 is an explicit "no limit"."""
    max_image_preview: str | None = None
    """``none``, ``standard`` or ``large``."""
    max_video_preview: int | None = None
    """Seconds. -1 is an explicit "no limit"."""
    unavailable_after: datetime | None = None
    """The time in UTC."""
    expired: bool = False
    """Whether ``unavailable_after`` was past when the response was made."""
    tdm_reservation: bool | None = None
    """Whether the rights to text and data mining are reserved. None if the page does not state it.
    """
    tdm_policy: str | None = None
    """The URL of the terms, as the site wrote it."""
    licenses: tuple[str, ...] = ()
    """The URLs of the licenses that the page links to, each once. They are never fetched."""
    access_terms: AccessTerms | None = None
    """The payment or the license that the site requires before it sends the page, if any."""

    @property
    def indexable(self) -> bool:
        """Whether the page has neither ``noindex`` nor an ``unavailable_after`` that is past."""
        return not (self.noindex or self.expired)


NO_DIRECTIVES = PageDirectives()
"""The directives of a page that states nothing."""


def _number(argument: str) -> int | None:
    return int(argument) if _NUMBER.fullmatch(argument) else None


def _preview(argument: str) -> str | None:
    return argument.lower() if argument.lower() in _PREVIEWS else None


def _permissiveness(value: Any) -> Any:
    if isinstance(value, str):
        return _PREVIEWS.index(value)
    return inf if value == -1 else value  # -1: no limit


_ARGUMENTS: dict[str, Callable[[str], Any]] = {
    "max-snippet": _number,
    "max-video-preview": _number,
    "max-image-preview": _preview,
    _UNAVAILABLE_AFTER: parse_date,
}
"""How the argument of a rule is read. None: it is unreadable."""

# Each flag is the rule of the same name. ``expired`` is not a rule: it follows from a date.
_FLAGS = {field.name for field in fields(PageDirectives) if field.type == "bool"} - {"expired"}
_FLAGS_OF = {**{flag: (flag,) for flag in _FLAGS}, "none": ("noindex", "nofollow")}

_RULE_NAMES = frozenset([*_FLAGS_OF, *_ARGUMENTS, "all", "index", "follow"])


def stated_in(
    response: Response, tokens: tuple[str, ...], tdm: TdmRule | None = None
) -> Iterator[Statement]:
    """Yield all statements of a response that apply to a crawler, in the order found.

    ``tokens`` are the crawler's, in lower case, and ``tdm`` is the rule of the TDM file, if any.
    """
    yield from stated_in_headers(response, tokens)
    body = markup(response) if isinstance(response, HtmlResponse) else b""
    for *element, number in elements(body, (_ROBOTS, *_TDM, *tokens), LICENSE):
        yield from (each._replace(line=number) for each in _in_page(*element))
    if tdm is not None:
        yield Statement(_TDM_RESERVATION, str(int(tdm.reservation)), TDM_PLACE)
        yield from _of_tdm(_TDM_POLICY, TDM_PLACE, tdm.policy or "")


def stated_in_headers(response: Response, tokens: tuple[str, ...]) -> Iterator[Statement]:
    """Yield the statements of the headers of a response that apply to a crawler."""
    agents = (WILDCARD_AGENT, *tokens)
    for place in () if _HEADERS.keys().isdisjoint(response.headers) else _HEADERS.values():
        for line in header_lines(response, place):
            yield from (each for each in _in_header(place, line) if each.agent in agents)


def _in_header(place: str, line: str) -> Iterator[Statement]:
    if place == _LINK:
        for target in _licenses(line):
            yield Statement(LICENSE, target, place)
    elif place in _TDM:
        yield from _of_tdm(place, place, line)
    else:
        rules = _robots_tag_rules(line) if place == _ROBOTS_TAG else _rules(line, scoped=True)
        for agent, rule, argument in rules:
            yield Statement(rule, argument, place, WILDCARD_AGENT if agent == _ROBOTS else agent)


def _in_page(tag: str, name: str, value: str) -> Iterator[Statement]:
    if tag == "link":
        if target := value.strip():
            yield Statement(LICENSE, target, META)
    elif name in _TDM:
        yield from _of_tdm(name, META, value)
    else:
        agent = WILDCARD_AGENT if name == _ROBOTS else name
        for _, rule, argument in _rules(value, scoped=False):
            yield Statement(rule, argument, META, agent)


def _of_tdm(rule: str, place: str, value: str) -> Iterator[Statement]:
    value = value.strip()
    if value in {"0", "1"} if rule == _TDM_RESERVATION else value:
        yield Statement(rule, value, place)


def directives_of(response: Response, stated: Iterable[Statement]) -> PageDirectives:
    """Return the directives that follow from a response and its statements."""
    stated, terms = list(stated), terms_of(response)
    if not stated and terms is None:  # the usual case
        return NO_DIRECTIVES
    directives = merge(stated, response.url)
    after, expired = directives.unavailable_after, False
    if after is not None:
        date = http_date("".join(header_lines(response, "Date")[-1:]))
        expired = after.timestamp() < (time.time() if date is None else date)
    return replace(directives, access_terms=terms, expired=expired)


class UnreadDirectives(PageDirectives):
    """The directives of a page that is parsed when one of them is first asked for."""

    __slots__ = ("_read",)
    # The methods of a dataclass compare, show and copy by this class.
    __class__ = PageDirectives  # type: ignore[assignment]
    _read: Callable[[], PageDirectives]

    def __init__(self, read: Callable[[], PageDirectives]) -> None:
        object.__setattr__(self, "_read", read)

    def __reduce__(self) -> tuple[Any, ...]:
        return replace, (replace(self),)

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
    # Without its request: in a cycle with its meta, the body would stay in memory for long. Its
    # replace() would decode the body.
    page = copy(response)
    page.request = None
    return UnreadDirectives(lambda: directives_of(page, stated_in(page, tokens, tdm)))


def merge(stated: Iterable[Statement], url: str | None = None) -> PageDirectives:
    """Return the directives that follow from all statements: the most restrictive ones."""
    found: dict[str, Any] = {}
    licenses: dict[str, None] = {}
    tdm: dict[str, dict[str, list[str]]] = {}
    for rule, argument, place, *_ in stated:
        if rule == LICENSE:
            licenses[argument] = None
        elif rule in _TDM:
            tdm.setdefault(rule, {}).setdefault(place, []).append(argument)
        elif rule in _ARGUMENTS:
            field, value = rule.replace("-", "_"), _ARGUMENTS[rule](argument)
            if value is not None:
                found[field] = min(value, found.get(field, value), key=_permissiveness)
        else:
            found.update(dict.fromkeys(_FLAGS_OF.get(rule, ()), True))
    if found.get("max_snippet") == 0:
        found["nosnippet"] = True
    resolved = (resolve(reference, url) for reference in islice(licenses, MAX_LICENSES))
    found["licenses"] = tuple(dict.fromkeys(filter(None, resolved)))
    # The page over the headers over the TDM file. "The absence of `tdm-reservation` and
    # `tdm-policy` MUST not reset current values".
    for rule, places in tdm.items():
        values = next(places[place] for place in (META, rule, TDM_PLACE) if place in places)
        found[rule.replace("-", "_")] = values[0] if rule == _TDM_POLICY else "1" in values
    return PageDirectives(**found)


# Headers


def header_lines(response: Response, name: str) -> list[str]:
    """Return the lines of a header of a response. Text may have any bytes."""
    return [line.decode("latin-1") for line in response.headers.getlist(name)]


def uses_in(response: Response) -> dict[str, usage.Signals]:
    """Return the headers of a response about the use of its content, each with what it states."""
    # RFC 9651 §4.2: all lines of a field are one dictionary.
    line = ", ".join(header_lines(response, "Content-Usage"))
    found: dict[str, usage.Signals] = {f"Content-Usage: {line}": usage.content_usage(line)}
    for line in header_lines(response, "Content-Signal"):
        found[f"Content-Signal: {line}"] = usage.content_signals(line)
    return found


def terms_of(response: Response) -> AccessTerms | None:
    """Return what a response requires; None if it requires neither a payment nor a license."""
    if response.status not in (401, 402):  # RFC 9110 §15.5.2, §15.5.3
        return None
    needs_payment = response.status == 402
    needs_license = any(
        _LICENSE_CHALLENGE.search(_QUOTED_STRING.sub("", line[:MAX_CHALLENGE]))
        for line in header_lines(response, "WWW-Authenticate")[:MAX_CHALLENGES]
    )
    if not (needs_payment or needs_license):
        return None
    price, offers = (
        next(iter(header_lines(response, name)), "").strip()
        for name in ("crawler-price", "PAYMENT-REQUIRED")
    )
    return AccessTerms(
        payment_required=needs_payment,
        license_required=needs_license,
        price=printable(price) or None,
        offers=offers if 0 < len(offers) <= MAX_OFFERS and offers.isprintable() else None,
    )


def _licenses(line: str) -> Iterator[str]:
    """Yield the targets of the links of a header line that are licenses.

    A link with an anchor is skipped: it is not a link of this page (RFC 8288 §3.2).
    """
    if LICENSE not in line.lower():
        return
    for target, written in _LINK_VALUE.findall(line):
        parameters: dict[str, str] = {}
        for parameter in _BETWEEN_SEMICOLONS.findall(written):
            name, _, value = parameter.partition("=")
            # "Occurrences after the first MUST be ignored" (RFC 8288 §3.3).
            parameters.setdefault(name.strip().lower(), value.strip().strip('"'))
        types = parameters.get("rel", "").lower().split()
        if target.strip() and LICENSE in types and "anchor" not in parameters:
            yield target.strip()


def _robots_tag_rules(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield what `_rules` does, of a List of RFC 9651: each agent has its rules as parameters.

    A line without parameters is read as X-Robots-Tag is, and so is a member without.
    """
    if ";" not in line:
        yield from _rules(line, scoped=True)
        return
    for member in _BETWEEN_COMMAS.findall(line):
        first, *parameters = _BETWEEN_SEMICOLONS.findall(member) or [""]
        agent = first.strip().strip('"').partition("/")[0].lower()
        if not _BARE_AGENT.fullmatch(agent) or agent in _RULE_NAMES:
            # "noindex;nofollow" has no agent, and "mybot: noindex;nofollow" one of X-Robots-Tag.
            yield from _rules(member.replace(";", ","), scoped=True)
            continue
        for parameter in parameters:
            written, *rest = re.split("[=:]", parameter, maxsplit=1)
            name, argument = written.strip().lower(), "".join(rest).strip().strip('"')
            if name in _RULE_NAMES and argument != "?0":  # false (RFC 9651 §3.3.6)
                yield agent, name, argument


def _rules(line: str, *, scoped: bool) -> Iterator[tuple[str, str, str]]:
    """Yield agent, name and argument of each rule with a known name.

    `scoped` is true for headers, in which an agent may stand before a rule.
    """
    parts, agent = deque(line.split(",")), WILDCARD_AGENT
    while parts:
        part, begin = parts.popleft(), 0
        while scoped and (found := _agent(part, begin)):
            agent, begin = found[1].lower(), found.end()
        name, _, argument = part[begin:].partition(":")
        name, arguments = name.strip().lower(), [argument]
        while name == _UNAVAILABLE_AFTER and parts and not _begins_rule(parts[0]):
            arguments.append(parts.popleft())
        if name in _RULE_NAMES:
            yield agent, name, ",".join(arguments).strip()


_EXAMPLES = {
    "max-snippet": "50, or -1 for no limit",
    "max-video-preview": "30, or -1 for no limit",
    "max-image-preview": "none, standard or large",
    _UNAVAILABLE_AFTER: "2030-06-25, or another date in ISO 8601 or RFC 822 format",
}


def not_understood(response: Response, tokens: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield what a response states in a form that no crawler reads, and what to write instead.

    Only what is near a rule, or an unreadable argument of one, is reported.
    """
    for header in response.headers:
        name = header.decode("latin-1")
        if header not in _HEADERS and get_close_matches(name.lower(), _TAGS, 1, 0.8):
            yield f"the header {name}", "X-Robots-Tag"
    for line in header_lines(response, _TAGS[0]):
        yield from _unread(line, scoped=True)
    body = markup(response) if isinstance(response, HtmlResponse) else b""
    for tag, _, value, _ in elements(body, (_ROBOTS, *tokens), LICENSE):
        if tag == "meta":
            yield from _unread(value, scoped=False)


def _unread(line: str, *, scoped: bool) -> Iterator[tuple[str, str]]:
    for _, rule, argument in _rules(line, scoped=scoped):
        if rule in _ARGUMENTS and _ARGUMENTS[rule](argument) is None:
            yield f"{rule}: {argument}", f"{rule}: {_EXAMPLES[rule]}"
    for part in line[:MAX_VALUE].split(","):
        begin = 0
        while scoped and (found := _agent(part, begin)):
            begin = found.end()
        name = part[begin:].partition(":")[0].strip()
        words = re.split(r"[\s;|]+", name.lower())
        if len(words) > 1 and _RULE_NAMES.issuperset(words):
            yield name, ", ".join(words)
        elif name.lower() not in _RULE_NAMES:
            plain = "".join(words).replace("_", "-")
            yield from ((name, near) for near in get_close_matches(plain, _RULE_NAMES, 1, 0.85))


def _agent(part: str, begin: int = 0) -> re.Match[str] | None:
    found = _AGENT.match(part, begin)
    return found if found and found[1].lower() not in _RULE_NAMES else None


def _begins_rule(part: str) -> bool:
    return part.partition(":")[0].strip().lower() in _RULE_NAMES or _agent(part) is not None
