"""Counts the files of a survey in several processes.

The processes end with the command, however it ends: each watches a pipe that only the command
keeps open.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeVar

from ..reports.survey_row import encode, row_of
from .output import CommandError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator
    from concurrent.futures import Future
    from multiprocessing.connection import Connection

    from ..reports.survey_row import Sample

T = TypeVar("T")
R = TypeVar("R")

BATCH_FILES = 100
"""Samples that a process gets at once."""

BATCH_OCTETS = 1 << 20
"""Octets of files that a process gets at once."""

END_TIMEOUT = 1.0
"""Seconds that a process has for the file that it counts when the command ends."""

_is_ending = threading.Event()
"""Whether the command has ended, in a process that counts."""


def rows_of(samples: Iterable[Sample], processes: int | None) -> Generator[list[bytes]]:
    """Yield the rows of samples as lines of JSON, in their order. None: a process for each core.

    Not more samples are in memory than the processes need. After Ctrl-C, yields what has been
    counted, and raises KeyboardInterrupt. Raises CommandError if a process ends.
    """
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    processes = processes or cores
    batches = _batches(samples)
    first = list(islice(batches, 2))
    if processes == 1 or len(first) < 2:  # the start of processes would take longer
        for sample in chain.from_iterable(chain(first, batches)):
            yield [encode(row_of(sample))]
        return
    try:
        yield from results_of(_rows, chain(first, batches), processes)
    except BrokenExecutor:
        text = "a process that counts has ended, perhaps for lack of memory"
        raise CommandError(text, ExitCode.UNKNOWN) from None


def results_of(function: Callable[[T], R], items: Iterable[T], processes: int) -> Iterator[R]:
    """Call a function in processes, and yield its results in the order of the items.

    At most two calls for each process have no result, or one that is not taken. After Ctrl-C,
    yields the results of the calls that have begun and end within `END_TIMEOUT`, and raises
    KeyboardInterrupt. Raises BrokenExecutor if a process ends, and OSError if none can be started.
    """
    # A fork is not safe, because a progress bar has a thread.
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    calls: deque[Future[R]] = deque()
    with reader, ProcessPoolExecutor(processes, context, _watch, (reader,)) as executor, writer:
        try:
            for item in items:
                with _blocked_interrupts():
                    calls.append(executor.submit(function, item))
                if len(calls) >= 2 * processes:
                    yield calls[0].result()
                    calls.popleft()
            while calls:
                yield calls[0].result()
                calls.popleft()
        except KeyboardInterrupt:
            writer.close()
            for call in calls:
                if not call.cancel():
                    with suppress(BrokenExecutor):
                        yield call.result()
            raise


@contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Block Ctrl-C (SIGINT), which goes to all processes of a terminal, in those that start here.

    In this process, it has its effect afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(reader: Connection) -> None:
    """End this process soon after the other end of the pipe is closed, or its process has ended."""

    def watch() -> None:
        reader.poll(None)
        _is_ending.set()
        time.sleep(END_TIMEOUT)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _rows(batch: list[Sample]) -> list[bytes]:
    return [encode(row_of(sample)) for sample in batch if not _is_ending.is_set()]


def _batches(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    batch: list[Sample] = []
    octets = 0
    for sample in samples:
        batch.append(sample)
        octets += len(sample.body or b"")
        if len(batch) >= BATCH_FILES or octets >= BATCH_OCTETS:
            yield batch
            batch, octets = [], 0
    if batch:
        yield batch
