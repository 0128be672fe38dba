"""The tables of an index in a file, and what is looked up by what."""

from dedup.index.local import segments
from dedup.index.local.file import APPLICATION_ID, LAYOUT

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
    called BLOB NOT NULL,           -- heading, names and place, 8 bytes each, big-endian
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
