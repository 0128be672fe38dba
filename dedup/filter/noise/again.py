"""Pages that the filter fetches once more: one of a host at a time, and none while a host lets such requests wait in vain."""

import asyncio
import time
from typing import Any
from weakref import WeakValueDictionary

from dedup.filter.stats import Stats, count
from dedup.filter.visit import Crawl
from dedup.latest import Latest
from dedup.page.html import Page
from dedup.page.urls import host

#: Pages that may be fetched for probes: the first few, and a share of all pages of a crawl, those that were dropped by them twice.
FIRST, SHARE = 20, 0.1
#: A host that let the filter wait in vain is left alone for this many times as long: pages wait with it for that answer.
REST = 10


class Again:
    """Fetches pages of one crawl once more."""

    def __init__(self, crawl: Crawl, stats: Stats, *, fetches: bool) -> None:
        self._fetches = fetches
        self._crawl = crawl
        self._stats = stats
        self._rests = Latest[str, float]()  # by host, until when, by the monotonic clock
        self._turns = WeakValueDictionary[str, asyncio.Lock]()  # by host, those that anybody has or waits for

    def may_ask(self, url: str, *, is_owed: bool = False) -> bool:
        """Returns whether one more page may be fetched, and such requests have not waited in vain for its host of late.

        What ``is_owed`` may be beyond the bound: then others have to wait the longer.
        """
        pages, fetched, probed = (
            self._stats.get_value(f"dedup/{name}", 0) for name in ("pages", "probes", "probed")
        )
        has_right = self._fetches and (is_owed or fetched < FIRST + SHARE * (pages + probed))
        return has_right and time.monotonic() >= self._rests.get(host(url), 0.0)

    def turn(self, url: str) -> asyncio.Lock:
        """Returns the lock to hold while pages of a host are fetched: who has it may be learning what the next one would ask for."""
        return self._turns.setdefault(host(url), asyncio.Lock())

    async def answer(self, manner: Any, url: str, origin: Any) -> Page | None:
        """Fetches a page once more; returns None if the answer is no page.

        Raises whatever `Crawl.fetch_in` does.
        """
        count(self._stats, "probes")
        began = time.monotonic()
        try:
            answer = await self._crawl.fetch_in(manner, url, origin)
        except Exception:
            now = time.monotonic()
            self._rests[host(url)] = now + REST * (now - began)
            raise
        if answer is not None and answer.reason is None:
            return answer
        count(self._stats, "probe/failed")
        return None
