"""A filter without a crawler: visits of pages made of words, an index that can fail, a crawl that takes notes."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from dedup import index as indexes
from dedup.droplog.log import DropLog
from dedup.errors import DedupError
from dedup.filter import Counts, Crawl, Filter, Visit
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from dedup.index import Index, Verdict
from dedup.index.contract import State
from dedup.index.local.index import LocalIndex
from dedup.page.html import Page
from dedup.page.read import read

DETECTOR = Detector()
#: An index that compares whole pages: these pages are few, and until eight pages of a host are kept, only equal
#: ones are dropped there by default.
open_index = partial(indexes.open_index, chrome=False)


def text(seed: object, more: str = "") -> str:
    """A page of 200 words; pages of one seed are near-duplicates, whatever ``more`` is."""
    chance = random.Random(str(seed))
    words = " ".join(f"word{chance.randrange(100_000)}" for _ in range(200))
    return f"<title>A page</title><p>{words} {more}</p><a href='/next'>more</a>"


def fingerprint(seed: object, more: str = "") -> Fingerprint:
    """The fingerprint of such a page."""
    return DETECTOR.fingerprint(text(seed, more))


def visit(path: str, seed: object = None, **values: Any) -> Visit:
    """A visit of the page at a path, which is also its id; pages of one seed are near-duplicates."""
    url = f"http://example.org/{path}"
    page = partial(read, text(path if seed is None else seed, path), url)
    return Visit(path, url, **{"read": page} | values)


class FailingIndex(LocalIndex):
    """An index in memory that raises ``error`` for as long as that is set."""

    def __init__(self) -> None:
        super().__init__("memory:", "test", DETECTOR, chrome=False)
        self.error: Exception | None = None
        self.asked = 0
        self.held: dict[str, asyncio.Event] = {}  # claims of these pages wait
        self.waiting: set[str] = set()

    def _ask(self) -> None:
        self.asked += 1
        if self.error is not None:
            raise self.error

    async def claim(self, page_id: str, url: str, fingerprint: Fingerprint, carried: int = 0) -> Verdict:
        self._ask()
        if held := self.held.get(page_id):
            self.waiting.add(page_id)
            await held.wait()
            self.waiting.discard(page_id)
        return await super().claim(page_id, url, fingerprint, carried)

    async def annul(self, page_id: str) -> bool:
        self._ask()
        return await super().annul(page_id)

    async def states(self, page_ids: Sequence[str]) -> list[State]:
        self._ask()
        return await super().states(page_ids)


class Notes(Crawl):
    """A crawl that notes what it is asked for."""

    def __init__(self) -> None:
        self.stopped: list[DedupError] = []
        self.again: list[object] = []
        self.fetched: list[str] = []
        self.closing = False
        self.pages: dict[str, str] = {}  # texts by URL; others can't be fetched

    def stop(self, error: DedupError) -> None:
        self.stopped.append(error)

    def is_closing(self) -> bool:
        return self.closing

    async def fetch(self, url: str) -> Page | None:
        self.fetched.append(url)
        return read(self.pages[url], url)

    def fetch_again(self, origin: object, *, judged: bool = True) -> None:
        self.again.append(origin if judged else f"{origin}, unjudged")


class Run:
    """A filter, and all that it reaches."""

    def __init__(self, index: Index, log: Path, **options: Any) -> None:
        self.index = index
        self.crawl = Notes()
        self.counts = Counts()
        self.filter = Filter(index, DropLog(str(log)), stats=self.counts, crawl=self.crawl, **options)

    @property
    def figures(self) -> dict[str, Any]:
        """The stats, but for the times and the judges."""
        names = {
            name: name.removeprefix("dedup/")
            for name in self.counts
            if "/seconds/" not in name and "/judges/" not in name
        }
        return {short: self.counts[name] for name, short in names.items()}

    async def judge(self, path: str, seed: object = None, **values: Any) -> str:
        """What becomes of a page, in a word or two: "keep: new", "drop: /a", "keep: short" ..."""
        outcome = await self.filter.judge(visit(path, seed, **values))
        verdict = outcome.verdict
        why = (verdict.of or "").removeprefix("http://example.org") or verdict.reason or verdict.status
        return f"{outcome.action}: {why}"


@asynccontextmanager
async def filtering(
    log: Path, index: Index | None = None, *, finished: bool = True, **options: Any
) -> AsyncIterator[Run]:
    """A filter, closed at the end."""
    run = Run(index or open_index("memory:", DETECTOR), log, **options)
    try:
        yield run
    finally:
        await run.filter.close(finished=finished)
