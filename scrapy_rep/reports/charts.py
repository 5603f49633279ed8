"""The charts of a page, as SVG inside of HTML.

Texts are HTML wherever a chart is scaled, so that they are legible on a phone. Each chart has its
numbers as text, too: bars are rows of a table, and the others are followed by a table.
"""

from __future__ import annotations

from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING, NamedTuple

from .elements import Html, h, shown
from .quantities import count, moment, seconds
from .timeline import merged, usable_length

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .elements import Child
    from .model import HostPace, Timeline, TimeSlot

SERIES = (("sent", "Pages requested"), ("dropped", "Pages not requested"), ("robots", "robots.txt"))
"""The classes and the names of the series of a timeline, from the bottom to the top."""

_WIDTH, _HEIGHT = 960, 200
_MAX_ROWS = 24
"""The rows of the table of a timeline."""
_MAX_COLUMNS = 160
_ROW_HEADS = ("Time", *dict(SERIES).values(), "Why not requested")
_MAX_REASONS = 5
"""The reasons in one row of the table of a timeline."""
_DAY = 86_400


class Bar(NamedTuple):
    """A row of a bar chart."""

    label: Child
    value: int
    kind: str
    """The class that gives the bar its color."""
    text: str = ""
    """More about the value."""


def bars(caption: str, columns: tuple[str, str], rows: Sequence[Bar]) -> Html:
    """Return a table with a bar in each row."""
    longest = max((row.value for row in rows), default=0)
    return h(
        "table",
        h("caption", caption, class_="unseen"),
        h("thead", h("tr", h("th", columns[0], scope="col"), h("th", columns[1], scope="col"))),
        h("tbody", (_bar(row, longest) for row in rows)),
        class_="bars",
    )


def _bar(row: Bar, longest: int) -> Html:
    share = 100 * row.value / longest if longest else 0
    # A small number is still visible.
    width = max(share, 0.5) if row.value else 0
    bar = h(
        "svg",
        h("rect", width=f"{width:.2f}", height=1, class_=row.kind),
        viewBox="0 0 100 1",
        preserveAspectRatio="none",
        aria_hidden="true",
        focusable="false",
    )
    value = h("span", h("strong", row.value), f" {row.text}" if row.text else None)
    return h("tr", h("th", row.label, scope="row"), h("td", h("div", bar, value)))


def timeline(line: Timeline) -> Html:
    """Return a stacked chart of the requests over time, and its table."""
    if not line.slots:
        return h("p", "The record has no times.", class_="note")
    length, columns = _columns(line, _MAX_COLUMNS)
    first, last = min(columns), max(columns)
    number = last - first + 1
    highest = max(map(sum, columns.values())) or 1
    paths = []
    below = dict.fromkeys(columns, 0)
    for position, (kind, _) in enumerate(SERIES):
        steps = []
        for index in sorted(columns):
            value = columns[index][position]
            if value:
                x, width = _WIDTH * (index - first) / number, _WIDTH / number
                top = _HEIGHT * (1 - (below[index] + value) / highest)
                height = _HEIGHT * value / highest
                steps.append(f"M{x:.1f} {top:.1f}h{width:.1f}v{height:.1f}h-{width:.1f}z")
                below[index] += value
        paths.append(h("path", d="".join(steps), class_=kind))
    grid = [h("line", x1=0, x2=_WIDTH, y1=y, y2=y) for y in (0.5, _HEIGHT / 2, _HEIGHT - 0.5)]
    totals = [sum(values[position] for values in columns.values()) for position in range(3)]
    numbers = ", ".join(
        f"{name}: {total:,}" for (_, name), total in zip(SERIES, totals, strict=True)
    )
    start, end = first * length, (last + 1) * length
    chart = h(
        "svg",
        h("title", f"Requests over time. {numbers}. The table below has the numbers."),
        h("g", grid, class_="grid"),
        paths,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        preserveAspectRatio="none",
        role="img",
    )
    form = "%H:%M:%S" if end - start < _DAY else "%Y-%m-%d %H:%M"
    return h(
        "div",
        legend(SERIES),
        h(
            "div",
            h(
                "div",
                h("span", highest),
                h("span", f"{highest / 2:,.1f}".removesuffix(".0")),
                h("span", 0),
                class_="y",
                aria_hidden="true",
            ),
            chart,
            h(
                "div",
                (h("span", moment(time, form)) for time in (start, (start + end) / 2, end)),
                class_="x",
                aria_hidden="true",
            ),
            class_="timeline",
        ),
        h("p", f"Requests in each interval of {seconds(length)}, in UTC.", class_="note"),
        _timeline_table(line),
    )


