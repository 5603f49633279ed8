"""The compact form of a file of an origin, for the files that a crawl has not used lately.

    packed  = marshal of (clock shift, state, copy, other fields)
    content = deflate stream (RFC 1951), with a preset dictionary, of marshal of the content's state

The content is one of the other fields: it is compressed once, however often the file is packed.
The octets never leave the process, so that this form may change at any time.
"""

from __future__ import annotations

import marshal
import zlib
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..origin import State
from ..protocol.access import CopyInfo

if TYPE_CHECKING:
    from ..origin import OriginFile

_NOT_KEPT = frozenset({"key", "host", "state", "content", "copy", "in_flight", "_paced"})
"""The fields that the caller knows, that are packed separately, or that are computed again."""

_LEVEL = 6
_FAST_LEVEL = 1
_LARGE = 64 * 1024
"""The octets from which on a file is compressed at the fast level, in a few milliseconds."""

_NO_HEADER = -zlib.MAX_WBITS
"""Selects a deflate stream without a header and a checksum."""

# The preset dictionary: text that is common in robots.txt files. The most common is at the end.
_AGENTS = """
    Amazonbot anthropic-ai Applebot-Extended Bytespider cohere-ai Diffbot FacebookBot
    Google-Extended meta-externalagent PerplexityBot ChatGPT-User OAI-SearchBot Claude-Web
    ClaudeBot CCBot GPTBot BLEXBot DataForSeoBot DotBot HTTrack ia_archiver msnbot PetalBot
    rogerbot Slurp Teleport TurnitinBot Twitterbot WebCopier WebStripper WebZIP Wget Yandex
    SemrushBot MJ12bot AhrefsBot Baiduspider AdsBot-Google Mediapartners-Google Googlebot-Image
    Googlebot bingbot
"""
_PATHS = """
    *?*sort= *?*filter= *?*page= *?*order= *?*price= *&* *?q= *?id= *?replytocom *?utm_ *sessionid=
    *.gif$ *.jpg$ *.png$ *.pdf$ *.php$ *.html$ *.xml$ collections/*+* collections/*sort_by*
    policies/ recommendations/products orders checkouts/ customers/ catalogsearch/
    catalog/product_compare/ catalog/category/view/ checkout/cart/ wishlist/ reviews/ newsletter/
    index.php/ app/ api/ assets/ backup/ bin/ cache/ components/ config/ css/ data/ download/
    errors/ images/ installation/ language/ lib/ libraries/ logs/ media/ plugins/ private/ report/
    static/ stats/ templates/ temp/ test/ tmp/ upload/ var/ administrator/ cron.php install.php
    update.php xmlrpc.php CHANGELOG.txt INSTALL.txt LICENSE.txt README.txt web.config misc/ modules/
    profiles/ scripts/ sites/default/files/ themes/ includes/ node/add/ comment/reply/ filter/tips
    user/register/ user/password/ user/login/ user/logout/ ?q=user/password/ wiki/Special: forum/
    comments/ trackback/ category/ author/ archive/ tag/ page/ print/ profile/ register my-account/
    account/ logout/ login/ basket/ cart/ checkout/ users/ rss/ feed/ */feed/ *?s= ?s= *? search/
    search? cgi-bin/ admin/ wp-login.php wp-json/ wp-content/themes/ wp-content/cache/
    wp-content/uploads/ wp-content/plugins/ wp-includes/
"""
_DICTIONARY = (
    b"# robots.txt for https://www.\nHost: \nClean-param: \nNoindex: /\nRequest-rate: 1/\n"
    b"Content-Signal: search=yes, ai-train=no\n"
    + b"".join(b"User-agent: %b\nDisallow: /\n" % name.encode() for name in _AGENTS.split())
    + b"".join(b"Disallow: /%b\n" % path.encode() for path in _PATHS.split())
    + b"Allow: /*.css$\nAllow: /*.js$\nAllow: /core/*.css?\nAllow: /core/*.png\nCrawl-delay: 10\n"
    b"User-Agent: *\nAllow: /\n\nUser-agent: *\nDisallow:\nSitemap: /sitemap_index.xml\n"
    b"User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n\nSitemap: /sitemap.xml"
)

File = TypeVar("File", bound="OriginFile[Any]")

_Kept: TypeAlias = "tuple[tuple[str, ...], attrgetter[tuple[Any, ...]]]"
_kept: dict[type[Any], _Kept] = {}


def pack(file: OriginFile[Any], clock_shift: float = 0) -> bytes:
    """Return the compact form of a file that is not being fetched.

    ``clock_shift`` is the sum of all seconds by which the clock was shifted in this crawl.
    """
    if file.content is not None and file.packed_content is None:
        file.packed_content = _deflated(file.content.__getstate__(), file.key)
    _, values = _kept_fields(type(file))
    copy = None if file.copy is None else tuple(file.copy)
    return marshal.dumps((clock_shift, file.state.value, copy, values(file)))


def unpack(packed: bytes, file: File, clock_shift: float = 0) -> File:
    """Set the fields of a new file to those that were packed, and return it.

    The file is of the same origin and the same type. Its times are moved by the seconds by which
    the clock was shifted in between.
    """
    packed_shift, state, copy, values = marshal.loads(packed)
    file.state = State(state)
    file.copy = None if copy is None else CopyInfo(*copy)
    names, _ = _kept_fields(type(file))
    for name, value in zip(names, values, strict=True):
        setattr(file, name, value)
    if file.packed_content is not None:
        content_type = file.resource.content_type
        file.content = object.__new__(content_type)
        file.content.__setstate__(_inflated(file.packed_content, file.key))
    if clock_shift != packed_shift:
        file.shift_clock(clock_shift - packed_shift)
    return file


def _kept_fields(file_type: type[Any]) -> _Kept:
    """Return the names of the fields that are packed as they are, and what returns their values."""
    kept = _kept.get(file_type)
    if kept is None:
        names = tuple(each.name for each in fields(file_type) if each.name not in _NOT_KEPT)
        kept = _kept[file_type] = names, attrgetter(*names)
    return kept


def _deflated(state: Any, key: str) -> bytes:
    octets = marshal.dumps(state)
    level = _LEVEL if len(octets) < _LARGE else _FAST_LEVEL
    deflate = zlib.compressobj(level, wbits=_NO_HEADER, zdict=_dictionary(key))
    return deflate.compress(octets) + deflate.flush()


def _inflated(octets: bytes, key: str) -> Any:
    inflate = zlib.decompressobj(_NO_HEADER, _dictionary(key))
    return marshal.loads(inflate.decompress(octets))


def _dictionary(key: str) -> bytes:
    """Return the preset dictionary for an origin, whose URL is common in its files."""
    return _DICTIONARY + key.encode()
