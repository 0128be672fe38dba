"""The requests with which the crawl of a worker begins."""

from collections.abc import AsyncIterator
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler

from dedup.scrapy.workers.shards import ShardMiddleware

__all__ = ["ShardStartMiddleware"]


class ShardStartMiddleware:
    """Puts the requests with which a crawl begins into the logs of their shards."""

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
                if shards.start(each):
                    continue
            yield each
