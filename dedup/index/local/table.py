"""A table in memory that is sorted by a permuted key; pages that are filed later are merged into it slice by slice."""

from collections.abc import Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.plans import Table
from dedup.fingerprint.shingles import Hashes

#: This many rows are copied at a time, in .2 ms.
SLICE = 1 << 16

Numbers = npt.NDArray[np.uint32]
_T = TypeVar("_T", np.uint64, np.uint32)


class Sorted(Generic[_T]):
    """The upper bits of permuted keys, ascending, and the numbers of their pages: 8 or 12 bytes a page."""

    def __init__(self, table: Table, bits: type[_T]) -> None:
        """``bits`` are those that are held: np.uint64 for all, or np.uint32."""
        self.table = table
        self._bits: type[_T] = bits
        self._left_out = 64 - 8 * np.dtype(bits).itemsize
        self.values: npt.NDArray[_T] = np.empty(0, bits)
        self.numbers: Numbers = np.empty(0, np.uint32)

    def probe(self, key: int) -> tuple[int, npt.NDArray[_T], Numbers]:
        """Returns a key as it is permuted here, and what shares its prefix: permuted keys, and the numbers of their pages.

        All bits are held.
        """
        permuted = self.table.permute(key)
        low, high = self.table.prefix_range(permuted)
        start = self.values.searchsorted(self._bits(low), "left")
        end = self.values.searchsorted(self._bits(high), "right")
        return permuted, self.values[start:end], self.numbers[start:end]

    def equal(self, key: int) -> Numbers:
        """Returns the numbers of the pages whose held bits are those of a key."""
        held = self._bits(self.table.permute(key) >> self._left_out)
        start = self.values.searchsorted(held)
        if start == len(self.values) or self.values[start] != held:
            return self.numbers[:0]
        return self.numbers[start : self.values.searchsorted(held, "right")]

    def _held(self, keys: Hashes) -> npt.NDArray[_T]:
        return (self.table.permute(keys) >> np.uint64(self._left_out)).astype(self._bits)

    def merge(self, keys: Hashes) -> Iterator[None]:
        """Files the keys of the next pages, and stops after each slice; until the last, only what was there is found.

        ``keys`` are read at once.  O(m log m) for m of them, then O(n) in slices.
        """
        fresh = self._held(keys)
        del keys  # which may have to move meanwhile
        order = fresh.argsort()
        fresh, numbers = fresh[order], (order + len(self.numbers)).astype(np.uint32)
        size = len(self.values) + len(fresh)
        merged, merged_numbers = np.empty(size, self._bits), np.empty(size, np.uint32)
        first = start = 0
        while start + first < size:
            yield
            end = min(start + SLICE, len(self.values))
            is_last = end == len(self.values)
            last = len(fresh) if is_last else int(fresh.searchsorted(self.values[end - 1]))
            old, added, into = slice(start, end), slice(first, last), slice(start + first, end + last)
            new = self.values[old].searchsorted(fresh[added]) + np.arange(last - first)
            weave(merged[into], new, self.values[old], fresh[added])
            weave(merged_numbers[into], new, self.numbers[old], numbers[added])
            first, start = last, end
        self.values, self.numbers = merged, merged_numbers

    def check(self, keys: Hashes) -> None:
        """Raises AssertionError unless the table is sorted and holds exactly the first of these keys."""
        assert bool(np.all(self.values[:-1] <= self.values[1:])), "a table is not sorted"
        assert np.array_equal(np.sort(self.numbers), np.arange(len(self.values))), (
            "a table lacks or repeats a page"
        )
        right = self._held(keys[self.numbers])
        assert np.array_equal(right, self.values), "a table holds a key that is not its page's"


def weave(
    into: npt.NDArray[_T], new: npt.NDArray[np.int64], old: npt.NDArray[_T], fresh: npt.NDArray[_T]
) -> None:
    """Puts fresh rows at their places in an array, and the old ones at all others, in their order."""
    kept = np.ones(len(into), bool)
    kept[new] = False
    into[new], into[kept] = fresh, old
