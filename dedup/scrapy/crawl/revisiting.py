"""Pages that need not be sent again, as the downloader's side of the filter sees them."""

from typing import Protocol

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from dedup.filter import Filter, Outcome, Visit
from dedup.scrapy.requests.carried import Carried


class Known(Protocol):
    """A page that has not changed, as its server says."""

    response: Response  #: stands for the page

    def seen(self, visit: Visit) -> Visit:
        """Returns the visit of the response, as if the page had been sent."""


class Revisits:
    """A crawl that asks for whole pages.  A spider middleware that is a subclass asks whether they have changed."""

    def begin(self, filter: Filter, carried: Carried) -> None:
        """The spider is open, and so is the filter."""

    def unmodified(self, request: Request, response: Response) -> Known | None:
        """Returns the page for which a response stands."""
        return None

    def whole(self, request: Request) -> Request:
        """Returns the request that fetches such a page whole."""
        return request

    def suffices(self, request: Request, outcome: Outcome) -> bool:
        """Returns whether such a page need not be sent: it is dropped, or nothing but its links are wanted."""
        return False

    def keep(self, request: Request) -> None:
        """A page was handed over, items and all."""


def revisits_of(crawler: Crawler) -> Revisits:
    """Returns the revisits of a crawl."""
    return crawler.get_spider_middleware(Revisits) or Revisits()
