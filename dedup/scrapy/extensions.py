"""An extension that writes the course of the crawl beside the drop log."""

import asyncio
import time
from typing import TYPE_CHECKING

from scrapy import Spider

from dedup.droplog import course
from dedup.scrapy.component import Component

if TYPE_CHECKING:  # Scrapy loads extensions early (see `dedup.scrapy.addon.COMPONENTS`)
    from dedup.filter import Filter


class Timeline(Component):
    """A Scrapy extension: writes how many pages and near-duplicates there were as time went by."""

    filter: "Filter | None" = None
    _course: course.Course | None = None
    _writing: asyncio.Task[None] | None = None

    def filter_opened(self, filter: "Filter") -> None:
        """Writes from now on, unless the log is /dev/null or the like."""
        self.filter = filter
        if path := filter.log.beside(course.SUFFIX):
            detector = filter.index.detector
            bounds, own = (detector.max_distance, detector.min_resemblance), filter.index.settings
            least = own.min_containment if own.chrome else None
            used = course.Thresholds(detector.method, *bounds, filter.settings.action, least)
            self._course = course.Course(path, used)
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        started = time.monotonic()
        while True:
            await asyncio.sleep(course.pause(time.monotonic() - started))
            self._add()

    def _add(self) -> None:
        if self._course is not None:
            get = self.crawler.stats.get_value
            self._course.add(get("dedup/pages", 0), get("dedup/duplicate", 0))

    def spider_closed(self, spider: Spider) -> None:
        """Writes the last counts."""
        if self._writing is not None:
            self._writing.cancel()
        self._add()
        if self._course is not None and self.filter is not None:
            get, names = self.crawler.stats.get_value, ("sampled", "new", "contents_low", "contents_high")
            sample = (get(f"dedup/unreached/{name}", 0) for name in names)
            self._course.end(course.Loss(self.filter.unreached.count(), *sample))
