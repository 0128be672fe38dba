"""The signals of the filter, which are connected like Scrapy's own (``crawler.signals.connect``)."""

import logging

from scrapy.crawler import Crawler

from dedup.errors import DedupError
from dedup.scrapy.compat import stop_at_start
from dedup.scrapy.settings import spelled

#: The filter is ready for the first page.  Arguments: filter (a `dedup.filter.Filter`), options (the settings that
#: it was made from), spider.
filter_opened = object()

#: A page was found to be a near-duplicate and dropped, or marked.  Arguments: response, request, record
#: (the object that was written to the drop log), spider.
near_duplicate = object()

#: A page is new, or has changed, moved, vanished since an earlier crawl.  Arguments: change (a `dedup.filter.Change`),
#: response (None for what was found when the crawl had met all other pages), spider.
change_found = object()

#: The filter refused to start, or stopped the crawl.  Arguments: error (a `dedup.DedupError`).
filter_failed = object()


def refuse(crawler: Crawler, error: DedupError) -> None:
    """Says in one line why a crawl can't go on, and stops it before its first page.

    It is the last thing that a handler of ``spider_opened`` does, and may raise `CloseSpider`.
    """
    error = spelled(error)
    logger_for(crawler, __name__).error("Crawl refused: %s", error)
    crawler.signals.send_catch_log(filter_failed, error=error)
    stop_at_start(crawler, error.reason)


def logger_for(crawler: Crawler, name: str) -> logging.LoggerAdapter[logging.Logger]:
    """Returns a logger whose lines carry the spider, as Scrapy's own do."""
    return logging.LoggerAdapter(logging.getLogger(name), {"spider": crawler.spider})
