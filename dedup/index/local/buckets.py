"""The tables of a plan with short prefixes, in memory: it is listed where each prefix begins, so many are read at once."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.plans import Plan
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.simhash import distances
from dedup.index.local.table import SLICE, Numbers, weave

__all__ = ["Buckets"]


class Buckets:
    """A bucket for each prefix of each table, one after the other: keys and the numbers of their pages.

    Takes 12 bytes a page and table, and 8 for each of the 2^p prefixes of a table.
    """

    def __init__(self, plan: Plan) -> None:
        """Raises ValueError for a plan of several keys, or of prefixes that are not of one width."""
        self._tables = plan.tables
        (self._column,) = {table.column for table in plan.tables}
        (width,) = {table.prefix for table in plan.tables}
        self._starts = np.zeros(plan.size << width, np.int32)
        self._ends = self._starts.copy()
        self._values: Hashes = np.empty(0, np.uint64)
        self._numbers: Numbers = np.empty(0, np.uint32)
        self._rows = 0  # how many are in use
        self._masks = np.array(plan.masks, np.int64)
        self._first = np.arange(plan.size, dtype=np.int64)[:, np.newaxis] << width

    @property
    def covered(self) -> int:
        """How many pages are in every table, when no merge is under way."""
        return self._rows // len(self._tables)

    def within(self, keys: tuple[int, ...], radius: int, most: int) -> Numbers | None:
        """Numbers of pages with a key within ``radius`` bits, some of them more than once.

        None if the tables hold more than ``most`` candidates, none of which is then looked at.
        """
        key = keys[self._column]
        own = np.array([[table.prefix_of(key)] for table in self._tables])
        buckets = ((own ^ self._masks) + self._first).ravel()
        starts = self._starts[buckets]
        lengths = self._ends[buckets] - starts
        met = lengths.cumsum()
        if met[-1] > most:
            return None
        rows = np.arange(met[-1]) + (starts - met + lengths).repeat(lengths)
        near = distances(self._values[rows], key) <= radius
        found: Numbers = self._numbers[rows[near]]
        return found

    def merge(self, columns: list[Hashes], size: int) -> Iterator[None]:
        """Files the keys of the next pages, up to a number, and stops after each slice.

        Buckets move up in their place, the last ones first; meanwhile all that was there is found.  ``columns`` are
        read at once.  O(m) for m pages, then O(n) in slices.
        """
        fresh, numbers, own = self._sort(columns[self._column], size)
        buckets = len(self._starts)
        before = np.zeros(buckets + 1, np.int64)  # how many of the fresh belong into earlier buckets
        np.cumsum(np.bincount(own, minlength=buckets), out=before[1:])
        rows = self._rows + len(fresh)
        if not self._rows:  # with room for as many again, which is no memory until it is used
            self._values, self._numbers = np.empty(2 * rows, np.uint64), np.empty(2 * rows, np.uint32)
        for array in (self._values, self._numbers):
            yield
            if rows > len(array):
                array.resize(
                    rows, refcheck=False
                )  # whose memory is moved, and no other thread has a part of it
        self._rows = rows
        last = buckets
        while last:
            yield
            here = max(0, int(self._ends[last - 1]) - SLICE)
            low = min(int(self._starts[:last].searchsorted(np.int32(here))), last - 1)
            old = slice(int(self._starts[low]), int(self._ends[last - 1]))
            added = slice(int(before[low]), int(before[last]))
            moved = slice(old.start + added.start, old.stop + added.stop)
            new = self._ends[own[added]] - old.start + np.arange(added.stop - added.start)
            weave(self._values[moved], new, self._values[old].copy(), fresh[added])
            weave(self._numbers[moved], new, self._numbers[old].copy(), numbers[added])
            self._starts[low:last] += before[low:last]
            self._ends[low:last] += before[low + 1 : last + 1]
            last = low

    def _sort(self, keys: Hashes, size: int) -> tuple[Hashes, Numbers, npt.NDArray[np.int64]]:
        """The keys of the next pages in the order of the buckets, their pages, and their buckets."""
        fresh = keys[self.covered : size]
        prefixes = [table.prefix_of(fresh).astype(np.uint16) for table in self._tables]
        orders = [each.argsort(kind="stable") for each in prefixes]  # which counts, as there are few values
        each = zip(self._first.ravel(), prefixes, orders, strict=True)
        own = np.concatenate([first + prefix[order] for first, prefix, order in each])
        order = np.concatenate(orders)
        return fresh[order], (order + self.covered).astype(np.uint32), own

    def check(self, columns: list[Hashes]) -> None:
        """Raises AssertionError unless each table is in order and holds exactly the first of the keys."""
        keys = columns[self._column]
        assert np.array_equal(self._starts[1:], self._ends[:-1]), "buckets don't follow each other"
        bucket = np.repeat(np.arange(len(self._starts)), self._ends - self._starts)
        for table, first in zip(self._tables, self._first.ravel(), strict=True):
            mine = bucket - first >> table.prefix == 0
            values, numbers = self._values[: self._rows][mine], self._numbers[: self._rows][mine]
            assert np.array_equal(np.sort(numbers), np.arange(self.covered)), (
                "a table lacks or repeats a page"
            )
            assert np.array_equal(keys[numbers], values), "a table holds a key that is not its page's"
            right = table.prefix_of(values).astype(np.int64) + first
            assert np.array_equal(right, bucket[mine]), "a bucket holds a key of another prefix"
