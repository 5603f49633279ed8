"""The picture of the parts in `docs/about/design.md`, made from the imports of the package.

``python -m testing.design_page`` writes it anew.
"""

from __future__ import annotations

from functools import partial

import grimp

from testing.harness import ROOT

PAGE = ROOT / "docs" / "about" / "design.md"
START, END = "<!-- The parts: python -m testing.design_page -->\n", "<!-- End of the parts -->\n"


def parts() -> dict[str, set[str]]:
    """Return the parts of the package, each with those that it imports, from the top down."""
    graph = grimp.build_graph("scrapy_rep", cache_dir=None)
    names = sorted(graph.find_children("scrapy_rep"))
    uses: dict[str, set[str]] = {}
    for name in names:
        uses_part = partial(graph.direct_import_exists, importer=name, as_packages=True)
        uses[name] = {other for other in names if other != name and uses_part(imported=other)}
    below: dict[str, set[str]] = {}
    for _ in names:  # until nothing changes: there is no circle
        below = {
            name: set().union(own, *(below.get(other, set()) for other in own))
            for name, own in uses.items()
        }
    ordered = sorted(names, key=lambda name: (-len(below[name]), name))
    return {
        name: uses[name] - set().union(*(below[other] for other in uses[name])) for name in ordered
    }


def picture() -> str:
    """Return the parts as text: each imports those after its arrow, and may import what they do."""
    short = {
        name.removeprefix("scrapy_rep."): sorted(each.removeprefix("scrapy_rep.") for each in own)
        for name, own in parts().items()
    }
    width = max(map(len, short))
    lines = [f"{name:{width}} -> {', '.join(own)}" if own else name for name, own in short.items()]
    return "\n```text\n" + "\n".join(lines) + "\n```\n\n"


def page(text: str) -> str:
    """Return the page with the picture of today."""
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    return before + START + picture() + end + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
