"""The files of the origins of a crawl in memory: parsed ones, and packed ones that take less.

The files that were used lately are parsed. The others are packed, and parsed again at the next use.
This takes about as long as parsing them took when they were received.

    packed  = marshal of (clock shift, state, copy, other fields)
    content = zlib stream (RFC 1950), with a preset dictionary, of marshal of the content's state

The content is one of the other fields: it is compressed once, however often the file is packed.
The octets never leave the process, so that this form may change at any time.
"""

from __future__ import annotations

import marshal
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from ..origin import OriginFile, State
from ..protocol.access import CopyInfo
from ..stores.entry import DICTIONARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

File = TypeVar("File", bound=OriginFile[Any])

MAX_PARSED = 5_000
"""How many files are parsed: about 70 MB of files of average size. No request of a crawl of fewer
origins has to wait until a file is parsed again."""

MAX_PARSED_OCTETS = 32 * 2**20
"""The most octets of all parsed files, as they were received: 64 files of the maximum size. So a
crawl of fewer large files parses none of them again."""

PACKED_OCTETS = 2048
"""The octets of packed files for each origin that REP_CACHE_SIZE allows. The average is half of it.
"""

MIN_PACKED_OCTETS = 32 * 2**20
"""The octets of packed files that are kept even if REP_CACHE_SIZE is small."""

MAX_PER_PASS = 100
"""How many files in use one call may skip, so that it takes a bounded time."""

_NOT_KEPT = frozenset({"key", "host", "state", "content", "copy", "in_flight", "_paced"})
"""The fields that are not packed as they are: a new file has them, they are packed separately, or
they are computed again."""


class FileTable(Mapping[str, File]):
    """The files by the normal form of their origin. ``most`` is how many of them are kept.

    ``new_file`` returns a new file of an origin. ``is_in_use`` returns whether the file of an
    origin has to be kept, however many there are.
    """

    def __init__(
        self, most: int, new_file: Callable[[str], File], is_in_use: Callable[[str], bool]
    ) -> None:
        self._most = most
        self._new_file = new_file
        self._is_in_use = is_in_use
        self.parsed: OrderedDict[str, File] = OrderedDict()
        """The parsed files. The least recently used come first."""
        self._packed: OrderedDict[str, bytes] = OrderedDict()
        """The packed files. All of them were used less recently than the parsed ones."""
        self._octets: dict[str, int] = {}
        """The octets of the parsed files, as far as they were counted."""
        self._parsed_octets = 0
        self._packed_octets = 0
        self._max_packed_octets = max(most * PACKED_OCTETS, MIN_PACKED_OCTETS)
        self._clock_shift = 0.0

    def __getitem__(self, key: str) -> File:
        file = self.find(key)
        if file is None:
            raise KeyError(key)
        return file

    def __contains__(self, key: object) -> bool:
        return key in self.parsed or key in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter((*self._packed, *self.parsed))  # not a view: a use moves a file

    def __len__(self) -> int:
        return len(self._packed) + len(self.parsed)

    def find(self, key: str) -> File | None:
        """Return a file, or None if there is none. A packed file is parsed."""
        file = self.parsed.get(key)
        if file is None and (packed := self._pop_packed(key)) is not None:
            file = unpack(packed, self._new_file(key), self._clock_shift)
            self.parsed[key] = file
            self.count(file)
        return file

    def find_or_add(self, key: str) -> File:
        """Return a file, which is a new one if there is none. It is now the most recently used."""
        file = self.find(key)
        if file is None:
            self.evict(reserve=1)
            file = self.parsed[key] = self._new_file(key)
        self.parsed.move_to_end(key)
        return file

    def count(self, file: File) -> None:
        """Count the octets of a file, which have changed."""
        if file.key in self.parsed:
            self._parsed_octets += file.octets - self._octets.get(file.key, 0)
            self._octets[file.key] = file.octets

    def shift_clock(self, seconds: float) -> None:
        """Move the times of all files after a change of the clock."""
        self._clock_shift += seconds
        for file in self.parsed.values():
            file.shift_clock(seconds)

    def evict(self, reserve: int = 0) -> None:
        """Pack and remove the least recently used files beyond the limits.

        ``reserve`` is the number of files that are about to be added. Files that the caller holds
        across this call may be packed, so that changes of them are lost.
        """
        if self._has_excess:
            self._pack_excess()
        excess = len(self) + reserve - self._most
        if excess <= 0 and self._packed_octets <= self._max_packed_octets:
            return
        for key in _first_keys(self._packed):
            if excess <= 0 and self._packed_octets <= self._max_packed_octets:
                break
            if self._is_in_use(key):
                self._packed.move_to_end(key)
            else:
                self._pop_packed(key)
                excess -= 1
        for key in _first_keys(self.parsed):
            if excess <= 0:
                break
            if self.parsed[key].in_flight or self._is_in_use(key):
                self.parsed.move_to_end(key)
            else:
                self._pop_parsed(key)
                excess -= 1

    def _pack_excess(self) -> None:
        for key in _first_keys(self.parsed):
            if not self._has_excess:
                break
            if self.parsed[key].in_flight:
                self.parsed.move_to_end(key)
            else:
                packed = self._packed[key] = pack(self._pop_parsed(key), self._clock_shift)
                self._packed_octets += len(packed)

    @property
    def _has_excess(self) -> bool:
        """Whether there are too many parsed files."""
        return len(self.parsed) > MAX_PARSED or self._parsed_octets > MAX_PARSED_OCTETS

    def _pop_parsed(self, key: str) -> File:
        self._parsed_octets -= self._octets.pop(key, 0)
        return self.parsed.pop(key)

    def _pop_packed(self, key: str) -> bytes | None:
        packed = self._packed.pop(key, None)
        if packed is not None:
            self._packed_octets -= len(packed)
        return packed


