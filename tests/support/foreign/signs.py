"""Spiders whose items are in signs, and in what a browser draws: two pages have the same words and numbers, and differ."""

from typing import Any

import scrapy

from tests.support.foreign.site import Site, links, shell
from tests.support.foreign.spiders import one_from_each
from tests.support.pages.everyday import text


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
