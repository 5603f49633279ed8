"""The files of the origins of a crawl in memory: parsed ones, and packed ones that take less.

The files that were used lately are parsed. The others are packed, and parsed again at the next use.
This takes about as long as parsing them took when they were received.

    packed = zlib stream (RFC 1950), with a preset dictionary, of the pickle of the file

The bytes never leave the process, so that this form may change at any time.
"""

from __future__ import annotations

import pickle
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ..origin import OriginFile
from ..stores.entry import DICTIONARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    IsInUse = Callable[[str], bool]

File = TypeVar("File", bound=OriginFile[Any])

MAX_PARSED = 5_000
"""How many files are parsed: about 70 MB of files of average size. No request of a crawl of fewer
origins has to wait until a file is parsed again."""

MAX_PARSED_OCTETS = 32 * 2**20
"""The most bytes of all parsed files, as they were received: 64 files of the maximum size. So a
crawl of fewer large files parses none of them again."""

PACKED_OCTETS = 2048
"""The bytes of packed files for each origin that REP_CACHE_SIZE allows. The average is half of it.
"""

MIN_PACKED_OCTETS = 32 * 2**20
"""The bytes of packed files that are kept even if REP_CACHE_SIZE is small."""

MAX_PER_PASS = 100
"""How many files in use one call may skip, so that it takes a bounded time."""


class FileTable(Mapping[str, File]):
    """The files of one type, by the normal form of their origin. At most ``most`` are kept."""

    def __init__(self, most: int, file_type: type[File]) -> None:
        self._most = most
        self._file_type = file_type
        self.parsed: OrderedDict[str, File] = OrderedDict()
        """The parsed files. The least recently used come first."""
        self._packed: OrderedDict[str, bytes] = OrderedDict()
        """The packed files. All of them were used less recently than the parsed ones."""
        self._octets: dict[str, int] = {}
        """The bytes of the parsed files, as far as they were counted."""
        self._parsed_octets = 0
        self._packed_octets = 0
        self._max_packed_octets = max(most * PACKED_OCTETS, MIN_PACKED_OCTETS)

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
            file = self.parsed[key] = unpack(packed, self._file_type)
            self.count(file)
        return file

    def find_or_add(self, key: str) -> File:
        """Return a file, which is a new one if there is none. It is now the most recently used."""
        file = self.find(key)
        if file is None:
            file = self.parsed[key] = self._file_type(key)
        self.parsed.move_to_end(key)
        return file

    def count(self, file: File) -> None:
        """Count the bytes of a file, which have changed."""
        if file.key in self.parsed:
            self._parsed_octets += file.octets - self._octets.get(file.key, 0)
            self._octets[file.key] = file.octets

    def evict(self, is_in_use: IsInUse, reserve: int = 0) -> None:
        """Pack and remove the least recently used files beyond the limits.

        ``is_in_use`` returns whether the file of an origin has to be kept, however many there are.
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
            if is_in_use(key):
                self._packed.move_to_end(key)
            else:
                self._pop_packed(key)
                excess -= 1
        for key in _first_keys(self.parsed):
            if excess <= 0:
                break
            if self.parsed[key].in_flight or is_in_use(key):
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
                packed = self._packed[key] = pack(self._pop_parsed(key))
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


def pack(file: OriginFile[Any]) -> bytes:
    """Return the compact form of a file that is not being fetched."""
    kind: Any = type(file)
    deflate = zlib.compressobj(zdict=_dictionary(kind))
    return deflate.compress(pickle.dumps(file)) + deflate.flush()


def unpack(packed: bytes, file_type: type[File]) -> File:
    """Return the file of this type that was packed."""
    kind: Any = file_type
    inflate = zlib.decompressobj(zdict=_dictionary(kind))
    file: File = pickle.loads(inflate.decompress(packed))  # made by this process
    return file


@cache
def _dictionary(file_type: type[Any]) -> bytes:
    """Return the preset dictionary: what is common in the pickles of such files."""
    return DICTIONARY + pickle.dumps(file_type("https://www."))
