"""Finds the meta and link elements of an HTML page without building a tree.

An element counts wherever a browser without scripts creates one: in the head, in the body and in
``noscript``. It does not count in a comment, in an attribute, in a ``template``, or in the text
of ``script``, ``style``, ``title`` and the like. This follows the tokenizer of the HTML standard
(§13.2.5), except for the escapes within scripts.

Pages are read as octets, in any encoding that agrees with ASCII. The time is linear in their
length: no part of a match can be given to another part of its expression.
"""

from __future__ import annotations

import re
from html import unescape
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MAX_OCTETS = 4096
"""The octets of an attribute that are read. No name and no list of rules is longer (ours)."""

# HTML compares names without regard to the case of ASCII letters only. str.lower() makes "k" of a
# Kelvin sign.
_LOWER_CASE = str.maketrans(ascii_uppercase, ascii_lowercase)

# tag         = "<" ["/"] tag-name *( separator attribute ) [separator] ">"
# tag-name    = ALPHA *( any octet but WS, "/" and ">" )
# attribute   = name [ *WS "=" *WS value ]
# name        = any octet but WS, "/" and ">", then *( any octet but WS, "/", ">" and "=" )
# value       = DQUOTE *( any octet but DQUOTE ) DQUOTE / "'" *( any octet but "'" ) "'"
#             / 1*( any octet but WS and ">" )
# separator   = 1*( WS / "/" )
# WS          = HTAB / LF / FF / CR / SP
_PARTS = {b"WS": rb"\t\n\f\r\x20"}
# A value right behind its "=".
_PARTS[b"VALUE"] = (
    rb"""(?: = (?: "[^"]*" | '[^']*' | [^"'>%(WS)b][^>%(WS)b]* ) )?""" % _PARTS
)  # fmt: skip
# The end of an attribute that is complete: nothing of its name or value follows.
_PARTS[b"COMPLETE"] = rb"(?! [^%(WS)b/>] | [%(WS)b]* = )" % _PARTS


def _compile(expression: bytes, flags: int = 0, **parts: bytes) -> re.Pattern[bytes]:
    named = {name.encode(): part for name, part in parts.items()}
    return re.compile(expression % {**_PARTS, **named}, re.VERBOSE | flags)


_META_TAG = _compile(rb"<meta (?= [%(WS)b/] )", re.IGNORECASE)
_LINK_TAG = _compile(rb"<link (?= [%(WS)b/] )", re.IGNORECASE)
_BODY_TAG = _compile(rb"<body (?= [%(WS)b/>] )", re.IGNORECASE)
# A meta tag whose attributes have values in double quotes or no values.
_USUAL_META_TAG = _compile(
    rb"""<meta (?: [%(WS)b]+ [^%(WS)b/>="']+ (?: ="[^"]*" )? )* [%(WS)b/]* >""", re.IGNORECASE
)
_TAG = _compile(rb"< (/?) ( [A-Za-z][^%(WS)b/>]* )")
_ATTRIBUTE = _compile(
    rb"""
    [%(WS)b/]*
    ( [^%(WS)b/>][^%(WS)b/>=]* )                # name
    (?: [%(WS)b]* = [%(WS)b]*
        (?: "([^"]*) (?: " | \Z )               # a quoted value; its end may be missing
          | '([^']*) (?: ' | \Z )
          | ( [^"'>%(WS)b][^>%(WS)b]* )         # a value without quotes
        )?
    )?
    """
)
_TAG_END = _compile(rb"[%(WS)b/]* >")

# Many attributes at once, none of them a KEY or a VALUE_KEY.
_OTHER_ATTRIBUTES = rb"""
    (?: [%(WS)b/]+
        (?! (?: %(KEY)b | %(VALUE_KEY)b ) [%(WS)b=/>] )
        [^%(WS)b/>="']+ %(VALUE)b %(COMPLETE)b
    ){1,1000}
"""

