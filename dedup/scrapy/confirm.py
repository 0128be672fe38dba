"""Confirms pages once the spider's output has been handed over; holds back links of "nofollow" pages."""

from collections.abc import AsyncIterator
from typing import TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from dedup.scrapy.judgement import FLAG
from dedup.scrapy.middleware import NearDuplicateMiddleware, is_seed
from dedup.scrapy.settings import is_enabled

__all__ = ["ConfirmMiddleware"]

_T = TypeVar("_T")


class ConfirmMiddleware:
    """Tells the filter when a page's output has been handed over; keeps the links of "nofollow" pages."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "ConfirmMiddleware":
        """Called by Scrapy."""
        if not is_enabled(crawler.settings):
            raise NotConfigured
        return cls(crawler)

    async def process_spider_output(self, response: Response, result: AsyncIterator[_T]) -> AsyncIterator[_T]:
        """Passes the output on, then confirms the page."""
        judge = self.crawler.get_downloader_middleware(NearDuplicateMiddleware)
        request = response.request
        if judge is None or not judge.ready or request is None:
            async for output in result:
                yield output
            return
        nofollow = FLAG in response.flags and judge.options.action == "nofollow" and not is_seed(request)
        async for output in result:
            if not (nofollow and isinstance(output, Request)):
                yield output
        await judge.handed_over(request)  # not reached if the spider fails: spider_error is sent then
