"""What servers have said of the pages of a site by which they can tell whether one has changed: ETag and Last-Modified.

Of each such page it is held what a crawl needs that is told "not modified": what the page says is among the texts, and here is
what is missing there, and the links that were followed from it.  A page is held when it was handed over, items and all.
"""

from typing import NamedTuple

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
FIND = f"""
SELECT {_FIELDS} FROM terms AS one WHERE page = (SELECT number FROM pages WHERE url = ?) AND NOT EXISTS (
    SELECT 1 FROM terms AS other WHERE other.etag = one.etag AND other.etag <> '' AND other.digest <> one.digest)
"""
WRITE = f"INSERT OR REPLACE INTO terms (page, {_FIELDS}) SELECT number, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM pages WHERE url = ?"
# Of these it is no longer known what they say.
FORGET_TEXTLESS = """
DELETE FROM terms WHERE page NOT IN (SELECT page FROM versions WHERE text IN (SELECT number FROM texts))
"""


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
