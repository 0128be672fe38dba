"""One permuted table of many fingerprints, all known: asked by many others at once, or by its own.

Several tables may find a pair.  The first one in which its prefixes agree reports it.
"""

from collections.abc import Iterator, Sequence
from math import ceil, log2

import numpy as np
import numpy.typing as npt

from dedup.batch.pairs import Numbers
from dedup.fingerprint.plans import Table
from dedup.fingerprint.shingles import Hashes

#: The map of prefixes has 2 to the power of this bits, at most: 2 MB.
MAP_BITS = 24
#: Pairs that are looked up and compared in one go.
COMPARED = 1 << 17
#: Neighbours in a table are compared in stretches of this many, each with this many that follow it.
STRETCH, STEPS = 1 << 15, 64

Octets = npt.NDArray[np.uint8]
Run = tuple[int, int, int]  # of bits: (shift right, mask, shift left), as in `Table.moves`


class Chunk:
    """Fingerprints that are looked up in many tables.  What several tables need is computed once."""

    def __init__(self, values: Hashes) -> None:
        self.values = values
        self._parts: dict[Run, tuple[Numbers, Octets]] = {}

    def spots(self, runs: Sequence[Run]) -> tuple[Numbers, Octets]:
        """Returns where the map of a table has its bit for each fingerprint: in which byte, and that bit."""
        at, bit = self._part(runs[-1])
        for run in runs[:-1]:
            at = at | self._part(run)[0]
        return at, bit

    def _part(self, run: Run) -> tuple[Numbers, Octets]:
        if run not in self._parts:
            right, mask, left = run
            bits = (self.values >> right) & mask
            if left:  # whole bytes
                self._parts[run] = (bits << (left - 3)).view(np.int64), np.empty(0, np.uint8)
            else:
                bit = np.left_shift(np.uint8(1), (bits & 7).astype(np.uint8))
                self._parts[run] = (bits >> 3).view(np.int64), bit
        return self._parts[run]


class Probe:
    """Fingerprints that all differ, in ascending order, sorted by one permutation, with a map of their prefixes.

    Takes 8 bytes for each, and up to 10 MB.
    """

    def __init__(self, table: Table, values: Hashes, earlier: Sequence[int] = ()) -> None:
        """``earlier`` has the masks of the tables before this one."""
        self._table = table
        self._masks = (prefix_mask(table), *earlier)
        self._sorted = _sorted(table, values)
        magnitude = ceil(log2(max(2, len(values))))
        self._runs = _runs(table, min(table.prefix, MAP_BITS, magnitude + 6))
        size = sum(mask.bit_length() for _, mask, _ in self._runs)
        there = np.zeros(1 << size, np.bool_)
        there[(self._sorted >> (64 - size)).view(np.int64)] = True
        self._map = np.packbits(there, bitorder="little")
        bits = min(table.prefix, magnitude)
        self._shift = 64 - bits
        filed = np.bincount((self._sorted >> self._shift).view(np.int64), minlength=1 << bits)
        self._starts = np.concatenate((np.zeros(1, np.int64), filed.cumsum())).astype(np.uint32)

    def near(self, chunk: Chunk, radius: int) -> Iterator[tuple[Hashes, Numbers]]:
        """Pairs within ``radius`` bits: fingerprints of the table, and the places of those near in the chunk."""
        at, bit = chunk.spots(self._runs)
        places = np.flatnonzero((self._map.take(at, mode="clip") & bit) != 0)
        asked = self._table.permute(chunk.values[places])
        slot = (asked >> self._shift).view(np.int64)
        for which, where in ranges(*(self._starts[slot + end].astype(np.int64) for end in (0, 1))):
            filed = self._sorted[where]
            close = np.bitwise_count(filed ^ asked[which]) <= radius
            found, rows = self._table.restore(filed[close]), places[which[close]]
            told = _told(found ^ chunk.values[rows], *self._masks)
            yield found[told], rows[told]


