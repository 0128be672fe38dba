"""The downloader's side of the filter: hands Scrapy's events to it, and each page before any spider sees it."""

import asyncio
import logging
import sqlite3
from collections.abc import Container, Coroutine
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider, IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.settings import BaseSettings
from twisted.python.failure import Failure

from dedup.compiled import fast
from dedup.droplog.log import DropLog
from dedup.errors import DedupError, IndexInUseError, SettingsError
from dedup.filter import Filter
from dedup.filter.stats import count
from dedup.history.file import History
from dedup.history.texts import SUFFIX
from dedup.latest import Latest
from dedup.printing import inert
from dedup.scrapy.carried import Carried
from dedup.scrapy.compat import is_asyncio_available
from dedup.scrapy.component import Component, is_tried_out
from dedup.scrapy.confirm import ConfirmMiddleware
from dedup.scrapy.engine import Engine
from dedup.scrapy.jobs import begin_run, leave_run, left_run, new_run
from dedup.scrapy.judgement import FLAG, NearDuplicate, outcome_of, remember
from dedup.scrapy.lines import Lines
from dedup.scrapy.settings import (
    Options,
    check_for_crawl,
    in_memory,
    is_sharded,
    read_settings,
    spelled,
    unheard_shard,
)
from dedup.scrapy.signals import change_found, filter_opened, logger_for, near_duplicate, refuse
from dedup.scrapy.slot import Slot
from dedup.scrapy.summary import summary
from dedup.scrapy.visits import DROPPED, TAB, found_on, page_id, reason_to_skip, visit
from dedup.settings import CrawlSettings

__all__ = ["NearDuplicateMiddleware"]

logger = logging.getLogger(__name__)

#: How many dropped pages are remembered that an errback may ask for with a request of its own.
MAX_DROPPED = 10_000
#: Seconds for which the end of a crawl waits for what it has to say of its last pages.
PATIENCE = 10.0


