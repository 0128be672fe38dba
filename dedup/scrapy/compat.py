"""What differs between the versions of Scrapy, from 2.13 on: all of it is here, and goes when they go.

* Before 2.14, requests are sent by another method (`dedup.scrapy.requests.sending`), middleware methods are called with ``spider``, and there are no `scrapy.utils.asyncio`, no
  ``AsyncCrawlerProcess``, ``get_spider_loader`` and no coroutines of the engine.
* Before 2.18, a handler of ``spider_opened`` can't stop a crawl by raising `CloseSpider`, which is only logged.
"""

import inspect
from collections.abc import AsyncIterator, Callable
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

import scrapy
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

_T = TypeVar("_T")

VERSION = scrapy.version_info[:2]
#: Seconds between two looks whether a crawl that is to be stopped has begun.
PAUSE = 0.01


def is_asyncio_available() -> bool:
    """Returns whether a crawl runs on asyncio."""
    if VERSION >= (2, 14):
        from scrapy.utils.asyncio import is_asyncio_available as available
    else:
        from scrapy.utils.reactor import is_asyncio_reactor_installed as available
    return available()


def accept_spider(component: type[_T]) -> type[_T]:
    """Lets the methods of a middleware be called as the installed Scrapy calls them; returns the middleware."""
    if VERSION < (2, 14):
        for name, method in list(vars(component).items()):
            if name.startswith("process_") and "spider" not in inspect.signature(method).parameters:
                setattr(component, name, _accepting(method))
    return component


def _accepting(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the method with an additional argument ``spider``, which it ignores."""
    if inspect.isasyncgenfunction(method):  # Scrapy looks whether it is one

        @wraps(method)
        async def generate(*args: Any, spider: object = None, **kwargs: Any) -> AsyncIterator[Any]:
            async for output in method(*args, **kwargs):
                yield output

        return generate

    @wraps(method)
    def call(*args: Any, spider: object = None, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return call


def crawler_process(settings: Settings) -> Any:
    """Returns a process that runs spiders one after the other, on asyncio."""
    import scrapy.crawler

    kind = "AsyncCrawlerProcess" if VERSION >= (2, 14) else "CrawlerProcess"
    return getattr(scrapy.crawler, kind)(settings)


def spider_loader(settings: Settings) -> Any:
    """Returns the loader that knows the spiders of a project."""
    return load_object(settings["SPIDER_LOADER_CLASS"]).from_settings(settings.frozencopy())


async def download(crawler: Crawler, request: Request) -> Response:
    """Returns the response to a request, past the scheduler, the spider, and what counts the pages of a crawl.

    The engine's own method sends ``response_received``, by which Scrapy and monitors count them.
    """
    from scrapy.utils.defer import maybe_deferred_to_future

    engine: Any = crawler.engine
    spider = [crawler.spider] if getattr(engine, "_downloader_fetch_needs_spider", VERSION < (2, 14)) else []
    engine._slot.add_request(request)
    try:
        found: Response | Request = request
        while isinstance(found, Request):
            asked, found = found, await maybe_deferred_to_future(engine.downloader.fetch(found, *spider))
        found.request = found.request or asked
        return found
    finally:
        engine._slot.remove_request(request)
        engine._slot.nextcall.schedule()


async def close(crawler: Crawler, reason: str) -> None:
    """Closes the spider."""
    if VERSION >= (2, 14):
        await crawler.engine.close_spider_async(reason=reason)
    else:
        from scrapy.utils.defer import maybe_deferred_to_future

        engine: Any = crawler.engine
        await maybe_deferred_to_future(engine.close_spider(crawler.spider, reason))


def stop_at_start(crawler: Crawler, reason: str) -> None:
    """Ends a crawl before its first page: the last thing that a handler of ``spider_opened`` does.

    It raises `CloseSpider` where Scrapy heeds that.
    """
    if VERSION >= (2, 18):
        raise CloseSpider(reason) from None
    reactor: Any = import_module("twisted.internet.reactor")
    engine: Any = crawler.engine
    engine.pause()  # nothing is fetched, and the spider can be closed as soon as the crawl has begun

    def close_when_it_runs() -> None:
        if engine.running:
            engine.close_spider(crawler.spider, reason)
        else:
            reactor.callLater(PAUSE, close_when_it_runs)

    close_when_it_runs()
