"""The requests of a worker that are other workers' to send, until they have been handed over."""

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice
from uuid import uuid4

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.httpobj import urlparse_cached

from dedup.contrib.workers.handover import MOST, Link
from dedup.contrib.workers.partition import owner
from dedup.filter.stats import count
from dedup.latest import PAGES, Latest
from dedup.scrapy.requests.packing import Packing, named
from dedup.scrapy.signals import logger_for


class Outbox:
    """Links that wait for the next beat, each once in a crawl."""

    def __init__(self, crawler: Crawler, shards: int, packing: Packing, waiting: dict[bytes, Link]) -> None:
        """``waiting`` is what a job has left."""
        self.waiting = waiting
        self.put = len(waiting)  #: links that were put here, in all
        self.handed = 0  #: ... and have been handed over
        self._crawler = crawler
        self._shards = shards
        self._packing = packing
        self._handed = Latest[bytes, None](PAGES)  # the server knows all of them
        self._starts: Counter[bytes] = Counter()
        self._logger = logger_for(crawler, __name__)

    def add(self, request: Request, held: Collection[int]) -> bool:
        """Takes a request for a shard that is not ``held`` here.  Returns whether it was taken, now or before."""
        shard = self.shard(request)
        if shard is None or shard in held:
            return False
        member = uuid4().bytes if request.dont_filter else self._fingerprint(request)
        if self._put(shard, member, request):
            return True
        count(self._crawler.stats, "shard/not_handed_over")
        if self._crawler.stats.get_value("dedup/shard/not_handed_over") == 1:
            self._logger.warning(
                "%s is crawled here, since it can't be handed over: its callback is not a method that the spider's code names, its "
                "class is not one of Scrapy's, its meta is not plain data, or it leaves the allowed domains; see docs/workers.md",
                named(request),
            )
        return False

    def add_start(self, request: Request) -> bool:
        """Takes a request with which the crawl begins, whatever its shard.  Returns whether it was taken.

        If all workers begin with it, it is sent once.
        """
        shard = self.shard(request)
        if shard is None:
            return False
        member = self._fingerprint(request)
        if request.dont_filter:  # a spider may mean to fetch it that often
            self._starts[member] += 1
            member += self._starts[member].to_bytes(4, "big")
        return self._put(shard, member, request)

    def _put(self, shard: int, member: bytes, request: Request) -> bool:
        if member in self._handed or member in self.waiting:
            return True
        packed = self._packing.pack(request)
        if packed is not None:
            self.waiting[member] = Link(shard, member, packed)
            self.put += 1
        return packed is not None

    def shard(self, request: Request) -> int | None:
        """Returns the shard of a request's host, if it has one."""
        host = urlparse_cached(request).hostname
        return None if host is None else owner(host, self._shards)

    def _fingerprint(self, request: Request) -> bytes:
        assert self._crawler.request_fingerprinter is not None
        return self._crawler.request_fingerprinter.fingerprint(request)

    def first(self) -> list[Link]:
        """Returns as many links as one beat takes."""
        return list(islice(self.waiting.values(), MOST))

    def handed_over(self, links: Iterable[Link]) -> None:
        """Forgets links that a beat has taken."""
        for link in links:
            self.handed += self.waiting.pop(link.member, None) is not None
            self._handed[link.member] = None
