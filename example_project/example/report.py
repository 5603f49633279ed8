"""Tables for people: what each robots.txt meant, what became of each URL, and of what pages say."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scrapy_rep.protocol.paths import origin_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from example.reporting import Asked
    from scrapy_rep.origin import Origin

# Characters of a column; what is longer is cut off, so that a row stays within 120.
MEANING = 46
URL, GROUP, RULE = 42, 10, 26


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Left-aligned columns under a title and, unless it is empty, a head."""
    cells = [tuple(row) for row in ((head, *rows) if head else rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if head:
        cells.insert(1, tuple("-" * width for width in widths))
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in cells)
    return "\n".join(("", title, "", *lines))


def origins_table(
    origins: Mapping[str, Origin],
    asked: Collection[Asked],
    names: Mapping[str, str] | None = None,
    fetches: Mapping[str, int] | None = None,
) -> str:
    """Each origin with what its robots.txt meant and how many of its URLs were allowed.

    In the order of `names` (by origin), if they are given. `fetches`: how often the server was
    asked for the robots.txt.
    """
    every = Counter(origin_of(entry.url) for entry in asked)
    allowed = Counter(origin_of(entry.url) for entry in asked if entry.allowed)
    rows = []
    for key in dict.fromkeys((*(names or ()), *origins)):
        row = [key]
        if names is not None:
            row.append(names.get(key, ""))
        meaning = origins[key].summary() if key in origins else "was not asked"
        row.append(_cut(meaning, 2 * MEANING if names is None else MEANING))
        row.append(f"{allowed[key]} of {every[key]}")
        if fetches is not None:
            row.append(str(fetches.get(key, 0)))
        rows.append(row)
    head = ["origin", "what its robots.txt meant", "allowed"]
    if names is not None:
        head.insert(1, "what it shows")
    if fetches is not None:
        head.append("fetches")
    return table("Origins", head, rows)


def urls_table(asked: Iterable[Asked], received: Collection[str] | None = None) -> str:
    """Each URL with the decision, the rule behind it and its line, and what was seen of it.

    The last column is the answer that the crawl got; with `received`, the URLs in the record of
    the server, it says whether the request came there.
    """
    rows = []
    for entry in asked:
        reason = group = rule = line = ""
        if entry.verdict is not None:
            reason, group = str(entry.verdict.reason), entry.verdict.agent or ""
            if entry.verdict.rule is not None:
                kind = "Allow" if entry.verdict.rule.allow else "Disallow"
                rule, line = f"{kind}: {entry.verdict.rule.pattern}", str(entry.verdict.rule.line)
        seen = entry.answer
        if received is not None:
            seen = _yes(entry.url in received)
        url, group, rule = _cut(entry.url, URL), _cut(group, GROUP), _cut(rule, RULE)
        rows.append((url, _yes(entry.allowed), reason, group, rule, line, seen))
    last = "answer" if received is None else "received"
    return table("URLs", ("URL", "allowed", "reason", "group", "rule", "line", last), rows)


def pages_table(pages: Iterable[tuple[str, str, str, int, int]]) -> str:
    """Each page with what it says, what became of its item, and how many links were followed."""
    rows = [
        (_cut(url, URL), says, item, f"{followed} of {links}" if links else "")
        for url, says, item, followed, links in pages
    ]
    return table("Pages", ("URL", "what it says", "its item", "followed"), rows)


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
