"""What a page says about itself: X-Robots-Tag, the robots meta element, and TDM reservation.

Google's specification of robots meta and X-Robots-Tag; TDMRep for the reservation. Everything
that applies to a crawler, everyone's and its own, in headers and in the page, adds up, and a
restriction that was made once stays::

    X-Robots-Tag = rule *("," rule)
    rule         = [agent ":"] name [":" argument]

A meta element counts wherever a browser that runs no scripts makes one: also in the body and in
``noscript``, but not in comments, in the text of ``script``, ``style``, ``title`` and the like, in
attributes, or in a ``template``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta, timezone
from html import unescape
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from .agents import WILDCARD_AGENT
from .freshness import http_date, utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HEADERS = ("x-robots-tag", "tdm-reservation", "tdm-policy")
"""The headers that are read, in lower case."""

META = "meta"
"""The place of a rule that stands in the page; that of any other is the name of its header."""

_ROBOTS = "robots"
_TDM_RESERVATION, _TDM_POLICY = _TDM = ("tdm-reservation", "tdm-policy")

# Each is the name of a field too.
_FLAGS = (
    "noindex",
    "nofollow",
    "noarchive",
    "nocache",
    "nosnippet",
    "noimageindex",
    "notranslate",
    "indexifembedded",
    "nositelinkssearchbox",
    "noodp",
    "noai",
    "noimageai",
)
_NONE = "none"  # noindex and nofollow
_NUMBERS = ("max-snippet", "max-video-preview")
_PREVIEW = "max-image-preview"
_PREVIEWS = ("none", "standard", "large")  # the most restrictive first
_UNAVAILABLE_AFTER = "unavailable_after"
_WITHOUT_EFFECT = ("all", "index", "follow")

_NEVER_AGENTS = frozenset(
    [*_FLAGS, _NONE, *_NUMBERS, _PREVIEW, _UNAVAILABLE_AFTER, *_WITHOUT_EFFECT]
)
# What follows the colon of an agent begins like a name, or with the next rule: neither "foo: 5"
# nor the time of a date has one.
_AGENT = re.compile(r"\s*(\*|[A-Za-z0-9_][A-Za-z0-9_.-]*)(?:/\S*)?\s*:\s*(?=[A-Za-z*]|\Z)")
_NUMBER = re.compile(r"-1|0*[0-9]{1,9}")
_ISO_8601 = re.compile(
    r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):?([0-9]{2})(?::?([0-9]{2})(?:[.,][0-9]{1,20})?)?"
    r" ?([Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


class Source(NamedTuple):
    """A rule that is for this crawler, and where it stands."""

    rule: str
    """Its name, in lower case."""
    place: str
    """``meta``, or the name of the header in lower case."""
    agent: str = WILDCARD_AGENT
    """The product token that it is for, in lower case, or ``*``."""


class Statement(NamedTuple):
    """A rule as it was read, with its argument."""

    source: Source
    argument: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDirectives:
    """What a page says about itself to one crawler; the defaults are what silence means."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    nocache: bool = False
    nosnippet: bool = False
    """Also for ``max-snippet:0``."""
    noimageindex: bool = False
    notranslate: bool = False
    indexifembedded: bool = False
    nositelinkssearchbox: bool = False
    noodp: bool = False
    noai: bool = False
    noimageai: bool = False
    max_snippet: int | None = None
    """Characters; -1 where it is said that there is no limit."""
    max_image_preview: str | None = None
    """``none``, ``standard`` or ``large``."""
    max_video_preview: int | None = None
    """Seconds; -1 where it is said that there is no limit."""
    unavailable_after: datetime | None = None
    """In UTC."""
    expired: bool = False
    """Whether ``unavailable_after`` was past when the response was made."""
    tdm_reservation: bool | None = None
    """Whether the rights to text and data mining are reserved; None where that is not said."""
    tdm_policy: str | None = None
    """The URL of the terms, as it is given."""
    sources: tuple[Source, ...] = ()
    """Each rule that is for this crawler, once for each place and agent, in the order found."""

    @property
    def indexable(self) -> bool:
        """Neither ``noindex`` nor past its ``unavailable_after``."""
        return not (self.noindex or self.expired)

    def to_dict(self) -> dict[str, Any]:
        """The fields as types of JSON: a date in ISO 8601, each source a list of its three parts.

        What it returns can also be marshalled.
        """
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.unavailable_after is not None:
            found["unavailable_after"] = self.unavailable_after.isoformat()
        found["sources"] = [list(source) for source in self.sources]
        return found

    def as_of(self, date: datetime) -> PageDirectives:
        """The same with `expired` as it is for a response that was made then; with its zone."""
        after = self.unavailable_after
        return replace(self, expired=after is not None and after < date)


