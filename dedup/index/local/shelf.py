"""The pages of one local index, shared by all runs of this process: tables in memory, over a file if it has one.

What a page is depends on the run that asks (see `dedup.index.lifecycle`).  Nothing here awaits; whoever calls
holds the lock, so that runs in other threads stay out.
"""

import copy
import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np
from msgspec import Struct

from dedup.errors import DedupError, IndexCorruptError
from dedup.fingerprint.shingles import Hashes
from dedup.index.entry import Entry
from dedup.index.hosts import Hosts
from dedup.index.lifecycle import State, state_of
from dedup.index.local.runs import Runs
from dedup.index.local.sqlite import Store
from dedup.index.local.tables import SortedTables
from dedup.index.parameters import Parameters
from dedup.index.sketches import Sketches
from dedup.latest import Latest

#: No more pages that were read from the file are held than this, of 600 bytes each: pages in one chrome meet the same ones again.
MAX_READ = 4096
#: A claim asks twice whether its page is filed; no more page ids than this are known not to be.
MAX_UNFILED = 1024


class ClaimedPage(Struct, eq=False):
    """A page that a run has claimed, and that is not (yet) in the file as it is here."""

    entry: Entry  # its run is the one that has claimed it
    number: int
    state: State  # PENDING, RECLAIMED, or DONE: not yet written
    row: int = 0  # the row in which the file has it, from an earlier run
    replaces: str | None = None  # the page of an earlier run in whose place it was met
    before: Entry | None = None  # what it is again if it is released, where no file has it
    known: bool = False  # of a RECLAIMED one, whether it `is_known`


