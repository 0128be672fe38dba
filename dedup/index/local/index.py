"""The embedded index: numpy sorted tables in memory, over a SQLite file if it has a path.

Claims are atomic because nothing in them awaits.  One process at a time holds a file.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dedup.errors import IndexCorruptError, SettingsError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.simhash import distance
from dedup.index.batching import Confirmations
from dedup.index.contract import MAX_COMPARED, MAX_EQUAL, Index, State, Verdict
from dedup.index.entry import Entry, Match, nearest
from dedup.index.local.sqlite import Store
from dedup.index.local.survey import survey_file
from dedup.index.local.tables import SortedTables
from dedup.index.survey import Survey
from dedup.printing import printable
from dedup.settings import SETTINGS

__all__ = ["LocalIndex"]


@dataclass(slots=True, eq=False)
class _Live:
    """An entry that is not (yet) in the file."""

    entry: Entry
    number: int
    done: bool = False


class LocalIndex(Index):
    """`memory:` and `file:PATH`.  The file holds done pages only: what a crash leaves pending is gone."""

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        """Raises `SettingsError` for an address that can't be one.  A namespace is of no use here."""
        scheme, _, path = address.partition(":")
        if scheme == "memory" and path:
            raise SETTINGS["index"].refusal(address, "which names a path in memory")
        if scheme == "file" and not path:
            raise SETTINGS["index"].refusal(address, "which names no path")
        super().__init__(detector, **options)
        if path and os.path.isdir(path):
            raise SETTINGS["index"].refusal(address, "which is a directory")
        self._path = path
        self.persistent = bool(path)
        self._store: Store | None = None
        self._live: dict[str, _Live] = {}  # by page id
        self._by_number: dict[int, _Live] = {}
        self._rows: list[int] = []  # row in the file, per number; 0 = not there
        self._dead: set[str] = set()  # runs that never finished
        self._met: dict[str, bool] = {}  # pages of theirs that were claimed again: whether they are done
        self._confirmations = Confirmations(self._write)

    @property
    def where(self) -> str:
        return f"file:{printable(self._path)}" if self._path else "memory:"

    async def _open(self) -> None:
        keys = None
        if self._path:
            self._store = Store(self._path, self.parameters.texts)
            try:
                self.parameters = self._adopt(self._store.header)
                keys, self._rows = self._store.load(self.plan.columns)
                self._dead = self._store.hold(self.run)
            except BaseException:
                self._store.close()
                raise
        self._tables = SortedTables(self.plan, keys)

    async def _claim(self, entry: Entry) -> Verdict:
        if entry.page_id in self._live or (self._store and self._store.holds(entry.page_id)):
            if self._is_lost(await self._find(entry.page_id)):
                self._met[entry.page_id] = False
            return Verdict.same()
        keys = entry.keys
        for _, other in self._filed(entry, self._tables.equal(keys[0])[:MAX_EQUAL]):
            if other.page_id == entry.page_id:
                return Verdict.same()
            if other.sketch == entry.sketch:
                return self._duplicate(entry, other, 1.0, done=self._is_done(other))
        candidates = self._filed(entry, self._tables.within(keys, self.detector.radius))
        filed = dict(islice(candidates, MAX_COMPARED))
        if any(other.page_id == entry.page_id for other in filed.values()):
            return Verdict.same()
        found = nearest(self._matches(entry, filed), self.detector.min_resemblance)
        if found is not None:
            of = filed[found.number]
            return self._duplicate(entry, of, found.resemblance, done=self._is_done(of))
        live = _Live(entry, self._tables.add(keys))
        self._live[entry.page_id] = self._by_number[live.number] = live
        self._rows.append(0)
        return Verdict.new()

    def _filed(self, entry: Entry, numbers: list[int]) -> Iterator[tuple[int, Entry]]:
        """Those of the pages that are still filed, in the scope of an entry."""
        for number in numbers:
            other = self._entry(number)
            if other is not None and other.scope == entry.scope and not self._is_lost(other):
                yield number, other

    def _is_lost(self, entry: Entry | None) -> bool:
        """Whether a page is one of a dead run, and was not claimed again."""
        return entry is not None and entry.run in self._dead and entry.page_id not in self._met

    def _matches(self, entry: Entry, filed: dict[int, Entry]) -> list[Match]:
        if not filed:
            return []
        if any(len(other.sketch) != len(entry.sketch) for other in filed.values()):
            raise IndexCorruptError(f"the index {self.where} is damaged: a sketch has a wrong length")
        sketcher = self.detector.sketcher
        alike = sketcher.resemblances(sketcher.words(other.sketch for other in filed.values()), entry.sketch)
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

    async def _confirm(self, page_id: str) -> None:
        if page_id in self._met:
            self._met[page_id] = True
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

    async def _release(self, page_id: str) -> None:
        if self._met.get(page_id) is False:
            del self._met[page_id]
        live = self._live.get(page_id)
        if live is not None and not live.done:
            del self._live[page_id], self._by_number[live.number]

    async def _find(self, page_id: str) -> Entry | None:
        if live := self._live.get(page_id):
            return live.entry
        return self._store.find(page_id) if self._store else None

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        return [self._state(page_id) for page_id in page_ids]

    def _state(self, page_id: str) -> State:
        if live := self._live.get(page_id):
            return "done" if live.done else "pending"
        filed = self._store.find(page_id) if self._store else None
        if filed is None or self._is_lost(filed):
            return None
        return "done" if self._is_done(filed) else "pending"

    def _is_done(self, entry: Entry) -> bool:
        live = self._live.get(entry.page_id)
        return self._met.get(entry.page_id, True) if live is None else live.done

    async def _count(self) -> int:
        return len(self._live) + (self._store.count() if self._store else 0)

    async def _add(self, entries: Sequence[Entry]) -> int:
        fresh: dict[str, Entry] = {}
        for entry in entries:
            if not (entry.page_id in self._live or (self._store and self._store.holds(entry.page_id))):
                fresh.setdefault(entry.page_id, entry)
        rows = self._store.add([*fresh.values()]) if self._store else [0] * len(fresh)
        for entry, row in zip(fresh.values(), rows, strict=True):
            number = self._tables.add(entry.keys)
            self._rows.append(row)
            if not row:
                self._live[entry.page_id] = self._by_number[number] = _Live(entry, number, done=True)
        return len(fresh)

    async def _forget(self, page_ids: Sequence[str]) -> int:
        for page_id in page_ids:
            self._met.pop(page_id, None)
        live = {page_id: self._live[page_id] for page_id in page_ids if page_id in self._live}
        if self._store is not None:
            while any(one.done and page_id in self._live for page_id, one in live.items()):
                await self._confirmations.flush()  # then they are in the file
        live = {page_id: one for page_id, one in live.items() if page_id in self._live}
        for page_id, one in live.items():
            del self._live[page_id], self._by_number[one.number]
        rows = self._store.forget(page_ids) if self._store else set()
        if rows:
            self._rows = [
                0 if row in rows else row for row in self._rows
            ]  # their rows may be given out again
        return len(live) + len(rows)

    async def survey(self) -> Survey | None:
        if not self._path:
            raise SettingsError(
                name="index",
                value=self.where,
                why="which is gone when its crawl ends",
                allowed="'file:PATH', 'redis://HOST:PORT/DB'",
            )
        return survey_file(self._path, self._adopt)

    async def close(self, *, finished: bool = True) -> None:
        if not self._opened:
            return
        self._opened = False
        try:
            await self._confirmations.close()
            if self._store is not None and finished:
                self._store.finish(self.run, [page_id for page_id, done in self._met.items() if done])
        finally:
            self._live.clear()
            self._by_number.clear()
            self._rows.clear()
            self._met.clear()
            if self._store is not None:
                self._store.close()
