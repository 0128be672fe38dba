"""Spiders of places: stores, branches, lots."""

import json
import re
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider

from tests.support.foreign.site import Asked, Site, links, shell
from tests.support.pages.everyday import name, rows, text


def address(number: int) -> str:
    return f"{7 * number + 3} {name(number, 'street').split()[0]} Street"


def phone(number: int) -> str:
    return f"0{20 + number} {551000 + 37 * number}"


def record(number: int) -> dict[str, Any]:
    return {
        "name": f"Store {name(number)}",
        "streetAddress": address(number),
        "telephone": phone(number),
        "lat": round(47 + number / 97, 4),
    }


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


def locator(site: Site) -> type[scrapy.Spider]:
    """CrawlSpider, item loaders; only the address is a store's own"""
    site.pages["/"] = shell("Stores", links(*(f"/stores/{at}.html" for at in range(40))))
    for at in range(40):
        body = (
            f"<h1>Find us</h1><p class=address>{address(at)}<p class=phone>{phone(at)}<p>{text(40, 'chain')}"
        )
        site.pages[f"/stores/{at}.html"] = shell("Find us", body)

    class Locator(CrawlSpider):
        name = "locator"
        start_urls = (site.url,)
        rules = (Rule(LinkExtractor(allow=r"/stores/\d+"), callback="parse_store"),)

        def parse_store(self, response: Any) -> Any:
            loader = ItemLoader({}, response=response)
            loader.add_css("address", ".address::text")
            loader.add_css("phone", ".phone::text")
            loader.add_value("url", response.url)
            return loader.load_item()

    return Locator


def regions(site: Site) -> type[scrapy.Spider]:
    """A page for each region, chosen in a form, with a table of its branches"""
    names = [f"R{at}" for at in range(11)]
    options = "".join(f"<option value={one}>{one}</option>" for one in names)
    site.pages["/"] = shell("Branches", f"<select name=region>{options}</select>")

    def branches(asked: Asked) -> str:
        first = 5 * names.index(asked.query["region"])
        lines = "".join(f"<tr><td>{name(at)}<td>{address(at)}" for at in range(first, first + 5))
        return shell("Branches", f"<h1>Branches</h1><table>{lines}</table>", marked=True)

    site.pages["/branches"] = branches

    class Regions(scrapy.Spider):
        name = "regions"
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            for region in response.css("option::attr(value)").getall():
                yield scrapy.FormRequest(
                    site.url + "/branches", self.rows, method="GET", formdata={"region": region}
                )

        def rows(self, response: Any) -> Iterator[Any]:
            for row in response.css("tr"):
                yield {"name": row.css("td::text").get(), "address": row.css("td::text")[-1].get()}

    return Regions


def branches(site: Site) -> type[scrapy.Spider]:
    """Lists are paged by cb_kwargs, and branches have a number in the query"""

    def listed(asked: Asked) -> str:
        first = 9 * int(asked.query["page"])
        return shell("All branches", links(*(f"/branch?branchId={at}" for at in range(first, first + 9))))

    def branch(asked: Asked) -> str:
        at = int(asked.query["branchId"])
        return shell("Branch", f"<h2>{name(at)}</h2><p id=at>{address(at)}</p><p>{text(70, 'branch')}</p>")

    site.pages |= {"/list": listed, "/branch": branch}

    class Branches(scrapy.Spider):
        name = "branches"

        async def start(self) -> Any:
            yield scrapy.Request(site.url + "/list?page=0", cb_kwargs={"page": 0})

        def parse(self, response: Any, page: int) -> Iterator[Any]:
            yield from response.follow_all(css="a", callback=self.branch, cb_kwargs={"page": page})
            if page < 4:
                yield response.follow(f"/list?page={page + 1}", cb_kwargs={"page": page + 1})

        def branch(self, response: Any, page: int) -> Iterator[Any]:
            yield {"name": response.css("h2::text").get(), "address": response.css("#at::text").get()}

    return Branches


