"""Finds the meta elements of an HTML page without building a tree.

A meta element counts wherever a browser without scripts creates one: in the head, in the body and
in ``noscript``. It does not count in a comment, in an attribute, in a ``template``, or in the text
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


def _compile(expression: bytes, flags: int = 0) -> re.Pattern[bytes]:
    return re.compile(expression % _PARTS, re.VERBOSE | flags)


_META_TAG = _compile(rb"<meta (?= [%(WS)b/] )", re.IGNORECASE)
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

# Many attributes at once, none of them "name" or "content".
_OTHER_ATTRIBUTES = _compile(
    rb"""
    (?: [%(WS)b/]+
        (?! (?: name | content ) [%(WS)b=/>] )
        [^%(WS)b/>="']+ %(VALUE)b %(COMPLETE)b
    ){1,1000}
    """,
    re.IGNORECASE,
)

# Text, tags and comments that contain no meta element with a name, as many as possible at once.
_IRRELEVANT = _compile(
    rb"""
    (?: [^<]+                                                       # text
      | <+ (?= < )                                                  # "<" that begins nothing
      | < (?! [A-Za-z!?/<] )
      | < (?! (?: /?template | meta | plaintext | script | style | title | textarea | xmp
                | iframe | noembed | noframes ) [%(WS)b/>] )
        /? [A-Za-z][^%(WS)b/>]*                                     # any other tag
        (?: [%(WS)b]+ [^%(WS)b/>="']+ %(VALUE)b ){0,30}
        [%(WS)b/]* >
      | <meta                                                       # a meta tag without a name
        (?: [%(WS)b]+ (?! name [%(WS)b=/>] )
            [^%(WS)b/>="']+ %(VALUE)b %(COMPLETE)b ){0,30}
        [%(WS)b/]* >
      | <!-- (?: -?> | .*? --!?> )                                  # a comment
      | < (?: ! (?! -- ) | \? | / (?! [A-Za-z] ) ) [^>]* >          # a declaration
    ){1,1000}
    """,
    re.IGNORECASE | re.DOTALL,
)

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


def has_meta(html: bytes) -> bool:
    """Return whether a page contains a meta tag. Without one, `meta_elements` finds nothing."""
    return _META_TAG.search(html) is not None


def meta_elements(html: bytes, names: Sequence[bytes]) -> Iterator[tuple[str, str]]:
    """Yield name and content of each meta element whose name may contain one of `names`.

    `names` are in lower case, and so is the name of an element. Elements with other names may be
    among those that are found.
    """
    last = _last_candidate(html, names)
    templates = 0
    position = 0
    while position < last:
        irrelevant = _IRRELEVANT.match(html, position)
        if irrelevant:
            position = irrelevant.end()
            continue
        tag = _TAG.match(html, position)
        if tag is None:  # a comment or a declaration without an end
            return
        closes, name = tag[1], tag[2].lower()
        attributes: dict[bytes, bytes] = {}
        end = _skip_attributes(html, tag.end(), attributes)
        if name == b"template":
            templates = max(0, templates - 1) if closes else templates + 1
        elif closes:
            pass
        elif name == b"meta":
            if attributes and not templates:
                yield _text(attributes, b"name").strip().lower(), _text(attributes, b"content")
        elif name in _TEXT_ENDS:
            closing = _TEXT_ENDS[name].search(html, end)
            end = closing.start() if closing else len(html)
        elif name == b"plaintext":
            return
        position = end


def _last_candidate(html: bytes, names: Sequence[bytes]) -> int:
    """Return the last position at which a meta element may have one of the names, or -1.

    Only the part from the first meta tag to the last is searched. So a page without such a name
    costs little.
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
        # A name may be written with character references, so each of them may be part of one.
        for reference in _REFERENCE.finditer(tags, place + 1):
            place = reference.start()
    return first + place if place >= 0 else -1


def _skip_attributes(html: bytes, position: int, keep: dict[bytes, bytes] | None = None) -> int:
    """Return the position behind a tag. A tag without an end is none: then the end of the page.

    The first ``name`` and the first ``content`` are added to `keep`.
    """
    while True:
        if others := _OTHER_ATTRIBUTES.match(html, position):
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
