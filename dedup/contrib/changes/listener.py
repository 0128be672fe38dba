"""What has become of the pages that earlier crawls have met: new, changed, moved, hidden, gone, or not seen.

A page has changed if anything of its own differs, outside marked chrome (`dedup.contrib.changes.contents`).  What is not certain
counts as a change.  `dedup.contrib.changes.missing` tells what became of pages that are not met.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dedup.contrib.changes.contents import Basis, Contents, content_digest, text_of
from dedup.contrib.changes.file import History, Version, signed
from dedup.contrib.changes.missing import Missing
from dedup.droplog.record import Record
from dedup.filter.change import Change, Said
from dedup.filter.listener import Listener
from dedup.filter.noise.kinds import ENOUGH
from dedup.filter.noise.probe import Probe
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Crawl, Outcome, Visit
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index, Verdict
from dedup.latest import PAGES, Latest
from dedup.page.html import Page
from dedup.page.urls import host
from dedup.printing import clock
from dedup.texts.texts import Text, name_of

logger = logging.getLogger(__name__)


def open_changes(path: Path, run: str, *, keeps_pairs: bool) -> "Changes | None":
    """Returns what tells that, for a run, by the history at a path; None if that can't be opened."""
    try:
        history = History(path)
        history.begin(run)
    except (sqlite3.Error, OSError) as error:
        logger.warning("Texts of pages are not kept: %s can't be used: %s", path, error)
        return None
    return Changes(history, keeps_pairs=keeps_pairs)


class _Sighting(NamedTuple):
    """A page that is met, until it is handed over."""

    version: Version | None  #: the last one, if the page has not changed
    word: str
    url: str
    digest: int
    simhash: str
    text: Text | None
    edits: Sequence[Said]
    carried: int


