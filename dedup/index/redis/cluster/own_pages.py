"""The pages for which a run answers: those that it has claimed, and those that it has confirmed a short while ago."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dedup.index.redis.cluster.record import Phase, Record

#: A page that was confirmed is remembered for this many seconds, and no more pages than this: a replica may have missed them.
REMEMBERED, MOST_REMEMBERED = 60.0, 10_000


class OwnPages(dict[str, Record]):
    """Records as they should be stored, by their page ids.

    >>> from dedup.index.entry import Entry
    >>> filed, record = OwnPages(), Record(Phase.KEPT, 1, 0, Entry("a", "http://a/", 1, 2, 3, (), b"", 4, "0f" * 16))
    >>> filed["a"] = record
    >>> filed.confirm("a", record._replace(phase=Phase.DONE))
    >>> filed["a"].phase.name
    'DONE'
    """

    def __init__(self) -> None:
        self._confirmed: OrderedDict[str, float] = OrderedDict()  # when
        self._locks: dict[str, tuple[asyncio.Lock, list[None]]] = {}  # of pages that something is done with

    def confirm(self, page_id: str, done: Record) -> None:
        """A page is confirmed; those that were confirmed long ago are left out."""
        now = time.monotonic()
        self[page_id] = done
        self._confirmed[page_id] = now
        self._confirmed.move_to_end(page_id)
        while self._confirmed:
            old = next(iter(self._confirmed))
            if len(self._confirmed) <= MOST_REMEMBERED and self._confirmed[old] > now - REMEMBERED:
                break
            del self._confirmed[old]
            if old in self and self[old].phase is Phase.DONE:  # else it was released, or claimed anew
                del self[old]

    @asynccontextmanager
    async def alone_with(self, page_id: str) -> AsyncIterator[None]:
        """Lets the run do one thing at a time with a page: others wait until this one is done."""
        lock, waiting = self._locks.setdefault(page_id, (asyncio.Lock(), []))
        waiting.append(None)
        try:
            async with lock:
                yield
        finally:
            waiting.pop()
            if not waiting:
                del self._locks[page_id]
