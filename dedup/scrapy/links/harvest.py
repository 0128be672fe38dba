"""The harvest of near-duplicates: their callbacks run for the sake of the links, and their items are left out.

Every request that a callback makes learns here where it was found.
"""

from collections.abc import AsyncIterator
from typing import TypeVar

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from dedup.filter.stats import count
from dedup.scrapy.component import Component
from dedup.scrapy.judgement import is_harvested
from dedup.scrapy.links.middleware import LinksMiddleware
from dedup.scrapy.settings import weighs_links

__all__ = ["HarvestMiddleware"]

_T = TypeVar("_T")


class HarvestMiddleware(Component):
    """A spider middleware, next to the engine."""

    def __init__(self, crawler: Crawler) -> None:
        if not weighs_links(crawler.settings):
            raise NotConfigured
        super().__init__(crawler)

    async def process_spider_output(self, response: Response, result: AsyncIterator[_T]) -> AsyncIterator[_T]:
        """Passes requests on, with the page on which they were found; leaves out the items of a near-duplicate."""
        links = self.crawler.get_downloader_middleware(LinksMiddleware)
        if links is None or links.options is None or response.request is None:
            async for output in result:
                yield output
            return
        is_harvest = is_harvested(response)
        async for output in result:
            if isinstance(output, Request):
                links.found(output, response)
            elif is_harvest:
                count(self.crawler.stats, "links/items_left_out")
                continue
            yield output
