"""The origins of a crawl in memory: those used lately with parsed files, the others packed.

The file of a packed origin is parsed again at its next use. The packed form, which never leaves the
process, is the pickle of the origin, compressed with a preset dictionary.
"""

from __future__ import annotations

import pickle
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping

from ..origin import Origin
from ..stores.entry import DICTIONARY

MAX_PARSED = 5_000
"""How many files are parsed: about 70 MB of files of average size. Fewer are never parsed again."""

MAX_PARSED_BYTES = 32 * 2**20
"""The most bytes of all parsed files, as they were received: 64 files of the maximum size. They are
measured twice a second: between two times, a crawl fetches few files of that size."""

PACKED_BYTES, MIN_PACKED_BYTES = 2048, 32 * 2**20
"""The bytes of packed files for each origin that REP_CACHE_SIZE allows, which is twice the average,
and those that are kept even if it is small."""

MAX_PER_PASS = 100
"""How many origins one call may pack or remove, so that it takes a bounded time."""

_DICTIONARY = DICTIONARY + pickle.dumps(Origin("https://www."))
"""The preset dictionary: what is common in the pickles of origins."""


class OriginTable(Mapping[str, Origin]):
    """Origins by their normal form. At most ``most`` are kept."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.parsed: OrderedDict[str, Origin] = OrderedDict()
        """The origins with parsed files. The least recently used come first."""
        self._packed: OrderedDict[str, bytes] = OrderedDict()
        """The packed origins. All of them were used less recently than the parsed ones."""
        self._kept: Counter[str] = Counter()
        """How many callers use an origin."""
        self._parsed_bytes = 0  # without those of files that came since the last measure
        self._packed_bytes = 0
        self._max_packed_bytes = max(most * PACKED_BYTES, MIN_PACKED_BYTES)

    def __getitem__(self, key: str) -> Origin:
        origin = self.parsed.get(key)
        if origin is None:  # its files are parsed again
            origin = self.parsed[key] = unpack(self._pop_packed(key))
            self._parsed_bytes += origin.total_size
        return origin

    def __contains__(self, key: object) -> bool:
        return key in self.parsed or key in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter((*self._packed, *self.parsed))  # not a view: a use moves an origin

    def __len__(self) -> int:
        return len(self._packed) + len(self.parsed)

    def find_or_add(self, key: str) -> Origin:
        """Return an origin, which is a new one if there is none. It is now the last one used."""
        origin = self.get(key)
        if origin is None:
            origin = self.parsed[key] = Origin(key)
        self.parsed.move_to_end(key)
        return origin

    def measure(self) -> None:
        """Measure the parsed files, whose bytes :meth:`evict` limits."""
        self._parsed_bytes = sum(origin.total_size for origin in self.parsed.values())

    def keep(self, key: str) -> None:
        """Keep an origin in memory, and parsed, until a call of :meth:`release`."""
        self._kept[key] += 1

    def release(self, key: str) -> None:
        """End what :meth:`keep` began."""
        self._kept -= Counter([key])  # which drops a count of 0

    def evict(self, is_in_use: Callable[[str], bool]) -> None:
        """Pack and remove the least recently used origins beyond the limits.

        ``is_in_use`` returns whether an origin has to stay in memory, however many there are.
        """
        for _ in range(min(len(self.parsed), MAX_PER_PASS)):
            is_small = self._parsed_bytes <= MAX_PARSED_BYTES
            if is_small and len(self.parsed) <= min(MAX_PARSED, self._most):
                break
            key, origin = next(iter(self.parsed.items()))
            if origin.in_flight or key in self._kept:
                self.parsed.move_to_end(key)
            else:
                self._parsed_bytes -= origin.total_size
                packed = self._packed[key] = pack(self.parsed.pop(key))
                self._packed_bytes += len(packed)
        for _ in range(min(len(self._packed), MAX_PER_PASS)):
            if self._packed_bytes <= self._max_packed_bytes and len(self) <= self._most:
                break
            key = next(iter(self._packed))
            if is_in_use(key):
                self._packed.move_to_end(key)
            else:
                self._pop_packed(key)

    def _pop_packed(self, key: str) -> bytes:
        packed = self._packed.pop(key)
        self._packed_bytes -= len(packed)
        return packed


def pack(origin: Origin) -> bytes:
    """Return the compact form of an origin whose file is not being fetched."""
    deflate = zlib.compressobj(zdict=_DICTIONARY)
    return deflate.compress(pickle.dumps(origin)) + deflate.flush()


def unpack(packed: bytes) -> Origin:
    inflate = zlib.decompressobj(zdict=_DICTIONARY)
    origin: Origin = pickle.loads(inflate.decompress(packed))  # made by this process
    return origin
