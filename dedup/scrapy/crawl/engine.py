"""Scrapy's engine as the filter sees it: stops a crawl, and fetches pages again."""

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import FormRequest, HtmlResponse

from dedup.errors import DedupError
from dedup.filter import Crawl
from dedup.filter.visit import Answer
from dedup.fingerprint.detector import Detector
from dedup.page.actions import is_action
from dedup.page.html import Page
from dedup.page.shell import may_be_shell
from dedup.printing import inert
from dedup.scrapy import compat
from dedup.scrapy.crawl.crew import Crew
from dedup.scrapy.crawl.slot import is_closing
from dedup.scrapy.judgement import hide
from dedup.scrapy.requests.bounds import bound
from dedup.scrapy.requests.carried import Carried
from dedup.scrapy.requests.manner import Manner, asking, manner_of
from dedup.scrapy.requests.visits import DROPPED, OWN, TAB, is_judged, read_response
from dedup.scrapy.signals import change_found, filter_failed
from dedup.settings import Types

if TYPE_CHECKING:
    from dedup.filter.change import Change

logger = logging.getLogger(__name__)


class Engine(Crawl):
    """The crawl that a filter works for."""

    fetches = True

    def __init__(
        self,
        crawler: Crawler,
        detector: Detector,
        types: Types,
        carried: Carried,
        crew: Crew,
    ) -> None:
        self._crawler = crawler
        self.carried = carried
        self._crew = crew
        self._detector = detector
        self._types = types
        self.depth_limit = crawler.settings.getint("DEPTH_LIMIT")
        self._closing: asyncio.Task[None] | None = None

    def stop(self, error: DedupError) -> None:
        """Closes the spider."""
        self._crawler.signals.send_catch_log(filter_failed, error=error)
        self._closing = asyncio.ensure_future(compat.close(self._crawler, error.reason))

    def is_closing(self) -> bool:
        """Returns whether the spider is being closed."""
        return is_closing(self._crawler)

    async def fetch(self, url: str) -> Page | None:
        """Fetches a page past the filter."""
        return (await self._answer(Request(url, meta={"dedup": False, OWN: True}, dont_filter=True))).page

    def may_fetch_again(self, origin: Request) -> bool:
        """Returns whether a page was not asked for by the form of another, nor at an address that looks like an action."""
        # A queue may begin with requests of this class.
        is_form = isinstance(origin, FormRequest) and bool(origin.meta.get("depth"))
        return not (is_form or is_action(origin.url))

    def manner(self, origin: Request) -> Manner | None:
        """Returns the headers, cookies and options with which a page was asked for; None if no plain link has led there."""
        is_link = self.may_fetch_again(origin) and not self.carried.has_data(origin)
        return manner_of(origin) if is_link else None

    async def fetch_in(self, manner: Manner, url: str, origin: Request) -> Page | None:
        """Fetches a page past the filter, with these; once, since others may wait for it, and from nowhere else."""
        request = asking(url, origin, manner)
        request.meta.update(dont_redirect=True, dont_retry=True)
        return (await self._answer(request)).page

    async def _answer(self, request: Request) -> Answer:
        if is_action(request.url):
            raise IgnoreRequest(f"{inert(request.url)} looks like an action")
        response = await compat.download(self._crawler, bound(request))
        wanted = is_judged(response, self._types) and response.status == 200
        page = read_response(response, self._detector) if wanted else None
        if page is None or page.reason is not None or not isinstance(response, HtmlResponse):
            return Answer(response.status, response.url, page)
        return Answer(response.status, response.url, page, may_be_shell(response.selector.root))

    async def ask(self, url: str, origin: Request) -> Answer | None:
        """Asks an address past the filter."""
        manner = manner_of(origin)
        try:
            return None if manner is None else await self._answer(asking(url, origin, manner))
        except Exception as error:  # noqa: BLE001 (the network, robots.txt, any middleware)
            logger.debug("No answer from %s: %s", inert(url), error)
            return None

    def has_ended(self) -> bool:
        """Returns whether no worker of the crawl has anything left to do."""
        return self._crew.has_ended

    def is_own(self, url: str) -> bool:
        """Returns whether this worker asks the host of a page."""
        return self._crew.is_own(url)

    def wake(self) -> None:
        """Has Scrapy look at once whether the crawl is done, and not five seconds later."""
        if (slot := getattr(self._crawler.engine, "_slot", None)) is not None:
            slot.nextcall.schedule()

    def tell(self, change: "Change") -> None:
        """Sends the signal."""
        self._crawler.signals.send_catch_log(
            change_found, change=change, response=None, spider=self._crawler.spider
        )

    def hold(self, origin: Request) -> None:
        """The request of a page is not done: the page may be fetched once more."""
        self._crew.hold(origin)

    def let_go(self, origin: Request) -> None:
        """It will not be."""
        self._crew.let_go(origin)

    def fetch_again(self, origin: Request, *, judged: bool = True) -> None:
        """Gives a request to the scheduler once more, without the traces of its drop."""
        meta = {key: value for key, value in origin.meta.items() if key not in {DROPPED, TAB}}
        if not judged:
            meta["dedup"] = False
        again = bound(origin.replace(meta=meta, dont_filter=True))
        hide(again)
        self._crew.found(again, origin)
        self._crawler.engine.crawl(again)
