"""DEDUP_KEEP_TEXT: stores the tokens of pages beside the drop log, for `scrapy duplicates --html`."""

import logging
import sqlite3
from pathlib import Path
from typing import Any

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Response

from dedup.droplog.texts import SUFFIX, Texts
from dedup.page.read import read
from dedup.page.urls import strip_user
from dedup.scrapy.judgement import judgement
from dedup.scrapy.middleware import NearDuplicateMiddleware
from dedup.scrapy.settings import is_enabled
from dedup.scrapy.signals import near_duplicate

__all__ = ["KeepText"]

logger = logging.getLogger(__name__)


class KeepText:
    """A Scrapy extension: stores every kept page, since any may yet have a near-duplicate, and every dropped one."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._texts: Texts | None = None
        self._failed = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "KeepText":
        """Called by Scrapy."""
        if not is_enabled(crawler.settings):
            raise NotConfigured
        keeper = cls(crawler)
        crawler.signals.connect(keeper.response_received, signals.response_received)
        crawler.signals.connect(keeper.near_duplicate, near_duplicate)
        crawler.signals.connect(keeper.spider_closed, signals.spider_closed)
        return keeper

    def response_received(self, response: Response) -> None:
        """A page reaches the spider: it is kept, or only marked."""
        judged = judgement(response)
        # What an index out of reach has not seen may be filed later.
        if judged and (judged.verdict.status in {"new", "same"} or judged.verdict.reason == "index"):
            self._store(response, strip_user(response.url), judged.fingerprint.hex or "")

    def near_duplicate(self, response: Response, record: dict[str, Any]) -> None:
        """A page is a near-duplicate, and its record is in the log."""
        of = record["duplicate_of"], record["duplicate_of_simhash"]
        self._store(response, record["url"], record["simhash"], of)

    def _store(self, response: Response, url: str, simhash: str, of: tuple[str, str] | None = None) -> None:
        judge = self._crawler.get_downloader_middleware(NearDuplicateMiddleware)
        if self._failed or judge is None or not judge.ready or not judge.options.keep_text:
            return
        if not judge.log.path.is_file():
            return  # /dev/null and the like have nothing beside them
        assert isinstance(response, HtmlResponse)
        keep_urls = judge.options.detector.keep_urls
        tokens = read(response.text, response.url, keep_urls, lambda _: response.selector.root).tokens
        try:
            if self._texts is None:
                self._texts = Texts(Path(f"{judge.log.path}{SUFFIX}"))
            self._texts.add(url, simhash, tokens, of)
        except sqlite3.Error as error:
            self._fail(error)

    def _fail(self, error: sqlite3.Error) -> None:
        self._failed = True
        logger.warning("Texts of pages are not kept any more: %s", error)

    def spider_closed(self, spider: Spider) -> None:
        """Writes what is left."""
        if self._texts is not None:
            try:
                self._texts.close()
            except sqlite3.Error as error:
                self._fail(error)
