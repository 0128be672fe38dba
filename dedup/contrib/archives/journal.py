"""The journal of a cleaning is a SQLite file.  It holds the fingerprint of every page, and what became of the page.

It survives a kill at any time, so no page is read twice.  It also gives the order in which pages are judged: by the time
at which they were fetched, and then by URL, whatever file they are in.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dedup.contrib.archives.capture import NEVER, Capture
from dedup.contrib.archives.entries import Imprint, Original, Place, Row, Verdict, storable
from dedup.contrib.archives.packing import canonical_of
from dedup.droplog.record import Record
from dedup.files import make_private
from dedup.fingerprint.shingles import Hashes

#: Verdicts that are written at once, and that a kill may cost: half a second's work.
UNSAVED = 500

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pages (
    position INTEGER PRIMARY KEY,   -- which item it is, of all inputs
    turn REAL NOT NULL,             -- pages are judged in this order
    fetched INTEGER NOT NULL,       -- microseconds since 1970
    url TEXT NOT NULL,
    input INTEGER NOT NULL,         -- the rank of its input, by name
    name TEXT NOT NULL,             -- what it is called if it has no URL
    record_id TEXT NOT NULL,        -- what its archive calls it
    size INTEGER NOT NULL,          -- bytes
    payload BLOB NOT NULL,          -- a digest of its bytes
    fingerprint BLOB NOT NULL,
    keys BLOB NOT NULL              -- what it is found by; empty if it can't be judged
);
CREATE INDEX IF NOT EXISTS turns ON pages (turn, fetched, url, input);
CREATE TABLE IF NOT EXISTS parts (
    position INTEGER PRIMARY KEY,
    part INTEGER NOT NULL           -- what is judged together
);
CREATE INDEX IF NOT EXISTS by_part ON parts (part);
CREATE TABLE IF NOT EXISTS judged (
    part INTEGER PRIMARY KEY,
    stats TEXT NOT NULL,
    rare BLOB NOT NULL              -- 64 bits each, by which its pages were looked up
);
CREATE TABLE IF NOT EXISTS dropped (
    position INTEGER PRIMARY KEY,
    of INTEGER NOT NULL,            -- the position of the kept page; -1: it is in another index
    of_url TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS said (
    number INTEGER PRIMARY KEY,
    verdict BLOB NOT NULL           -- of the index, packed; in the order in which it was asked
);
CREATE TABLE IF NOT EXISTS logged (
    position INTEGER PRIMARY KEY,
    record TEXT NOT NULL            -- of the drop log
);
"""
_ROWS = "SELECT position, CASE url WHEN '' THEN name ELSE url END, size, fingerprint, input < 0 FROM pages"
#: Of those with one turn, the one that was fetched first; then by URL, by the name of the input, by position.
_TURNS = "ORDER BY turn, fetched, url, input, position"

#: Of a page, for which other one it was dropped.
_KEPT = """of_url, kept.fetched, kept.record_id, kept.payload FROM pages AS own
LEFT JOIN dropped ON dropped.position = own.position LEFT JOIN pages AS kept ON kept.position = dropped.of"""


def _original(
    payload: bytes, of_url: str | None, fetched: int | None, record_id: str | None, kept: bytes | None
) -> Original | None:
    if of_url is None:
        return None
    return Original(of_url, NEVER if fetched is None else fetched, record_id or "", kept == payload)


