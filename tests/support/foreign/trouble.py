"""Spiders that help themselves: they retry, go elsewhere, take errors for contents, or tell requests apart their own way."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import scrapy
from scrapy.utils.request import fingerprint

from tests.support.foreign.site import Asked, Reply, Site, links, shell
from tests.support.pages.everyday import name, rows, text


def captcha(site: Site) -> type[scrapy.Spider]:
    """Every third page is a captcha with status 200; the callback sends its request again"""
    asked_for: Counter[str] = Counter()

    def member(asked: Asked) -> str:
        asked_for[asked.path] += 1
        at = int(asked.path.rpartition("/")[2])
        if at % 3 == 0 and asked_for[asked.path] == 1:
            return f"<title>Robot?</title><h1>Are you a robot?</h1><p>{text(50, 'robot')}</p>"
        return shell("Team", f"<h1>Our team</h1><b>{name(at)}</b><p>{text(40, 'team')}</p>")

    site.pages |= {f"/team/{at}": member for at in range(40)}
    site.pages["/"] = shell("Team", links(*(f"/team/{at}" for at in range(40))))

    class Captcha(scrapy.Spider):
        name = "captcha"
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a", callback=self.member)

        def member(self, response: Any) -> Iterator[Any]:
            if "robot" in response.text:
                yield response.request.replace(dont_filter=True)
            else:
                yield {"name": response.css("b::text").get()}

    return Captcha


def mirror(site: Site) -> type[scrapy.Spider]:
    """Where a page fails, its errback asks another host for it"""

    def paper(asked: Asked) -> str | Reply:
        at = int(asked.query["id"])
        if at % 2 and asked.headers["host"].startswith("127"):
            return Reply(status=410)
        return shell(
            "Paper", f"<h1>{name(at)}</h1><p class=own>{text(25, at)}</p><p>{text(120, 'paper')}</p>"
        )

    site.pages["/paper"] = paper

    class Mirror(scrapy.Spider):
        name = "mirror"

        async def start(self) -> Any:
            for at in range(40):
                yield scrapy.Request(f"{site.url}/paper?id={at}", errback=self.failed)

        def parse(self, response: Any) -> Iterator[Any]:
            yield {"title": response.css("h1::text").get(), "text": response.css(".own::text").get()}

        def failed(self, failure: Any) -> Iterator[Any]:
            yield scrapy.Request(failure.request.url.replace(site.url, site.other))

    return Mirror


class ByRegion:
    """A fingerprinter of the project: a header belongs to what is asked for."""

    def fingerprint(self, request: scrapy.Request) -> bytes:
        return fingerprint(request, include_headers=["X-Region"])


def headers(site: Site) -> type[scrapy.Spider]:
    """A fingerprinter of its own: one URL is asked for with another header each time"""

    def near(asked: Asked) -> str:
        region = int(asked.headers["x-region"])
        shown = "".join(f"<b>{name(at, 'dealer')}</b>" for at in range(2 * region, 2 * region + 2))
        return shell("Dealers near you", f"<h1>Dealers near you</h1>{shown}<p>{text(40, 'dealer')}</p>")

    site.pages["/near"] = near

    class Headers(scrapy.Spider):
        name = "headers"
        custom_settings: ClassVar[dict[str, Any]] = {"REQUEST_FINGERPRINTER_CLASS": ByRegion}

        async def start(self) -> Any:
            for region in range(20):
                yield scrapy.Request(site.url + "/near", headers={"X-Region": str(region)})

        def parse(self, response: Any) -> Iterator[Any]:
            for dealer in response.css("b::text").getall():
                yield {"dealer": dealer}

    return Headers


def closed(site: Site) -> type[scrapy.Spider]:
    """Pages with status 404 are contents, too: a closed shop says what it was"""

    def shop(asked: Asked) -> Reply:
        at = int(asked.query["shop"])
        said = "is closed for good" if at % 2 else f"is open till {at}"
        return Reply(
            shell("Shop", f"<h1>Shop</h1><b>{name(at)}</b><i>{said}</i><p>{text(30, 's')}</p>"),
            404 if at % 2 else 200,
        )

    site.pages["/shop"] = shop

    class Closed(scrapy.Spider):
        name = "closed"
        handle_httpstatus_list = (404,)
        start_urls = (site.url + "/shop?shop=0",)

        def parse(self, response: Any) -> Iterator[Any]:
            yield {"shop": response.css("b::text").get(), "state": response.css("i::text").get()}
            following = int(response.url.rpartition("=")[2]) + 1
            if following < 40:
                yield response.follow(f"/shop?shop={following}")

    return Closed


def languages(site: Site) -> type[scrapy.Spider]:
    """The same data in two languages, of which only the labels differ"""
    labels = {"en": "Height Width Weight Colour", "de": "Länge Breite Gewicht Farbe"}
    for language, words in labels.items():
        site.pages[f"/{language}/"] = shell("Data", links(*(f"/{language}/sheet/{at}" for at in range(20))))
        for at in range(20):
            cells = [(label, f"{at * step + 11}") for step, label in enumerate(words.split(), 3)]
            body = f"<h1>{name(at)}</h1>{rows(cells)}<p>{text(60, at)}</p>"
            site.pages[f"/{language}/sheet/{at}"] = shell(name(at), body)

    class Languages(scrapy.Spider):
        name = "languages"
        start_urls = tuple(f"{site.url}/{language}/" for language in labels)

        def parse(self, response: Any) -> Iterator[Any]:
            if called := response.css("h1::text").get():
                yield {"name": called, "labels": response.css("th::text").getall()}
            yield from response.follow_all(css="a")

    return Languages
