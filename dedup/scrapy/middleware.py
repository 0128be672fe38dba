"""The downloader's side of the filter: hands Scrapy's events to it, and each page before any spider sees it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Coroutine
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.exceptions import DontCloseSpider, IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from twisted.python.failure import Failure

from dedup.droplog.record import Record
from dedup.errors import DedupError, SettingsError
from dedup.filter import Filter, Visit
from dedup.filter.stats import count
from dedup.latest import Latest
from dedup.printing import inert
from dedup.scrapy.compat import is_asyncio_available
from dedup.scrapy.component import Component, is_tried_out
from dedup.scrapy.confirm import ConfirmMiddleware
from dedup.scrapy.crawl.crew import crew_of
from dedup.scrapy.crawl.engine import Engine
from dedup.scrapy.crawl.jobs import begin_run, leave_run
from dedup.scrapy.crawl.opening import open_filter
from dedup.scrapy.crawl.revisiting import Revisits, revisits_of
from dedup.scrapy.crawl.slot import Slot
from dedup.scrapy.judgement import FLAG, NearDuplicate, Parked, outcome_of, remember
from dedup.scrapy.log.lines import Lines
from dedup.scrapy.log.summary import LOGGER as SUMMARY
from dedup.scrapy.log.summary import summary
from dedup.scrapy.requests.bounds import Bounds
from dedup.scrapy.requests.callbacks import callback_of
from dedup.scrapy.requests.sending import at_sending, past_cache
from dedup.scrapy.requests.visits import DROPPED, OWN, TAB, found_on, page_id, reason_to_skip, visit
from dedup.scrapy.settings import unheard_shard
from dedup.scrapy.signals import change_found, filter_opened, logger_for, near_duplicate, refuse
from dedup.settings import CrawlSettings

logger = logging.getLogger(__name__)

#: How many dropped pages are remembered that an errback may ask for with a request of its own.
MAX_DROPPED = 10_000
#: Statuses below 500 that ask a crawler to come back later.
LATER = frozenset({408, 425, 429})
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
        self._revisits = Revisits()
        self._kept: dict[Request, str] = {}  # page ids of those that the engine is not yet done with
        self._dropped = Latest[str, None](MAX_DROPPED)  # page ids that an errback was told of
        self._logger = logger_for(crawler, __name__)
        self._spoiled: WeakSet[Response] = WeakSet()  # pages of which an item failed
        self._gave: WeakSet[Response] = WeakSet()  # pages of which an item has left the pipelines
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
            self.filter, options = await open_filter(self.crawler, spider, self._logger)
            assert isinstance(self.filter.crawl, Engine)
            carried = self._carried = self.filter.crawl.carried
            begin_run(self.crawler.settings)
            if self.crawler.engine.spider is None:  # the crawl was stopped meanwhile
                await self.spider_closed(spider, "shutdown")
                return
            self._detector = self.filter.index.detector
            self.settings = options.crawl
            self._lines = Lines(self.crawler, self.settings.show_all)
            self._bounds = Bounds(self.filter.stats)
            hear = self._leave, self.filter.end_doubts, self._take, self._hand_on
            self._scheduled = Slot(self.crawler, *hear)
            if self.crawler.get_downloader_middleware(HttpCacheMiddleware) is not None:
                at_sending(self.crawler, past_cache)
            if self.settings.no_vary_search:
                at_sending(self.crawler, self._send)
            self._revisits = revisits_of(self.crawler)
            self._revisits.begin(self.filter, carried)
        except Exception as error:  # noqa: BLE001 (a crawl must not go on unfiltered because of a bug)
            if not isinstance(error, DedupError):
                error = DedupError(f"the filter can't start: {type(error).__name__}: {inert(str(error))}")
            refuse(self.crawler, error)
            return
        self.crawler.signals.send_catch_log(filter_opened, filter=self.filter, options=options, spider=spider)

    def _take(self, request: Request) -> None:
        self._carried.note(request)
        self._bounds.note(request)

    def _hand_on(self, request: Request, made: Request) -> None:
        self._carried.hand_on(request, made)
        self._bounds.hand_on(request, made)

    async def process_request(self, request: Request) -> None:
        """Raises `NearDuplicate` for a URL that is another one of a kept page's, by the word of its site; `Parked` in a trap."""
        if self.filter is None:
            return
        self._bounds.check(request)
        if not self._may_spare(request):
            return
        # What carries a part of an item leads to no page alone.
        if not self._carried.has_data(request) and self.filter.parks(request.url, found_on(request)):
            raise Parked(inert(request.url), "it leads on in a trap without end")
        if not self.filter.variants:
            return
        record = await self.filter.spare(self._visit(request, Response(request.url)))
        if record is not None:
            self._lines.add(record)
            self._note_drop(request)
            raise _refusal(record)

    async def _send(self, request: Request, send: Callable[[], Awaitable[Response]]) -> Response:
        """Looks once more when it is a request's turn to be sent: meanwhile the kept page may have come."""
        await self.process_request(request)
        return await send()

    def _may_spare(self, request: Request) -> bool:
        """Whether a page goes to a callback that does not insist on it."""
        is_page = request.method == "GET" and request.callback is not NO_CALLBACK
        opted_out = request.meta.get("dedup") is False or request.dont_filter
        return is_page and not opted_out and request in self._scheduled and not self._is_sent_again(request)

    def _visit(self, request: Request, response: Response) -> Visit:
        return visit(
            self.crawler,
            request,
            response,
            detector=self._detector,
            keep_start=self.settings.keep_start,
            keep_text=self.settings.keep_text,
            carried=self._carried.number(request),
        )

    async def process_response(self, request: Request, response: Response) -> Response | Request:
        """Passes the page on, or raises `NearDuplicate`; if it was not sent, and is wanted, it asks for it once more."""
        if self.filter is None:
            return response
        revisits = self._revisits
        known = revisits.unmodified(request, response)
        if known is not None:
            response = known.response
        why = reason_to_skip(request, response, self.settings.types)
        if why is None and request not in self._scheduled:
            why = "inline"
        if why is None and self._is_sent_again(request):
            why = "sent_again"
        if why is not None and known:
            return revisits.whole(request)
        if why is not None:
            count(self.crawler.stats, "skipped", why)
            self._note_asked(request, is_read=response.status < 500 and response.status not in LATER)
            if why == "status":
                self.filter.link_failed(found_on(request))
            return response
        page = self._visit(request, response)
        outcome = await self.filter.judge(page if known is None else known.seen(page))
        if known and not revisits.suffices(request, outcome):
            await self.filter.failed(page.page_id)
            if outcome.record is not None:
                self.filter.take_back(outcome.record)
            return revisits.whole(request)
        remember(response, outcome, self.filter.index)
        if outcome.change is not None:
            self.crawler.signals.send_catch_log(
                change_found, change=outcome.change, response=response, spider=self.crawler.spider
            )
        if (record := outcome.record) is None:
            self._kept[request] = page.page_id
            if self.settings.no_vary_search and (header := response.headers.getlist("No-Vary-Search")):
                self.filter.variants.keep(page, outcome, b",".join(header))
            return response
        self._lines.add(record)
        response.flags.append(FLAG)
        self.crawler.signals.send_catch_log(
            near_duplicate, response=response, request=request, record=record, spider=self.crawler.spider
        )
        outcome = outcome_of(response) or outcome  # `LinksMiddleware` may have had it lead on
        if outcome.action == "drop" and not outcome.leads_on:
            self._note_drop(request)
            self._close_tab(request)
            raise _refusal(record)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """A page can't be had, unless it was not wanted."""
        if self.filter is not None and not isinstance(exception, IgnoreRequest):
            self.filter.link_failed(found_on(request))
            self._note_asked(request, is_read=False)

    def _note_asked(self, request: Request, *, is_read: bool) -> None:
        if self.filter is not None and OWN not in request.meta:
            is_read = is_read or request.callback is NO_CALLBACK  # no links are followed from it
            for url in {request.url, *request.meta.get("redirect_urls", ())}:
                self.filter.note_asked(url, is_read=is_read)

    def _leave(self, request: Request) -> None:
        """The engine is done with a request, and with its items: what was not handed over by now never will be."""
        page_id = self._kept.pop(request, None)
        if page_id is None or self.filter is None or page_id in self._kept.values():
            return  # a request that was sent again is on its way with the same page
        output = self.crawler.get_spider_middleware(ConfirmMiddleware)
        is_handed_over = output is not None and output.take(page_id)
        if self.filter.is_open(page_id):
            if is_handed_over:
                self._revisits.keep(request)
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
            self._note_asked(request, is_read=False)
            self._do(self.filter.failed(page_id(self.crawler, request)))

    def item_scraped(self, response: Response | None, spider: Spider) -> None:
        """An item of a page has left the pipelines."""
        outcome = outcome_of(response) if response is not None and response not in self._gave else None
        if self.filter is None or response is None or response.request is None or outcome is None:
            return
        self._gave.add(response)
        request = response.request
        self.filter.gave(page_id(self.crawler, request), callback_of(request)[0], outcome.verdict)

    def item_error(self, response: Response | None, spider: Spider) -> None:
        """A pipeline failed on an item of a page."""
        outcome = outcome_of(response) if isinstance(response, Response) else None
        if self.filter is None or response is None or response.request is None or outcome is None:
            return
        if outcome.verdict.status != "duplicate" and response not in self._spoiled:
            self._spoiled.add(response)
            self._do(self.filter.item_failed(page_id(self.crawler, response.request)))

    def spider_idle(self) -> None:
        """Nothing is left to be crawled, it seems."""
        if self.filter is not None and (self.filter.is_busy() or self.filter.looks_for_missing()):
            raise DontCloseSpider

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """Writes what is confirmed; pages that were never processed are released."""
        filter, self.filter = self.filter, None
        if filter is not None:
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=PATIENCE)
            # What is left to be crawled is in the JOBDIR, or in Redis; else it is lost.
            is_left = bool(self.crawler.settings.get("JOBDIR")) or crew_of(self.crawler).leaves_rest
            await filter.close(finished=reason == "finished" or is_left)
            leave_run(self.crawler.settings, filter.index.run)
            self._carried.close()
            text = summary(self.crawler.stats.get_stats(), str(filter.log.path or ""))
            logger_for(self.crawler, SUMMARY).info("Near-duplicate filter: %s", text)


def _refusal(record: Record) -> NearDuplicate:
    return NearDuplicate(record["url"], record["duplicate_of"], record["distance"], record["resemblance"])


async def _close(page: Any) -> None:
    with suppress(Exception):  # the browser may be gone
        await page.close()
