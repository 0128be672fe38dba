"""Spiders whose items are in what no reader sees, or in a single number, and spiders that steer their crawls."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import scrapy

from tests.support.foreign.site import Site, links, shell
from tests.support.foreign.spiders import one_from_each
from tests.support.pages.everyday import name, text


def seats(site: Site) -> type[scrapy.Spider]:
    """The plan of a hall for each night: which seats are taken, only the classes of its cells say"""
    site.pages["/"] = shell("Plays", links(*(f"/night/{at}" for at in range(40))))
    for at in range(40):
        cells = "".join(
            f'<td class="{"taken" if (at * 7 + seat * 3) % 41 < 20 else "free"}">{seat}</td>'
            for seat in range(60)
        )
        body = f"<h1>The play</h1><table><tr>{cells}</tr></table><p>{text(80, 'hall')}</p>"
        site.pages[f"/night/{at}"] = shell("Seats", body, marked=True)

    def night(response: Any) -> Any:
        return {"free": response.css("td.free::text").getall()}

    return one_from_each(site, "seats", night)


def charts(site: Site) -> type[scrapy.Spider]:
    """What a page has to say is the line of a chart: the points of an SVG"""
    site.pages["/"] = shell("Gauges", links(*(f"/gauge/{at}/chart" for at in range(40))))
    for at in range(40):
        points = " ".join(f"{x},{(at * x * 7 + x * x) % 90}" for x in range(30))
        body = f"<h1>Water level</h1><svg><polyline points='{points}'/></svg><p>{text(90, 'river')}</p>"
        site.pages[f"/gauge/{at}/chart"] = shell("Gauge", body)

    def gauge(response: Any) -> Any:
        return {"points": response.css("polyline::attr(points)").get()}

    return one_from_each(site, "charts", gauge)


def stars(site: Site) -> type[scrapy.Spider]:
    """Ratings: how many stars a film has, only the width of a bar says, and its month the datetime of a time"""
    site.pages["/"] = shell("Films", links(*(f"/film/{at}/rating" for at in range(40))))
    for at in range(40):
        body = (
            f"<h1>Rating</h1><div class=bar style='width: {2 * at + 3}%'></div>"
            f"<time datetime='2025-{at % 12 + 1:02}-01'>lately</time><p>{text(90, 'film')}</p>"
        )
        site.pages[f"/film/{at}/rating"] = shell("Rating", body)

    def film(response: Any) -> Any:
        found = response.css(".bar::attr(style)").re_first(r"\d+")
        return {"width": found, "month": response.css("time::attr(datetime)").get()}

    return one_from_each(site, "stars", film)


def protected(site: Site) -> type[scrapy.Spider]:
    """Addresses of mail are hidden from spiders by a proxy: encoded in an attribute, with another key each time"""
    asked = iter(range(1, 10_000))

    def hidden(address: str) -> str:
        key = next(asked) % 200 + 17
        return bytes([key, *(octet ^ key for octet in address.encode())]).hex()

    def page(at: int) -> Any:
        return lambda _: shell(
            "Office",
            f"<h1>Office</h1><a href='/cdn-cgi/l/email-protection' data-cfemail='{hidden(f'office{at}@a.org')}'>"
            f"[email protected]</a><p>{text(90, 'office')}</p>",
        )

    site.pages["/"] = shell("Offices", links(*(f"/office/{at}" for at in range(40))))
    site.pages |= {f"/office/{at}": page(at) for at in range(40)}

    def office(response: Any) -> Any:
        octets = bytes.fromhex(response.css("::attr(data-cfemail)").get())
        return {"mail": bytes(octet ^ octets[0] for octet in octets[1:]).decode()}

    return one_from_each(site, "protected", office, css="a[href^='/office']")


class Cleaner:
    """A spider middleware that strips what campaigns add to URLs, and tells requests which section they are of."""

    async def process_spider_output(self, response: Any, result: Any) -> AsyncIterator[Any]:
        async for each in result:
            if isinstance(each, scrapy.Request):
                section = each.url.partition("section=")[2].partition("&")[0]
                yield each.replace(url=each.url.partition("&utm")[0], meta=each.meta | {"section": section})
            else:
                yield each | {"section": response.meta.get("section", "")}


def cleaned(site: Site) -> type[scrapy.Spider]:
    """A spider middleware changes the URLs of requests, and adds to items what a request was for"""
    places = [
        f"/a?section={part}&id={at}&utm_source={part}{at}" for at in range(20) for part in ("in", "out")
    ]
    site.pages["/"] = shell("Articles", links(*(place.replace("&", "&amp;") for place in places)))
    for at in range(20):
        body = f"<h1>{name(at)}</h1><p>{text(120, at)}</p>"
        site.pages |= {f"/a?section={part}&id={at}": shell(name(at), body) for part in ("in", "out")}

    class Cleaned(scrapy.Spider):
        name = "cleaned"
        start_urls = (site.url,)
        custom_settings = {"SPIDER_MIDDLEWARES": {Cleaner: 543}}  # noqa: RUF012 (as Scrapy declares it)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a", callback=self.article)

        def article(self, response: Any) -> Iterator[Any]:
            yield {"title": response.css("h1::text").get()}

    return Cleaned
