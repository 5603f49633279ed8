"""Counts the files of a survey in several processes."""

from __future__ import annotations

import os
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING

from ..reports.survey import Sample, Survey
from .crawlers import well_known_crawlers
from .exits import CommandError, ExitCode
from .process_pool import ProcessPool, ProcessPoolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BATCH_FILES = 500
"""Samples that a process gets at once."""

BATCH_OCTETS = 8 << 20
"""Octets of files that a process gets at once."""


@lru_cache(maxsize=1)
def purposes() -> dict[str, tuple[str, ...]]:
    """Return the purposes of the well-known crawlers, by their own product token."""
    return {
        crawler.tokens[0].lower(): tuple(purpose.value for purpose in crawler.purposes)
        for crawler in well_known_crawlers()
    }


def survey_of(
    samples: Iterable[Sample], processes: int, done: Callable[[int], object] = lambda _: None
) -> tuple[Survey, bool]:
    """Return the survey of samples, and whether it is complete.

    It is not complete after Ctrl-C: then it has what was counted until then. ``done`` is called
    with the number of samples that are counted. Not more samples are in memory than the processes
    need.
    """
    survey = Survey(purposes())
    try:
        for part in _counted(_batches(samples), processes):
            survey.merge(part)
            done(survey.total.responses)
    except KeyboardInterrupt:
        return survey, False
    return survey, True


def default_processes() -> int:
    """Return the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def _counted(batches: Iterator[list[Sample]], processes: int) -> Iterator[Survey]:
    first = list(islice(batches, 2))
    if processes == 1 or len(first) < 2:  # the start of processes would take longer
        yield from map(_count, chain(first, batches))
        return
    try:
        with ProcessPool(_count, processes) as pool:
            try:
                for batch in chain(first, batches):
                    yield from pool.submit(batch)
            except KeyboardInterrupt:
                # What the processes are counting belongs to what is counted.
                yield from pool.results()
                raise
            yield from pool.results()
    except ProcessPoolError as error:
        raise CommandError(f"a process that counts {error}", ExitCode.UNKNOWN) from None


def _count(batch: list[Sample]) -> Survey:
    survey = Survey(purposes())
    for sample in batch:
        survey.add(sample)
    return survey


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
