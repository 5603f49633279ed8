"""What Ctrl-C (SIGINT) does while a tool runs. Each handler is removed again.

Outside of the main thread, which gets the signals, the handlers stay as they are.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def on_interrupt(handler: Any) -> Iterator[None]:
    """Call a handler on Ctrl-C. ``signal.SIG_IGN`` ignores it, also in processes that start."""
    try:
        before = signal.signal(signal.SIGINT, handler)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def raised_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at once on Ctrl-C, as Python does by default."""
    with on_interrupt(signal.default_int_handler):
        yield


@contextmanager
def delayed_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt only at the end, if Ctrl-C was pressed."""
    pressed: list[int] = []
    with on_interrupt(lambda number, _: pressed.append(number)):
        yield
    if pressed:
        raise KeyboardInterrupt


def noted_interrupts() -> list[int]:
    """Return a list that gets an item at each Ctrl-C. The present handler is called after that.

    Scrapy's handler only arranges that the event loop ends. Code that is about to block the loop
    would not notice it. :func:`restored_handlers` removes the handler of this function.
    """
    pressed: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        if callable(before):
            before(number, frame)

    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, note)
    return pressed


@contextmanager
def restored_handlers() -> Iterator[None]:
    """Restore the handlers of SIGINT and SIGTERM at the end.

    Scrapy replaces them. Its handlers do nothing once Scrapy has ended.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        with suppress(ValueError):  # not the main thread
            for number, handler in before.items():
                if handler is not None:  # None: not installed from Python
                    signal.signal(number, handler)
