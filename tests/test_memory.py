"""A long crawl takes no more memory than a short one, but for what the index files."""

import asyncio
import gc
import random
import weakref
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.http import HtmlResponse, Response
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

from benchmarks.memory import resident
from dedup.filter.noise.answers import changes
from dedup.filter.noise.left import Own
from dedup.filter.noise.lines import Line, lines_of
from tests.support.crawls import ADDON, TWINS, Run, Walker

#: Pages of the crawl, after how many the filter's memories are full, and how many contents there are.
PAGES, WARM, CONTENTS = 100_000, 30_000, 600
#: Bytes that the process may grow by after that.
SLACK = 12 << 20


@cache
def text(content: int) -> str:
    rng = random.Random(content)
    return " ".join(f"word{rng.randrange(50_000)}" for _ in range(80))


def number_of(request: Request) -> int:
    return int(request.url.rpartition("=")[2])


class Handler(BaseDownloadHandler):
    """Answers at once; of three pages of a content, one is equal to another byte for byte."""

    async def download_request(self, request: Request) -> Response:
        number = number_of(request)
        changed = number if number % 3 else 0
        links = "".join(f"<a href=/{changed}/{n}>more</a>" for n in range(4))
        body = f"<title>Page</title><p>{text(number % CONTENTS)} changed{changed}</p>{links}"
        return HtmlResponse(
            request.url, headers={"Content-Type": "text/html; charset=utf-8"}, body=body.encode()
        )


class Counts(Spider):
    """Asks for one page after the other, whatever becomes of them."""

    name = "counts"
    sizes: dict[int, int]

    async def start(self) -> AsyncIterator[Request]:
        self.sizes = {}
        for number in range(8):
            yield self.request(number)

    def request(self, number: int) -> Request:
        url = f"http://example.org/?utm_content={number}"  # which tells no pages apart
        return Request(url, errback=self.failed, dont_filter=True)

    def parse(self, response: Any) -> Any:
        yield from self.go_on(number_of(response.request))

    def go_on(self, number: int) -> Any:
        if number % 10_000 == 0:
            self.sizes[number] = resident()
        if number + 8 <= PAGES:
            yield self.request(number + 8)

    def failed(self, failure: Failure) -> Any:
        yield from self.go_on(number_of(failure.request))  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read as Linux tells it")
def test_a_long_crawl_grows_no_more(tmp_path: Path) -> None:
    settings = {
        "ADDONS": ADDON,
        "DOWNLOAD_HANDLERS": {"http": Handler},
        "DEDUP_INDEX": f"file:{tmp_path}/index.sqlite",
        "DEDUP_LOG": str(tmp_path / "drops.jsonl"),
        "DEDUP_MAX_CLUSTER": 0,
        "LOG_LEVEL": "ERROR",
    }
    crawler = get_crawler(Counts, settings)
    asyncio.run(crawler.crawl_async())
    found = crawler.stats.get_stats()
    sizes = crawler.spider.sizes  # type: ignore[union-attr]
    print(
        {number: size >> 10 for number, size in sizes.items()},
        {k: v for k, v in found.items() if "dedup/" in k},
    )
    assert found["dedup/pages"] > PAGES
    assert found["dedup/equal_bodies"] > PAGES / 4
    assert found["dedup/new"] < 2 * CONTENTS
    assert sizes[PAGES] - sizes[WARM] < SLACK


def test_a_page_that_is_met_often_takes_no_more_memory() -> None:
    """Each answer has lines of its own, with which no page is ever compared."""

    def page(visitors: int) -> list[Line]:
        return lines_of(f"<h1>Lamp</h1><p>Seen by {visitors} visitors", "")

    own = Own()
    for visitors in range(1, 100):
        own.learn(changes(page(0), page(visitors)), is_met=True)
    assert [*own.changed] == [tuple(page(0)[1])]


class Collected(Walker):
    """Notes whether something is still there that nobody has, and how many objects the collector leaves out."""

    left: "weakref.ref[Left]"
    is_there, left_out = True, 0

    def parse(self, response: Any) -> Any:
        type(self).is_there, type(self).left_out = self.left() is not None, gc.get_freeze_count()
        yield from super().parse(response)


class Left:
    """What an earlier crawl has left: it has itself."""

    def __init__(self) -> None:
        self.own = self


def test_what_an_earlier_crawl_left_is_collected(crawl: Run) -> None:
    """A crawl has the collector leave out what is there before its first page, but no longer than it lasts."""
    gc.unfreeze()  # what the tests leave out themselves
    crawl(TWINS)
    left = Left()
    gc.collect()  # now it is among what is old, which is seldom looked through
    Collected.left = weakref.ref(left)
    del left
    crawl(TWINS, Collected)
    assert not Collected.is_there
    assert Collected.left_out > 0
    assert gc.get_freeze_count() == 0