def within(
    table: Table, values: Hashes, radius: int, earlier: Sequence[int] = ()
) -> Iterator[tuple[Hashes, Hashes]]:
    """Pairs of fingerprints, which all differ, within ``radius`` bits of each other.  Takes 40 bytes for each."""
    filed = _sorted(table, values)
    last = np.flatnonzero(np.append((filed[1:] ^ filed[:-1]) >> (64 - table.prefix), np.uint64(1)))
    # Where those that share a prefix end, for each of them.
    ends = np.repeat(last + 1, np.diff(last, prepend=-1))
    for lower, upper in _candidates(filed, ends, radius):
        one, other = table.restore(filed[lower]), table.restore(filed[upper])
        told = _told(one ^ other, prefix_mask(table), *earlier)
        yield one[told], other[told]


def _candidates(filed: Hashes, ends: Numbers, radius: int) -> Iterator[tuple[Numbers, Numbers]]:
    """Yields the places of pairs within ``radius`` bits: all of those with one prefix, and some others.

    Whole stretches are compared with those a few places on, which takes a tenth of looking up each pair; who shares
    its prefix with more is looked up.
    """
    for at in range(0, len(filed), STRETCH):
        stretch = filed[at : at + STRETCH]
        longest = int((ends[at : at + STRETCH] - np.arange(at, at + len(stretch))).max()) - 1
        found = [np.empty((2, 0), np.int64)]
        for step in range(1, min(longest, STEPS) + 1):
            ahead = filed[at + step : at + step + STRETCH]
            close = np.flatnonzero(np.bitwise_count(ahead ^ stretch[: len(ahead)]) <= radius) + at
            if len(close):
                found.append(np.array((close, close + step)))
        lower, upper = np.concatenate(found, axis=1)
        yield lower, upper
    for which, where in ranges(np.arange(STEPS + 1, len(filed) + STEPS + 1), ends):
        close = np.bitwise_count(filed[which] ^ filed[where]) <= radius
        yield which[close], where[close]


def ranges(starts: Numbers, ends: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """Yields all numbers of many ranges: of each, which range it is of, and the number; `COMPARED` at once, or one range.

    >>> [(which.tolist(), where.tolist()) for which, where in ranges(np.array([5, 0, 8]), np.array([7, 0, 9]))]
    [([0, 0, 2], [5, 6, 8])]
    """
    some = np.flatnonzero(ends > starts)
    starts, counts = starts[some], ends[some] - starts[some]
    total = counts.cumsum()
    at = 0
    while at < len(some):
        done = total[at] - counts[at]
        to = max(at + 1, int(total.searchsorted(done + COMPARED, "right")))
        which = np.repeat(np.arange(at, to), counts[at:to])
        yield some[which], np.arange(done, total[to - 1]) + (starts + counts - total)[which]
        at = to


def prefix_mask(table: Table) -> int:
    """Returns the bits of a fingerprint that make its prefix in a table.

    >>> hex(prefix_mask(Table(((0, 0xFF, 56), (8, (1 << 56) - 1, 0)), prefix=4, bits=64)))
    '0xf0'
    """
    top = ((1 << table.prefix) - 1) << (table.bits - table.prefix)
    return sum(((top >> left) & mask) << right for right, mask, left in table.moves)


def _sorted(table: Table, values: Hashes) -> Hashes:
    """Permuted fingerprints in their order, in which those of the first table come already."""
    permuted = table.permute(values)
    if np.any(permuted[1:] < permuted[:-1]):
        permuted.sort()
    return permuted


def _told(differences: Hashes, mask: int, *earlier: int) -> npt.NDArray[np.bool_]:
    """Returns which pairs have prefixes that agree in this table, and in none before it."""
    told: npt.NDArray[np.bool_] = differences & mask == 0
    for other in earlier:
        told &= differences & other != 0
    return told


def _runs(table: Table, bits: int) -> tuple[Run, ...]:
    """Returns the runs that make an index of the first ``bits`` bits of a permuted fingerprint.

    The last has three bits or more, which tell a bit of a byte: a shorter one is left out.
    """
    runs, size = [], 0
    for right, mask, _ in table.moves:
        width = min(mask.bit_length(), bits - size)
        if width < 3:
            break
        runs.append((right + mask.bit_length() - width, (1 << width) - 1, size))
        size += width
    return tuple((right, mask, size - at - mask.bit_length()) for right, mask, at in runs)
