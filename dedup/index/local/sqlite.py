"""The file of an embedded index: one SQLite database, the durable truth of the pages that are done.

Thanks to write-ahead logging readers never wait for the writer, and a killed process loses at most what it
had not yet handed over.  A lock file beside it keeps a second crawl out.  A file that is not an index, or is
damaged, is refused and left as it is: it is opened for writing only when SQLite's tables and the keys of all pages
have been checked.  Each page has a checksum of its own, for when it is read.
"""

import os
import sqlite3
import stat
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from itertools import count
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from dedup.errors import DedupError, IndexInUseError, IndexMismatchError
from dedup.files import make_private
from dedup.fingerprint.plans import EXACT
from dedup.fingerprint.shingles import Hashes
from dedup.index.entry import Entry
from dedup.index.hosts import packed
from dedup.index.local.file import (
    COLUMNS,
    HOST_COLUMNS,
    NOTES,
    SCHEMA,
    IndexFile,
    checksum,
    entry_of,
    row_of,
    table_of,
)
from dedup.index.local.segments import stored, unpack, update
from dedup.index.local.table import Numbers
from dedup.printing import printable

#: So many pages, written at once, are few: see `LARGE_CACHE`.
BATCH = 1000
#: This many pages are asked for at once; every SQLite allows for as many.
ASKED = 500
#: What SQLite may keep in memory of the file, in KiB: by default, and while more than `BATCH` pages are written at once,
#: whose page ids belong into every part of its index of them.
CACHE, LARGE_CACHE = 2_000, 16_000
#: A file holds no more tables of hosts than this; those that were saved the longest ago are forgotten.
MAX_SAVED = 10_000