class Shelf:
    """Pages by number, in the order of their claims."""

    def __init__(self, where: str, parameters: Parameters, store: Store | None = None) -> None:
        self.where = where
        self.store = store
        self.lock = threading.RLock()
        self.hosts: Hosts | None = None
        keys: Hashes | None = None
        self._rows = array("I")  # row in the file, per number; 0 = not there
        if store is not None:
            rows, keys = store.load(parameters.plan.columns)
            self._rows.frombytes(rows.tobytes())
        self.tables = SortedTables(parameters.plan, keys)
        self.live: dict[str, ClaimedPage] = {}  # by page id
        self._by_number: dict[int, ClaimedPage] = {}
        self._held = Latest[int, Entry](MAX_READ)  # by row
        self._sketcher = parameters.detector.sketcher
        self._sketches = Sketches(self._sketcher.size)
        self._unfiled = set[str]()  # page ids that the file was asked for since the last `write`, and has not
        self._gone: dict[str, int] = {}  # rows that are still in the file, by page id
        self._writing = threading.Lock()  # a transaction of another thread would end with this one's
        self._runs = Runs()

    # --- Runs

    def begin(self, run: str) -> None:
        """A run begins, or is opened once more."""
        if self.store:
            with self._writing:
                self.store.begin(run)
        self._runs.begin(run)

    def share(self, hosts: Hosts) -> Hosts:
        """Returns what all runs know of hosts, in the place of what one would have known."""
        if self.hosts is None:
            hosts.load = self._load_host if self.store else None
            self.hosts = hosts
            return hosts
        shared = copy.copy(self.hosts)
        shared.settings = hosts.settings
        return shared

    def end(self, run: str, *, finished: bool) -> bool:
        """Closes a run, if it is not open elsewhere, and returns whether it was the last."""
        with self.lock:  # others may be writing what they have confirmed
            if not self._runs.end(run, finished=finished):
                return False
            own = [live for live in self.live.values() if live.entry.run == run and live.state.is_pending]
            for live in own:
                self.release(live)
        if self.store:
            with suppress(DedupError), self._writing:  # if it can't, it seems to have died
                self.store.end(run)
        return self._runs.are_over

    # --- Pages

    def entry(self, number: int) -> Entry | None:
        """Returns the entry of a number; None if it was taken out."""
        if live := self._by_number.get(number):
            return live.entry
        row = self._rows[number]
        return self._read(row, self.tables.keys(number)) if row else None

    def numbers(self) -> list[int]:
        """Returns the numbers of all pages, in the order of their filing."""
        with self.lock:
            return self.held(range(len(self._rows)))

    def held(self, numbers: Iterable[int]) -> list[int]:
        """Returns the numbers of pages that were not taken out."""
        rows, live = self._rows, self._by_number
        return [number for number in numbers if rows[number] or number in live]

    def sketches(self, numbers: Sequence[int]) -> Hashes:
        """Returns the sketches of pages that were not taken out, as they are compared, read all at once: uint64, shape (n, w).

        Those in the file are not checked: whatever is made of them has to be seen from the whole `entry`, too.
        """
        asked = np.array(numbers, np.uint32)
        words, unheld = self._sketches.get(asked)
        if len(unheld):
            rows = [(number, self._rows[number]) for number in asked[unheld].tolist()]
            unread = [row for _, row in rows if row]
            read = self.store.sketches(unread) if self.store and unread else {}
            found = [
                read.get(row, b"") if row else self._by_number[number].entry.sketch
                for number, row in rows  # one may be asked for twice
            ]
            if {*map(len, found)} != {self._sketcher.size}:
                raise IndexCorruptError(f"the index {self.where} is damaged: a sketch has a wrong length")
            words[unheld] = self._sketcher.words(found)
            self._sketches.put(asked[unheld], words[unheld])
        return words

    def _read(self, row: int, keys: tuple[int, ...]) -> Entry | None:
        entry = self._held.get(row)
        if entry is None and self.store:
            entry = self.store.entry(row)
            if entry is None or entry.keys != keys:
                raise self._misplaced()
            self._held[row] = entry
        return entry

    def _misplaced(self) -> IndexCorruptError:
        return IndexCorruptError(f"the index {self.where} is damaged: a page is not in its place")

    def find(self, page_id: str) -> Entry | None:
        """Returns the entry of a page."""
        if live := self.live.get(page_id):
            return live.entry
        row = self._row(page_id)
        entry = self.store.entry(row) if self.store and row else None
        if entry is not None and entry.page_id != page_id:
            raise self._misplaced()
        return entry

    def _row(self, page_id: str) -> int:
        if page_id in self._unfiled:
            return 0
        row = self.store.row(page_id) if self.store else 0
        if not row:
            if len(self._unfiled) >= MAX_UNFILED:
                self._unfiled.clear()
            self._unfiled.add(page_id)
        return 0 if self._gone.get(page_id) == row else row

    def is_known(self, entry: Entry) -> bool:
        """True if the page's run was closed properly.  The output of a run that died may be lost."""
        return self.store is None or entry.run not in self.store.died

    def state(self, entry: Entry | None, run: str) -> State:
        """Returns what a page is to a run."""
        if entry is None:
            return State.ABSENT
        live = self.live.get(entry.page_id)
        claimed_by = live.entry.run if live and live.state.is_pending else None
        done_by = None if live and live.state is State.PENDING else entry.run
        return state_of(done_by, claimed_by, self._runs.leases(run))

    def file(self, entry: Entry, replaces: str | None, before: Entry | None) -> ClaimedPage:
        """Files a page that is new, or has changed: then it replaces what it was ``before``."""
        if before is not None:
            self._take_out(before)
        live = ClaimedPage(entry, self.tables.add(entry.keys), State.PENDING, replaces=replaces)
        self._rows.append(0)
        self.live[entry.page_id] = self._by_number[live.number] = live
        return live

    def reclaim(self, entry: Entry, run: str) -> None:
        """A run has met a page of an earlier run: row claim earlier."""
        claimed, state, known = entry._replace(run=run), State.RECLAIMED, self.is_known(entry)
        if live := self.live.get(entry.page_id):  # no file has it
            live.entry, live.before, live.state, live.known = claimed, live.entry, state, known
            return
        live = ClaimedPage(claimed, self.number(entry), state, self._row(entry.page_id), known=known)
        self.live[entry.page_id] = self._by_number[live.number] = live

    def confirm(self, live: ClaimedPage, run: str) -> None:
        """The output of a page has been handed over: rows confirm pending, confirm reclaimed, replace earlier."""
        live.state = State.DONE
        replaced, live.replaces = live.replaces and self.find(live.replaces), None
        if replaced and self.state(replaced, run) is State.EARLIER:
            self._take_out(replaced)

    def release(self, live: ClaimedPage) -> None:
        """A page could not be processed."""
        if live.before is not None:
            live.entry, live.state, live.before = live.before, State.DONE, None
        else:
            del self.live[live.entry.page_id], self._by_number[live.number]

    def forget(self, page_id: str) -> bool:
        """Takes a page out, whatever it is, and returns whether it was there."""
        entry = self.find(page_id)
        if entry is not None:
            self._take_out(entry)
        return entry is not None

    def add(self, entries: Sequence[Entry]) -> list[ClaimedPage]:
        """Files pages of another index, and gives back those that were not filed; of two with one page id the first."""
        rows = self.store.rows([entry.page_id for entry in entries]) if self.store else {}
        fresh: dict[str, Entry] = {}
        for entry in entries:
            page_id = entry.page_id
            if not ((page_id in rows or page_id in self.live) and self.find(page_id)):
                fresh.setdefault(page_id, entry)
        first = self.tables.extend([entry.keys for entry in fresh.values()])
        added = [ClaimedPage(entry, number, State.DONE) for number, entry in enumerate(fresh.values(), first)]
        self._rows.extend([0] * len(added))
        self.live.update((live.entry.page_id, live) for live in added)
        self._by_number.update((live.number, live) for live in added)
        return added

    def number(self, entry: Entry) -> int:
        """Returns the number of a page that is filed."""
        if live := self.live.get(entry.page_id):
            return live.number
        numbers = self.tables.equal(entry.keys)[0]
        row = self._row(entry.page_id)
        if found := [number for number in numbers if self._rows[number] == row and row]:
            return found[0]
        raise self._misplaced()

    def _take_out(self, entry: Entry) -> None:
        """Takes a page out of the memory, and with the next `write` out of the file."""
        if live := self.live.pop(entry.page_id, None):
            del self._by_number[live.number]
            self._rows[live.number] = 0
        if row := self._row(entry.page_id):
            if live is None:
                self._rows[self.number(entry)] = 0
            self._gone[entry.page_id] = row

    def count(self) -> int:
        """Returns how many pages are filed."""
        in_file = np.count_nonzero(np.frombuffer(self._rows, np.uint32)) if self._rows else 0
        return int(in_file) + sum(not self._rows[number] for number in self._by_number)

    def _load_host(self, name: str) -> bytes | None:
        with self.lock:  # a query that has begun before a write would keep its rows hidden after `pin`
            return self.store.host(name) if self.store else None

    # --- The file

    def recall(self, host: str) -> bytes:
        """Returns what is noted of a host in the file."""
        with self.lock:
            return self.store.note(host) if self.store else b""

    def remember(self, notes: Mapping[str, bytes]) -> None:
        """Writes what is noted of hosts to the file; may be called in any thread."""
        if self.store is None:
            return
        with self._writing:
            with self.lock:
                self.store.unpin()
            self.store.write_notes(notes)
            with self.lock:
                self.store.pin()

    def write(self, batch: list[ClaimedPage], tables: Mapping[str, bytes]) -> None:
        """Writes pages that are done to the file, and takes out those that are gone; may be called in any thread."""
        if self.store is None:
            return
        with self._writing:
            with self.lock:
                batch = [live for live in batch if self.live.get(live.entry.page_id) is live]
                entries = [(live.row, live.entry) for live in batch]
                gone = dict(self._gone)
                self.store.unpin()
            rows = self.store.write(entries, gone.values(), tables)
            with self.lock:
                self._unfiled.clear()
                for row in (*rows, *gone.values()):
                    self._held.pop(row, None)
                for live, row in zip(batch, rows, strict=True):
                    if self.live.get(live.entry.page_id) is live:
                        self._rows[live.number] = row
                        del self.live[live.entry.page_id], self._by_number[live.number]
                    else:  # it was taken out meanwhile
                        self._gone[live.entry.page_id] = row
                for page_id, row in gone.items():
                    if self._gone.get(page_id) == row:
                        del self._gone[page_id]
                self.store.pin()  # last: if it fails, what was written is not written again under other numbers

    def close(self) -> None:
        """Lets go of the file."""
        if self.store is not None:
            self.store.close()
