"""The chrome of hosts, as an index knows it: what a claim is weighed by, and what it leaves to be learned.

A table for each host counts the shingles of its kept pages (`dedup.fingerprint.chrome`).  The tables are saved with
the index, and those that were used last are in memory.

A table should never be older than the pages that are filed: a menu that it has not met counts as a page's own, and
makes duplicates of pages that are none, until some of those have been learned from.  So what a page has taught is
stored with it, or before it.  A table that counts more pages than are filed only leads to keeping more.
"""

import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeVar

from dedup.fingerprint.chrome import KNOWN, Chrome
from dedup.fingerprint.evidence import Evidence, Part
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.sketch import Sketcher
from dedup.page.siblings import apart
from dedup.page.urls import host
from dedup.settings import IndexSettings

__all__ = ["MAX_HOSTS", "Hosts", "packed", "unpacked"]

#: What a store calls a page: its number, or that and a name.
K = TypeVar("K", int, tuple[int, bytes])
#: How many tables are held in memory, of 96 kB each.
MAX_HOSTS = 1000
#: Of how many kept pages it is known what was learned for them; then the first of them is forgotten.
MAX_LEARNED = 10_000
#: A drop with more new shingles is doubtful.  Some of them are learned for each kept page, as if they had been kept:
#: so the chrome of a section is met, although all pages but its first are dropped.
DOUBTFUL = 30.0
#: No table has more bytes than this.
MAX_TABLE = 1 << 20


def packed(table: bytes) -> bytes:
    """The bytes of a table, compressed: 2 kB for a host of one page, 17 kB for one of many."""
    return zlib.compress(table, 1)


def unpacked(octets: bytes) -> bytes:
    """What was `packed`.  Raises ValueError if nothing was.

    >>> unpacked(packed(b"table"))
    b'table'
    """
    try:
        return zlib.decompressobj().decompress(octets, MAX_TABLE)
    except zlib.error:
        raise ValueError("a table is not as it was written") from None


class Hosts:
    """The tables of hosts, by name."""

    def __init__(
        self, sketcher: Sketcher, settings: IndexSettings, load: Callable[[str], bytes | None] | None = None
    ) -> None:
        """``load`` gets a table that was saved; without it, no table is."""
        self._sketcher = sketcher
        self.settings = settings
        self.load = load
        self._tables: OrderedDict[str, Chrome] = OrderedDict()
        self._changed: dict[str, Chrome] = {}
        self._saving: dict[str, Chrome] = {}
        self._learned: Counter[str] = Counter()  # by the page id of the kept page
        self._contents: dict[tuple[str, int], None] = {}  # that were learned last, by host and digest
        self._copies: Counter[str] = Counter()  # that were not learned, by host

    def table(self, name: str) -> Chrome:
        """The table of a host; an empty one if nothing was kept there, or if what is saved is damaged."""
        table = self._tables.pop(name, None) or self._changed.get(name) or self._saving.get(name)
        if table is None:
            table = Chrome()
            if self.load and (octets := self.load(name)):
                with suppress(ValueError):
                    table = Chrome.from_bytes(octets)
        self._tables[name] = table  # now the last to be forgotten
        if len(self._tables) > MAX_HOSTS:
            self._tables.popitem(last=False)
        return table

    def part(self, page: Fingerprint, name: str) -> Part:
        """What of a page is its own, by the table of a host."""
        return Part(self._sketcher, page, self.table(name))

    def judge(self, own: str, other: str) -> str | None:
        """The host, of those of a page and of a candidate, whose table tells what is their own; None if neither is known.

        It is the one of which more pages are known: else a mirror of which little is known would be a loophole.
        """
        name = max((own, other), key=lambda name: self.table(name).pages)
        return name if self.table(name).is_known else None

    async def bring(self, urls: Iterable[str]) -> None:
        """Gets what others have learned of the hosts of some pages, if there are others."""

    def learn_kept(self, page: Fingerprint, url: str, *, is_copy: bool = False) -> None:
        """A page was kept.

        If it ``is_copy``, it is kept only because its host is not known yet, and resembles a page that is called
        the same: of such pages some are not learned, or else what they share would be chrome.  Nor is a content that
        is kept once more, since something else was handed over with it.
        """
        name = host(url)
        if (content := (name, page.digest)) in self._contents:
            return
        self._contents[content] = None
        if len(self._contents) > MAX_LEARNED:
            del self._contents[next(iter(self._contents))]
        if is_copy and self._copies[name] < KNOWN:
            self._copies[name] += 1
            return
        self._learn(page, name, kept=True)

    def learn_dropped(self, page: Fingerprint, url: str, of_id: str, evidence: Evidence | None) -> None:
        """A page was dropped, and not for being equal: some are learned from, too.

        Of a host that is not yet known, all are, as if they had been kept: so it becomes known even if a page of
        another host resembles all its pages.  Of a host that is known, doubtful ones are, until what they share is
        chrome.  Twice as many as should suffice may be learned: the table may not count the kept page, and not
        every page has all of the chrome in its sketch.  Versions of the kept page, which are called the same, are
        not a section: what they share would be chrome after the second one.
        """
        name = host(url)
        table = self.table(name)
        if evidence is None:
            self._learn(page, name, kept=not table.is_known)
        elif evidence.new > DOUBTFUL and not evidence.same_name and self._learned[of_id] < 2 * table.few:
            self._learned[of_id] += 1
            if len(self._learned) > MAX_LEARNED:
                del self._learned[next(iter(self._learned))]
            self._learn(page, name, kept=False)

    def learn_near(self, url: str, other: str, evidence: Evidence) -> None:
        """A page is like another whose address names another page: it was kept, or is known for a copy by now.

        Each of these counts, since a table forgets what is met no more.
        """
        name = self.judge(host(url), host(other))
        found = apart(url, other)
        if name and found and found.parts and evidence.contains(self.settings.min_containment):
            self.table(name).note_copies(found.parts, found.where)
            self._mark(name)

    def merge(self, tables: Mapping[str, Chrome]) -> None:
        """Takes over what was counted elsewhere."""
        for name, other in tables.items():
            self.table(name).merge(other)
            self._mark(name)

    def _learn(self, page: Fingerprint, name: str, *, kept: bool) -> None:
        if page.own is not None:
            self.table(name).add(page.own.main, kept=kept)
            self._mark(name)

    def _mark(self, name: str) -> None:
        if self.load:
            self._changed[name] = self._tables[name]

    @contextmanager
    def saving(self) -> Iterator[dict[str, bytes]]:
        """The tables that were changed since this was asked last, to be saved; they stay changed if that fails.

        Meanwhile they are looked up here.  10 us a table.
        """
        saved = dict(self._changed)
        self._saving.update(saved)
        self._changed.clear()
        try:
            yield {name: table.to_bytes() for name, table in saved.items()}
        except BaseException:
            for name, table in saved.items():
                self._changed.setdefault(name, table)
            raise
        finally:
            self._saving.clear()
