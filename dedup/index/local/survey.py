"""A look at an index in a file: a snapshot, so that a crawl that writes to it meanwhile changes nothing.

What is damaged is passed over page by page: SQLite says which part of a file it can't read only when it
is asked for it.
"""

import math
import os
import sqlite3
from array import array
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dedup.errors import IndexCorruptError
from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.plans import EXACT
from dedup.fingerprint.shingles import Hashes
from dedup.index.entry import Entry
from dedup.index.lifecycle import State
from dedup.index.local.file import COLUMNS, HOST_COLUMNS, IndexFile, entry_of, table_of
from dedup.index.local.segments import stored, unpack
from dedup.index.local.tables import SortedTables
from dedup.index.parameters import Parameters
from dedup.index.survey import BATCH, Finding, KnownHost, StoredPage, Survey

#: Messages of SQLite's own check that are passed on.
MESSAGES = 20
#: No page's row is smaller, in bytes.  So no more rows are asked for one by one than a file may have.
ROW = 64
#: No page was ever given a number beyond this.
HIGHEST = 1 << 62
#: How to repair the table of a host.
RELEARNED = "nothing has to be done: the host counts as unknown, and the next page that is kept of it begins a new table"

#: Every run that has filed pages, each found by one step in the index of the runs; and the pages of one.
_RUNS = """
WITH RECURSIVE found(run) AS (
    SELECT min(run) FROM pages UNION ALL SELECT (SELECT min(run) FROM pages WHERE run > found.run) FROM found WHERE run NOTNULL
) SELECT run FROM found WHERE run NOTNULL
"""
_NUMBERS_OF = "SELECT number FROM pages WHERE run = ? AND filed < ?"
#: A row's number, and the page that it holds; None if it can't be read.
Row = tuple[int, Entry | None]


def _entry(row: Sequence[Any]) -> Entry | None:
    try:
        entry = entry_of(row)
        (entry.page_id + entry.url + entry.run).encode()
    except ValueError:  # also for surrogates, which stand for bytes that are not UTF-8
        return None
    return entry


def survey_file(path: str, adopt: Callable[[Mapping[str, str]], Parameters]) -> "FileSurvey | None":
    """Returns the survey of a file; None if there is no such file.  ``adopt`` checks the parameters that are stored."""
    return FileSurvey(path, adopt) if os.path.lexists(path) else None


