"""The frontier of a crawl by many workers: requests to hosts of other shards are handed over to their workers.

So each host has one worker, whose delays hold for it exactly.  The near-duplicate index is shared.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence, Sized
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider, IgnoreRequest, NotConfigured

from dedup.contrib.workers.feeds import check_feeds
from dedup.contrib.workers.gate import Gate
from dedup.contrib.workers.gauges import gauges
from dedup.contrib.workers.handover import MOST, Beat, Handover, Link, Note
from dedup.contrib.workers.inbox import Inbox
from dedup.contrib.workers.job import Job
from dedup.contrib.workers.journal import Journal
from dedup.contrib.workers.options import Options, shard_options
from dedup.contrib.workers.outbox import Outbox
from dedup.contrib.workers.reminder import Reminder
from dedup.errors import CrawlGoneError, DedupError, IndexUnavailableError, ShardTakenError
from dedup.filter import Filter
from dedup.index.batching import end
from dedup.printing import many
from dedup.scrapy import compat
from dedup.scrapy.component import is_tried_out
from dedup.scrapy.crawl.crew import Crew
from dedup.scrapy.crawl.slot import Slot, is_closing
from dedup.scrapy.judgement import Parked
from dedup.scrapy.log.progress import FIGURES, progress
from dedup.scrapy.requests.packing import Packing, leave_slot, named
from dedup.scrapy.requests.visits import OWN
from dedup.scrapy.settings import asks_for, spelled
from dedup.scrapy.signals import filter_failed, filter_opened, logger_for, refuse

if TYPE_CHECKING:
    from prometheus_client import Metric

#: Seconds after which a worker that falls silent loses its shards.
LEASE = 60.0
#: The part of a lease for which a worker counts on it.
SAFE = 0.8
#: Seconds between two beats.
BEAT = 0.5
#: Seconds between two looks at all shards, for whoever watches.
SURVEY = 10.0
#: The finish reason of a worker that was silent until the others had ended the crawl.
OVER = "dedup_shards_done"


@compat.accept_spider
class ShardMiddleware(Crew):
    """Stands between the scheduler and the other workers, and where requests are sent."""

    def __init__(self, crawler: Crawler, options: Options) -> None:
        """The spider is there, and not open yet."""
        shard, address, namespace, key, leaves_rest, names_files = options
        assert crawler.spider is not None
        self.crawler = crawler
        self._shard = shard
        self._job = Job(crawler.settings.get("JOBDIR"), shard)
        self._packing = Packing(crawler.spider, key)
        self.outbox = Outbox(crawler, shard.of, self._packing, self._job.outbox)
        job = self._job.crawl, self._job.cursor
        self._handover = Handover(address, namespace, shard, LEASE, *job, journal=leaves_rest)
        self.journal = Journal(
            crawler, self._packing, self.outbox, is_kept=leaves_rest, names_files=names_files
        )
        self._inbox = Inbox(crawler, self._handover, self.outbox, self._packing, self.journal)
        self._filter: Filter | None = None
        self._logger = logger_for(crawler, __name__)
        self._gate = Gate(crawler)
        self._named = asyncio.Event()  # the crawl, or Redis is away
        self._needs_filter = asks_for(crawler.settings, "enabled")
        self._idled = False  # nothing was left to be crawled, and nothing has been scheduled since
        self.has_ended = False  #: nothing is left to be done by any worker
        self._reminder = Reminder(crawler, shard, LEASE)
        self._silent = False
        self._is_out = False  # stopped by an error, such as that another worker has the shard
        self.shards: Sequence[tuple[int, int]] = [(0, 0)] * shard.of  #: as `Beat.shards`
        #: When Redis was asked last that has answered; a machine that sleeps stops the other clock.
        self.beaten = time.time()
        self._surveyed = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Is called by Scrapy."""
        if is_tried_out(crawler.spider):
            raise NotConfigured("scrapy check, shell, fetch and parse are nobody's share of a crawl")
        assert crawler.spider is not None
        try:
            options = shard_options(crawler.settings, crawler.spider.name)
            if options is None:
                raise NotConfigured
            middleware = cls(crawler, options)
            if middleware.journal.is_kept:
                check_feeds(crawler.settings)
        except DedupError as refused:
            error = spelled(refused)  # which outlives this block
            crawler.signals.connect(lambda: refuse(crawler, error), signals.spider_opened, weak=False)
            raise NotConfigured(str(error)) from None
        for name in ("spider_opened", "spider_idle", "spider_closed"):
            crawler.signals.connect(getattr(middleware, name), getattr(signals, name))
        crawler.signals.connect(middleware.filter_opened, filter_opened)
        return middleware

    def filter_opened(self, filter: Filter) -> None:
        """The filter is ready."""
        self._filter = filter
        filter.index.is_inherited = self.journal.is_inherited

    async def spider_opened(self, spider: Spider) -> None:
        """Begins, if nobody has asked for the crawl's name yet."""
        self._begin()

    async def crawl_name(self) -> str:
        """Returns what the crawl of all workers is called; "" if Redis does not say so."""
        self._begin()
        await self._named.wait()
        return self._handover.crawl

    def _begin(self) -> None:
        """Takes the place of the scheduler's entrance, and begins to beat."""
        if hasattr(self, "_beating"):
            return
        slot: Any = self.crawler.engine._slot
        slot.scheduler.enqueue_request = partial(self._enqueue, slot.scheduler.enqueue_request)
        if self.journal.is_kept:
            self.journal.begin(slot.scheduler)
            Slot(self.crawler, self.journal.let_go, replaced=lambda old, new: self.journal.found(new, old))
        self._nudge: Callable[[], None] = slot.nextcall.schedule
        self._gate.stand()
        self._beating = asyncio.create_task(self._keep_beating())

    # --- Requests

    def _enqueue(self, enqueue: Callable[[Request], bool], request: Request) -> bool:
        """Hands a request over, or gives it to the scheduler."""
        leave_slot(request)
        if request not in self._inbox and self.outbox.add(request, self._handover.held):
            return True
        self._idled = False
        if is_new := not self.journal.is_past(request) and enqueue(request):
            self.journal.scheduled(request, self.outbox.shard(request))
        else:
            self.journal.refused(request)
        return is_new

    def process_request(self, request: Request) -> None:
        """Refuses what the filter itself would ask of a host of another shard, for a probe or an audit."""
        if OWN in request.meta and self.outbox.shard(request) not in self._handover.held:
            raise IgnoreRequest(f"{named(request)} is of a host that another worker asks")

    def process_exception(self, request: Request, exception: Exception) -> None:
        """A link that is parked may come back."""
        if isinstance(exception, Parked):
            self.journal.hold(request)

    async def room(self) -> None:
        """Waits until the links that wait to be handed over are few."""
        while len(self.outbox.waiting) > 10 * MOST and not is_closing(self.crawler):  # noqa: ASYNC110
            await asyncio.sleep(BEAT)

    # --- The beat

    async def _keep_beating(self) -> None:
        while True:
            pause = BEAT
            try:
                await self._beat()
                if len(self.journal) > MOST or self._inbox.legacies:
                    pause = 0.0
                if self._handover.crawl:
                    self._named.set()
            except IndexUnavailableError as error:
                self._named.set()
                if not self._silent:
                    self._logger.warning("No link can be handed over or taken for now: %s", error)
                self._silent = True
            except DedupError as error:
                self._named.set()
                await self._stop(error)
                return
            except Exception:
                self._logger.exception("A beat of the shard has failed")
            with suppress(TimeoutError):
                await asyncio.wait_for(self.journal.has_done.wait(), pause)

    async def _beat(self) -> None:
        links, notes = self._first()
        if notes and self._filter is not None:  # what is noted as done shadows its copies, whoever dies
            await self._filter.index.flush()
        is_ready = self._filter is not None or not self._needs_filter  # else its first pages were not judged
        idle = not links and not self.journal and not self._inbox.legacies and self._is_idle()
        now, asked = time.monotonic(), time.time()
        before = set(self._handover.held)
        surveys = self.is_watched and now > self._surveyed + SURVEY
        reading = is_ready and not self._inbox.legacies
        items = self.journal.files if notes else ()
        beat = await self._handover.beat(
            links, notes, idle=idle, reading=reading, survey=surveys, items=items
        )
        self.beaten = asked  # the answer may have come while this worker slept
        if self._silent:
            self._logger.info("Links are handed over and taken again")
            self._silent = False
        if beat.word == "held":
            self._reminder.wait()
        if beat.word != "ok":
            return
        self._gate.until = now + (LEASE * SAFE if self._handover.held else float("inf") if beat.ended else 0)
        self._delivered(links, notes, beat)
        if surveys:
            self.shards, self._surveyed = beat.shards, now
        if new := set(self._handover.held) - before:
            self._job.begin()
            self._inbox.legacies |= new if self.journal.is_kept else set()
            names = ", ".join(str(number + 1) for number in sorted(new))
            self._logger.info(
                "Shard %s of %d is crawled here; %s", names, self._shard.of, self._handover.where
            )
        self._inbox.take(beat.requests)
        if is_ready:
            await self._inbox.inherit()
        self.has_ended = beat.ended
        if self.has_ended and self._is_idle():
            self._nudge()  # so that the engine looks again, and closes
        self._reminder.see(beat.missing)

    def _first(self) -> tuple[list[Link], list[Note]]:
        links = self.outbox.first()
        return links, self.journal.first(self.outbox.handed + len(links))

    def _delivered(self, links: Collection[Link], notes: Sized, beat: Beat) -> None:
        self.outbox.handed_over(links)
        self.journal.written(len(notes))
        if links:
            self.crawler.stats.inc_value("dedup/shard/handed_over", beat.new)

    # --- The end

    def _is_idle(self) -> bool:
        """Returns whether nothing is left to be done here: not even for the filter, which waits for pages of others."""
        if self._idled and self._filter is not None and self._filter.is_looking:
            return True  # the crawl has ended, and pages are asked for past the scheduler
        if not (self._idled and self.crawler.engine.spider_is_idle()):
            return False
        return self._filter is None or not self._filter.is_busy()

    @property
    def leaves_rest(self) -> bool:
        return self.journal.is_kept

    def hold(self, request: Request) -> None:
        self.journal.hold(request)

    def let_go(self, request: Request) -> None:
        self.journal.let_go(request)

    def found(self, request: Request, origin: Request) -> None:
        self.journal.found(request, origin)

    def gauges(self) -> "Iterator[Metric]":
        return gauges(self.shards, len(self.outbox.waiting), self.beaten)

    def is_own(self, url: str) -> bool:
        return self.outbox.shard(Request(url)) in self._handover.held

    def spider_idle(self) -> None:
        """Nothing is left to be crawled here; more may come, until the whole crawl has ended."""
        self._idled = True
        if not self.has_ended or self.outbox.waiting:
            raise DontCloseSpider

    async def _stop(self, error: DedupError) -> None:
        self._is_out = True
        self._gate.shut()
        was_silent = time.time() - self.beaten > LEASE * SAFE  # else the others can't have ended it
        has_ended = isinstance(error, CrawlGoneError) and was_silent and await self._is_index_there()
        if self._filter is not None and (has_ended or isinstance(error, ShardTakenError)):
            self._filter.has_heir, self.journal.is_kept = True, False
        error = spelled(error)
        if has_ended:  # Compose starts workers again that have failed, and this one would begin another crawl
            self._logger.warning("Crawl stopped: it ended while this worker slept, or its keys were deleted")
        else:
            self._logger.error("Crawl stopped: %s", error)
            self.crawler.signals.send_catch_log(filter_failed, error=error)
        self._closing = asyncio.create_task(compat.close(self.crawler, OVER if has_ended else error.reason))

    async def _is_index_there(self) -> bool:
        """Returns whether the index is the one that was opened: a server that has lost the crawl has lost that, too."""
        with suppress(Exception):
            return self._filter is not None and bool(await self._filter.index.states([""]))
        return False

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """Hands over what is left, and lets go of the shards."""
        if not hasattr(self, "_beating"):
            return
        await end(self._beating)
        finished = self.has_ended and reason in {"finished", "start_error"}
        with suppress(DedupError):
            links, notes = self._first()
            while links or notes:
                beat = await self._handover.beat(links, notes, reading=False, items=self.journal.files)
                self._delivered(links, notes, beat)
                links, notes = self._first()
        if self._is_out:
            self.outbox.waiting.clear()  # whoever has the shard now finds these links
        if left := self.outbox.waiting:
            text = "Not handed over, since Redis is away: %s, to be %s"
            again = "found again by the worker that takes this shard next, or by a crawl that begins anew"
            self._logger.warning(text, many(len(left), "link"), "in the JOBDIR" if self._job.path else again)
        if not finished:
            self._job.leave(self._handover, left)
        with suppress(DedupError):
            why = "finished" if finished else "job" if self._job.path else "stopped"
            get = self.crawler.stats.get_value
            sums = await self._handover.leave(why, {name: get(f"dedup/{name}", 0) for name in FIGURES})
            if sums.get("pages"):
                told = progress({f"dedup/{name}": count for name, count in sums.items()})
                self._logger.info("All workers of this crawl: %s", told)
        await self._handover.close()
