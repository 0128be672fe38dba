"""Real crawls of a tiny site, over HTTP on loopback and in this process; its fixtures are in conftest.

One page at a time and in the order of the links, unless a test says otherwise.
"""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

from dedup.scrapy import Judgement, NearDuplicate, judgement
from dedup.scrapy.signals import near_duplicate
from tests.support import serving
from tests.support.waiting import until, wait_until

ADDON = {"dedup.scrapy.Addon": 500}

# --- A site: status, headers and body by path -------------------------------------------------------

Answer = tuple[int, dict[str, str], bytes]


@cache
def words(seed: object, count: int = 200) -> str:
    """Makes a text that is unlike the text of any other seed."""
    chance = random.Random(str(seed))
    return " ".join(f"word{chance.randrange(100_000)}" for _ in range(count))


def html(body: str | bytes, **headers: str) -> Answer:
    """Makes a page of this body alone."""
    data = body.encode() if isinstance(body, str) else body
    return 200, {"Content-Type": "text/html; charset=utf-8"} | headers, data


def page(seed: object, *links: str, more: str = "") -> Answer:
    """Makes a page of 200 words; pages of one seed are near-duplicates, whatever their links and ``more``."""
    anchors = " ".join(f'<a href="{link}">more</a>' for link in links)
    return html(f"<!DOCTYPE html><title>A page</title><p>{words(seed)} {more}</p>{anchors}")


class Site:
    """Holds what a server answers and what it was asked for; ``on_request`` runs in a thread of the server."""

    def __init__(self) -> None:
        self.stats: dict[str, Any] = {}  # of the crawl that is under way
        self.url = ""
        self.pages: dict[str, Answer] = {}
        self.requests: list[str] = []
        self.on_request: Callable[[str], None] = lambda path: None


@pytest.fixture
def site() -> Iterator[Site]:
    """A site on loopback, still without pages."""
    site = Site()

    def answer(asked: BaseHTTPRequestHandler) -> serving.Answer:
        site.requests.append(asked.path)
        site.on_request(asked.path)
        found = site.pages.get(asked.path, (404, html("")[1], b"There is nothing"))
        status, headers, body = found(asked.headers) if callable(found) else found
        return status, headers.items(), body

    with serving.served(answer) as port:
        site.url = f"http://127.0.0.1:{port}"
        yield site


def hold(site: Site, path: str, pages: int) -> None:
    """Has a path answered once so many pages have been judged."""

    def on_request(asked: str) -> None:
        if asked == path:
            wait_until(lambda: site.stats.get("dedup/pages", 0) >= pages)

    site.on_request = on_request


# --- A spider, and what came of its crawl -----------------------------------------------------------


