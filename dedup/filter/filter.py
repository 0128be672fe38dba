"""The filter: a page goes in, and what becomes of it comes out.

The law: when not certain, keep.  A page is dropped only with a verdict, and only after its record is in the
drop log.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dedup.droplog.log import DropLog, as_line
from dedup.droplog.record import Record
from dedup.filter.alarm import Alarm
from dedup.filter.audit import Audit
from dedup.filter.bodies import Content
from dedup.filter.canonical import Canonicals
from dedup.filter.changes import Changes
from dedup.filter.claims import Claimant
from dedup.filter.counting import LINKS, counts_of
from dedup.filter.depths import Depths
from dedup.filter.doubts import Drop, Watch
from dedup.filter.pairs import Pairs
from dedup.filter.probe import Probe
from dedup.filter.reading import Reading
from dedup.filter.recording import make_record, now
from dedup.filter.retries import Retries
from dedup.filter.stats import Counts, Stats, count, spend
from dedup.filter.traps import Traps
from dedup.filter.unreached import Unreached
from dedup.filter.visit import Change, Crawl, Outcome, Visit
from dedup.history.file import History
from dedup.index import Index, Verdict
from dedup.index.batching import end
from dedup.index.entry import scope_mask
from dedup.latest import Latest
from dedup.page.html import Page
from dedup.printing import inert
from dedup.settings import Action, FilterSettings

__all__ = ["Change", "Crawl", "Filter", "Outcome", "Visit"]

logger = logging.getLogger(__name__)

#: Seconds between two looks whether a crawl that is done is still needed.
PAUSE = 0.2
#: How many contents are remembered, to tell which pages are kept only for what their requests carried.
REMEMBERED = 10_000


class Filter:
    """The filter of one crawl."""

    def __init__(
        self,
        index: Index,
        log: DropLog,
        *,
        stats: Stats | None = None,
        crawl: Crawl | None = None,
        history: History | None = None,
        **settings: Any,
    ) -> None:
        """``index``, ``log`` and ``history`` are closed with the filter; the other keywords are `FilterSettings`.

        With a ``history`` it is told what has changed since earlier crawls.

        Raises `SettingsError` for a value that is not allowed.
        """
        self.settings = own = FilterSettings(**settings)
        self.index = index
        self.log = log
        self.stats = stats if stats is not None else Counts()
        self._crawl = crawl = crawl or Crawl()
        self._alarm = Alarm(own.max_cluster, self.stats)
        self._pairs = Pairs(self.stats)
        self._depths = Depths(self.stats, crawl.depth_limit)
        self._traps = Traps(self.stats)
        self._canonicals = Canonicals()
        self._audit = Audit(index.detector, own.audit, self.stats, crawl.fetch)
        self._probe = Probe(index, self.stats, crawl, fetches=own.probe and crawl.fetches)
        self._changes = (
            Changes(history, index, self._probe, self.stats, crawl.ask, crawl.tell) if history else None
        )
        self._looking: asyncio.Task[None] | None = None
        self._claimant = Claimant(index, own.on_index_failure, self.stats, crawl.stop, crawl.is_closing)
        self._watch = Watch(index, self.stats, crawl.fetch_again, self._tell_undone)
        self._retries = Retries(index.detector.max_distance)
        self._reading = Reading(index.detector, self.stats)
        self._carried = Latest[int, int](REMEMBERED)  # by content, what the first page's request carried
        self._checks: set[asyncio.Task[None]] = set()
        #: What only near-duplicates link to; it is told what the crawl asks for.
        self.unreached = Unreached(self.stats)
        self._sampling: asyncio.Task[None] | None = None
        #: True if another worker has taken over this worker's shard, and crawls all of it again.
        self.has_heir = False

    async def judge(self, visit: Visit) -> Outcome:
        """Judges a page, and returns what becomes of it.  Whatever fails, the page is kept."""
        started = time.perf_counter()
        self.unreached.visit(visit.url)
        self._pairs.visit(visit.url)
        page, fingerprint, known, is_read = await self._reading.read(visit)
        read = time.perf_counter()
        self._watch.met(visit.page_id, fingerprint.simhash, self.index.detector.max_distance)
        if self._retries.shows(visit.page_id, fingerprint.simhash):
            verdict = Verdict("unjudged", reason="asked_again")
        else:
            verdict = await self._claimant.claim(visit.page_id, visit.url, fingerprint, visit.carried)
        if verdict.status == "same" and fingerprint.simhash is not None:
            self._watch.met_again(visit.page_id, fingerprint.simhash)
        spend(self.stats, "fingerprint", read - started)
        spend(self.stats, "claim", time.perf_counter() - read)
        if verdict.status == "new" and not self._crawl.is_closing():
            found = await self._probe.check(visit, page, fingerprint, verdict)
            if found.status == "duplicate":  # what was dropped for it meanwhile is fetched again
                await self.failed(visit.page_id)
            is_apart = found.status == "new" and self._is_apart(visit, fingerprint.digest)
            verdict = replace(found, reason="carries") if is_apart else found
        elif verdict.status == "same":
            self._probe.keep(visit, page, fingerprint)
        unchanged = bool(self.settings.incremental) and verdict.known
        outcome = Outcome("keep", verdict, fingerprint, page if is_read else None, None, unchanged=unchanged)
        if verdict.status == "duplicate":
            outcome = self._record(visit, outcome, page.canonical)
        if self._changes is not None:
            whole = page if is_read else None
            outcome = await self._compared(self._changes, visit, outcome, whole)
        count(self.stats, "pages")
        count(
            self.stats,
            "unjudged" if outcome.verdict.reason else outcome.verdict.status,
            outcome.verdict.reason,
        )
        if outcome.unchanged:
            count(self.stats, "unchanged")
        if verdict.crowded:
            self._tell_crowded(visit)
        if verdict.near is not None:
            self._traps.add(visit.url, verdict.near)
        elif verdict.reason == "short":
            self._traps.short(visit.url, page.tokens)
        if outcome.record is None:
            self._depths.keep(visit.page_id, visit.depth)
            self._canonicals.keep(visit.url, page.canonical)
            if verdict.status == "new" and self.unreached.reads():
                for url in visit.links():
                    self.unreached.ask(url)
        else:
            self._follow_up(visit, outcome, outcome.record, known)
        if outcome.record is None:
            self._note_link(visit.referer, leads_to_page=verdict.reason not in {"short", "empty"})
        elif verdict.of == visit.referer:
            self._note_link(visit.referer, leads_to_page=False)
        return outcome

    async def _compared(self, changes: Changes, visit: Visit, outcome: Outcome, page: Page | None) -> Outcome:
        """The same with what has become of the page since earlier crawls."""
        change, is_handed = await changes.see(
            visit, lambda: page or visit.read(), outcome.fingerprint, outcome.verdict
        )
        if change is not None:
            count(self.stats, f"changes/{change.word}")
        is_same = self.settings.incremental is True and is_handed
        return replace(outcome, change=change, unchanged=outcome.unchanged or is_same)

    def _is_apart(self, visit: Visit, digest: int) -> bool:
        """Whether a page is equal to a kept one, and is kept all the same since its request has carried other data."""
        key = digest ^ scope_mask(self.index.settings.scope, visit.url)
        carried = self._carried.get(key, visit.carried)
        self._carried[key] = carried
        return carried != visit.carried

    def link_failed(self, found_on: str | None) -> None:
        """Notes that a link on the page at this URL led to no page."""
        self._note_link(found_on, leads_to_page=False)

    def _note_link(self, found_on: str | None, *, leads_to_page: bool) -> None:
        if of_id := self._pairs.follow(found_on, leads_to_page=leads_to_page):
            self._watch.undo(of_id, "most links on the page that it duplicates lead to nothing")

    def _tell_crowded(self, visit: Visit) -> None:
        if not self.stats.get_value("dedup/crowded"):
            logger.warning(
                "Kept %s without comparing it with all pages like it, which are too many: it may be a "
                "near-duplicate.  They may share one large frame.  If somebody forges them, give the setting "
                "hash_key a secret, and start a new index.  Further such pages are only counted, in dedup/crowded",
                inert(visit.url),
            )
        count(self.stats, "crowded")

    def _record(self, visit: Visit, found: Outcome, canonical: str) -> Outcome:
        """Returns what becomes of a near-duplicate.  It is kept unless its record has been written to the log."""
        verdict, action = found.verdict, self.action_for(visit)
        of = verdict.of_id or "", verdict.of_simhash or 0
        if self._watch.is_outdated(*of, self.index.detector.max_distance):
            return replace(found, verdict=Verdict("unjudged", reason="outdated"))
        if self._alarm.rings(visit.url, verdict.of or "", visit.asked):
            self._watch.undo(verdict.of_id or "", "what it duplicates looks like a wall")
            return replace(found, verdict=Verdict("unjudged", reason="alarm"))
        may_drop = self._is_certain(verdict) or self._watch.may_doubt(visit.page_id, verdict.of_run)
        if action != "mark" and not may_drop:
            return replace(found, verdict=Verdict("unjudged", reason="uncertain"))
        try:
            agrees = self._canonicals.agrees(visit.url, canonical, verdict.of or "")
            record = make_record(visit, found, action, canonical, agrees)
            self.log.write(record)
        except (OSError, ValueError) as error:
            if not self.stats.get_value("dedup/unjudged/log"):
                logger.error(
                    "Kept %s: the drop log can't be written: %s.  Further such pages are only counted, in "
                    "dedup/unjudged/log",
                    inert(visit.url),
                    error,
                )
            return replace(found, verdict=Verdict("unjudged", reason="log"))
        leads_on = action != "mark" and (
            self._pairs.drop(visit.url, record["duplicate_of"], of[0])
            or self._depths.leads_further(visit.depth, of[0])
        )
        return replace(found, action=action, record=record, leads_on=leads_on)

    def _is_certain(self, verdict: Verdict) -> bool:
        """Whether a kept page is done, and its run lives."""
        return verdict.done and (not self.index.is_shared or verdict.of_run == self.index.run)

    def _is_own(self, verdict: Verdict) -> bool:
        """Whether this crawl has kept the page that a verdict names."""
        of = verdict.of_id or ""
        return verdict.of_run == self.index.run or self.is_open(of) or self._watch.has_processed(of)

    def action_for(self, visit: Visit) -> Action:
        """Returns what is done with a page if it is a near-duplicate."""
        if visit.action is not None:
            return visit.action
        return "mark" if visit.is_seed or visit.depth < self.settings.min_depth else self.settings.action

    def _follow_up(self, visit: Visit, outcome: Outcome, record: Record, known: Content | None) -> None:
        """Counts a near-duplicate; if it is dropped, sees to the page that it was dropped for."""
        for name in counts_of(record):
            count(self.stats, name)
        if outcome.leads_on:
            count(self.stats, "links/harvested")
        else:
            self.stats.inc_value(f"dedup/{LINKS[record['action']]}", outcome.fingerprint.links)
        if outcome.action == "mark":
            return
        verdict, of = outcome.verdict, record["duplicate_of"]
        if verdict.of_id and visit.origin is not None:
            saved = 0 if outcome.leads_on else outcome.fingerprint.links
            drop = Drop(visit.page_id, visit.url, visit.origin, verdict.of_simhash, saved, as_line(record))
            self._watch.add(verdict.of_id, drop, certain=self._is_certain(verdict))
        if outcome.action == "nofollow":
            return
        if not self._is_own(verdict):
            count(self.stats, "dropped/elsewhere")
        if not (outcome.leads_on or (known and known.are_links_left)):
            self.unreached.leave(visit.links())
            if known is not None:
                known.are_links_left = True
        if self._audit.picks(record["url"]):
            shingles = self.index.detector.shingles(outcome.page or visit.read())
            check = asyncio.create_task(self._audit.check(inert(record["url"]), shingles, of))
            self._checks.add(check)
            check.add_done_callback(self._checks.discard)

    def keep_pair(self, record: Record, page: Page) -> None:
        """Stores the words of a near-duplicate, for the report."""
        if self._changes is not None:
            self._changes.keep_pair(record, page)

    def _tell_undone(self, line: bytes, why: str) -> None:
        with suppress(OSError):  # it was logged that the log can't be written, and Scrapy's log tells it, too
            self.log.write(json.loads(line) | {"time": now(), "undone": why})

    def take_back(self, record: Record) -> None:
        """Takes a near-duplicate out of the stats: its record was wrong, and the page is judged again."""
        for name in ("pages", "duplicate", *counts_of(record)):
            self.stats.inc_value(f"dedup/{name}", -1)

    async def handed_over(self, page_id: str) -> None:
        """Confirms a page: the crawler has processed all of its output, items included."""
        if self.is_open(page_id):  # else an item of it has failed already, and nothing is done for the page
            self._watch.settle(page_id, processed=True)
            if self._changes is not None:
                self._changes.handed_over(page_id)
            await self._claimant.confirm(page_id)

    async def failed(self, page_id: str) -> None:
        """Takes back the claim on a page that could not be processed."""
        if self._changes is not None:
            self._changes.failed(page_id)
        await self._claimant.release(page_id)
        self._watch.settle(page_id, processed=False)

    async def item_failed(self, page_id: str) -> None:
        """Says that an item of a page could not be processed: the page has failed, even if it was handed over before."""
        if self.is_open(page_id):
            await self.failed(page_id)
        else:
            if self._changes is not None:
                self._changes.forget(page_id)
            await self._claimant.forget(page_id)
            self._watch.undo(page_id, "an item of the page that it duplicates failed")

    async def asked_again(self, page_id: str, simhash: int | None, *, alike: bool) -> None:
        """Says that a callback has asked for its own page again, since it could do nothing with what it got.

        What it got is no page, and nothing is dropped for it.  ``alike``: the request has the same callback.  If
        that gets the same content once more, and does not ask again, it has given up.
        """
        count(self.stats, "asked_again")
        if alike:
            self._retries.add(page_id, simhash)
        if self._changes is not None:
            self._changes.failed(page_id)
        await self._claimant.release(page_id)
        self._watch.undo(page_id, "the spider has asked for the page that it duplicates once more")

    def is_open(self, page_id: str) -> bool:
        """Whether a page was kept of which it is not yet said whether it was handed over or failed."""
        return self._claimant.is_open(page_id)

    def is_busy(self) -> bool:
        """Whether a crawl that has nothing else to do should go on: a drop is uncertain, or the audit still fetches.

        What has been uncertain for too long is fetched again.
        """
        return self._watch.is_waiting() or self._is_sampling() or self._is_looking()

    def _is_looking(self) -> bool:
        """Whether pages are asked for that earlier crawls have met and this one has not, which begins now."""
        if self._looking is None and self._changes is not None:
            look = self._changes.look_for_missing(
                self._crawl.is_closing, may_hide=not (self._crawl.depth_limit or self.unreached.count())
            )
            self._looking = asyncio.create_task(look)
            self._looking.add_done_callback(lambda _: self._crawl.wake())
        return self._looking is not None and not self._looking.done()

    def _is_sampling(self) -> bool:
        """Whether the audit fetches what was not reached, which it begins with now."""
        if self._sampling is None and self._audit.share and self.unreached.count():
            sample = self.unreached.sample(self.index, self._audit.share, self._crawl.fetch)
            self._sampling = asyncio.create_task(sample)
        return self._sampling is not None and not self._sampling.done()

    @property
    def doubts(self) -> int:
        """How many drops may yet be undone, since their kept pages are not done."""
        return len(self._watch)

    def end_doubts(self) -> None:
        """Has all pages fetched again whose drops are still uncertain: later the crawl takes no request.  `close` does it, too."""
        self._watch.give_up()

    async def finish(self, idle: Callable[[], Awaitable[object]]) -> None:
        """Ends a crawl that is not cut short, once it has nothing left to do, and closes the filter.

        ``idle`` returns when all pages that the crawl was asked for are fetched and processed, and may be called again: as
        `asyncio.Queue.join`.  The filter may ask for more until it is certain of every drop.
        """
        is_done = False
        while not is_done:
            asked = self.stats.get_value("dedup/fetched_again")
            await idle()
            # What was asked for while that returned is not yet fetched.
            is_done = not self.is_busy() and self.stats.get_value("dedup/fetched_again") == asked
            if not is_done:
                await asyncio.sleep(PAUSE)
        await self.close()

    async def close(self, *, finished: bool = True) -> None:
        """Writes what is confirmed and releases what is not; lets go of index and log.

        A crawl that has not ``finished`` has lost what its pages link to: until they are met again, they
        shadow no other page.  It has not if it `has_heir`.
        """
        self._audit.close()
        await end(self._sampling)
        await end(self._looking)
        if self._changes is not None:
            self._changes.close()
        self.unreached.close()
        self._pairs.close()
        await self._watch.close()
        await self._claimant.close(finished=finished or self.has_heir)
        self.log.close()
