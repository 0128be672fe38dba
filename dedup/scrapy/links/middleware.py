"""Weighs links that leave the scheduler: whether they are downloaded depends on the verdicts on pages like theirs.

`dedup.links` decides.  Here is which requests it is asked about, where parked ones wait, and when they come back.
"""

from pathlib import Path
from weakref import WeakKeyDictionary, WeakSet

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider, NotConfigured
from scrapy.http import HtmlResponse, Response
from scrapy.http.request import NO_CALLBACK

from dedup.droplog.record import Record
from dedup.errors import DedupError
from dedup.filter import Filter, Outcome
from dedup.filter.stats import count
from dedup.latest import Latest
from dedup.links import Link, Links
from dedup.links.state import read_state, write_state
from dedup.page.links import targets
from dedup.page.urls import digest
from dedup.printing import inert
from dedup.scrapy.component import Component
from dedup.scrapy.crawl.slot import Slot
from dedup.scrapy.judgement import Parked, lead_on, outcome_of
from dedup.scrapy.links.parked import ParkedLog
from dedup.scrapy.links.waiting import leave_parked, take_parked
from dedup.scrapy.requests.visits import page_id
from dedup.scrapy.settings import read_group, weighs_links
from dedup.scrapy.signals import logger_for, refuse
from dedup.settings import LinkSettings

#: In the meta of a request: the URL of the page on which it was found, and whether that was kept.
FOUND_ON, FOUND_ON_KEPT = "dedup_found_on", "dedup_found_on_kept"
#: In the meta of a request that has waited, while it is in the scheduler again.
AGAIN = "dedup_again"
#: In the meta of a request that has waited, until its page is judged.
WAITED = "dedup_waited"
#: In the meta of a request: False if the callback is not to run on its page if that is a near-duplicate.
HARVEST = "dedup_harvest"
#: Requests with these keys in their meta are never parked: what they ask for is under way.
UNDER_WAY = ("redirect_times", "retry_times", "dedup_dropped")
#: Files in the JOBDIR: what was learnt, and the requests that wait.
STATE, WAITING = "dedup.links.json", "dedup.parked"
#: Short pages that are remembered word for word, and URLs that were met.
MAX_SHORT, MAX_MET = 100_000, 200_000


