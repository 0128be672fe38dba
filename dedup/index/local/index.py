"""The embedded index: numpy sorted tables in memory, over a SQLite file if it has a path.

A page is filed in one step because nothing in that awaits, and a lock keeps other threads out.  One process at a time
holds a file; all its runs share what is open (see `dedup.index.local.shelves`).
"""

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dedup.errors import SettingsError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.shingles import Hashes
from dedup.index.batching import Confirmations
from dedup.index.claiming import Answer, Candidates, claim, settle
from dedup.index.contract import Index
from dedup.index.entry import Entry
from dedup.index.hosts import Hosts
from dedup.index.lifecycle import State
from dedup.index.local.shelf import ClaimedPage, Shelf
from dedup.index.local.shelves import abandon, join, leave
from dedup.index.parameters import Parameters
from dedup.index.verdict import Verdict
from dedup.index.weighing import MAX_EQUAL, MAX_LOOKED, MAX_RARE, Order
from dedup.printing import printable
from dedup.settings import SETTINGS

if TYPE_CHECKING:  # no crawl takes a survey
    from dedup.index.survey import Survey


class LocalIndex(Index):
    """`memory:` and `file:PATH`.  The file holds done pages only: what a crash leaves pending is gone."""

    in_memory = reads_many = True
    _confirmations: Confirmations[ClaimedPage]

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
        self._shelf: Shelf
        self._claimed: dict[str, ClaimedPage] = {}  # by this run, by page id: neither confirmed nor released
        self._confirmations = Confirmations(self._write)

    @property
    def where(self) -> str:
        return f"file:{printable(self._path)}" if self._path else "memory:"

    async def _open(self) -> None:
        if self._path:
            self._shelf = join(self._path, self.run, self.parameters.texts, self._accept)
            # A run whose object is gone, and that was never closed, is dead.
            self._abandoned = weakref.finalize(self, abandon, self._shelf, self.run)
            self._abandoned.atexit = False
        else:
            self._shelf = Shelf(self.where, self.parameters)
            self._shelf.begin(self.run)
        if self.hosts is not None:
            self.hosts = self._shelf.share(self.hosts)

    def _accept(self, stored: Mapping[str, str]) -> Parameters:
        self.parameters = self._adopt(stored)
        return self.parameters

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        return await claim(self, entry, page)

    async def look(self, entry: Entry) -> Candidates:
        with self._shelf.lock:
            tables, keys = self._shelf.tables, entry.keys
            own = self._state(self._shelf.find(entry.page_id))
            equal, alike, *rare = tables.equal(keys)
            done = {number: self._shadow(number) for number in equal[:MAX_EQUAL]}
            copied = (self._shelf.entry(number) for number, of in done.items() if of is not None)
            if own is State.ABSENT and any(other and other.is_copy(entry) for other in copied):
                return Candidates(tables.size, own, [*done], done=done)
            groups, is_more = tables.within(keys, self.detector.radius, MAX_LOOKED)
            is_new = own is State.ABSENT and not (equal or alike or groups or any(rare))
            if is_new:
                self._claimed[entry.page_id] = self._shelf.file(entry, None, None)
            is_crowded = is_more or len(equal) > MAX_EQUAL
            return Candidates(
                tables.size,
                own,
                equal[:MAX_EQUAL],
                alike[:MAX_EQUAL],
                [each[:MAX_RARE] for each in rare],
                groups,
                is_crowded,
                done,
                is_new,
            )

    async def read(self, numbers: Collection[int]) -> dict[int, Entry]:
        with self._shelf.lock:
            found = {number: self._shelf.entry(number) for number in numbers}
        return {number: entry for number, entry in found.items() if entry is not None}

    async def sketches(self, numbers: Sequence[int]) -> tuple[list[int], Hashes]:
        with self._shelf.lock:
            held = self._shelf.held(numbers)
            return held, self._shelf.sketches(held)

    async def file(self, entry: Entry, order: Order, seen: int | None) -> Answer:
        with self._shelf.lock:
            answer = self._file(entry, order, seen)
            live = self._shelf.live.get(entry.page_id)
            if live and live.state.is_pending and live.entry.run == self.run:
                self._claimed[entry.page_id] = live
            return answer

    def _file(self, entry: Entry, order: Order, seen: int | None) -> Answer:
        shelf = self._shelf
        filed = shelf.find(entry.page_id)
        state, unchanged = self._state(filed), filed is not None and filed.content == entry.content
        if state.casts_shadow:
            if not (state.is_pending and unchanged):
                return Answer("same")
            live = shelf.live[entry.page_id]
            live.entry = live.entry._replace(run=self.run)
            return Answer("same", known=live.known)
        if seen is not None:
            own = shelf.number(filed) if filed else None
            filed_since = shelf.tables.since(seen, entry.keys, self.detector.radius)
            if later := shelf.held(number for number in filed_since if number != own):
                return Answer("later", later=later, seen=shelf.tables.size)
        settled = settle(order, self._state_of, self._is_known)
        if settled.word != "new":
            return settled
        if filed is not None and unchanged:
            shelf.reclaim(filed, self.run)
            return Answer("same", known=shelf.is_known(filed))
        replaced = shelf.entry(settled.replaced) if settled.replaced is not None else None
        shelf.file(entry, replaced and replaced.page_id, filed)
        return settled

    def _shadow(self, number: int) -> bool | None:
        """Returns whether a page is done; None if it casts no shadow."""
        state = self._state_of(number)
        return state.is_done if state.casts_shadow else None

    def _is_known(self, number: int) -> bool:
        entry = self._shelf.entry(number)
        return entry is not None and self._shelf.is_known(entry)

    def _state_of(self, number: int) -> State:
        return self._state(self._shelf.entry(number))

    def _state(self, filed: Entry | None) -> State:
        return self._shelf.state(filed, self.run)

    async def _confirm(self, page_id: str) -> None:
        live = self._claimed.pop(page_id, None)
        if live is None:
            return
        with self._shelf.lock:
            if not self._is_pending(live):
                return
            self._shelf.confirm(live, self.run)
        if self._path:
            self._confirmations.add(page_id, live)
            await asyncio.sleep(0)

    async def _write(self, batch: dict[str, ClaimedPage]) -> None:
        """Writes to the file, in another thread; meanwhile the pages are still looked up here.

        What was learned of hosts is written at once, so that no table is older than a page.
        """
        await self._save([*batch.values()], self.hosts)

    async def _save(self, batch: list[ClaimedPage], hosts: Hosts | None) -> None:
        if not self._path:
            return None
        if hosts is None:
            return await asyncio.to_thread(self._shelf.write, batch, {})
        with hosts.saving() as tables:
            return await asyncio.to_thread(self._shelf.write, batch, tables)

    async def _release(self, page_id: str) -> None:
        live = self._claimed.pop(page_id, None)
        if live is None:
            return
        with self._shelf.lock:
            if self._is_pending(live) and live.entry.run == self.run:  # else it is another run's
                self._shelf.release(live)

    def _is_pending(self, live: ClaimedPage) -> bool:
        """Returns whether a claim is neither confirmed nor taken back: another of its page may have come in its place."""
        return live.state.is_pending and self._shelf.live.get(live.entry.page_id) is live

    async def _annul(self, page_id: str) -> bool:
        with self._shelf.lock:
            live = self._shelf.live.get(page_id)
            if live is None or not live.state.is_pending:
                return False
            self._shelf.release(live)
            return True

    async def _find(self, page_id: str) -> Entry | None:
        with self._shelf.lock:
            return self._shelf.find(page_id)

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        with self._shelf.lock:
            return [self._state(self._shelf.find(page_id)) for page_id in page_ids]

    async def _count(self) -> int:
        with self._shelf.lock:
            return self._shelf.count()

    async def entries(self) -> AsyncIterator[Entry]:
        """Yields all of them, whether they are in a file or not."""
        await self.open()
        for number in self._shelf.numbers():
            with self._shelf.lock:
                entry = self._shelf.entry(number)
                is_filed = self._state(entry) is not State.DEAD
            if entry and is_filed:
                yield entry

    async def _add(self, entries: Sequence[Entry]) -> int:
        with self._shelf.lock:
            fresh = self._shelf.add(entries)
        self._shelf.write(fresh, {})
        return len(fresh)

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        hosts = self.hosts or self._shelf.share(Hosts(self.detector.sketcher, self.settings))
        hosts.merge(tables)
        await self._save([], hosts)

    async def _remember(self, notes: Mapping[str, bytes]) -> None:
        if self._path:
            await asyncio.to_thread(self._shelf.remember, notes)

    async def _recall(self, host: str) -> bytes:
        return self._shelf.recall(host)

    async def _forget(self, page_ids: Sequence[str]) -> int:
        with self._shelf.lock:
            forgotten = sum(map(self._shelf.forget, page_ids))
        await self._save([], None)
        return forgotten

    async def survey(self) -> "Survey | None":
        if not self._path:
            raise SettingsError(
                name="index",
                value=self.where,
                why="which is gone when its crawl ends",
                allowed="'file:PATH', 'redis://HOST:PORT/DB'",
            )
        from dedup.index.local.survey import survey_file

        return survey_file(self._path, self._adopt)

    async def close(self, *, finished: bool = True) -> None:
        if not self._opened:
            return
        self._opened = False
        try:
            await self._confirmations.close()
            await self._save([], self.hosts)  # what was learned of pages that were dropped
        finally:
            if self._path:
                self._abandoned.detach()
            leave(self._shelf, self.run, finished)
