"""Revisits: an incremental crawl asks for a page only if it has changed since the server last sent it.

If the server says "not modified", the page is judged by its stored words, and the links that were followed from it are
followed again; no callback runs.  In any doubt the page is fetched whole, once more if need be.  A page is asked for
conditionally at most once in a crawl, and only if a crawl that ended well has handed it over, items and all.
"""

import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcache import HttpCacheMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK

from dedup.contrib.changes.conditions import (
    Terms,
    conditions,
    digest_of,
    is_conditional,
    is_of,
    maker_of,
    said,
)
from dedup.contrib.changes.contents import content_digest
from dedup.contrib.changes.holding import Revisit, pack_link, pack_links, revisit
from dedup.contrib.changes.listener import Changes
from dedup.contrib.changes.validators import Held
from dedup.filter import Filter, Outcome
from dedup.filter.stats import count
from dedup.latest import PAGES, Latest
from dedup.printing import inert
from dedup.scrapy.component import Component
from dedup.scrapy.crawl.revisiting import Revisits
from dedup.scrapy.crawl.slot import Slot
from dedup.scrapy.judgement import hide, outcome_of
from dedup.scrapy.requests.bounds import bound
from dedup.scrapy.requests.carried import Carried
from dedup.scrapy.requests.packing import Packing
from dedup.scrapy.requests.sending import at_sending
from dedup.scrapy.requests.visits import asked, page_id
from dedup.scrapy.settings import may_revisit, read_group
from dedup.settings import LinkSettings
from dedup.texts.texts import name_of

logger = logging.getLogger(__name__)
_T = TypeVar("_T")


class _Download(NamedTuple):
    """A page that was sent."""

    said: Terms | None
    asked: int | None  #: a digest of the headers and data with which it was asked for
    size: int


