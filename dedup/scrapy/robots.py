"""Scrapy's middleware for robots.txt, without a fault that it has from version 2.14 on.

While a host's robots.txt is on its way, all requests to that host wait for one Deferred, of which only the first of
them gets the answer: the others get None, which allows everything.  docs/spiders.md has more.
"""

from collections import defaultdict

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares import robotstxt
from scrapy.settings import BaseSettings
from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object
from twisted.internet.defer import DeferredLock

from dedup.scrapy.compat import VERSION


class RobotsTxtMiddleware(robotstxt.RobotsTxtMiddleware):
    """One request to a host at a time asks what is allowed, so that no two wait for the same answer."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._asking: defaultdict[str, DeferredLock] = defaultdict(DeferredLock)

    if VERSION >= (2, 14):  # what is before that is right

        async def process_request(self, request: Request) -> None:  # type: ignore[override]
            """Raises `IgnoreRequest` if the robots.txt of the host forbids the URL."""
            # It may be for the robots.txt that the others wait for.
            if request.meta.get("dont_obey_robotstxt"):
                return
            lock = self._asking[urlparse_cached(request).netloc]
            await maybe_deferred_to_future(lock.acquire())
            try:
                await super().process_request(request)
            finally:
                lock.release()


def replace(settings: BaseSettings) -> None:
    """Puts the middleware into the place of Scrapy's own, unless a project has put another there."""
    name, old = "DOWNLOADER_MIDDLEWARES", robotstxt.RobotsTxtMiddleware
    own = settings.getdict(name)
    orders = [order for path, order in own.items() if load_object(path) is old]
    base = settings.getdict(f"{name}_BASE")
    orders = orders or [order for path, order in base.items() if load_object(path) is old]
    if orders and orders[-1] is not None:
        settings.set(
            name, own | {f"{old.__module__}.{old.__qualname__}": None, RobotsTxtMiddleware: orders[-1]}
        )
