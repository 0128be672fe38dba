"""The site and the spiders of a trial: what they do depends on its spec alone, and on how often a page was asked for."""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from zlib import crc32

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response

from tests.chaos.spec import Spec

__all__ = ["Refuses", "Site", "Traveller", "Writes"]

BEFORE = {"print": "/print", "mirror": "/mirror", "query": ""}


def share(spec: Spec, salt: str, url: str) -> float:
    """A number from 0 to 1 that depends on a page's address, less the session; the front page never fails."""
    parts = urlsplit(url)
    query = "&".join(part for part in parts.query.split("&") if not part.startswith("sid="))
    plain = f"{spec.seed} {salt} {parts.path}?{query}"
    return 1.0 if parts.path == "/" else crc32(plain.encode()) / 2**32


class Site:
    """Contents that are linked with each other, each under some addresses; and a page of hours for each, all alike."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        rng = random.Random(f"site {spec.seed}")
        words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(4000)]
        self._texts = [" ".join(rng.choices(words, k=spec.words)) for _ in range(spec.contents)]
        self._titles = [" ".join(rng.choices(words, k=4)) for _ in range(spec.contents)]
        self._chrome = " ".join(rng.choices(words, k=spec.chrome))
        self._hours = " ".join(rng.choices(words, k=80))
        everything = range(spec.contents)
        self._links = [{(2 * n + 1), (2 * n + 2), *rng.sample(everything, 3)} for n in everything]
        self._asked: Counter[str] = Counter()

    def render(self, path: str, visit: int) -> tuple[int, str, bytes]:
        """The answer to a request."""
        self._asked[path] += 1
        if share(self.spec, "error", path) < self.spec.errors and self._asked[path] == 1:
            return 500, "text/html", b"sorry"
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        sid = f"sid={query['sid']}" if "sid" in query else ""
        if self.spec.sessions and not sid:
            sid = f"sid={crc32(f'{visit}'.encode()):08x}"
        is_hours = parts.path == "/hours"
        name = query.get("of", "") if is_hours else parts.path.rpartition("/")[2] or "0"
        if not name.isdigit() or int(name) >= self.spec.contents:
            return 404, "text/html", b"nothing"
        number = int(name)
        body = f"<title>Hours</title><p>{self._hours}" if is_hours else self._page(number, sid)
        counter = f"<p>visit {visit}" if self.spec.counter else ""
        return 200, "text/html", f"{body}<footer>{self._chrome}</footer>{counter}".encode()

    def _page(self, number: int, sid: str) -> str:
        addresses = [("", ""), *((BEFORE[copy], "view=1" * (copy == "query")) for copy in self.spec.copies)]
        others = [other for other in sorted(self._links[number]) if other < self.spec.contents]
        links = [
            self._link(f"{before}/{other}", sid, query) for other in others for before, query in addresses
        ]
        body = f"<title>{self._titles[number]}</title><main id=c{number}>{self._texts[number]}</main>"
        return f"{body}{''.join(links)}{self._link('/hours', sid, f'of={number}')}"

    def _link(self, path: str, sid: str, query: str = "") -> str:
        asked = "&amp;".join(filter(None, (query, sid)))
        return f'<a href="{path}{"?" * bool(asked)}{asked}">more</a> '


class Traveller(Spider):
    """Follows every link; an item names its content, and what was carried to it."""

    name = "traveller"

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> "Traveller":
        spider = super().from_crawler(crawler, *args, **kwargs)
        spider.spec = Spec(**crawler.settings["SPEC"])
        spider.callback = {"async": spider.parse_later, "list": spider.parse_list}.get(
            spider.spec.callback, spider.parse
        )
        return spider

    async def start(self) -> AsyncIterator[Request]:
        yield Request(self.url, self.callback, dont_filter=True)

    def parse(self, response: Any) -> Iterator[Any]:
        found = response.css("main::attr(id)").get()
        carries = self.spec.callback in {"kwargs", "meta"}
        if not carries:
            yield {"content": found or "hours", "url": response.url}
        for link in response.css("a::attr(href)").getall():
            if not link.startswith("/hours"):
                yield response.follow(link, self.callback)
            elif self.spec.callback == "kwargs":
                yield response.follow(link, self.parse_hours, cb_kwargs={"item": {"content": found}})
            elif self.spec.callback == "meta":
                yield response.follow(link, self.parse_hours, meta={"item": {"content": found}})
        if share(self.spec, "raise", response.url) < self.spec.raises:
            raise RuntimeError("chaos")

    def parse_list(self, response: Any) -> list[Any]:
        return list(self.parse(response))

    async def parse_later(self, response: Any) -> AsyncIterator[Any]:
        await asyncio.sleep(0.02 * share(self.spec, "sleep", response.url))
        for output in self.parse(response):
            yield output

    def parse_hours(self, response: Response, item: Any = None) -> Iterator[Any]:
        yield (item or response.meta["item"]) | {"url": response.url, "hours": True}


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
