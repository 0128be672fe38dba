"""Spiders of shops: products, prices, feeds."""

from collections.abc import Iterator
from typing import Any, ClassVar

import scrapy
from scrapy.exceptions import DropItem

from tests.support.foreign.site import Asked, Reply, Site, links, shell
from tests.support.pages.everyday import name, text


def price(number: int) -> str:
    return f"{9 + 3 * number}.{90 - number}"


def variants(site: Site) -> type[scrapy.Spider]:
    """Depth first; four colours of each product, which share a long text"""
    colours = ["red", "green", "blue", "black"]
    site.pages["/"] = shell("Lamps", links(*(f"/lamp/{at}?colour=red" for at in range(10))))

    def lamp(asked: Asked) -> str:
        at, colour = int(asked.path.rpartition("/")[2]), asked.query["colour"]
        body = f"<h1>{name(at)}</h1><b>{colour}</b><i>{price(4 * at + colours.index(colour))}</i><p>{text(250, at)}</p>"
        return shell(name(at), body + links(*(f"/lamp/{at}?colour={other}" for other in colours)))

    site.pages |= {f"/lamp/{at}": lamp for at in range(10)}

    class Variants(scrapy.Spider):
        name = "variants"
        start_urls = (site.url,)
        custom_settings: ClassVar[dict[str, Any]] = {"DEPTH_PRIORITY": -1, "CONCURRENT_REQUESTS": 1}

        def parse(self, response: Any) -> Iterator[Any]:
            if called := response.css("h1::text").get():
                yield {
                    "name": called,
                    "colour": response.css("b::text").get(),
                    "price": response.css("i::text").get(),
                }
            yield from response.follow_all(css="a")

    return Variants


def sessions(site: Site) -> type[scrapy.Spider]:
    """A session for each region, by cookie jars: the same URLs, with other prices"""

    def enter(asked: Asked) -> Reply:
        body = shell("Shop", links(*(f"/item/{at}" for at in range(10))))
        return Reply(body, headers=(("Set-Cookie", f"region={asked.query['region']}; Path=/"),))

    def item(asked: Asked) -> str:
        at, region = int(asked.path.rpartition("/")[2]), int(asked.cookies["region"])
        return shell(name(at), f"<h1>{name(at)}</h1><b>{price(at + 10 * region)}</b><p>{text(80, at)}</p>")

    site.pages |= {"/enter": enter} | {f"/item/{at}": item for at in range(10)}

    class Sessions(scrapy.Spider):
        name = "sessions"

        async def start(self) -> Any:
            for region in range(4):
                yield scrapy.Request(f"{site.url}/enter?region={region}", meta={"cookiejar": region})

        def parse(self, response: Any) -> Iterator[Any]:
            jar = {"cookiejar": response.meta["cookiejar"]}
            yield from response.follow_all(css="a", callback=self.item, meta=jar, dont_filter=True)

        def item(self, response: Any) -> Iterator[Any]:
            yield {"name": response.css("h1::text").get(), "price": response.css("b::text").get()}

    return Sessions


def gallery(site: Site) -> type[scrapy.Spider]:
    """A page for each picture, which is loaded late: its address is an attribute"""
    for at in range(40):
        picture = f'<img src="/blank.gif" data-src="/img/{name(at).split()[0]}-{at}.jpg">'
        following = f'<a class=next href="/photo?p={at + 1}">Next</a>' if at < 39 else ""
        site.pages[f"/photo?p={at}"] = shell(
            "Gallery", f"<h1>Gallery</h1>{picture}{following}<p>{text(20, 'g')}</p>"
        )

    class Gallery(scrapy.Spider):
        name = "gallery"
        start_urls = (site.url + "/photo?p=0",)

        def parse(self, response: Any) -> Iterator[Any]:
            yield {"image": response.css("img::attr(data-src)").get()}
            yield from response.follow_all(css="a.next")

    return Gallery


def on_request(site: Site) -> type[scrapy.Spider]:
    """A pipeline drops items without a price; a second page of the product has it"""
    site.pages["/"] = shell("Shop", links(*(f"/o/{at}{end}" for end in ("/offer", "") for at in range(40))))
    for at in range(40):
        for end, shown in (("", "on request"), ("/offer", price(at))):
            body = f"<h1>{name(at)}</h1><p>{text(70, at)}</p><b>{shown}</b>"
            site.pages[f"/o/{at}{end}"] = shell(name(at), body, marked=True)

    class Priced:
        def process_item(self, item: Any) -> Any:
            if item["price"] == "on request":
                raise DropItem("no price")
            return item

    class OnRequest(scrapy.Spider):
        name = "on_request"
        start_urls = (site.url,)
        custom_settings: ClassVar[dict[str, Any]] = {"ITEM_PIPELINES": {Priced: 100}}

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a", callback=self.product)

        def product(self, response: Any) -> Iterator[Any]:
            yield {"name": response.css("h1::text").get(), "price": response.css("b::text").get()}

    return OnRequest
