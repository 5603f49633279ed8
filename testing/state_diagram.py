"""The states of an origin on `docs/about/design.md`: a table and a drawing, made from the code.

``python -m testing.state_diagram`` writes both anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from scrapy_rep.origin import TRANSITIONS, State
from testing import svg

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "about" / "design.md"
IMAGE = DOCS / "images" / "states.svg"
START, END = "<!-- The table: python -m testing.state_diagram -->\n", "<!-- End of the table -->\n"

WIDTH, HEIGHT = 780, 480
BOX = (120, 40)
PLACES = {
    State.UNKNOWN: (100, 60),
    State.FETCHING: (100, 240),
    State.UNREACHABLE: (100, 420),
    State.STALE: (400, 285),
    State.FRESH: (680, 60),
    State.UNAVAILABLE: (680, 420),
}
BEND = 26
"""How far the middle of an arrow is from the straight line, so that two arrows of a pair differ."""
LABEL = 0.36
"""The place of a label on its arrow, from 0 to 1, so that the labels of a pair are apart."""

STYLE = """\
rect.state { fill: #eef4fb; stroke: #2a5b8c; stroke-width: 1.5 }
path { fill: none; stroke: #555; stroke-width: 1.3; marker-end: url(#head) }
text { font: 13px sans-serif; fill: #222; text-anchor: middle }
text.event { font-size: 11px; fill: #444; paint-order: stroke; stroke: #fff; stroke-width: 4px }
"""


def changes() -> Iterator[tuple[State, State, list[str]]]:
    """Yield each pair of states with the events that lead from the first to the second."""
    for state, events in TRANSITIONS.items():
        for target in State:
            names = [event.__name__ for event, to in events.items() if to is target]
            if names:
                yield state, target, names


def table() -> str:
    """Return the transitions as a table in Markdown."""
    lines = ["| State | Event | Next state |", "|---|---|---|"]
    lines += [
        f"| {state} | {', '.join(f'`{name}`' for name in names)} | {target} |"
        for state, target, names in changes()
    ]
    return "\n" + "\n".join(lines) + "\n\n"


def page(text: str) -> str:
    """Return the page with the table of today."""
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    return before + START + table() + (end or END) + after


def drawing() -> str:
    """Return the transitions between different states as an SVG image."""
    shapes, labels = [svg.ARROWHEAD], []
    for state, target, names in changes():
        if state is not target:
            arrow = svg.arrow(PLACES[state], PLACES[target], BOX, bend=BEND, label=LABEL)
            x, y = arrow.label
            shapes.append(f'<path d="{arrow.path}"/>')
            labels.append(f'<text class="event" x="{x}" y="{y}">{escape(", ".join(names))}</text>')
    width, height = BOX
    for state, (x, y) in PLACES.items():
        shapes.append(
            f'<rect class="state" x="{x - width // 2}" y="{y - height // 2}" width="{width}" '
            f'height="{height}" rx="8"/><text x="{x}" y="{y + 5}">{state}</text>'
        )
    title = "The states of a file of an origin, and the events that change them"
    return svg.document(WIDTH, HEIGHT, title, STYLE, [*shapes, *labels])


def main() -> None:
    """Write the drawing and the table anew."""
    IMAGE.write_text(drawing(), "utf-8")
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
