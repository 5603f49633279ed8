"""How a robots.txt was had, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from ..protocol.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCES = {
    "site": "from the site",
    "store": "from the store",
    "http-cache": "from Scrapy's HTTP cache",
    "archive": "from the archive",
}


def describe_access(access: dict[str, Any]) -> Iterator[tuple[str, Text]]:
    """Yield names and texts that say how a robots.txt was had. ``access`` is its record."""
    if access["source"] == "file":
        yield "robots.txt", Text(f"the file {printable(access['url'])}")
        return
    yield "robots.txt", Text(printable(access["url"]))
    yield "Fetched", Text(_fetched(access))
    urls = [*access["redirects"], access["final_url"]]
    if access["redirects"] and access["final_url"]:
        yield "Redirects", Text(" → ".join(printable(url) for url in urls))
    elif access["final_url"] not in (None, access["url"]):
        yield "Redirected to", Text(printable(access["final_url"]))
    if access["failure"] and access["state"] == "stale-copy":
        yield "Failure", Text(printable(access["failure"]))
    if access["unreachable_since"]:
        yield "Since", Text(_time(access["unreachable_since"]))
    if access["expires_at"]:
        is_unreachable = access["state"] in ("unreachable", "stale-copy")
        name = "Next attempt" if is_unreachable else "Valid until"
        yield name, Text(_time(access["expires_at"]))


def _fetched(access: dict[str, Any]) -> str:
    source = _SOURCES[access["source"]]
    if access["source"] == "store" and access["store"]:
        source += f" {printable(access['store'])}"
    if access["source"] == "archive":
        source += f" {printable(access['archive'])}"
    status = f"status {access['status']}, " if access["status"] is not None else ""
    age = "" if access["age"] is None else f", {_age(access['age'])}"
    if access["source"] == "archive":
        age = f", requested at {_time(access['fetched_at'])}"
    state = ", the last good copy" if access["state"] == "stale-copy" else ""
    return f"{status}{source}{age}{state}"


def _age(seconds: float) -> str:
    for unit, name in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            number = int(seconds / unit)
            return f"{number} {name}{'s' * (number != 1)} ago"
    return "just now" if seconds < 1 else f"{seconds:.0f} s ago"


def _time(iso: str) -> str:
    return iso.replace("T", " ").replace("Z", " UTC")
