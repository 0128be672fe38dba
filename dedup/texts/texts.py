"""The tokens of pages, kept small: those of versions of pages, and those of a dropped page and the one that it was dropped for.

A text has five lines: a page's tokens with spaces between them, how many of them are outside and inside marked chrome by
turns, the tokens of the data in its scripts, where blocks begin and end, if that is needed, and its signs.  It is compressed by zlib, whose dictionary is the text of another page of
its section: so what the two share, such as menus, takes hardly any room, and what is left is the page's own.  A page is known
by URL and digest; a drop log knows it by URL and simhash.
"""

import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import lru_cache
from itertools import accumulate, chain, pairwise, repeat
from pathlib import Path
from typing import NamedTuple

from dedup.page.ids import strip_session
from dedup.page.tokens import Breaks, join
from dedup.page.urls import strip_user

#: Runs of tokens, from ... to before ..., in order.
Runs = Sequence[tuple[int, int]]


class Text(NamedTuple):
    """What a page said."""

    tokens: Sequence[str]
    chrome: Runs = ()  #: tokens that are marked as chrome
    data: Sequence[str] = ()  #: tokens of the data in its scripts
    breaks: Breaks = ()  #: where blocks begin and end, if that is needed to tell noise
    signs: bytes | None = None  #: of the page, see `dedup.page.html`; None if they are not known


#: Finds the text of a page by its URL and simhash.
Find = Callable[[str, str], Text | None]

#: How the names of files end that lie beside a drop log, since no index does.
SUFFIX = ".texts"
#: No text has more characters than this: longer pages are not stored.
MAX_TEXT = 1_000_000
#: This many texts are deleted at once.
BATCH = 64
#: No more characters of a URL count than a drop log has of it.
MAX_URL = 2_000
#: How hard zlib tries: a page has to be written each time that the date around all of them is another.
LEVEL = 1
#: Bytes of a dictionary that zlib makes use of.
WINDOW = 1 << 15

SCHEMA = """
CREATE TABLE IF NOT EXISTS texts (
    number INTEGER PRIMARY KEY, url TEXT, simhash TEXT, paired INTEGER NOT NULL, section TEXT, base INTEGER, tokens BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS text_of ON texts (url, simhash);
CREATE INDEX IF NOT EXISTS base_of ON texts (section) WHERE base IS NULL;
"""
_FIND = "SELECT number FROM texts WHERE url = ? AND simhash = ? ORDER BY number DESC LIMIT 1"
_SIZE = """
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size
"""
# What is the last word of a page goes last, and dictionaries stay.
_MAKE_ROOM = """
DELETE FROM texts WHERE number IN (
    SELECT number FROM texts WHERE base IS NOT NULL ORDER BY
        number IN (SELECT text FROM versions AS one WHERE NOT EXISTS (
            SELECT 1 FROM versions AS later WHERE later.page = one.page AND later.first > one.first)),
        paired, number LIMIT ?)
"""
_NO_PATH = re.compile(r"^([a-z]+://[^/?#]+)(?=$|\?)", re.IGNORECASE)
_SECTION = re.compile(r"^[a-z]+://[^/?#]*/?(?:[^/?#]*/)?", re.IGNORECASE)


class Texts:
    """The texts of a file that is open; every method may raise `sqlite3.Error`."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._base = lru_cache(maxsize=64)(self._read_base)

    def add(self, url: str, simhash: str, page: Text, *, paired: bool = False) -> int | None:
        """Stores a page, and returns its number, or None if it is too long."""
        text = _written(page)
        if len(text) > MAX_TEXT:
            return None
        url, section = name_of(url), _section(url)
        find = "SELECT number FROM texts WHERE section = ? AND base IS NULL"
        base = (self._database.execute(find, (section,)).fetchone() or (None,))[0]
        packer = zlib.compressobj(LEVEL, zdict=self._base(base)) if base else zlib.compressobj(LEVEL)
        row = url, simhash, paired, None if base else section, base, packer.compress(text) + packer.flush()
        added = self._database.execute(
            "INSERT INTO texts (url, simhash, paired, section, base, tokens) VALUES (?, ?, ?, ?, ?, ?)", row
        )
        return added.lastrowid

    def forget_bases(self) -> None:
        """A transaction has failed: the numbers that it had given to texts are given anew."""
        self._base.cache_clear()

    def replace(self, number: int | None, url: str, simhash: str, page: Text) -> int | None:
        """Returns the number under which another text takes the place of one, in which no other is based on it."""
        self._database.execute("DELETE FROM texts WHERE number = ? AND base IS NOT NULL", (number,))
        return self.add(url, simhash, page)

    def pair(self, url: str, simhash: str) -> bool:
        """Says that a page has a near-duplicate, and returns whether its text is stored."""
        found = self._database.execute(_FIND, (name_of(url), simhash)).fetchone()
        if found:
            self._database.execute("UPDATE texts SET paired = 1 WHERE number = ?", found)
        return bool(found)

    def read(self, number: int | None) -> Text | None:
        """Returns a text by its number; None if it has none, was deleted, or can't be read."""
        with suppress(zlib.error, ValueError, TypeError):
            if (octets := self._octets(number)) is not None:
                return _read(octets.decode())
        return None

    def find(self, url: str, simhash: str) -> Text | None:
        """Returns the text of a page by URL and simhash, the last if there are several."""
        found = self._database.execute(_FIND, (name_of(url), simhash)).fetchone()
        return self.read(found[0]) if found else None

    def _octets(self, number: int | None) -> bytes | None:
        found = self._database.execute(
            "SELECT base, tokens FROM texts WHERE number = ?", (number,)
        ).fetchone()
        if found is None:
            return None
        base, packed = found
        unpacker = zlib.decompressobj(zdict=self._base(base)) if base else zlib.decompressobj()
        return unpacker.decompress(packed, 4 * MAX_TEXT)

    def _read_base(self, number: int) -> bytes:
        return (self._octets(number) or b"")[-WINDOW:]

    def make_room(self, most: int) -> bool:
        """Deletes texts until the file is no larger than that, first those that have later versions; returns whether it did."""
        deleted = False
        while self._database.execute(_SIZE).fetchone()[0] > most:
            if not self._database.execute(_MAKE_ROOM, (BATCH,)).rowcount:
                break
            deleted = True
        return deleted


