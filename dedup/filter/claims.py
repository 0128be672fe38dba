"""Claims on an index that may fail, and what becomes of pages then.

`RESPONSES` is the table of docs/reliability.md, "When the index fails".  Nothing here raises but what the
crawl raises when it is told to stop, and no page is dropped without a verdict.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from dedup.errors import DedupError, IndexUnavailableError
from dedup.filter.stats import Stats, count, spend
from dedup.fingerprint.detector import Fingerprint
from dedup.index import Index, Verdict
from dedup.index.batching import end
from dedup.printing import inert

__all__ = ["RESPONSES", "Claimant", "Failure", "Response"]

logger = logging.getLogger(__name__)

#: Seconds between two attempts to reach the index: the first pause, and the longest.
PAUSE_SECONDS = (0.5, 15.0)
#: How many pages are set aside at most (about 1 kB each); those beyond are kept, and never filed.
MAX_ASIDE = 10_000
#: Seconds after which the same trouble is told again.
SILENCE = 60.0


class Failure(Enum):
    """What can be wrong when a claim fails."""

    AWAY = auto()  #: the index is out of reach, and may come back
    UNUSABLE = auto()  #: the index is damaged, or it is another one: it will not come back
    FAULT = auto()  #: the program has a fault, and the index may have none


class Response(Enum):
    """What becomes of a page whose claim fails."""

    SET_ASIDE = auto()  #: it is kept unjudged, and filed when the index is back
    WAIT = auto()  #: its claim is made again; if the crawl is about to end, it is kept unjudged
    KEEP = auto()  #: it is kept unjudged, and never filed
    STOP = auto()  #: it is kept unjudged, and the crawl ends


#: By ``on_index_failure`` and by what is wrong; a line has the responses to the failures in their order.
RESPONSES = {
    (policy, failure): response
    for policy, responses in {
        "keep": (Response.SET_ASIDE, Response.KEEP, Response.KEEP),
        "pause": (Response.WAIT, Response.STOP, Response.KEEP),
        "stop": (Response.STOP, Response.STOP, Response.KEEP),
    }.items()
    for failure, response in zip(Failure, responses, strict=True)
}


@dataclass(slots=True)
class _Aside:
    """A page that was kept unjudged, to be filed later."""

    url: str
    fingerprint: Fingerprint
    done: bool = False  # its output was handed over meanwhile


class Claimant:
    """Claims the pages of one crawl, and confirms or releases them."""

    def __init__(
        self,
        index: Index,
        policy: str,
        stats: Stats,
        stop: Callable[[DedupError], None],
        is_closing: Callable[[], bool],
    ) -> None:
        """``policy`` is "keep", "pause" or "stop".

        ``stop`` ends the crawl, and is called once; ``is_closing`` says whether the crawl is about to end.
        """
        self._index = index
        self._policy = policy
        self._stats = stats
        self._stop = stop
        self._is_closing = is_closing
        self._stopped = False
        self._claimed: set[str] = set()  # page ids whose output is not yet handed over
        self._aside: dict[str, _Aside] = {}
        self._filing: asyncio.Task[None] | None = None
        self._told = ("", 0.0)

    async def claim(self, page_id: str, url: str, fingerprint: Fingerprint) -> Verdict:
        """The verdict on a page, which is "unjudged" where the index has none to give."""
        if self._aside and fingerprint.reason is None:  # pages are filed in their order
            self._set_aside(page_id, url, fingerprint)
            return Verdict("unjudged", reason="index")
        pauses = _pauses()
        while True:
            try:
                verdict = await self._index.claim(page_id, url, fingerprint)
            except Exception as error:  # noqa: BLE001 (no fault of ours may cost a page)
                failure = self._tell(error, f"Kept {inert(url)}: it can't be claimed")
                match RESPONSES[self._policy, failure]:
                    case Response.WAIT if not (self._stopped or self._is_closing()):
                        pause = next(pauses)
                        await asyncio.sleep(pause)
                        spend(self._stats, "paused", pause)
                        continue
                    case Response.SET_ASIDE:
                        self._set_aside(page_id, url, fingerprint)
                    case Response.STOP if isinstance(error, DedupError) and not self._stopped:
                        self._stopped = True
                        self._stop(error)
                return Verdict("unjudged", reason="internal_error" if failure is Failure.FAULT else "index")
            if verdict.status in {"new", "same"}:
                self._claimed.add(page_id)
            return verdict

    def _set_aside(self, page_id: str, url: str, fingerprint: Fingerprint) -> None:
        if len(self._aside) >= MAX_ASIDE:
            count(self._stats, "late/never")
            return
        self._aside.setdefault(page_id, _Aside(url, fingerprint))
        if self._filing is None or self._filing.done():
            self._filing = asyncio.create_task(self._file_later())

    async def _file_later(self) -> None:
        for pause in _pauses():
            if not self._aside:
                return
            await asyncio.sleep(pause)
            try:
                await self._file()
            except Exception as error:  # noqa: BLE001 (told, with its traceback)
                if self._tell(error, "Pages that were kept can't be filed") is not Failure.AWAY:
                    self._give_up()

    async def _file(self) -> None:
        """Files what was set aside, in order; pages that come meanwhile are added at the end."""
        filed = len(self._aside)
        while self._aside:
            page_id, page = next(iter(self._aside.items()))
            verdict = await self._index.claim(page_id, page.url, page.fingerprint)
            if self._aside.pop(page_id, None) is None:  # it was released meanwhile
                await self._index.release(page_id)
            elif verdict.status == "duplicate":  # too late to be dropped
                count(self._stats, "late/duplicate")
                logger.info(
                    "Kept while the index was away: %s, a near-duplicate of %s (distance %d, resemblance %.2f)",
                    inert(page.url),
                    inert(verdict.of or ""),
                    verdict.distance,
                    verdict.resemblance,
                )
            else:
                count(self._stats, "late/filed")
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

    def _tell(self, error: Exception, fault: str = "") -> Failure:
        """Logs what is wrong: one line for a trouble of the index, not one a page; a traceback for a fault."""
        if not isinstance(error, DedupError):
            logger.error("%s", fault, exc_info=error)
            return Failure.FAULT
        text, now = str(error), time.monotonic()
        if text != self._told[0] or now - self._told[1] > SILENCE:
            self._told = (text, now)
            logger.warning("No verdicts: %s (on_index_failure %s)", text, self._policy)
        return Failure.AWAY if isinstance(error, IndexUnavailableError) else Failure.UNUSABLE

    def is_open(self, page_id: str) -> bool:
        """Whether a page was kept that has been neither confirmed nor released."""
        aside = self._aside.get(page_id)
        return page_id in self._claimed or (aside is not None and not aside.done)

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
        await end(self._filing)
        if self._aside:
            await self._try(self._file())
        if self._aside:
            logger.warning("%d pages were kept unjudged, and are in no index", len(self._aside))
            self._give_up()
        self._claimed.clear()
        await self._try(self._index.close(finished=finished))

    async def _try(self, work: Awaitable[None]) -> None:
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