class Changes(Listener):
    """Tells what has changed, for one crawl."""

    asks_at_end = True

    def __init__(self, history: History, *, keeps_pairs: bool = False) -> None:
        """``keeps_pairs``: the words of near-duplicates are stored, too, for reports."""
        self.history = self._history = history
        self._keeps_pairs = keeps_pairs

    def begin(self, index: Index, probe: Probe, crawl: Crawl, stats: Stats) -> None:
        """The filter is made of these."""
        history = self._history
        self._probe = probe
        self._stats = stats
        self._contents = contents = Contents(index, probe)
        if earlier := [crawl for crawl in history.crawls() if crawl.number < history.crawl]:
            stats.set_value("dedup/changes/since", clock(earlier[-1].began))
        self._missing = Missing(history, contents, crawl, stats, index.settings.min_containment)
        self._pending: dict[str, _Sighting] = {}  # by page id
        self._handed = Latest[str, str](PAGES)  # URLs of pages that were handed over last, by page id
        # The versions before, and what is known of the edits.
        self._changed = Latest[str, tuple[Version, Basis]](PAGES)
        self._told = Latest[str, None](PAGES)  # URLs whose change is counted
        self._is_whole = False

    async def judged(self, visit: Visit, outcome: Outcome, *, incremental: bool) -> Outcome:
        """Returns the same with what has become of a page, and if ``incremental``, whether an earlier crawl has handed it over
        unchanged, for equal data of its request."""
        if self._keeps_pairs and outcome.record is not None and outcome.page is not None:
            self._keep_pair(outcome.record, outcome.page)
        change, is_handed = None, False
        if visit.page_id in self._pending:
            return outcome  # it is met once more before it is handed over
        with self._bearing():
            change, is_handed = await self._see(
                visit, lambda: outcome.page or visit.read(), outcome.fingerprint, outcome.verdict
            )
        if change is not None and change.url not in self._told:
            self._told[change.url] = None
            count(self._stats, f"changes/{change.word}")
        return replace(outcome, change=change, unchanged=outcome.unchanged or (incremental and is_handed))

    @contextmanager
    def _bearing(self) -> Iterator[None]:
        """Without its history, a crawl goes on."""
        try:
            yield
        except sqlite3.Error as error:
            if not self._stats.get_value("dedup/changes/failed"):
                logger.warning(
                    "Some changes of pages will not be told, since the history can't be used: %s", error
                )
            count(self._stats, "changes/failed")

    async def _see(
        self, visit: Visit, read: Callable[[], Page], fingerprint: Fingerprint, verdict: Verdict
    ) -> tuple[Change | None, bool]:
        url, contents = name_of(visit.url), self._contents
        if visit.asked and (asked := name_of(visit.asked)) != url:
            self._missing.lead(asked, url)
        if verdict.status != "unjudged":
            contents.origins[host(url)] = visit.origin
        last = self._history.last(url)
        if last is not None and last.first == self._history.crawl and not last.is_here:
            self._history.forget(url)  # it was met after all
            last = self._history.last(url)
        if verdict.reason == "partial":
            self.asked(url, is_read=False)
        if verdict.status not in {"new", "same"} and verdict.reason not in {"short", "index"}:
            if last is not None and last.is_here:
                self._history.meet(last, handed=False)
            return None, False
        digest, simhash, carried = content_digest(read()), fingerprint.hex or "", signed(visit.carried)

        def met(
            version: Version | None, word: str, text: Text | None = None, own: Sequence[Said] = ()
        ) -> None:
            sighting = _Sighting(version, word, url, digest, simhash, text, own, carried)
            self._pending[visit.page_id] = sighting

        if last is None or not last.is_here:
            met(None, "new", text_of(read()))
            return Change("new", url), False
        is_handed = bool(last.is_handed) and last.carried == carried
        contents.meet(url)
        if last.digest == digest:
            met(last, "back" if last.word == "hidden" else "")
            return None, is_handed
        text = contents.with_blocks(url, text_of(read()))
        if last.first == self._history.crawl:  # what has become of it is told, and it is met once more
            met(last, "", text)
            return None, False
        if (old := self._history.texts.read(last.text)) is None:  # nobody knows any more what it said
            met(None, "changed", text)
            return Change("changed", url), False
        probed = contents.probed(url)
        found = await contents.differences(url, old, text)
        contents.note(url, found)
        if contents.own(url, found):
            await contents.learn(visit.url, text)
            text = contents.with_blocks(url, text)
            if text.breaks or contents.probed(url) != probed:
                before, found = found, await contents.differences(url, old, text)
                contents.note(url, found, contents.keys(url, before))
        if not (own := contents.own(url, found)):
            met(last, "", text)
            return None, is_handed
        self._changed[url] = last, contents.told(url, found)
        met(None, "changed", text, own)
        return Change("changed", url, own), False

    def is_open(self, page_id: str) -> bool:
        """Returns whether a page was met and has neither been handed over nor failed yet."""
        return page_id in self._pending

    def _write(self, met: _Sighting) -> None:
        if met.version is None:
            self._history.write(
                met.url, met.word, met.digest, met.simhash, met.text, edits=met.edits, carried=met.carried
            )
        elif met.word:
            self._history.write(
                met.url, met.word, met.digest, same_text=met.version.text, carried=met.carried
            )
        elif met.text is not None:
            self._history.renew(met.version, met.digest, met.simhash, met.text, met.carried)
        else:
            self._history.meet(met.version, handed=True, carried=met.carried)

    def _keep_pair(self, record: Record, page: Page) -> None:
        """Stores the words of a near-duplicate; those of the page that it duplicates are stored with its version."""
        with self._bearing():
            self._history.pair(record["url"], record["simhash"], text_of(page))
            self._history.pair(record["duplicate_of"], record["duplicate_of_simhash"], None)

    def asked(self, url: str, *, is_read: bool) -> None:
        """A page was asked for, and not judged, or the spider has not read all of it."""
        self._missing.asked[name_of(url)] = is_read

    def spared(self, url: str) -> None:
        """A page was not fetched, since it is another URL of one that was."""
        with self._bearing():
            if (last := self._history.last(name_of(url))) is not None and last.is_here:
                self._history.meet(last, handed=False)

    def handed_over(self, page_id: str) -> None:
        """A page was handed over: what was found of it counts."""
        if met := self._pending.pop(page_id, None):
            with self._bearing():
                self._write(met)
            self._handed[page_id] = met.url
            self._missing.asked.pop(met.url, None)

    def failed(self, page_id: str) -> None:
        """A page was met, but could not be processed."""
        with self._bearing():
            if (met := self._pending.pop(page_id, None)) and (last := self._history.last(met.url)):
                self._history.meet(last, handed=False)

    def undone(self, page_id: str) -> None:
        """Forgets that a page was handed over: it was not processed after all."""
        with self._bearing():
            if url := self._handed.pop(page_id, None):
                self._history.forget(url)
                self._history.hold(url, None)

    # --- The end of a crawl

    def flush(self) -> None:
        """Writes what is known by now, so that the other workers of the crawl can read it."""
        with self._bearing():
            self._history.flush()

    async def look_for_missing(self, *, may_hide: bool) -> None:
        """Says what has become of pages that were not met, once the crawl has nothing else to do.

        ``may_hide``: whether a page that is still served, but was not met, is linked from nowhere.
        """
        with self._bearing():
            await self._look(may_hide=may_hide)

    async def _look(self, *, may_hide: bool) -> None:
        history = self._history
        for met in self._pending.values():
            self._write(met)
        self._pending.clear()
        history.flush()
        await self._settle_changed()
        self._is_whole = await self._missing.look(may_hide=may_hide)
        history.flush()

    async def _settle_changed(self) -> None:
        """Pages that have changed are compared once more, by what is known of noise and chrome by now."""
        contents, anew = self._contents, set[str]()
        for url, (before, told) in [*self._changed.items()]:
            if contents.stands(url, told) or (found := await self._compared_anew(url, before)) is None:
                continue
            anew.add(url)
            contents.note(url, found, told.keys)
            self._changed[url] = before, contents.told(url, found)
        for url, (before, told) in self._changed.items():
            if url not in anew and contents.stands(url, told):
                continue
            if (found := await self._compared_anew(url, before)) is None:
                continue
            if own := contents.own(url, found):
                self._history.write_edits(url, own)
            elif now := self._history.last(url):
                self._history.take_back(before, now)
                self._stats.inc_value("dedup/changes/changed", -1)
        self._history.flush()

    async def _compared_anew(self, url: str, before: Version) -> list[Said] | None:
        """Returns what differs between a page and its last version; None if a text is gone."""
        now, read, contents = self._history.last(url), self._history.texts.read, self._contents
        if now is None or now.first != self._history.crawl:
            return None
        old, new = read(before.text), read(now.text)
        if old is None or new is None:
            return None
        found = await contents.differences(url, old, new)
        for _ in range(ENOUGH):
            if not (contents.own(url, found) and self._probe.may_learn(url)):
                break
            probed = contents.probed(url)
            await contents.learn(url, new)
            if contents.probed(url) != probed:
                found = await contents.differences(url, old, new)
        return found

    def close(self) -> None:
        """The crawl ends."""
        if self._is_whole:
            self._stats.set_value("dedup/changes/whole", True)
        with self._bearing():
            self._history.end(is_whole=self._is_whole)
        with self._bearing():
            self._history.close()
