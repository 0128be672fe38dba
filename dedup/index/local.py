"""The embedded index: numpy sorted tables in memory, over a SQLite file if it has a path.

Manku, Jain, Das Sarma 2007, section 3, with the tables kept fresh: newly filed keys form an unsorted
tail that every query scans, and are merged into one table at a time, so that no claim waits for all.
Claims are atomic because nothing in them awaits.  One process at a time holds a file.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup.detector import Detector
from dedup.errors import IndexCorruptError, SettingsError
from dedup.index.base import MAX_COMPARED, MAX_EQUAL, Entry, Index, Match, State, Verdict, nearest
from dedup.index.confirmations import Confirmations
from dedup.index.store import Store, printable
from dedup.minhash import resemblances
from dedup.shingles import Hashes
from dedup.simhash import distance, distances
from dedup.tables import DIGESTS, Plan

__all__ = ["LocalIndex", "SortedTables"]

#: The unsorted tail may grow to this many keys, or to this share of all, before it is merged.
TAIL, TAIL_SHARE = 1024, 64


class SortedTables:
    """The permuted tables of a plan over pages 0..n-1, which are added in order and never removed.

    A page has a digest and one key or more: keys are uint64, shape (n, 1 + columns of the plan).

    >>> from dedup.tables import plan
    >>> tables = SortedTables(plan(max_distance=3, expected_pages=100))
    >>> [tables.add(keys) for keys in ((7, 0b1111), (8, 0xF0F0 << 40))]
    [0, 1]
    >>> tables.within((9, 0b0001), radius=3), tables.equal(8)
    ([0], [1])
    """

    def __init__(self, plan: Plan, keys: Hashes | None = None) -> None:
        keys = np.empty((0, 1 + plan.columns), np.uint64) if keys is None else keys
        self.size = len(keys)
        self._tables = (DIGESTS, *plan.tables)
        self._columns = range(1, 1 + plan.columns)
        self._keys = np.zeros((max(TAIL, 2 * self.size), 1 + plan.columns), np.uint64)
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

    def equal(self, digest: int) -> list[int]:
        """Numbers of all pages with a digest, ascending."""
        filed = self._probe(0, digest, 0)
        covered = len(self._sorted[0][0])
        tail = np.flatnonzero(self._keys[covered : self.size, 0] == np.uint64(digest)) + covered
        return sorted(filed.tolist()) + tail.tolist()

    def within(self, keys: tuple[int, ...], radius: int) -> list[int]:
        """Numbers of all pages with a key within ``radius`` bits (of at most the plan's) of the one here.

        Nearest first; at one distance, those that share the most keys.
        """
        tables = range(1, len(self._tables))
        found = [self._probe(table, keys[self._tables[table].column], radius) for table in tables]
        covered = min(len(self._sorted[table][0]) for table in tables)
        for column in self._columns:
            tail = distances(self._keys[covered : self.size, column], keys[column]) <= radius
            found.append(np.flatnonzero(tail) + covered)
        numbers = np.unique(np.concatenate(found))
        if len(numbers) > 1:
            apart = np.bitwise_count(self._keys[numbers, 1:] ^ np.array(keys[1:], np.uint64))
            shared = (apart == 0).sum(axis=1)
            numbers = numbers[np.lexsort((numbers, -shared, apart.min(axis=1)))]
        ordered: list[int] = numbers.tolist()
        return ordered

    def _probe(self, table: int, key: int, radius: int) -> npt.NDArray[np.integer[Any]]:
        """What one table holds within a distance, among those that share its prefix."""
        values, numbers = self._sorted[table]
        permuted = self._tables[table].permute(key)
        low, high = self._tables[table].prefix_range(permuted)
        start = values.searchsorted(np.uint64(low), "left")
        end = values.searchsorted(np.uint64(high), "right")
        if start == end:
            return numbers[:0]
        return numbers[start:end][distances(values[start:end], permuted) <= radius]

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


@dataclass(slots=True, eq=False)
class _Live:
    """An entry that is not (yet) in the file."""

    entry: Entry
    number: int
    done: bool = False


class LocalIndex(Index):
    """`memory:` and `file:PATH`.  The file holds done pages only: what a crash leaves pending is gone."""

    def __init__(self, path: str | None, detector: Detector, **options: Any) -> None:
        super().__init__(detector, **options)
        if path is not None and os.path.isdir(path):
            raise SettingsError(
                f"INDEX is 'file:{printable(path)}', which is a directory; it takes the path of a file"
            )
        self._path = path
        self._store: Store | None = None
        self._live: dict[str, _Live] = {}  # by page id
        self._by_number: dict[int, _Live] = {}
        self._rows: list[int] = []  # row in the file, per number; 0 = not there
        self._confirmations = Confirmations(self._write)

    @property
    def where(self) -> str:
        return "memory:" if self._path is None else f"file:{printable(self._path)}"

    async def _open(self) -> None:
        keys = None
        if self._path is not None:
            self._store = Store(self._path, self.parameters, self.adopt)
            try:
                keys, self._rows = self._store.load(self.plan.columns)
                self._store.hold()
            except BaseException:
                self._store.close()
                raise
        self._tables = SortedTables(self.plan, keys)

    async def _claim(self, entry: Entry) -> Verdict:
        if entry.page_id in self._live or (self._store and self._store.holds(entry.page_id)):
            return Verdict("same")
        keys = entry.keys
        for _, other in self._filed(entry, self._tables.equal(keys[0])[:MAX_EQUAL]):
            if other.page_id == entry.page_id:
                return Verdict("same")
            if other.sketch == entry.sketch:
                return self._duplicate(entry, other, 1.0, done=self._is_done(other))
        candidates = self._filed(entry, self._tables.within(keys, self.detector.radius))
        filed = dict(islice(candidates, MAX_COMPARED))
        if any(other.page_id == entry.page_id for other in filed.values()):
            return Verdict("same")
        found = nearest(self._matches(entry, filed), self.detector.min_resemblance)
        if found is not None:
            of = filed[found.number]
            return self._duplicate(entry, of, found.resemblance, done=self._is_done(of))
        live = _Live(entry, self._tables.add(keys))
        self._live[entry.page_id] = self._by_number[live.number] = live
        self._rows.append(0)
        return Verdict("new")

    def _filed(self, entry: Entry, numbers: list[int]) -> Iterator[tuple[int, Entry]]:
        """Those of the pages that are still filed, in the scope of an entry."""
        for number in numbers:
            other = self._entry(number)
            if other is not None and other.scope == entry.scope:
                yield number, other

    def _matches(self, entry: Entry, filed: dict[int, Entry]) -> list[Match]:
        if not filed:
            return []
        if any(len(other.sketch) != len(entry.sketch) for other in filed.values()):
            raise IndexCorruptError(f"the index {self.where} is damaged: a sketch has a wrong length")
        stored = np.frombuffer(b"".join(other.sketch for other in filed.values()), np.uint64)
        alike = resemblances(stored.reshape(len(filed), -1), entry.sketch, self.detector.features.bits)
        return [
            Match(min(distance(entry.simhash, other.simhash), self.detector.radius), resemblance, number)
            for (number, other), resemblance in zip(filed.items(), alike.tolist(), strict=True)
        ]

    def _entry(self, number: int) -> Entry | None:
        """The entry of a number; None if it was released."""
        if live := self._by_number.get(number):
            return live.entry
        row = self._rows[number]
        entry = self._store.entry(row) if self._store and row else None
        if entry is not None and entry.keys != self._tables.keys(number):
            raise IndexCorruptError(f"the index {self.where} is damaged: a page has taken another's place")
        return entry

    async def confirm(self, page_id: str) -> None:
        live = self._live.get(page_id)
        if live is None or live.done:
            return
        live.done = True
        if self._store is not None:
            self._confirmations.add(live)
            await asyncio.sleep(0)

    async def _write(self, batch: list[_Live]) -> None:
        """Writes to the file, in another thread; meanwhile the pages are still looked up here."""
        assert self._store is not None
        rows = await asyncio.to_thread(self._store.add, [live.entry for live in batch])
        for live, row in zip(batch, rows, strict=True):
            self._rows[live.number] = row
            del self._live[live.entry.page_id], self._by_number[live.number]

    async def release(self, page_id: str) -> None:
        live = self._live.get(page_id)
        if live is not None and not live.done:
            del self._live[page_id], self._by_number[live.number]

    async def find(self, page_id: str) -> Entry | None:
        await self.open()
        if live := self._live.get(page_id):
            return live.entry
        return self._store.find(page_id) if self._store else None

    async def states(self, page_ids: Sequence[str]) -> list[State]:
        await self.open()
        return [self._state(page_id) for page_id in page_ids]

    def _state(self, page_id: str) -> State:
        if live := self._live.get(page_id):
            return "done" if live.done else "pending"
        return "done" if self._store and self._store.holds(page_id) else None

    def _is_done(self, entry: Entry) -> bool:
        live = self._live.get(entry.page_id)
        return live is None or live.done

    async def count(self) -> int:
        await self.open()
        return len(self._live) + (self._store.count() if self._store else 0)

    async def close(self) -> None:
        if not self._opened:
            return
        self._opened = False
        try:
            await self._confirmations.close()
        finally:
            self._live.clear()
            self._by_number.clear()
            self._rows.clear()
            if self._store is not None:
                self._store.close()
