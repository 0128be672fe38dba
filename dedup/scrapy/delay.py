"""A delay that workers keep between them, where any of them may ask any host: as with the queue of scrapy-redis."""

import asyncio
from contextlib import suppress
from typing import Self
from weakref import WeakKeyDictionary

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from dedup.errors import DedupError, IndexUnavailableError
from dedup.frontier.delay import Delay
from dedup.scrapy.compat import accept_spider
from dedup.scrapy.settings import shared_address
from dedup.scrapy.signals import logger_for

__all__ = ["SharedDelayMiddleware"]

#: Seconds between two attempts while the server does not answer.
PAUSE = 1.0


class SharedDelayMiddleware:
    """Between two requests to a host, of all workers with one Redis, there are DOWNLOAD_DELAY seconds or more.

    A downloader middleware; its place is next to the downloader (1,000,000).  A request holds the lease of its host
    until its answer is there, so a host has one request at a time.
    """

    def __init__(self, crawler: Crawler, delay: Delay) -> None:
        self._delay = delay
        self._leases: WeakKeyDictionary[Request, tuple[str, str]] = WeakKeyDictionary()
        self._logger = logger_for(crawler, __name__)
        self._silent = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Is called by Scrapy."""
        seconds = getattr(crawler.spider, "download_delay", None)
        if seconds is None:
            seconds = crawler.settings.getfloat("DOWNLOAD_DELAY")
        if seconds <= 0:
            raise NotConfigured("DOWNLOAD_DELAY is 0")
        middleware = cls(crawler, Delay(shared_address(crawler.settings), seconds))
        crawler.signals.connect(middleware.spider_closed, signals.spider_closed)
        return middleware

    async def process_request(self, request: Request) -> None:
        """Waits until the host may be asked; while Redis is away, no host is."""
        host = urlparse_cached(request).hostname
        while host:
            try:
                self._leases[request] = host, await self._delay.take(host)
            except IndexUnavailableError as error:
                if not self._silent:
                    self._logger.warning("No host is asked for now: %s", error)
                self._silent = True
                await asyncio.sleep(PAUSE)
            else:
                self._silent = False
                return

    async def process_response(self, request: Request, response: Response) -> Response:
        """The answer is there."""
        await self._end(request)
        return response

    async def process_exception(self, request: Request, exception: Exception) -> None:
        """No answer will come."""
        await self._end(request)

    async def _end(self, request: Request) -> None:
        if lease := self._leases.pop(request, None):
            with suppress(DedupError):  # else it ends by itself
                await self._delay.end(*lease)

    async def spider_closed(self) -> None:
        """Lets go of the server."""
        await self._delay.close()


accept_spider(SharedDelayMiddleware)
