"""The spider of a trial, its pipeline, and a middleware: what they do depends on the trial's spec, and on URLs."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from itertools import count
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from tests.chaos.site import share
from tests.chaos.spec import Spec

#: How a callback hands a half-made item to the next one.
HANDED = {"kwargs": "cb_kwargs", "meta": "meta", "chain": "meta"}


class Traveller(Spider):
    """Follows every link; an item names its content, and what was carried to it."""

    name = "traveller"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> "Traveller":
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.spec = Spec(**crawler.settings["SPEC"])
        named = {"async": spider.parse_later, "list": spider.parse_list, "inline": spider.parse_inline}
        spider.callback = named.get(spider.spec.callback, spider.parse)
        spider.numbers = count()
        return spider

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.url, self.callback, dont_filter=True)

    def parse(self, response: Any, page: int = 0) -> Iterator[Any]:
        found = response.css("main::attr(id)").get()
        if self.spec.callback not in HANDED:
            yield {"content": found or "hours", "url": response.url}
        for link in response.css("a::attr(href)").getall():
            if "/contact" in link:
                continue
            if "/hours" not in link:
                numbered = {"page": next(self.numbers)} if self.spec.callback == "numbered" else {}
                yield response.follow(link, self.callback, cb_kwargs=numbered)
            elif how := HANDED.get(self.spec.callback):
                yield response.follow(link, self.parse_hours, **{how: {"item": {"content": found}}})
        if share(self.spec, "raise", response.url) < self.spec.raises:
            raise RuntimeError("chaos")

    def parse_list(self, response: Any) -> list[Any]:
        return list(self.parse(response))

    async def parse_later(self, response: Any) -> AsyncIterator[Any]:
        await asyncio.sleep(0.02 * share(self.spec, "sleep", response.url))
        for output in self.parse(response):
            yield output

    async def parse_inline(self, response: Any) -> AsyncIterator[Any]:
        for output in self.parse(response):
            if not isinstance(output, Request):
                asked = Request(response.urljoin(response.css("a[href*=hours]::attr(href)").get()))
                hours = await self.crawler.engine.download_async(asked)
                output |= {"hours": hours.status == 200}
            yield output

    def parse_hours(self, response: Any, item: Any = None) -> Iterator[Any]:
        item = (item or response.meta["item"]) | {"url": response.url, "hours": True}
        if self.spec.callback == "chain":
            link = response.css("a::attr(href)").get()
            yield response.follow(link, self.parse_contact, meta={"item": item})
        else:
            yield item

    def parse_contact(self, response: Response) -> Iterator[Any]:
        yield response.meta["item"] | {"contact": True}


class Writes:
    """The pipeline: a line for each item that gets through, at once."""

    def __init__(self, crawler: Crawler) -> None:
        self.spec = Spec(**crawler.settings["SPEC"])
        self._file = os.open(crawler.settings["ITEMS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Writes":
        return cls(crawler)

    async def process_item(self, item: Any) -> Any:
        if self.spec.slow:
            await asyncio.sleep(self.spec.slow * share(self.spec, "slow", item["url"]))
        if share(self.spec, "fail", item["url"]) < self.spec.fails:
            raise OSError("chaos")
        os.write(self._file, json.dumps(item).encode() + b"\n")
        return item


class Refuses:
    """A downloader middleware that refuses some pages, nearer to the engine than the filter is."""

    def __init__(self, crawler: Crawler) -> None:
        self.spec = Spec(**crawler.settings["SPEC"])

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> "Refuses":
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        if share(self.spec, "refuse", response.url) < self.spec.refuses:
            raise IgnoreRequest("chaos")
        return response
