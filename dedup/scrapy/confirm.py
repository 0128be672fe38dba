"""The spider's side of the filter: a page is confirmed once its output has been handed over."""

from collections.abc import AsyncIterator
from typing import TypeVar

from scrapy import Request
from scrapy.http import Response

from dedup.filter import Filter
from dedup.scrapy.component import Component
from dedup.scrapy.judgement import outcome_of
from dedup.scrapy.visits import page_id

__all__ = ["ConfirmMiddleware"]

_T = TypeVar("_T")


class ConfirmMiddleware(Component):
    """Tells the filter when a page's output has been handed over; keeps the links of "nofollow" pages."""

    filter: Filter | None = None

    def filter_opened(self, filter: Filter) -> None:
        """The filter is ready."""
        self.filter = filter

    async def process_spider_output(self, response: Response, result: AsyncIterator[_T]) -> AsyncIterator[_T]:
        """Passes the output on, then confirms the page."""
        request = response.request
        if self.filter is None or request is None:
            async for output in result:
                yield output
            return
        outcome = outcome_of(response)
        nofollow = outcome is not None and outcome.action == "nofollow"
        async for output in result:
            if not (nofollow and isinstance(output, Request)):
                yield output
        # Not reached if the spider fails: Scrapy sends spider_error then.
        await self.filter.handed_over(page_id(self.crawler, request))