class Walker(Spider):
    """Follows every link, and notes what it is given."""

    name = "walker"
    starts: tuple[str, ...] = ("/",)

    def __init__(self, url: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.url = url
        self.judgements: dict[str, Judgement | None] = {}
        self.flags: dict[str, list[str]] = {}
        self.failures: list[Failure] = []

    def path(self, response: Any) -> str:
        return str(response.url.removeprefix(self.url))

    def request(self, path: str, **options: Any) -> Request:
        return Request(self.url + path, **{"callback": self.parse, "errback": self.failed} | options)

    async def start(self) -> AsyncIterator[Request]:
        for path in self.starts:
            yield self.request(path)

    def note(self, response: Any) -> dict[str, str]:
        self.judgements[self.path(response)] = judgement(response)
        self.flags[self.path(response)] = response.flags
        return {"path": self.path(response)}

    def links(self, response: Any) -> list[str]:
        return list(response.css("a::attr(href)").getall())

    def parse(self, response: Any) -> Any:
        yield self.note(response)
        for link in self.links(response):
            yield self.request(link)

    def failed(self, failure: Failure) -> None:
        self.failures.append(failure)


@dataclass
class Crawl:
    """What came of a crawl."""

    spider: Any
    stats: dict[str, Any]
    requests: list[str]  # the paths that the site was asked for
    records: list[dict[str, Any]]  # of the drop log
    messages: list[logging.LogRecord]
    items: list[Any]

    @property
    def verdicts(self) -> dict[str, str | None]:
        """The verdicts that callbacks were given, by path: "new", "unjudged: short" ...; None = not judged."""
        return {
            path: judged and ": ".join(filter(None, (judged.verdict.status, judged.verdict.reason)))
            for path, judged in self.spider.judgements.items()
        }

    @property
    def dropped(self) -> list[str]:
        """The pages of which an errback was told that they are near-duplicates."""
        errors = [failure.value for failure in self.spider.failures]
        return [
            error.url.removeprefix(self.spider.url) for error in errors if isinstance(error, NearDuplicate)
        ]

    @property
    def figures(self) -> dict[str, int]:
        """The filter's own stats, but for its times and judges."""
        ours = {name.removeprefix("dedup/"): value for name, value in self.stats.items() if "dedup/" in name}
        return {name: value for name, value in ours.items() if not name.startswith(("seconds/", "judges/"))}

    @property
    def mishaps(self) -> list[str]:
        """The messages that were logged as errors or with a traceback."""
        return [m.getMessage() for m in self.messages if m.levelno >= logging.ERROR or m.exc_info]


Run = Callable[..., Crawl]


@pytest.fixture
def crawl(site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Run:
    """Crawls the site: ``crawl(pages, spider, SETTING=value, ...)``."""
    log = tmp_path / "duplicates.jsonl"

    def run(pages: dict[str, Answer], spider: type[Spider] = Walker, **settings: Any) -> Crawl:
        defaults = {
            "ADDONS": ADDON,
            "DEDUP_INDEX": "memory:",
            # On these sites of a few pages whole pages are compared: until eight pages of a host are kept, its
            # chrome is not known, and by default only equal pages are dropped.
            "DEDUP_CHROME": False,
            "DEDUP_LOG": str(log),
            "CONCURRENT_REQUESTS": 1,
            "DEPTH_PRIORITY": 1,
            "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
        }
        site.pages, site.requests = pages, []
        caplog.clear()
        caplog.set_level(logging.INFO)
        crawler = get_crawler(spider, defaults | settings)
        site.stats = crawler.stats.get_stats()
        items: list[Any] = []

        def scraped(item: Any) -> None:
            items.append(item)

        crawler.signals.connect(scraped, signals.item_scraped)
        asyncio.run(crawler.crawl_async(url=site.url))
        lines = log.read_text("ascii").splitlines() if log.exists() else []
        records = [json.loads(line) for line in lines if line.endswith("}")]
        messages = [message for message in caplog.records if message.name.startswith(("dedup", "scrapy"))]
        return Crawl(crawler.spider, crawler.stats.get_stats(), site.requests, records, messages, items)

    return run


#: The front page links to a and b, which are near-duplicates; only b links to what is behind b.
TWINS = {
    "/": page("home", "/a", "/b"),
    "/a": page("story", "/behind-a"),
    "/b": page("story", "/behind-b", more="changed"),
    "/behind-a": page("behind a"),
    "/behind-b": page("behind b"),
}


def listening(told: Callable[..., None], signal: object = near_duplicate) -> type[Walker]:
    """Makes a spider that connects a function to a signal of the filter."""

    class Listens(Walker):
        @classmethod
        def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
            crawler.signals.connect(told, signal, weak=False)
            return super().from_crawler(crawler, *args, **kwargs)

    return Listens


def asking(**options: Any) -> type[Walker]:
    """Makes a spider whose requests all have these options."""

    class Asks(Walker):
        def request(self, path: str, **others: Any) -> Request:
            return super().request(path, **others | options)

    return Asks


def failing(path: str) -> type[Walker]:
    """Makes a spider that can do nothing with a page."""

    class Fails(Walker):
        def parse(self, response: Any) -> Any:
            if self.path(response) == path:
                raise ValueError("what is this?")
            yield from super().parse(response)

    return Fails


def failing_late(path: str, stat: str, least: int = 1) -> type[Walker]:
    """Makes a spider that fails on a page, once a stat is as high."""

    class FailsLate(Walker):
        async def parse(self, response: Any) -> Any:
            if self.path(response) == path:
                await until(lambda: self.crawler.stats.get_value(stat, 0) >= least)
                raise RuntimeError("it can't be parsed")
            for output in super().parse(response):
                yield output

    return FailsLate


def losing(path: str, when: Callable[[Any], Any] = lambda crawler: True) -> type:
    """Makes a pipeline that can't store the item of a page, which shows once something is so of the crawler."""

    class Loses:
        def __init__(self, crawler: Any) -> None:
            self.crawler = crawler

        @classmethod
        def from_crawler(cls, crawler: Any) -> Any:
            return cls(crawler)

        async def process_item(self, item: Any) -> Any:
            if item["path"] == path:
                await until(lambda: when(self.crawler))
                raise OSError("the disk is full")
            return item

    return Loses
