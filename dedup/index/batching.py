"""Confirmations gathered into batches: written within half a second, or by `flush`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from dedup.errors import DedupError

logger = logging.getLogger(__name__)

#: How long the first of a batch waits for others, in seconds.
PATIENCE = 0.5
#: Seconds after which a task that is still at work is cancelled again.
AGAIN = 1.0

T = TypeVar("T")


class Confirmations(Generic[T]):
    """Collects claims, by their page ids, and calls ``write`` with batches of at least one, in their order."""

    def __init__(self, write: Callable[[dict[str, T]], Awaitable[None]]) -> None:
        self._write = write
        self._waiting: dict[str, T] = {}
        self._writing: dict[str, T] = {}
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._told = ""

    def __contains__(self, page_id: str) -> bool:
        """Returns whether the claim of a page is not yet written."""
        return page_id in self._waiting or page_id in self._writing

    def add(self, page_id: str, claim: T) -> None:
        """Has a claim written within `PATIENCE`; if that fails, with the next ones, or by `close`."""
        self._waiting[page_id] = claim
        self._begin()

    def _begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._flush_soon())

    async def _flush_soon(self) -> None:
        while self._waiting:
            await asyncio.sleep(PATIENCE)
            try:
                await self.flush()
                self._told = ""
            except DedupError as error:
                if str(error) != self._told:  # a trouble is told once, not twice a second
                    self._told = str(error)
                    logger.warning(
                        "Pages that were processed can't be written yet; it will be tried again: %s", error
                    )

    async def flush(self) -> None:
        """Writes what is waiting.  If ``write`` raises, so does this; what is waiting is kept, and tried again."""
        async with self._lock:
            batch, self._waiting = self._waiting, {}
            self._writing = batch
            if batch:
                try:
                    await self._write(batch)
                except BaseException:  # a cancellation, too: what was half written is written once more
                    self._waiting = batch | self._waiting
                    self._begin()
                    raise
                finally:
                    self._writing = {}

    async def close(self) -> None:
        """Writes what is waiting, for the last time."""
        try:
            await self.flush()
        finally:
            await end(self._task)


async def end(task: asyncio.Task[None] | None) -> None:
    """Cancels a task, if there is one, and waits for its end.

    Before Python 3.12, `asyncio.wait_for`, in which a client waits, may swallow a cancellation: so it is made again.
    """
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=AGAIN)
    if task is not None and not task.cancelled():
        task.result()
