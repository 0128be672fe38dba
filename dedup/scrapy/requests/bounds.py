"""Keeps the filter's own requests within the bounds of the crawl: none leaves the host of its page, wherever that redirects.

Such a request passes the filter of duplicate requests, and so passes Scrapy's off-site middleware, too.
"""

from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from dedup.filter import Stats
from dedup.filter.stats import count
from dedup.page.urls import host
from dedup.printing import inert

#: In the meta of a request of the filter's, and of one that it makes once more, while it is in the scheduler: the host that
#: it may not leave.
HOST = "dedup_host"


def bound(request: Request) -> Request:
    """Returns a request, with its host noted."""
    request.meta[HOST] = host(request.url)
    return request


class Bounds:
    """Knows the hosts that requests may not leave."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._hosts = WeakKeyDictionary[Request, str]()

    def note(self, request: Request) -> None:
        """A request leaves the scheduler; what callbacks copy from its meta has no bounds."""
        if isinstance(name := request.meta.pop(HOST, None), str):
            self._hosts[request] = name

    def hand_on(self, request: Request, made: Request) -> None:
        """A downloader middleware has made a request of another one."""
        if (name := self._hosts.get(request)) is not None:
            made.meta[HOST] = name

    def check(self, request: Request) -> None:
        """Raises `IgnoreRequest` for one that would leave its host."""
        name = self._hosts.get(request) or request.meta.get(HOST)
        if name and host(request.url) != name:
            count(self._stats, "off_host")
            raise IgnoreRequest(f"{inert(request.url)} is not on the host of the page that is fetched again")
