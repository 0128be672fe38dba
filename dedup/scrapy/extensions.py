"""Two extensions that write beside the drop log: the course of the crawl, and the words of its pages."""

import asyncio
import logging
import sqlite3
import time
from contextlib import suppress
from typing import Any, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from dedup.droplog import course, texts
from dedup.filter import Filter
from dedup.page.urls import strip_user
from dedup.scrapy.judgement import outcome_of
from dedup.scrapy.settings import Options, is_enabled
from dedup.scrapy.signals import filter_opened, near_duplicate

__all__ = ["KeepText", "Timeline"]

logger = logging.getLogger(__name__)


class Timeline:
    """A Scrapy extension: writes how many pages and near-duplicates there were as time went by."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._course: course.Course | None = None
        self._writing: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        if not is_enabled(crawler.settings):
            raise NotConfigured
        timeline = cls(crawler)
        crawler.signals.connect(timeline.filter_opened, filter_opened)
        crawler.signals.connect(timeline.spider_closed, signals.spider_closed)
        return timeline

    def filter_opened(self, filter: Filter) -> None:
        """Writes from now on, unless the log is /dev/null or the like."""
        if path := filter.log.beside(course.SUFFIX):
            detector = filter.index.detector
            bounds = detector.max_distance, detector.min_resemblance
            self._course = course.Course(path, course.Thresholds(detector.method, *bounds, filter.action))
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        started = time.monotonic()
        while True:
            await asyncio.sleep(course.pause(time.monotonic() - started))
            self._add()

    def _add(self) -> None:
        if self._course is not None:
            get = self._crawler.stats.get_value
            self._course.add(get("dedup/pages", 0), get("dedup/duplicate", 0))

    def spider_closed(self, spider: Spider) -> None:
        """Writes the last counts."""
        if self._writing is not None:
            self._writing.cancel()
        self._add()


class KeepText:
    """A Scrapy extension: stores the words of every kept page, since any may yet have a near-duplicate, and of
    every near-duplicate, for the report."""

    def __init__(self) -> None:
        self._texts: texts.Texts | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Called by Scrapy."""
        if not is_enabled(crawler.settings):
            raise NotConfigured
        keeper = cls()
        crawler.signals.connect(keeper.filter_opened, filter_opened)
        crawler.signals.connect(keeper.response_received, signals.response_received)
        crawler.signals.connect(keeper.near_duplicate, near_duplicate)
        crawler.signals.connect(keeper.spider_closed, signals.spider_closed)
        return keeper

    def filter_opened(self, filter: Filter, options: Options) -> None:
        """Stores from now on if it is asked to, unless the log is /dev/null or the like."""
        if options.keep_text and (path := filter.log.beside(texts.SUFFIX)):
            try:
                self._texts = texts.Texts(path)
            except sqlite3.Error as error:
                self._fail(error)

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
        if self._texts is not None and outcome is not None:
            try:
                self._texts.add(url, simhash, texts.Text(outcome.page.tokens, outcome.page.chrome), of)
            except sqlite3.Error as error:
                self._fail(error)

    def spider_closed(self, spider: Spider) -> None:
        """Writes what is left."""
        kept, self._texts = self._texts, None
        if kept is not None:
            try:
                kept.close()
            except sqlite3.Error as error:
                self._fail(error)

    def _fail(self, error: sqlite3.Error) -> None:
        logger.warning("Texts of pages are not kept any more: %s", error)
        kept, self._texts = self._texts, None
        if kept is not None:
            with suppress(sqlite3.Error):
                kept.close()
