"""What has become of pages that earlier crawls have met and this one has not: moved, hidden, gone, or not seen.

A page that was not met need not be gone.  When the crawl has nothing else to do, it asks for such pages once, if it has met
most pages of their host and no wall.  Without a clear answer a page counts as not seen.  So it does if a page beside it,
which the crawl has met, is not served any more: then a wall has been put up meanwhile, such as a redirect to a login.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from dedup.contrib.changes.contents import Contents, share, text_of
from dedup.contrib.changes.file import History, Version
from dedup.filter.change import Change
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Answer, Crawl
from dedup.fingerprint.shingles import Hashes
from dedup.latest import PAGES, Latest
from dedup.page.urls import host
from dedup.texts.texts import Text, name_of

#: No page of a host is called gone if the crawl has met less than this share of its earlier pages.
LEAST_SEEN = 0.5
#: Pages that were not met and are asked for, at most, and how many at once.
MAX_ASKED, AT_ONCE = 10_000, 8
#: A page that may have moved is looked for by this many of its least own shingles.
LEAST = 16


class Missing:
    """Tells what has become of pages that one crawl has not met."""

    def __init__(
        self, history: History, contents: Contents, crawl: Crawl, stats: Stats, min_containment: float
    ) -> None:
        """A page has moved to another if each has ``min_containment`` of what is the other's own."""
        self._history = history
        self._contents = contents
        self._crawl = crawl
        self._stats = stats
        self._min_containment = min_containment
        #: Pages that were asked for and not judged, and whether the spider has read them: links lead to them, and from them.
        self.asked = Latest[str, bool](PAGES)
        self._limit = asyncio.Semaphore(AT_ONCE)
        self._led = Latest[str, str](PAGES)  # where redirects have led

    def lead(self, asked: str, url: str) -> None:
        """A redirect has led from one page to another."""
        self._led[asked] = url

    async def look(self, *, may_hide: bool) -> bool:
        """Says what has become of each such page.  Returns whether the crawl went on to the end of that."""
        if self._stats.get_value("dedup/alarms"):
            return False
        before, lost = self._lost()
        reached = {*self._contents.origins, *map(host, self._led)}
        matches = await self._match([version for version in lost if host(version.url) in reached])
        missing = self._missing(before, lost, matches)

        async def find(version: Version) -> Change | None:
            answer = await self._ask(version.url)
            return self._what_became(version, matches.get(version.url, ""), answer, may_hide=may_hide)

        asked = missing[:MAX_ASKED]
        found = await asyncio.gather(*map(find, asked))
        if self._crawl.is_closing():
            return False
        became = dict(zip(asked, found, strict=True))
        walled = await self._walled({version.url: version for version, change in became.items() if change})
        became |= {version: None for version in asked if version.url in walled}
        unread = [version.url for version, change in became.items() if change is None]
        unread += [url for url, is_read in self.asked.items() if not is_read]
        unknown = {*map(host, unread)}
        told = 0
        for version, change in became.items():
            if change is None or (change.word == "hidden" != version.word and host(change.url) in unknown):
                continue  # a page that was not read may link to it
            told += 1
            if change.word == version.word == "hidden":
                continue  # it is no news
            count(self._stats, f"changes/{change.word}")
            self._file(change, version)
            self._crawl.tell(change)
        self._stats.set_value("dedup/changes/not_seen", len(lost) - told)
        return not walled

    async def _ask(self, url: str) -> Answer | None:
        origins = self._contents.origins
        async with self._limit:
            may_ask = host(url) in origins and not self._crawl.is_closing()
            return await self._crawl.ask(url, origins.get(host(url))) if may_ask else None

    async def _walled(self, gone: Mapping[str, Version]) -> set[str]:
        """Returns those of such pages whose nearest page that was met is not served any more, or says the same as they."""
        now, read = self._history.crawl, self._history.texts.read
        beside = {folder: "" for url in gone for folder in _folders(url)}
        for version in self._history.lasting() if gone else ():
            # A new page may be the wall's own.
            if version.last == now and (version.first < now or version.word != "new"):
                for folder in _folders(version.url):
                    # Of a front page, less is walled off.
                    if folder in beside and len(version.url) > len(beside[folder]):
                        beside[folder] = version.url
        nearest = {
            url: next((beside[folder] for folder in _folders(url) if beside[folder]), "") for url in gone
        }

        async def served(url: str) -> Text | None:
            answer = await self._ask(url)
            if answer is None or answer.page is None or name_of(answer.url) != url:
                return None
            return text_of(answer.page)

        met = [*{url for url in nearest.values() if url}]
        says = dict(zip(met, await asyncio.gather(*map(served, met)), strict=True))

        def is_wall(version: Version, near: str) -> bool:
            text, old = says[near], read(version.text)
            return text is None or (
                old is not None and self._contents.words(near, text) == self._contents.words(version.url, old)
            )

        return {url for url, near in nearest.items() if near and is_wall(gone[url], near)}

    def _lost(self) -> tuple[Counter[str], list[Version]]:
        """How many pages there were before, by host, and those that were not met."""
        now = self._history.crawl
        before, lost = Counter[str](), list[Version]()
        for version in self._history.lasting():
            if self._crawl.is_own(version.url) and (version.first < now or version.word != "new"):
                before[host(version.url)] += 1
                if version.last < now:
                    lost.append(version)
        return before, lost

    def _missing(
        self, before: Counter[str], lost: Sequence[Version], matches: Mapping[str, str]
    ) -> list[Version]:
        """Those of hosts of which most were met, be it elsewhere, and those that were."""
        found = self._led.keys() | matches.keys()
        gone = Counter(host(version.url) for version in lost if version.url not in found)
        few = {name for name, count in gone.items() if count > (1 - LEAST_SEEN) * before[name]}
        return [version for version in lost if host(version.url) not in few or version.url in matches]

    async def _match(self, missing: Sequence[Version]) -> dict[str, str]:
        """Returns where the contents of missing pages are now: each at a URL that no crawl had met before this one."""
        now, contents = self._history.crawl, self._contents
        wanted = [version for version in missing if version.text is not None]
        fresh = [*self._history.versions("first = ? AND word = 'new'", now)] if wanted else []
        matches = dict[str, str]()
        shingles = dict[str, Hashes]()
        by_shingle = dict[int, list[str]]()
        async for url, text in self._texts(fresh):
            shingles[url] = own = contents.shingles(url, text)
            for shingle in own[:LEAST].tolist():
                by_shingle.setdefault(shingle, []).append(url)
        async for url, text in self._texts(wanted):
            own = contents.shingles(url, text)
            near = {
                at for shingle in own[:LEAST].tolist() for at in by_shingle.get(shingle, ()) if at in shingles
            }
            found, at = max(((share(own, shingles[at]), at) for at in near), default=(0.0, ""))
            if found >= self._min_containment:
                matches[url] = at
                del shingles[at]
        return matches

    async def _texts(self, versions: Iterable[Version]) -> AsyncIterator[tuple[str, Text]]:
        """Yields the stored texts of versions, and gives other tasks their turn in between."""
        for version in versions:
            if (text := self._history.texts.read(version.text)) is not None:
                yield version.url, text
            await asyncio.sleep(0)

    def _what_became(
        self, version: Version, match: str, answer: Answer | None, *, may_hide: bool
    ) -> Change | None:
        """Returns what became of a page, by where its content is now and what its address answers; None if that is not clear."""
        url = version.url
        led = self._led.get(url, "") if answer is None else name_of(answer.url)
        if match:
            return Change("moved", match, other=url, is_redirected=led == match)
        if answer is None:
            return None
        if answer.status in {404, 410}:
            return Change("gone", url)
        if answer.status != 200 or answer.page is None:
            return None
        old = self._history.texts.read(version.text)
        said = text_of(answer.page)
        same = old is not None and self._contents.are_same(url, old, led, said)
        if led != url:
            return Change("moved", led, other=url, is_redirected=True) if same else Change("gone", url)
        if same and version.word == "hidden":
            self._history.meet(version, handed=False)
        return Change("hidden", url) if same and may_hide and url not in self.asked else None

    def _file(self, change: Change, version: Version) -> None:
        """Writes what became of a page that was not met."""
        write = self._history.write
        if change.word == "moved":
            write(change.other, "redirected" if change.is_redirected else "left", other=change.url)
            last = self._history.last(change.url)
            is_new = last is not None and last.first == self._history.crawl and last.word == "new"
            if last is None or is_new:  # no link leads there, or it was met first
                there = last or version
                write(change.url, "moved", there.digest, same_text=there.text, other=change.other)
                self._stats.inc_value("dedup/changes/new", -is_new)
        elif change.word == "hidden":
            write(change.url, "hidden", version.digest, same_text=version.text)
        else:
            write(change.url, change.word)


def _folders(url: str) -> list[str]:
    """Returns the folders in which a page is, the nearest first.

    >>> _folders("http://a.org/goods/lamps/7.html?page=2")
    ['http://a.org/goods/lamps', 'http://a.org/goods', 'http://a.org']
    """
    parts = url.partition("?")[0].split("/")
    return ["/".join(parts[:end]) for end in range(len(parts) - 1, 2, -1)]
