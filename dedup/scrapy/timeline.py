"""Writes the course of a crawl beside its drop log; `dedup.droplog.course` says what the file holds."""

import asyncio
import json
import logging
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from dedup.droplog.course import SUFFIX
from dedup.scrapy.middleware import NearDuplicateMiddleware
from dedup.scrapy.settings import is_enabled

__all__ = ["Timeline"]

logger = logging.getLogger(__name__)

#: Between two lines: at least so many seconds, and this share of the crawl's age.  A day leads to 1,500 lines of
#: 150 bytes, a year to 2,700.
PAUSE, SHARE = 0.25, 1 / 200


class Timeline:
    """A Scrapy extension: counts of pages and near-duplicates as time goes by."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._run = uuid.uuid4().hex[:12]
        self._path: Path | None = None
        self._writing: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Timeline":
        """Called by Scrapy."""
        if not is_enabled(crawler.settings):
            raise NotConfigured
        timeline = cls(crawler)
        crawler.signals.connect(timeline.spider_opened, signals.spider_opened)
        crawler.signals.connect(timeline.spider_closed, signals.spider_closed)
        return timeline

    def spider_opened(self, spider: Spider) -> None:
        """Writes from now on; a crawl that the filter refuses has nothing to write."""
        with suppress(RuntimeError):  # another reactor than asyncio's: refused by the filter
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def spider_closed(self, spider: Spider) -> None:
        """Writes the last counts."""
        if self._writing is not None:
            self._writing.cancel()
        if self._path is not None:
            self._add(self._counts())

    async def _write(self) -> None:
        judge = self._crawler.get_downloader_middleware(NearDuplicateMiddleware)
        started = time.monotonic()
        while judge is not None:
            if self._path is not None:
                self._add(self._counts())
            elif judge.ready and not judge.log.path.is_file():
                return  # /dev/null and the like have nothing beside them
            elif judge.ready:
                self._path = Path(f"{judge.log.path}{SUFFIX}")
                options, detector = judge.options, judge.options.detector
                self._add(
                    {
                        "method": detector.method,
                        "max_distance": detector.max_distance,
                        "min_resemblance": detector.min_resemblance,
                        "action": options.action,
                    }
                )
            await asyncio.sleep(max(PAUSE, SHARE * (time.monotonic() - started)))

    def _counts(self) -> dict[str, int]:
        get = self._crawler.stats.get_value
        return {"pages": get("dedup/pages", 0), "duplicates": get("dedup/duplicate", 0)}

    def _add(self, values: dict[str, Any]) -> None:
        assert self._path is not None
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            with self._path.open("a") as file:
                file.write(json.dumps({"run": self._run, "time": now} | values) + "\n")
        except OSError as error:
            logger.warning("The course of the crawl can't be written: %s", error)
            self._path = None
            if self._writing is not None:
                self._writing.cancel()
