"""What Scrapy's engine tells nobody: whence a request came, when it is done with, and when a crawl is about to end."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)


def is_closing(crawler: Crawler) -> bool:
    """Whether a crawl is about to end."""
    slot = getattr(crawler.engine, "_slot", None)
    return not crawler.crawling or getattr(slot, "closing", None) is not None


class Slot:
    """Listens in on the engine's slot and its scheduler; the requests in it are those that the scheduler gave.

    Those have a callback to go to.  Inline requests, as in ``await self.crawler.engine.download_async(request)``, have
    none, and no other sign of a request is sound: neither its callback nor its meta tells where its response goes, the
    signal ``request_scheduled`` has the request that went in, which a queue on disk gives back as another object,
    and some schedulers make requests themselves.
    """

    def __init__(
        self,
        crawler: Crawler,
        left: Callable[[Request], None] = lambda _: None,
        closing: Callable[[], None] = lambda: None,
        taken: Callable[[Request], None] = lambda _: None,
        replaced: Callable[[Request, Request], None] = lambda _, __: None,
    ) -> None:
        """The spider is open: there is a scheduler, and no request has left it.

        ``left`` is called with every request that the engine is done with: it has been handed over to the spider, and
        so has the spider's output to the crawl, or it never will be.  ``closing`` is called when all requests are done
        with, and the scheduler is about to be closed: what is scheduled then is what a queue on disk still gets.
        ``taken`` is called with every request that leaves the scheduler, before any downloader middleware gets it, and
        ``replaced`` with such a request and the one that a downloader middleware returns for it: a redirect, a retry.
        """
        self._requests: WeakSet[Request] = WeakSet()
        slot: Any = crawler.engine._slot
        scheduler = slot.scheduler
        downloader: Any = crawler.engine.downloader
        self._taken, self._replaced = taken, replaced
        slot.remove_request = partial(_before, left, slot.remove_request)
        downloader.fetch = partial(self._fetch, downloader.fetch)
        scheduler.next_request = partial(self._note, scheduler.next_request)
        if hasattr(scheduler, "close"):
            scheduler.close = partial(_before, lambda _: closing(), scheduler.close)

    def _note(self, next_request: Callable[[], Request | None]) -> Request | None:
        if (request := next_request()) is not None:
            self._requests.add(request)
            _tell(self._taken, request)
        return request

    def _fetch(self, fetch: Callable[..., Any], request: Request, *spider: Any) -> Any:
        fetched = fetch(request, *spider)
        if isinstance(fetched, Deferred) and request in self:
            fetched.addCallback(partial(self._note_other, request))
        return fetched

    def _note_other(self, request: Request, result: Any) -> Any:
        if isinstance(result, Request):
            _tell(self._replaced, request, result)
        return result

    def __contains__(self, request: object) -> bool:
        return request in self._requests


def _before(listener: Callable[[Any], None], method: Callable[[Any], Any], argument: Any) -> Any:
    """Calls a method of one argument, and a listener before it."""
    _tell(listener, argument)
    return method(argument)


def _tell(listener: Callable[..., None], *arguments: Any) -> None:
    try:
        listener(*arguments)
    except Exception:
        logger.exception("An error in the filter; the engine goes on without it")
