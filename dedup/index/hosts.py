"""The chrome of hosts, as an index knows it: what a claim is weighed by, and what it leaves to be learned.

A table for each host counts the shingles of its kept pages (`dedup.fingerprint.chrome`).  The tables are saved with
the index, and those that were used last are in memory.

A table should never be older than the pages that are filed: a menu that it has not met counts as a page's own, and
makes duplicates of pages that are none, until some of those have been learned from.  So what a page has taught is
stored with it, or before it.  A table that counts more pages than are filed only leads to keeping more.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial

from dedup.fingerprint.chrome import KNOWN, Chrome
from dedup.fingerprint.evidence import Evidence, Part
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.sketch import Sketcher
from dedup.latest import Latest
from dedup.page.siblings import apart
from dedup.page.urls import host
from dedup.settings import IndexSettings

#: No more tables are held in memory than this, of 96 kB each.
MAX_HOSTS = 1000
#: Nor more of those of pages that were filed before, in one crawl.
MAX_REFILED = 100
#: It is remembered for this many kept pages what was learned for them; then the first of them is forgotten.
MAX_LEARNED = 10_000
#: A drop with more new shingles is doubtful.  Some of them are learned for each kept page, as if they had been kept:
#: so the chrome of a section is met, although all pages but its first are dropped.
DOUBTFUL = 30.0
#: No table has more bytes than this.
MAX_TABLE = 1 << 20


def packed(table: bytes) -> bytes:
    """Returns the bytes of a table, compressed: 3 kB for a host of one page, 15 kB for one of fifty.

    Most of a table is zeros, so only runs of one octet are looked for: that takes half the time, and less room.
    """
    packer = zlib.compressobj(1, strategy=zlib.Z_RLE)
    return packer.compress(table) + packer.flush()


def unpacked(octets: bytes) -> bytes:
    """Returns what was `packed`.  Raises ValueError for other bytes.

    >>> unpacked(packed(b"table"))
    b'table'
    """
    unpacker = zlib.decompressobj()
    with suppress(zlib.error):
        table = unpacker.decompress(octets, MAX_TABLE)
        if unpacker.eof and not unpacker.unused_data:
            return table
    raise ValueError("a table is not as it was written")


class Hosts:
    """The tables of hosts, by name."""

    def __init__(self, sketcher: Sketcher, settings: IndexSettings) -> None:
        self._sketcher = sketcher
        self.settings = settings
        #: Gets a table that was saved; without it, no table is.
        self.load: Callable[[str], bytes | None] | None = None
        self._tables = Latest[str, Chrome](MAX_HOSTS)
        self._changed: dict[str, Chrome] = {}
        self._saving: dict[str, Chrome] = {}
        self._learned = Latest[str, int](MAX_LEARNED)  # how many, by the page id of the kept page
        self._contents = Latest[tuple[str, int], None](MAX_LEARNED)  # learned last, by host and digest
        self._refiled = Latest[str, Chrome](MAX_REFILED)  # by host, what pages have that were filed before
        self._copies = Latest[str, int](MAX_LEARNED)  # that were not learned, by host

    def table(self, name: str) -> Chrome:
        """Returns the table of a host; an empty one if nothing was kept there, or if what is saved is damaged."""
        table = self._tables.pop(name, None) or self._changed.get(name) or self._saving.get(name)
        if table is None:
            table = Chrome()
            if self.load and (octets := self.load(name)):
                with suppress(ValueError):
                    table = Chrome.from_bytes(octets)
        self._tables[name] = table  # now the last to be forgotten
        return table

    def part(self, page: Fingerprint, name: str) -> Part:
        """Returns what of a page is its own, by the table of a host."""
        return Part(self._sketcher, page, self.table(name))

    def judge(self, own: str, other: str) -> str | None:
        """Returns the host, of those of a page and of a candidate, whose table tells what is their own; None if neither is known.

        The host with more known pages decides: else a mirror that is hardly known would be a loophole.
        """
        name = max((own, other), key=lambda name: self.table(name).pages)
        return name if self.table(name).is_known else None

    async def bring(self, urls: Iterable[str]) -> None:
        """Gets what others have learned of the hosts of some pages, if there are others."""

    def learn_kept(
        self, page: Fingerprint, url: str, *, is_copy: bool = False, refiled: bool = False
    ) -> None:
        """A page was kept.  If it was ``refiled``, only what two such pages of this crawl share is learned.

        All else would be counted for the same page again and again, until its own content was chrome.

        If it ``is_copy``, it is kept only because its host is not known yet, and resembles a page that is called
        the same: of such pages some are not learned, or else what they share would be chrome.  Nor is a content that
        is kept once more, since something else was handed over with it.
        """
        name = host(url)
        if (content := (name, page.digest)) in self._contents:
            return
        self._contents[content] = None
        if is_copy and (copies := self._copies.get(name, 0)) < KNOWN:
            self._copies[name] = copies + 1
            return
        if refiled and page.own is not None:
            met = self._refiled[name] = self._refiled.get(name) or Chrome()
            shared = page.own.main[met.counts(page.own.main) > 0]
            met.add(page.own.main)
            self._learn(shared, name, kept=False)
        elif page.own is not None:
            self._learn(page.own.main, name, kept=True)

    def learn_dropped(self, page: Fingerprint, url: str, of_id: str, evidence: Evidence | None) -> None:
        """A page was dropped, and not for being equal: some are learned from, too.

        Of a host that is not yet known, all are, as if they had been kept: so it becomes known even if a page of
        another host resembles all its pages.  Of a host that is known, doubtful ones are, until what they share is
        chrome.  Twice as many as should suffice may be learned: the table may not count the kept page, and not
        every page has all of the chrome in its sketch.  Versions of the kept page, which are called the same, are
        not a section: what they share would be chrome after the second one.
        """
        if page.own is None:
            return
        name = host(url)
        table, learned = self.table(name), self._learned.get(of_id, 0)
        if evidence is None:
            self._learn(page.own.main, name, kept=not table.is_known)
        elif evidence.new > DOUBTFUL and not evidence.same_name and learned < 2 * table.few:
            self._learned[of_id] = learned + 1
            self._learn(page.own.main, name, kept=False)

    def learn_near(self, url: str, other: str, evidence: Evidence) -> None:
        """A page is like another whose address names another page: it was kept, or is known for a copy by now.

        Each of these counts, since a table forgets what is met no more.
        """
        name = self.judge(host(url), host(other))
        found = apart(url, other)
        if name and found and found.parts and evidence.contains(self.settings.min_containment):
            for parts in found.parts:
                self._change(name, partial(Chrome.note_copies, parts=parts, where=found.where))

    def merge(self, tables: Mapping[str, Chrome]) -> None:
        """Takes over what was counted elsewhere."""
        for name, other in tables.items():
            self._change(name, partial(Chrome.merge, other=other))

    def _learn(self, main: Hashes, name: str, *, kept: bool) -> None:
        self._change(name, partial(Chrome.add, main=main, kept=kept))

    def _change(self, name: str, change: Callable[[Chrome], object]) -> None:
        """Changes a table, which then is to be saved."""
        change(self.table(name))
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
