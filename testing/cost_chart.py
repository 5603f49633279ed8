"""The chart on `docs/about/performance.md`, drawn from the table above it.

``python -m testing.cost_chart`` draws it anew.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from testing import svg

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "about" / "performance.md"
IMAGE = DOCS / "images" / "costs.svg"

LEFT, UNIT, STEP = 330, 300, 34
"""Where the bars begin, how long a bar of 1 is, and the height of a row."""
_ROW = re.compile(r"^\| ([^|]+) \| (\d+(?:\.\d+)?) \| [^|]*`python -m benchmarks ", re.MULTILINE)

STYLE = """\
rect.bar { fill: #2a5b8c }
line { stroke: #b3541e; stroke-dasharray: 5 4 }
text { font: 13px sans-serif; fill: #222 }
text.name { text-anchor: end }
text.limit { fill: #b3541e; text-anchor: middle }
"""


class Cost(NamedTuple):
    """A row of the table."""

    name: str
    ratio: float
    """The cost, divided by that of Scrapy's own component."""


def costs() -> list[Cost]:
    """Return the rows of the table."""
    return [Cost(name, float(ratio)) for name, ratio in _ROW.findall(PAGE.read_text("utf-8"))]


def drawing(rows: list[Cost]) -> str:
    """Return a bar for each row, and a line at 1, as an SVG image."""
    shapes = []
    for number, row in enumerate(rows):
        y, length = 40 + number * STEP, round(row.ratio * UNIT)
        shapes.append(
            f'<text class="name" x="{LEFT - 10}" y="{y + 15}">{escape(row.name)}</text>'
            f'<rect class="bar" x="{LEFT}" y="{y}" width="{length}" height="20"/>'
            f'<text x="{LEFT + length + 8}" y="{y + 15}">{row.ratio:g}</text>'
        )
    height = 50 + len(rows) * STEP
    shapes.append(
        f'<line x1="{LEFT + UNIT}" x2="{LEFT + UNIT}" y1="30" y2="{height - 15}"/>\n'
        f'<text class="limit" x="{LEFT + UNIT}" y="22">Scrapy&#8217;s own</text>'
    )
    title = "Costs relative to those of Scrapy's own components"
    return svg.document(LEFT + UNIT + 130, height, title, STYLE, shapes)


if __name__ == "__main__":
    IMAGE.write_text(drawing(costs()), "utf-8")
