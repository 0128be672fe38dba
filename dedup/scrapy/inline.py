"""Inline requests, as in ``response = await self.crawler.engine.download_async(request)``: how they are told."""

from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler

__all__ = ["Scheduled"]


class Scheduled:
    """Knows the requests that came out of a crawl's scheduler, and so have a callback to go to.

    No other sign of a request is sound: neither its callback nor its meta tells where its response goes, the
    signal ``request_scheduled`` has the request that went in, which a queue on disk gives back as another object,
    and some schedulers make requests themselves.
    """

    def __init__(self, crawler: Crawler) -> None:
        """The spider is open: there is a scheduler, and no request has left it."""
        self._requests: WeakSet[Request] = WeakSet()
        slot = crawler.engine._slot
        assert slot is not None
        next_request = slot.scheduler.next_request

        def noting() -> Request | None:
            if (request := next_request()) is not None:
                self._requests.add(request)
            return request

        slot.scheduler.next_request = noting  # type: ignore[method-assign]

    def __contains__(self, request: object) -> bool:
        return request in self._requests
