"""Drops that are not yet certain: in favour of a page that was claimed but is not yet processed.

If that page fails, or its crawler dies, it was kept nowhere; what was dropped for it is then fetched again.
"""

import asyncio
import logging
import time
from contextlib import suppress

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider

from dedup.errors import DedupError
from dedup.index import Index
from dedup.printing import inert

__all__ = ["Doubts"]

logger = logging.getLogger(__name__)

#: Seconds between two looks at pages of other crawlers; of one's own pages one is told.
INTERVAL = 1.0
#: Seconds that a crawl, otherwise at its end, waits for pages of other crawlers: longer than a lease.
PATIENCE = 120.0
#: Requests remembered at most.
MAX_DOUBTS = 10_000


class Doubts:
    """The uncertain drops of one crawl."""

    def __init__(self, crawler: Crawler, index: Index) -> None:
        self._crawler = crawler
        self._index = index
        # Page id of a kept page -> page ids and requests of what was dropped for it.
        self._waiting: dict[str, list[tuple[str, Request]]] = {}
        self._count = 0
        self._again: set[str] = set()  # page ids that were fetched again: once is enough
        self._task: asyncio.Task[None] | None = None
        self._idle_since: float | None = None

    def add(self, of_id: str, page_id: str, request: Request) -> None:
        """Remembers a drop until the kept page is done."""
        if page_id in self._again or self._count >= MAX_DOUBTS:
            return
        self._waiting.setdefault(of_id, []).append((page_id, request))
        self._count += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while self._waiting:
            await asyncio.sleep(INTERVAL)
            page_ids = list(self._waiting)
            with suppress(DedupError):  # out of reach: asked again
                for page_id, state in zip(page_ids, await self._index.states(page_ids), strict=True):
                    if state != "pending":
                        self.settle(page_id, processed=state == "done")

    def settle(self, of_id: str, *, processed: bool) -> None:
        """The kept page is done, or has failed: then what was dropped for it is fetched again."""
        dropped = self._waiting.pop(of_id, [])
        self._count -= len(dropped)
        for page_id, request in dropped if not processed else []:
            self._again.add(page_id)
            logger.info("Fetched again: %s, as the page that it duplicates failed", inert(request.url))
            self._crawler.stats.inc_value("dedup/fetched_again")
            self._crawler.engine.crawl(request.replace(dont_filter=True))

    def spider_idle(self) -> None:
        """Keeps the spider open while a drop is uncertain, but not for ever."""
        if not self._waiting:
            self._idle_since = None
            return
        self._idle_since = self._idle_since or time.monotonic()
        if time.monotonic() - self._idle_since < PATIENCE:
            raise DontCloseSpider

    async def close(self) -> None:
        """Stops looking."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._count:
            logger.warning("%d drops are in favour of pages that were not processed", self._count)
            self._crawler.stats.inc_value("dedup/uncertain", self._count)