NO_DIRECTIVES = PageDirectives()
"""What a page says that says nothing."""


def statements(
    headers: Iterable[tuple[str, str]], html: bytes, tokens: Sequence[str]
) -> list[Statement]:
    """All that a response states to a crawler of these product tokens, in lower case.

    ``headers``: a name of `HEADERS` with one of its lines, as often as there are lines. ``html``:
    the page in any encoding that agrees with ASCII, empty where it is something else.
    """
    return [*_of_headers(headers, tokens), *_of_page(html, tokens)]


def has_meta(html: bytes) -> bool:
    """Whether a page may state anything by itself: else there is nothing to be looked for."""
    return _META_TAG.search(html) is not None


def merge(stated: Sequence[Statement]) -> PageDirectives:
    """The sum of what is stated, of which the most restrictive holds."""
    found: dict[str, Any] = {}
    for (rule, _, _), argument in stated:
        if rule in _FLAGS:
            found[rule] = True
        elif rule == _NONE:
            found["noindex"] = found["nofollow"] = True
        elif rule in _NUMBERS and _NUMBER.fullmatch(argument):
            field = rule.replace("-", "_")
            found[field] = min(found.get(field, -1), _number(argument), key=_limit)
        elif rule == _PREVIEW and argument.lower() in _PREVIEWS:
            previews = (found.get("max_image_preview", _PREVIEWS[-1]), argument.lower())
            found["max_image_preview"] = min(previews, key=_PREVIEWS.index)
        elif rule == _UNAVAILABLE_AFTER:
            moment = parse_date(argument)
            if moment is not None:
                found[rule] = min(moment, found.get(rule, moment))
    if found.get("max_snippet") == 0:
        found["nosnippet"] = True
    sources = tuple(dict.fromkeys(statement.source for statement in stated))
    return PageDirectives(**found, **_reservation(stated), sources=sources)


def parse_date(text: str) -> datetime | None:
    """A date of RFC 850, RFC 822 or ISO 8601 in UTC; None for anything else.

    It is taken for UTC where it names no zone, or none that is known.
    """
    text = text.strip()
    iso = _ISO_8601.fullmatch(text)
    try:
        if iso:
            return _from_iso(iso)
        seconds = http_date(text)
        return None if seconds is None else utc(seconds)
    except (ValueError, OverflowError):  # no such day, or no such year
        return None


def _from_iso(iso: re.Match[str]) -> datetime:
    date = datetime(*(int(part or 0) for part in iso.groups()[:6]), tzinfo=timezone.utc)  # type: ignore[misc,arg-type]
    zone = iso[7] or "Z"
    if zone[0] not in "+-":
        return date
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
    return date + offset if zone[0] == "-" else date - offset


def _number(digits: str) -> int:
    """What `_NUMBER` matches: int() refuses more than 4300 digits, zeros too."""
    return int(digits.lstrip("0") or "0")


def _limit(number: int) -> float:
    """-1 is no limit."""
    return inf if number < 0 else number


def _reservation(stated: Sequence[Statement]) -> dict[str, Any]:
    """TDMRep: the page's own elements count, and headers where it has none."""
    reservations = _of_the_page_first(stated, _TDM_RESERVATION)
    policies = _of_the_page_first(stated, _TDM_POLICY)
    return {
        "tdm_reservation": "1" in reservations if reservations else None,
        "tdm_policy": policies[0] if policies else None,
    }


def _of_the_page_first(stated: Sequence[Statement], rule: str) -> list[str]:
    found = [(source.place, value) for source, value in stated if source.rule == rule]
    return [value for place, value in found if place == META] or [value for _, value in found]


# Headers


def _of_headers(headers: Iterable[tuple[str, str]], tokens: Sequence[str]) -> Iterator[Statement]:
    for place, line in headers:
        if place in _TDM:
            yield from _of_tdm(place, place, line)
            continue
        for agent, rule, argument in _rules(line, scoped=True):
            if agent == WILDCARD_AGENT or agent in tokens:
                yield Statement(Source(rule, place, agent), argument)


def _of_tdm(rule: str, place: str, value: str) -> Iterator[Statement]:
    value = value.strip()
    if value in {"0", "1"} if rule == _TDM_RESERVATION else value:
        yield Statement(Source(rule, place), value)


