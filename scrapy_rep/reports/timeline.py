"""Requests over time, in bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import Time, Timeline, TimeSlot

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TIME_SLOTS = 240
"""The most intervals of a timeline. Beyond it, intervals become twice as long."""


MAX_SECONDS = 1 << 33
"""The longest interval: 272 years."""


def usable_length(seconds: int) -> int:
    """Return a length of intervals. A file that another program has written may have any number."""
    return min(max(seconds, 1), MAX_SECONDS)


class LiveTimeline:
    """The timeline of a crawl that runs."""

    def __init__(self) -> None:
        self._timeline = Timeline()
        self._slot = TimeSlot(Time(0))
        self._end = 0.0

    def slot(self, now: float) -> TimeSlot:
        """Return the interval of a time, to count in it."""
        if self._slot.at <= now < self._end:
            return self._slot
        seconds = self._timeline.seconds
        at = Time(now // seconds * seconds)
        slot = next((slot for slot in reversed(self._timeline.slots) if slot.at == at), None)
        if slot is None:
            slot = TimeSlot(at)
            self._timeline.slots.append(slot)
            if len(self._timeline.slots) > MAX_TIME_SLOTS:
                self._timeline = merged(seconds, self._timeline.slots)
                return self.slot(now)
        self._slot, self._end = slot, slot.at + seconds
        return slot

    @property
    def timeline(self) -> Timeline:
        """The timeline until now."""
        return self._timeline


def merged(seconds: int, slots: Iterable[TimeSlot]) -> Timeline:
    """Return the timeline that intervals add up to. Intervals have at least so many seconds."""
    seconds, slots = usable_length(seconds), list(slots)
    while True:
        found: dict[int, TimeSlot] = {}
        for slot in slots:
            index = int(slot.at // seconds)
            into = found.setdefault(index, TimeSlot(Time(index * seconds)))
            into.sent += slot.sent
            for reason, number in slot.dropped_for.items():
                into.dropped_for[reason] = into.dropped_for.get(reason, 0) + number
            into.robots_txt += slot.robots_txt
        if len(found) <= MAX_TIME_SLOTS:
            return Timeline(seconds, [found[index] for index in sorted(found)])
        seconds *= 2
