"""The gate before every host: requests pass while the shards of a worker are its own."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakValueDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from dedup.scrapy.crawl.slot import is_closing
from dedup.scrapy.requests.sending import at_sending, give_back

#: Seconds between two looks whether it is open.
LOOK = 0.1


class Gate:
    """Stands where requests are really sent, behind the queues of the hosts."""

    def __init__(self, crawler: Crawler) -> None:
        self.until = 0.0  #: until then it is open, by time.monotonic
        self._crawler = crawler
        self._rows: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._slots: dict[str, Any] = {}

    def stand(self) -> None:
        """Takes its place; the spider is open."""
        self._slots = self._crawler.engine.downloader.slots
        at_sending(self._crawler, self.send)

    @property
    def is_open(self) -> bool:
        """Whether a request may be sent now."""
        return time.monotonic() < self.until

    async def send(self, request: Request, send: Callable[[], Awaitable[Response]]) -> Response:
        """Sends a request when the gate is open; if the crawl is stopped before, it comes back.

        Those of one host that have waited go one by one, with its delay between them.
        """
        host: str = request.meta.get("download_slot", "")
        row = self._rows.setdefault(host, asyncio.Lock())
        waits = row.locked() or not self.is_open
        async with row:
            while True:
                while not self.is_open:
                    if is_closing(self._crawler):
                        give_back(
                            self._crawler, request, "this worker is stopped, and its shard is not its own"
                        )
                    await asyncio.sleep(LOOK)
                if not waits:
                    break
                await asyncio.sleep(getattr(self._slots.get(host), "delay", 0))
                waits = False
        return await send()

    def shut(self) -> None:
        """Nothing is sent any more, so nothing has to wait for its turn."""
        self.until = 0.0
        for slot in self._slots.values():
            slot.delay = 0
