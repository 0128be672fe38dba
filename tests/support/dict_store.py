"""The store that CONTRIBUTING.md tells of: pages in a dict, each of which is compared with the others."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.detector import Detector, Fingerprint
from dedup.fingerprint.shingles import Hashes
from dedup.index.claiming import Answer, Candidates, claim, settle
from dedup.index.contract import Index
from dedup.index.entry import Entry
from dedup.index.lifecycle import State, state_of
from dedup.index.survey import Survey
from dedup.index.verdict import Verdict
from dedup.index.weighing import MAX_EQUAL, MAX_LOOKED, Order


class DictIndex(Index):
    """`dict:`"""

    where, persistent, in_memory = "dict:", False, True

    def __init__(self, address: str, namespace: str, detector: Detector, **settings: Any) -> None:
        super().__init__(detector, **settings)
        self._last = 0
        self._pages: dict[int, Entry] = {}  # by number
        self._numbers: dict[str, int] = {}  # by page id
        self._done_by: dict[int, str] = {}
        self._claimed_by: dict[int, str] = {}
        self._replacing: dict[int, int] = {}

    # --- Whether a run lives: see `dedup.index.lifecycle.Leases`

    def are_alive(self, run: str) -> bool:
        return run == self.run

    def have_finished(self, run: str) -> bool:
        return False

    # --- A claim

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        return await claim(self, entry, page)

    async def look(self, entry: Entry) -> Candidates:
        near: dict[int, list[int]] = {}
        for number, other in self._pages.items():
            near.setdefault(entry.apart(other), []).append(number)
        groups = [near[distance] for distance in sorted(near) if distance <= self.detector.radius]
        equal = [number for number, other in self._pages.items() if other.digest == entry.digest]
        alike = [number for number, other in self._pages.items() if other.markup == entry.markup]
        rare = [
            [number for number, other in self._pages.items() if other.rare[at] == shingle]
            for at, shingle in enumerate(entry.rare)
        ]
        crowded = len(equal) > MAX_EQUAL or sum(map(len, groups)) > MAX_LOOKED
        own = self._state(self._numbers.get(entry.page_id, 0))
        return Candidates(self._last, own, equal[:MAX_EQUAL], alike[:MAX_EQUAL], rare, groups, crowded)

    async def read(self, numbers: Collection[int]) -> dict[int, Entry]:
        return {number: self._pages[number] for number in numbers if number in self._pages}

    async def sketches(self, numbers: Sequence[int]) -> tuple[list[int], Hashes]:
        there = await self.read(numbers)
        return list(there), self.detector.sketcher.words(other.sketch for other in there.values())

    async def file(self, entry: Entry, order: Order, seen: int | None) -> Answer:
        number = self._numbers.get(entry.page_id, 0)
        state = self._state(number)
        unchanged = state is not State.ABSENT and self._pages[number].content == entry.content
        if state.casts_shadow:
            return Answer("same")
        # Nothing here awaits, so no page was filed since the look; another store asks `seen` for that.
        answer = settle(order, self._state, lambda number: True)
        if answer.word != "new":
            return answer
        if unchanged:
            self._claimed_by[number] = self.run
            return Answer("same", known=True)
        self._take_out(number)
        self._last += 1
        self._pages[self._last], self._claimed_by[self._last] = entry, self.run
        self._numbers[entry.page_id] = self._last
        if answer.replaced:
            self._replacing[self._last] = answer.replaced
        return answer

    # --- What becomes of it

    async def _confirm(self, page_id: str) -> None:
        number = self._numbers.get(page_id, 0)
        if self._claimed_by.pop(number, None):
            self._done_by[number] = self.run
            replaced = self._replacing.pop(number, 0)
            if self._state(replaced) is State.EARLIER:
                self._take_out(replaced)

    async def _release(self, page_id: str) -> None:
        await self._annul(page_id)

    async def _annul(self, page_id: str) -> bool:
        number = self._numbers.get(page_id, 0)
        was_claimed = self._claimed_by.pop(number, None) is not None
        if was_claimed and number not in self._done_by:
            self._take_out(number)
        return was_claimed

    async def _add(self, entries: Sequence[Entry]) -> int:
        before = self._last
        for entry in entries:
            if entry.page_id not in self._numbers:
                self._last += 1
                self._pages[self._last], self._done_by[self._last] = entry, entry.run
                self._numbers[entry.page_id] = self._last
        return self._last - before

    async def _forget(self, page_ids: Sequence[str]) -> int:
        return sum(self._take_out(self._numbers.get(page_id, 0)) for page_id in page_ids)

    async def close(self, *, finished: bool = True) -> None:
        for number in list(self._claimed_by):
            await self._annul(self._pages[number].page_id)

    # --- What is filed

    async def _find(self, page_id: str) -> Entry | None:
        return self._pages.get(self._numbers.get(page_id, 0))

    async def _states(self, page_ids: Sequence[str]) -> list[State]:
        return [self._state(self._numbers.get(page_id, 0)) for page_id in page_ids]

    async def _count(self) -> int:
        return len(self._pages)

    async def _add_hosts(self, tables: Mapping[str, Chrome]) -> None:
        if self.hosts is not None:
            self.hosts.merge(tables)

    async def survey(self) -> Survey | None:
        return None

    async def _open(self) -> None:
        pass

    def _state(self, number: int) -> State:
        return state_of(self._done_by.get(number), self._claimed_by.get(number), self)

    def _take_out(self, number: int) -> bool:
        entry = self._pages.pop(number, None)
        self._done_by.pop(number, None)
        self._claimed_by.pop(number, None)
        return entry is not None and self._numbers.pop(entry.page_id) == number
