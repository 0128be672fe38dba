"""Drops that are not yet certain: each was dropped for a page that was claimed but is not yet processed.

If that page fails, or its crawler dies, it was kept nowhere.  What was dropped for it is then fetched again.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from dedup.errors import DedupError
from dedup.filter.stats import Stats, count
from dedup.index import Index
from dedup.index.batching import end
from dedup.printing import inert

__all__ = ["Watch"]

logger = logging.getLogger(__name__)

#: Seconds between two looks at the pages of other crawlers; `settle` tells of one's own.
INTERVAL = 1.0
#: Seconds that a crawl, otherwise at its end, waits for pages of other crawlers: longer than a lease.
PATIENCE = 120.0
#: How many drops are remembered at most.
MAX_DOUBTS = 10_000


class _Drop(NamedTuple):
    page_id: str
    url: str
    origin: Any


class Watch:
    """Watches the kept pages that uncertain drops of one crawl depend on."""

    def __init__(self, index: Index, stats: Stats, fetch_again: Callable[[Any], None]) -> None:
        """``fetch_again`` is called with the origin of a drop whose kept page has failed."""
        self._index = index
        self._stats = stats
        self._fetch_again = fetch_again
        self._waiting: dict[str, list[_Drop]] = {}  # by the page id of the kept page
        self._count = 0
        self._again: set[str] = set()  # page ids that were fetched again: once is enough
        self._task: asyncio.Task[None] | None = None
        self._idle_since: float | None = None

    def add(self, of_id: str, page_id: str, url: str, origin: Any) -> None:
        """Remembers a drop until the kept page is done."""
        if page_id in self._again or self._count >= MAX_DOUBTS:
            return
        self._waiting.setdefault(of_id, []).append(_Drop(page_id, url, origin))
        self._count += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while self._waiting:
            await asyncio.sleep(INTERVAL)
            page_ids = list(self._waiting)
            with suppress(DedupError):  # the index is out of reach: it is asked again
                for page_id, state in zip(page_ids, await self._index.states(page_ids), strict=True):
                    if not state.is_pending:
                        self.settle(page_id, processed=state.is_done)

    def settle(self, of_id: str, *, processed: bool) -> None:
        """The kept page is done, or it has failed: then what was dropped for it is fetched again."""
        dropped = self._waiting.pop(of_id, [])
        self._count -= len(dropped)
        for drop in dropped if not processed else []:
            self._again.add(drop.page_id)
            logger.info("Fetched again: %s, as the page that it duplicates failed", inert(drop.url))
            count(self._stats, "fetched_again")
            self._fetch_again(drop.origin)

    def is_waiting(self) -> bool:
        """Whether a crawl with nothing else to do should go on: a drop is uncertain, but not for ever."""
        if not self._waiting:
            self._idle_since = None
            return False
        self._idle_since = self._idle_since or time.monotonic()
        return time.monotonic() - self._idle_since < PATIENCE

    async def close(self) -> None:
        """Stops looking."""
        await end(self._task)
        if self._count:
            logger.warning("%d drops are in favour of pages that were not processed", self._count)
            self._stats.inc_value("dedup/uncertain", self._count)