def _rules(line: str, *, scoped: bool) -> Iterator[tuple[str, str, str]]:
    """The agent, name and argument of each rule whose name is known.

    ``scoped``: agents may stand before rules, as they do in headers.
    """
    parts = line.split(",")
    agent = WILDCARD_AGENT
    number = 0
    while number < len(parts):
        part = parts[number]
        number += 1
        begin = 0
        while scoped and (found := _agent(part, begin)):
            agent = WILDCARD_AGENT if found[1].lower() == _ROBOTS else found[1].lower()
            begin = found.end()
        name, _, argument = part[begin:].partition(":")
        name = name.strip().lower()
        if name == _UNAVAILABLE_AFTER:
            first = number
            while number < len(parts) and not _begins_rule(parts[number]):
                number += 1
            argument = ",".join([argument, *parts[first:number]])
        if name in _NEVER_AGENTS:
            yield agent, name, argument.strip()


def _agent(part: str, begin: int = 0) -> re.Match[str] | None:
    found = _AGENT.match(part, begin)
    return found if found and found[1].lower() not in _NEVER_AGENTS else None


def _begins_rule(part: str) -> bool:
    return part.partition(":")[0].strip().lower() in _NEVER_AGENTS or _agent(part) is not None


# The page. HTML is read as octets: all that matters here is ASCII.

_WS = rb"\t\n\f\r "
_META_TAG = re.compile(rb"<meta(?=[" + _WS + rb"/])", re.IGNORECASE)
_TAG = re.compile(rb"<(/?)([A-Za-z][^" + _WS + rb"/>]*)")
_ATTRIBUTE = re.compile(
    rb"[" + _WS + rb"/]*([^" + _WS + rb"/>][^" + _WS + rb"/>=]*)"
    rb"(?:[" + _WS + rb"]*=[" + _WS + rb"]*"
    rb"(?:\"([^\"]*)(?:\"|\Z)|'([^']*)(?:'|\Z)|([^\"'>" + _WS + rb"][^>" + _WS + rb"]*))?)?"
)
_TAG_END = re.compile(rb"[" + _WS + rb"/]*>")
# The attributes of most tags, to skip them at once. No part of a match can be given to another.
_PLAIN_VALUE = rb"(?:=(?:\"[^\"]*\"|'[^']*'|[^\"'>" + _WS + rb"][^>" + _WS + rb"]*))?"
_PLAIN_ATTRIBUTES = (
    rb"(?:[" + _WS + rb"]+[^" + _WS + rb"/>=\"']+" + _PLAIN_VALUE + rb"){0,30}[" + _WS + rb"/]*>"
)
_NOT_META_ATTRIBUTES = re.compile(
    rb"(?:[" + _WS + rb"/]+(?!(?:name|content)[" + _WS + rb"=/>])[^" + _WS + rb"/>=\"']+"
    + _PLAIN_VALUE + rb"(?![^" + _WS + rb"/>]|[" + _WS + rb"]*=)){1,1000}",
    re.IGNORECASE,
)  # fmt: skip
# Text, tags and comments that have nothing to do with the meta elements that are looked for.
_NO_MATTER = re.compile(
    rb"(?:[^<]+"
    rb"|<+(?=<)|<(?![A-Za-z!?/<])"
    rb"|<(?!(?:/?template|meta|plaintext|script|style|title|textarea|xmp|iframe|noembed|noframes)"
    rb"[" + _WS + rb"/>])/?[A-Za-z][^" + _WS + rb"/>]*" + _PLAIN_ATTRIBUTES +
    rb"|<meta(?:[" + _WS + rb"]+(?!name[" + _WS + rb"=/>])[^" + _WS + rb"/>=\"']+"
    + _PLAIN_VALUE + rb"(?![^" + _WS + rb"/>]|[" + _WS + rb"]*=)){0,30}[" + _WS + rb"/]*>"
    rb"|<!--(?:-?>|.*?--!?>)"
    rb"|<(?:!(?!--)|\?|/(?![A-Za-z]))[^>]*>"
    rb"){1,1000}",
    re.IGNORECASE | re.DOTALL,
)  # fmt: skip
# The elements whose content is text for a browser, and what ends it. Not noscript: no script runs.
_TEXT_ENDS = {
    name: re.compile(rb"</" + name + rb"(?=[" + _WS + rb"/>])", re.IGNORECASE)
    for name in b"script style title textarea xmp iframe noembed noframes".split()
}
_META, _PLAINTEXT, _TEMPLATE = b"meta", b"plaintext", b"template"
# What may stand for a character of a name: ASCII, but for those that are most often written so
# elsewhere (" & ' < >). In lower case.
_REFERENCE = re.compile(
    rb"&(?:#(?:0*(?:3[35-7]|4[0-9]|5[0-9]|61|6[3-9]|[789][0-9]|1[01][0-9]|12[0-6])"
    rb"|x0*(?:2[13-5]|2[89a-f]|3[0-9abdf]|[4-6][0-9a-f]|7[0-9a-e]))(?![0-9a-f])"
    rb"|(?:ast|colon|comma|commat|diacriticalgrave|dollar|equals|excl|fjlig|grave|hat|lbrace"
    rb"|lbrack|lcub|lowbar|lpar|lsqb|midast|num|percnt|period|plus|quest|rbrace|rbrack|rcub|rpar"
    rb"|rsqb|semi|sol|underbar|verbar|vert|verticalline|bsol);)"
)
_MAX_OCTETS = 4096
"""Of an attribute; no name and no list of rules is longer."""