class RevisitMiddleware(Component, Revisits):
    """Sends conditional requests; as a spider middleware, it notes the requests that callbacks make of pages."""

    def __init__(self, crawler: Crawler) -> None:
        """Everything is opened when the spider is."""
        if not may_revisit(crawler.settings):
            raise NotConfigured
        super().__init__(crawler)
        self._asked = Latest[str, None](PAGES)  # page ids that were asked for conditionally
        self._whole = WeakKeyDictionary[Request, _Download]()
        self._held = WeakKeyDictionary[Request, Held | None]()  # what is to be held of these
        self._unmodified = WeakKeyDictionary[Request, Revisit]()

    def begin(self, filter: Filter, carried: Carried) -> None:
        """The spider is open, and so is the filter."""
        crawler, spider = self.crawler, self.crawler.spider
        assert isinstance(spider, Spider)
        maker = maker_of(spider)
        is_cached = crawler.get_downloader_middleware(HttpCacheMiddleware) is not None
        # The links of a near-duplicate are read from the page itself.
        is_harvested = read_group(crawler.settings, LinkSettings).follow != "never"
        if not isinstance(filter.listener, Changes) or maker is None or is_cached or is_harvested:
            return
        self._filter, self._history = filter, filter.listener.history
        self._carried, self._maker = carried, maker
        self._packing = Packing(spider)
        handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
        # A browser or a service asks for more than the page.
        self._plain = {name for name in ("http", "https") if _is_scrapys(handlers.get(name))}
        self._scheduled = Slot(crawler, self._left)
        at_sending(crawler, self._send)

    # --- The downloader's side

    async def _send(self, request: Request, send: Callable[[], Awaitable[Response]]) -> Response:
        if not self._is_page(request):
            return await send()
        held, added = None, dict[str, str]()
        try:
            if (held := self._find(request)) is not None:
                added = conditions(held)
        except sqlite3.Error as error:
            logger.debug("Fetched whole: %s: %s", inert(request.url), error)
        request.headers.update(added)
        try:
            response = await send()
        finally:
            for name in added:  # else they might be copied to other requests
                del request.headers[name]
        if held is not None and response.status == 304:
            if is_of(response, held) and (revisit := self._revisit(request, response, held)):
                self._unmodified[request] = revisit
                headers = {name: value for name, value in response.headers.items() if name[:8] != b"Content-"}
                return response.replace(headers=headers, body=b"")
            response = await send()
        if response.status == 200:
            told = said(response)
            asked = told and self._digest(request, told.vary)
            self._whole[request] = _Download(told, asked, len(response.body))
        return response

    def _is_page(self, request: Request) -> bool:
        return (
            request in self._scheduled
            and request.method == "GET"
            and not request.body
            and request.url.partition(":")[0] in self._plain
            and asked(request) is None
            and request.callback is not NO_CALLBACK
            and not is_conditional(request)
        )

    def _digest(self, request: Request, vary: str) -> int | None:
        return digest_of(request, vary, self._maker, self._carried.number(request))

    def _find(self, request: Request) -> Held | None:
        """Returns what is held of a page, if a crawl that ended well has handed it over, and had asked for it alike."""
        own = page_id(self.crawler, request)
        held = None if own in self._asked else self._history.held(request.url)
        if held is None or held.page_id != own or held.asked != self._digest(request, held.vary):
            return None
        last = self._history.last(name_of(request.url))
        if last is None or not (last.is_here and last.is_handed and last.digest == held.digest):
            return None
        self._asked[own] = None
        return held

    def _revisit(self, request: Request, response: Response, held: Held) -> Revisit | None:
        """Returns a page that was not sent, from what is stored of it; None if that is too little."""
        try:
            last = self._history.last(name_of(request.url))
            text = None if last is None else self._history.texts.read(last.text)
            return None if text is None else revisit(self._packing, request, response, held, text)
        except (sqlite3.Error, ValueError) as error:
            logger.debug("Fetched whole: %s: %s", inert(request.url), error)
            return None

    def unmodified(self, request: Request, response: Response) -> Revisit | None:
        """Returns the page for which a response stands."""
        return self._unmodified.get(request) if response.status == 304 else None

    def whole(self, request: Request) -> Request:
        """Returns the request that fetches such a page whole."""
        self._unmodified.pop(request)
        return bound(request.replace(dont_filter=True))

    def suffices(self, request: Request, outcome: Outcome) -> bool:
        """Returns whether such a page need not be sent: it is dropped, or nothing but its links are wanted."""
        if outcome.unchanged:
            count(self._filter.stats, "not_modified")
            self._filter.stats.inc_value("dedup/not_modified_bytes", self._unmodified[request].size)
            return True
        if is_dropped := outcome.action == "drop" and not outcome.leads_on:
            self._unmodified.pop(request)
        return is_dropped

    def _left(self, request: Request) -> None:
        """The engine is done with a request.  If something has refused the response that stood for its page, the page is fetched whole."""
        revisit = self._unmodified.pop(request, None)
        if revisit is not None and not revisit.is_followed:
            self._filter.crawl.fetch_again(request)

    # --- The spider's side

    async def process_spider_output(self, response: Response, result: AsyncIterator[_T]) -> AsyncIterator[_T]:
        """Passes the output on, and notes its requests."""
        request = response.request
        whole = None if request is None else self._whole.pop(request, None)
        links: list[bytes] | None = [] if whole and whole.said and whole.asked is not None else None
        async for output in result:
            if links is not None and isinstance(output, Request):
                hide(output)
                if (link := pack_link(self._packing, output)) is None:
                    links = None
                else:
                    links.append(link)
            yield output
        if whole is not None and request is not None:
            self._held[request] = None if links is None else self._hold(request, response, whole, links)

    def _hold(
        self, request: Request, response: Response, whole: _Download, links: list[bytes]
    ) -> Held | None:
        outcome, packed = outcome_of(response), pack_links(links)
        if outcome is None or outcome.page is None or packed is None:
            return None
        assert whole.said is not None
        assert whole.asked is not None
        return Held(
            page_id(self.crawler, request),
            *whole.said,
            whole.asked,
            content_digest(outcome.page),
            whole.size,
            " ".join(outcome.page.heading),
            packed,
        )

    def keep(self, request: Request) -> None:
        """A page was handed over, items and all."""
        if request in self._held:
            with suppress(sqlite3.Error):  # it is fetched whole next time
                self._history.hold(request.url, self._held.pop(request))


def _is_scrapys(handler: Any) -> bool:
    path = handler if isinstance(handler, str) else getattr(handler, "__module__", "")
    return path.startswith("scrapy.")
