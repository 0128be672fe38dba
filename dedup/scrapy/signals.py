"""Signals of the filter, to be connected like Scrapy's own (``crawler.signals.connect``)."""

import logging

from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider

from dedup.errors import DedupError

__all__ = ["filter_failed", "near_duplicate", "refuse"]

logger = logging.getLogger(__name__)

#: A page was found to be a near-duplicate and dropped, or marked.  Arguments: response, request, record
#: (the object that was written to the drop log), spider.
near_duplicate = object()

#: The filter refused to start, or stopped the crawl.  Arguments: error (a `dedup.DedupError`).
filter_failed = object()


def refuse(crawler: Crawler, error: DedupError) -> CloseSpider:
    """Says in one line why a crawl can't go on; what a ``spider_opened`` handler then raises."""
    logger.error("Crawl refused: %s", error, extra={"spider": crawler.spider})
    crawler.signals.send_catch_log(filter_failed, error=error)
    return CloseSpider(error.reason)