def _of_page(html: bytes, tokens: Sequence[str]) -> Iterator[Statement]:
    names = (_ROBOTS, *tokens)
    for name, content in _meta_elements(html, [*(name.encode() for name in names), b"tdm-"]):
        if name in names:
            agent = WILDCARD_AGENT if name == _ROBOTS else name
            for _, rule, argument in _rules(content, scoped=False):
                yield Statement(Source(rule, META, agent), argument)
        elif name in _TDM:
            yield from _of_tdm(name, META, content)


def _last_candidate(html: bytes, names: Sequence[bytes]) -> int:
    """The last place where a meta element may name one of these; -1 if none does.

    Nothing is looked at but from the first such tag to the last, so that a page that names none
    costs next to nothing.
    """
    first = last = -1
    for found in _META_TAG.finditer(html):
        last = found.start()
        if first < 0:
            first = last
    if first < 0:
        return -1
    tags = html[first : _skip_attributes(html, last + 1)].lower()
    place = max(tags.rfind(name) for name in names)
    if b"&" in tags:
        for reference in _REFERENCE.finditer(tags, place + 1):
            place = reference.start()
    return first + place if place >= 0 else -1


def _meta_elements(html: bytes, names: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    """Name, in lower case, and content of the meta elements that may have one of ``names``.

    As the HTML standard's tokenizer finds them, but for escapes within scripts.
    """
    last = _last_candidate(html, names)
    templates = 0
    position = 0
    while position < last:
        no_matter = _NO_MATTER.match(html, position)
        if no_matter:
            position = no_matter.end()
            continue
        tag = _TAG.match(html, position)
        if tag is None:  # a comment or a declaration that is never closed
            return
        closes, name = tag[1], tag[2].lower()
        attributes: dict[bytes, bytes] = {}
        end = _skip_attributes(html, tag.end(), attributes)
        if name == _TEMPLATE:
            templates = max(0, templates - 1) if closes else templates + 1
        elif closes:
            pass
        elif name == _META:
            if attributes and not templates:
                yield _text(attributes, b"name").strip().lower(), _text(attributes, b"content")
        elif name in _TEXT_ENDS:
            closing = _TEXT_ENDS[name].search(html, end)
            end = closing.start() if closing else len(html)
        elif name == _PLAINTEXT:
            return
        position = end


def _skip_attributes(html: bytes, position: int, keep: dict[bytes, bytes] | None = None) -> int:
    """Behind the end of a tag; the end of the page where the tag has none, and is then no tag.

    ``keep`` gets the first ``name`` and ``content``.
    """
    while True:
        if others := _NOT_META_ATTRIBUTES.match(html, position):
            position = others.end()
            continue
        found = _ATTRIBUTE.match(html, position)
        if found is None:
            break
        position = found.end()
        if keep is not None:
            name = found[1].lower()
            if name in (b"name", b"content"):
                keep.setdefault(name, found[2] or found[3] or found[4] or b"")
    closed = _TAG_END.match(html, position)
    if closed:
        return closed.end()
    if keep is not None:
        keep.clear()
    return len(html)


def _text(attributes: dict[bytes, bytes], name: bytes) -> str:
    return unescape(attributes.get(name, b"")[:_MAX_OCTETS].decode("utf-8", "replace"))
