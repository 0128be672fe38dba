"""A sorted table of fingerprints in few bits.  Any part of it can be read alone.

Successive fingerprints of a sorted table share their top bits, so that these need not be stored again and again (Manku,
Jain, Das Sarma 2007, section 3.2).  The paper writes in Huffman's code how many bits each shares with the one before
it; to read one, all before it in its block must be read, one after the other (`compression`).  Here
the upper bits of all are counted in one row of bits instead, and the lower ones stand beside each other, as wide as
they are (Elias 1974, "Efficient storage and retrieval by content and address of static files"; Vigna 2013,
"Quasi-succinct indices"), which takes a little less room than the paper's code, and whole arrays are read at once.
"""

from math import log2

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.plans import EXACT, Table
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.simhash import distances

#: The place of the first row is noted once for each block of this many upper parts.
STEP = 128
#: Upper parts have at least this many bits, so that a lower part and up to 7 bits before it fit in 64.
LEAST_UPPER = 7


class PackedTable:
    """Fingerprints in ascending order of one permutation of their bits, or of themselves.

    Among n fingerprints, each takes 66 - log2(n) bits, and a quarter of a bit for finding it: 5.4 bytes if n is 2^23, 4.1
    if it is 2^34.

    >>> table = PackedTable(np.array([0b1011, 1 << 63, 0b1000], np.uint64))
    >>> len(table), table[1:].tolist(), table.near(0b1011, 0).tolist()
    (3, [11, 9223372036854775808], [11])
    """

    def __init__(self, fingerprints: Hashes, table: Table = EXACT[0]) -> None:
        """``fingerprints``, in any order: uint64, shape (n,).  O(n log n); takes 30 bytes for each meanwhile."""
        permuted = np.sort(table.permute(fingerprints))
        self._table = table
        self._size = len(permuted)
        upper = max(LEAST_UPPER, int(log2(max(1, self._size))))
        self._width = 64 - upper  # of a lower part, in bits
        self._mask = np.uint64((1 << self._width) - 1)
        self._lower = _pack(permuted & self._mask, self._width)
        #: The eight bytes from each one on.
        self._words = np.ndarray((len(self._lower) - 7,), "<u8", self._lower, strides=(1,))
        parts = (permuted >> self._width).view(np.int64)
        # A zero for each fingerprint, and a one after all those of each upper part.
        ends = np.ones(self._size + (1 << upper), np.bool_)
        ends[parts + np.arange(self._size)] = False
        self._ends = np.packbits(ends)
        del ends
        starts = parts.searchsorted(np.arange(0, (1 << upper) + STEP, STEP))
        self._starts = starts.astype(np.uint32 if self._size < 1 << 32 else np.uint64)

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """The memory that it takes, in bytes."""
        return self._lower.nbytes + self._ends.nbytes + self._starts.nbytes

    def __getitem__(self, rows: slice) -> Hashes:
        """Fingerprints at some places in a row of the table: uint64, shape (m,).  O(m)."""
        first, end, step = rows.indices(self._size)
        if step != 1:
            raise ValueError(f"a step of {step} was asked; a packed table is read place by place")
        if first >= end:
            return np.empty(0, np.uint64)
        block, last = self._starts.searchsorted(np.array((first, end - 1), self._starts.dtype), "right") - 1
        start, places = self._places(block, last + 1)
        parts = np.arange(block * STEP, (last + 1) * STEP).repeat(np.diff(places, prepend=-1) - 1)
        return self._table.restore(self._read(first, end, parts[first - start : end - start]))

    def near(self, fingerprint: int, radius: int) -> Hashes:
        """Returns all within ``radius`` bits of a fingerprint that share its prefix in the table: uint64, shape (m,)."""
        permuted = self._table.permute(fingerprint)
        low, high = self._table.prefix_range(permuted)
        least, greatest = low >> self._width, high >> self._width
        block, before = divmod(least, STEP)
        first, places = self._places(block, greatest // STEP + 1)
        start = int(places[before - 1]) + 1 if before else 0
        ends = places[before : before + greatest - least + 1]
        row, end = first + start - before, first + int(ends[-1]) - before - len(ends) + 1
        if row == end:
            return np.empty(0, np.uint64)
        if least == greatest:
            found = self._read(row, end, least)
        else:
            found = self._read(
                row, end, np.arange(least, greatest + 1).repeat(np.diff(ends, prepend=start - 1) - 1)
            )
        if self._table.prefix > 64 - self._width:
            found = found[(found >= low) & (found <= high)]
        found = found[distances(found, permuted) <= radius]
        return self._table.restore(found) if len(found) else found

    def _places(self, block: int, end: int) -> tuple[int, npt.NDArray[np.int64]]:
        """Returns the first row of some blocks of upper parts, and where each of these parts ends, in bits from there."""
        first = int(self._starts[block])
        at, to = first + block * STEP, int(self._starts[end]) + end * STEP
        bits = np.unpackbits(self._ends[at >> 3 : (to + 7) >> 3])
        return first, bits[at & 7 : to - at + (at & 7)].nonzero()[0]

    def _read(self, row: int, end: int, parts: npt.NDArray[np.int64] | int) -> Hashes:
        """Reads the permuted fingerprints of successive rows, given their upper parts."""
        bits = np.arange(row * self._width, end * self._width, self._width)
        lower = self._words[bits >> 3] >> (bits & 7).view(np.uint64) & self._mask
        upper = (
            np.uint64(parts << self._width)
            if isinstance(parts, int)
            else parts.view(np.uint64) << self._width
        )
        together: Hashes = upper | lower
        return together


def _pack(values: Hashes, width: int) -> npt.NDArray[np.uint8]:
    """Returns the numbers of ``width`` bits, the lowest bits first, one after the other, and 8 bytes more.

    Eight numbers take ``width`` bytes, so each eighth begins at the same bit of a byte.

    >>> _pack(np.array([0b01, 0b10, 0b11], np.uint64), 2)[:1].tolist()
    [57]
    """
    eights = -(-len(values) // 8)
    packed = np.zeros((eights, width), np.uint8)
    for place in range(min(8, len(values))):
        octet, shift = divmod(place * width, 8)
        words = (values[place::8] << np.uint64(shift)).astype("<u8").view(np.uint8).reshape(-1, 8)
        count = (shift + width + 7) // 8
        packed[: len(words), octet : octet + count] |= words[:, :count]
    return np.concatenate((packed.ravel(), np.zeros(8, np.uint8)))
