"""The spider's side of the filter: sees a page's output handed over."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from dedup.filter import Filter
from dedup.filter.stats import count
from dedup.scrapy.component import Component
from dedup.scrapy.judgement import hide, outcome_of, show
from dedup.scrapy.requests.visits import SEED, asked, is_seed, linked, page_id
from dedup.scrapy.settings import weighs_links

if TYPE_CHECKING:  # few crawls weigh links
    from dedup.scrapy.links.middleware import LinksMiddleware

_T = TypeVar("_T")


class ArrivalMiddleware(Component):
    """Notes the responses that get as far as their callback: other middlewares may refuse one on its way there."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._arrived: WeakSet[Response] = WeakSet()

    def process_spider_input(self, response: Response) -> None:
        """The callback is next."""
        self._arrived.add(response)
        show(response)

    def __contains__(self, response: Response) -> bool:
        return response in self._arrived


class ConfirmMiddleware(Component):
    """Notes the pages whose output has been handed over; items of theirs may still be in the pipelines.

    Leaves out the links of "nofollow" pages, and the items of pages that have not changed.  The callbacks of some
    near-duplicates run for the sake of their links: that is their harvest, and their items are left out, too.  Of each
    link that passes, `LinksMiddleware` learns where it was found.
    """

    filter: Filter | None = None
    _follows = False  # links of near-duplicates, as far as they are worth it
    _links: "LinksMiddleware | None" = None

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._handed_over: set[str] = set()  # page ids that nobody has asked for yet

    def take(self, page_id: str) -> bool:
        """Returns whether all output of a kept page has been handed over, and forgets that."""
        is_handed_over = page_id in self._handed_over
        self._handed_over.discard(page_id)
        return is_handed_over

    def filter_opened(self, filter: Filter) -> None:
        """The filter is ready."""
        self.filter = filter
        self._follows = weighs_links(self.crawler.settings)
        if self._follows:
            from dedup.scrapy.links.middleware import LinksMiddleware

            self._links = self.crawler.get_downloader_middleware(LinksMiddleware)

    async def process_spider_output(self, response: Response, result: AsyncIterator[_T]) -> AsyncIterator[_T]:
        """Passes the output on, then notes the page."""
        request = response.request
        if self.filter is None or request is None:
            async for output in result:
                yield output
            return
        outcome = outcome_of(response)
        action, leads_on = (outcome.action, outcome.leads_on) if outcome else ("keep", False)
        is_harvest = action == "drop" and leads_on
        nofollow = action == "nofollow" and not leads_on and not self._follows
        # Where it would have been dropped, a spider that goes on behind its pages goes on behind this one, too.
        is_tried = nofollow and (asked(request) or self.filter.settings.action) == "drop"
        links = {*linked(response)} if is_tried else None
        unchanged = outcome is not None and outcome.unchanged
        was_seed = is_seed(self.crawler, request)  # asked for before Scrapy gives it a depth
        asked_again = False
        async for output in result:
            if not isinstance(output, Request):
                if unchanged or is_harvest:
                    count(self.filter.stats, "items_left_out" if unchanged else "links/items_left_out")
                else:
                    yield output
                continue
            hide(output)
            if self._is_own(output, request):
                asked_again = True
                if was_seed:
                    output.meta[SEED] = page_id(self.crawler, output)
                simhash = outcome.fingerprint.simhash if outcome else None
                alike = _callback(output, self.crawler) == _callback(request, self.crawler)
                await self.filter.asked_again(page_id(self.crawler, request), simhash, alike=alike)
            elif nofollow and (links is None or output.url.partition("#")[0] in links):
                self.filter.unreached.leave([output.url])
                continue
            else:
                self.filter.unreached.ask(output.url)
            if self._links is not None:
                self._links.found(output, response)
            yield output
        # Not reached if the spider fails: Scrapy sends spider_error then.
        if not asked_again and self._has_arrived(response):
            handed_over = page_id(self.crawler, request)
            if self.filter.is_open(handed_over):
                self._handed_over.add(handed_over)

    def _has_arrived(self, response: Response) -> bool:
        """Returns whether this is the output of the callback, and not of the errback of a page that was refused."""
        arrival = self.crawler.get_spider_middleware(ArrivalMiddleware)
        return arrival is None or response in arrival

    def _is_own(self, output: Request, request: Request) -> bool:
        """Returns whether a callback asks for its own page again, by the same request or by one that was redirected to it."""
        return output.dont_filter and (
            page_id(self.crawler, output) == page_id(self.crawler, request)
            or output.url in request.meta.get("redirect_urls", ())
        )


def _callback(request: Request, crawler: Crawler) -> object:
    return request.callback or getattr(crawler.spider, "parse", None)