class LinksMiddleware(Component):
    """A downloader middleware: parks requests, learns from the verdicts, and gives back what has become worth it."""

    def __init__(self, crawler: Crawler) -> None:
        """Everything is opened when the spider is."""
        if not weighs_links(crawler.settings):
            raise NotConfigured
        super().__init__(crawler)
        self.options: LinkSettings | None = None  # while the spider is open
        self.filter: Filter | None = None
        self._logger = logger_for(crawler, __name__)

    def spider_opened(self, spider: Spider) -> None:
        """Opens the log of parked links, or stops the crawl before any page."""
        try:
            options = read_group(self.crawler.settings, LinkSettings)
            self._log = ParkedLog(options.parked, spider.name)
        except DedupError as error:
            refuse(self.crawler, error)
            return
        self.options = options
        self.links = Links()
        # The URLs of requests, and of links on pages that were harvested.
        self._offered = Latest[int, None](MAX_MET)
        self._short = Latest[int, None](MAX_SHORT)  # digests of short pages
        self._repeats: WeakSet[Response] = WeakSet()  # short pages that were met before
        self._came_back: WeakKeyDictionary[Request, str] = WeakKeyDictionary()  # judged, but not yet parsed
        self._scheduled = Slot(self.crawler, self._left)
        if folder := self.crawler.settings.get("JOBDIR"):
            read_state(Path(folder, STATE), self.links)
            take_parked(Path(folder, WAITING), self.links, spider)

    def filter_opened(self, filter: Filter) -> None:
        """The filter is ready."""
        self.filter = filter

    # --- Requests

    def process_request(self, request: Request) -> None:
        """Lets a request go, or raises `Parked`."""
        if self.options is None or request not in self._scheduled or not is_asked_about(request):
            return
        if request.meta.pop(AGAIN, False):
            request.dont_filter = False
        if any(key in request.meta for key in UNDER_WAY):
            return
        link = link_of(request)
        if link.found_on and not request.dont_filter:
            self._decide(request, link)
        self.links.note(link)

    def _decide(self, request: Request, link: Link) -> None:
        assert self.options is not None
        if self.options.follow == "all" or (doubt := self.links.doubt(link)) is None:
            return
        depth = request.meta.get("depth", 0)
        if not self._log.park(link, doubt, depth if type(depth) is int else 0):
            return
        self.links.park(link)
        count(self.crawler.stats, "links/parked")
        new = f"{doubt.judged - doubt.new} of {doubt.judged} in {inert(doubt.folder)} were near-duplicates"
        raise Parked(inert(link.url), f"{new}, {doubt.sampled} of {doubt.parked} parked sampled")

    def found(self, request: Request, response: Response) -> None:
        """Notes where a request was found that a callback has made."""
        if self.options is None:
            return
        assert response.request is not None
        on_kept = not self._is_like_a_duplicate(response)
        request.meta[FOUND_ON], request.meta[FOUND_ON_KEPT] = _asked_url(response.request), on_kept
        if request.dont_filter or not is_asked_about(request):
            return
        link = link_of(request)
        self._offered[digest(link.url)] = None
        if link.url in self.links.parking and self.links.doubt(link) is None:
            # Else the filter of duplicate requests would take it for done.
            self.links.parking.remove(link.url)
            request.meta[AGAIN] = request.meta[WAITED] = request.dont_filter = True

    def _is_like_a_duplicate(self, response: Response) -> bool:
        """Returns whether a page has brought nothing new: its links are weighed."""
        outcome = outcome_of(response)
        if outcome is None or outcome.action == "mark":
            return False
        return outcome.verdict.status == "duplicate" or response in self._repeats

    # --- Verdicts

    def near_duplicate(self, request: Request, response: Response, record: Record) -> None:
        """A near-duplicate is about to be dropped: its callback is run for the sake of its links, or not."""
        outcome = outcome_of(response)
        if self.options is None or outcome is None or outcome.action == "mark" or outcome.leads_on:
            return
        if outcome.action == "nofollow":
            if self.options.follow != "never":
                self._follow(outcome, request)
            return
        if self._is_harvested(request, response):
            lead_on(response)
            count(self.crawler.stats, "links/harvested")
            self._follow(outcome, request)
        else:
            self._learn(request, new=False)

    def _follow(self, outcome: Outcome, request: Request) -> None:
        """The links of a near-duplicate are followed after all, as far as they are worth it."""
        if self.filter is not None:
            self.filter.follow(outcome.verdict, page_id(self.crawler, request))
        self.crawler.stats.inc_value("dedup/links_not_followed", -outcome.fingerprint.links)
        self.crawler.stats.inc_value("dedup/links/weighed", outcome.fingerprint.links)

    def _is_harvested(self, request: Request, response: Response) -> bool:
        if request.meta.get(HARVEST) is False:
            return False
        if not isinstance(response, HtmlResponse):
            return True
        if (found := targets(response.selector.root, response.url)) is None:
            return True
        unseen = [key for key in map(digest, found) if key not in self._offered]
        self._offered |= dict.fromkeys(unseen)
        return bool(unseen)

    def process_response(self, request: Request, response: Response) -> Response:
        """Learns from a page that goes to its callback."""
        if self.options is not None and (outcome := outcome_of(response)) is not None:
            new = self._is_new(outcome)
            if new is False and outcome.verdict.status == "unjudged":
                self._repeats.add(response)
            self._learn(request, new=new)
        return response

    def _is_new(self, outcome: Outcome) -> bool | None:
        """Returns whether a page brings new content; None if that can't be told."""
        verdict = outcome.verdict
        if verdict.status != "unjudged":
            return verdict.status != "duplicate"
        if verdict.reason not in {"short", "empty"}:
            return None
        words = digest(" ".join(outcome.page.tokens if outcome.page else ()))
        known = words in self._short
        self._short[words] = None
        return False if known else None

    def _learn(self, request: Request, *, new: bool | None) -> None:
        url = _asked_url(request)
        if request.meta.pop(WAITED, False):
            self._came_back[request] = url
        self._give_back(self.links.learn(url, new=new))

    def _left(self, request: Request) -> None:
        """The engine is done with a request.  Until then, a crash would lose what its page links to."""
        if (url := self._came_back.pop(request, None)) is not None:
            self._log.fetched(url)

    def _give_back(self, waiting: list[Link]) -> None:
        for link in waiting:
            count(self.crawler.stats, "links/came_back")
            link.origin.meta[WAITED] = True
            meta = link.origin.meta | {AGAIN: True}
            self.crawler.engine.crawl(link.origin.replace(dont_filter=True, meta=meta))

    def spider_idle(self) -> None:
        """Nothing is left to be crawled, it seems, but what is parked."""
        if self.options is None or not (waiting := self.links.idle()):
            return
        self._give_back(waiting)
        raise DontCloseSpider

    # --- The end

    def spider_closed(self, spider: Spider, reason: str) -> None:
        """Tells what is still parked, and leaves what was learnt to a job that goes on."""
        options, self.options = self.options, None
        if options is None:
            return
        self._log.close()
        waiting = len(self.links.parking)
        self.crawler.stats.set_value("dedup/links/waiting", waiting)
        if waiting:
            where = self._log.path or "no file, since DEDUP_PARKED is empty"
            text = "%s links were not downloaded, since they promised little new content; they are in %s"
            self._logger.info(text, f"{waiting:,}", where)
        if folder := self.crawler.settings.get("JOBDIR"):
            write_state(Path(folder, STATE), self.links)
            leave_parked(Path(folder, WAITING), self.links, spider)


def is_asked_about(request: Request) -> bool:
    """Returns whether a request may be parked at all.  What a spider or Scrapy needs for other purposes may not."""
    opted_out = request.meta.get("dedup") is False
    return request.method == "GET" and not opted_out and request.callback is not NO_CALLBACK


def link_of(request: Request) -> Link:
    """Returns a request as the policy sees it; one that no page has led to is never parked."""
    found_on = request.meta.get(FOUND_ON)
    # Others may have copied the meta of one with which the crawl begins, but they have a depth.
    is_start = request.meta.get("is_start_request") and not request.meta.get("depth")
    if not isinstance(found_on, str) or is_start:
        return Link(_plain(request.url), origin=request)
    return Link(_plain(request.url), found_on, bool(request.meta.get(FOUND_ON_KEPT)), origin=request)


def _asked_url(request: Request) -> str:
    """Returns the URL of the link that led to a page, through redirects or not."""
    urls = request.meta.get("redirect_urls") or [request.url]
    return _plain(urls[0])


def _plain(url: str) -> str:
    return url.partition("#")[0]
