"""A robots.txt of which a browser has made a page.

A browser shows a text file as a page of its own, ``<html>…<pre>…</pre></body></html>``. Read as it
is, the first line of the file would be no line of a robots.txt any more, and its first group lost.
"""

from __future__ import annotations

import re

# What Chromium, Firefox and WebKit make of a text file, before the text and after it. Between the
# two there is no tag, for a browser escapes the text. Bounded, so that nothing is searched in vain.
_BEFORE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s{0,100}(?:<!doctype[^<>]{0,200}>\s{0,100})?"
    rb"<html[^<>]{0,500}>\s{0,100}"
    rb"(?:<head[^<>]{0,200}>(?:\s{0,100}<(?:meta|link)[^<>]{0,500}>){0,20}"
    rb"(?:\s{0,100}<title[^<>]{0,200}>[^<>]{0,500}</title>)?"
    rb"(?:\s{0,100}<(?:meta|link)[^<>]{0,500}>){0,20}\s{0,100}</head>\s{0,100})?"
    rb"<body[^<>]{0,500}>\s{0,100}<pre[^<>]{0,500}>",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rb"</pre>(?:\s{0,100}<div[^<>]{0,500}>\s{0,100}</div>){0,5}\s{0,100}</body>\s{0,100}</html>\s*",
    re.IGNORECASE,
)

# The characters that a browser writes as entities in a text (HTML, section 13.3). The last is last.
_ENTITIES = (
    (b"&nbsp;", "\u00a0".encode()),
    (b"&lt;", b"<"),
    (b"&gt;", b">"),
    (b"&quot;", b'"'),
    (b"&#39;", b"'"),
    (b"&amp;", b"&"),
)


def unwrap_browser_page(body: bytes, *, cut_off: bool) -> bytes | None:
    """The text of which a browser has made this page; None where it is no such page.

    ``cut_off``: the end of the page may be missing, as a limit cuts it.
    """
    before = _BEFORE.match(body)
    if before is None:
        return None
    end = body.find(b"<", before.end())
    if end < 0:
        if not cut_off:
            return None
        end = len(body)
    elif not _AFTER.fullmatch(body, end) and not (cut_off and len(body) - end < 1000):
        return None
    text = body[before.end() : end]
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text
