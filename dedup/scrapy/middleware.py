"""The filter in the downloader: judges each page before any spider sees it.

The law: when not certain, keep.  Nothing here raises into the crawl but `NearDuplicate`; a page is
dropped only with a verdict, and only after its record is in the drop log.
"""

import asyncio
import logging
import os
import time
from contextlib import suppress
from typing import Any

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.spider import DefaultSpider
from twisted.python.failure import Failure

from dedup.droplog.log import DropLog, drop_record
from dedup.errors import DedupError, SettingsError
from dedup.filter.alarm import Alarm
from dedup.filter.audit import Audit
from dedup.filter.claims import Claims
from dedup.filter.doubts import Doubts
from dedup.fingerprint.detector import Fingerprint
from dedup.index import Verdict
from dedup.page.read import read
from dedup.printing import inert
from dedup.scrapy.judgement import FLAG, Judgement, NearDuplicate, remember
from dedup.scrapy.settings import Options, is_enabled, read_settings
from dedup.scrapy.signals import filter_failed, near_duplicate, refuse
from dedup.scrapy.summary import summary

__all__ = ["NearDuplicateMiddleware", "is_seed"]

logger = logging.getLogger(__name__)


class NearDuplicateMiddleware:
    """Judges every page while it is in the downloader; drops, or marks, near-duplicates."""

    options: Options
    log: DropLog
    audit: Audit
    claims: Claims
    doubts: Doubts
    alarm: Alarm

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.ready = False
        self._stopping = False
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "NearDuplicateMiddleware":
        """Called by Scrapy; everything is opened when the spider is."""
        if not is_enabled(crawler.settings):
            raise NotConfigured
        if os.environ.get("SCRAPY_CHECK") or isinstance(crawler.spider, DefaultSpider):
            raise NotConfigured("scrapy check, shell and fetch are not to write to the index")
        middleware = cls(crawler)
        crawler.signals.connect(middleware.spider_opened, signals.spider_opened)
        crawler.signals.connect(middleware.spider_error, signals.spider_error)
        crawler.signals.connect(middleware.spider_idle, signals.spider_idle)
        crawler.signals.connect(middleware.spider_closed, signals.spider_closed)
        return middleware

    async def spider_opened(self, spider: Spider) -> None:
        """Checks the settings, opens index and log; stops the crawl before any page if one can't be."""
        try:
            if not is_asyncio_available():
                raise SettingsError(
                    f"TWISTED_REACTOR is {self.crawler.settings['TWISTED_REACTOR']!r}; the filter needs "
                    "'twisted.internet.asyncioreactor.AsyncioSelectorReactor', Scrapy's default"
                )
            self.options = read_settings(self.crawler.settings)
            self.audit = Audit(self.crawler, self.options.detector, self.options.audit)
            self.log = DropLog(self.options.log, spider.name)
            await self.options.index.open()
            filed = await self.options.index.count()
        except Exception as error:  # noqa: BLE001 (a crawl must not go on unfiltered because of a bug)
            if hasattr(self, "log"):
                self.log.close()
                with suppress(Exception):
                    await self.options.index.close()
            if not isinstance(error, DedupError):
                error = DedupError(f"the filter can't start: {type(error).__name__}: {inert(str(error))}")
            raise refuse(self.crawler, error) from None
        index, stats = self.options.index, self.crawler.stats
        self.claims = Claims(index, self.options.on_index_failure, stats, self._stop, self._closing)
        self.doubts = Doubts(self.crawler, index)
        self.alarm = Alarm(self.options.max_cluster, stats)
        self.ready = True
        logger.info(
            "Near-duplicate filter: action %s, log %s, index %s with %s pages, %s",
            self.options.action,
            self.log.path,
            index.where,
            f"{filed:,}",
            index.describe(),
            extra={"spider": spider},
        )

    async def process_response(self, request: Request, response: Response) -> Response:
        """Passes the page on, or raises `NearDuplicate`."""
        if not self.ready:
            return response
        if why := self._skip(request, response):
            self._count("skipped", why)
            return response
        page_id = self._page_id(request)
        fingerprint, verdict = await self._judge(page_id, response)
        action = ""
        if verdict.status == "duplicate" and self.alarm.rings(response.url, verdict.of or ""):
            verdict = Verdict("unjudged", reason="alarm")
        if verdict.status == "duplicate":
            # A seed is never dropped: everything is reached from it.
            action = "mark" if is_seed(request) else self.options.action
            record = drop_record(request, response, fingerprint, verdict, action)
            try:
                self.log.write(record)
            except OSError as error:
                logger.error("Kept %s: the drop log can't be written: %s", inert(response.url), error)
                verdict = Verdict("unjudged", reason="log")
        self._count("pages")
        self._count(verdict.status, verdict.reason)
        remember(response, Judgement(fingerprint, verdict))
        if verdict.status != "duplicate":
            return response
        if not verdict.done and verdict.of_id and action == "drop":
            self.doubts.add(verdict.of_id, page_id, request)
        return self._act(request, response, record, action)

    def _skip(self, request: Request, response: Response) -> str | None:
        """Why a response is not judged at all: it is no page that a spider is to parse."""
        if request.meta.get("dedup") is False:
            return "opted_out"
        if request.callback is NO_CALLBACK:
            return "no_callback"
        if request.method != "GET":
            return "method"
        if response.status != 200:
            return "status"
        return None if isinstance(response, HtmlResponse) else "type"

    async def _judge(self, page_id: str, response: Response) -> Judgement:
        started = time.perf_counter()
        try:
            fingerprint = self._fingerprint(response)
        except Exception:
            logger.exception("Kept %s: it can't be fingerprinted", inert(response.url))
            fingerprint = Fingerprint.unjudged("internal_error")
        fingerprinted = time.perf_counter()
        verdict = await self.claims.claim(page_id, response.url, fingerprint)
        self._spend("fingerprint", fingerprinted - started)
        self._spend("claim", time.perf_counter() - fingerprinted)
        return Judgement(fingerprint, verdict)

    def _fingerprint(self, response: Response) -> Fingerprint:
        assert isinstance(response, HtmlResponse)
        # "partial" in the flags only says that the server gave no length.
        if {"dataloss", "download_stopped"} & set(response.flags):
            return Fingerprint.unjudged("partial")
        try:
            text = response.text
        except (LookupError, ValueError):  # a charset label that is no character set
            return Fingerprint.unjudged("undecodable")
        detector = self.options.detector
        page = read(text, response.url, detector.keep_urls, lambda _: response.selector.root)
        return detector.fingerprint_page(page)

    def _closing(self) -> bool:
        # Scrapy has no public way to tell that a crawl is about to end.
        slot = getattr(self.crawler.engine, "_slot", None)
        return self._stopping or not self.crawler.crawling or getattr(slot, "closing", None) is not None

    def _stop(self, error: DedupError) -> None:
        if not self._stopping:
            self._stopping = True
            self.crawler.signals.send_catch_log(filter_failed, error=error)
            self._spawn(self.crawler.engine.close_spider_async(reason=error.reason))

    def _act(self, request: Request, response: Response, record: dict[str, Any], action: str) -> Response:
        url, of = record["url"], record["duplicate_of"]
        logger.info(
            "%s near-duplicate %s of %s (distance %d, resemblance %.2f)",
            {"drop": "Dropped", "nofollow": "Not followed:", "mark": "Marked"}[action],
            inert(url),
            inert(of),
            record["distance"],
            record["resemblance"],
            extra={"spider": self.crawler.spider},
        )
        self._count({"drop": "dropped", "nofollow": "not_followed", "mark": "marked"}[action])
        links = "links_marked" if action == "mark" else "links_not_followed"
        self.crawler.stats.inc_value(f"dedup/{links}", record["links"])
        response.flags.append(FLAG)
        self.crawler.signals.send_catch_log(
            near_duplicate, response=response, request=request, record=record, spider=self.crawler.spider
        )
        if action == "drop" and self.audit.picks(url) and isinstance(response, HtmlResponse):
            self._spawn(self.audit.check(inert(url), self.audit.shingles(response), of))
        if action == "drop":
            raise NearDuplicate(url, of, record["distance"], record["resemblance"])
        return response

    def _count(self, name: str, reason: str | None = None) -> None:
        self.crawler.stats.inc_value(f"dedup/{name}")
        if reason is not None:
            self.crawler.stats.inc_value(f"dedup/{name}/{reason}")

    def _spend(self, name: str, seconds: float) -> None:
        stats, key = self.crawler.stats, f"dedup/seconds/{name}"
        stats.set_value(key, stats.get_value(key, 0.0) + seconds)

    def _page_id(self, request: Request) -> str:
        return self.crawler.request_fingerprinter.fingerprint(request).hex()

    async def handed_over(self, request: Request) -> None:
        """The output of a page has reached the engine: its claim is confirmed."""
        page_id = self._page_id(request)
        await self.claims.confirm(page_id)
        self.doubts.settle(page_id, processed=True)

    async def failed(self, request: Request) -> None:
        """The spider failed on a page: its claim is taken back."""
        page_id = self._page_id(request)
        await self.claims.release(page_id)
        self.doubts.settle(page_id, processed=False)

    def spider_error(self, failure: Failure, response: Response | None, spider: Spider) -> None:
        """The spider failed on a page, or (no response) before any."""
        request = getattr(response, "request", None)
        if self.ready and request is not None:
            self._spawn(self.failed(request))

    def spider_idle(self) -> None:
        """Nothing is left to be crawled, it seems."""
        if self.ready:
            self.doubts.spider_idle()

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """Writes what is confirmed; pages that were never processed are released."""
        if not self.ready:
            return
        self.ready = False
        self.audit.close()
        await self.doubts.close()
        # What is left to be crawled is in the JOBDIR, if there is one; else it is lost.
        finished = reason == "finished" or bool(self.crawler.settings.get("JOBDIR"))
        await self.claims.close(finished=finished)
        self.log.close()
        text = summary(self.crawler.stats.get_stats(), str(self.log.path))
        logger.info("Near-duplicate filter: %s", text, extra={"spider": spider})


def is_seed(request: Request) -> bool:
    """Whether a request is a start request, and not one that copied the meta of one."""
    return bool(request.meta.get("is_start_request")) and not request.meta.get("depth")
