"""The text of ``view``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from ..protocol.printable import printable
from .check_output import STYLES, WORDS
from .check_text import explanation, word
from .values_text import named_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

MAX_LINES = 20
"""Lines of the text that are shown. JSON has more."""

MAX_LINKS = 30
"""Links that are shown. JSON has more."""

MAX_DIRECTIVES = 30
"""Directives that are shown. JSON has more."""

MAX_OFFERS = 3
"""Ways to pay that are shown. JSON has more."""

_HEADERS = {
    "x-robots-tag": "X-Robots-Tag",
    "robots-tag": "Robots-Tag",
    "tdm-reservation": "tdm-reservation",
    "tdm-policy": "tdm-policy",
    "link": "Link",
}
_FILES = {"tdmrep.json": "in the file tdmrep.json"}


def listing(record: dict[str, Any]) -> Iterator[RenderableType]:
    """Yield the text of a record of ``view``."""
    yield from explanation(record["check"])
    yield Text()
    yield named_values(_rows(record))
    for one in record["contradictions"]:
        yield Text()
        text = Text("Contradiction  ", style="bold red")
        yield text.append(printable(one["text"], 1000), style="default not bold")
    page = record["page"]
    if page is None:
        return
    if page["text"]:
        yield Text()
        yield from _text(page)
    if page["links"]:
        yield Text()
        yield _links(page)
    left = len(page["links"][MAX_LINKS:]) + page["links_left_out"]
    if left:
        yield Text(f"and {left:,} more links")
    if page["other_links"]:
        yield Text(f"and {page['other_links']:,} that are no URLs of pages, such as mailto:")


def _rows(record: dict[str, Any]) -> Iterator[tuple[str, Text]]:
    for number, hop in enumerate(record["hops"][:-1]):
        text = word(hop["allowed"]).append(f"  {printable(hop['url'])}", style="default")
        yield "" if number else "Redirects", text.append(f"  status {hop['status']}")
    if record["refusal"] is not None:
        name = printable(record["requested_as"], 80)
        yield "Page", Text(f"not requested: robots.txt disallows it for {name}", style="yellow")
        return
    if record["failure"] is not None:
        yield "Page", Text(f"not fetched: {printable(record['failure'])}", style="yellow")
        return
    page = record["page"]
    kind = printable(page["content_type"] or "no content type", 80)
    yield "Page", Text(f"status {page['status']}, {kind}, {page['size']:,} octets")
    if page["access_terms"]:
        yield from _terms(page["access_terms"])
    yield "Title", Text(printable(page["title"] or "none"))
    yield from _directives(page)
    if page["usage"]:
        yield "Usage", Text(_usage(page["usage"]))
    for url in page["licenses"][:3]:
        yield "License", Text(printable(url))
    if page["canonical"]:
        text = word(page["canonical"]["allowed"])
        yield "Canonical", text.append(f"  {printable(page['canonical']['url'])}", style="default")
    if page["refresh"]:
        yield "Refresh", Text(f"{printable(page['refresh'])}, which is not followed")


def _terms(terms: dict[str, Any]) -> Iterator[tuple[str, Text]]:
    required = [
        name
        for name, key in (("a payment", "payment_required"), ("a license", "license_required"))
        if terms[key]
    ]
    yield "Requires", Text(" and ".join(required), style="yellow")
    if terms["price"]:
        yield "Price", Text(printable(terms["price"]))
    for number, offer in enumerate(terms["offers"][:MAX_OFFERS]):
        parts = (offer[name] for name in ("asset", "network", "scheme") if offer[name])
        text = f"{offer['amount']} {', '.join(parts)}"
        yield "" if number else "Offers", Text(printable(text))
    left = len(terms["offers"][MAX_OFFERS:])
    if left:
        yield "", Text(f"and {left:,} more")
    if terms["authorization_uri"]:
        yield "License from", Text(printable(terms["authorization_uri"]))
    if terms["error"]:
        yield "Error", Text(printable(terms["error"]))


def _directives(page: dict[str, Any]) -> Iterator[tuple[str, Text]]:
    if not page["directives"]:
        yield "Directives", Text("none")
    shown = page["directives"][:MAX_DIRECTIVES]
    for number, one in enumerate(shown):
        rule = printable(one["rule"], 40)
        if one["argument"]:
            rule += f": {printable(one['argument'], 80)}"
        agent = "" if one["agent"] == "*" else f", for {printable(one['agent'], 60)}"
        place = _HEADERS.get(one["place"])
        where = _FILES.get(one["place"], "in the page")
        if place is not None:
            where = f"in the header {place}"
        yield "" if number else "Directives", Text(f"{rule}  {where}{agent}")
    left = len(page["directives"]) - len(shown) + page["directives_left_out"]
    if left:
        yield "", Text(f"and {left:,} more")
    if not page["indexable"]:
        yield "Effect", Text("the page is not indexed")
    if page["nofollow"]:
        yield "Effect", Text("its links are not followed")


def _usage(usage: dict[str, Any]) -> str:
    parts = []
    for name, granted in usage["evaluated"].items():
        sources = [
            text
            for key, text in (
                ("robots_txt", "robots.txt"),
                ("page", "the page"),
                ("tdm_file", "tdmrep.json"),
            )
            if usage[key].get(name) == granted
        ]
        parts.append(f"{name}: {'granted' if granted else 'refused'} (by {' and '.join(sources)})")
    return ", ".join(parts)


def _text(page: dict[str, Any]) -> Iterator[Text]:
    yield Text("Text", style="bold")
    lines = page["text"].split("\n")
    for line in lines[:MAX_LINES]:
        yield Text(f"  {printable(line, 300)}")
    left = len(lines[MAX_LINES:])
    if left:
        yield Text(f"  and {left:,} more lines", style="dim")


def _links(page: dict[str, Any]) -> Table:
    made = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold", title=None
    )
    made.add_column("Verdict", no_wrap=True)
    made.add_column("Link", ratio=3, overflow="fold")
    made.add_column("Why", ratio=2, overflow="fold")
    for link in page["links"][:MAX_LINKS]:
        made.add_row(
            Text(WORDS[link["allowed"]], style=STYLES[link["allowed"]]),
            Text(printable(link["url"], 300)),
            Text(_why(link)),
        )
    return made


def _why(link: dict[str, Any]) -> str:
    rule = link["rule"]
    if rule is not None:
        field = "Allow" if rule["allow"] else "Disallow"
        why = f"line {rule['line']}, {field}: {printable(rule['pattern'], 100)}"
    elif link["reason"] == "rules":
        why = "no rule matches"
    else:
        why = _REASONS.get(link["reason"], link["reason"])
    return f"{why}; nofollow" if link["nofollow"] else why


_REASONS = {
    "no-rules": "no group applies",
    "unavailable": "robots.txt is unavailable",
    "unreachable": "robots.txt is unreachable",
    "unknown": "robots.txt not fetched",
}
