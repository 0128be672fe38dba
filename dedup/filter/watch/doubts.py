"""Watches drops that may yet turn out wrong.

Each was dropped for a kept page.  If that page is claimed but not yet processed, it may fail, or its crawler may die, and
then it was kept nowhere.  If another crawler has processed it and had died before the drop, all that the page links to is
lost.  That shows only when the lease of that crawler ends.  So the drop is certain only when that crawler has renewed its
lease after the drop, or has finished.  Even then the kept page may turn out to be a wall.

In all these cases what was dropped is fetched again.  So it is if nobody says in time what became of the kept page: its
claim is annulled, and the first copy that is fetched again takes its place.  If the index is out of reach, what is fetched
again is kept unjudged.  If the crawl is stopped, whoever goes on with it judges it.  So no doubt ends in a loss.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from dedup.errors import DedupError
from dedup.filter.stats import Stats, count
from dedup.filter.visit import Crawl
from dedup.filter.watch.drop import Drop, is_alive
from dedup.fingerprint.simhash import distance
from dedup.index import Index
from dedup.index.batching import end
from dedup.latest import REMEMBERED, Latest
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: Seconds between two looks at the pages of other crawlers; `settle` tells of one's own.  A page waits as long for another one.
INTERVAL = 1.0
#: Seconds for which a page of another crawler is waited for by a crawl that is otherwise at its end.
PATIENCE = 20.0
#: ... and this many times as long if the page is done and its run is silent: by then the lease of a dead run has ended.
SILENCE = 3.5
#: A page is fetched again this often because a crawler died or was silent for too long; then it is kept in any case.  At as many
#: addresses a content is tried that gives no item.
MAX_AGAIN = 5
#: Why a page is fetched again.
NOT_SAID = "nobody has said what became of the page that it duplicates"


@dataclass(eq=False)
class Watch:
    """Watches the kept pages that drops of one crawl depend on."""

    index: Index
    stats: Stats
    crawl: Crawl  #: fetches pages again, and holds them as long as that may happen
    #: Is told the line in the drop log of a drop that was wrong, and why it was.
    undone: Callable[[bytes, str], None] = lambda line, why: None

    def __post_init__(self) -> None:
        self._waiting: dict[str, list[Drop]] = {}  # by the page id of the kept page
        self.count = 0  #: how many drops are uncertain
        # The runs of pages that are done, which have to give a sign of life.
        self._runs: dict[str, str] = {}
        # Runs that gave none for too long, and when their leases were to end as it was first seen after that.
        self._silent: dict[str, float] = {}
        # Since when that page, or a sign of its run, is waited for.
        self._since = Latest[str, float](REMEMBERED)
        self._looked = -math.inf  # when the last look that has come to its end began
        self._certain: dict[str, list[Drop]] = {}  # likewise, where nothing is waited for
        self._certain_count = 0
        self._again = Latest[str, int](REMEMBERED)  # how often page ids were fetched again
        self._processed = Latest[str, None](REMEMBERED)  # page ids that `settle` has told of last
        self._task: asyncio.Task[None] | None = None
        self._annulling: asyncio.Task[None] | None = None

    def may_doubt(self, page_id: str, of_run: str | None = None) -> bool:
        """Returns whether a page may be dropped for one that is not certain: there is room, and it was not fetched again too often.

        ``of_run`` is the run of the kept page; it must not be one from which nothing was heard for too long.
        """
        is_heard = of_run not in self._silent
        return is_heard and self._again.get(page_id, 0) < MAX_AGAIN and self.count < REMEMBERED

    def has_processed(self, page_id: str) -> bool:
        """Returns whether this crawl has processed a page, unless that was long ago."""
        return page_id in self._processed

    def add(self, of_id: str, drop: Drop, *, certain: bool) -> None:
        """Remembers a drop, and whether the kept page was done, by a run that lives for ``certain``."""
        self.crawl.hold(drop.origin)
        # The answer was on its way, or the index is told a second later.
        if certain or of_id in self._processed:
            self._add_certain(of_id, [drop])
            return
        self._waiting.setdefault(of_id, []).append(drop)
        self.count += 1
        self._since.setdefault(of_id, time.monotonic())
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())

    def _add_certain(self, of_id: str, drops: list[Drop]) -> None:
        if not drops:
            return
        self._certain.setdefault(of_id, []).extend(drops)
        self._certain_count += len(drops)
        while self._certain_count > REMEMBERED:
            forgotten = self._certain.pop(next(iter(self._certain)))
            self._certain_count -= len(forgotten)
            for drop in forgotten:
                self.crawl.let_go(drop.origin)

    async def _look(self) -> None:
        while self._waiting or self._silent:
            await asyncio.sleep(INTERVAL)
            began = time.monotonic()
            with suppress(DedupError):  # the index is out of reach: it is asked again
                await self._ask_for_pages()
                await self._ask_for_runs()
            self._looked = began

    async def _ask_for_pages(self) -> None:
        page_ids = list(self._waiting)
        states = await self.index.states(page_ids)
        done = [page_id for page_id, state in zip(page_ids, states, strict=True) if state.is_done]
        as_they_were = dict(zip(done, await asyncio.gather(*map(self._is_as_it_was, done)), strict=True))
        for page_id, state in zip(page_ids, states, strict=True):
            if not (state.is_pending or as_they_were.get(page_id)):
                self.settle(page_id, processed=False, elsewhere=True)

    async def _is_as_it_was(self, of_id: str) -> bool:
        """Returns whether a page is filed with what others were dropped for: it may have failed, and been claimed anew."""
        filed = await self.index.find(of_id)
        before, drops = self._runs.get(of_id), self._waiting.get(of_id, [])
        if filed is None or not all(drop.of_simhash in (None, filed.simhash) for drop in drops):
            return False
        if drops and filed.run != before:
            if before:  # what was seen of its lease says nothing of the other run's
                self._waiting[of_id] = [drop._replace(lease=math.inf) for drop in drops]
            self._runs[of_id] = filed.run
            self._since[of_id] = time.monotonic()
        return True

    async def _ask_for_runs(self) -> None:
        runs = {*self._runs.values(), *self._silent}
        leases = dict(zip(runs, await self.index.leases([*runs]), strict=True))
        for page_id, run in list(self._runs.items()):
            if run in leases:
                self._hear(page_id, leases[run])
        for run, before in list(self._silent.items()):
            if is_alive(leases.get(run, 0.0), before):
                del self._silent[run]
            else:
                self._silent[run] = min(before, leases.get(run, before))

    def _hear(self, of_id: str, lease: float) -> None:
        """Makes drops certain: those that happened before the run of the kept page last gave a sign of life."""
        certain, waiting = list[Drop](), list[Drop]()
        for drop in self._waiting.get(of_id, []):
            is_certain = is_alive(lease, drop.lease)
            (certain if is_certain else waiting).append(drop._replace(lease=min(drop.lease, lease)))
        if waiting:
            self._waiting[of_id] = waiting
            self.count -= len(certain)
            if certain:  # else a page that is met over and over would seem to be waited for all the time
                self._since[of_id] = time.monotonic()
        else:
            self._forget(of_id)
        self._add_certain(of_id, certain)

    def settle(self, of_id: str, *, processed: bool, elsewhere: bool = False) -> None:
        """Settles the drops for a kept page that is done or has failed; ``elsewhere``: in another crawler, which may have died."""
        drops = self._forget(of_id)
        self._processed.pop(of_id, None)
        if processed and not elsewhere:
            self._processed[of_id] = None
        if processed and drops:
            self._add_certain(of_id, drops)
        elif drops:
            self._undo(drops, "the page that it duplicates failed", times=1 if elsewhere else MAX_AGAIN)

    def undo(self, of_id: str, why: str, most: int | None = None) -> None:
        """Has pages fetched again, all or so many, that were dropped for a page which turned out to be none."""
        self._processed.pop(of_id, None)
        drops = self._certain.pop(of_id, [])
        self._certain_count -= len(drops)
        drops += self._forget(of_id)
        self._undo(drops[:most], why, times=MAX_AGAIN if most is None else 1)
        self._add_certain(of_id, [] if most is None else drops[most:])

    def follow(self, of_id: str, page_id: str) -> None:
        """The links of the page that was dropped last for another one are followed after all: they are not to be counted twice."""
        for drops in (self._waiting.get(of_id), self._certain.get(of_id)):
            if drops and drops[-1].page_id == page_id:
                drops[-1] = drops[-1]._replace(links=0)

    def met(self, page_id: str, simhash: int | None) -> None:
        """Notes that a page was fetched.  If its content has changed, drops that relied on the old content are undone."""
        drops = self._certain.get(page_id) or self._waiting.get(page_id) or []
        old = drops[0].of_simhash if drops else None
        if old is not None and (simhash is None or distance(simhash, old) > self.index.detector.max_distance):
            self.undo(page_id, "the page that it duplicated shows something else now")

    def _forget(self, of_id: str) -> list[Drop]:
        """Stops waiting for a page, and returns what was dropped for it."""
        self._since.pop(of_id, None)
        self._runs.pop(of_id, None)
        drops = self._waiting.pop(of_id, [])
        self.count -= len(drops)
        if drops and not self._waiting:
            self.crawl.wake()
        return drops

    def _undo(self, drops: list[Drop], why: str, *, judged: bool = True, times: int = MAX_AGAIN) -> None:
        for drop in drops:
            self._again[drop.page_id] = self._again.get(drop.page_id, 0) + times
            logger.info("Fetched again: %s, as %s", inert(drop.url), why)
            count(self.stats, "fetched_again")
            if drop.links:
                self.stats.inc_value("dedup/links_not_followed", -drop.links)
            if drop.line:
                self.undone(drop.line, why)
            self.crawl.fetch_again(drop.origin, judged=judged)
            self.crawl.let_go(drop.origin)

    def is_waiting(self) -> bool:
        """Returns whether a crawl with nothing else to do should go on.  Gives up what has been uncertain for too long.

        That time ends at the last look: on a busy machine this crawl may itself have been silent.
        """
        if not self._waiting:
            return False
        longest = dict.fromkeys(self._runs, SILENCE * PATIENCE)
        late = [
            of_id
            for of_id in self._waiting
            if self._since.get(of_id, 0.0) <= self._looked - longest.get(of_id, PATIENCE)
        ]
        if late and (self._annulling is None or self._annulling.done()):
            self._annulling = asyncio.create_task(self._annul(late))
        return True

    async def _annul(self, of_ids: Iterable[str]) -> None:
        """Takes back claims whose pages nobody has processed in time; the first page that was dropped for one is kept then.

        A page that is done can't be taken back.  What was dropped for it is kept if its run is silent.
        """
        for of_id in of_ids:
            if run := self._runs.get(of_id):
                self._silent.setdefault(run, math.inf)
                self.give_up([of_id])
                self._since.pop(of_id, None)  # if its run is heard of again, that counts anew
                continue
            try:
                is_annulled = await self.index.annul(of_id)
            except Exception as error:  # noqa: BLE001 (whatever it is, no doubt may last)
                logger.debug("Not annulled: the claim of %s: %s", inert(of_id), error)
                self.give_up([of_id])
            else:
                if is_annulled:  # else `_look` sees what became of it
                    drops = self._forget(of_id)
                    self.stats.inc_value("dedup/uncertain", len(drops))
                    self._undo(drops, NOT_SAID, times=1)

    def give_up(self, of_ids: Iterable[str] | None = None, *, judged: bool = False) -> None:
        """Fetches again, unjudged or not, what was dropped for these pages, or for any page that is not done."""
        for of_id in list(self._waiting) if of_ids is None else of_ids:
            since = self._since.get(of_id, 0.0)
            drops = self._forget(of_id)
            self._since[of_id] = since  # whatever is dropped for that page later has been waited for already
            self.stats.inc_value("dedup/uncertain", len(drops))
            self._undo(drops, NOT_SAID, judged=judged)

    async def close(self) -> None:
        """Stops looking, and gives up what is still uncertain."""
        await end(self._task)
        await end(self._annulling)
        self.give_up()
