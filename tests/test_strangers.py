"""Spiders as strangers write them, unchanged: with the filter, and in a second crawl, each gets what it got without.

Their sites have what their selectors expect: much that is the same on all pages, and a few words that are a page's own.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider

from tests.support.crawls import Answer, Run, Walker, html, words

MANY = 24
#: What all pages of a site share.
FRAME = f"<nav>{words('menu', 60)}</nav>{{}}<footer>{words('footer', 60)}</footer>"


def framed(body: str, title: str = "Our shops") -> Answer:
    return html(f"<title>{title}</title>{FRAME.format(body)}")


def links(paths: list[str]) -> str:
    return " ".join(f'<a href="{path}">more</a>' for path in paths)


class Stranger(Walker):
    """A spider whose start page has a list of links."""

    def __init__(self, url: str, **kwargs: Any) -> None:
        super().__init__(url, **kwargs)
        self.start_urls = [url + "/"]


# --- An item that is begun on a page of the sitemap, and ended in a frame -------------------------------


class Frames(SitemapSpider):
    name = "frames"
    sitemap_rules = (("/store/", "parse_store"),)

    def __init__(self, url: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sitemap_urls = [url + "/sitemap.xml"]
        self.url = url

    def parse_store(self, response: Any) -> Iterator[Request]:
        item = {"content": response.css("h1::text").get()}
        frame = response.urljoin(response.css("iframe::attr(src)").get())
        yield Request(frame, self.parse_hours, meta={"item": item})

    def parse_hours(self, response: Any) -> Iterator[dict[str, str]]:
        yield response.meta["item"] | {"open": response.css("td::text").get()}


def frames(url: str) -> dict[str, Answer]:
    entries = "".join(f"<url><loc>{url}/store/{n}</loc></url>" for n in range(MANY))
    xml = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()
    hours = html(f"<title>Hours</title><table><td>9 to 5<td>{words('hours', 50)}</table>")
    pages: dict[str, Answer] = {"/sitemap.xml": (200, {"Content-Type": "application/xml"}, xml)}
    for n in range(MANY):
        body = f"<h1>Shop {words(n, 2)}</h1><p>{words(('about', n), 80)}<iframe src=/hours/{n}></iframe>"
        pages |= {f"/store/{n}": framed(body), f"/hours/{n}": hours}
    return pages


# --- A pager that hands its number on -------------------------------------------------------------------


class Pager(Stranger):
    def parse(self, response: Any, number: int = 1) -> Iterator[Any]:
        for row in response.css("li"):
            yield {"content": row.css("::text").get()}
        if response.css("a.next"):
            yield response.follow(response.css("a.next")[0], cb_kwargs={"number": number + 1})


def pager(url: str) -> dict[str, Answer]:
    pages = {}
    for n in range(MANY):
        rows = "".join(f"<li>{words((n, row), 3)}" for row in range(3))
        more = f'<a class=next href="/?page={n + 1}">next</a>' if n + 1 < MANY else ""
        pages["/" if n == 0 else f"/?page={n}"] = framed(f"<h1>Branches</h1><ul>{rows}</ul>{more}")
    return pages


# --- Rules, and pages of which the title says nothing ------------------------------------------------------


class Ruled(CrawlSpider):
    name = "ruled"
    rules = (Rule(LinkExtractor("/region/")), Rule(LinkExtractor("/place/"), callback="parse_place"))

    def __init__(self, url: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls, self.url = [url + "/"], url

    def parse_place(self, response: Any) -> dict[str, str]:
        return {"content": response.css("address::text").get()}


def ruled(url: str) -> dict[str, Answer]:
    pages = {"/": framed(links([f"/region/{n}" for n in range(4)]), "Find us")}
    for region in range(4):
        places = range(region, MANY, 4)
        pages[f"/region/{region}"] = framed(
            links([f"/place/{n}" for n in places]) + words(("region", region), 40)
        )
        for n in places:
            pages[f"/place/{n}"] = framed(f"<address>{words(('place', n), 40)}</address>")
    return pages


# --- A list without end, of which an API tells --------------------------------------------------------------


class Scroll(Stranger):
    def parse(self, response: Any) -> Iterator[Request]:
        yield Request(f"{self.url}/api?offset=0", self.parse_api)

    def parse_api(self, response: Any) -> Iterator[Request]:
        found = response.json()
        for path in found["pages"]:
            yield response.follow(path, self.parse_page, cb_kwargs={"offset": found["offset"]})
        if found["pages"]:
            yield Request(f"{self.url}/api?offset={found['offset'] + 6}", self.parse_api)

    def parse_page(self, response: Any, offset: int) -> dict[str, str]:
        return {"content": response.css("h1::text").get()}


def scroll(url: str) -> dict[str, Answer]:
    pages = {"/": framed("<div id=app></div>")}
    for offset in range(0, MANY + 6, 6):
        found = [f"/page/{n}" for n in range(offset, min(offset + 6, MANY))]
        body = json.dumps({"offset": offset, "pages": found}).encode()
        pages[f"/api?offset={offset}"] = 200, {"Content-Type": "application/json"}, body
    for n in range(MANY):
        pages[f"/page/{n}"] = framed(f"<h1>{words(('title', n), 5)}</h1><p>{words(('text', n), 60)}")
    return pages


STRANGERS = {
    "frames": (Frames, frames, MANY),
    "a pager": (Pager, pager, 3 * MANY),
    "rules": (Ruled, ruled, MANY),
    "an API": (Scroll, scroll, MANY),
}


@pytest.mark.parametrize(("spider", "make", "contents"), STRANGERS.values(), ids=STRANGERS.keys())
def test_a_strangers_spider_gets_with_the_filter_what_it_got_without(
    crawl: Run, site: Any, tmp_path: Path, spider: type[Spider], make: Any, contents: int
) -> None:
    pages = make(site.url)

    def got(**settings: Any) -> set[str]:
        return {item["content"] for item in crawl(pages, spider, **settings).items}

    without = got(ADDONS={})
    assert len(without) == contents
    own = {"DEDUP_INDEX": f"file:{tmp_path}/index.sqlite", "DEDUP_CHROME": True}
    for _ in range(2):
        assert without - got(**own) == set()