def lots(site: Site) -> type[scrapy.Spider]:
    """Two hosts of one owner; places are called by a letter and a number"""
    cities = {at: f"Lot {'ABCDE'[at % 5]}{800 + at}" for at in range(80)}
    for at, called in cities.items():
        body = (
            f"<h1>Parking {called}</h1><p class=at>{called}, {address(at // 4)}</p><p>{text(60, 'lot')}</p>"
        )
        site.pages[f"/lot/{called.split()[1]}"] = shell(f"Parking {called}", body)
    for half, path in ((0, "/north"), (1, "/south")):
        codes = [called.split()[1] for at, called in cities.items() if at % 2 == half]
        site.pages[path] = shell("Parking", links(*(f"/lot/{code}" for code in codes)))

    class Lots(scrapy.Spider):
        name = "lots"
        allowed_domains = ("127.0.0.1", "localhost")
        start_urls = (site.url + "/north", site.other + "/south")

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a", callback=self.lot)

        def lot(self, response: Any) -> Iterator[Any]:
            yield {"name": response.css("h1::text").get(), "address": response.css(".at::text").get()}

    return Lots


def scripts(site: Site) -> type[scrapy.Spider]:
    """The stores of a state are in a variable of a script, which is found by a regular expression"""
    site.pages["/"] = shell("Store finder", links(*(f"/stores?state={at}" for at in range(20))))

    def stores(asked: Asked) -> str:
        first = 3 * int(asked.query["state"])
        data = json.dumps([record(at) for at in range(first, first + 3)])
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


def markers(site: Site) -> type[scrapy.Spider]:
    """Places are attributes of the markers of a map"""
    site.pages["/"] = shell("Map", links(*(f"/map/{at}" for at in range(14))))
    for page in range(14):
        shown = "".join(
            f'<div class=marker data-lat="{record(at)["lat"]}" data-title="{name(at)}"></div>'
            for at in range(3 * page, 3 * page + 3)
        )
        site.pages[f"/map/{page}"] = shell("Map", f"<h1>Our places</h1>{shown}<p>{text(30, 'map')}</p>")

    class Markers(scrapy.Spider):
        name = "markers"
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            for marker in response.css(".marker"):
                yield {"lat": marker.attrib["data-lat"], "name": marker.attrib["data-title"]}
            yield from response.follow_all(css="a")

    return Markers


def linked_data(site: Site) -> type[scrapy.Spider]:
    """Sitemap; all of an item is the JSON-LD of a page"""
    for at in range(40):
        data = f'<script type="application/ld+json">{json.dumps({"@type": "Store"} | record(at))}</script>'
        site.pages[f"/s/{at}"] = shell("Store details", f"<h1>Store</h1><p>{text(50, 'ld')}</p>", head=data)

    class LinkedData(SitemapSpider):
        name = "linked_data"
        sitemap_urls = (site.sitemap([f"/s/{at}" for at in range(40)]),)

        def parse(self, response: Any) -> Iterator[Any]:
            for script in response.xpath('//script[@type="application/ld+json"]/text()').getall():
                yield json.loads(script)

    return LinkedData


def grid(site: Site) -> type[scrapy.Spider]:
    """A search around each point of a grid, whose answers are fragments that overlap"""

    def near(asked: Asked) -> str:
        first = 2 * int(asked.query["lat"]) + 10 * int(asked.query["lon"])
        found = [f"<li><b>{name(at)}</b><i>{address(at)}</i>" for at in range(first, first + 4)]
        return f"<ul>{''.join(found)}</ul>"

    site.pages["/near"] = near

    class Grid(scrapy.Spider):
        name = "grid"

        async def start(self) -> Any:
            for lat in range(5):
                for lon in range(4):
                    yield scrapy.Request(f"{site.url}/near?lat={lat}&lon={lon}", cb_kwargs={"lat": lat})

        def parse(self, response: Any, lat: int) -> Iterator[Any]:
            for found in response.css("li"):
                yield {"name": found.css("b::text").get(), "address": found.css("i::text").get()}

    return Grid
