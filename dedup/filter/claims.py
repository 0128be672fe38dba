"""Claims on an index that may fail, and what becomes of pages then.

Nothing here raises but what the crawl raises when it is told to stop, and no page is dropped without a verdict.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from msgspec import Struct

from dedup.errors import DedupError, IndexUnavailableError
from dedup.filter.case import Case
from dedup.filter.responses import RESPONSES, Failure, Response
from dedup.filter.stats import Stats, count, spend
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index, Verdict
from dedup.index.batching import end
from dedup.latest import REMEMBERED
from dedup.printing import inert

logger = logging.getLogger(__name__)

#: Seconds between two attempts to reach the index: the first pause, and the longest.
PAUSE_SECONDS = (0.5, 15.0)


class _LatePage(Struct, eq=False):
    """A page that was kept unjudged, to be filed later."""

    page_id: str
    url: str
    fingerprint: Fingerprint
    carried: int
    done: bool = False  # its output was handed over meanwhile


@dataclass(eq=False)
class Claimant:
    """Claims the pages of one crawl, and confirms or releases them."""

    index: Index
    policy: str  #: "keep", "pause" or "stop"
    stats: Stats
    stop: Callable[[DedupError], None]  #: ends the crawl, and is called once
    is_closing: Callable[[], bool]  #: whether the crawl is about to end

    def __post_init__(self) -> None:
        self.stopped_by: DedupError | None = None  #: why the crawl is to end
        self._claimed: set[str] = set()  # page ids whose output is not yet handed over
        self._aside: dict[str, _LatePage] = {}  # by page id, in their order
        self._is_away = False  # whether the index did not answer when it was asked last
        self._filing: asyncio.Task[None] | None = None
        self._told = ""  # the trouble with the index, until it answers again

    async def claim_case(self, case: Case) -> Verdict:
        """Claims the page of a case: see `claim`."""
        visit = case.visit
        return await self.claim(visit.page_id, visit.url, case.fingerprint, visit.carried)

    async def claim(self, page_id: str, url: str, fingerprint: Fingerprint, carried: int = 0) -> Verdict:
        """Returns the verdict on a page.  If the index can't give one, that is "unjudged"."""
        if self._aside and self._is_away and fingerprint.reason is None:
            self._set_aside(_LatePage(page_id, url, fingerprint, carried))
            return Verdict("unjudged", reason="index")
        pauses = _pauses()
        while True:
            try:
                verdict = await self.index.claim(page_id, url, fingerprint, carried)
            except Exception as error:  # noqa: BLE001 (no fault of ours may cost a page)
                failure = self._tell(error, f"Kept {inert(url)}: it can't be claimed")
                match RESPONSES[self.policy, failure]:
                    case Response.WAIT if not (self.stopped_by or self.is_closing()):
                        pause = next(pauses)
                        await asyncio.sleep(pause)
                        spend(self.stats, "paused", pause)
                        continue
                    case Response.SET_ASIDE:
                        self._is_away = True
                        self._set_aside(_LatePage(page_id, url, fingerprint, carried))
                    case Response.STOP if isinstance(error, DedupError) and not self.stopped_by:
                        self.stopped_by = error
                        self.stop(error)
                return Verdict("unjudged", reason="internal_error" if failure is Failure.FAULT else "index")
            if verdict.status != "unjudged":
                self._is_away, self._told = False, ""
            if verdict.status in {"new", "same"}:
                self._claimed.add(page_id)
            return verdict

    # --- What is set aside

    def _set_aside(self, page: _LatePage) -> None:
        if len(self._aside) >= REMEMBERED:
            count(self.stats, "late/never")
            return
        self._aside.setdefault(page.page_id, page)
        if self._filing is None or self._filing.done():
            self._filing = asyncio.create_task(self._file_later())

    async def _file_later(self) -> None:
        pauses = _pauses()
        while self._aside:
            await asyncio.sleep(next(pauses))
            if await self._file_all():
                pauses = _pauses()

    async def _file_all(self) -> bool:
        """Files what is set aside for as long as the index answers: first one page, then twice as many each time.

        Returns whether any could be filed.
        """
        before, at_once = len(self._aside), 1
        while some := list(islice(self._aside.values(), at_once)):
            await asyncio.gather(*map(self._claim_late, some))
            if self._is_away or self._aside.get(some[0].page_id) is some[0]:
                return at_once > 1
            at_once *= 2
        logger.info(
            "The index is back; %d pages that were kept meanwhile have been looked up and filed", before
        )
        self._told = ""
        return True

    async def _claim_late(self, page: _LatePage) -> None:
        page_id = page.page_id
        try:
            verdict = await self.index.claim(page_id, page.url, page.fingerprint, page.carried)
        except Exception as error:  # noqa: BLE001 (told, with its traceback)
            match self._tell(error, f"Not filed: {inert(page.url)}, which was kept"):
                case Failure.AWAY:
                    self._is_away = True
                case Failure.UNUSABLE:
                    self._give_up(list(self._aside))
                case Failure.FAULT:
                    self._give_up([page_id])
            return
        self._is_away = False
        if self._aside.pop(page_id, None) is None:  # it was released meanwhile
            await self._try(self.index.release(page_id))
        elif verdict.status == "duplicate":  # too late to be dropped
            count(self.stats, "late/duplicate")
            logger.info(
                "Kept while the index was away: %s, a near-duplicate of %s (distance %d, resemblance %.2f)",
                inert(page.url),
                inert(verdict.of or ""),
                verdict.distance,
                verdict.resemblance,
            )
        else:
            count(self.stats, "late/filed")
            self._claimed.add(page_id)
            if page.done:
                await self.confirm(page_id)

    def _give_up(self, page_ids: Iterable[str]) -> None:
        for page_id in page_ids:
            if self._aside.pop(page_id, None):
                count(self.stats, "late/never")

    def _tell(self, error: Exception, fault: str = "") -> Failure:
        """Logs what is wrong.  Trouble with the index is logged once, and not for each page; a fault is logged with its traceback."""
        if not isinstance(error, DedupError):
            logger.error("%s", fault, exc_info=error)
            return Failure.FAULT
        if (text := str(error)) != self._told:
            self._told = text
            logger.warning("No verdicts: %s (on_index_failure %s)", text, self.policy)
        return Failure.AWAY if isinstance(error, IndexUnavailableError) else Failure.UNUSABLE

    def is_open(self, page_id: str) -> bool:
        """Returns whether a page was kept that has been neither confirmed nor released."""
        aside = self._aside.get(page_id)
        return page_id in self._claimed or (aside is not None and not aside.done)

    async def confirm(self, page_id: str) -> None:
        """Confirms a page: its output has been handed over."""
        if page_id in self._aside:
            self._aside[page_id].done = True
        elif page_id in self._claimed:
            self._claimed.discard(page_id)
            await self._try(self.index.confirm(page_id))

    async def release(self, page_id: str) -> None:
        """Releases a page that was not processed, as if it had never been claimed."""
        self._aside.pop(page_id, None)
        if page_id in self._claimed:
            self._claimed.discard(page_id)
            await self._try(self.index.release(page_id))

    async def forget(self, page_id: str) -> None:
        """Forgets a page that was handed over, but not processed after all, or of which nothing came."""
        self._aside.pop(page_id, None)
        self._claimed.discard(page_id)
        await self._try(self.index.forget([page_id]))

    async def forget_other(self, page_id: str, fingerprint: Fingerprint) -> None:
        """Forgets what an earlier crawl has filed of a page, unless the page, now a near-duplicate, still shows it."""
        await self._try(self._forget_other(page_id, fingerprint))

    async def _forget_other(self, page_id: str, fingerprint: Fingerprint) -> None:
        filed = await self.index.find(page_id)
        if filed is not None and filed.digest != fingerprint.digest:
            await self.index.forget([page_id])

    async def close(self, *, finished: bool) -> None:
        """Files what is set aside if that can be done now, and lets go of the index.

        A crawl that has not ``finished`` has lost what its pages link to.
        """
        await end(self._filing)
        if self._aside:
            await self._file_all()
        if self._aside:
            logger.warning("%d pages were kept unjudged, and are in no index", len(self._aside))
            self._give_up(list(self._aside))
        self._claimed.clear()
        await self._try(self.index.close(finished=finished))

    async def _try(self, work: Awaitable[object]) -> None:
        try:
            await work
        except DedupError as error:
            self._tell(error)


def _pauses() -> Iterator[float]:
    """Seconds to wait between attempts: each pause is twice the one before, up to the longest."""
    pause, longest = PAUSE_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, longest)
