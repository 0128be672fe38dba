"""The chrome of a host: the menus, sidebars and footers around many pages.

A shingle is the chrome of a host if several pages that were kept there have it.  A table for each host counts on how
many: what is met first is only marked, in a Bloom filter, and what is met again is counted, in a count-min sketch with
conservative update.  When many were met, the marks are cleared and the counts halved: so what is met again and again is
known, and what was met once is forgotten (TinyLFU, with its doorkeeper: Einziger, Friedman, Manes 2017).
"""

import struct
from typing import Self

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

from dedup.compiled import fast
from dedup.fingerprint.shingles import Hashes

#: Cells of a table that count, of one byte each, and bits that mark.  A shingle has two of both.
CELLS, BITS = 1 << 16, 1 << 18
#: When this many shingles were marked, all counts are halved, and the marks are cleared.
MARKED = 3 << 14
#: No more shingles of one page are counted than this.
MOST_OF_A_PAGE = 1 << 13
#: A shingle is chrome if this share of the kept pages has it, but at least and at most this many of them.
SHARE, LEAST, MOST = 0.05, 2.0, 8.0
#: Kept pages from which on the chrome of a host is known.
KNOWN = 8

#: At least this many pages in one folder have to be like those of the same names in another; else all of these are other pages.
COPIES = 3
#: Then that counts as if it had been seen so often: it is forgotten when no such page was met while the counts were halved four times.
LEARNED = 8 * COPIES
#: A mark that is no shingle is counted in this many places, so that it is not taken for a shingle of another page.
NOTED = 4

Counts = npt.NDArray[np.uint8]
_HEAD = struct.Struct(">IId")


class Chrome:
    """How many of a host's kept pages have a shingle."""

    def __init__(self) -> None:
        self.pages = 0  #: that were kept
        self._marked = 0  # shingles, since the counts were halved
        self._remembered = 0.0  # pages that the counts are of: halved with them
        self._cells = np.zeros(CELLS, np.uint8)
        self._marks = np.zeros(BITS // 8, np.uint8)

    @property
    def is_known(self) -> bool:
        """True if enough pages were kept to tell chrome from content."""
        return self.pages >= KNOWN

    @property
    def has_forgotten(self) -> bool:
        """True if counts were halved."""
        return self.pages > self._remembered

    @property
    def few(self) -> float:
        """A shingle that is on this many other kept pages is chrome."""
        return max(LEAST, min(MOST, SHARE * self._remembered))

    def add(self, main: Hashes, *, kept: bool = True) -> None:
        """Counts the different shingles of a page.  O(n)."""
        main = main[:: 1 + len(main) // MOST_OF_A_PAGE]
        self.pages += kept
        self._remembered += kept
        self._count(main)

    def _count(self, main: Hashes) -> None:
        fresh = fast.learn(main, self._cells, self._marks) if fast else self.learn_in_numpy(main)
        self._marked += fresh
        if self._marked >= MARKED:
            self._cells >>= 1
            self._marks[:] = 0
            self._marked, self._remembered = 0, self._remembered / 2

    def learn_in_numpy(self, main: Hashes) -> int:
        """Counts shingles that have a mark, and marks the others; returns how many these are."""
        is_marked = self._are_marked(main)
        fresh, again = main[~is_marked], main[is_marked]
        for bits in _places(fresh, BITS):
            np.bitwise_or.at(self._marks, bits >> 3, np.uint8(1) << (bits & 7).astype(np.uint8))
        first, second = _places(again, CELLS)
        counts = np.minimum(self._cells[first], self._cells[second])
        counts += counts < 255
        for places in (first, second):
            np.maximum.at(self._cells, places, counts)
        return len(fresh)

    def note_copies(self, parts: tuple[str, str], where: str) -> None:
        """The addresses of two pages that are like each other differ in these parts; each place counts once."""
        place = _keys(*parts, where)
        if not self.counts(place).min():
            self._count(np.concatenate([place, _keys(*parts)]))
            if self.has_copies(parts):
                for cells in _places(_keys(*parts), CELLS):
                    np.maximum.at(self._cells, cells, np.uint8(LEARNED))

    def has_copies(self, parts: tuple[str, str]) -> bool:
        """Returns True if many pages are like others whose addresses differ in these parts: then such pages are copies, as for print."""
        return int(self.counts(_keys(*parts)).min()) >= COPIES

    def counts(self, main: Hashes) -> Counts:
        """On how many kept pages each shingle of a page is: uint8, shape (n,).  O(n)."""
        if fast:
            return np.frombuffer(fast.count(main, self._cells, self._marks), np.uint8)
        return self.counts_in_numpy(main)

    def counts_in_numpy(self, main: Hashes) -> Counts:
        """Returns the same."""
        first, second = _places(main, CELLS)
        counts = np.minimum(self._cells[first], self._cells[second])
        return counts + (self._are_marked(main) & (counts < 255))

    def _are_marked(self, main: Hashes) -> npt.NDArray[np.bool_]:
        first, second = (
            self._marks[bits >> 3] >> (bits & 7).astype(np.uint8) for bits in _places(main, BITS)
        )
        marked: npt.NDArray[np.bool_] = first & second & 1 != 0
        return marked

    def merge(self, other: "Chrome") -> None:
        """Takes over what another worker has counted of the same host: the higher count of each shingle.

        To merge a table again changes nothing.
        """
        self.pages = max(self.pages, other.pages)
        self._marked = max(self._marked, other._marked)
        self._remembered = max(self._remembered, other._remembered)
        np.maximum(self._cells, other._cells, out=self._cells)
        self._marks |= other._marks

    def to_bytes(self) -> bytes:
        """Returns the table, to be stored."""
        head = _HEAD.pack(self.pages, self._marked, self._remembered)
        return head + self._cells.tobytes() + self._marks.tobytes()

    @classmethod
    def from_bytes(cls, octets: bytes) -> Self:
        """Returns the table that was stored.  Raises ValueError if it is not one."""
        if len(octets) != _HEAD.size + CELLS + BITS // 8:
            raise ValueError(f"a table has {_HEAD.size + CELLS + BITS // 8} bytes, not {len(octets)}")
        chrome = cls()
        chrome.pages, chrome._marked, chrome._remembered = _HEAD.unpack_from(octets)
        rest = np.frombuffer(octets, np.uint8, offset=_HEAD.size)
        chrome._cells[:], chrome._marks[:] = rest[:CELLS], rest[CELLS:]
        return chrome


def _keys(*texts: str) -> Hashes:
    """As what a text is counted that is no shingle."""
    octets = "\0".join(texts).encode("utf-8", "surrogatepass")
    return np.array([xxh3_64_intdigest(octets, seed) for seed in range(1, NOTED + 1)], np.uint64)


def _places(main: Hashes, size: int) -> list[npt.NDArray[np.int64]]:
    """Returns the two places of each shingle, and returns the slots of sketches go by the highest bits."""
    return [(main >> np.uint64(shift) & np.uint64(size - 1)).astype(np.int64) for shift in (0, 20)]
