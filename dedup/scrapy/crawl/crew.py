"""The workers of a crawl, as the filter of one of them sees them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler

if TYPE_CHECKING:
    from prometheus_client import Metric


class Crew:
    """A crawl by one worker.  A downloader middleware that is a subclass makes it one by several."""

    has_ended = True  #: nothing is left to be done by any worker
    is_watched = False  #: its `gauges` are asked for

    @property
    def leaves_rest(self) -> bool:
        """Whether what is left to be done is noted for another worker."""
        return False

    async def crawl_name(self) -> str:
        """Returns what the crawl of all workers is called; "" if it has no name."""
        return ""

    def is_own(self, url: str) -> bool:
        """Returns whether this worker asks the host of a page."""
        return True

    def hold(self, request: Request) -> None:
        """Notes that a request is not done."""

    def let_go(self, request: Request) -> None:
        """Notes that a request is done."""

    def found(self, request: Request, origin: Request) -> None:
        """Notes that a request takes the place of another."""

    def gauges(self) -> "Iterator[Metric]":
        """Yields what Prometheus is told of the workers."""
        yield from ()


def crew_of(crawler: Crawler) -> Crew:
    """Returns the workers of a crawl."""
    return crawler.get_downloader_middleware(Crew) or Crew()
