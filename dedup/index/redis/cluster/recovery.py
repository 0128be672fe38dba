"""What a run does when a replica has taken over: it files anew what that may have missed, and counts what it had."""

import asyncio
import logging
from contextlib import suppress

from dedup.errors import DedupError
from dedup.index.redis.cluster import protocol
from dedup.index.redis.cluster.own_pages import OwnPages
from dedup.index.redis.cluster.record import Record
from dedup.index.redis.cluster.store import Store
from dedup.printing import inert, many

logger = logging.getLogger(__name__)


class Recovery:
    """Keeps what a run has ``filed`` in the store, whatever becomes of the masters."""

    def __init__(self, store: Store, filed: OwnPages, where: str) -> None:
        self._store = store
        self._filed = filed
        self._where = where
        self.due = asyncio.Event()  #: set when another node has become a master
        self.lost = 0  #: pages that were filed again because a part of them was gone

    async def watch(self) -> None:
        """Files anew whenever that is due."""
        while True:
            await self.due.wait()
            self.due.clear()
            with suppress(DedupError):
                await self.file_anew()

    async def file_anew(self) -> None:
        """Files everything once more, where something of it is missing."""
        if lost := sum(await self._store.each(self._restore, list(self._filed))):
            self._tell(lost)

    async def _restore(self, page_id: str) -> bool:
        """Returns whether something of a page was lost."""
        async with self._filed.alone_with(page_id):
            record = self._filed.get(page_id)
            if record is None:
                return False  # it was released or forgotten meanwhile
            was_lost, there = await self._store.carry_out(protocol.restore(self._store.name(page_id), record))
            return (there and bool((await self._store.file(record.entry)).lacking)) or was_lost

    async def file_lost(self, record: Record) -> None:
        """Files a page in its buckets whose claim was gone when it was confirmed."""
        await self._store.file(record.entry)
        self.lost += 1
        logger.warning(
            "The claim of a page was gone from %s when the page had been processed: a master was lost, or another crawler "
            "had waited for it for too long. The page is filed again; copies that were met meanwhile may have been kept: %s",
            self._where,
            inert(record.entry.url),
        )

    def _tell(self, pages: int) -> None:
        self.lost += pages
        logger.warning(
            "A master of %s was lost, and with it something of %s that this crawl had filed; it is filed again. Copies "
            "that were met meanwhile may have been kept",
            self._where,
            many(pages, "page"),
        )
