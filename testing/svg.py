"""What the drawings of the documentation share: the document, and arrows between boxes."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

Point = tuple[float, float]

ARROWHEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
    'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" '
    'style="fill: #555; stroke: none; marker-end: none"/></marker></defs>'
)
"""The end of a path with the style ``marker-end: url(#head)``."""


class Arrow(NamedTuple):
    """The path of an arrow, and the place of its label."""

    path: str
    label: tuple[int, int]


def document(width: int, height: int, title: str, style: str, shapes: Iterable[str]) -> str:
    """Return an SVG image on a page of its own color, which a dark page needs."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">\n'
        f"<title>{title}</title>\n<style>\nrect.page {{ fill: #fff }}\n{style}</style>\n"
        + "\n".join(['<rect class="page" width="100%" height="100%"/>', *shapes, "</svg>", ""])
    )


def arrow(start: Point, end: Point, box: Point, *, bend: float, label: float) -> Arrow:
    """Return an arrow between two boxes of the size ``box``, whose middles are given.

    ``bend`` is how far the middle of the arrow is from the straight line. ``label`` is the place of
    the label on the arrow, from 0 to 1.
    """
    (x1, y1), (x2, y2) = start, end
    length = hypot(x2 - x1, y2 - y1)
    across_x, across_y = -(y2 - y1) / length, (x2 - x1) / length
    mx, my = (x1 + x2) / 2 + 2 * bend * across_x, (y1 + y2) / 2 + 2 * bend * across_y
    (sx, sy), (ex, ey) = _border(start, (mx, my), box), _border(end, (mx, my), box)
    x, y = (
        (1 - label) ** 2 * a + 2 * label * (1 - label) * b + label**2 * c
        for a, b, c in ((sx, mx, ex), (sy, my, ey))
    )
    path = f"M{sx:.0f},{sy:.0f} Q{mx:.0f},{my:.0f} {ex:.0f},{ey:.0f}"
    return Arrow(path, (round(x), round(y) + 4))


def _border(middle: Point, towards: Point, box: Point) -> Point:
    """Return where the line from the middle of a box towards a point leaves the box."""
    x, y = towards[0] - middle[0], towards[1] - middle[1]
    scale = min(
        (box[0] / 2 + 2) / abs(x) if x else 1.0,
        (box[1] / 2 + 2) / abs(y) if y else 1.0,
    )
    return middle[0] + x * scale, middle[1] + y * scale
