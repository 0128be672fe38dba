"""What servers have said of the pages of a site by which they can tell whether one has changed: ETag and Last-Modified.

Of each such page it is held what a crawl needs that is told "not modified": what the page says is among the texts, and here is
what is missing there, and the links that were followed from it.  A page is held when it was handed over, items and all.
"""

import sqlite3
from typing import NamedTuple

from dedup.texts.texts import name_of

#: Pages that are written at once.
BATCH = 64

SCHEMA = """
CREATE TABLE IF NOT EXISTS terms (
    page INTEGER PRIMARY KEY, id TEXT NOT NULL, etag TEXT NOT NULL, modified TEXT NOT NULL, vary TEXT NOT NULL,
    search TEXT NOT NULL, asked INTEGER NOT NULL, digest INTEGER NOT NULL, size INTEGER NOT NULL, heading TEXT NOT NULL,
    links BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS terms_by_etag ON terms (etag, digest) WHERE etag <> '';
"""
_FIELDS = "id, etag, modified, vary, search, asked, digest, size, heading, links"
# A server that has one ETag for two contents doesn't tell them apart by it.
_FIND = f"""
SELECT {_FIELDS} FROM terms AS one WHERE page = (SELECT number FROM pages WHERE url = ?) AND NOT EXISTS (
    SELECT 1 FROM terms AS other WHERE other.etag = one.etag AND other.etag <> '' AND other.digest <> one.digest)
"""
_WRITE = f"INSERT OR REPLACE INTO terms (page, {_FIELDS}) SELECT number, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM pages WHERE url = ?"


class Held(NamedTuple):
    """What is held of a page."""

    page_id: str
    etag: str  #: as the server wrote it; "" without one
    modified: str  #: likewise
    vary: str  #: the names of the headers by which the server chooses what it answers
    search: str  #: which parameters of its URL don't matter, as the server said; "" if it did not
    asked: int  #: a digest of what the page was asked for with, as SQLite holds it
    digest: int  #: of its tokens outside marked chrome, likewise
    size: int  #: bytes that were downloaded
    heading: str  #: the words of its title and first h1
    links: bytes  #: the requests that were made of it, packed


class Validators:
    """The validators of a file that is open; every method may raise `sqlite3.Error`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self.written: dict[str, Held | None] = {}  #: held back, by URL; None: what was held is forgotten

    def find(self, url: str) -> Held | None:
        """Returns what is held of a page; None if nothing is, or if its ETag is that of another content, too."""
        if (name := name_of(url)) in self.written:
            return self.written[name]
        found = self._database.execute(_FIND, (name,)).fetchone()
        return found and Held._make(found)

    def write(self, url: str, held: Held | None) -> None:
        """A page was handed over; None: nothing can be held of it."""
        self.written[name_of(url)] = held
        if len(self.written) >= BATCH:
            with self._database:
                self.write_all()
            self.written.clear()

    def write_all(self) -> None:
        """Writes what is held back, in the transaction of the caller, who clears it when that has ended well."""
        for url, held in self.written.items():
            self._database.execute("INSERT OR IGNORE INTO pages (url) VALUES (?)", (url,))
            if held is None:
                query = "DELETE FROM terms WHERE page = (SELECT number FROM pages WHERE url = ?)"
                self._database.execute(query, (url,))
            else:
                self._database.execute(_WRITE, (*held, url))

    def forget_textless(self) -> None:
        """Forgets the pages of which it is no longer known what they say."""
        known = "SELECT page FROM versions WHERE text IN (SELECT number FROM texts)"
        self._database.execute(f"DELETE FROM terms WHERE page NOT IN ({known})")
