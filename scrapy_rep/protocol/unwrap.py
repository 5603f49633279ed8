"""Recovers a robots.txt from the page in which a browser shows it.

A browser shows a text file as ``<html>…<pre>…</pre></body></html>``. If the server calls the file
HTML, there is no ``<pre>``. Read as a robots.txt, such a page would lose its first line, and with
it the first group.
"""

from __future__ import annotations

import re

# The markup that Chromium, Firefox and WebKit put before and after the text of a file. Between the
# two there is no tag, because a browser escapes the text. All repetitions have a limit, so that a
# search that fails takes little time.
#
#   before = [BOM] [doctype] html-tag [head] body-tag pre-tag
#   head   = head-tag *20( meta / link ) [title] *20( meta / link ) "</head>"
#   after  = "</pre>" *5( div-tag "</div>" ) "</body></html>"
_BEFORE = re.compile(
    rb"""
    (?: \xef\xbb\xbf )? \s{0,100}
    (?: <!doctype [^<>]{0,200} > \s{0,100} )?
    <html [^<>]{0,500} > \s{0,100}
    (?: <head [^<>]{0,200} >
        (?: \s{0,100} < (?: meta | link ) [^<>]{0,500} > ){0,20}
        (?: \s{0,100} <title [^<>]{0,200} > [^<>]{0,500} </title> )?
        (?: \s{0,100} < (?: meta | link ) [^<>]{0,500} > ){0,20}
        \s{0,100} </head> \s{0,100}
    )?
    <body [^<>]{0,500} > \s{0,100}
    <pre [^<>]{0,500} >
    """,
    re.VERBOSE | re.IGNORECASE,
)
_AFTER = re.compile(
    rb"""
    </pre>
    (?: \s{0,100} <div [^<>]{0,500} > \s{0,100} </div> ){0,5}
    \s{0,100} </body> \s{0,100} </html> \s*
    """,
    re.VERBOSE | re.IGNORECASE,
)
# The markup that browsers put around text that the server calls HTML: the elements that the text
# lacks, without attributes (HTML standard §13.2.6.4).
_BARE_BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?<html><head></head><body>")
_BARE_AFTER = re.compile(rb"</body></html>\s*")
_MAX_AFTER = 1000
"""The octets of an incomplete end that a limit has cut off (ours)."""

# The characters that a browser writes as entities in text (HTML standard §13.3). "&amp;" is
# replaced last, so that nothing is replaced twice.
_ENTITIES = (
    (b"&nbsp;", "\u00a0".encode()),
    (b"&lt;", b"<"),
    (b"&gt;", b">"),
    (b"&quot;", b'"'),
    (b"&#39;", b"'"),
    (b"&amp;", b"&"),
)


def unwrap_browser_page(body: bytes, *, cut_off: bool) -> bytes | None:
    """Return the text that a browser shows in this page. None if it is no such page.

    `cut_off` is true if a size limit may have removed the end of the page.
    """
    before, after = _BEFORE.match(body), _AFTER
    if before is None:
        before, after = _BARE_BEFORE.match(body), _BARE_AFTER
    if before is None:
        return None
    end = body.find(b"<", before.end())
    if end < 0:
        if not cut_off:
            return None
        end = len(body)
    elif not after.fullmatch(body, end) and not (cut_off and len(body) - end < _MAX_AFTER):
        return None
    text = body[before.end() : end]
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text
