"""Spiders of stores."""

import json
import re
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.spiders import SitemapSpider

from tests.support.foreign.site import Asked, Site, links, shell
from tests.support.pages.everyday import name, rows, text


def address(number: int) -> str:
    return f"{7 * number + 3} {name(number, 'street').split()[0]} Street"


def frames(site: Site) -> type[scrapy.Spider]:
    """Sitemap; an item is built on the store's page, and finished on a frame, which looks like that of other stores"""
    for at in range(40):
        frame = f'<iframe src="/hours/{at}"></iframe>'
        site.pages[f"/store/{at}"] = shell("Our stores", f"<h1>{name(at)}</h1><p>{address(at)}</p>{frame}")
        days = rows([(day, f"{8 + at % 4}:00 to 18:00") for day in ("Monday", "Tuesday", "Friday")])
        site.pages[f"/hours/{at}"] = f"<title>Hours</title>{days}<p>{text(60, 'hours')}</p>"

    class Frames(SitemapSpider):
        name = "frames"
        sitemap_urls = (site.sitemap([f"/store/{at}" for at in range(40)]),)

        def parse(self, response: Any) -> Iterator[Any]:
            item = {"name": response.css("h1::text").get(), "address": response.css("p::text").get()}
            yield response.follow(response.css("iframe::attr(src)").get(), self.hours, meta={"item": item})

        def hours(self, response: Any) -> Iterator[Any]:
            yield response.meta["item"] | {"hours": response.css("td::text").getall()}

    return Frames


def scripts(site: Site) -> type[scrapy.Spider]:
    """The stores of a state are in a variable of a script, which is found by a regular expression"""
    site.pages["/"] = shell("Store finder", links(*(f"/stores?state={at}" for at in range(20))))

    def stores(asked: Asked) -> str:
        first = 3 * int(asked.query["state"])
        data = json.dumps([{"name": name(at), "at": address(at)} for at in range(first, first + 3)])
        return shell(
            "Store finder", f"<h1>Find a store</h1><script>var stores = {data}; draw(stores);</script>"
        )

    site.pages["/stores"] = stores

    class Scripts(scrapy.Spider):
        name = "scripts"
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a", callback=self.stores)

        def stores(self, response: Any) -> Iterator[Any]:
            found = re.search(r"stores = (\[.*?\]);", response.text)
            yield from json.loads(found[1]) if found else []

    return Scripts
