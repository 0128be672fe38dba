"""The history of a site: which crawl met which page, and what the page said then.

A page is known by its URL without session ids.  It has a version for each time that something became of it, and each tells by
which crawl it was met first and last, and what had happened by the first, in a word.  The texts of pages that were dropped as
near-duplicates may be stored here, too, for reports.

Whatever is written is held back until `flush`, which writes it at once: so two crawls can write to one file.
"""

import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from dedup.contrib.changes import validators
from dedup.contrib.changes.validators import Held
from dedup.files import make_private
from dedup.filter.change import Said
from dedup.index.lifecycle import CRAWL
from dedup.texts.texts import SCHEMA, Text, Texts, name_of

#: A file may have about this many bytes, and this many pages are written at once.
MAX_FILE, BATCH = 1_000_000_000, 64
#: No more edits of a page are written, and no more characters of each text in them.
MAX_EDITS, MAX_WORDS = 50, 1_000
#: What can be said of a version of a page: that the page is there...
HERE = ("new", "changed", "moved", "hidden", "back")
#: ... or is not: its content is elsewhere, or nowhere.
AWAY = ("left", "redirected", "gone")

_TABLES = f"""
PRAGMA synchronous = OFF;
{SCHEMA}{validators.SCHEMA}
CREATE TABLE IF NOT EXISTS crawls (
    number INTEGER PRIMARY KEY, run TEXT UNIQUE, began REAL NOT NULL, ended REAL, whole INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS pages (number INTEGER PRIMARY KEY, url TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS versions (
    page INTEGER, first INTEGER, last INTEGER NOT NULL, handed INTEGER, word TEXT NOT NULL, digest INTEGER, text INTEGER,
    other TEXT, edits BLOB, carried INTEGER, PRIMARY KEY (page, first)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS version_by_first ON versions (first);
"""
_LAST = """
SELECT url, page, first, last, word, digest, text, other, edits, carried, EXISTS (
    SELECT 1 FROM crawls WHERE crawls.number = handed AND ended IS NOT NULL)
FROM pages JOIN versions ON page = number
"""
_PAGE = "(SELECT number FROM pages WHERE url = ?)"
_PAGE_IS_KNOWN = "INSERT OR IGNORE INTO pages (url) VALUES (?)"
_WRITE = """
INSERT INTO versions SELECT number, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM pages WHERE url = ? ON CONFLICT DO UPDATE SET
    last = excluded.last, handed = excluded.handed, digest = excluded.digest, text = excluded.text, other = excluded.other,
    edits = excluded.edits, carried = excluded.carried,
    word = CASE WHEN word = 'new' AND excluded.word = 'changed' THEN word ELSE excluded.word END
"""
# Of a crawl by several workers each has a run.  One that was stopped doesn't count if another has begun after it.
_CRAWLS = """
SELECT min(number), min(run), min(began), max(ended), coalesce(min(whole) FILTER (WHERE ended IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM crawls AS next WHERE substr(next.run, 1, :name) = substr(crawls.run, 1, :name) AND next.began > crawls.ended)), 0)
FROM crawls GROUP BY substr(run, 1, :name) ORDER BY 1
"""
_MEET = "UPDATE versions SET last = ?, handed = coalesce(?, handed), carried = coalesce(?, carried) WHERE page = ? AND first = ?"


class Version(NamedTuple):
    """What is known of a page since some crawl."""

    url: str
    page: int
    first: int  #: the crawl that met it first
    last: int
    word: str  #: what had happened to the page by then: one of `HERE` or `AWAY`
    digest: int | None  #: of its tokens outside marked chrome, as SQLite holds it: see `signed`
    text: int | None  #: the number of its text
    other: str | None  #: the URL from which it has moved, or to which
    packed: bytes | None  #: its `edits`
    carried: int | None  #: what its request carried when it was last handed over; None if that is not known
    is_handed: int  #: 1 if a crawl that has ended as it should has handed it over

    @property
    def is_here(self) -> bool:
        """True if the page was there."""
        return self.word not in AWAY

    @property
    def edits(self) -> list[Said]:
        """Of a page that has changed: the old words and the new ones, place by place."""
        return [Said(*said) for said in json.loads(zlib.decompress(self.packed))] if self.packed else []


