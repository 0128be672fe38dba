"""The chrome of hosts, as an index knows it: what a claim is weighed by, and what it leaves to be learned.

A table for each host counts the shingles of its kept pages (`dedup.fingerprint.chrome`).  The tables are saved with
the index, and those that were used last are in memory.

A table should never be older than the pages that are filed: a menu that it has not met counts as a page's own, and
makes duplicates of pages that are none, until some of those have been learned from.  So what a page has taught is
stored with it, or before it.  A table that counts more pages than are filed only leads to keeping more.
"""

import zlib
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from dedup.fingerprint.chrome import KNOWN, Chrome, View
from dedup.fingerprint.evidence import Evidence, can_suffice, is_mirror, match_counts, weigh
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.sketch import Sketcher
from dedup.index.entry import Entry
from dedup.page.urls import host
from dedup.settings import IndexSettings

__all__ = ["MAX_HOSTS", "Hosts", "Weighed", "packed", "unpacked"]

#: What a store calls a page: its number, or that and a name.
K = TypeVar("K", int, tuple[int, bytes])
#: How many tables are held in memory, of 25 kB each.
MAX_HOSTS = 1000
#: Of how many kept pages it is known what was learned for them; then the first of them is forgotten.
MAX_LEARNED = 10_000
#: No table has more bytes than this.
MAX_TABLE = 1 << 20


class Weighed(NamedTuple):
    """What is made of a candidate whose whole page resembles the claimed one enough."""

    suffices: bool  #: whether it is a near-duplicate
    evidence: Evidence | None  #: None where nothing is known of the hosts, or it was not weighed to the end


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
            table = Chrome(self._sketcher.slots)
            if self.load and (octets := self.load(name)):
                with suppress(ValueError):
                    table = Chrome.from_bytes(octets, self._sketcher.slots)
        self._tables[name] = table  # now the last to be forgotten
        if len(self._tables) > MAX_HOSTS:
            self._tables.popitem(last=False)
        return table

    def view(self, page: Fingerprint, own: str, other: str) -> View | None:
        """How a page of host ``own`` is looked at beside one of host ``other``: by the table that has met more pages.

        None if neither is known.
        """
        table = max(self.table(other), self.table(own), key=lambda table: table.pages)
        return table.view(page, self._sketcher) if table.is_known else None

    async def bring(self, urls: Iterable[str]) -> None:
        """Gets what others have learned of the hosts of some pages, if there are others."""

    def weigh(
        self,
        page: Fingerprint,
        url: str,
        kept: Mapping[K, Entry],
        near: K | None,
        views: dict[str, View | None],
    ) -> dict[K, Weighed]:
        """What is made of each of some candidates.

        Those that can't suffice have no evidence, but for the one that is called ``near``.  ``views`` keeps, by host,
        how the page is looked at: empty at first, and the same for all candidates of one claim.
        """
        if page.own is None:  # it was made by hand: nothing is known of its own shingles
            return dict.fromkeys(kept, Weighed(True, None))
        own, by_host = host(url), defaultdict[str, list[K]](list)
        for number, entry in kept.items():
            by_host[host(entry.url)].append(number)
        found = dict.fromkeys(kept, Weighed(False, None))
        for other, numbers in by_host.items():
            if other not in views:
                views[other] = self.view(page, own, other)
            view = views[other]
            if view is None:
                for number in numbers:
                    found[number] = Weighed(own != other and is_mirror(page, kept[number].called), None)
                continue
            stored = self._sketcher.words(kept[number].sketch for number in numbers)
            counts = match_counts(self._sketcher, stored, page, view)
            hopeful = can_suffice(self._sketcher, page, counts, self.settings.min_own)
            for number, five, can in zip(numbers, counts.T.tolist(), hopeful.tolist(), strict=True):
                if can or number == near:
                    evidence = weigh(self._sketcher, page, five, kept[number].called, view)
                    found[number] = Weighed(evidence.suffices(self.settings.min_own), evidence)
        return found

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
        elif evidence.is_doubtful and not evidence.same_name and self._learned[of_id] < 2 * table.few:
            self._learned[of_id] += 1
            if len(self._learned) > MAX_LEARNED:
                del self._learned[next(iter(self._learned))]
            self._learn(page, name, kept=False)

    def merge(self, tables: Mapping[str, Chrome]) -> None:
        """Takes over what was counted elsewhere."""
        for name, other in tables.items():
            self.table(name).merge(other)
            self._mark(name)

    def _learn(self, page: Fingerprint, name: str, *, kept: bool) -> None:
        if page.own is not None:
            self.table(name).add(page, kept=kept)
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
