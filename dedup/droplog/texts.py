"""The tokens of pages, beside a drop log: those of each dropped page, and of the page that it was dropped for.

There is one SQLite file per log, and its name is that of the log and ``.texts``.  A page is known by URL and
simhash, so that its words are always those that were judged.  A text has three lines: a page's tokens with spaces
between them, how many of them are outside and inside marked chrome by turns, and the tokens of the data in its
scripts.  It is compressed by zlib.
"""

import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import NamedTuple, Self

from dedup.files import make_private

__all__ = ["MAX_FILE", "MAX_TEXT", "MAX_URL", "SUFFIX", "Find", "Runs", "Text", "Texts", "stored"]

#: Runs of tokens, from ... to before ..., in order.
Runs = Sequence[tuple[int, int]]


class Text(NamedTuple):
    """What a page said."""

    tokens: Sequence[str]
    chrome: Runs = ()  #: tokens that are marked as chrome
    data: Sequence[str] = ()  #: tokens of the data in its scripts


#: Finds the text of a page by its URL and simhash.
Find = Callable[[str, str], Text | None]

SUFFIX = ".texts"
#: How many characters a text may have; longer pages are not stored.
MAX_TEXT = 1_000_000
#: How many bytes a file may have, and how many pages are written at once.  Pages without a near-duplicate make
#: room first, then the oldest.
MAX_FILE, BATCH = 100_000_000, 64
#: How many characters of a URL count: as many as a drop log has of it.
MAX_URL = 2_000

_SCHEMA = """
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS texts (
    url TEXT, simhash TEXT, paired INTEGER NOT NULL, tokens BLOB NOT NULL, PRIMARY KEY (url, simhash)
);
CREATE INDEX IF NOT EXISTS paired ON texts (paired);
"""
_ADD = """
INSERT INTO texts VALUES (?, ?, ?, ?)
ON CONFLICT (url, simhash) DO UPDATE SET paired = max(paired, excluded.paired)
"""
_PAIR = "UPDATE texts SET paired = 1 WHERE url = ? AND simhash = ?"
_FIND = "SELECT tokens FROM texts WHERE url = ? AND simhash = ?"
_SIZE = """
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
_MAKE_ROOM = "DELETE FROM texts WHERE rowid IN (SELECT rowid FROM texts ORDER BY paired, rowid LIMIT ?)"


class Texts:
    """An open file of texts.  Several processes may write to one; every method may raise `sqlite3.Error`."""

    def __init__(self, path: Path, max_file: int = MAX_FILE) -> None:
        self._max_file = max_file
        self._rows: list[tuple[str, str, bool, bytes]] = []
        self._pairs: list[tuple[str, str]] = []
        with suppress(OSError):  # SQLite says what is wrong
            make_private(path)  # SQLite gives the files beside it the same mode
        self._database = sqlite3.connect(path)
        try:
            self._database.executescript(_SCHEMA)
        except BaseException:
            self._database.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, url: str, simhash: str, page: Text, of: tuple[str, str] | None = None) -> None:
        """Stores a page; ``of`` is URL and simhash of the page that it is a near-duplicate of, if any."""
        text = _written(page)
        if len(text) <= MAX_TEXT:
            self._rows.append((url[:MAX_URL], simhash, of is not None, zlib.compress(text.encode(), 1)))
        if of is not None:
            self._pairs.append((of[0][:MAX_URL], of[1]))
        if len(self._rows) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Writes what has been added; the file stays within its bound."""
        with self._database as database:
            database.executemany(_ADD, self._rows)
            database.executemany(_PAIR, self._pairs)
            self._rows.clear()
            self._pairs.clear()
            while database.execute(_SIZE).fetchone()[0] > self._max_file:
                if not database.execute(_MAKE_ROOM, (BATCH,)).rowcount:
                    break

    def close(self) -> None:
        """Writes what has been added, and lets go of the file."""
        with closing(self._database):
            self.flush()


def _written(page: Text) -> str:
    """A page as it is stored.

    >>> _written(Text(["a", "b", "c", "d"], [(1, 3)], ["lamp", "12"]))
    'a b c d\\n1 2\\nlamp 12'
    >>> _read("a b c d\\n1 2\\nlamp 12")
    Text(tokens=['a', 'b', 'c', 'd'], chrome=[(1, 3)], data=['lamp', '12'])
    """
    bounds = pairwise([0, *chain.from_iterable(page.chrome)])
    lengths = (str(end - start) for start, end in bounds)
    return "\n".join(map(" ".join, (page.tokens, lengths, page.data)))


def _read(text: str) -> Text:
    """The page of a text, which has fewer lines if it was written before chrome or data was.  May raise ValueError."""
    tokens, counts, data, *_ = [*text.split("\n"), "", ""]
    bounds = accumulate(map(int, counts.split()))
    return Text(tokens.split(" "), [*zip(bounds, bounds, strict=True)], data.split())


@contextmanager
def stored(paths: Iterable[Path]) -> Iterator[Find]:
    """Gives what finds texts in these files; a file that can't be read is taken for an empty one."""
    files = []
    with ExitStack() as stack:
        for path in paths:
            with suppress(sqlite3.Error):
                file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)
                files.append(stack.enter_context(closing(file)))

        def find(url: str, simhash: str) -> Text | None:
            for file in files:
                with suppress(sqlite3.Error, zlib.error, ValueError, TypeError):
                    found = file.execute(_FIND, (url[:MAX_URL], simhash)).fetchone()
                    if found is not None:
                        return _read(zlib.decompressobj().decompress(found[0], 4 * MAX_TEXT).decode())
            return None

        yield find
