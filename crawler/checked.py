"""A spider that says in one line what is wrong with its arguments, and what it can't get."""

from typing import Any, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from twisted.python.failure import Failure

from dedup import SettingsError
from dedup.scrapy import refuse


class CheckedSpider(Spider):
    """Its subclasses set ``wrong`` where they find an argument that is not allowed."""

    wrong: SettingsError | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """Is called by Scrapy."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.opened, signals.spider_opened)
        return spider

    def opened(self) -> None:
        """Stops a crawl with wrong arguments before it begins."""
        if self.wrong:
            refuse(self.crawler, self.wrong)

    def failed(self, failure: Failure) -> None:
        """Logs a line for a page that can't be had, but not for one that was filtered, which is logged elsewhere."""
        if not isinstance(failure.value, IgnoreRequest):
            self.logger.error("%s: %s", getattr(failure, "request", ""), failure.getErrorMessage())
