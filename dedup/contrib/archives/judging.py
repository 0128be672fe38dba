"""The second part of a cleaning: the filter of a crawl judges all pages of a journal.

The pages of one host have to be judged one after another, since what is chrome there is learned from those that are kept.
So the index writes down what it says of each page.  A run that goes on after a kill replays the verdicts that it finds, by
which it files and learns what it had filed and learned, and looks for nothing.
"""

import os
from array import array
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec.msgpack import Decoder, Encoder

from dedup.contrib.archives.entries import Row
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.packing import unpack
from dedup.droplog.log import DropLog
from dedup.errors import IndexUnavailableError, OutputError
from dedup.filter import Counts, Crawl, Filter, Visit
from dedup.filter.stats import count
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index, Verdict
from dedup.index.entry import Entry, rare_keys
from dedup.index.local.index import LocalIndex
from dedup.index.weighing import Order
from dedup.settings import FilterSettings, IndexSettings

_encode = Encoder().encode
_decode = Decoder(Verdict).decode

#: Begins the page ids of pages of another index.
SEED = "in the other index: "


def address(folder: Path) -> str:
    """Returns where the index of a cleaning itself is, which can be made again at any time."""
    return f"file:{os.path.abspath(folder / 'index.sqlite')}"


class RecallingIndex(LocalIndex):
    """An index of a cleaning's own, which is empty at first.  The pages have to come in the same order each time."""

    def __init__(
        self,
        folder: Path,
        detector: Detector,
        plan: IndexSettings,
        journal: Journal,
        *,
        in_memory: bool = False,
    ) -> None:
        for old in folder.glob("index.sqlite*"):
            old.unlink()
        super().__init__("memory:" if in_memory else address(folder), "dedup", detector, **vars(plan))
        self._journal = journal
        self._said = journal.said()
        self.rare = array("Q")  #: the rare shingles by which pages were looked up

    async def _claim(self, entry: Entry, page: Fingerprint) -> Verdict:
        self.rare.extend({*entry.rare} - {*rare_keys((0,) * len(entry.rare), entry.digest)})
        said = next(self._said, None)
        if said is None:
            verdict = await super()._claim(entry, page)
            self._journal.say(_encode(verdict))
            return verdict
        verdict = _decode(said)
        if verdict.status == "new":
            await self.file(entry, Order(), None)
        return replace(verdict, of_run=verdict.of_run and self.run)


class Replay(Crawl):
    """A crawl whose pages are all there.  A page that it is asked to fetch again is judged again instead."""

    def __init__(self) -> None:
        self.again: deque[tuple[int, bool]] = deque()

    def fetch_again(self, origin: Any, *, judged: bool = True) -> None:
        """Has a page judged again that was dropped for what turned out to be a wall."""
        self.again.append((origin, judged))


async def judge_all(
    journal: Journal,
    index: Index,
    stats: Counts,
    policy: FilterSettings,
    advance: Callable[[int], None] = lambda number: None,
    *,
    prepare: Callable[[Index], Awaitable[int]] | None = None,
    alone: bool = False,
) -> int:
    """Has a new filter judge all pages in their order, with an index of its own, and notes what is dropped.

    ``prepare`` fills that index before; returns what it says.  The filter writes no drop log itself: records go into the
    journal, from which a drop can be taken back.  Each page is judged ``alone`` if none is to be dropped for another that
    is judged, but only for what was there before.

    Raises `OutputError` if the index can't be written.
    """
    replay = Replay()
    filter = Filter(index, DropLog(""), stats=stats, crawl=replay, **vars(policy))
    try:
        with _as_output(index):
            await index.open()
        known = await prepare(index) if prepare else 0
        with _as_output(index):
            for number, row in enumerate(journal.in_turn(), 1):
                if row.is_other:
                    await _file(index, row)
                    continue
                await _judge(journal, filter, row, alone)
                while replay.again:
                    position, judged = replay.again.popleft()
                    filter.take_back(journal.keep(position))
                    if judged:
                        await _judge(journal, filter, journal.page(position), alone)
                    else:
                        count(stats, "pages")
                        count(stats, "unjudged", "uncertain")
                advance(number)
    finally:
        await filter.close()
    return known


@contextmanager
def _as_output(index: Index) -> Iterator[None]:
    """An index of one's own that can't be written is an output that can't be."""
    try:
        yield
    except IndexUnavailableError as error:
        raise OutputError(f"{index.where} can't be written: {error}") from None


async def _file(index: Index, row: Row) -> None:
    """Files a page that others are cleaned against."""
    _, made = unpack(row.fingerprint)
    if (await index.claim(str(row.position), row.url, made)).status == "new":
        await index.confirm(str(row.position))


async def _judge(journal: Journal, filter: Filter, row: Row, alone: bool) -> None:
    page, made = unpack(row.fingerprint)
    page_id = str(row.position)
    visit = Visit(page_id, row.url, lambda: page, size=row.size, origin=row.position, fingerprint=made)
    outcome = await filter.judge(visit)
    if outcome.record is not None:
        journal.log(row.position, outcome.record)
    if outcome.action == "drop":
        of = outcome.verdict.of_id or ""
        journal.drop(row.position, int(of) if of.isdigit() else -1, outcome.verdict.of or "")
    else:
        await (filter.failed if alone else filter.handed_over)(page_id)