class Store(IndexFile):
    """An open file, which is read in the caller's thread, and written in any."""

    def __init__(self, path: str, parameters: Mapping[str, str]) -> None:
        """Locks the file, and reads its header; a new one is made with the parameters given."""
        super().__init__(path)
        self._connections: list[sqlite3.Connection] = []
        self.died: set[str] = set()  #: runs that were never closed
        with self._errors():
            if os.path.lexists(self.path):  # before anything is created beside what is not ours
                self._header()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._lock_file()
            self._lock.acquire(timeout=0)
        except Timeout:
            raise IndexInUseError(
                f"the index file:{self.name} is in use by another crawl{self._holder()}; wait for it, or give this "
                "crawl another index, or let both share one in Redis",
                settings=("namespace", "index"),
            ) from None
        except (OSError, ValueError) as error:
            raise self._unopened(error) from None
        try:
            with self._errors():
                if not self.path.exists():
                    self._create(parameters)
                self.header = self._header()
        except BaseException:
            self._lock.release()
            raise

    def _lock_file(self) -> FileLock:
        """Returns the lock beside the file: what another has put under its name is neither followed nor emptied."""
        path = self.path.with_name(f"{self.path.name}.lock")
        make_private(path)
        self._check_names(path)
        mode = stat.S_IMODE(path.stat().st_mode)  # which it may set
        return FileLock(path, mode=mode, thread_local=False)  # any thread may leave last

    def hold(self) -> None:
        """Opens the file for writing, and notes which process holds it."""
        with self._errors():
            self._writer = sqlite3.connect(self.path, check_same_thread=False, timeout=5)
            self._connections.append(self._writer)
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = NORMAL")
            self._reader = self._read_only()
            self._reader.isolation_level = None
            self._connections.append(self._reader)
            self._identity = self._identify()
            with self._writer:
                self._writer.execute("REPLACE INTO header VALUES ('holder', ?)", (str(os.getpid()),))
                self._writer.execute("UPDATE header SET value = 'died' WHERE name LIKE 'run %'")
                self._writer.execute(NOTES)
                died = self._writer.execute("SELECT substr(name, 5) FROM header WHERE name LIKE 'run %'")
                self.died = {run for (run,) in died}

    def begin(self, run: str) -> None:
        """Notes that a run has begun: if it is not noted that it has ended, it has `died`."""
        with self._errors(), self._writer:
            self._writer.execute("REPLACE INTO header VALUES (?, 'open')", (f"run {run}",))

    def end(self, run: str) -> None:
        """Notes that a run was closed."""
        with self._errors(), self._writer:
            self._writer.execute("DELETE FROM header WHERE name = ?", (f"run {run}",))

    def check_identity(self) -> None:
        """Raises `IndexMismatchError` if this is no longer the file of its name."""
        with self._errors():
            if self._identify() != self._identity:
                raise IndexMismatchError(
                    f"the index file:{self.name} was deleted or replaced while it was in use; "
                    "what this crawl files is lost when it ends"
                )

    def _identify(self) -> tuple[int, int] | None:
        """Identifies the file that has this name now, if there is one."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _create(self, parameters: Mapping[str, str]) -> None:
        """A new file appears under its name only when it is complete."""
        fresh = self.path.with_name(self.path.name + ".new")
        fresh.unlink(missing_ok=True)
        for left in ("-wal", "-shm"):  # of an index that was deleted
            self.path.with_name(self.path.name + left).unlink(missing_ok=True)
        make_private(fresh)  # SQLite gives the files beside it the same mode
        with closing(sqlite3.connect(fresh)) as connection, connection:
            connection.executescript(SCHEMA)
            connection.executemany("INSERT INTO header VALUES (?, ?)", parameters.items())
        fresh.rename(self.path)

    def _holder(self) -> str:
        """Says who has the file, as far as it can be told."""
        try:
            return f" (process {self._header()['holder']})"
        except (DedupError, KeyError, sqlite3.Error, OSError):
            return ""

    def load(self, columns: int) -> tuple[Numbers, Hashes]:
        """Returns the rows of all pages, ascending, and their keys, uint64, shape (n, len(EXACT) + columns).

        Reads the whole file, but of the pages only their keys.  Raises `IndexCorruptError` if those, or SQLite's tables,
        are not as they were written.
        """
        self._columns = len(EXACT) + columns
        with self._errors(), closing(self._read_only()) as connection:
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise self._damaged(printable(found))
            (pages,) = connection.execute("SELECT count(*) FROM pages").fetchone()
            numbers, keys = np.empty(pages, np.uint32), np.empty((self._columns, pages), np.uint64).T
            filled = 0
            try:
                for segment in stored(connection):
                    some, own = unpack(segment, self._columns)
                    start, filled = filled, filled + len(some)
                    if filled > pages:
                        break
                    numbers[start:filled], keys[start:filled] = some, own
                if filled != pages:
                    raise ValueError(f"it has {pages:,} pages, but the keys of {filled:,}")
            except (ValueError, OverflowError) as error:
                raise self._damaged(error) from None
        return numbers, keys

    def pin(self) -> None:
        """Until `unpin` all is read as it is now, and locked once: each look-up takes a third less.

        Nothing may be written meanwhile, or else SQLite's log would grow.
        """
        with self._errors():
            self._reader.execute("BEGIN")

    def unpin(self) -> None:
        """Has what is written be read."""
        with self._errors():
            if self._reader.in_transaction:
                self._reader.execute("COMMIT")

    def _entry(self, row: Sequence[Any]) -> Entry:
        try:
            return entry_of(row)
        except ValueError as error:
            raise self._damaged(error) from None

    def entry(self, row: int) -> Entry | None:
        """Returns the entry in a row; None if it is not there."""
        with self._errors():
            found = self._reader.execute(f"SELECT {COLUMNS} FROM pages WHERE number = ?", (row,)).fetchone()
        return None if found is None else self._entry(found)

    def sketches(self, rows: Sequence[int]) -> dict[int, bytes]:
        """Returns the sketches in some rows, unchecked."""
        query = f"SELECT number, sketch FROM pages WHERE number IN ({', '.join('?' * len(rows))})"
        with self._errors():
            return dict(self._reader.execute(query, sorted(rows)))

    def row(self, page_id: str) -> int:
        """Returns the row of a page; 0 if it is not there, which costs the least."""
        with self._errors():
            found = self._reader.execute("SELECT number FROM pages WHERE page_id = ?", (page_id,)).fetchone()
        return self._number(found[0]) if found else 0

    def rows(self, page_ids: Sequence[str]) -> dict[str, int]:
        """Returns the rows of those pages that are there."""
        found: dict[str, int] = {}
        for start in range(0, len(page_ids), ASKED):
            some = page_ids[start : start + ASKED]
            query = f"SELECT page_id, number FROM pages WHERE page_id IN ({', '.join('?' * len(some))})"
            with self._errors():
                found.update(self._reader.execute(query, some))
        return {page_id: self._number(number) for page_id, number in found.items()}

    def _number(self, found: object) -> int:
        if not isinstance(found, int):  # a bit has flipped in the table of page ids
            raise self._damaged("a page has no number")
        return found

    def host(self, name: str) -> bytes | None:
        """Returns the table of a host; None if there is none, or if it is not as it was written."""
        with self._errors():
            query = f"SELECT {HOST_COLUMNS} FROM hosts WHERE name = ?"
            found = self._reader.execute(query, (name,)).fetchone()
        with suppress(ValueError):
            return None if found is None else table_of(found)[1]
        return None

    def note(self, host: str) -> bytes:
        """Returns what is noted of a host; b"" if nothing is."""
        with self._errors():
            found = self._reader.execute("SELECT octets FROM notes WHERE host = ?", (host,)).fetchone()
        return found[0] if found and isinstance(found[0], bytes) else b""

    def write_notes(self, notes: Mapping[str, bytes]) -> None:
        """Writes what is noted of hosts; those that were written the longest ago are forgotten."""
        self.check_identity()
        with self._errors(), self._writer:
            self._writer.executemany("REPLACE INTO notes (host, octets) VALUES (?, ?)", notes.items())
            self._forget_oldest("notes")

    def _forget_oldest(self, table: str) -> None:
        oldest = f"SELECT number FROM {table} ORDER BY number DESC LIMIT -1 OFFSET ?"
        self._writer.execute(f"DELETE FROM {table} WHERE number IN ({oldest})", (MAX_SAVED,))

    def write(
        self, entries: Sequence[tuple[int, Entry]], gone: Collection[int], tables: Mapping[str, bytes]
    ) -> list[int]:
        """Deletes rows, and writes entries and tables of hosts, in one transaction, and returns the rows of the entries.

        An entry comes with the row that it is in already, or with 0.
        """
        values = ", ".join("?" * (1 + len(COLUMNS.split(","))))
        replace = f"REPLACE INTO pages (number, {COLUMNS}) VALUES ({values})"
        rows = [row_of(entry) for _, entry in entries]
        rows = [(*row, checksum(row)) for row in rows]
        hosts = [(*row, checksum(row)) for row in ((name, packed(table)) for name, table in tables.items())]
        self.check_identity()
        cache = LARGE_CACHE if len(entries) > BATCH else CACHE
        with self._errors(), self._writer:
            self._writer.execute(f"PRAGMA cache_size = -{cache}")
            self._writer.executemany(f"REPLACE INTO hosts ({HOST_COLUMNS}) VALUES (?, ?, ?)", hosts)
            self._forget_oldest("hosts")
            self._writer.executemany("DELETE FROM pages WHERE number = ?", [(number,) for number in gone])
            (highest,) = self._writer.execute("SELECT coalesce(max(number), 0) FROM pages").fetchone()
            fresh = count(highest + 1)  # as SQLite would number them
            written = [number or next(fresh) for number, _ in entries]
            numbered = zip(written, rows, strict=True)
            self._writer.executemany(replace, ((number, *row) for number, row in numbered))
            added = {
                row: entry.keys for row, (before, entry) in zip(written, entries, strict=True) if not before
            }
            try:
                update(self._writer, gone, added, self._columns)
            except ValueError as error:
                raise self._damaged(error) from None
            return written

    def close(self) -> None:
        """Lets go of the file and of its lock."""
        try:
            with self._errors():
                while self._connections:
                    self._connections.pop().close()
        finally:
            self._lock.release()