class FileSurvey(IndexFile, Survey):
    """What a file holds, open for reading: done pages only."""

    def __init__(self, path: str, adopt: Callable[[Mapping[str, str]], Parameters]) -> None:
        super().__init__(path)
        with self._errors():
            header = self._header()
            self._connection = self._read_only()
        self._connection.text_factory = lambda octets: octets.decode("utf-8", "surrogateescape")
        self._connection.isolation_level = None
        try:
            self._query("BEGIN")
            for columns, table in ((COLUMNS, "pages"), (HOST_COLUMNS, "hosts")):
                self._query(f"SELECT {columns} FROM {table} LIMIT 0")  # raises if they are not there
            Survey.__init__(self, f"file:{self.name}", adopt(header), header)
        except BaseException:
            self._connection.close()
            raise

    def _query(self, statement: str, *values: object) -> list[Any]:
        """Returns all rows of an answer."""
        with self._errors():
            return self._connection.execute(statement, values).fetchall()

    def _rows(self) -> Iterator[Row]:
        """Yields every row, by number.  Where that fails, the next `BATCH` are read one by one."""
        statement = f"SELECT {COLUMNS}, number FROM pages WHERE number"
        at, left = 0, os.path.getsize(self.path) // ROW
        while left > 0 and at < HIGHEST:
            try:
                for row in self._connection.execute(f"{statement} > ? ORDER BY number", (at,)):
                    number = row[-1]
                    yield number, _entry(row)
                    at = max(at, number)
                return
            except sqlite3.DatabaseError:
                for number in range(at + 1, at + 1 + BATCH):
                    yield from self._row(f"{statement} = ?", number)
                at += BATCH
                left -= BATCH

    def _rows_of(self, run: str, before: float) -> Iterator[Row]:
        """Yields the rows of a run, or filed ``before`` a time, by number; if SQLite can't tell them, every row."""
        statement = f"SELECT {COLUMNS}, number FROM pages WHERE number = ?"
        try:
            runs = [run] if run else [name for (name,) in self._connection.execute(_RUNS)]
            asked = ((name, before) for name in runs)
            found = (self._connection.execute(_NUMBERS_OF, values).fetchall() for values in asked)
            numbers = sorted(number for rows in found for (number,) in rows)
        except sqlite3.DatabaseError:
            yield from self._rows()
        else:
            for number in numbers:
                yield from self._row(statement, number)

    def _mispacked(self, numbers: Hashes, keys: Hashes, unread: Collection[int]) -> Iterator[str]:
        """Yields the segments that are not as they were written, or whose pages are not those in the rows.

        ``numbers`` and ``keys`` are those of the rows that could be read.
        """
        found = []
        try:
            for segment in stored(self._connection):
                try:
                    found.append(unpack(segment, keys.shape[1]))
                except ValueError as error:
                    yield f"segment {segment[0]}: {error}"
        except sqlite3.DatabaseError as error:
            yield f"they can't be read: {error}"
        packed = np.concatenate([np.empty(0, np.uint32), *(some for some, _ in found)])
        packed_keys = np.concatenate([np.empty((0, keys.shape[1]), np.uint64), *(own for _, own in found)])
        kept = ~np.isin(packed, list(unread))
        if not (np.array_equal(packed[kept], numbers) and np.array_equal(packed_keys[kept], keys)):
            yield "they are not those of the pages"

    async def hosts(self) -> AsyncIterator[KnownHost]:
        try:
            numbers = self._connection.execute("SELECT number FROM hosts").fetchall()
        except sqlite3.DatabaseError:  # SQLite's own check tells of it
            return
        for (number,) in numbers:
            found = None
            try:
                query = f"SELECT {HOST_COLUMNS} FROM hosts WHERE number = ?"
                for found in self._connection.execute(query, (number,)):
                    yield self._host(found)
            except (sqlite3.DatabaseError, ValueError):
                name = found and found[0]
                yield KnownHost(name if type(name) is str else f"row {number}", None)

    def _host(self, columns: Sequence[Any]) -> KnownHost:
        name, octets = table_of(columns)
        name.encode()  # raises for surrogates, which stand for bytes that are not UTF-8
        return KnownHost(name, Chrome.from_bytes(octets))

    def _row(self, statement: str, number: int) -> Iterator[Row]:
        try:
            for row in self._connection.execute(statement, (number,)):
                yield number, _entry(row)
        except sqlite3.DatabaseError:
            yield number, None

    async def count(self) -> int:
        try:
            ((number,),) = self._query("SELECT count(*) FROM pages")
        except IndexCorruptError:
            return 0
        return int(number)

    async def _pages(self, run: str, before: float) -> AsyncIterator[StoredPage]:
        everything = not run and before == math.inf
        for _, entry in self._rows() if everything else self._rows_of(run, before):
            yield self.readable(entry, State.DONE)

    async def findings(self) -> AsyncIterator[Finding]:
        for broken in self._sqlite():
            yield broken
        keys, numbers, unread = array("Q"), array("Q"), set[int]()
        for number, entry in self._rows():
            if entry is None:
                unread.add(number)
                yield Finding("unreadable pages", f"row {number}: it is not as it was written")
            elif flaw := self.parameters.flaw(entry):
                unread.add(number)
                yield Finding("unreadable pages", f"row {number}: {flaw}")
            else:
                numbers.append(number)
                keys.extend(entry.keys)
        filed = np.array(keys, np.uint64).reshape(-1, len(EXACT) + self.parameters.plan.columns)
        for what in self._mispacked(np.array(numbers, np.uint64), filed, unread):
            yield Finding("packed keys", what)
        try:  # whether a crawl could look up what is readable
            SortedTables(self.parameters.plan, filed).check()
        except AssertionError as error:
            repair = "report it: it is a fault of this program"
            yield Finding("tables built from the file", str(error), repair)
        async for host in self.hosts():
            if host.table is None:
                what = f"{host.name}: its table is not as it was written"
                yield Finding("damaged tables of hosts", what, RELEARNED)

    def _sqlite(self) -> Iterator[Finding]:
        """Yields what SQLite finds, and page ids that it should not have let pass."""
        try:
            for (message,) in self._query(f"PRAGMA integrity_check({MESSAGES})"):
                if message != "ok":
                    for line in message.splitlines():
                        yield Finding("SQLite's integrity check", line)
            twice = "SELECT page_id, count(*) FROM pages NOT INDEXED GROUP BY page_id HAVING count(*) > 1"
            for page_id, count in self._query(twice):
                yield Finding("page ids filed twice", f"{page_id!r}: {count} times")
        except IndexCorruptError as error:
            yield Finding("SQLite's integrity check", str(error))

    async def stored(self) -> tuple[int | None, str]:
        parts = [self.path, self.path.with_name(self.path.name + "-wal")]
        size = sum(part.stat().st_size for part in parts if part.exists())
        return size, f"the file, of layout {self.layout}, and its log"

    async def close(self) -> None:
        self._connection.close()
