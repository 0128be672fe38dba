"""The journal of a cleaning is a SQLite file.  It holds the fingerprint of every page, and what became of the page.

It survives a kill at any time, so no page is read twice.  It also gives the order in which pages are judged: by the time
at which they were fetched, and then by URL, whatever file they are in.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dedup.archive.capture import NEVER, Capture
from dedup.droplog.record import Record
from dedup.files import make_private
from dedup.fingerprint.shingles import Hashes

__all__ = ["Journal", "Made", "Original", "Place", "Row", "Verdict", "storable"]

#: A digest of the bytes of a page; its fingerprint, packed; how many tokens it has; and 64 bits each that it is found by.
Made = tuple[bytes, bytes, int, bytes]

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
CREATE TABLE IF NOT EXISTS logged (
    position INTEGER PRIMARY KEY,
    record TEXT NOT NULL            -- of the drop log
);
"""


_ROWS = "SELECT position, CASE url WHEN '' THEN name ELSE url END, size, fingerprint, input < 0 FROM pages"


#: Of those with one turn, the one that was fetched first; then by URL, by the name of the input, by position.
_TURNS = "ORDER BY turn, fetched, url, input, position"


class Place(NamedTuple):
    """Where a page is."""

    position: int  #: which item it is, of all inputs
    input: int  #: the rank of its input by name; -1 if that is one that the others are cleaned against


class Row(NamedTuple):
    """A page that is to be judged."""

    position: int
    url: str  #: or its name
    size: int
    fingerprint: bytes
    is_other: bool = False  #: whether it is of what the others are cleaned against


class Original(NamedTuple):
    """The page for which another was dropped."""

    url: str
    fetched: int  #: microseconds since 1970; `NEVER` if it is not known
    record_id: str
    is_identical: bool  #: whether both have the same bytes


class Verdict(NamedTuple):
    """What became of a page."""

    position: int
    url: str
    payload: bytes  #: a digest of its bytes
    kept: Original | None  #: for which page it was dropped; None if it is kept, or not judged yet

    def is_of(self, page: Capture, payload: bytes) -> bool:
        """Returns whether this is the verdict on a page with this digest."""
        return self.payload == payload and self.url == storable(page.url)


class Journal:
    """An open journal.  Everything may raise sqlite3.Error."""

    def __init__(self, path: Path) -> None:
        make_private(path)
        self._file = sqlite3.connect(path, isolation_level=None)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = NORMAL")
        self._file.executescript(_SCHEMA)

    def get(self, name: str, default: Any = None) -> Any:
        """Returns the fact of that name."""
        found = self._file.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return json.loads(found[0]) if found else default

    def set(self, **facts: Any) -> None:
        """Writes facts by their names."""
        self._file.executemany(
            "REPLACE INTO facts VALUES (?, ?)", [(n, json.dumps(v)) for n, v in facts.items()]
        )

    def add(self, pages: Iterable[tuple[Place, Capture, Made]], facts: Mapping[str, Any], keep: str) -> None:
        """Adds pages with their places and fingerprints, and sets facts, in one step."""
        rows = [
            (
                place.position,
                -math.inf if place.input < 0 else page.turn(tokens, keep),
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

    def in_turn(self, part: int | None = None) -> Iterator[Row]:
        """Yields the pages, or those of one part, in the order in which they are judged."""
        if part is None:
            return map(Row._make, self._file.execute(f"{_ROWS} {_TURNS}"))
        query = f"{_ROWS} JOIN parts USING (position) WHERE part = ? {_TURNS}"
        return map(Row._make, self._file.execute(query, (part,)))

    def page(self, position: int) -> Row:
        """Returns the page at a position."""
        return Row._make(self._file.execute(f"{_ROWS} WHERE position = ?", (position,)).fetchone())

    def has_keys(self) -> bool:
        """Returns whether any page has a key, such as a length, by which one of those alike is chosen."""
        query = "SELECT 1 FROM pages WHERE turn <> 9e999 AND input >= 0 LIMIT 1"
        return self._file.execute(query).fetchone() is not None

    def begin_verdicts(self) -> None:
        """Forgets what was dropped.  None of the verdicts that follow counts before `end_verdicts`."""
        self._file.execute("BEGIN")
        self._file.execute("DELETE FROM dropped")
        self._file.execute("DELETE FROM logged")

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
        for (record,) in self._file.execute(
            f"SELECT record FROM logged JOIN pages USING (position) {_TURNS}"
        ):
            yield json.loads(record)

    def end_verdicts(self, **facts: Any) -> None:
        """Notes that all verdicts are there."""
        self.set(**facts)
        self._file.execute("COMMIT")

    # --- Parts

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

    def take(self, part: int, folder: Path) -> None:
        """Takes over the verdicts on a part from the part's own journal in one step, and deletes that journal."""
        path = folder / f"part{part}"
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
        for old in folder.glob(f"{path.name}[.-]*"):
            old.unlink()
        path.unlink()

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

    # --- What became of the pages

    def verdicts(self) -> Iterator[Verdict]:
        """Yields what became of each page, by position."""
        query = (
            "SELECT own.position, own.url, own.payload, of_url, ifnull(kept.fetched, ?), "
            "ifnull(kept.record_id, ''), own.payload = kept.payload FROM pages AS own "
            "LEFT JOIN dropped ON dropped.position = own.position "
            "LEFT JOIN pages AS kept ON kept.position = dropped.of ORDER BY own.position"
        )
        for position, url, payload, of_url, fetched, record_id, same in self._file.execute(query, (NEVER,)):
            kept = None if of_url is None else Original(of_url, fetched, record_id, bool(same))
            yield Verdict(position, url, payload, kept)

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()


def storable(text: str) -> str:
    """Returns a text without lone surrogates, which SQLite can't store."""
    return text.encode("utf-8", "replace").decode()
