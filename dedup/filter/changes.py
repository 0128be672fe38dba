"""What has become of the pages that earlier crawls have met: new, changed, moved, hidden, gone, or not seen.

A page has changed if anything differs from what it said outside marked chrome, but for two things.  What was seen to change
when such a page was fetched twice more is noise (`dedup.filter.noise`).  And an edit that most known pages of a host have
alike is one of the chrome around them, not of their own contents.  Whatever is not certain counts as a change.

A page that is not met is not gone.  When a crawl has nothing else to do, it asks for such pages once, by their addresses, if
most pages of their host were met and no wall was.  Without a clear answer a page was just not seen.
"""

import asyncio
import logging
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any, NamedTuple

from dedup.droplog.record import Record
from dedup.filter.noise import MAX_KNOWN
from dedup.filter.probe import Probe
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Answer, Visit
from dedup.fingerprint.chrome import KNOWN
from dedup.fingerprint.detector import LEAST_VIEW
from dedup.fingerprint.evidence import Part
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.fingerprint.shingles import Hashes, containment
from dedup.history.changes import Change
from dedup.history.differences import small_edits
from dedup.history.file import History, Said, Version, signed
from dedup.history.texts import Text, name_of
from dedup.index import Index, Verdict
from dedup.latest import Latest
from dedup.page.html import Page
from dedup.page.tokens import join
from dedup.page.urls import host
from dedup.page.words import is_url

__all__ = ["MAX_ASKED", "Changes"]

logger = logging.getLogger(__name__)

#: An edit is one of chrome if at least this share of the known pages of a host that were met have it.
ALIKE = 0.5
#: Of a host of which a crawl has met less than this share of the pages of before, no page is called gone.
LEAST_SEEN = 0.5
#: Pages that were not met and are asked for, at most, and how many at once.
MAX_ASKED, AT_ONCE = 10_000, 8
#: Tokens of two texts, multiplied, that are compared in another thread.
LARGE = 4_000_000
#: Of so many pages it is known that they were handed over: an item of theirs may still fail.
REMEMBERED = 100_000
#: Of so many hosts it is known how their pages are asked for.
MAX_HOSTS = 10_000
#: By how many of its least own shingles it is looked for where a page has moved.
LEAST = 16
#: A page that was not met says what it said if each has this share of what is the other's own.
SAME = 0.5

#: Words that are told before and after those that differ.
AROUND = 4


class _Met(NamedTuple):
    """A page that is met, until it is handed over."""

    version: Version | None  #: that of before, if the page is what it was
    word: str
    url: str
    digest: int
    simhash: str
    text: Text | None = None
    edits: Sequence[Said] = ()