# Text, tags and comments that contain no NAME element with a KEY attribute, as many as possible at
# once.
_IRRELEVANT = rb"""
    (?: [^<]+                                                       # text
      | <+ (?= < )                                                  # "<" that begins nothing
      | < (?! [A-Za-z!?/<] )
      | < (?! (?: /?template | %(NAME)b | plaintext | script | style | title | textarea | xmp
                | iframe | noembed | noframes ) [%(WS)b/>] )
        /? [A-Za-z][^%(WS)b/>]*                                     # any other tag
        (?: [%(WS)b]+ [^%(WS)b/>="']+ %(VALUE)b ){0,30}
        [%(WS)b/]* >
      | <%(NAME)b                                                   # a tag without the attribute
        (?: [%(WS)b]+ (?! %(KEY)b [%(WS)b=/>] )
            [^%(WS)b/>="']+ %(VALUE)b %(COMPLETE)b ){0,30}
        [%(WS)b/]* >
      | <!-- (?: -?> | .*? --!?> )                                  # a comment
      | < (?: ! (?! -- ) | \? | / (?! [A-Za-z] ) ) [^>]* >          # a declaration
    ){1,1000}
"""


class _Kinds:
    """The elements that are looked for, each with the name of two of its attributes.

    An element without the first of them does not count.
    """

    def __init__(self, *kinds: tuple[bytes, bytes, bytes]) -> None:
        self.names, keys, value_keys = zip(*kinds, strict=True)
        parts = {
            "NAME": b"(?: %b )" % b" | ".join(self.names),
            "KEY": b"(?: %b )" % b" | ".join(keys),
            "VALUE_KEY": b" | ".join(value_keys),
        }
        self.attributes = frozenset(keys + value_keys)
        self.other_attributes = _compile(_OTHER_ATTRIBUTES, re.IGNORECASE, **parts)
        self.irrelevant = _compile(_IRRELEVANT, re.IGNORECASE | re.DOTALL, **parts)


_META_KIND = (b"meta", b"name", b"content")
_LINK_KIND = (b"link", b"rel", b"href")
_META, _LINK, _BOTH = _Kinds(_META_KIND), _Kinds(_LINK_KIND), _Kinds(_META_KIND, _LINK_KIND)

# The elements whose content is text for a browser, and what ends each. "noscript" is none of them,
# for no scripts run.
_TEXT_ENDS = {
    name: _compile(rb"</ %b (?= [%%(WS)b/>] )" % name, re.IGNORECASE)
    for name in b"script style title textarea xmp iframe noembed noframes".split()
}

# A character reference to a visible ASCII character, in lower case. The characters that are most
# often written so elsewhere (" & ' < >) are left out: no name contains them.
_REFERENCE = re.compile(
    rb"""
    &
    (?: \#
        (?: 0* (?: 3[35-7] | 4[0-9] | 5[0-9] | 61 | 6[3-9] | [789][0-9] | 1[01][0-9] | 12[0-6] )
          | x 0* (?: 2[13-5] | 2[89a-f] | 3[0-9abdf] | [4-6][0-9a-f] | 7[0-9a-e] )
        )
        (?! [0-9a-f] )
      | (?: ast | colon | comma | commat | diacriticalgrave | dollar | equals | excl | fjlig
          | grave | hat | lbrace | lbrack | lcub | lowbar | lpar | lsqb | midast | num | percnt
          | period | plus | quest | rbrace | rbrack | rcub | rpar | rsqb | semi | sol | underbar
          | verbar | vert | verticalline | bsol )
        ;
    )
    """,
    re.VERBOSE,
)


_NO_PART = slice(0)


class Element(NamedTuple):
    """A meta or a link element."""

    tag: str
    """``meta`` or ``link``."""
    key: str
    """Its name or its link types (``rel``), in lower case."""
    value: str
    """Its content, or the URL that it links to (``href``)."""


def has_elements(html: bytes) -> bool:
    """Return whether a page contains a meta or a link tag. Else `elements` finds nothing."""
    return bool(_META_TAG.search(html) or _LINK_TAG.search(html))


