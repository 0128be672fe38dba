"""The second part of a cleaning: the filter of a crawl judges all pages of a journal."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dedup.contrib.archives.entries import Row
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.packing import unpack
from dedup.droplog.log import DropLog
from dedup.errors import IndexUnavailableError, OutputError
from dedup.filter import Counts, Crawl, Filter, Visit
from dedup.filter.stats import count
from dedup.index import Index
from dedup.settings import FilterSettings

#: Begins the page ids of pages of another index.
SEED = "in the other index: "


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
    """Has a new filter judge all pages, with an index of its own; ``prepare`` fills that before.  Returns what it says.

    Raises `OutputError` if the index can't be written.
    """
    replay = Replay()
    filter = Filter(index, DropLog(""), stats=stats, crawl=replay, **vars(policy))
    try:
        with _as_output(index):
            await index.open()
        known = await prepare(index) if prepare else 0
        with _as_output(index):
            await judge(journal, filter, replay, advance, alone=alone)
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


async def judge(
    journal: Journal, filter: Filter, replay: Replay, advance: Callable[[int], None], *, alone: bool = False
) -> None:
    """Has the filter of a replay judge the pages in their order, and notes what is dropped.

    The filter writes no drop log itself: records go into the journal, from which a drop can be taken back.  Each is judged
    ``alone`` if no page is to be dropped for another that is judged, but only for what was there before.
    """
    for number, row in enumerate(journal.in_turn(), 1):
        if row.is_other:
            await _file(filter.index, row)
            continue
        await _judge(journal, filter, row, alone)
        while replay.again:
            position, judged = replay.again.popleft()
            filter.take_back(journal.keep(position))
            if judged:
                await _judge(journal, filter, journal.page(position), alone)
            else:
                count(filter.stats, "pages")
                count(filter.stats, "unjudged", "uncertain")
        advance(number)


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