class Changes:
    """Tells what has changed, for one crawl."""

    def __init__(
        self,
        history: History,
        index: Index,
        probe: Probe,
        stats: Stats,
        ask: Callable[[str, Any], Awaitable[Answer | None]],
        tell: Callable[[Change], object],
    ) -> None:
        """``ask`` is `Crawl.ask`; ``tell`` is called with what is found at the end of the crawl."""
        self._history = history
        self._index = index
        self._probe = probe
        self._stats = stats
        self._ask = ask
        self._tell = tell
        self._pending: dict[str, _Met] = {}  # by page id
        self._handed = Latest[str, str](REMEMBERED)  # URLs of pages that were handed over last, by page id
        self._known = Latest[str, int](MAX_HOSTS)  # known pages that were met, by host
        self._alike = Latest[int, int](REMEMBERED)  # edits, by digest
        self._changed = Latest[str, Version](REMEMBERED)
        self._origins = Latest[str, Any](MAX_HOSTS)  # of a page of each host: how others there are asked for
        self._led = Latest[str, str](REMEMBERED)  # where redirects have led
        self._is_whole = False

    async def see(
        self, visit: Visit, read: Callable[[], Page], fingerprint: Fingerprint, verdict: Verdict
    ) -> tuple[Change | None, bool]:
        """What has become of a page, and whether an earlier crawl has handed over what it says."""
        change, is_handed = None, False
        with self._bearing():
            change, is_handed = await self._see(visit, read, fingerprint, verdict)
        return change, is_handed

    @contextmanager
    def _bearing(self) -> Iterator[None]:
        """Without its history, a crawl goes on."""
        try:
            yield
        except sqlite3.Error as error:
            if not self._stats.get_value("dedup/changes/failed"):
                logger.warning("What has changed is not all known: the history can't be used: %s", error)
            count(self._stats, "changes/failed")

    async def _see(
        self, visit: Visit, read: Callable[[], Page], fingerprint: Fingerprint, verdict: Verdict
    ) -> tuple[Change | None, bool]:
        url = name_of(visit.url)
        if visit.asked and (asked := name_of(visit.asked)) != url:
            self._led[asked] = url
        if verdict.status != "unjudged":
            self._origins[host(url)] = visit.origin
        last = self._history.last(url)
        if last is not None and last.first == self._history.crawl and not last.is_here:
            self._history.forget(url)  # it was met after all
            last = self._history.last(url)
        if verdict.status not in {"new", "same"} and verdict.reason not in {"short", "index"}:
            if last is not None and last.is_here:
                self._history.meet(last, handed=False)
            return None, False
        digest, simhash = signed(fingerprint.view or fingerprint.digest), fingerprint.hex or ""
        if last is None or not last.is_here:
            self._await(visit, verdict, _Met(None, "new", url, digest, simhash, _text(read())))
            return Change("new", url), False
        self._known[host(url)] = self._known.get(host(url), 0) + 1
        if last.digest == digest:
            self._await(
                visit, verdict, _Met(last, "back" if last.word == "hidden" else "", url, digest, simhash)
            )
            return None, bool(last.is_handed)
        text = _text(read())
        old = None if last.text is None else self._history.texts.read(last.text)
        if old is None:  # nobody knows any more what it said
            self._await(visit, verdict, _Met(None, "changed", url, digest, simhash, text))
            return Change("changed", url), False
        found = await self._differences(url, old, text)
        for key in self._keys(url, found):
            self._alike[key] = self._alike.get(key, 0) + 1
        if self._own(url, found) and await self._learn(visit.url, text):
            found = await self._differences(url, old, text)
        if not (own := self._own(url, found)):
            self._await(visit, verdict, _Met(last, "", url, digest, simhash, text))
            return None, bool(last.is_handed)
        self._changed[url] = last
        self._await(visit, verdict, _Met(None, "changed", url, digest, simhash, text, own))
        return Change("changed", url, own), False

    def _await(self, visit: Visit, verdict: Verdict, met: _Met) -> None:
        """Writes what was met when the page is handed over; at once if nobody will say so."""
        if verdict.status == "unjudged":
            self._write(met)
        else:
            self._pending[visit.page_id] = met

    def _write(self, met: _Met) -> None:
        if met.version is None:
            self._history.write(met.url, met.word, met.digest, met.simhash, met.text, edits=met.edits)
        elif met.word:
            self._history.write(met.url, met.word, met.digest, same_text=met.version.text)
        elif met.text is not None:
            self._history.renew(met.version, met.digest, met.simhash, met.text)
        else:
            self._history.meet(met.version, handed=True)

    async def _learn(self, url: str, text: Text) -> bool:
        """Fetches a page twice more to see what is noise, if that is not known; whether any is known then."""

        def is_same(answer: Page) -> bool:
            return _share(self._shingles(url, text), self._shingles(url, _text(answer))) >= SAME

        return await self._probe.learn(url, self._origins.get(host(url)), is_same)

    async def _differences(self, url: str, old: Text, new: Text) -> list[Said]:
        """The old words and the new ones, place by place, without noise."""
        a, b = self._said(url, old), self._said(url, new)
        found = await asyncio.to_thread(small_edits, a, b) if len(a) * len(b) > LARGE else small_edits(a, b)
        return [
            Said(
                " ".join(a[edit.start : edit.end]),
                " ".join(edit.tokens),
                " ".join(a[max(0, edit.start - AROUND) : edit.start]),
                " ".join(a[edit.end : edit.end + AROUND]),
            )
            for edit in found
        ]

    def _said(self, url: str, text: Text) -> list[str]:
        """The tokens of a page outside marked chrome, or all if too little is, and those of its data, without noise."""
        tokens = join(text.tokens).decode().split("\0")
        chrome = text.chrome
        if len(tokens) - sum(end - start for start, end in chrome) < LEAST_VIEW:
            chrome = ()
        if not self._probe.is_met(url):
            ends = [(0, 0), *chrome, (len(tokens), 0)]
            return [*chain(*(tokens[end:start] for (_, end), (start, _) in pairwise(ends))), "", *text.data]
        for start, end in chrome:
            tokens[start:end] = map(_Framed, tokens[start:end])  # noise is known by what is around it
        left = self._probe.left(url, [*tokens, "", *text.data])
        return [token for token in left if type(token) is str]

    def _keys(self, url: str, found: list[Said]) -> list[int]:
        name = host(url)
        return [hash((name, said.old, said.new)) for said in found]

    def _own(self, url: str, found: list[Said]) -> list[Said]:
        """The edits that few pages of a host have."""
        few = max(KNOWN, ALIKE * self._known.get(host(url), REMEMBERED))
        return [
            edit
            for edit, key in zip(found, self._keys(url, found), strict=True)
            if self._alike.get(key, 0) < few
        ]

    def keep_pair(self, record: Record, page: Page) -> None:
        """Stores the words of a near-duplicate; those of the page that it duplicates are stored with its version."""
        with self._bearing():
            self._history.pair(record["url"], record["simhash"], _text(page))
            self._history.pair(record["duplicate_of"], record["duplicate_of_simhash"], None)

    def handed_over(self, page_id: str) -> None:
        """A page was handed over: what was found of it counts."""
        if met := self._pending.pop(page_id, None):
            with self._bearing():
                self._write(met)
            self._handed[page_id] = met.url

    def failed(self, page_id: str) -> None:
        """A page was met, but could not be processed."""
        with self._bearing():
            if (met := self._pending.pop(page_id, None)) and (last := self._history.last(met.url)):
                self._history.meet(last, handed=False)

    def forget(self, page_id: str) -> None:
        """What was handed over was not processed after all."""
        with self._bearing():
            if url := self._handed.pop(page_id, None):
                self._history.forget(url)

    # --- The end of a crawl

    async def look_for_missing(self, is_closing: Callable[[], bool], *, may_hide: bool) -> None:
        """Says what has become of the pages that a crawl that has nothing else to do has not met.

        ``may_hide``: whether a page that is there, but was not met, is linked from nowhere.
        """
        with self._bearing():
            await self._look(is_closing, may_hide=may_hide)

    async def _look(self, is_closing: Callable[[], bool], *, may_hide: bool) -> None:
        history = self._history
        for met in self._pending.values():
            self._write(met)
        self._pending.clear()
        history.flush()
        await self._settle_changed()
        missing = self._missing()
        matches = await asyncio.to_thread(self._match, missing)
        limit = asyncio.Semaphore(AT_ONCE)

        async def find(version: Version) -> Change | None:
            async with limit:
                may_ask = host(version.url) in self._origins and not is_closing()
                origin = self._origins.get(host(version.url))
                answer = await self._ask(version.url, origin) if may_ask else None
            return self._what_became(version, matches.get(version.url, ""), answer, may_hide=may_hide)

        asked = missing[:MAX_ASKED]
        found = await asyncio.gather(*map(find, asked))
        if is_closing():
            return
        versions = {version.url: version for version in missing}
        unknown = {host(version.url) for version, change in zip(asked, found, strict=True) if change is None}
        for change in filter(None, found):
            version = versions[change.other or change.url]
            if change.word == "hidden" and (version.word == "hidden" or host(change.url) in unknown):
                continue  # it is no news, or a page that could not be had may link to it
            count(self._stats, f"changes/{change.word}")
            self._file(change, version)
            self._tell(change)
        history.flush()
        self._is_whole = True

    async def _settle_changed(self) -> None:
        """Pages that have changed are compared once more, by what is known of noise and chrome by now."""
        read = self._history.texts.read
        for url, before in self._changed.items():
            now = self._history.last(url)
            if now is None or before.text is None or now.text is None or now.first != self._history.crawl:
                continue
            old, new = read(before.text), read(now.text)
            if old is None or new is None:
                continue
            own = self._own(url, await self._differences(url, old, new))
            tries = MAX_KNOWN
            while own and tries and not self._probe.is_known(url):
                tries -= 1
                if await self._learn(url, new):
                    own = self._own(url, await self._differences(url, old, new))
            if own:
                self._history.write_edits(url, own)
            else:
                self._history.take_back(before, now)
        self._history.flush()

    def _missing(self) -> list[Version]:
        """The pages that were there before and were not met, of hosts of which most were."""
        now = self._history.crawl
        before, lost = Counter[str](), list[Version]()
        for version in self._history.lasting():
            if version.first < now:
                before[host(version.url)] += 1
                if version.last < now:
                    lost.append(version)
            elif version.word != "new":
                before[host(version.url)] += 1
        gone = Counter(host(version.url) for version in lost if version.url not in self._led)
        if self._stats.get_value("dedup/alarms"):
            return []
        return [
            version
            for version in lost
            if gone[host(version.url)] <= (1 - LEAST_SEEN) * before[host(version.url)]
        ]

    def _match(self, missing: Sequence[Version]) -> dict[str, str]:
        """Where the contents of missing pages are now: URLs of pages that this crawl has met first, one for each."""
        read = self._history.texts.read
        wanted = {version.url: read(version.text) for version in missing if version.text is not None}
        now = self._history.crawl
        fresh = {
            version.url: read(version.text)
            for version in self._history.versions("first = ? AND word = 'new'", now)
            if wanted and version.text is not None
        }
        matches: dict[str, str] = {}
        by_words: dict[tuple[str, ...], list[str]] = {}
        for url, text in fresh.items():
            if text is not None:
                by_words.setdefault(self._words(url, text), []).append(url)
        for url, text in wanted.items():
            if text is not None and (same := by_words.get(self._words(url, text))):
                matches[url] = same.pop()
        taken = {*matches.values()}
        shingles = {
            url: self._shingles(url, text) for url, text in fresh.items() if text and url not in taken
        }
        by_shingle: dict[int, list[str]] = {}
        for url, own in shingles.items():
            for shingle in own[:LEAST].tolist():
                by_shingle.setdefault(shingle, []).append(url)
        for url, text in wanted.items():
            if text is None or url in matches:
                continue
            own = self._shingles(url, text)
            near = {
                at for shingle in own[:LEAST].tolist() for at in by_shingle.get(shingle, ()) if at in shingles
            }
            share, at = max(((_share(own, shingles[at]), at) for at in near), default=(0.0, ""))
            if share >= self._index.settings.min_containment:
                matches[url] = at
                del shingles[at]
        return matches

    def _words(self, url: str, text: Text) -> tuple[str, ...]:
        """What a page says, wherever it is: its words without noise."""
        return tuple(word for word in self._said(url, text) if not is_url(word))

    def _shingles(self, url: str, text: Text) -> Hashes:
        """The shingles that few pages of a host have."""
        detector, hosts = self._index.detector, self._index.hosts
        page = Page(text.tokens, 0, None, tuple(text.chrome), data=tuple(text.data))
        found = detector.fingerprint_page(page)
        if found.own is None:
            return detector.shingles(Page([], 0))
        return (
            found.own.main if hosts is None else Part(detector.sketcher, found, hosts.table(host(url))).rare
        )

    def _what_became(
        self, version: Version, match: str, answer: Answer | None, *, may_hide: bool
    ) -> Change | None:
        """What became of a page that was not met, by where its content is now and by what its address answers."""
        url, led = version.url, "" if answer is None else name_of(answer.url)
        if match:
            return Change("moved", match, other=url, is_redirected=led == match)
        if answer is None:
            return None
        if answer.status in {404, 410}:
            return Change("gone", url)
        if answer.status != 200 or answer.page is None:
            return None
        old = None if version.text is None else self._history.texts.read(version.text)
        said = _text(answer.page)
        same = old is not None and _share(self._shingles(url, old), self._shingles(led, said)) >= SAME
        if led != url:
            return Change("moved", led, other=url, is_redirected=True) if same else Change("gone", url)
        if same and version.word == "hidden":
            self._history.meet(version, handed=False)
        return Change("hidden", url) if same and may_hide else None

    def _file(self, change: Change, version: Version) -> None:
        """Writes what became of a page that was not met."""
        write = self._history.write
        if change.word == "moved":
            write(change.other, "redirected" if change.is_redirected else "left", other=change.url)
            last = self._history.last(change.url)
            if last is not None and last.first == self._history.crawl and last.word == "new":
                write(change.url, "moved", last.digest, same_text=last.text, other=change.other)
        elif change.word == "hidden":
            write(change.url, "hidden", version.digest, same_text=version.text)
        else:
            write(change.url, change.word)

    def close(self) -> None:
        """The crawl ends."""
        with self._bearing():
            self._history.end(is_whole=self._is_whole)
        with self._bearing():
            self._history.close()


class _Framed(str):
    """A token that is marked as chrome."""

    __slots__ = ()


def _text(page: Page) -> Text:
    return Text(page.tokens, page.chrome, page.data)


def _share(a: Hashes, b: Hashes) -> float:
    """How much of each set of shingles the other has, of the one of which it has less."""
    return min(containment(a, b), containment(b, a)) if len(a) and len(b) else 0.0
