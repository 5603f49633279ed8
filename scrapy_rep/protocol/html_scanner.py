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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MAX_OCTETS = 4096
"""The octets of an attribute that are read. No name and no list of rules is longer (ours)."""

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

# Many attributes at once, none of them KEY or VALUE_KEY.
_OTHER_ATTRIBUTES = rb"""
    (?: [%(WS)b/]+
        (?! (?: %(KEY)b | %(VALUE_KEY)b ) [%(WS)b=/>] )
        [^%(WS)b/>="']+ %(VALUE)b %(COMPLETE)b
    ){1,1000}
"""

# Text, tags and comments that contain no element NAME with an attribute KEY, as many as possible at
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


class _Element:
    """An element that is looked for, with two of its attributes."""

    def __init__(self, name: bytes, key: bytes, value_key: bytes) -> None:
        parts = {"NAME": name, "KEY": key, "VALUE_KEY": value_key}
        self.name = name
        self.key = key
        """The attribute without which an element does not count."""
        self.value_key = value_key
        self.other_attributes = _compile(_OTHER_ATTRIBUTES, re.IGNORECASE, **parts)
        self.irrelevant = _compile(_IRRELEVANT, re.IGNORECASE | re.DOTALL, **parts)


_META = _Element(b"meta", b"name", b"content")
_LINK = _Element(b"link", b"rel", b"href")

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


def has_elements(html: bytes) -> bool:
    """Return whether a page contains a meta tag or a link tag.

    Without one, `meta_elements` and `link_elements` find nothing.
    """
    return bool(_META_TAG.search(html) or _LINK_TAG.search(html))


def meta_elements(html: bytes, names: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    """Yield name and content of each meta element whose name may contain one of `names`.

    `names` are in lower case, and so is the name of an element. Elements with other names may be
    among those that are found. An attribute is cut after 4,096 octets.
    """
    first = last = -1
    for found in _META_TAG.finditer(html):
        last = found.start()
        if first < 0:
            first = last
    if first < 0:
        return
    # Only the part from the first meta tag to the last is searched for a name. So a page without
    # such a name costs little.
    end = _skip_attributes(html, last + 1, _META)
    for attributes in _elements(html, _last_candidate(html, first, end, names), _META):
        yield _text(attributes, b"name").strip().lower(), _text(attributes, b"content")


def link_elements(html: bytes, rel: str) -> Iterator[str]:
    """Yield the href of each link element in the head that has a link type.

    `rel` is the link type in lower case, one that is not allowed in the body (HTML §4.6.7). The
    head ends at the first body tag. An href of more than 4,096 octets is skipped: a part of a URL
    is another URL.
    """
    body = _BODY_TAG.search(html)
    end = body.start() if body else len(html)
    first = _LINK_TAG.search(html, 0, end)
    if first is None:
        return
    last = _last_candidate(html, first.start(), end, [rel.encode()])
    for attributes in _elements(html, last, _LINK):
        if (
            len(attributes.get(b"href", b"")) <= _MAX_OCTETS
            and rel in _text(attributes, b"rel").lower().split()
        ):
            yield _text(attributes, b"href")


def _elements(html: bytes, last: int, element: _Element) -> Iterator[dict[bytes, bytes]]:
    """Yield the attributes of each element of a kind that begins before a position."""
    templates = 0
    position = 0
    while position < last:
        irrelevant = element.irrelevant.match(html, position)
        if irrelevant:
            position = irrelevant.end()
            continue
        tag = _TAG.match(html, position)
        if tag is None:  # a comment or a declaration without an end
            return
        closes, name = tag[1], tag[2].lower()
        attributes: dict[bytes, bytes] = {}
        end = _skip_attributes(html, tag.end(), element, attributes)
        if name == b"template":
            templates = max(0, templates - 1) if closes else templates + 1
        elif closes:
            pass
        elif name == element.name:
            if attributes and not templates:
                yield attributes
        elif name in _TEXT_ENDS:
            closing = _TEXT_ENDS[name].search(html, end)
            end = closing.start() if closing else len(html)
        elif name == b"plaintext":
            return
        position = end


def _last_candidate(html: bytes, first: int, end: int, names: Sequence[bytes]) -> int:
    """Return the last position in a part of a page at which one of the names may stand, or -1."""
    tags = html[first:end].lower()
    place = max(tags.rfind(name) for name in names)
    if b"&" in tags:
        # A name may be written with character references, so each of them may be part of one.
        for reference in _REFERENCE.finditer(tags, place + 1):
            place = reference.start()
    return first + place if place >= 0 else -1


def _skip_attributes(
    html: bytes, position: int, element: _Element, keep: dict[bytes, bytes] | None = None
) -> int:
    """Return the position behind a tag. A tag without an end is none: then the end of the page.

    The first of each of the two attributes of `element` is added to `keep`.
    """
    while True:
        if others := element.other_attributes.match(html, position):
            position = others.end()
            continue
        found = _ATTRIBUTE.match(html, position)
        if found is None:
            break
        position = found.end()
        if keep is not None:
            name = found[1].lower()
            if name in (element.key, element.value_key):
                keep.setdefault(name, found[2] or found[3] or found[4] or b"")
    closed = _TAG_END.match(html, position)
    if closed:
        return closed.end()
    if keep is not None:
        keep.clear()
    return len(html)


def _text(attributes: dict[bytes, bytes], name: bytes) -> str:
    return unescape(attributes.get(name, b"")[:_MAX_OCTETS].decode("utf-8", "replace"))