def _columns(line: Timeline, most: int) -> tuple[int, dict[int, tuple[int, int, int]]]:
    """Return a length in seconds, and the numbers of each interval of this length that has any."""
    length = usable_length(line.seconds)
    first, last = min(slot.at for slot in line.slots), max(slot.at for slot in line.slots)
    while last // length - first // length >= most:
        length *= 2
    found: dict[int, tuple[int, int, int]] = {}
    for slot in line.slots:
        index = int(slot.at // length)
        sent, dropped, robots = found.get(index, (0, 0, 0))
        found[index] = (sent + slot.sent, dropped + slot.dropped, robots + slot.robots_txt)
    return length, found


def _timeline_table(line: Timeline) -> Html:
    length, _ = _columns(line, _MAX_ROWS)
    return h(
        "details",
        h("summary", "Requests over time as a table"),
        h(
            "table",
            h("caption", f"Intervals of {seconds(length)} from each time (UTC)", class_="unseen"),
            h("thead", h("tr", (h("th", name, scope="col") for name in _ROW_HEADS))),
            h("tbody", (_timeline_row(slot) for slot in merged(length, line.slots).slots)),
            class_="numbers labeled",
        ),
    )


def _timeline_row(slot: TimeSlot) -> Html:
    found = sorted(slot.dropped_for.items(), key=lambda each: (-each[1], each[0]))
    reasons = [f"{number:,} {shown(reason, 40)}" for reason, number in found[:_MAX_REASONS]]
    if len(found) > _MAX_REASONS:
        reasons.append(f"and {count(len(found) - _MAX_REASONS, 'other reason')}")
    _, *heads, last = _ROW_HEADS
    numbers = (slot.sent, slot.dropped, slot.robots_txt)
    return h(
        "tr",
        h("th", moment(slot.at), scope="row"),
        (h("td", number, data_value=head) for head, number in zip(heads, numbers, strict=True)),
        h("td", ", ".join(reasons), data_value=last, class_="long") if reasons else h("td"),
    )


def legend(series: Sequence[tuple[str, str]]) -> Html:
    """Return the names of the series with their colors."""
    return h(
        "ul",
        (
            h(
                "li",
                h(
                    "svg",
                    h("rect", width=10, height=10, class_=kind),
                    viewBox="0 0 10 10",
                    aria_hidden="true",
                    focusable="false",
                ),
                name,
            )
            for kind, name in series
        ),
        class_="legend",
    )


_SIDE, _LEFT, _BOTTOM = 250, 60, 40


def scatter(hosts: Sequence[HostPace]) -> Html:
    """Return a chart of the delay that sites asked for against the smallest gap.

    Both axes are logarithmic. Hosts that are close to each other share a circle.
    """
    points = [
        (
            max(round(host.shortest_delay or 0, 3), 0.001),
            max(round(host.paced_gaps.smallest or 0, 3), 0.001),
            host.too_short > 0,
        )
        for host in hosts
        if isfinite(host.shortest_delay or 0) and isfinite(host.paced_gaps.smallest or 0)
    ]
    values = [value for delay, gap, _ in points for value in (delay, gap)] or [1]
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    high = max(high, low + 1)

    def at(value: float) -> float:
        share = (log10(min(max(value, 10**low), 10**high)) - low) / (high - low)
        return _SIDE * share

    # The place of a circle is that of its first host.
    circles: dict[tuple[int, int, bool], tuple[int, float, float]] = {}
    for delay, gap, is_short in points:
        x, y = _LEFT + at(delay), 10 + _SIDE - at(gap)
        key = (round(x / 6), round(y / 6), is_short)
        number, *place = circles.get(key, (0, x, y))
        circles[key] = (number + 1, place[0], place[1])
    ticks: list[Html] = []
    lines: list[Html] = []
    for exponent in range(low, high + 1, max(1, (high - low) // 4)):
        position = at(10**exponent)
        text = f"{10**exponent:g} s"
        x, y = _LEFT + position, 10 + _SIDE - position
        lines.append(h("line", x1=x, x2=x, y1=10, y2=10 + _SIDE))
        lines.append(h("line", x1=_LEFT, x2=_LEFT + _SIDE, y1=y, y2=y))
        ticks.append(h("text", text, x=x, y=_SIDE + 26, text_anchor="middle"))
        ticks.append(h("text", text, x=_LEFT - 6, y=y + 4, text_anchor="end"))
    short = sum(is_short for *_, is_short in points)
    width, height = _LEFT + _SIDE + 30, 10 + _SIDE + _BOTTOM
    return h(
        "svg",
        h(
            "title",
            f"The delay that sites asked for, against the smallest gap between two requests, of "
            f"{count(len(points), 'host')}. On or above the diagonal, the gap is as long as asked. "
            f"{count(short, 'host')} had a gap that is too short.",
        ),
        h("path", d=f"M{_LEFT} {10 + _SIDE}L{_LEFT + _SIDE} 10V{10 + _SIDE}z", class_="forbidden"),
        h("g", lines, class_="grid"),
        h(
            "line",
            x1=_LEFT,
            y1=10 + _SIDE,
            x2=_LEFT + _SIDE,
            y2=10,
            class_="diagonal",
        ),
        (
            h(
                "circle",
                cx=f"{x:.1f}",
                cy=f"{y:.1f}",
                r=f"{min(3.5 + 2 * log10(number), 9):.1f}",
                class_="short" if is_short else "kept",
            )
            for (_, _, is_short), (number, x, y) in sorted(circles.items())
        ),
        ticks,
        h("text", "Delay asked for", x=_LEFT + _SIDE / 2, y=height - 5, text_anchor="middle"),
        h(
            "text",
            "Smallest gap",
            transform=f"translate(12 {10 + _SIDE / 2}) rotate(-90)",
            text_anchor="middle",
        ),
        viewBox=f"0 0 {width} {height}",
        role="img",
        class_="scatter",
    )
