"""The line of Scrapy's log that says, once a minute, what the filter has done so far."""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from dedup.printing import many
from dedup.scrapy.component import Component
from dedup.scrapy.signals import logger_for

if TYPE_CHECKING:  # Scrapy loads extensions early (see `dedup.scrapy.addon.COMPONENTS`)
    from dedup.filter import Filter


#: The stats of the line.
FIGURES = ("pages", "dropped", "marked", "links_not_followed", "probes")


class Progress(Component):
    """A Scrapy extension: tells what was kept and dropped, as often as Scrapy tells how many pages it has crawled."""

    _telling: asyncio.Task[None] | None = None

    def __init__(self, crawler: Crawler) -> None:
        self._interval = crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if not self._interval:
            raise NotConfigured
        super().__init__(crawler)

    def filter_opened(self, filter: "Filter") -> None:
        """Tells from now on."""
        self._telling = asyncio.create_task(self._tell(logger_for(self.crawler, __name__)))

    async def _tell(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        while True:
            await asyncio.sleep(self._interval)
            log.info("Near-duplicate filter: %s", progress(self.crawler.stats.get_stats()))

    def spider_closed(self, spider: Spider) -> None:
        """The summary tells the rest."""
        if self._telling is not None:
            self._telling.cancel()


def progress(stats: Mapping[str, Any]) -> str:
    """Returns a line made from the stats of a crawl that goes on.

    >>> progress({"dedup/pages": 1200, "dedup/dropped": 300, "dedup/links_not_followed": 4100, "dedup/probes": 1})
    '900 pages kept, 300 dropped (25%); 4,100 links not followed, 1 extra request to learn what is noise'
    """
    pages, dropped, marked, links, probes = (int(stats.get(f"dedup/{name}", 0)) for name in FIGURES)
    return (
        f"{many(pages - dropped, 'page')} kept"
        + (f" ({marked:,} marked)" if marked else "")
        + f", {dropped:,} dropped ({dropped / max(1, pages):.0%}); {many(links, 'link')} not followed, "
        f"{many(probes, 'extra request')} to learn what is noise"
    )