class Journal:
    """An open journal.  Everything may raise sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        make_private(path)
        self._file = sqlite3.connect(path, isolation_level=None)
        try:
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.executescript(_SCHEMA)
        except BaseException:
            self._file.close()
            raise
        self._unsaved = 0  # verdicts of the index

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the fact of that name."""
        found = self._file.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return json.loads(found[0]) if found else default

    def set(self, **facts: Any) -> None:
        """Writes facts by their names."""
        self._file.executemany(
            "REPLACE INTO facts VALUES (?, ?)", [(n, json.dumps(v)) for n, v in facts.items()]
        )

    def add(
        self, pages: Iterable[tuple[Place, Capture, Imprint]], facts: Mapping[str, Any], keep: str
    ) -> None:
        """Adds pages with their places and fingerprints, and sets facts, in one step."""
        rows = [
            (
                place.position,
                -math.inf if place.input < 0 else page.turn(tokens, keep, canonical_of(packed)),
                page.fetched,
                storable(page.url),
                place.input,
                storable(page.name),
                storable(page.record_id),
                len(page.body),
                payload,
                packed,
                keys,
            )
            for place, page, (payload, packed, tokens, keys) in pages
        ]
        self.add_rows(rows, facts)

    def add_rows(self, rows: Iterable[tuple[Any, ...]], facts: Mapping[str, Any]) -> None:
        """Adds rows of the table of pages.  Their texts have to be such that SQLite can store them."""
        self._file.execute("BEGIN")
        self._file.executemany("REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self.set(**facts)
        self._file.execute("COMMIT")

    def count(self) -> int:
        """Returns the number of pages."""
        return int(self._file.execute("SELECT count(*) FROM pages").fetchone()[0])

    def in_turn(self) -> Iterator[Row]:
        """Yields the pages in the order in which they are judged."""
        return map(Row._make, self._file.execute(f"{_ROWS} {_TURNS}"))

    def page(self, position: int) -> Row:
        """Returns the page at a position."""
        return Row._make(self._file.execute(f"{_ROWS} WHERE position = ?", (position,)).fetchone())

    def has_keys(self) -> bool:
        """Returns whether any page has a key, such as a length, by which one of those alike is chosen."""
        query = "SELECT 1 FROM pages WHERE turn <> 9e999 AND input >= 0 LIMIT 1"
        return self._file.execute(query).fetchone() is not None

    def names(self) -> Iterator[str]:
        """Yields what the pages without a URL are called."""
        return (
            name for (name,) in self._file.execute("SELECT name FROM pages WHERE url = '' AND input >= 0")
        )

    def begin_verdicts(self) -> None:
        """Forgets what was dropped.  None of the verdicts that follow counts before `end_verdicts`."""
        self._file.execute("BEGIN")
        self._file.execute("DELETE FROM dropped")
        self._file.execute("DELETE FROM logged")

    def said(self) -> Iterator[bytes]:
        """Yields what the index has said before the run was interrupted, in its order."""
        for (verdict,) in self._file.execute("SELECT verdict FROM said ORDER BY number"):
            yield verdict

    def say(self, verdict: bytes) -> None:
        """Notes what the index says next.  What was said before `begin_verdicts` stays, and so does what was said since."""
        self._file.execute("INSERT INTO said (verdict) VALUES (?)", (verdict,))
        self._unsaved += 1
        if self._unsaved == UNSAVED:
            self._unsaved = 0
            self._file.execute("COMMIT")
            self._file.execute("BEGIN")

    def drop(self, position: int, of: int, of_url: str) -> None:
        """Notes that a page is a near-duplicate of another."""
        self._file.execute("REPLACE INTO dropped VALUES (?, ?, ?)", (position, of, of_url))

    def log(self, position: int, record: Record) -> None:
        """Notes the record of a page for the drop log."""
        self._file.execute("REPLACE INTO logged VALUES (?, ?)", (position, json.dumps(record)))

    def keep(self, position: int) -> Record:
        """Takes back that a page is a near-duplicate, and returns its record."""
        query = "SELECT record FROM logged WHERE position = ?"
        found: Record = json.loads(self._file.execute(query, (position,)).fetchone()[0])
        self._file.execute("DELETE FROM logged WHERE position = ?", (position,))
        self._file.execute("DELETE FROM dropped WHERE position = ?", (position,))
        return found

    def logged(self) -> Iterator[Record]:
        """Yields the records of the drop log, in the order in which their pages were judged."""
        query = f"SELECT record FROM logged JOIN pages USING (position) {_TURNS}"
        return (json.loads(record) for (record,) in self._file.execute(query))

    def explained(self) -> Iterator[tuple[str, str, Record, str | None, str | None]]:
        """Yields for each record of the drop log: its page's record_id and name, itself, and for which page that was dropped."""
        query = f"SELECT own.record_id, own.name, record, {_KEPT} JOIN logged USING (position) ORDER BY own.position"
        for own, name, record, of_url, _, of, _ in self._file.execute(query):
            yield own, name, json.loads(record), of, of_url

    def end_verdicts(self, **facts: Any) -> None:
        """Notes that all verdicts are there."""
        self.set(**facts)
        self._file.execute("COMMIT")

    def keys(self) -> Iterator[tuple[int, str, bytes]]:
        """Yields the position of each page, its URL, and the keys by which it is found."""
        yield from self._file.execute("SELECT position, url, keys FROM pages")

    def plan(self, parts: Iterable[tuple[int, int]]) -> None:
        """Notes in which part each page is judged."""
        self._file.execute("BEGIN")
        self._file.executemany("REPLACE INTO parts VALUES (?, ?)", parts)
        self.set(planned=True)
        self._file.execute("COMMIT")

    def left(self) -> dict[int, int]:
        """Returns the number of pages of each part that is not judged yet, the largest part first."""
        query = (
            "SELECT part, count(*) FROM parts WHERE part NOT IN (SELECT part FROM judged) "
            "GROUP BY part ORDER BY count(*) DESC"
        )
        return dict(self._file.execute(query).fetchall())

    def show(self, path: Path, part: int) -> None:
        """Shows the pages of a part of another journal as if they were in this one."""
        self._file.execute("ATTACH ? AS whole", (str(path),))
        self._file.execute(
            "CREATE TEMP VIEW pages AS SELECT every.* FROM whole.pages AS every "
            f"JOIN whole.parts USING (position) WHERE part = {part}"
        )

    def take(self, part: int, path: Path) -> None:
        """Takes over the verdicts on a part from the part's own journal in one step."""
        self._file.execute("ATTACH ? AS own", (str(path),))
        self._file.execute("BEGIN")
        for table in ("dropped", "logged"):
            self._file.execute(f"REPLACE INTO {table} SELECT * FROM own.{table}")
        stats, rare = (
            self._file.execute("SELECT value FROM own.facts WHERE name = ?", (name,)).fetchone()[0]
            for name in ("stats", "rare")
        )
        self._file.execute(
            "REPLACE INTO judged VALUES (?, ?, ?)", (part, stats, bytes.fromhex(json.loads(rare)))
        )
        self._file.execute("COMMIT")
        self._file.execute("DETACH own")

    def join(self, parts: Mapping[int, int]) -> None:
        """Merges parts into others.  The verdicts on them are forgotten."""
        self._file.execute("BEGIN")
        for table in ("dropped", "logged"):
            query = f"DELETE FROM {table} WHERE position IN (SELECT position FROM parts WHERE part = ?)"
            self._file.executemany(query, [(part,) for part in parts])
        self._file.executemany("DELETE FROM judged WHERE part = ?", [(part,) for part in parts])
        self._file.executemany(
            "UPDATE parts SET part = ? WHERE part = ?", [(to, part) for part, to in parts.items()]
        )
        self._file.execute("COMMIT")

    def asked(self) -> Iterator[tuple[int, Hashes]]:
        """Yields by which keys the pages of each judged part were looked up."""
        for part, rare in self._file.execute("SELECT part, rare FROM judged"):
            yield part, np.frombuffer(rare, np.uint64)

    def counted(self) -> Iterator[dict[str, Any]]:
        """Yields the stats of each part."""
        for (stats,) in self._file.execute("SELECT stats FROM judged ORDER BY part"):
            yield json.loads(stats)

    def verdicts(self) -> Iterator[Verdict]:
        """Yields what became of each page, by position."""
        query = f"SELECT own.position, own.url, own.payload, {_KEPT} ORDER BY own.position"
        for position, url, payload, *kept in self._file.execute(query):
            yield Verdict(position, url, payload, _original(payload, *kept))

    def stand_in(self, url: str, fetched: int, payload: bytes) -> Original | None:
        """Returns the page that was kept in the place of another; None if that one is kept, or no page of the inputs.

        The other is the one at this URL and of this time, or else any with this digest of its bytes.
        """
        for columns, values in (("url, fetched", (storable(url), fetched)), ("payload", (payload,))):
            self._file.execute(f"CREATE INDEX IF NOT EXISTS by_{columns[:3]} ON pages ({columns})")
            wanted = " AND ".join(f"own.{name} = ?" for name in columns.split(", "))
            query = f"SELECT {_KEPT} WHERE {wanted} ORDER BY of_url IS NOT NULL LIMIT 1"
            if found := self._file.execute(query, values).fetchone():
                return _original(payload, *found)
        return None

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()
