"""The table of `docs/reference/crawlers.md`. ``python -m testing.crawlers_page`` writes it anew."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from scrapy_rep.commands.crawlers import Crawler, well_known_crawlers

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "crawlers.md"
START, END = "<!-- The table: python -m testing.crawlers_page -->\n", "<!-- End of the table -->\n"

PURPOSES = {
    "search": "the index of a search engine",
    "ads": "the choice of ads for a page, or checks of the pages that ads link to",
    "ai-training": "data to train a model with",
    "ai-use": "input for the answers of a model",
    "archive": "an archive of the web",
    "seo": "data about sites and links, for search engine optimization",
    "preview": "the preview of a link that was shared",
    "other": "anything else, such as feeds and tests",
}
"""What the pages are fetched for."""

MARKS = {"may-ignore": " (may ignore)", "ignores": " (ignores)", "unknown": "?"}
"""What follows the name of a crawler that does not say that it follows robots.txt."""


def table() -> str:
    """Return the table as Markdown, with an empty line above and below."""
    lines = ["| Purpose | The pages are fetched for | Crawlers |", "|---|---|---|"]
    for purpose, meaning in PURPOSES.items():
        found = [crawler for crawler in well_known_crawlers() if purpose in crawler.purposes]
        operators = [
            f"{operator}: {', '.join(map(_entry, crawlers))}"
            for operator, crawlers in groupby(found, lambda crawler: crawler.operator)
        ]
        lines.append(f"| `{purpose}` | {meaning} | {'; '.join(operators)} |")
    return "\n" + "\n".join(lines) + "\n\n"


def _entry(crawler: Crawler) -> str:
    """Return the name with a link to its source, and what is unusual about the crawler."""
    _, *others = crawler.groups.split(", ")
    groups = "".join(f" → {other}" for other in others if other != "*")
    if crawler.ignores_wildcard:
        groups += " (not \\*)"
    return f"[{crawler.name}]({crawler.source}){MARKS.get(crawler.compliance, '')}{groups}"


def page(text: str) -> str:
    """Return the page with the table of today."""
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    return before + START + table() + (end or END) + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