def elements(html: bytes, names: Sequence[bytes], rel: bytes) -> Iterator[Element]:
    """Yield the meta elements with one of `names`, and the link elements with a link type.

    Only links in the head count, up to the first body tag: `rel` is a link type that is not allowed
    in the body (HTML §4.6.7). `names` and `rel` are in lower case. Elements with other names and
    types may be among those that are found. Attributes are cut after 4,096 octets. A link with a
    longer URL is skipped, for a part of a URL is another URL.
    """
    body = _BODY_TAG.search(html)
    head_end = body.start() if body else len(html)
    metas, links = _part_with_metas(html, head_end), _part_with_links(html, head_end)
    last_meta, last_link = _last_candidate(html, metas, names), _last_candidate(html, links, [rel])
    kinds = _BOTH if last_meta >= 0 <= last_link else _META if last_meta >= 0 else _LINK
    for position, tag, attributes in _tags(html, max(last_meta, last_link), kinds):
        if tag == b"meta":
            content = _text(attributes, b"content")
            name = _text(attributes, b"name").strip().translate(_LOWER_CASE)
            yield Element("meta", name, content)
        elif position < last_link and len(attributes.get(b"href", b"")) <= _MAX_OCTETS:
            rel_values = _text(attributes, b"rel").translate(_LOWER_CASE)
            yield Element("link", rel_values, _text(attributes, b"href"))


def _tags(html: bytes, last: int, kinds: _Kinds) -> Iterator[tuple[int, bytes, dict[bytes, bytes]]]:
    """Yield position, name and attributes of each element that begins before a position."""
    templates = 0
    position = 0
    while position < last:
        irrelevant = kinds.irrelevant.match(html, position)
        if irrelevant:
            position = irrelevant.end()
            continue
        tag = _TAG.match(html, position)
        if tag is None:  # a comment or a declaration without an end
            return
        closes, name = tag[1], tag[2].lower()
        attributes: dict[bytes, bytes] = {}
        end = _skip_attributes(html, tag.end(), kinds, attributes)
        if name == b"template":
            templates = max(0, templates - 1) if closes else templates + 1
        elif closes:
            pass
        elif name in kinds.names:
            if attributes and not templates:
                yield position, name, attributes
        elif name in _TEXT_ENDS:
            closing = _TEXT_ENDS[name].search(html, end)
            end = closing.start() if closing else len(html)
        elif name == b"plaintext":
            return
        position = end


def _part_with_metas(html: bytes, head_end: int) -> slice:
    """Return the part of a page from the first meta tag to the last. Empty if there is none.

    Names are searched for in this part alone. So a page without such a name costs little.
    """
    found = _META_TAG.search(html)
    if found is None:
        return _NO_PART
    first = found.start()
    # Most heads have many meta tags in lower case. This skips them at once.
    last = max(html.rfind(b"<meta", first, head_end), first)
    for found in _META_TAG.finditer(html, last + 1):
        last = found.start()
    usual = _USUAL_META_TAG.match(html, last)
    return slice(first, usual.end() if usual else _skip_attributes(html, last + 1, _META))


def _part_with_links(html: bytes, head_end: int) -> slice:
    """Return the part of the head from the first link tag on. Empty if there is none."""
    found = _LINK_TAG.search(html, 0, head_end)
    return slice(found.start(), head_end) if found else _NO_PART


def _last_candidate(html: bytes, part: slice, names: Sequence[bytes]) -> int:
    """Return the last position in a part of a page at which one of the names may stand, or -1."""
    if part is _NO_PART:
        return -1
    first, tags = part.start, html[part].lower()
    place = max(map(tags.rfind, names))
    if b"&" in tags:
        # A name may be written with character references, so each of them may be part of one.
        for reference in _REFERENCE.finditer(tags, place + 1):
            place = reference.start()
    return first + place if place >= 0 else -1


def _skip_attributes(
    html: bytes, position: int, kinds: _Kinds, keep: dict[bytes, bytes] | None = None
) -> int:
    """Return the position after a tag. If the tag does not end, returns the end of the page.

    The first of each attribute that `kinds` has is added to `keep`.
    """
    while True:
        if others := kinds.other_attributes.match(html, position):
            position = others.end()
            continue
        found = _ATTRIBUTE.match(html, position)
        if found is None:
            break
        position = found.end()
        if keep is not None:
            name = found[1].lower()
            if name in kinds.attributes:
                keep.setdefault(name, found[2] or found[3] or found[4] or b"")
    closed = _TAG_END.match(html, position)
    if closed:
        return closed.end()
    if keep is not None:
        keep.clear()
    return len(html)


def _text(attributes: dict[bytes, bytes], name: bytes) -> str:
    return unescape(attributes.get(name, b"")[:_MAX_OCTETS].decode("utf-8", "replace"))
