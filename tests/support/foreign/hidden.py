"""Spiders whose items are in what no reader sees in words, in signs, or in a single number; and spiders that steer their crawls."""

from typing import Any

import scrapy

from tests.support.foreign.site import Site, links, one_from_each, shell
from tests.support.pages.everyday import text


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


def ticks(site: Site) -> type[scrapy.Spider]:
    """A table of what each tariff has, as ticks and crosses, under its rating in stars and its trend: plus or minus"""
    site.pages["/"] = shell("Tariffs", links(*(f"/tariff?id={100 + at}" for at in range(40))))
    for at in range(40):
        rows = "".join(f"<tr><td>Option {row}<td>{'✓' if at >> row & 1 else '✗'}" for row in range(6))
        rating = f"<b>{'★' * (at % 5 + 1)}{'☆' * (4 - at % 5)}</b><i>{'-' if at % 3 else '+'}3</i>"
        body = f"<h1>Tariff</h1>{rating}<table>{rows}</table><p>{text(90, 'tariff')}</p>"
        site.pages[f"/tariff?id={100 + at}"] = shell("Tariff", body)

    def tariff(response: Any) -> Any:
        return {
            "has": response.css("td + td::text").getall(),
            "is": response.css("b::text, i::text").getall(),
        }

    return one_from_each(site, "ticks", tariff)


def gauges(site: Site) -> type[scrapy.Spider]:
    """How full a tank is, a meter and the height of a column say; whom to call, a link without the number in its text"""
    site.pages["/"] = shell("Tanks", links(*(f"/tank?no={100 + at}" for at in range(40))))
    for at in range(40):
        body = (
            f"<h1>Tank</h1><meter value={at * 7 % 41} max=50></meter><svg><rect height={at * 11 % 43} y=0 /></svg>"
            f"<a href='tel:+49{at * 7919}'>Call the keeper</a><p>{text(90, 'tank')}</p>"
        )
        site.pages[f"/tank?no={100 + at}"] = shell("Tank", body)

    def tank(response: Any) -> Any:
        found = "meter::attr(value), rect::attr(height), a[href^='tel:']::attr(href)"
        return {"says": response.css(found).getall()}

    return one_from_each(site, "gauges", tank)