class NearDuplicateMiddleware(Component):
    """Drops, or marks, near-duplicates in the downloader.  Nothing but `NearDuplicate` is raised into the crawl."""

    def __init__(self, crawler: Crawler) -> None:
        """Everything is opened when the spider is."""
        if is_tried_out(crawler.spider):
            raise NotConfigured("scrapy check, shell, fetch and parse must not write to the index")
        super().__init__(crawler)
        self.filter: Filter | None = None  # while the spider is open
        self.settings = CrawlSettings()
        self._scheduled: Container[Request] = ()
        self._kept: dict[Request, str] = {}  # page ids of those that the engine is not yet done with
        self._dropped = Latest[str, None](MAX_DROPPED)  # page ids that an errback was told of
        self._logger = logger_for(crawler, __name__)
        self._spoiled: WeakSet[Response] = WeakSet()  # pages of which an item failed
        self._tasks: set[asyncio.Task[None]] = set()  # else they might be collected while running

    async def spider_opened(self, spider: Spider) -> None:
        """Opens index and log, and makes the filter; stops the crawl before any page if that fails."""
        try:
            if not is_asyncio_available():
                raise SettingsError(
                    f"TWISTED_REACTOR is {self.crawler.settings['TWISTED_REACTOR']!r}; the filter needs "
                    "'twisted.internet.asyncioreactor.AsyncioSelectorReactor', Scrapy's default"
                )
            if unheard := unheard_shard(spider, self.crawler.settings):
                self._logger.warning("%s", unheard)
            self.filter, options = await self._start(spider)
            begin_run(self.crawler.settings)
            self.settings = options.crawl
            self._lines = Lines(self.crawler, self.settings.show_all)
            carried = self._carried = Carried(self.filter.stats, self.settings.ignore_carried)
            hear = self._leave, self.filter.end_doubts, carried.note, carried.hand_on
            self._scheduled = Slot(self.crawler, *hear)
        except Exception as error:  # noqa: BLE001 (a crawl must not go on unfiltered because of a bug)
            if not isinstance(error, DedupError):
                error = DedupError(f"the filter can't start: {type(error).__name__}: {inert(str(error))}")
            refuse(self.crawler, error)
            return
        self.crawler.signals.send_catch_log(filter_opened, filter=self.filter, options=options, spider=spider)

    async def _start(self, spider: Spider) -> tuple[Filter, Options]:
        settings: BaseSettings = self.crawler.settings
        crawl = await self._crawl_of_workers() if is_sharded(settings) else ""
        run = left_run(settings) or new_run(crawl)
        options = read_settings(settings, spider.name, run)
        check_for_crawl(options)
        try:
            return await self._open(options, DropLog(options.crawl.log, spider.name)), options
        except IndexInUseError as error:
            other = in_memory(settings)
            if other is None:
                raise
            self._logger.warning(
                "%s. Until then, this crawl judges its pages by an index in memory, and files nothing",
                spelled(error),
            )
            options = read_settings(other, spider.name)
            return await self._open(options, DropLog(options.crawl.log, spider.name)), options

    async def _crawl_of_workers(self) -> str:
        from dedup.scrapy.workers.shards import ShardMiddleware  # not above: it brings Redis

        shards = self.crawler.get_downloader_middleware(ShardMiddleware)
        return await shards.crawl_name() if shards else ""

    async def _open(self, options: Options, log: DropLog) -> Filter:
        index = options.index
        try:
            await index.open()
            filed = await index.count()
        except BaseException:
            log.close()
            with suppress(Exception):
                await index.close()
            raise
        how = "compiled" if fast else "in Python"
        facts = options.filter.action, log.path or "none", index.where, f"{filed:,}", index.describe(), how
        self._logger.info("Near-duplicate filter: action %s, log %s, index %s with %s pages, %s, %s", *facts)
        crawl = Engine(self.crawler, index.detector, options.crawl.types)
        history = _history(options, log, index.run)
        return Filter(
            index, log, stats=self.crawler.stats, crawl=crawl, history=history, **vars(options.filter)
        )

    async def process_response(self, request: Request, response: Response) -> Response:
        """Passes the page on, or raises `NearDuplicate`."""
        if self.filter is None:
            return response
        why = reason_to_skip(request, response, self.settings.types)
        if why is None and request not in self._scheduled:
            why = "inline"
        if why is None and self._is_sent_again(request):
            why = "sent_again"
        if why is not None:
            count(self.crawler.stats, "skipped", why)
            if why == "status":
                self.filter.link_failed(found_on(request))
            return response
        detector = self.filter.index.detector
        page = visit(
            self.crawler,
            request,
            response,
            detector=detector,
            keep_start=self.settings.keep_start,
            keep_text=self.settings.keep_text,
            carried=self._carried.number(request),
        )
        outcome = await self.filter.judge(page)
        remember(response, outcome, self.filter.index)
        if outcome.change is not None:
            self.crawler.signals.send_catch_log(
                change_found, change=outcome.change, response=response, spider=self.crawler.spider
            )
        if (record := outcome.record) is None:
            self._kept[request] = page.page_id
            return response
        found = record["url"], record["duplicate_of"], record["distance"], record["resemblance"]
        self._lines.add(record)
        response.flags.append(FLAG)
        self.crawler.signals.send_catch_log(
            near_duplicate, response=response, request=request, record=record, spider=self.crawler.spider
        )
        outcome = outcome_of(response) or outcome  # `LinksMiddleware` may have had it lead on
        if outcome.action == "drop" and not outcome.leads_on:
            self._note_drop(request)
            self._close_tab(request)
            raise NearDuplicate(*found)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """A page can't be had, unless it was not wanted."""
        if self.filter is not None and not isinstance(exception, IgnoreRequest):
            self.filter.link_failed(found_on(request))

    def _leave(self, request: Request) -> None:
        """The engine is done with a request, and with its items: what was not handed over by now never will be."""
        page_id = self._kept.pop(request, None)
        if page_id is None or self.filter is None or page_id in self._kept.values():
            return  # a request that was sent again is on its way with the same page
        output = self.crawler.get_spider_middleware(ConfirmMiddleware)
        is_handed_over = output is not None and output.take(page_id)
        if self.filter.is_open(page_id):
            self._do(self.filter.handed_over(page_id) if is_handed_over else self.filter.failed(page_id))

    def _note_drop(self, request: Request) -> None:
        dropped = page_id(self.crawler, request)
        request.meta[DROPPED] = dropped
        if request.errback is not None:
            self._dropped[dropped] = None

    def _close_tab(self, request: Request) -> None:
        """Closes the page of scrapy-playwright, which no callback will: open ones count until the browser has enough."""
        if hasattr(page := request.meta.get(TAB), "close"):
            self._do(_close(page))

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _is_sent_again(self, request: Request) -> bool:
        """Whether the page was dropped before, and the errback insists on it: else that might go on for ever."""
        if not self._dropped:
            return False
        asked = page_id(self.crawler, request)
        is_new = "depth" not in request.meta  # no callback has yielded it
        return request.meta.get(DROPPED) == asked or (is_new and asked in self._dropped)

    def spider_error(self, failure: Failure, response: Response | None, spider: Spider) -> None:
        """The spider failed on a page, or (no response) before any."""
        request = getattr(response, "request", None)
        if self.filter is not None and request is not None:
            self._do(self.filter.failed(page_id(self.crawler, request)))

    def item_error(self, response: Response | None, spider: Spider) -> None:
        """A pipeline failed on an item of a page."""
        outcome = outcome_of(response) if isinstance(response, Response) else None
        if self.filter is None or response is None or response.request is None or outcome is None:
            return
        if outcome.verdict.status in {"new", "same"} and response not in self._spoiled:
            self._spoiled.add(response)
            self._do(self.filter.item_failed(page_id(self.crawler, response.request)))

    def spider_idle(self) -> None:
        """Nothing is left to be crawled, it seems."""
        if self.filter is not None and self.filter.is_busy():
            raise DontCloseSpider

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """Writes what is confirmed; pages that were never processed are released."""
        filter, self.filter = self.filter, None
        if filter is not None:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=PATIENCE)
            # What is left to be crawled is in the JOBDIR, if there is one; else it is lost.
            await filter.close(finished=reason == "finished" or bool(self.crawler.settings.get("JOBDIR")))
            leave_run(self.crawler.settings, filter.index.run)
            self._carried.close()
            text = summary(self.crawler.stats.get_stats(), str(filter.log.path or ""))
            self._logger.info("Near-duplicate filter: %s", text)


def _history(options: Options, log: DropLog, run: str) -> History | None:
    """The history of the site; None if none is kept, or if it can't be opened."""
    path = options.history or log.beside(SUFFIX)
    if path is None or not (options.crawl.keep_text or options.filter.incremental is True):
        return None
    try:
        history = History(path)
        history.begin(run)
    except (sqlite3.Error, OSError) as error:
        logger.warning("Texts of pages are not kept: %s can't be used: %s", path, error)
        return None
    return history


async def _close(page: Any) -> None:
    with suppress(Exception):  # the browser may be gone
        await page.close()
