"""A survey beside Protego: files in a second, and memory.

Protego parses all files, which takes only a part of what a survey counts. Then a survey makes their
rows. The files are generated ones in the proportions of real ones, or those of a folder. Memory is
that of the rows, for some files and for four times as many.
"""

from __future__ import annotations

import time
import tracemalloc
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING

from protego import Protego

from scrapy_rep.reports.survey_row import encode, row_of
from testing import corpus
from testing.harness import Duration, Parameter, Result, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from testing.harness import Options

DURATION = Duration(60, 15)
PARAMETERS = {
    "files": Parameter(2_000, 500, "generated files"),
    "times": Parameter(3, 2, "how often each file is counted"),
}


def run(options: Options) -> Result:
    """Return the files in a second, and the growth of memory."""
    found = corpus.load(options.folder, files=options.number("files"))
    bodies, times = found.bodies, options.number("times")
    number = len(bodies) * times
    protego, protego_cpu = _seconds(partial(_parse, bodies, times))
    survey, survey_cpu = _seconds(partial(_count, bodies, times))
    growth = _octets(bodies, 4) / _octets(bodies, 1)
    rows = [
        Row("Protego", number / protego, "files/s"),
        Row("survey", number / survey, "files/s"),
        Row("  CPU time, Protego's is 1", survey_cpu / protego_cpu, "ratio", 10),
        Row("memory for four times as many files", growth, "ratio", 1.5),
    ]
    return Result(rows, [f"files: {found.source}, {times} times"])


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return the wall time and the CPU time of this process."""
    start, start_cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - start_cpu


def _parse(bodies: Sequence[bytes], times: int) -> None:
    for body in chain.from_iterable(repeat(bodies, times)):
        Protego.parse(body.decode("utf-8", "replace"))


def _count(bodies: Sequence[bytes], times: int) -> None:
    for body in chain.from_iterable(repeat(bodies, times)):
        encode(row_of("a", body))


def _octets(bodies: Sequence[bytes], times: int) -> int:
    """Return the most octets that a survey has at once."""
    tracemalloc.start()
    _count(bodies[:500], times)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most
