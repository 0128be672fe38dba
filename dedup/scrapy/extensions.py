"""Two extensions that write beside the drop log: the course of the crawl, and the words of its pages."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from dedup.droplog import course, texts
from dedup.page.urls import strip_user
from dedup.scrapy.component import Component
from dedup.scrapy.judgement import outcome_of
from dedup.scrapy.settings import Options, asks_for

if TYPE_CHECKING:  # Scrapy loads extensions early (see `dedup.scrapy.addon.COMPONENTS`)
    from dedup.filter import Filter

__all__ = ["KeepText", "Timeline"]

logger = logging.getLogger(__name__)


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
            bounds = detector.max_distance, detector.min_resemblance
            self._course = course.Course(
                path, course.Thresholds(detector.method, *bounds, filter.settings.action)
            )
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


class KeepText(Component):
    """A Scrapy extension: stores the words of every kept page, since any may yet have a near-duplicate, and of
    every near-duplicate, for the report."""

    _texts: texts.Texts | None = None

    def __init__(self, crawler: Crawler) -> None:
        if not asks_for(crawler.settings, "keep_text"):
            raise NotConfigured  # each signal that is heard costs some time
        super().__init__(crawler)

    def filter_opened(self, filter: "Filter", options: Options) -> None:
        """Stores from now on if it is asked to, unless the log is /dev/null or the like."""
        if options.crawl.keep_text and (path := filter.log.beside(texts.SUFFIX)):
            with self._giving_up():
                self._texts = texts.Texts(path)

    def response_received(self, response: Response) -> None:
        """A page reaches the spider: it is kept, or only marked."""
        outcome = outcome_of(response)
        # What an index out of reach has not seen may be filed later.
        if outcome and (outcome.verdict.status in {"new", "same"} or outcome.verdict.reason == "index"):
            self._store(response, strip_user(response.url), outcome.fingerprint.hex or "")

    def near_duplicate(self, response: Response, record: dict[str, Any]) -> None:
        """A page is a near-duplicate, and its record is in the log."""
        of = record["duplicate_of"], record["duplicate_of_simhash"]
        self._store(response, record["url"], record["simhash"], of)

    def _store(self, response: Response, url: str, simhash: str, of: tuple[str, str] | None = None) -> None:
        outcome = outcome_of(response)
        if self._texts is not None and outcome is not None and outcome.page is not None:
            page = outcome.page
            with self._giving_up():
                self._texts.add(url, simhash, texts.Text(page.tokens, page.chrome, page.data), of)

    def spider_closed(self, spider: Spider) -> None:
        """Writes what is left."""
        with self._giving_up():
            self._close()

    def _close(self) -> None:
        kept, self._texts = self._texts, None
        if kept is not None:
            kept.close()

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Stores nothing more if the file fails."""
        try:
            yield
        except sqlite3.Error as error:
            logger.warning("Texts of pages are not kept any more: %s", error)
            with suppress(sqlite3.Error):
                self._close()
