"""What a file says, read without locking or writing it: whether it is an index, and its pages."""

import os
import sqlite3
import stat
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import xxhash

from dedup.errors import IndexCorruptError, IndexMismatchError, IndexUnavailableError
from dedup.fingerprint.fingerprint import RARE, Called
from dedup.index.entry import Entry
from dedup.index.hosts import unpacked
from dedup.index.local import segments
from dedup.index.parameters import check_format
from dedup.printing import printable

#: "Shin", in the header of every SQLite file that is an index.
APPLICATION_ID = 0x5368696E
#: How a file is laid out.
LAYOUT = 8
#: The columns of a page, in the order of `entry_of`.
COLUMNS = "page_id, url, simhash, scope, digest, bands, sketch, filed, run, markup, called, rare, checksum"
#: Their types, without the checksum.
_TYPES = (str, str, bytes, bytes, bytes, bytes, bytes, int, str, bytes, bytes, bytes)
#: What simhash, scope, digest, markup, ``called`` and ``rare`` hold.
_NUMBERS = struct.Struct(f">{6 + RARE}Q")
_LENGTHS = 8, 8, 8, 8, 16, 8 * RARE
#: The columns of a host, in the order of `table_of`.
HOST_COLUMNS = "name, chrome, checksum"
#: What crawls have noted of hosts, for those after them; files that were made before have no such table.
NOTES = """
CREATE TABLE IF NOT EXISTS notes (
    number INTEGER PRIMARY KEY,     -- in the order of writing
    host TEXT NOT NULL UNIQUE,
    octets BLOB NOT NULL            -- compressed
)"""
#: What a new file begins with.
SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {LAYOUT};
CREATE TABLE header (           -- parameters, the process that holds the file, and runs that are open or have died
    name TEXT PRIMARY KEY, value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE pages (
    number INTEGER PRIMARY KEY,     -- in the order of confirmation
    page_id TEXT NOT NULL UNIQUE,
    url TEXT NOT NULL,
    simhash BLOB NOT NULL,          -- 8 bytes, big-endian
    scope BLOB NOT NULL,            -- 8 bytes, big-endian; the tables hold each key XOR scope
    digest BLOB NOT NULL,           -- of its tokens, 8 bytes, big-endian
    bands BLOB NOT NULL,            -- 8 bytes each, big-endian; empty where simhashes are looked up
    sketch BLOB NOT NULL,
    filed INTEGER NOT NULL,         -- when it was claimed, in seconds since 1970
    run TEXT NOT NULL,              -- by which run
    markup BLOB NOT NULL,           -- the digest of its markup, 8 bytes, big-endian
    called BLOB NOT NULL,           -- names and place, 8 bytes each, big-endian
    rare BLOB NOT NULL,             -- its least rare shingles, 8 bytes each, big-endian; 0: none
    checksum BLOB NOT NULL          -- XXH3 of the twelve columns above, 8 bytes, big-endian
);
CREATE INDEX pages_by_run ON pages (run, filed);   -- by which pages of a run, or before a time, are found
CREATE TABLE hosts (
    number INTEGER PRIMARY KEY,     -- in the order of saving
    name TEXT NOT NULL UNIQUE,
    chrome BLOB NOT NULL,           -- its table, compressed
    checksum BLOB NOT NULL          -- XXH3 of the two columns above, 8 bytes, big-endian
);
{segments.SCHEMA}"""


def checksum(row: Iterable[object]) -> bytes:
    """Returns the checksum of the columns, their types included."""
    return xxhash.xxh3_64_digest(ascii(tuple(row)).encode("ascii"))


def row_of(entry: Entry) -> tuple[object, ...]:
    """Returns what `entry_of` takes, without the checksum."""
    page_id, url, simhash, scope, digest, bands, sketch, filed, run, markup, called, rare = entry
    blobs = _NUMBERS.pack(simhash, scope, digest, markup, *called, *rare)
    packed = struct.pack(f">{len(bands)}Q", *bands) if bands else b""
    keys = blobs[:8], blobs[8:16], blobs[16:24], packed
    return page_id, url, *keys, sketch, filed, run, blobs[24:32], blobs[32:48], blobs[48:]


def entry_of(row: Sequence[Any]) -> Entry:
    """Returns the entry in a row, of `COLUMNS` and perhaps more.  Raises ValueError if it is not as it was written."""
    columns = row[:12]
    if row[12] != checksum(columns) or tuple(map(type, columns)) != _TYPES:
        raise ValueError("a page is not as it was written")
    page_id, url, simhash, scope, digest, bands, sketch, filed, run, markup, called, rare = columns
    blobs = simhash, scope, digest, markup, called, rare
    if tuple(map(len, blobs)) != _LENGTHS or len(bands) % 8:
        raise ValueError("a page is not as it was written")
    simhash, scope, digest, markup, *others = _NUMBERS.unpack(b"".join(blobs))
    bands = struct.unpack(f">{len(bands) // 8}Q", bands) if bands else ()
    called, rare = Called._make(others[:2]), tuple(others[2:])
    return Entry(page_id, url, simhash, scope, digest, bands, sketch, filed, run, markup, called, rare)


def table_of(row: Sequence[Any]) -> tuple[str, bytes]:
    """Returns the name and the table in a row, of `HOST_COLUMNS`.  Raises ValueError if it is not as it was written."""
    name, chrome, seal = row
    if seal != checksum((name, chrome)) or type(name) is not str or type(chrome) is not bytes:
        raise ValueError("a table is not as it was written")
    return name, unpacked(chrome)


class IndexFile:
    """A file that may be an index: read, but neither locked nor written.  Raises `DedupError`s only."""

    def __init__(self, path: str) -> None:
        self.name = printable(path)
        with self._errors():
            self.path = Path(os.path.realpath(path))

    def _header(self) -> dict[str, str]:
        """Returns what the file says of itself, read without writing to it."""
        self._check_names(self.path)
        if self.path.stat().st_size == 0:
            raise IndexCorruptError(f"the index file:{self.name} is an empty file; delete it to start anew")
        with self.path.open("rb") as file:
            start = file.read(18)
        if start.startswith(b"SQLite format 3\0") and self.path.stat().st_size % (
            int.from_bytes(start[16:18], "big") or 4096
        ):
            raise IndexCorruptError(f"the index file:{self.name} is cut short")
        with closing(self._read_only()) as connection:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            if application_id != APPLICATION_ID:
                raise IndexMismatchError(
                    f"the file {self.name} is an SQLite database, but not an index; give the index another path",
                    settings=("index",),
                )
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            self.layout = version
            check_format(f"file:{self.name}", version, LAYOUT, "layout")
            return dict(connection.execute("SELECT name, value FROM header"))

    def _check_names(self, path: Path) -> None:
        """Raises `IndexUnavailableError` if a file has another name, by which another process may have it open.

        What keeps two processes apart goes by names: the lock, and SQLite's log.
        """
        found = path.lstat()
        is_link, names = stat.S_ISLNK(found.st_mode), found.st_nlink
        if is_link or names > 1:
            what = "a symbolic link" if is_link else f"one file with {names} names (hard links)"
            raise IndexUnavailableError(
                f"the index file:{self.name} can't be opened: {printable(str(path))} is {what}, so that another crawl "
                "could have it open by another name; remove the other names, or make a copy and name that"
            )

    def _read_only(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path.as_uri() + "?mode=ro", uri=True, check_same_thread=False)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "no such" in str(error):
                raise IndexCorruptError(f"the index file:{self.name} is incomplete: {error}") from None
            if "decode" in str(error):
                raise self._damaged("one of its texts is not UTF-8") from None
            raise IndexUnavailableError(f"the index file:{self.name} can't be used: {error}") from None
        except sqlite3.DatabaseError as error:
            if "not a database" in str(error):
                message = f"the file {self.name} is not an index; give the index another path"
                raise IndexMismatchError(message, settings=("index",)) from None
            raise self._damaged(error) from None
        except UnicodeDecodeError as error:
            raise self._damaged(error) from None
        except (OSError, ValueError) as error:
            raise self._unopened(error) from None

    def _damaged(self, what: object) -> IndexCorruptError:
        return IndexCorruptError(f"the index file:{self.name} is damaged: {what}")

    def _unopened(self, error: Exception) -> IndexUnavailableError:
        """Says what stands in the way of a file, and where."""
        why = getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileExistsError | NotADirectoryError):
            why = "it is no folder"
        where = printable(str(getattr(error, "filename", None) or self.name))
        return IndexUnavailableError(
            f"the index file:{self.name} can't be opened: {where}: {why}; mend that, or give the index another path"
        )
