"""The tables of a plan with short prefixes, in memory: a list says where each prefix begins, so that many are read at once.

Of a key its `fold` is held: folds are at most as far apart as their keys, and of the unrelated keys of a bucket one in
3,700 has a fold within six bits.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dedup.compiled import fast
from dedup.fingerprint.plans import Plan
from dedup.fingerprint.shingles import Hashes
from dedup.index.local.growing import Growing
from dedup.index.local.table import SLICE, Numbers, weave

#: The lower half of a key.
LOW = (1 << 32) - 1


def fold(keys: Hashes) -> npt.NDArray[np.uint32]:
    """Returns the two halves of each key, XOR each other."""
    return (keys ^ keys >> np.uint64(32)).astype(np.uint32)


class Buckets:
    """A bucket for each prefix of each table, one after the other: folds of keys and the numbers of their pages.

    Takes 8 bytes a page and table, and 8 for each of the 2^p prefixes of a table.
    """

    def __init__(self, plan: Plan) -> None:
        """``plan`` is one of buckets."""
        self._tables = plan.tables
        self._column, self._width = plan.tables[0].column, plan.tables[0].prefix
        self._starts = np.zeros((plan.size << self._width) + 1, np.int32)  # and where the last one ends
        self._folds = Growing(np.uint32)
        self._numbers = Growing(np.uint32)
        self._rows = 0  # how many are in use
        self._flipped = plan.flipped
        self._first = [place << self._width for place in range(plan.size)]
        below = 64 - self._width
        moves = [(place, *move) for place, table in enumerate(plan.tables) for move in table.moves]
        self._moves = np.array([move for move in moves if move[2] << move[3] >> below], np.uint64)

    @property
    def covered(self) -> int:
        """How many pages are in every table, when no merge is under way."""
        return self._rows // len(self._tables)

    def within(self, keys: tuple[int, ...], radius: int, most: int) -> Numbers | None:
        """Returns the numbers of all pages with a key within ``radius`` bits, and of some others; some of them more than once.

        None if the tables hold more than ``most`` candidates; then none is looked at.
        """
        key = keys[self._column]
        each = zip(self._first, self._tables, strict=True)
        own = np.array([first + table.prefix_of(key) for first, table in each])
        emptiest = (self._starts[own + 1] - self._starts[own]).argsort()[: self._flipped]
        beside = own[emptiest, None] ^ 1 << np.arange(self._width)
        buckets = np.concatenate((own, beside.ravel()))
        ends = self._starts[buckets + 1]
        lengths = ends - self._starts[buckets]
        met = lengths.cumsum()
        if met[-1] > most:
            return None
        rows = (ends - met).repeat(lengths) + np.arange(met[-1])
        differing = self._folds.rows[rows] ^ np.uint32((key ^ key >> 32) & LOW)
        found: Numbers = self._numbers.rows[rows[np.bitwise_count(differing) <= radius]]
        return found

    def near(
        self, keys: Hashes, covered: int, size: int, key: int, radius: int, most: int, most_met: int
    ) -> tuple[list[list[int]], bool]:
        """Returns the same in compiled code, looked up and put in order: see `SortedTables.within`."""
        found: tuple[list[list[int]], bool] = fast.within(  # type: ignore[union-attr]
            self._starts, self._folds.rows, self._numbers.rows, self._moves, len(self._tables), self._width, self._flipped,
            keys, covered, size, key, radius, most, most_met,
        )  # fmt: skip
        return found

    def merge(self, columns: list[Hashes], size: int) -> Iterator[None]:
        """Files the keys of the next pages, up to a number, and stops after each slice.

        Buckets move up in their place, the last ones first; meanwhile all that was there is found, some of it twice: what
        has moved last may still be where it was, behind the bucket before it.  ``columns`` are read at once.  O(m) for m
        pages, then O(n) in slices.
        """
        keys = columns[self._column][self.covered : size]
        if not self._rows:
            self._build(keys)
            return
        fresh, numbers, own = self._sort(keys)
        del columns, keys
        yield
        buckets = len(self._starts) - 1
        before = np.zeros(buckets + 1, np.int64)  # how many of the fresh belong into earlier buckets
        np.cumsum(np.bincount(own, minlength=buckets), out=before[1:])
        rows = self._rows + len(fresh)
        yield
        self._folds.reserve(rows)
        self._numbers.reserve(rows)
        self._rows = rows
        last, end = buckets, int(self._starts[-1])
        self._starts[-1] = rows
        while last:
            yield
            here = max(0, end - SLICE)
            low = min(int(self._starts[:last].searchsorted(np.int32(here))), last - 1)
            old = slice(int(self._starts[low]), end)
            added = slice(int(before[low]), int(before[last]))
            moved = slice(old.start + added.start, old.stop + added.stop)
            ends = np.append(self._starts[low + 1 : last], np.int32(end))
            new = ends[own[added] - low] - old.start + np.arange(added.stop - added.start)
            folds, pages = self._folds.rows, self._numbers.rows
            weave(folds[moved], new, folds[old].copy(), fresh[added])
            weave(pages[moved], new, pages[old].copy(), numbers[added])
            del folds, pages
            self._starts[low:last] += before[low:last]
            last, end = low, old.start

    def _build(self, keys: Hashes) -> None:
        """Files the first pages, one table after the other."""
        self._rows = len(self._tables) * len(keys)
        self._folds.reserve(self._rows)
        self._numbers.reserve(self._rows)
        folds = fold(keys)
        for place, prefixes in enumerate(self._each(keys)):
            order = prefixes.argsort(kind="stable")  # which counts, as there are few values
            here = slice(place * len(keys), (place + 1) * len(keys))
            self._folds.rows[here], self._numbers.rows[here] = folds[order], order
            ends = np.bincount(prefixes, minlength=1 << self._width).cumsum() + here.start
            self._starts[1:][place << self._width : place + 1 << self._width] = ends

    def _each(self, keys: Hashes) -> Iterator[npt.NDArray[np.uint16]]:
        """Returns the prefixes of keys, table by table."""
        return (table.prefix_of(keys).astype(np.uint16) for table in self._tables)

    def _sort(self, keys: Hashes) -> tuple[npt.NDArray[np.uint32], Numbers, npt.NDArray[np.int64]]:
        """Returns the folds of the next pages in the order of the buckets, their pages, and their buckets."""
        prefixes = list(self._each(keys))
        orders = [each.argsort(kind="stable") for each in prefixes]
        each = zip(self._first, prefixes, orders, strict=True)
        own = np.concatenate([prefix[order] + np.int64(first) for first, prefix, order in each])
        order = np.concatenate(orders)
        return fold(keys)[order], (order + self.covered).astype(np.uint32), own

    def check(self, columns: list[Hashes]) -> None:
        """Raises AssertionError unless each table is in order and holds exactly the first of the keys."""
        keys = columns[self._column]
        bucket = np.repeat(np.arange(len(self._starts) - 1), np.diff(self._starts))
        for table, first in zip(self._tables, self._first, strict=True):
            mine = bucket - first >> table.prefix == 0
            folds, numbers = self._folds.rows[: self._rows][mine], self._numbers.rows[: self._rows][mine]
            assert np.array_equal(np.sort(numbers), np.arange(self.covered)), (
                "a table lacks or repeats a page"
            )
            assert np.array_equal(fold(keys[numbers]), folds), "a table holds a key that is not its page's"
            right = table.prefix_of(keys[numbers]).astype(np.int64) + first
            assert np.array_equal(right, bucket[mine]), "a bucket holds a key of another prefix"
