"""Scrapy's engine as the filter sees it: stops a crawl, and fetches pages again."""

import asyncio
import logging

from scrapy import Request
from scrapy.crawler import Crawler

from dedup.errors import DedupError
from dedup.filter import Crawl
from dedup.filter.visit import Answer, Change
from dedup.fingerprint.detector import Detector
from dedup.page.html import Page
from dedup.printing import inert
from dedup.scrapy import compat
from dedup.scrapy.manner import Manner, asking, manner_of
from dedup.scrapy.signals import change_found, filter_failed
from dedup.scrapy.slot import is_closing
from dedup.scrapy.visits import DROPPED, OWN, TAB, is_judged, read_response
from dedup.settings import Types

__all__ = ["Engine"]

logger = logging.getLogger(__name__)


class Engine(Crawl):
    """The crawl that a filter works for."""

    fetches = True

    def __init__(self, crawler: Crawler, detector: Detector, types: Types) -> None:
        self._crawler = crawler
        self._detector = detector
        self._types = types
        self.depth_limit = crawler.settings.getint("DEPTH_LIMIT")
        self._closing: asyncio.Task[None] | None = None

    def stop(self, error: DedupError) -> None:
        """Closes the spider."""
        self._crawler.signals.send_catch_log(filter_failed, error=error)
        self._closing = asyncio.ensure_future(compat.close(self._crawler, error.reason))

    def is_closing(self) -> bool:
        """Whether the spider is being closed."""
        return is_closing(self._crawler)

    async def fetch(self, url: str) -> Page | None:
        """Fetches a page past the filter."""
        return (await self._answer(Request(url, meta={"dedup": False, OWN: True}, dont_filter=True))).page

    def manner(self, origin: Request) -> Manner | None:
        """The headers, cookies and options with which a page was asked for."""
        return manner_of(origin)

    async def fetch_in(self, manner: Manner, url: str, origin: Request) -> Page | None:
        """Fetches a page past the filter, with these."""
        return (await self._answer(asking(url, origin, manner))).page

    async def _answer(self, request: Request) -> Answer:
        response = await compat.download(self._crawler, request)
        wanted = is_judged(response, self._types) and response.status == 200
        page = read_response(response, self._detector) if wanted else None
        return Answer(response.status, response.url, page)

    async def ask(self, url: str, origin: Request) -> Answer | None:
        """Asks an address past the filter."""
        manner = self.manner(origin)
        try:
            return None if manner is None else await self._answer(asking(url, origin, manner))
        except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware)
            logger.debug("No answer from %s: %s", inert(url), error)
            return None

    def wake(self) -> None:
        """Has Scrapy look at once whether the crawl is done, and not five seconds later."""
        if (slot := getattr(self._crawler.engine, "_slot", None)) is not None:
            slot.nextcall.schedule()

    def tell(self, change: Change) -> None:
        """Sends the signal."""
        self._crawler.signals.send_catch_log(
            change_found, change=change, response=None, spider=self._crawler.spider
        )

    def fetch_again(self, origin: Request, *, judged: bool = True) -> None:
        """Gives a request to the scheduler once more, without the traces of its drop."""
        meta = {key: value for key, value in origin.meta.items() if key not in {DROPPED, TAB}}
        if not judged:
            meta["dedup"] = False
        self._crawler.engine.crawl(origin.replace(meta=meta, dont_filter=True))
