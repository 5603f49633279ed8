"""What differs between two surveys: the shares of files, in percentage points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_DIFFERENCES = 1_000
"""Differences that are listed, the largest first."""


def differences(total: Mapping[str, Any], other: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the shares that differ, the largest difference first.

    ``other`` is the total of another survey, from a file: what is not a number counts as 0. An
    agent that only one of the surveys lists is left out, since its number in the other is not
    known.
    """
    now, before = dict(_shares(total)), dict(_shares(other))
    found: list[dict[str, Any]] = []
    for measure in {**now, **before}:
        if measure[0] in _LISTED and not (measure in now and measure in before):
            continue
        new, old = now.get(measure, 0.0), before.get(measure, 0.0)
        if new != old:
            found.append(
                {
                    "measure": measure[0],
                    "name": measure[1],
                    "before": round(old, 6),
                    "after": round(new, 6),
                    "change": round(new - old, 6),
                }
            )
    found.sort(key=lambda each: (-abs(each["change"]), each["measure"], each["name"]))
    return found[:MAX_DIFFERENCES]


_LISTED = ("agent", "blocked-agent", "preference")


def _shares(total: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    files, responses = _count(total.get("files")), _count(total.get("responses"))
    for measure, key, whole in (
        ("feature", "features", files),
        ("finding", "findings", files),
        ("result", "results", responses),
        ("status", "statuses", responses),
    ):
        rows = total.get(key)
        for name, number in rows.items() if isinstance(rows, dict) else ():
            yield (measure, str(name)), _share(number, whole)
    for measure, key, name in (
        ("agent", "agents", "agent"),
        ("blocked-agent", "blocked_agents", "agent"),
        ("preference", "preferences", "preference"),
    ):
        rows = total.get(key)
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict):
                yield (measure, str(row.get(name))), _share(row.get("files"), files)
    purposes = total.get("purposes")
    for purpose, row in purposes.items() if isinstance(purposes, dict) else ():
        for extent, number in row.items() if isinstance(row, dict) else ():
            yield ("purpose", f"{purpose}, {extent}"), _share(number, files)


def _share(number: object, whole: int) -> float:
    return min(_count(number) / whole, 1.0) if whole else 0.0


def _count(value: object) -> int:
    return value if type(value) is int and 0 < value < 1 << 62 else 0