def name_of(url: str) -> str:
    """By what a page is known here: its URL without user, session ids and fragment.

    >>> name_of("http://me:secret@a.org/b?PHPSESSID=9f86d081#top"), name_of("http://a.org"), name_of("http://a.org?b=/")
    ('http://a.org/b', 'http://a.org/', 'http://a.org/?b=/')
    """
    name = _NO_PATH.sub(r"\1/", strip_session(strip_user(url)))
    return name.encode("utf-8", "replace").decode()[:MAX_URL]


def _section(url: str) -> str:
    """Returns the part of a site whose pages share a dictionary.

    >>> _section("http://a.org/news/2026/1.html"), _section("http://a.org/about?x=/y/")
    ('http://a.org/news/', 'http://a.org/')
    """
    found = _SECTION.match(url)
    return found[0][:MAX_URL] if found else ""


def _written(page: Text) -> bytes:
    """Returns a page as it is stored.

    >>> _written(Text(["a", "b", "c", "d"], [(1, 3)], ["lamp", "12"]))
    b'a b c d\\n1 2\\nlamp 12'
    >>> _read("a b c d\\n1 2\\nlamp 12")
    Text(tokens=['a', 'b', 'c', 'd'], chrome=[(1, 3)], data=['lamp', '12'], breaks=[], signs=None)
    >>> _read(_written(Text(["a", "b"], breaks=[(0, 1, b""), (1, 3, b"")], signs=b"*\\n!")).decode())
    Text(tokens=['a', 'b'], chrome=[], data=[], breaks=[(0, 1, b''), (1, 3, b'')], signs=b'*\\n!')
    """
    bounds = pairwise([0, *chain.from_iterable(page.chrome)])
    lengths = b" ".join(b"%d" % (end - start) for start, end in bounds)
    lines = join(page.tokens).replace(b"\0", b" "), lengths, " ".join(page.data).encode()
    steps = pairwise([0, *(at for at, _, _ in page.breaks)])
    breaks = " ".join(
        f"{at - last} {depth}" for (last, at), (_, depth, _) in zip(steps, page.breaks, strict=True)
    )
    signs = () if page.signs is None else (page.signs,)
    return b"\n".join((*lines, *((breaks.encode(), *signs) if breaks or signs else ())))


def _read(text: str) -> Text:
    """Returns the page of a text.  May raise ValueError."""
    tokens, counts, data, *more = text.split("\n", 4)
    breaks, *signs = more or ("",)
    bounds = accumulate(map(int, counts.split()))
    steps = [*map(int, breaks.split())]
    return Text(
        tokens.split(" "),
        [*zip(bounds, bounds, strict=True)],
        data.split(),
        [*zip(accumulate(steps[::2]), steps[1::2], repeat(b""), strict=False)],
        signs[0].encode() if signs else None,
    )


@contextmanager
def stored(paths: Iterable[Path]) -> Iterator[Find]:
    """Gives what finds texts in these files; a file that can't be read is taken for an empty one."""
    files: list[Texts] = []
    with ExitStack() as stack:
        for path in paths:
            with suppress(sqlite3.Error):
                file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)
                files.append(Texts(stack.enter_context(closing(file))))

        def find(url: str, simhash: str) -> Text | None:
            for file in files:
                with suppress(sqlite3.Error):
                    if (found := file.find(url, simhash)) is not None:
                        return found
            return None

        yield find
