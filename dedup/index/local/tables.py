"""The tables of a local index, in memory: which pages have a key near one, or an equal one.

The keys that were filed last form an unsorted tail that every query scans, until it is merged into the tables; each page
filed then takes the merge one slice further, so that no claim waits for it.  An index of few pages is a tail only.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from dedup.compiled import fast
from dedup.fingerprint.plans import EXACT, Plan
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.simhash import distances
from dedup.index.local.buckets import Buckets
from dedup.index.local.growing import Growing
from dedup.index.local.table import Numbers, Sorted

#: The unsorted tail may grow to this many keys, or to this share of all, before it is merged: a scan of 8,192 takes 7 us.
TAIL, TAIL_SHARE = 1 << 13, 128
#: But not to more than this many keys, which are sorted in 3 ms.
MAX_TAIL = 1 << 15
#: If the tables hold more for a query than this share of all pages, all keys are scanned instead, in their order:
#: that takes 1 ns a page instead of 5 a candidate, and no page is met twice.
SCAN_SHARE = 6


class SortedTables:
    """The tables of a plan over pages 0..n-1, which are added in order and never removed.

    A page has a digest, one of its markup, four rare shingles, and one key or more: keys are uint64, shape
    (n, 6 + columns of the plan).

    >>> from dedup.fingerprint.plans import block_plan
    >>> tables = SortedTables(block_plan(max_distance=6))
    >>> [tables.add(keys) for keys in ((7, 6, 1, 2, 3, 4, 0b1111), (8, 6, 5, 2, 3, 8, 0xF0F0 << 40))]
    [0, 1]
    >>> tables.within((9,) * 6 + (0b0001,), radius=3, most=9), tables.equal((8, 6, 5, 2, 6, 9, 0))
    (([[0]], False), [[1], [0, 1], [1], [0, 1], [], []])
    """

    def __init__(self, plan: Plan, keys: Hashes | None = None) -> None:
        self.size = 0
        self._columns = [Growing(np.uint64) for _ in range(len(EXACT) + plan.columns)]
        shared = plan.tables if plan.is_exact else ()
        self._exact = [Sorted(table, np.uint32) for table in (*EXACT, *shared)]
        self._near: Buckets | _Permuted | None = None
        if not shared:
            self._near = Buckets(plan) if plan.is_of_buckets else _Permuted(plan)
        self._tables = plan.size  # any of them may have a page, and one of them twice, amid a merge
        self._covered = 0  # how many pages are in every table
        # Of the exact keys in the tail, by which most are known not to be there.
        self._bits = np.zeros(1 << 17, np.uint8)
        self._merging: Iterator[None] | None = None
        self.extend(() if keys is None else keys)

    def add(self, keys: tuple[int, ...]) -> int:
        """Files the keys of a page, and returns its number.  O(1), and now and then a slice of a merge."""
        if self.size == len(self._columns[0].rows):
            for column in self._columns:
                column.reserve(self.size + 1)
        for column, key in zip(self._columns, keys, strict=True):
            column.rows[self.size] = key
        self.size += 1
        self._note(self.size - 1)
        if self._merging is None and self.size - self._covered > self._most():
            self._merging = self._merge()
        if self._merging and next(self._merging, self) is self:
            self._merging = None
        return self.size - 1

    def extend(self, keys: Sequence[tuple[int, ...]] | Hashes) -> int:
        """Files the keys of many pages, which get numbers in a row, and returns the first of these.

        Merges all of them at once, if there are enough of them.  Whoever does this has no claim that waits.
        """
        first, size = self.size, self.size + len(keys)
        filed = np.asarray(keys, np.uint64).reshape(-1, len(self._columns))
        for column, own in zip(self._columns, filed.T, strict=True):
            column.reserve(size)
            column.rows[first:size] = own
        for _ in self._merging or ():
            pass
        self._merging, self.size = None, size
        self._note(first)
        if self.size - self._covered > self._most():
            for _ in self._merge():
                pass
        return first

    def _most(self) -> int:
        """Returns how many pages may be in the tail: for a method of several keys, as many keys."""
        return min(max(TAIL, self.size // TAIL_SHARE), MAX_TAIL) // (len(self._columns) - len(EXACT))

    def _merge(self) -> Iterator[None]:
        """Brings all tables up to date, one after the other, and stops after each slice."""
        size = self.size
        for table in self._exact:
            yield from table.merge(self._columns[table.table.column].rows[len(table.numbers) : size])
        if self._near:
            yield from self._near.merge([column.rows for column in self._columns], size)
        self._covered = size
        self._bits[:] = 0
        self._note(size)

    def _note(self, first: int) -> None:
        """Notes the keys of the last pages, from ``first`` on, which are in the tail."""
        if fast:
            fast.note(self._bits, self._columns, len(self._exact), first, self.size)

    def keys(self, number: int) -> tuple[int, ...]:
        """Returns the keys of a page."""
        return tuple(int(column.rows[number]) for column in self._columns)

    def equal(self, keys: tuple[int, ...]) -> list[list[int]]:
        """Returns the numbers of all pages with each digest, markup and rare shingle of the page here, ascending."""
        return self._equal(slice(len(EXACT)), keys)

    def _equal(self, columns: slice, keys: tuple[int, ...]) -> list[list[int]]:
        """Returns the same of some columns of exact keys."""
        parts = self._exact[columns], self._columns[columns]
        if fast:
            numbers: list[list[int]] = fast.equal(*parts, self._bits, self.size, keys[columns])
            return numbers
        return self.equal_in_numpy(*parts, keys[columns])

    def equal_in_numpy(
        self,
        tables: Sequence[Sorted[np.uint32]],
        columns: Sequence[Growing[np.uint64]],
        keys: tuple[int, ...],
    ) -> list[list[int]]:
        """Returns the same, by their tables."""
        found = []
        for exact, column, key in zip(tables, columns, keys, strict=True):
            filed, covered, held = exact.equal(key), len(exact.numbers), column.rows
            tail = (held[covered : self.size] == np.uint64(key)).nonzero()[0] + covered
            found.append(sorted(filed[held[filed] == np.uint64(key)].tolist()) + tail.tolist())
        return found

    def since(self, first: int, keys: tuple[int, ...], radius: int) -> list[int]:
        """Returns the numbers of the pages from ``first`` on that have an equal digest, or a key within ``radius`` bits.  O(n)."""
        if first == self.size:
            return []
        like = np.zeros(self.size - first, np.bool_)
        for place, (column, key) in enumerate(zip(self._columns, keys, strict=True)):
            like |= distances(column.rows[first : self.size], key) <= (radius if place >= len(EXACT) else 0)
        return [first + int(place) for place in like.nonzero()[0]]

    def within(self, keys: tuple[int, ...], radius: int, most: int) -> tuple[list[list[int]], bool]:
        """Returns the numbers of pages with a key within ``radius`` bits (of at most the plan's) of the one here, and if there are more.

        By distance, the nearest first, ``most`` of them; for a method of shared keys, those first that share the most.  O(n) for
        n pages within reach.
        """
        if self._near is None:
            return self._sharing(keys, most)
        if fast and isinstance(self._near, Buckets):
            rows, key, scan = self._columns[-1].rows, keys[-1], self.size // SCAN_SHARE
            return self._near.near(rows, self._covered, self.size, key, radius, most, scan)
        return self.within_in_numpy(keys, radius, most)

    def _sharing(self, keys: tuple[int, ...], most: int) -> tuple[list[list[int]], bool]:
        shared = self._equal(slice(len(EXACT), None), keys)
        if not any(shared):
            return [], False
        numbers, counts = np.unique(np.fromiter(chain.from_iterable(shared), np.int64), return_counts=True)
        rank = np.sort((len(keys) - counts) << 32 | numbers)
        return [(rank[:most] & 0xFFFFFFFF).tolist()], len(rank) > most

    def within_in_numpy(self, keys: tuple[int, ...], radius: int, most: int) -> tuple[list[list[int]], bool]:
        """Returns the same of the one key that is no exact one."""
        assert self._near is not None
        rows, key = self._columns[-1].rows, keys[-1]
        found = self._near.within(keys, radius, self.size // SCAN_SHARE) if self._covered else None
        first = 0 if found is None else self._covered
        numbers = (distances(rows[first : self.size], key) <= radius).nonzero()[0] + first
        if found is not None and len(found):  # of a merge that is under way, some pages are in both
            numbers = np.concatenate((found[found < first], numbers))
        if not len(numbers):
            return [], False
        apart = distances(rows[numbers], key).astype(np.int64)
        rank = (apart << 32 | numbers)[apart <= radius]
        if len(rank) > (enough := (self._tables + 1) * most + 1):
            rank = np.partition(rank, enough)[:enough]
        rank.sort()
        rank = rank[_begins(rank)]  # several tables may have one page
        nearest = rank[:most]
        starts = _begins(nearest >> 32).nonzero()[0].tolist()
        listed = (nearest & 0xFFFFFFFF).tolist()
        return [listed[start:end] for start, end in pairwise((*starts, len(listed)))], len(rank) > most

    def check(self) -> None:
        """Raises AssertionError unless every table is in order and holds exactly its share of the keys."""
        for table in self._exact:
            table.check(self._columns[table.table.column].rows)
        if self._near:
            self._near.check([column.rows for column in self._columns])


def _begins(ordered: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Returns which of some numbers differ from the one before them."""
    begins = np.empty(len(ordered), bool)
    begins[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins


class _Permuted:
    """The tables of a plan with long prefixes, each found by binary search."""

    def __init__(self, plan: Plan) -> None:
        self._tables = [Sorted(table, np.uint64) for table in plan.tables]

    def within(self, keys: tuple[int, ...], radius: int, most: int) -> Numbers | None:
        """Returns the numbers of all pages with a key within ``radius`` bits; some of them more than once.

        None if the tables hold more than ``most`` candidates; then none is looked at.
        """
        probes = [table.probe(keys[table.table.column]) for table in self._tables]
        if sum(len(found) for _, _, found in probes) > most:
            return None
        return np.concatenate([found[distances(values, key) <= radius] for key, values, found in probes])

    def merge(self, columns: list[Hashes], size: int) -> Iterator[None]:
        """Files the keys of the next pages, up to a number, and stops after each slice."""
        for table in self._tables:
            yield from table.merge(columns[table.table.column][len(table.numbers) : size])

    def check(self, columns: list[Hashes]) -> None:
        """Raises AssertionError unless every table is in order and holds exactly its share of the keys."""
        for table in self._tables:
            table.check(columns[table.table.column])
