"""The filter: a page goes in, and what becomes of it comes out.

The law: when not certain, keep.  A page is dropped only with a verdict, and only after its record is in the
drop log.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from dedup.droplog.kept import Kept, KeptLog
from dedup.droplog.log import DropLog, as_line
from dedup.droplog.record import Record, now
from dedup.filter.case import Case
from dedup.filter.copies import Copies
from dedup.filter.ending import Ending
from dedup.filter.judges import Bench
from dedup.filter.listener import Listener
from dedup.filter.reading import Reading
from dedup.filter.recording import count_page, counts_of, undo
from dedup.filter.stats import Counts, Stats, count, spend
from dedup.filter.variants import Variants
from dedup.filter.visit import Crawl, Outcome, Visit
from dedup.filter.watch.traps import Traps
from dedup.index import Index, Verdict
from dedup.page.urls import strip_user
from dedup.printing import inert
from dedup.settings import Action, FilterSettings

logger = logging.getLogger(__name__)


class Filter:
    """The filter of one crawl."""

    def __init__(
        self,
        index: Index,
        log: DropLog,
        *,
        stats: Stats | None = None,
        crawl: Crawl | None = None,
        listener: Listener | None = None,
        **settings: Any,
    ) -> None:
        """``index``, ``log`` and ``listener`` are closed with the filter; the other keywords are `FilterSettings`.

        Raises `SettingsError` for a value that is not allowed.
        """
        self.settings = FilterSettings(**settings)
        self.index = index
        self.log = log
        self._kept_log = KeptLog(log)
        self.stats = stats if stats is not None else Counts()
        #: What hears of the pages, too.
        self.listener = listener or Listener()
        self.crawl = crawl or Crawl()
        self._bench = bench = Bench(index, log, self.stats, self.crawl, self.settings)
        self._claimant, self._watch, self._barren = bench.claimant, bench.watch, bench.barren
        self._probe = bench.probe
        self.listener.begin(index, self._probe, self.crawl, self.stats)
        #: URLs that need not be fetched.
        self.variants = Variants(index, log, self._watch, self.stats)
        #: What only near-duplicates link to; it is told what the crawl asks for.
        self.unreached = bench.unreached
        self._copies = Copies(bench)
        self._reading = Reading(index.detector, self.stats)
        self._traps = Traps(self.stats)
        self._ending = Ending(bench, self.listener)
        #: True if another worker has taken over this worker's shard, and crawls all of it again.
        self.has_heir = False

    async def judge(self, visit: Visit) -> Outcome:
        """Judges a page, and returns what becomes of it.  Whatever fails, the page is kept."""
        case = await self._read(visit)
        try:
            return await self._judge(case)
        except Exception as error:
            if error is self._claimant.stopped_by:
                raise
            logger.exception("Kept %s: it can't be judged", inert(visit.url))
            if case.record is not None:
                undo(self.log, as_line(case.record), "it can't be judged")
            case.verdict, case.record = Verdict.unjudged("internal_error"), None
            count(self.stats, "unjudged", "internal_error")
            return self._outcome(case)

    async def _judge(self, case: Case) -> Outcome:
        visit = case.visit
        self.unreached.visit(visit.url)
        self._copies.pairs.visit(visit.url)
        verdict = await self._bench.decide(case)
        # What was dropped for it meanwhile is fetched again.
        if case.claimed.status == "new" != verdict.status:
            await self.failed(visit.page_id)
        elif verdict.status == "same":
            await self._probe.keep(visit, case.page, case.fingerprint)
        outcome = self._outcome(case)
        outcome = await self.listener.judged(visit, outcome, incremental=self.settings.incremental is True)
        count_page(self.stats, outcome)
        self._traps.see(visit.url, outcome)
        if case.record is None:
            self._keep(case, outcome)
        else:
            self._probe.name(verdict.of_id, visit.url)
            if self.settings.incremental:
                await self._claimant.forget_other(visit.page_id, case.fingerprint)
            self._copies.follow_up(case, outcome, case.record)
            if verdict.of == visit.referer:
                self._copies.note_link(visit.referer, leads_to_page=False)
        return outcome

    async def _read(self, visit: Visit) -> Case:
        started = time.perf_counter()
        case = await self._reading.read(visit, self.action_for(visit))
        self._watch.met(visit.page_id, case.fingerprint.simhash)
        spend(self.stats, "fingerprint", time.perf_counter() - started)
        return case

    def _outcome(self, case: Case) -> Outcome:
        verdict, record = case.verdict, case.record
        return Outcome(
            "keep" if record is None else case.action,
            verdict,
            case.fingerprint,
            case.page if case.is_read else None,
            record,
            leads_on=record is not None and self._copies.leads_on(case.visit, record, verdict.of_id or ""),
            unchanged=bool(self.settings.incremental) and verdict.known,
        )

    def _keep(self, case: Case, outcome: Outcome) -> None:
        visit, verdict = case.visit, case.verdict
        if verdict.judge != "index" or verdict.reason:
            why = verdict.why or verdict.reason or ""
            self._kept_log.write(Kept(now(), strip_user(visit.url), verdict.judge, why, verdict.beside))
        self._copies.depths.keep(visit.page_id, visit.depth)
        self._bench.canonicals.keep(visit.url, case.page.canonical)
        self._barren.expect(visit.page_id, None if outcome.unchanged else visit.kind)
        if verdict.status == "new" and self.unreached.reads():
            for url in visit.links():
                self.unreached.ask(url)
        self._copies.note_link(visit.referer, leads_to_page=verdict.reason not in {"short", "empty"})

    async def spare(self, visit: Visit) -> Record | None:
        """Returns the record of a page that need not be fetched, since its site says that it is a kept one; else None."""
        may_drop = self.action_for(visit) == "drop" and not self.crawl.depth_limit
        record = await self.variants.drop(visit) if may_drop else None
        if record is not None:
            self.listener.spared(visit.url)
        return record

    def parks(self, url: str, found_on: str | None) -> bool:
        """Returns whether a link is not to be followed, since it leads on in a trap; ``found_on`` is the URL of its page."""
        if self.settings.action == "mark" or not self._traps.parks(url, found_on):
            return False
        self.listener.spared(url)
        return True

    def follow(self, verdict: Verdict, page_id: str) -> None:
        """Notes that the links of a near-duplicate are followed after all."""
        self._watch.follow(verdict.of_id or "", page_id)

    def link_failed(self, found_on: str | None) -> None:
        """Notes that a link on the page at this URL led to no page."""
        self._copies.note_link(found_on, leads_to_page=False)

    def note_asked(self, url: str, *, is_read: bool = True) -> None:
        """Notes that a page was asked for, though it was not judged: a link leads to it.

        If the spider has not read all of it, there may be links on it to pages that the crawl has not met.
        """
        self.listener.asked(url, is_read=is_read)

    def action_for(self, visit: Visit) -> Action:
        """Returns what is done with a page if it is a near-duplicate."""
        if visit.action is not None:
            return visit.action
        return "mark" if visit.is_seed or visit.depth < self.settings.min_depth else self.settings.action

    def take_back(self, record: Record) -> None:
        """Takes a near-duplicate out of the stats: its record was wrong, and the page is judged again."""
        for name in ("pages", "duplicate", *counts_of(record)):
            self.stats.inc_value(f"dedup/{name}", -1)

    def gave(self, page_id: str, kind: str, verdict: Verdict) -> None:
        """Says that an item of a page has been processed; see `Visit.kind`."""
        self._barren.give(verdict.of_id or page_id, kind)

    async def handed_over(self, page_id: str) -> None:
        """Confirms a page: the crawler has processed all of its output, items included."""
        if not self.is_open(page_id):
            return  # an item of it has failed already, and nothing is done for the page
        self.listener.handed_over(page_id)
        if not self._barren.is_barren(page_id):
            self._watch.settle(page_id, processed=True)
            await self._claimant.confirm(page_id)
        self._barren.leave(page_id)

    async def failed(self, page_id: str) -> None:
        """Takes back the claim on a page that could not be processed."""
        self.listener.failed(page_id)
        await self._claimant.release(page_id)
        self._watch.settle(page_id, processed=False)
        self._barren.leave(page_id)

    async def item_failed(self, page_id: str) -> None:
        """Says that an item of a page could not be processed: the page has failed, even if it was handed over before."""
        if self.is_open(page_id):
            await self.failed(page_id)
        else:
            self.listener.undone(page_id)
            await self._claimant.forget(page_id)
            self._watch.undo(page_id, "an item of the page that it duplicates failed")

    async def asked_again(self, page_id: str, simhash: int | None, *, alike: bool) -> None:
        """Says that a callback has asked for its own page again, since it could do nothing with what it got.

        What it got is no page, and nothing is dropped for it.  ``alike``: the request has the same callback.  If
        that gets the same content once more, and does not ask again, it has given up.
        """
        count(self.stats, "asked_again")
        if alike:
            self._bench.asked_again[page_id] = simhash
        self.listener.failed(page_id)
        await self._claimant.release(page_id)
        self._watch.undo(page_id, "the spider has asked for the page that it duplicates once more")

    def is_open(self, page_id: str) -> bool:
        """Returns whether a page was kept and has neither been handed over nor failed yet."""
        # The listener knows those that can't be judged, too.
        return self.listener.is_open(page_id) or self._claimant.is_open(page_id)

    def is_busy(self) -> bool:
        """Returns whether a crawl with nothing else to do should go on: a drop is uncertain, or the audit still fetches.

        What has been uncertain for too long is fetched again.
        """
        return self._ending.is_busy()

    def looks_for_missing(self) -> bool:
        """Returns whether pages are being asked for that earlier crawls have met and this one has not.  Begins with that if the crawl has ended."""
        return self._ending.looks_for_missing()

    @property
    def is_looking(self) -> bool:
        """Whether such pages are being asked for."""
        return self._ending.is_looking

    @property
    def doubts(self) -> int:
        """How many drops may yet be undone, since their kept pages are not done."""
        return self._watch.count

    def end_doubts(self) -> None:
        """Has all pages fetched again whose drops are still uncertain.  Whoever goes on with the crawl judges them anew.

        It has to be called while the crawl still takes requests; `close` has the rest fetched again unjudged.
        """
        self._watch.give_up(judged=True)

    async def finish(self, idle: Callable[[], Awaitable[object]]) -> None:
        """Ends a crawl that is not cut short, once it has nothing left to do, and closes the filter.

        ``idle`` returns when all pages that the crawl was asked for are fetched and processed, and may be called again: as
        `asyncio.Queue.join`.  The filter may ask for more until it is certain of every drop.
        """
        await self._ending.come(idle)
        await self.close()

    async def close(self, *, finished: bool = True) -> None:
        """Writes what is confirmed and releases what is not; lets go of index and log.

        A crawl that has not ``finished`` has lost what its pages link to: until they are met again, they
        shadow no other page.  It has not if it `has_heir`.
        """
        self._copies.close()
        await self._ending.close()
        self.listener.close()
        self.unreached.close()
        await self._watch.close()
        await self._probe.close()
        await self._claimant.close(finished=finished or self.has_heir)
        self.log.close()
        self._kept_log.close()