def _first_keys(files: OrderedDict[str, Any]) -> Iterator[str]:
    """Yield the first key of ``files`` again and again, until there is none.

    The caller removes each key or moves it to the end. If it moves too many, this ends.
    """
    moved = 0
    while moved < min(MAX_PER_PASS, len(files)):
        key = next(iter(files))
        yield key
        moved += key in files


def pack(file: OriginFile[Any], clock_shift: float = 0) -> bytes:
    """Return the compact form of a file that is not being fetched.

    ``clock_shift`` is the sum of all seconds by which the clock was shifted in this crawl.
    """
    if file.content is not None and file.packed_content is None:
        deflate = zlib.compressobj(zdict=_dictionary(file))
        octets = deflate.compress(marshal.dumps(file.content.__getstate__()))
        file.packed_content = octets + deflate.flush()
    kind: Any = type(file)
    _, values = _kept_fields(kind)
    copy = None if file.copy is None else tuple(file.copy)
    return marshal.dumps((clock_shift, file.state.value, copy, values(file)))


def unpack(packed: bytes, file: File, clock_shift: float = 0) -> File:
    """Set the fields of a new file to those that were packed, and return it.

    The file is of the same origin and the same type. Its times are moved by the seconds by which
    the clock was shifted in between.
    """
    packed_shift, state, copy, values = marshal.loads(packed)
    file.state = State(state)
    file.copy = None if copy is None else CopyInfo(*copy)
    kind: Any = type(file)
    names, _ = _kept_fields(kind)
    for name, value in zip(names, values, strict=True):
        setattr(file, name, value)
    if file.packed_content is not None:
        inflate = zlib.decompressobj(zdict=_dictionary(file))
        file.content = object.__new__(file.resource.content_type)
        file.content.__setstate__(marshal.loads(inflate.decompress(file.packed_content)))
    if clock_shift != packed_shift:
        file.shift_clock(clock_shift - packed_shift)
    return file


@cache
def _kept_fields(file_type: type[Any]) -> tuple[tuple[str, ...], attrgetter[tuple[Any, ...]]]:
    """Return the names of the fields that are packed as they are, and what returns their values."""
    names = tuple(each.name for each in fields(file_type) if each.name not in _NOT_KEPT)
    return names, attrgetter(*names)


def _dictionary(file: OriginFile[Any]) -> bytes:
    """Return the preset dictionary for a file. The URL of its origin is common in it."""
    return DICTIONARY + file.key.encode()
