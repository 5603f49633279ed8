"""Product tokens: from a User-Agent header, and from a user-agent line (RFC 9309 §2.2.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

WILDCARD_AGENT = "*"
"""Names the group of all crawlers that have no group of their own."""

LINE_TOKEN = rb"(?:(\*)(?=[ \t\v\f\n#]|\Z)|([A-Za-z_-]*)([^ \t\v\f\n#/*]*))"
"""The value of a user-agent line, as a regular expression with three groups.

1. ``*``, which names all crawlers without a group of their own.
2. The identifier: ``identifier = 1*(%x2D / %x41-5A / %x5F / %x61-7A)``. RFC 9309 and Google compare
   it with the token of a crawler.
3. The rest up to white space, ``/``, ``#`` or ``*``. A token with other characters than those of an
   identifier ("MJ12bot") is compared with 2 and 3 together. So ``MJ`` and ``MJ12bot`` are two.
"""

_LINE_TOKEN = re.compile(LINE_TOKEN)
_IDENTIFIER = re.compile(r"[A-Za-z_-]+")
_IS_HEADER = re.compile(r"[\s/(]")
# A token of HTTP (RFC 9110 §5.6.2) without "#" and "*", which end the token of a line.
_TOKEN = re.compile(r"[A-Za-z0-9!$%&'+.^_`|~-]+")
_POSSIBLE = re.compile(rb"[_+-]*[a-z0-9][a-z0-9!$%&'+.^_`|~-]*|[_-]+").fullmatch
_PRODUCT = re.compile(r"(?!\d+[._])[A-Za-z0-9_][A-Za-z0-9!$%&'+.^_`|~-]*")
_WITH_VERSION = re.compile(r"(?:^|;)\s*([^\s/;]+)/v?\d[^\s/;]*\s*(?=;|$)", re.IGNORECASE)
_CUT = re.compile(r"[*#]|:(?=[^/])")
_CONTACT = re.compile(r"\+|https?:|[^\s@]+@[^\s@]+\.", re.IGNORECASE)

# Browsers and systems, which many crawlers also send. "like" is in the list for Internet Explorer
# 11: its header ends with "like Gecko" outside of any comment.
_BROWSERS_AND_SYSTEMS = frozenset(
    """
    mozilla applewebkit chrome safari gecko firefox version mobile edg opr
    chromium crios edga edge edgios fxios msie trident konqueror like compatible
    arkweb browserng chromeframe goanna huaweibrowser iceweasel iemobile khtml miuibrowser
    nintendobrowser nokiabrowser oculusbrowser opera opios palemoon presto qqbrowser qtwebengine
    samsungbrowser seamonkey ucbrowser vivaldi webappmanager webbrowser webkit wosbrowser yabrowser

    aarch64 amd64 android arm64 build crkey cros dalvik darwin debian fedora googletv hbbtv hpwos
    i586 i686 ios ipad iphone ipod kaios linux macintosh maemo meego openharmony playstation
    series40 series60 smart-tv smarthub smarttv symbian symbianos tizen ubuntu web0s webos win32
    win64 windows wow64 x11 x64 x86_64
    """.split()  # noqa: SIM905
)

# Words of browsers that may be the name of a crawler where a header begins with them.
_BROWSER_WORDS = frozenset(
    """
    brave browser ddg devicetype duckduckgo epiphany focus gsa kindle large lg mac maxthon nf opt os
    pre puffin screen silk touchpad tv vr waterfox whale x yowser
    """.split()  # noqa: SIM905
)

# Crawlers for phones send the first product of a phone.
_DEVICE = re.compile(
    r"(?:blackberry|docomo|j-phone|kddi-|lg-|mot-|nokia|samsung-|sec-|softbank|sonyericsson|vodafone)"
    r".*\(compatible\s*;",
    re.IGNORECASE,
)


class AgentWarning(Enum):
    """Why the product token of a user agent may not be the one that its author meant."""

    NO_TOKEN = "it holds no product token, so only the rules for '*' apply"
    FIRST_WORD = "only its first word is the product token"
    CUT = "a product token ends before a character that no user-agent line can match"
    NOT_ASCII = "a product token ends before the first character that is not ASCII"


class ProductTokens(NamedTuple):
    """The product tokens of a user agent."""

    tokens: tuple[str, ...]
    """In lower case, in order of preference."""
    warning: AgentWarning | None = None
    """The first reason to doubt them, if there is one."""

    def problem(self, user_agent: str | bytes | Sequence[str]) -> str | None:
        """Return a clause about the user agent whose tokens these are, if they may be wrong."""
        if self.warning is None:
            return None
        name, what = text_of(user_agent), self.warning.value
        if self.warning is not AgentWarning.NO_TOKEN:
            return f"the product tokens of {name!r} are {', '.join(self.tokens)}: {what}"
        if "mozilla" in name.lower():
            what = "is the User-Agent of a browser, not of a crawler: only rules for * apply"
            return f"{name!r} {what}"
        return f"{name!r}: {what}"


def text_of(user_agent: str | bytes | Sequence[str]) -> str:
    """Return a user agent as text: a header, or all tokens."""
    values = [user_agent] if isinstance(user_agent, (str, bytes)) else user_agent
    return ", ".join(each.decode("latin-1") if isinstance(each, bytes) else each for each in values)


def product_tokens(user_agent: str | bytes | Sequence[str]) -> tuple[str, ...]:
    """Return the product tokens of a user agent in lower case, in order of preference.

    A value with a slash, a parenthesis or white space is read as a User-Agent header, and any other
    value as a token. Each member of a list or tuple is read in this way. If there is no token, only
    the group of ``*`` applies. Raises TypeError for any other type.

    >>> product_tokens("Mozilla/5.0 (compatible; MyBot/2.1; +https://example.com/bot)")
    ('mybot',)
    >>> product_tokens(["MyBot-Images", "MyBot"])
    ('mybot-images', 'mybot')
    """
    return parse_user_agent(user_agent).tokens


def parse_user_agent(user_agent: str | bytes | Sequence[str]) -> ProductTokens:
    """Return the product tokens of a user agent as `product_tokens` does, with a warning.

    >>> parse_user_agent("my crawler/1.0").warning.value
    'only its first word is the product token'
    """
    if isinstance(user_agent, (str, bytes)):
        return _parse_one(user_agent)
    for value in user_agent if isinstance(user_agent, (tuple, list)) else [user_agent]:
        if not isinstance(value, (str, bytes)):
            expected = "str, bytes, or a list or tuple of these"
            raise TypeError(f"a user agent must be {expected}, not {type(value).__name__}")
    return _parse_all(tuple(user_agent))


def tokens_of_line(value: bytes) -> list[bytes]:
    """Return the tokens that the value of a user-agent line matches. Empty: it matches none."""
    match = _LINE_TOKEN.match(value)
    return tokens_of_match(match) if match else []


def tokens_of_match(match: re.Match[bytes]) -> list[bytes]:
    """Return the tokens of a user-agent line from its match of `LINE_TOKEN`."""
    wildcard, identifier, rest = match.groups()
    if wildcard:
        return [wildcard]
    found = [identifier.lower()] if identifier else []
    if rest and rest.isascii():
        found.append((identifier + rest).lower())
    return found


def is_possible_token(token: bytes) -> bool:
    """Return whether a crawler can have a token of a user-agent line, or it names all crawlers."""
    return token == WILDCARD_AGENT.encode() or _POSSIBLE(token) is not None


@lru_cache(maxsize=64)
def _parse_all(values: tuple[str | bytes, ...]) -> ProductTokens:
    parsed = [_parse_one(value) for value in values]
    tokens = tuple(dict.fromkeys(token for one in parsed for token in one.tokens))
    return ProductTokens(tokens, next((one.warning for one in parsed if one.warning), None))


@lru_cache(maxsize=64)
def _parse_one(value: str | bytes) -> ProductTokens:
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    value = value.strip()
    if value == WILDCARD_AGENT:
        return ProductTokens(())
    if _IS_HEADER.search(value):
        return _parse_header(value)
    # No line can match all of a value beyond ASCII (RFC 9309 §2.2.1), so it is read as a line is.
    token, warning = _TOKEN.match(value), AgentWarning.CUT
    if not value.isascii():
        token, warning = _IDENTIFIER.match(value), AgentWarning.NOT_ASCII
    if not token:
        return ProductTokens((), AgentWarning.NO_TOKEN)
    return ProductTokens((token[0].lower(),), None if token[0] == value else warning)


def _parse_header(header: str) -> ProductTokens:
    """Return the token of the first product that is not a browser's, else that in a comment."""
    products, comments = _split_header(header)
    names = [name for comment in comments if (name := _name_in_comment(comment))]
    if names and _DEVICE.match(header):
        products = []
    for number, word in enumerate(products):
        cut = _CUT.split(word, maxsplit=1)[0]
        name = _name(cut)
        if name and not (number and name.lower() in _BROWSER_WORDS):
            warning = AgentWarning.CUT if name == cut != word else None
            is_first_word = number == 0 and word == name and len(products) > 1
            if is_first_word and header[len(word) :].lstrip()[:1] != "(":
                warning = AgentWarning.FIRST_WORD
            return ProductTokens((name.lower(),), warning)
    names += filter(None, map(_name, _WITH_VERSION.findall("".join(comments[:1]))))
    if names:
        return ProductTokens((names[0].lower(),))
    return ProductTokens((), AgentWarning.NO_TOKEN)


def _split_header(header: str) -> tuple[list[str], list[str]]:
    """Return the words outside of parentheses, and the texts of the outermost comments."""
    products: list[str] = []
    comments: list[list[str]] = []
    depth = 0
    for piece in re.split(r"([()])", header):
        if piece == "(":
            depth += 1
            if depth == 1:
                comments.append([])
        elif piece == ")":
            depth = max(depth - 1, 0)
        elif depth:
            comments[-1].append(piece)
        else:
            products += piece.split()
    return products, ["".join(pieces) for pieces in comments]


def _name(product: str) -> str | None:
    """Return the name of a product without its version; None for a browser or a system."""
    name = re.split(r"[\s/;,]", product, maxsplit=1)[0]
    is_crawler = name.lower() not in _BROWSERS_AND_SYSTEMS
    return name if _PRODUCT.fullmatch(name) and is_crawler else None


def _name_in_comment(comment: str) -> str | None:
    """Return the name after ``compatible``, or else before a URL or mail address."""
    pairs = list(pairwise(segment.strip() for segment in comment.split(";")))
    found = [_name(segment) for before, segment in pairs if before.lower() == "compatible"]
    found += [_name(before) for before, segment in pairs if _CONTACT.match(segment)]
    return next(filter(None, found), None)
