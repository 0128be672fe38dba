"""Where a request is really sent: behind Scrapy's queues of hosts and their delays, and behind all middlewares.

What is asked before those may have changed a quarter of an hour later, when the request comes to its turn.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NoReturn

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from dedup.scrapy.compat import VERSION
from dedup.scrapy.requests.visits import OWN

#: Gets a request, and what sends it.
Around = Callable[[Request, Callable[[], Awaitable[Response]]], Awaitable[Response]]


def at_sending(crawler: Crawler, around: Around) -> None:
    """Has each request go through ``around`` when it is its turn to be sent; the spider is open."""
    handlers: Any = crawler.engine.downloader.handlers
    if VERSION >= (2, 14):
        send = handlers.download_request_async

        async def download(request: Request) -> Response:
            return await around(request, partial(send, request))

        handlers.download_request_async = download
        return
    from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

    old = handlers.download_request

    def download_request(request: Request, spider: object) -> Any:
        return deferred_from_coro(around(request, lambda: maybe_deferred_to_future(old(request, spider))))

    handlers.download_request = download_request


async def past_cache(request: Request, send: Callable[[], Awaitable[Response]]) -> Response:
    """Sends a request; the answer to one of the filter's own does not get into the cache of the crawl."""
    if OWN in request.meta:
        request.meta["dont_cache"] = True
    return await send()


def give_back(crawler: Crawler, request: Request, why: str) -> NoReturn:
    """Puts a request that can't be sent now into the queue of a crawl that is about to end, for its job to go on with.

    Raises `IgnoreRequest`.
    """
    slot: Any = crawler.engine._slot
    slot.scheduler.enqueue_request(request.replace(dont_filter=True))
    raise IgnoreRequest(why)
