"""Keeps one delay for all workers, where any of them may ask any host, as with the queue of scrapy-redis."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

from dedup.errors import IndexUnavailableError
from dedup.index.redis.delay import Delay
from dedup.scrapy.crawl.slot import is_closing
from dedup.scrapy.requests.sending import at_sending, give_back
from dedup.scrapy.settings import shared_address
from dedup.scrapy.signals import logger_for

#: Seconds between two attempts while the server does not answer.
PAUSE = 1.0


class SharedDelayMiddleware:
    """Keeps DOWNLOAD_DELAY seconds or more between two requests to a host, for all workers with one Redis.

    A downloader middleware, whatever its place.  A request holds the lease of its host until its answer is there, so a
    host has one request at a time.
    """

    def __init__(self, crawler: Crawler, delay: Delay) -> None:
        self._crawler = crawler
        self._delay = delay
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
        crawler.signals.connect(middleware.spider_opened, signals.spider_opened)
        crawler.signals.connect(middleware.spider_closed, signals.spider_closed)
        return middleware

    def spider_opened(self) -> None:
        """Takes its place behind Scrapy's own delays."""
        at_sending(self._crawler, self.send)

    async def send(self, request: Request, send: Callable[[], Awaitable[Response]]) -> Response:
        """Sends a request when its host may be asked; while Redis is away, no host is."""
        host = urlparse_cached(request).hostname
        async with AsyncExitStack() as stack:
            while host:
                try:
                    await stack.enter_async_context(self._delay.lease(host))
                    break
                except IndexUnavailableError as error:
                    if not self._silent:
                        self._logger.warning("No request is sent for now: %s", error)
                    self._silent = True
                if is_closing(self._crawler):
                    give_back(self._crawler, request, "this worker is stopped while its Redis is away")
                await asyncio.sleep(PAUSE)
            self._silent = False
            return await send()

    async def spider_closed(self) -> None:
        """Lets go of the server."""
        await self._delay.close()
