"""The frontier of a crawl by many workers: requests to hosts of other shards are handed over to their workers.

So each host has one worker, whose delays hold for it exactly.  The near-duplicate index is shared.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Self
from weakref import WeakSet

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider, IgnoreRequest, NotConfigured

from dedup.errors import DedupError, IndexInUseError, IndexUnavailableError, ShardTakenError
from dedup.filter import Filter
from dedup.filter.stats import count
from dedup.frontier.handover import MOST, Beat, Handover, Link
from dedup.frontier.partition import Shard
from dedup.index.batching import end
from dedup.printing import many
from dedup.scrapy import compat
from dedup.scrapy.component import is_tried_out
from dedup.scrapy.settings import asks_for, shard_options, spelled
from dedup.scrapy.signals import filter_failed, filter_opened, logger_for, refuse
from dedup.scrapy.slot import is_closing
from dedup.scrapy.visits import OWN
from dedup.scrapy.workers.gate import Gate
from dedup.scrapy.workers.job import Job
from dedup.scrapy.workers.outbox import Outbox
from dedup.scrapy.workers.packing import Packing, leave_slot

__all__ = ["ShardMiddleware"]

#: Seconds after which a worker that falls silent loses its shards.
LEASE = 60.0
#: The part of a lease for which a worker counts on it.
SAFE = 0.8
#: Seconds between two beats.
BEAT = 0.5
#: Seconds between two looks at all shards, for whoever watches.
SURVEY = 10.0
#: Seconds between two lines about a shard that has no worker.
REMINDER = 60.0


class ShardMiddleware:
    """Stands between the scheduler and the other workers, and where requests are sent."""

    def __init__(self, crawler: Crawler, shard: Shard, address: str, namespace: str, key: str = "") -> None:
        """``key`` signs what is handed over."""
        assert crawler.spider is not None
        self.crawler = crawler
        self._shard = shard
        self._job = Job(crawler.settings.get("JOBDIR"), shard)
        self._packing = Packing(crawler.spider, key)
        self._outbox = Outbox(crawler, shard.of, self._packing, self._job.outbox)
        self._handover = Handover(address, namespace, shard, LEASE, self._job.crawl, self._job.cursor)
        self._filter: Filter | None = None
        self._logger = logger_for(crawler, __name__)
        self._taken: WeakSet[Request] = WeakSet()
        self._asked = time.monotonic()  # for a shard
        self._gate = Gate(crawler)
        self._named = asyncio.Event()  # the crawl, or Redis is away
        self._needs_filter = asks_for(crawler.settings, "enabled")
        self._idled = False  # nothing was left to be crawled, and nothing has been scheduled since
        self._ended = False
        self._reminded = 0.0
        self._silent = False
        self._is_out = False  # stopped by an error, such as that another worker has the shard
        self.is_watched = False  #: then all shards are looked at now and then
        self.shards: Sequence[tuple[int, int]] = [(0, 0)] * shard.of  #: as `Beat.shards`
        self.beaten = time.monotonic()  #: when Redis has answered last
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
            middleware = cls(crawler, *options)
        except DedupError as refused:
            error = refused  # which outlives this block
            crawler.signals.connect(lambda: refuse(crawler, error), signals.spider_opened, weak=False)
            raise NotConfigured(str(error)) from None
        for name in ("spider_opened", "spider_idle", "spider_closed"):
            crawler.signals.connect(getattr(middleware, name), getattr(signals, name))
        crawler.signals.connect(middleware.filter_opened, filter_opened)
        return middleware

    def filter_opened(self, filter: Filter) -> None:
        """The filter is ready."""
        self._filter = filter

    async def spider_opened(self, spider: Spider) -> None:
        """Begins, if nobody has asked for the crawl's name yet."""
        self._begin()

    async def crawl_name(self) -> str:
        """What the crawl of all workers is called; "" if Redis does not say so."""
        self._begin()
        await self._named.wait()
        return self._handover.crawl

    def _begin(self) -> None:
        """Takes the place of the scheduler's entrance, and begins to beat."""
        if hasattr(self, "_beating"):
            return
        slot: Any = self.crawler.engine._slot
        slot.scheduler.enqueue_request = partial(self._enqueue, slot.scheduler.enqueue_request)
        self._nudge: Callable[[], None] = slot.nextcall.schedule
        self._gate.stand()
        self._beating = asyncio.create_task(self._keep_beating())

    # --- Requests

    def _enqueue(self, enqueue: Callable[[Request], bool], request: Request) -> bool:
        """Hands a request over, or gives it to the scheduler."""
        leave_slot(request)
        if request not in self._taken and self._outbox.add(request, self._handover.held):
            return True
        self._idled = False
        return enqueue(request)

    def process_request(self, request: Request) -> None:
        """Refuses what the filter itself would ask of a host of another shard, for a probe or an audit."""
        if OWN in request.meta and not self._outbox.is_of(request, self._handover.held):
            raise IgnoreRequest(f"{request} is of a host that another worker asks")

    def start(self, request: Request) -> bool:
        """Puts a request with which the crawl begins into the log of its shard, our own or not: once for all workers."""
        return self._outbox.add_start(request)

    @property
    def waiting(self) -> int:
        """How many links are to be handed over."""
        return len(self._outbox.waiting)

    async def room(self) -> None:
        """Waits until the links that wait to be handed over are few."""
        while len(self._outbox.waiting) > 10 * MOST and not is_closing(self.crawler):  # noqa: ASYNC110
            await asyncio.sleep(BEAT)

    # --- The beat

    async def _keep_beating(self) -> None:
        while True:
            try:
                await self._beat()
                if self._handover.crawl:
                    self._named.set()
            except IndexUnavailableError as error:
                self._named.set()
                if not self._silent:
                    self._logger.warning("No link can be handed over or taken for now: %s", error)
                self._silent = True
            except DedupError as error:
                self._named.set()
                self._stop(error)
                return
            except Exception:
                self._logger.exception("A beat of the shard has failed")
            await asyncio.sleep(BEAT)

    async def _beat(self) -> None:
        links = self._outbox.first()
        is_ready = self._filter is not None or not self._needs_filter  # else its first pages were not judged
        idle = not links and self._is_idle()
        now = time.monotonic()
        before = set(self._handover.held)
        surveys = self.is_watched and now > self._surveyed + SURVEY
        beat = await self._handover.beat(links, idle=idle, reading=is_ready, survey=surveys)
        self.beaten = now
        if self._silent:
            self._logger.info("Links are handed over and taken again")
            self._silent = False
        if beat.word != "ok":
            if beat.word == "held" and now > self._asked + 1.5 * LEASE:
                raise IndexInUseError(
                    f"shard {self._shard} is being crawled by another worker; give this one the number of another shard, "
                    f"or start it with auto/{self._shard.of}, which takes the first shard that is free",
                    settings=("shard",),
                )
            return
        self._gate.until = now + (LEASE * SAFE if self._handover.held else float("inf") if beat.ended else 0)
        self._delivered(links, beat)
        if surveys:
            self.shards, self._surveyed = beat.shards, now
        if new := set(self._handover.held) - before:
            self._job.begin()
            names = ", ".join(str(number + 1) for number in sorted(new))
            self._logger.info(
                "Shard %s of %d is crawled here; %s", names, self._shard.of, self._handover.where
            )
        for packed in beat.requests:
            self._take(packed)
        self._ended = beat.ended
        if self._ended and self._is_idle():
            self._nudge()  # so that the engine looks again, and closes
        self._remind(beat)

    def _delivered(self, links: Collection[Link], beat: Beat) -> None:
        self._outbox.handed_over(links)
        if links:
            self.crawler.stats.inc_value("dedup/shard/handed_over", beat.new)

    def _take(self, packed: bytes) -> None:
        try:
            request = self._packing.unpack(packed)
            if not self._outbox.is_of(request, self._handover.held):
                raise ValueError(f"what was handed over is not of this shard: {request}")
        except ValueError as error:
            count(self.crawler.stats, "shard/unreadable")
            self._logger.error("%s", error)
            return
        self._taken.add(request)
        self._idled = False
        try:
            self.crawler.engine.crawl(request)
        except Exception:  # its queue on disk is full or damaged, perhaps: the others were read with it
            count(self.crawler.stats, "shard/not_scheduled")
            self._logger.exception("%s was handed over, and can't be scheduled", request)
        else:
            count(self.crawler.stats, "shard/taken")

    def _remind(self, beat: Beat) -> None:
        if beat.missing is None:
            self._reminded = time.monotonic()
        elif time.monotonic() > self._reminded + REMINDER:
            self._reminded = time.monotonic()
            shard, links = beat.missing
            text = "This worker waits: %s links wait for shard %d of %d, which nobody crawls; start a worker for it"
            self._logger.warning(text, f"{links:,}", shard + 1, self._shard.of)

    # --- The end

    def _is_idle(self) -> bool:
        """Whether nothing is left to be done here: not even for the filter, which waits for pages of others."""
        waits = self._filter is not None and self._filter.is_busy()
        return self._idled and not waits and self.crawler.engine.spider_is_idle()

    def spider_idle(self) -> None:
        """Nothing is left to be crawled here; more may come, until the whole crawl has ended."""
        self._idled = True
        if not self._ended or self._outbox.waiting:
            raise DontCloseSpider

    def _stop(self, error: DedupError) -> None:
        if isinstance(error, ShardTakenError) and self._filter is not None:
            self._filter.has_heir = True
        self._is_out = True
        self._gate.shut()
        error = spelled(error)
        self._logger.error("Crawl stopped: %s", error)
        self.crawler.signals.send_catch_log(filter_failed, error=error)
        self._closing = asyncio.create_task(compat.close(self.crawler, error.reason))

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """Hands over what is left, and lets go of the shards."""
        if not hasattr(self, "_beating"):
            return
        await end(self._beating)
        finished = self._ended and reason in {"finished", "start_error"}
        with suppress(DedupError):
            while links := self._outbox.first():
                self._delivered(links, await self._handover.beat(links, reading=False))
        if self._is_out:
            self._outbox.waiting.clear()  # whoever has the shard now finds these links
        if left := self._outbox.waiting:
            text = "Not handed over, since Redis is away: %s, to be %s"
            again = "found again by the worker that takes this shard next, or by a crawl that begins anew"
            self._logger.warning(text, many(len(left), "link"), "in the JOBDIR" if self._job.path else again)
        if not finished:
            self._job.leave(self._handover, left)
        with suppress(DedupError):
            await self._handover.leave("finished" if finished else "job" if self._job.path else "stopped")
        await self._handover.close()


compat.accept_spider(ShardMiddleware)
