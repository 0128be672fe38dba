"""Fetches dropped and kept pages again, for their words, as politely as the project fetches pages."""

from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

from scrapy import Request, Spider
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings
from twisted.python.failure import Failure

from dedup.droplog.texts import Text
from dedup.fingerprint.detector import Detector
from dedup.page.limits import UNREADABLE
from dedup.scrapy.compat import crawler_process
from dedup.scrapy.robots import replace as replace_robots

__all__ = ["refetch"]

#: Settings in place of the project's, so that the crawl neither judges pages nor writes anything.
_SETTINGS: dict[str, Any] = {
    "ADDONS": {},
    "CLOSESPIDER_PAGECOUNT": 0,
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "JOBDIR": None,
    "LOG_ENABLED": False,
    "RETRY_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}
#: The least seconds between two requests to a host, and the most seconds and bytes of a page.
DELAY, TIMEOUT, SIZE = 1.0, 60.0, 16 * 1024 * 1024


class _Refetch(Spider):
    """Its attributes are the arguments that `refetch` gives it."""

    name = "duplicates"
    urls: Collection[str]
    detector: Detector
    words: dict[str, Text]
    done: Callable[[], object]

    async def start(self) -> AsyncIterator[Request]:
        for url in self.urls:
            yield Request(url, errback=self._failed, meta={"asked": url})

    def parse(self, response: Response) -> None:
        """Keeps the words of a page."""
        self.done()
        if isinstance(response, HtmlResponse):
            page = self.detector.read(response.text, response.url, lambda _: response.selector.root)
            if page.reason not in UNREADABLE:
                self.words[response.meta["asked"]] = Text(page.tokens, page.chrome, page.data)

    def _failed(self, failure: Failure) -> None:
        self.done()


def refetch(
    urls: Collection[str], settings: Settings, detector: Detector, done: Callable[[], object]
) -> dict[str, Text]:
    """The texts of pages as they are now, by URL, without the pages that can't be fetched or read.

    ``done`` is called after each page.  The project's DOWNLOAD_DELAY holds if it is longer than `DELAY`; its
    timeout and size hold if they are below `TIMEOUT` and `SIZE`.  robots.txt is obeyed if the project obeys it.
    """
    words: dict[str, Text] = {}
    own = settings.copy()
    own.setdict(
        _SETTINGS
        | {
            "DOWNLOAD_DELAY": max(DELAY, settings.getfloat("DOWNLOAD_DELAY")),
            "DOWNLOAD_TIMEOUT": min(TIMEOUT, settings.getfloat("DOWNLOAD_TIMEOUT")),
            "DOWNLOAD_MAXSIZE": min(SIZE, settings.getint("DOWNLOAD_MAXSIZE") or SIZE),
        },
        priority="cmdline",
    )
    replace_robots(own)
    process = crawler_process(own)
    process.crawl(_Refetch, urls=urls, detector=detector, words=words, done=done)
    process.start()
    return words
