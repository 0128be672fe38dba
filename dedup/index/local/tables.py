"""Permuted sorted tables in memory (Manku, Jain, Das Sarma 2007, section 3), kept fresh.

Newly filed keys form an unsorted tail that every query scans, and are merged into one table at a time, so
that no claim waits for all.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from dedup.fingerprint.plans import EXACT, Plan
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.simhash import distances

__all__ = ["SortedTables"]

#: The unsorted tail may grow to this many keys, or to this share of all, before it is merged.
TAIL, TAIL_SHARE = 1024, 64
#: If the tables hold more for a query than this share of all pages, all keys are scanned instead, in their order:
#: that takes 2 ns a page, and no page is met twice.
SCAN_SHARE = 16


class SortedTables:
    """The permuted tables of a plan over pages 0..n-1, which are added in order and never removed.

    A page has a digest, one of its main view, and one key or more: keys are uint64, shape
    (n, 2 + columns of the plan).

    >>> from dedup.fingerprint.plans import plan
    >>> tables = SortedTables(plan(max_distance=3, expected_pages=100))
    >>> [tables.add(keys) for keys in ((7, 6, 0b1111), (8, 6, 0xF0F0 << 40))]
    [0, 1]
    >>> tables.within((9, 9, 0b0001), radius=3, most=9), tables.equal(8), tables.equal(6, column=1)
    (([[0]], 1), [1], [0, 1])
    """

    def __init__(self, plan: Plan, keys: Hashes | None = None) -> None:
        keys = np.empty((0, len(EXACT) + plan.columns), np.uint64) if keys is None else keys
        self.size = len(keys)
        self._tables = (*EXACT, *plan.tables)
        self._keys = np.zeros((max(TAIL, 2 * self.size), len(EXACT) + plan.columns), np.uint64)
        self._keys[: self.size] = keys
        empty = np.empty(0, np.uint64), np.empty(0, np.uint32)
        self._sorted: list[tuple[Hashes, npt.NDArray[np.uint32]]] = [empty for _ in self._tables]
        for table in range(len(self._tables)):
            self._merge(table)

    def add(self, keys: tuple[int, ...]) -> int:
        """Files the keys of a page; its number.  O(1), and now and then O(n) for one table."""
        if self.size == len(self._keys):
            self._keys = np.concatenate((self._keys, np.zeros_like(self._keys)))
        self._keys[self.size] = keys
        self.size += 1
        covered = [len(values) for values, _ in self._sorted]
        least = min(covered)
        if self.size - least > max(TAIL, self.size // TAIL_SHARE):
            self._merge(covered.index(least))
        return self.size - 1

    def keys(self, number: int) -> tuple[int, ...]:
        """The keys of a page."""
        return tuple(self._keys[number].tolist())

    def equal(self, digest: int, column: int = 0) -> list[int]:
        """Numbers of all pages with a digest, or (column 1) one of the main view, ascending."""
        _, _, filed = self._probe(column, digest)
        covered = len(self._sorted[column][0])
        tail = np.flatnonzero(self._keys[covered : self.size, column] == np.uint64(digest)) + covered
        return sorted(filed.tolist()) + tail.tolist()

    def within(self, keys: tuple[int, ...], radius: int, most: int) -> tuple[list[list[int]], int]:
        """Numbers of pages with a key within ``radius`` bits (of at most the plan's) of the one here, and how many are.

        By distance, the nearest first; at one distance, those first that share the most keys; ``most`` of them.
        """
        tables = range(len(EXACT), len(self._tables))
        probes = [self._probe(table, keys[self._tables[table].column]) for table in tables]
        if sum(len(found) for _, _, found in probes) > self.size // SCAN_SHARE:
            numbers = self._scan(keys, radius, 0)
        else:
            found = [found[distances(values, permuted) <= radius] for permuted, values, found in probes]
            covered = min(len(self._sorted[table][0]) for table in tables)
            numbers = np.unique(np.concatenate((*found, self._scan(keys, radius, covered))))
        differing = self._differing(keys, numbers)
        apart, unshared = differing.min(axis=1), np.count_nonzero(differing, axis=1)
        rank = apart.astype(np.uint16) * np.uint16(len(keys)) + unshared.astype(np.uint16)
        order = rank.argsort(kind="stable")[:most]
        starts = np.flatnonzero(np.diff(apart[order])) + 1
        return [group.tolist() for group in np.split(numbers[order], starts) if len(group)], len(numbers)

    def _scan(self, keys: tuple[int, ...], radius: int, first: int) -> npt.NDArray[np.integer[Any]]:
        """What is within a distance, from a number on."""
        near = self._differing(keys, slice(first, self.size)) <= radius
        return np.flatnonzero(near.any(axis=1)) + first

    def _differing(self, keys: tuple[int, ...], numbers: Any) -> npt.NDArray[np.uint8]:
        """In how many bits each key of some pages differs."""
        query = np.array(keys[len(EXACT) :], np.uint64)
        differing: npt.NDArray[np.uint8] = np.bitwise_count(self._keys[numbers, len(EXACT) :] ^ query)
        return differing

    def _probe(self, table: int, key: int) -> tuple[int, Hashes, npt.NDArray[np.uint32]]:
        """A key as one table has it, and what shares its prefix there: permuted keys, and the numbers of their pages."""
        values, numbers = self._sorted[table]
        permuted = self._tables[table].permute(key)
        low, high = self._tables[table].prefix_range(permuted)
        start = values.searchsorted(np.uint64(low), "left")
        end = values.searchsorted(np.uint64(high), "right")
        return permuted, values[start:end], numbers[start:end]

    def _merge(self, table: int) -> None:
        """Brings one table up to date.  O(n)."""
        values, numbers = self._sorted[table]
        permutation = self._tables[table]
        fresh = permutation.permute(self._keys[len(values) : self.size, permutation.column])
        order = fresh.argsort()
        at = values.searchsorted(fresh[order])
        merged = np.insert(values, at, fresh[order])
        self._sorted[table] = merged, np.insert(numbers, at, (order + len(values)).astype(np.uint32))

    def check(self) -> None:
        """Raises AssertionError unless every table is sorted and holds exactly its share of the keys."""
        for table, (values, numbers) in zip(self._tables, self._sorted, strict=True):
            assert bool(np.all(values[:-1] <= values[1:])), "a table is not sorted"
            assert np.array_equal(np.sort(numbers), np.arange(len(values))), "a table lacks or repeats a page"
            permuted = table.permute(self._keys[numbers, table.column])
            assert np.array_equal(permuted, values), "a table holds a key that is not its page's"
