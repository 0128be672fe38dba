"""The embedded index: numpy sorted tables in memory, over a SQLite file if it has a path.

Claims are atomic because nothing in them awaits, and a lock keeps other threads out.  One process at a time holds
a file; all its runs share what is open (see `dedup.index.local.shelves`).
"""

import asyncio
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dedup.errors import SettingsError
from dedup.fingerprint.chrome import Chrome, View
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.evidence import Evidence, is_same_name
from dedup.index.batching import Confirmations
from dedup.index.contract import MAX_COMPARED, MAX_EQUAL, MAX_LOOKED, MAX_NEAR, Index
from dedup.index.entry import Entry
from dedup.index.hosts import Hosts, Weighed
from dedup.index.lifecycle import State
from dedup.index.local.shelf import Live, Shelf
from dedup.index.local.shelves import join, leave
from dedup.index.local.survey import survey_file
from dedup.index.parameters import Parameters
from dedup.index.survey import Survey
from dedup.index.verdict import Near, Verdict
from dedup.printing import printable
from dedup.settings import SETTINGS

__all__ = ["LocalIndex"]

#: At least so many candidates are compared at once: numpy takes as long for one.
BATCH = 64


class LocalIndex(Index):
    """`memory:` and `file:PATH`.  The file holds done pages only: what a crash leaves pending is gone."""

    in_memory = reads_many = True

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
        self._claimed: dict[str, Live] = {}  # by this run, by page id: neither confirmed nor released
        self._confirmations = Confirmations(self._write)

    @property
    def where(self) -> str:
        return f"file:{printable(self._path)}" if self._path else "memory:"

    async def _open(self) -> None:
        if self._path:
            self._shelf = join(self._path, self.run, self.parameters.texts, self._accept)
            # A run whose object is gone, and that was never closed, is dead.
            self._abandoned = weakref.finalize(self, leave, self._shelf, self.run, finished=False)
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
        with self._shelf.lock:
            verdict = self._judge(entry, page)
            live = self._shelf.live.get(entry.page_id)
            if live and live.state.is_pending and live.entry.run == self.run:
                self._claimed[entry.page_id] = live
            return verdict

    def _judge(self, entry: Entry, page: Fingerprint) -> Verdict:
        filed = self._shelf.find(entry.page_id)
        state = self._state(filed)
        unchanged = filed is not None and filed.content == entry.content
        if filed is not None and (state.is_pending or state.is_done):
            if not (state.is_pending and unchanged):
                return Verdict.same()
            live = self._shelf.live[entry.page_id]
            live.entry = live.entry._replace(run=self.run)
            return Verdict.same(known=live.known)
        keys = entry.keys
        digests = self._shelf.tables.equal(keys[0])
        others = self._others(entry, digests[:MAX_EQUAL])
        equal = [other for other in others.values() if other.content == entry.content]
        for other in equal:
            if self._state(other).casts_shadow:
                return self._duplicate(entry, other, 1.0, done=self._state(other).is_done)
        replaced: Entry | None = equal[0] if equal else None
        near: Near | None = None
        compared, views = 0, dict[str, View | None]()
        groups, met = self._shelf.tables.within(keys, self.detector.radius, MAX_LOOKED)
        crowded = met > MAX_LOOKED or len(digests) > MAX_EQUAL
        own = self._shelf.number(filed) if filed else None
        for apart in _batches(groups):  # the nearest first
            there = [number for number in self._shelf.held(apart) if number != own]
            crowded = crowded or compared + len(there) > MAX_COMPARED
            there = there[: MAX_COMPARED - compared]
            nearest = there[: max(0, MAX_NEAR - compared)] if near is None else []
            found = self._resembling(entry, there)
            compared += len(there)
            if not found:
                continue
            others = self._others(entry, found)
            first = next((n for n in nearest if n in others and self._state(others[n]).casts_shadow), None)
            weighed = self._weighed(entry, page, others, first, views)
            enough = sorted(
                (apart[number], -found[number], number) for number in others if weighed[number].suffices
            )
            for _, alike, number in enough:
                other = others[number]
                state_of_other, evidence = self._state(other), weighed[number].evidence
                if state_of_other.casts_shadow:
                    done = state_of_other.is_done
                    return self._duplicate(entry, other, -alike, done=done, evidence=evidence)
                replaced = replaced or other
            if first is not None:
                near_one, evidence = others[first], weighed[first].evidence
                is_same = is_same_name(page, near_one.called)
                near = Near(near_one.url, evidence, is_same)
        for other, evidence in self._shown(entry, page, views):
            if self._state(other).casts_shadow:
                alike, done = (
                    self.detector.sketcher.resemblance(entry.sketch, other.sketch),
                    self._state(other).is_done,
                )
                return self._duplicate(entry, other, alike, done=done, evidence=evidence, rule="view")
            replaced = replaced or other
        if filed is not None and unchanged:
            self._shelf.reclaim(filed, self.run)
            return Verdict.same(known=self._shelf.is_known(filed), crowded=crowded)
        self._shelf.file(entry, replaced.page_id if replaced else None, filed)
        return Verdict.new(near, known=any(map(self._shelf.is_known, equal)), crowded=crowded)

    def _shown(
        self, entry: Entry, page: Fingerprint, views: dict[str, View | None]
    ) -> Iterator[tuple[Entry, Evidence]]:
        """The pages whose main views are equal, and own."""
        numbers = self._shelf.tables.equal(entry.keys[1], column=1)[:MAX_EQUAL]
        for number, other in self._others(entry, numbers).items():
            evidence = self._weighed(entry, page, {number: other}, number, views)[number].evidence
            if evidence and evidence.shows_same:
                yield other, evidence

    def _weighed(
        self,
        entry: Entry,
        page: Fingerprint,
        kept: dict[int, Entry],
        near: int | None,
        views: dict[str, View | None],
    ) -> dict[int, Weighed]:
        if self.hosts is None:
            return dict.fromkeys(kept, Weighed(True, None))
        return self.hosts.weigh(page, entry.url, kept, near, views)

    def _others(self, entry: Entry, numbers: Iterable[int]) -> dict[int, Entry]:
        """The other pages with these numbers and in the scope of an entry."""
        found = {number: self._shelf.entry(number) for number in numbers}
        return {
            number: other
            for number, other in found.items()
            if other is not None and other.scope == entry.scope and other.page_id != entry.page_id
        }

    def _state(self, filed: Entry | None) -> State:
        return self._shelf.state(filed, self.run)

    def _resembling(self, entry: Entry, numbers: list[int]) -> dict[int, float]:
        """The resemblances of those pages that resemble an entry enough, by their numbers."""
        if not numbers:
            return {}
        alike = self.detector.sketcher.resemblances(self._shelf.sketches(numbers), entry.sketch)
        enough = (alike >= self.detector.min_resemblance).nonzero()[0].tolist()
        return {numbers[place]: float(alike[place]) for place in enough}

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

    async def _write(self, batch: dict[str, Live]) -> None:
        """Writes to the file, in another thread; meanwhile the pages are still looked up here.

        What was learned of hosts is written at once, so that no table is older than a page.
        """
        await self._save([*batch.values()], self.hosts)

    async def _save(self, batch: list[Live], hosts: Hosts | None) -> None:
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

    def _is_pending(self, live: Live) -> bool:
        """Whether a claim is neither confirmed nor taken back: another of its page may have come in its place."""
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

    async def _add(self, entries: Sequence[Entry]) -> int:
        with self._shelf.lock:
            fresh = self._shelf.add(entries)
        self._shelf.write(fresh, {})
        return len(fresh)

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        hosts = self.hosts or self._shelf.share(self._new_hosts())
        hosts.merge(tables)
        await self._save([], hosts)

    async def _forget(self, page_ids: Sequence[str]) -> int:
        with self._shelf.lock:
            forgotten = sum(map(self._shelf.forget, page_ids))
        await self._save([], None)
        return forgotten

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
            await self._save([], self.hosts)  # what was learned of pages that were dropped
        finally:
            if self._path:
                self._abandoned.detach()
            leave(self._shelf, self.run, finished)


def _batches(groups: Iterable[Sequence[int]]) -> Iterator[dict[int, int]]:
    """Candidates that are compared at once: whole groups, each with its place."""
    batch: dict[int, int] = {}
    for place, group in enumerate(groups):
        batch.update(dict.fromkeys(group, place))
        if len(batch) >= BATCH:
            yield batch
            batch = {}
    if batch:
        yield batch
