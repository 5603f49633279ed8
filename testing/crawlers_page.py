"""The table of `docs/reference/crawlers.md`. ``python -m testing.crawlers_page`` writes it anew."""

from __future__ import annotations

from pathlib import Path

from scrapy_rep.commands.crawlers import well_known_crawlers

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "crawlers.md"
START, END = "<!-- The table: python -m testing.crawlers_page -->\n", "<!-- End of the table -->\n"


def table() -> str:
    """Return the table as Markdown, with an empty line above and below."""
    crawlers = well_known_crawlers()
    lines = [
        "| Name | Operator | Purposes | Groups, the first that exists | Follows robots.txt "
        "| Source | Note |",
        "|---|---|---|---|---|---|---|",
    ]
    for crawler in crawlers:
        groups = " → ".join(f"`{group}`" for group in crawler.groups.split(", "))
        source = f"[{crawler.source.seen.isoformat()}]({crawler.source.url})"
        cells = (
            f"`{crawler.name}`",
            crawler.operator,
            ", ".join(crawler.purposes),
            "none" if crawler.groups == "none" else groups,
            crawler.compliance_text,
            source,
            (crawler.note or "").replace("*", r"\*"),
        )
        lines.append(f"| {' | '.join(cells)} |".replace("  ", " "))
    return "\n" + "\n".join(lines) + "\n\n"


def page(text: str) -> str:
    """Return the page with the table of today."""
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    return before + START + table() + (end or END) + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
