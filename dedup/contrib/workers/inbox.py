"""The requests that a worker gets: those that others hand to its shards, and those that their last workers have left."""

from collections.abc import Iterable
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler

from dedup.contrib.workers.handover import Delivery, Handover
from dedup.contrib.workers.journal import Journal
from dedup.contrib.workers.outbox import Outbox
from dedup.filter.stats import count
from dedup.scrapy.requests.packing import Packing, named
from dedup.scrapy.signals import logger_for


class Inbox:
    """Gives requests to the scheduler; those that were given are in it."""

    def __init__(
        self, crawler: Crawler, handover: Handover, outbox: Outbox, packing: Packing, journal: Journal
    ) -> None:
        #: Shards whose last workers have left something that is still to be read.
        self.legacies: set[int] = set()
        self._checked: set[int] = set()  # whether the items of their last workers are here
        self._crawler = crawler
        self._handover = handover
        self._outbox = outbox
        self._packing = packing
        self._journal = journal
        self._given: WeakSet[Request] = WeakSet()
        self._logger = logger_for(crawler, __name__)

    def __contains__(self, request: Request) -> bool:
        return request in self._given

    def take(self, requests: Iterable[Delivery]) -> None:
        """Schedules what was handed over."""
        for taken in requests:
            if (request := self._unpacked(taken.request)) is not None:
                self._journal.taken(taken, request)
                self._schedule(request, "taken")

    async def inherit(self) -> None:
        """Reads a part of each legacy.  Raises `DedupError`."""
        for shard in self.legacies - self._checked:
            self._checked.add(shard)
            if missing := await self._handover.forget(shard):
                text = "Shard %d is crawled anew, since the items of its last worker are not here: %s"
                self._logger.warning(text, shard + 1, ", ".join(missing))
        for shard in [*self.legacies]:
            if (part := await self._handover.inherit(shard)) is None:
                self.legacies.discard(shard)
                continue
            keys, rest = part
            self._journal.remember(keys)
            for ticket, packed in rest.items():
                request = self._unpacked(packed)
                if request is not None and self._journal.inherited(shard, ticket, request):
                    self._schedule(request, "inherited")

    def _unpacked(self, packed: bytes) -> Request | None:
        try:
            request = self._packing.unpack(packed)
            if self._outbox.shard(request) not in self._handover.held:
                raise ValueError(f"what was handed over is not of this shard: {named(request)}")
        except ValueError as error:
            count(self._crawler.stats, "shard/unreadable")
            self._logger.error("%s", error)
            return None
        return request

    def _schedule(self, request: Request, how: str) -> None:
        self._given.add(request)
        try:
            self._crawler.engine.crawl(request)
        except Exception:  # its queue on disk is full or damaged, perhaps: the others were read with it
            count(self._crawler.stats, "shard/not_scheduled")
            self._logger.exception("%s was handed over, and can't be scheduled", named(request))
        else:
            count(self._crawler.stats, f"shard/{how}")
