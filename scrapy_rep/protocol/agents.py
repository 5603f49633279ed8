"""Product tokens: out of a User-Agent header and out of a user-agent line (RFC 9309 §2.2.1)."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

WILDCARD_AGENT = "*"

LINE_TOKEN = rb"(?:(\*)(?=[ \t\v\f\n#]|\Z)|([A-Za-z_-]*)([^ \t\v\f\n#/*]*))"
"""The value of a user-agent line, in three groups.

The first is ``*`` for everyone. The second is what RFC 9309 and Google compare with a crawler's
token: ``identifier = 1*(%x2D / %x41-5A / %x5F / %x61-7A)``. With the third it is what the token
of a crawler that has other characters ("MJ12bot") is compared with, so that neither kind can be
taken for the other.
"""

_LINE_TOKEN = re.compile(LINE_TOKEN)
_IDENTIFIER = re.compile(r"[A-Za-z_-]+")
_IS_HEADER = re.compile(r"[\s/(]")
# The characters of a token of HTTP, but for "#" and "*", with which a line's token ends.
_TOKEN = re.compile(r"[A-Za-z0-9!$%&'+.^_`|~-]+")
_PRODUCT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9!$%&'+.^_`|~-]*")
_CUT = re.compile(r"[*#]|:(?=[^/])")
_CONTACT = re.compile(r"\+|https?:|[^\s@]+@[^\s@]+\.", re.IGNORECASE)

# What browsers, and crawlers that pose as one, put on every request. "like" is Internet
# Explorer 11's, which ends in "like Gecko" outside of any comment.
_BROWSER = frozenset(
    """
    mozilla applewebkit chrome safari gecko firefox version mobile edg opr
    chromium crios edga edge edgios fxios msie trident konqueror like compatible
    """.split()  # noqa: SIM905
)


class AgentWarning(Enum):
    """Why a user agent may not mean what its author thinks."""

    NO_TOKEN = "it holds no product token, so only the rules for everyone apply"
    FIRST_WORD = "only its first word is the product token"
    CUT = "a product token ends before a character that no user-agent line can match"
    NOT_ASCII = "a product token ends where its letters are no longer those of ASCII"


class ProductTokens(NamedTuple):
    """Who a crawler is: its tokens in order of preference, and whether that is doubtful."""

    tokens: tuple[str, ...]
    warning: AgentWarning | None = None


def product_tokens(user_agent: str | bytes | Sequence[str]) -> tuple[str, ...]:
    """The lower-case tokens of a crawler in order of preference; none: only ``*`` applies.

    A value with a slash, a parenthesis or white space is read as a User-Agent header, any other
    as a token; of a sequence each member is read so. Raises TypeError for anything else.
    """
    return parse_user_agent(user_agent).tokens


def parse_user_agent(user_agent: str | bytes | Sequence[str]) -> ProductTokens:
    """The same as `product_tokens`, with what is doubtful about it."""
    if isinstance(user_agent, (str, bytes)):
        return _identify_one(user_agent)
    if not isinstance(user_agent, (tuple, list)):
        raise TypeError(f"a user agent is text or a sequence of texts, not {user_agent!r}")
    for value in user_agent:
        if not isinstance(value, (str, bytes)):
            raise TypeError(f"a user agent is text, not {value!r}")
    return _identify_all(tuple(user_agent))


def tokens_of_line(value: bytes) -> list[bytes]:
    """What a crawler's token may be for the user-agent line with this value to be its own."""
    match = _LINE_TOKEN.match(value)
    return tokens_of_match(match) if match else []


def tokens_of_match(match: re.Match[bytes]) -> list[bytes]:
    """The same for a match that ends with `LINE_TOKEN`; none, and nobody is named."""
    everyone, run, more = match.groups()
    if everyone:
        return [everyone]
    found = [run.lower()] if run else []
    if more and more.isascii():
        found.append((run + more).lower())
    return found


@lru_cache(maxsize=64)
def _identify_all(values: tuple[str | bytes, ...]) -> ProductTokens:
    found = [_identify_one(value) for value in values]
    tokens = tuple(dict.fromkeys(token for identity in found for token in identity.tokens))
    doubts = [identity.warning for identity in found if identity.warning]
    return ProductTokens(tokens, doubts[0] if doubts else None)


@lru_cache(maxsize=64)
def _identify_one(value: str | bytes) -> ProductTokens:
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    value = value.strip()
    if value == WILDCARD_AGENT:
        return ProductTokens(())
    if _IS_HEADER.search(value):
        return _identify_header(value)
    if not value.isascii():
        # Read like a line's: with all of its letters it would be nobody's (RFC 9309 §2.2.1).
        run = _IDENTIFIER.match(value)
        return (
            ProductTokens((run[0].lower(),), AgentWarning.NOT_ASCII)
            if run
            else ProductTokens((), AgentWarning.NO_TOKEN)
        )
    token = _TOKEN.match(value)
    if not token:
        return ProductTokens((), AgentWarning.NO_TOKEN)
    return ProductTokens((token[0].lower(),), None if token[0] == value else AgentWarning.CUT)


def _identify_header(header: str) -> ProductTokens:
    products, comments = _split_header(header)
    for number, word in enumerate(products):
        cut = _CUT.split(word, maxsplit=1)[0]
        name = _name(cut)
        if name:
            if name == cut != word:
                return ProductTokens((name.lower(),), AgentWarning.CUT)
            plain = number == 0 and word == name and len(products) > 1
            followed = plain and header[len(word) :].lstrip()[:1] != "("
            return ProductTokens((name.lower(),), AgentWarning.FIRST_WORD if followed else None)
    for comment in comments:
        name = _name_in_comment(comment)
        if name:
            return ProductTokens((name.lower(),))
    return ProductTokens((), AgentWarning.NO_TOKEN)


def _split_header(header: str) -> tuple[list[str], list[str]]:
    """The words outside of parentheses, and the outermost comments."""
    products: list[str] = []
    comments: list[str] = []
    depth = 0
    for piece in re.split(r"([()])", header):
        if piece == "(":
            depth += 1
            if depth == 1:
                comments.append("")
        elif piece == ")":
            depth = max(depth - 1, 0)
        elif depth:
            comments[-1] += piece
        else:
            products += piece.split()
    return products, comments


def _name(product: str) -> str | None:
    """The name of a product that is no browser's."""
    name = re.split(r"[\s/;,]", product, maxsplit=1)[0]
    if not _PRODUCT.fullmatch(name) or name.lower() in _BROWSER:
        return None
    return name


def _name_in_comment(comment: str) -> str | None:
    segments = [segment.strip() for segment in comment.split(";")]
    for before, segment in pairwise(segments):
        if before.lower() == "compatible" and _name(segment):
            return _name(segment)
    for before, segment in pairwise(segments):
        if _CONTACT.match(segment) and _name(before):
            return _name(before)
    return None
