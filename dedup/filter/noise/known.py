"""What is known of the kinds of page of one crawl: their gaps, what they have in common, and which of them are like each other."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from dedup.errors import DedupError
from dedup.filter.noise.addresses import Addresses, Unique, unique_of
from dedup.filter.noise.answers import Changes, changes
from dedup.filter.noise.gaps import MAX_KNOWN, SEVERAL
from dedup.filter.noise.kept import KeptPages, Shown
from dedup.filter.noise.kinds import ENOUGH, SECTION, Kind, Learned, folder_of, has_own, kinds_of
from dedup.filter.noise.left import Own
from dedup.filter.noise.likeness import Likeness
from dedup.filter.noise.lines import Line, lines_of
from dedup.filter.noise.names import nameless
from dedup.filter.noise.notes import Notes
from dedup.filter.reading import LARGE
from dedup.index import Index
from dedup.latest import Latest
from dedup.page.html import Page
from dedup.page.urls import host


def _compare(pairs: Iterable[tuple[Sequence[Line], Sequence[Line]]]) -> list[Changes]:
    return [changes(*pair) for pair in pairs]


def _in_any_order(line: Line) -> tuple[str, ...]:
    return (line.path, *sorted(line.tokens))


class Known:
    """The kinds of page of one crawl."""

    def __init__(self, index: Index, kept: KeptPages, likeness: Likeness) -> None:
        self._index = index
        self._kept = kept
        self._likeness = likeness
        self.addresses = Addresses()
        self._recalled = Latest[str, None]()  # hosts
        self._recalling = asyncio.Lock()
        self._taught = Latest[str, None]()  # hosts of which this crawl has learned something
        self._kinds = Latest[str, Kind]()
        self._met = Latest[str, int]()  # kept pages, by what their addresses have in common
        self._usual = Latest[str, Kind]()  # by folder, that of which most pages were fetched again
        self._looked = OrderedDict[int, Kind]()  # of which it is held what their pages say
        self._quiet = Latest[str, int]()  # pages fetched again without any gap, by host
        #: Who is told of two answers to one request: the URL, and both.
        self.heard: list[Callable[[str, Page, Page], None]] = []

    async def recall(self, url: str) -> None:
        """Takes up what an earlier crawl has noted of the host of a page."""
        name, octets = host(url), b""
        async with self._recalling:
            if name in self._recalled:
                return
            with suppress(DedupError):  # the index is away: then it is learned anew
                octets = await self._index.recall(name)
            self._recalled[name] = None
        notes = Notes.from_bytes(octets)
        for pair, change in notes.changes:
            self.addresses.changes.setdefault(pair, change)
        for key, learned in notes.kinds.items():
            # Pages may have new gaps since, so one more is fetched again; who listens has heard of none.
            idle = 0 if self.heard else min(learned.idle, ENOUGH - 1)
            self._kinds[key] = kind = Kind(learned.gaps, learned.asked, idle, learned.is_trusted)
            self._count(f"http://{key}", kind, idle)

    async def remember(self) -> None:
        """Notes, for the next crawl, what was learned of hosts."""
        notes = {name: Notes() for name in self._taught}
        for key, kind in self._kinds.items():
            if kind.asked and (of := notes.get(host(f"http://{key}"))):
                of.kinds[key] = Learned(kind.gaps, kind.asked, kind.idle, kind.is_trusted)
        for pair, change in self.addresses.changes.items():
            if of := notes.get(host(f"http://{pair[0]}")):
                of.changes = [*of.changes, (pair, change)]
        with suppress(DedupError):  # the index is away, which its closing tells
            await self._index.remember({name: of.to_bytes() for name, of in notes.items()})

    def usual(self, url: str) -> Kind:
        """Returns the kind of a folder's pages of which most is known; that of this page if none is."""
        return self._usual.get(folder_of(url)) or self.kind(url)

    def of_both(self, url: str, other: str) -> list[Kind]:
        """Returns the kinds of two pages, and those that are usual beside them, the one of which most is known first."""
        kinds = (self.kind(url), self.kind(other), self.usual(url), self.usual(other))
        return sorted({id(kind): kind for kind in kinds}.values(), key=lambda kind: -kind.asked)

    async def unique(self, page: Shown) -> Unique:
        """Returns the unique content of a page; nothing as long as it is not known what pages like it have in common."""
        kind = self.kind(page.url)
        await self.look_anew(kind)
        if len(kind.sample) < SEVERAL:
            kind = self.usual(page.url)
        return unique_of(self._kept.read(page), kind)

    def may_learn(self, url: str) -> bool:
        """Returns whether pages like this one may have gaps that are not known: as many of its host without any tell that none do."""
        kind = self.kind(url)
        return kind.idle < ENOUGH and (bool(kind.gaps) or self._quiet.get(host(url), 0) < ENOUGH)

    async def learn(self, page: Shown, address: str, answer: Page, *, is_met: bool = False) -> bool:
        """Takes what differs between a page and another answer for gaps, if that still shows the page.

        Of one that ``is_met`` without a request nothing new is no sign that there is nothing more to learn.
        """
        kind = self.kind(page.url)
        await self.look_anew(kind)
        a, b = self._kept.read(page), lines_of(answer.markup, page.url)
        there = {_in_any_order(line) for line in b}
        if not has_own([line for line in a if _in_any_order(line) in there], kind):
            before = self._index.detector.read(page.markup, page.url)
            if not self._likeness.are_of_one(before, answer, page.url):
                return False
        pairs = [(a, b)]
        names = page.read_nameless(), nameless(answer.markup, page.url)
        if all(names):
            pairs.append(names)
        is_large = len(page.markup) > LARGE
        found = await asyncio.to_thread(_compare, pairs) if is_large else _compare(pairs)
        page.own, version = page.own or Own(), kind.gaps.version
        for each in found:
            page.own.learn(each, is_met=is_met)
        kind.gaps.learn(address, found[0])
        kind.asked += 1
        kind.idle = 0 if kind.gaps.version > version else kind.idle + (not is_met)
        self._count(page.url, kind, 1)
        self._taught[host(page.url)] = None
        for hear in self.heard:
            hear(page.url, self._index.detector.read(page.markup, page.url), answer)
        return True

    def _count(self, url: str, kind: Kind, asked: int) -> None:
        """Notes that so many pages like this one were fetched again."""
        folder = folder_of(url)
        if kind.asked >= self._usual.get(folder, kind).asked:
            self._usual[folder] = kind
        self._quiet[host(url)] = 0 if kind.gaps else self._quiet.get(host(url), 0) + asked

    def _hold(self, kind: Kind) -> None:
        """Lets go of what the kinds say that were looked at longest ago: it can be looked at anew."""
        self._looked.pop(id(kind), None)
        while len(self._looked) >= MAX_KNOWN:
            _, other = self._looked.popitem(last=False)
            other.sample.clear()
            other.by.clear()
        self._looked[id(kind)] = kind

    async def look_anew(self, kind: Kind) -> None:
        """Looks again what is left of the last kept pages of a kind, if it has shown more gaps since."""
        if kind.version == kind.gaps.version and 2 * len(kind.sample) >= min(SECTION, len(kind.recent)):
            return
        self._hold(kind)
        kind.version, recent = kind.gaps.version, [*kind.recent]
        kind.by.clear()
        kind.sample.clear()
        for page_id in recent:
            kept = self._kept.get(page_id)
            if kept is not None and kept.markup:
                self.note(kind, kept)
                await asyncio.sleep(0)  # others have their turn

    def note(self, kind: Kind, page: Shown) -> None:
        # Without gaps, a section tells what its pages have in common.
        if kind.gaps or len(kind.sample) < SECTION:
            kind.note(page.page_id, self._kept.read(page), page.read_nameless())

    def count(self, url: str) -> None:
        """Notes one more kept page."""
        for shared in kinds_of(url).values():
            self._met[shared] = self._met.get(shared, 0) + 1
        self.kind(url).kept += 1

    def kind(self, url: str) -> Kind:
        """Returns the kind of a page: of those that it may be of, that with which most kept pages have it in common."""
        kinds = kinds_of(url)
        name = max(kinds, key=lambda name: self._met.get(kinds[name], 0))
        if (kind := self._kinds.get(name)) is None:
            kind = self._kinds[name] = Kind()
        return kind
