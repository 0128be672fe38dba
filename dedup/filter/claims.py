"""Verdicts from an index that may be out of reach, and what becomes of pages meanwhile: ON_INDEX_FAILURE.

"keep": pages pass unjudged; they are set aside, and filed in their order when the index is back.  "pause":
pages wait for the index.  "stop": the crawl ends.  Nothing here raises; no page is dropped without a verdict.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from scrapy.statscollectors import StatsCollector

from dedup.errors import DedupError, IndexUnavailableError
from dedup.fingerprint.detector import Fingerprint
from dedup.index import Index, Verdict
from dedup.printing import inert

__all__ = ["Claims"]

logger = logging.getLogger(__name__)

#: Seconds between two attempts to reach the index: the first, the longest.
PAUSE_SECONDS = (0.5, 15.0)
#: Pages that are set aside at most (about 1 kB each); those beyond are kept, and never filed.
MAX_ASIDE = 10_000
#: The same trouble is told of again after so many seconds.
SILENCE = 60.0


@dataclass(slots=True)
class _Aside:
    """A page that was kept unjudged, to be filed later."""

    url: str
    fingerprint: Fingerprint
    done: bool = False  # its output was handed over meanwhile


class Claims:
    """The claims of one crawl."""

    def __init__(
        self,
        index: Index,
        policy: str,
        stats: StatsCollector,
        stop: Callable[[DedupError], None],
        closing: Callable[[], bool],
    ) -> None:
        self._index = index
        self._policy = policy
        self._stats = stats
        self._stop = stop
        self._closing = closing
        self._claimed: set[str] = set()  # page ids whose output is not yet handed over
        self._aside: dict[str, _Aside] = {}
        self._filing: asyncio.Task[None] | None = None
        self._told = ("", 0.0)

    async def claim(self, page_id: str, url: str, fingerprint: Fingerprint) -> Verdict:
        """A verdict in any case."""
        pause, longest = PAUSE_SECONDS
        while not self._aside or fingerprint.reason is not None:
            try:
                verdict = await self._index.claim(page_id, url, fingerprint)
            except DedupError as error:
                self._tell(error)
                away = isinstance(error, IndexUnavailableError)
                if self._policy == "stop" or (self._policy == "pause" and not away):
                    self._stop(error)
                if self._policy == "keep" and away:
                    break
                if self._policy != "pause" or self._closing():
                    return Verdict("unjudged", reason="index")
            except Exception:
                logger.exception("Kept %s: it can't be claimed", inert(url))
                return Verdict("unjudged", reason="internal_error")
            else:
                if verdict.status in {"new", "same"}:
                    self._claimed.add(page_id)
                return verdict
            await asyncio.sleep(pause)
            paused = self._stats.get_value("dedup/seconds/paused", 0.0)
            self._stats.set_value("dedup/seconds/paused", paused + pause)
            pause = min(2 * pause, longest)
        self._set_aside(page_id, url, fingerprint)
        return Verdict("unjudged", reason="index")

    def _set_aside(self, page_id: str, url: str, fingerprint: Fingerprint) -> None:
        if len(self._aside) >= MAX_ASIDE:
            self._stats.inc_value("dedup/late/never")
            return
        self._aside.setdefault(page_id, _Aside(url, fingerprint))
        if self._filing is None or self._filing.done():
            self._filing = asyncio.create_task(self._file_later())

    async def _file_later(self) -> None:
        pause, longest = PAUSE_SECONDS
        while self._aside:
            await asyncio.sleep(pause)
            try:
                await self._file()
            except IndexUnavailableError as error:
                self._tell(error)
                pause = min(2 * pause, longest)
            except DedupError as error:  # it will not come back
                self._tell(error)
                self._give_up()

    async def _file(self) -> None:
        """Files what was set aside, in order; pages that come meanwhile are added at the end."""
        filed = len(self._aside)
        while self._aside:
            page_id, page = next(iter(self._aside.items()))
            verdict = await self._index.claim(page_id, page.url, page.fingerprint)
            if self._aside.pop(page_id, None) is None:  # released meanwhile
                await self._index.release(page_id)
            elif verdict.status == "duplicate":  # too late to be dropped
                self._stats.inc_value("dedup/late/duplicate")
                logger.info(
                    "Kept while the index was away: %s, a near-duplicate of %s (distance %d, resemblance %.2f)",
                    inert(page.url),
                    inert(verdict.of or ""),
                    verdict.distance,
                    verdict.resemblance,
                )
            else:
                self._stats.inc_value("dedup/late/filed")
                self._claimed.add(page_id)
                if page.done:
                    await self.confirm(page_id)
        logger.info(
            "The index is back; %d pages that were kept meanwhile have been looked up and filed", filed
        )
        self._told = ("", 0.0)

    def _give_up(self) -> None:
        self._stats.inc_value("dedup/late/never", len(self._aside))
        self._aside.clear()

    def _tell(self, error: DedupError) -> None:
        """One line for a trouble, not one a page."""
        text, now = str(error), time.monotonic()
        if text != self._told[0] or now - self._told[1] > SILENCE:
            self._told = (text, now)
            logger.warning("No verdicts: %s (ON_INDEX_FAILURE %s)", text, self._policy)

    async def confirm(self, page_id: str) -> None:
        """The page's output has been handed over."""
        if page_id in self._aside:
            self._aside[page_id].done = True
        elif page_id in self._claimed:
            self._claimed.discard(page_id)
            await self._try(self._index.confirm(page_id))

    async def release(self, page_id: str) -> None:
        """The page was not processed: it is as if it had never been claimed."""
        self._aside.pop(page_id, None)
        if page_id in self._claimed:
            self._claimed.discard(page_id)
            await self._try(self._index.release(page_id))

    async def close(self, *, finished: bool) -> None:
        """Files what is set aside if that can be done now, and lets go of the index.

        A crawl that has not ``finished`` has lost what its pages link to.
        """
        if self._filing is not None:
            self._filing.cancel()
            with suppress(asyncio.CancelledError):
                await self._filing
        if self._aside:
            await self._try(self._file())
        if self._aside:
            logger.warning("%d pages were kept unjudged, and are in no index", len(self._aside))
            self._give_up()
        await self._try(self._index.close(finished=finished))

    async def _try(self, work: Awaitable[None]) -> None:
        try:
            await work
        except DedupError as error:
            self._tell(error)
