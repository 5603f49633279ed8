"""Draws lines over a logarithmic scale, as an SVG file for the documentation."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 400, 260
"""The size of a panel."""
LEFT, RIGHT, TOP, BOTTOM = 56, 34, 34, 40
"""The margins of its area."""
COLORS = ("#0b6e99", "#b3541e", "#4a7a2c", "#7a4a8c")


class Line(NamedTuple):
    """A line with its name, which is empty if it is the only one."""

    name: str
    points: Sequence[tuple[float, float]]


class Panel(NamedTuple):
    """Lines with one title. Both scales are logarithmic."""

    title: str
    lines: Sequence[Line]


def svg(panels: Sequence[Panel], unit: str) -> str:
    """Return a drawing of panels side by side. ``unit`` is that of the horizontal scale."""
    size = f"{WIDTH * len(panels)} {HEIGHT}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-size="11" '
        'font-family="sans-serif" fill="#444">',
        f'<rect width="{WIDTH * len(panels)}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({number * WIDTH} 0)">', *_panel(panel, unit), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, unit: str) -> list[str]:
    points = [point for line in panel.lines for point in line.points]
    horizontal = _decades([x for x, _ in points])
    vertical = _decades([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - horizontal[0]) / (horizontal[1] - horizontal[0])
        up = (log10(y) - vertical[0]) / (vertical[1] - vertical[0])
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )

    parts = [f'<text x="{LEFT}" y="16" font-weight="bold">{escape(panel.title)}</text>']
    for exponent in range(horizontal[0], horizontal[1] + 1):
        x, y = place(10.0**exponent, 10.0 ** vertical[0])
        parts.append(_grid(x, TOP, x, y))
        parts.append(
            f'<text x="{x:.0f}" y="{y + 15:.0f}" text-anchor="middle">{10**exponent:,}</text>'
        )
    parts.append(
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{escape(unit)}</text>'
    )
    for exponent in range(vertical[0], vertical[1] + 1):
        x, y = place(10.0 ** horizontal[0], 10.0**exponent)
        parts.append(_grid(x, y, WIDTH - RIGHT, y))
        label = f"{10.0**exponent:,g}"
        parts.append(f'<text x="{x - 6:.0f}" y="{y + 4:.0f}" text-anchor="end">{label}</text>')
    for line, color in zip(panel.lines, COLORS, strict=False):
        places = [place(x, y) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        x, y = places[0]
        parts.append(
            f'<text x="{x + 4:.0f}" y="{y - 8:.0f}" fill="{color}">{escape(line.name)}</text>'
        )
    return parts


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten around values."""
    first, last = floor(log10(min(values))), ceil(log10(max(values)))
    return first, max(last, first + 1)


def _grid(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="#ddd"/>'
