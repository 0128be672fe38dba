"""The embedded index: numpy sorted tables in memory, over a SQLite file if it has a path.

Claims are atomic because nothing in them awaits.  One process at a time holds a file.
"""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dedup.errors import IndexCorruptError, SettingsError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.simhash import distance
from dedup.index.batching import Confirmations
from dedup.index.contract import MAX_COMPARED, MAX_EQUAL, Index, Near, Verdict
from dedup.index.entry import Entry, Match
from dedup.index.hosts import Hosts, Weighed
from dedup.index.lifecycle import Event, State, after
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
    state: State


class LocalIndex(Index):
    """`memory:` and `file:PATH`.  The file holds done pages only: what a crash leaves pending is gone."""

    def __init__(self, address: str, namespace: str, detector: Detector, **options: Any) -> None:
        """Raises `SettingsError` for an address that can't be one.  A namespace is of no use here."""
        scheme, _, path = address.partition(":")
        if scheme == "memory" and path:
            raise SETTINGS["index"].refusal(address, "which names a path in memory")
        if scheme == "file" and not path:
            raise SETTINGS["index"].refusal(address, "which names no path")
        path = os.path.expanduser(path)
        self.persistent = bool(path)
        super().__init__(detector, **options)
        if path and os.path.isdir(path):
            raise SETTINGS["index"].refusal(address, "which is a directory")
        self._path = path
        self._store: Store | None = None
        self._live: dict[str, _Live] = {}  # by page id
        self._by_number: dict[int, _Live] = {}
        self._rows: list[int] = []  # row in the file, per number; 0 = not there
        self._dead: set[str] = set()  # runs that died before they had finished
        self._reclaimed: dict[str, State] = {}  # what became of their pages that this run has claimed
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

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        state = self._state(entry.page_id)
        if state is not State.ABSENT:
            if after(state, Event.CLAIM) is not state:
                self._reclaimed[entry.page_id] = after(state, Event.CLAIM)
            return Verdict.same()
        keys = entry.keys
        for _, other in self._filed(entry, self._tables.equal(keys[0])[:MAX_EQUAL]):
            if other.page_id == entry.page_id:
                return Verdict.same()
            if other.sketch == entry.sketch:
                return self._duplicate(entry, other, 1.0, done=self._state_of(other).is_done)
        candidates = self._filed(entry, self._tables.within(keys, self.detector.radius))
        filed = dict(islice(candidates, MAX_COMPARED))
        if any(other.page_id == entry.page_id for other in filed.values()):
            return Verdict.same()
        near = [
            match
            for match in self._matches(entry, filed)
            if match.resemblance >= self.detector.min_resemblance
        ]
        weighed = self._weighed(entry, page, [filed[match.number] for match in near])
        enough = {
            match: evidence for match, (suffices, evidence) in zip(near, weighed, strict=True) if suffices
        }
        if enough:
            found = min(enough, key=lambda match: match.order)
            of = filed[found.number]
            done = self._state_of(of).is_done
            return self._duplicate(entry, of, found.resemblance, done=done, evidence=enough[found])
        live = _Live(entry, self._tables.add(keys), after(state, Event.CLAIM))
        self._live[entry.page_id] = self._by_number[live.number] = live
        self._rows.append(0)
        if not near:
            return Verdict.new()
        nearest, (_, evidence) = min(zip(near, weighed, strict=True), key=lambda pair: pair[0].order)
        return Verdict.new(Near(filed[nearest.number].url, evidence))

    def _weighed(self, entry: Entry, page: Fingerprint, kept: list[Entry]) -> list[Weighed]:
        if self.hosts is None:
            return [Weighed(True, None) for _ in kept]
        return self.hosts.weigh(page, entry.url, kept)

    def _filed(self, entry: Entry, numbers: list[int]) -> Iterator[tuple[int, Entry]]:
        """The pages that cast a shadow, of those with these numbers and in the scope of an entry."""
        for number in numbers:
            other = self._entry(number)
            if other is not None and other.scope == entry.scope and self._state_of(other).casts_shadow:
                yield number, other

    def _state(self, page_id: str) -> State:
        live = self._live.get(page_id)
        filed = live.entry if live else self._store.find(page_id) if self._store else None
        return State.ABSENT if filed is None else self._state_of(filed)

    def _state_of(self, filed: Entry) -> State:
        """The state of a page that is filed."""
        if live := self._live.get(filed.page_id):
            return live.state
        if filed.run in self._dead:
            return self._reclaimed.get(filed.page_id, State.LOST)
        return State.DONE if filed.run == self.run else State.SAFE

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
        self._reclaim(page_id, Event.CONFIRM)
        live = self._live.get(page_id)
        if live is None or live.state is after(live.state, Event.CONFIRM):
            return
        live.state = after(live.state, Event.CONFIRM)
        if self._store is not None:
            self._confirmations.add(live)
            await asyncio.sleep(0)

    def _reclaim(self, page_id: str, event: Event) -> None:
        """Moves a page on, if it is one of a dead run that this run has claimed."""
        if page_id in self._reclaimed:
            self._reclaimed[page_id] = after(self._reclaimed[page_id], event)

    async def _write(self, batch: list[_Live]) -> None:
        """Writes to the file, in another thread; meanwhile the pages are still looked up here."""
        rows = await self._save([live.entry for live in batch], self.hosts)
        for live, row in zip(batch, rows, strict=True):
            self._rows[live.number] = row
            del self._live[live.entry.page_id], self._by_number[live.number]

    async def _save(self, entries: list[Entry], hosts: Hosts | None) -> list[int]:
        """Writes entries, and at once what was learned of hosts, so that no table is older than a page."""
        assert self._store is not None
        if hosts is None:
            return await asyncio.to_thread(self._store.add, entries, {})
        with hosts.saving() as tables:
            return await asyncio.to_thread(self._store.add, entries, tables)

    def _load_host(self, name: str) -> bytes | None:
        return self._store.host(name) if self._store else None

    async def _release(self, page_id: str) -> None:
        self._reclaim(page_id, Event.RELEASE)
        live = self._live.get(page_id)
        if live is not None and after(live.state, Event.RELEASE) is State.ABSENT:
            del self._live[page_id], self._by_number[live.number]

    async def _find(self, page_id: str) -> Entry | None:
        if live := self._live.get(page_id):
            return live.entry
        return self._store.find(page_id) if self._store else None

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        return [self._state(page_id) for page_id in page_ids]

    async def _count(self) -> int:
        # A page that was written a moment ago is in the file, and still here.
        live = [page_id for page_id in self._live if not (self._store and self._store.find(page_id))]
        return len(live) + (self._store.count() if self._store else 0)

    async def _add(self, entries: Sequence[Entry]) -> int:
        fresh: dict[str, Entry] = {}
        for entry in entries:
            if self._state(entry.page_id) is State.ABSENT:
                fresh.setdefault(entry.page_id, entry)
        rows = self._store.add([*fresh.values()], {}) if self._store else [0] * len(fresh)
        for entry, row in zip(fresh.values(), rows, strict=True):
            number = self._tables.add(entry.keys)
            self._rows.append(row)
            if not row:
                live = _Live(entry, number, after(State.ABSENT, Event.ADD))
                self._live[entry.page_id] = self._by_number[number] = live
        return len(fresh)

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        hosts = self.hosts or self._new_hosts()
        hosts.merge(tables)
        if self._store is not None:
            await self._save([], hosts)

    async def _forget(self, page_ids: Sequence[str]) -> int:
        for page_id in page_ids:
            self._reclaimed.pop(page_id, None)
        live = {page_id: self._live[page_id] for page_id in page_ids if page_id in self._live}
        if self._store is not None:
            while any(one.state.is_done and page_id in self._live for page_id, one in live.items()):
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
            if self._store is not None and self.hosts is not None:
                await self._save([], self.hosts)  # what was learned of pages that were dropped
            if self._store is not None and finished:
                own = [
                    name
                    for name, state in self._reclaimed.items()
                    if after(state, Event.FINISH) is State.SAFE
                ]
                self._store.finish(self.run, own)
        finally:
            self._live.clear()
            self._by_number.clear()
            self._rows.clear()
            self._reclaimed.clear()
            if self._store is not None:
                self._store.close()
