"""The files of queuelib's queues after a process was killed: their sizes are those of the files.

queuelib writes the size of a queue only when it closes it. Its FIFO queue has chunks, in which the
length stands before each record, and a file with the position of the first record. Its LIFO queue
has one file, in which the length stands behind each record.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO

from queuelib import FifoDiskQueue, LifoDiskQueue

_LENGTH = Struct(FifoDiskQueue.szhdr_format)

MAX_TORN = 1 << 20
"""Bytes at the end of a LIFO file in which its last whole record is searched."""


def repair(queue_class: type, path: Path) -> None:
    """Correct the sizes in the files of a queue. Removes a record that was not written whole."""
    if issubclass(queue_class, FifoDiskQueue) and path.is_dir():
        _repair_fifo(path)
    elif issubclass(queue_class, LifoDiskQueue) and path.is_file():
        with path.open("rb+") as file:
            _repair_lifo(file)


def _repair_fifo(path: Path) -> None:
    chunks = sorted(path.glob("q*"))
    if not chunks:
        return
    info_path, first = path / "info.json", int(chunks[0].name[1:])
    info: dict[str, Any] = {"chunksize": 100_000, "tail": [first, 0, 0]}
    with suppress(OSError, ValueError, TypeError, LookupError):
        known = json.loads(info_path.read_text("utf-8"))
        if known["tail"][0] == first:  # else that chunk was removed with its last record
            info |= known
    _, count, offset = info["tail"]
    found = [_whole_records(chunk, 0) for chunk in chunks[1:]]
    found.insert(0, _whole_records(chunks[0], offset))
    in_last = found[-1] + (count if len(chunks) == 1 else 0)
    info |= {"size": sum(found), "head": [first + len(chunks) - 1, in_last]}
    info_path.write_text(json.dumps(info), "utf-8")


def _whole_records(chunk: Path, offset: int) -> int:
    """Return how many records a chunk has from an offset on, and cut off what is behind them."""
    length, found = chunk.stat().st_size, 0
    with chunk.open("rb+") as file:
        while offset + _LENGTH.size <= length:
            file.seek(offset)
            (size,) = _LENGTH.unpack(file.read(_LENGTH.size))
            if not size or offset + _LENGTH.size + size > length:  # zeros: the disk lost power
                break
            offset += _LENGTH.size + size
            found += 1
        file.truncate(offset)
    return found


def _repair_lifo(file: BinaryIO) -> None:
    length = file.seek(0, 2)
    ends = range(length, max(length - MAX_TORN, _LENGTH.size - 1), -1)
    found = ((end, _records_before(file, end)) for end in ends)
    end, size = next((each for each in found if each[1] >= 0), (_LENGTH.size, 0))
    file.truncate(end)
    file.seek(0)
    file.write(_LENGTH.pack(size))


def _records_before(file: BinaryIO, end: int) -> int:
    """Return how many records end at a position, one behind the other; -1 if none does."""
    found = 0
    while end > _LENGTH.size:
        file.seek(end - _LENGTH.size)
        (size,) = _LENGTH.unpack(file.read(_LENGTH.size))
        if not size:
            return -1
        end -= size + _LENGTH.size
        found += 1
    return found if end == _LENGTH.size else -1
