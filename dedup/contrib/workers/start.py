"""The spider's side of a worker: the requests with which its crawl begins, and where others were found."""

from collections.abc import AsyncIterator
from typing import Any, Self, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from dedup.contrib.workers.shards import ShardMiddleware
from dedup.scrapy.compat import accept_spider

_T = TypeVar("_T")


@accept_spider
class ShardStartMiddleware:
    """Puts the requests with which a crawl begins into the logs of their shards, and notes where others were found."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Is called by Scrapy."""
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Passes on what could not be put there."""
        shards = self._crawler.get_downloader_middleware(ShardMiddleware)
        async for each in start:
            if shards is not None and isinstance(each, Request):
                await shards.room()
                if shards.outbox.add_start(each):
                    continue
                shards.journal.begins(each)
            yield each

    async def process_spider_output(self, response: Response, result: AsyncIterator[_T]) -> AsyncIterator[_T]:
        """Notes which page each request was found on."""
        shards = self._crawler.get_downloader_middleware(ShardMiddleware)
        async for each in result:
            if shards is not None and isinstance(each, Request) and response.request is not None:
                shards.journal.found(each, response.request)
            yield each
