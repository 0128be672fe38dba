"""What the middlewares and extensions have in common: they are made if the filter is wanted, and hear signals."""

import os
from typing import Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.spider import DefaultSpider

from dedup.scrapy.compat import accept_spider
from dedup.scrapy.settings import asks_for
from dedup.scrapy.signals import filter_opened, near_duplicate

_OWN = {"filter_opened": filter_opened, "near_duplicate": near_duplicate}
_SCRAPYS = (
    "item_error",
    "item_scraped",
    "response_received",
    "spider_closed",
    "spider_error",
    "spider_idle",
    "spider_opened",
)
#: The signals that a component may hear, each by the method that bears its name.
HEARD = _OWN | {name: getattr(signals, name) for name in _SCRAPYS}


def is_tried_out(spider: Spider | None) -> bool:
    """Returns whether a spider does not crawl, but answers a command: check, shell, fetch, view or parse."""
    if spider is None or isinstance(spider, DefaultSpider) or os.environ.get("SCRAPY_CHECK"):
        return True  # the shell makes its spider later
    return getattr(spider.start, "__module__", "").startswith("scrapy.commands.")  # put there by the command


class Component:
    """A part of the filter that Scrapy makes."""

    def __init_subclass__(cls) -> None:
        accept_spider(cls)

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy.  Connects the methods that bear the name of a signal."""
        if not asks_for(crawler.settings, "enabled"):
            raise NotConfigured
        component = cls(crawler)
        for name, signal in HEARD.items():
            if hasattr(cls, name):
                crawler.signals.connect(getattr(component, name), signal)
        return component