class Crawl(NamedTuple):
    """A crawl that has written here."""

    number: int
    run: str  #: the first of its runs, by name
    began: float  #: seconds since 1970
    ended: float | None  #: None: it still runs, or was killed
    is_whole: int  #: 1 if it was not stopped, and has looked for what it had not met


class History:
    """An open history; every method may raise `sqlite3.Error`."""

    def __init__(self, path: Path, max_file: int = MAX_FILE) -> None:
        self.crawl = 0  #: the number of the crawl that writes
        self._run = 0  #: that of its run, one of several if it has several workers
        self._max_file = max_file
        self._held: list[Callable[[], object]] = []  # what is held back, in its order
        self._pairs: list[Callable[[], object]] = []  # likewise, and done when the texts of all are there
        self._urls = set[str]()  # pages of which versions or validators are held back
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # SQLite says what is wrong
            make_private(path)  # SQLite gives the files beside it the same mode
        self._database = sqlite3.connect(path, check_same_thread=False)
        self.texts = Texts(self._database)
        try:
            self._database.executescript(_TABLES)
            if "carried" not in {row[1] for row in self._database.execute("PRAGMA table_info(versions)")}:
                self._database.execute("ALTER TABLE versions ADD carried INTEGER")  # of a file of before
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, run: str) -> None:
        """A run begins, or goes on.  It is the first of its crawl, or one more worker joins that."""
        with self._database as database:
            database.execute(
                "INSERT INTO crawls (run, began) VALUES (?, ?) ON CONFLICT DO UPDATE SET ended = NULL, whole = 0",
                (run, time.time()),
            )
            query = "SELECT max(number) FILTER (WHERE run = ?), min(number) FROM crawls WHERE substr(run, 1, ?) = ?"
            self._run, self.crawl = database.execute(query, (run, CRAWL, run[:CRAWL])).fetchone()

    def last(self, url: str) -> Version | None:
        """Returns the last version of a page; None if it was never met."""
        if url in self._urls:
            self.flush()
        return next(self.versions("url = ? ORDER BY first DESC LIMIT 1", url), None)

    def versions(self, condition: str, *values: object) -> Iterator[Version]:
        """Yields the versions that fulfil a condition in SQL."""
        for row in self._database.execute(f"{_LAST} WHERE {condition}", values):
            yield Version._make(row)

    def lasting(self) -> Iterator[Version]:
        """Yields the last version of each page that is there."""
        newest = "first = (SELECT max(first) FROM versions AS one WHERE one.page = versions.page)"
        yield from self.versions(f"{newest} AND word IN {HERE}")

    def crawls(self) -> list[Crawl]:
        """Returns all crawls, the first first."""
        return [Crawl._make(row) for row in self._database.execute(_CRAWLS, {"name": CRAWL})]

    def write(
        self,
        url: str,
        word: str,
        digest: int | None = None,
        simhash: str = "",
        text: Text | None = None,
        other: str | None = None,
        *,
        same_text: int | None = None,
        edits: Sequence[Said] = (),
        carried: int | None = None,
    ) -> None:
        """A version of a page begins, which this crawl has handed over."""
        packed = _packed(edits)

        def do() -> None:
            number = same_text if text is None else self.texts.add(url, simhash, text)
            now = self.crawl, self.crawl, self._run
            self._database.execute(_PAGE_IS_KNOWN, (url,))
            self._database.execute(_WRITE, (*now, word, digest, number, other, packed, carried, url))

        self._hold(do, url)

    def write_edits(self, url: str, edits: Sequence[Said]) -> None:
        """What differs on a page that this crawl has written."""
        with self._database as database:
            query = f"UPDATE versions SET edits = ? WHERE first = ? AND page = {_PAGE}"
            database.execute(query, (_packed(edits), self.crawl, url))

    def meet(self, version: Version, *, handed: bool, carried: int | None = None) -> None:
        """A page is met that is what it was."""
        values = self.crawl, self._run if handed else None, carried, version.page, version.first
        self._hold(lambda: self._database.execute(_MEET, values))

    def renew(
        self, version: Version, digest: int, simhash: str, text: Text, carried: int | None = None
    ) -> None:
        """The same, of a page whose words are others, but none of its own."""

        def do() -> None:
            number = self.texts.replace(version.text, version.url, simhash, text)
            query = "UPDATE versions SET digest = ?, text = ? WHERE page = ? AND first = ?"
            self._database.execute(query, (digest, number, version.page, version.first))

        self._hold(do, version.url)
        self.meet(version, handed=True, carried=carried)

    def take_back(self, before: Version, now: Version) -> None:
        """What this crawl has taken for another version of a page is the one before."""
        self.forget(now.url)
        with self._database as database:
            query = "UPDATE versions SET last = ?, handed = ?, carried = ?, digest = ?, text = ? WHERE page = ? AND first = ?"
            values = self.crawl, self._run, now.carried, now.digest, now.text, before.page, before.first
            database.execute(query, values)

    def pair(self, url: str, simhash: str, text: Text | None) -> None:
        """A page has a near-duplicate: stores its text, if it has one, for reports."""

        def do() -> None:
            if not self.texts.pair(url, simhash) and text is not None:
                self.texts.add(url, simhash, text, paired=True)

        self._pairs.append(do)
        if len(self._pairs) >= BATCH:
            self.flush()

    def held(self, url: str) -> Held | None:
        """Returns what is held of a page; None if nothing is, or if its ETag is that of another content, too."""
        if (name := name_of(url)) in self._urls:
            self.flush()
        found = self._database.execute(validators.FIND, (name,)).fetchone()
        return found and Held._make(found)

    def hold(self, url: str, held: Held | None) -> None:
        """A page was handed over; None: nothing can be held of it."""
        name = name_of(url)

        def do() -> None:
            self._database.execute(_PAGE_IS_KNOWN, (name,))
            if held is None:
                self._database.execute(f"DELETE FROM terms WHERE page = {_PAGE}", (name,))
            else:
                self._database.execute(validators.WRITE, (*held, name))

        self._hold(do, name)

    def forget(self, url: str) -> None:
        """Takes back what this crawl has written of a page."""
        query, values = f"DELETE FROM versions WHERE first = ? AND page = {_PAGE}", (self.crawl, url)
        self._hold(lambda: self._database.execute(query, values), url)  # behind what is held back of it
        self.flush()

    def _hold(self, do: Callable[[], object], *urls: str) -> None:
        self._held.append(do)
        self._urls.update(urls)
        if len(self._held) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Writes what was held back, all or nothing; the file stays within its bound."""
        try:
            with self._database:
                for do in (*self._held, *self._pairs):
                    do()
                if self.texts.make_room(self._max_file):
                    self._database.execute(validators.FORGET_TEXTLESS)
        except BaseException:
            self.texts.forget_bases()
            raise
        for some in (self._held, self._pairs, self._urls):
            some.clear()

    def end(self, *, is_whole: bool) -> None:
        """The crawl has ended as it should, or was stopped."""
        self.flush()
        with self._database as database:
            values = time.time(), is_whole, self._run
            database.execute("UPDATE crawls SET ended = ?, whole = ? WHERE number = ?", values)

    def prune(self, keep: int) -> int:
        """Deletes what all but the last versions of each page have said, not when it was there; returns how many had texts."""
        older = "(SELECT count(*) FROM versions AS one WHERE one.page = versions.page AND one.first > versions.first) >= ?"
        with self._database as database:
            empty = f"UPDATE versions SET text = NULL, edits = NULL WHERE text IS NOT NULL AND {older}"
            deleted = database.execute(empty, (keep,)).rowcount
            database.execute(f"DELETE FROM versions WHERE word IN ('changed', 'back') AND {older}", (keep,))
            database.execute(
                "DELETE FROM texts WHERE base IS NOT NULL AND NOT paired AND "
                "number NOT IN (SELECT text FROM versions WHERE text IS NOT NULL)"
            )
        self._database.execute("VACUUM")
        return deleted

    def close(self) -> None:
        """Writes what was held back, and lets go of the file."""
        try:
            self.flush()
        finally:
            self._database.close()


def signed(digest: int) -> int:
    """Returns a number of 64 bits as SQLite holds it.

    >>> signed((1 << 64) - 1)
    -1
    """
    return digest if digest < 1 << 63 else digest - (1 << 64)


def _packed(edits: Sequence[Said]) -> bytes | None:
    cut = [[words[:MAX_WORDS] for words in said] for said in edits[:MAX_EDITS]]
    return zlib.compress(json.dumps(cut).encode()) if cut else None
