"""Spiders of records: opinions, tickets, meetings, jobs, stores."""

import json
import re
from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider

from tests.support.foreign.site import Asked, Site, links, one_from_each, shell
from tests.support.pages.everyday import name, rows, text


def opinions(site: Site) -> type[scrapy.Spider]:
    """A list for each year; opinions are called by a number, and share nine tenths of their text"""
    years = range(2009, 2026)
    for year in years:
        paths = [f"/opinion/{year}-{at}" for at in range(11, 15)]
        site.pages[f"/opinions/{year}"] = shell(f"Opinions of {year}", links(*paths))
        for path in paths:
            number = path.rpartition("/")[2]
            own = f"<p>{text(450, 'opinion')}</p><p class=answer>{text(45, number)}</p>"
            site.pages[path] = shell("Opinions", f"<h1>Official Opinion {number}</h1>{own}", marked=True)

    class Opinions(scrapy.Spider):
        name = "opinions"
        start_urls = tuple(f"{site.url}/opinions/{year}" for year in years)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a", callback=self.opinion)

        def opinion(self, response: Any) -> Iterator[Any]:
            yield {"title": response.css("h1::text").get(), "text": response.css(".answer::text").get()}

    return Opinions


def tickets(site: Site) -> type[scrapy.Spider]:
    """Tickets that only say their numbers, some of them whether they are closed, or to which others they belong"""

    def ticket(at: int) -> str:
        near = [f"/ticket?id={100 + other % 40}" for other in (7 * at, 11 * at + 5)][: at % 3]
        return f"<h1>Ticket {100 + at}</h1><p>{('', 'closed')[at % 2]} {links(*near)}</p>"

    paths = [f"/ticket?id={100 + at}" for at in range(40)]
    site.pages["/"] = shell("Tickets", links(*paths), menu=60)
    for at, path in enumerate(paths):
        site.pages[path] = shell("Tickets", ticket(at), menu=60)

    def ticket(response: Any) -> Any:
        return {"title": response.css("h1::text").get(), "near": response.css("a::attr(href)").getall()}

    return one_from_each(site, "tickets", ticket)


def meetings(site: Site) -> type[scrapy.Spider]:
    """A calendar: each week the same meeting, with another date"""
    days = [f"{day} {month} 2026" for month in ("May", "June", "July", "August") for day in range(1, 29, 3)]
    site.pages["/calendar"] = shell("Calendar", links(*(f"/event/{at}" for at in range(len(days)))))
    for at, day in enumerate(days):
        body = f"<h1>Council meeting</h1><time>{day}</time><p>{text(120, 'council')}</p>"
        site.pages[f"/event/{at}"] = shell("Council meeting", body, marked=True)

    class Meetings(CrawlSpider):
        name = "meetings"
        start_urls = (site.url + "/calendar",)
        rules = (Rule(LinkExtractor(allow="/event/"), callback="parse_event", follow=True),)

        def parse_event(self, response: Any) -> Any:
            return {"title": response.css("h1::text").get(), "date": response.css("time::text").get()}

    return Meetings


def jobs(site: Site) -> type[scrapy.Spider]:
    """Ads of a few employers, who write much about themselves and a little about the job"""
    for page in range(5):
        found = [f"/job/{at}" for at in range(8 * page, 8 * page + 8)]
        following = f'<a rel=next href="/jobs?page={page + 1}">Next</a>' if page < 4 else ""
        site.pages[f"/jobs?page={page}"] = shell("Jobs", f"<ul>{links(*found)}</ul>{following}")
    for at in range(40):
        about, own = text(250, ("employer", at // 3)), text(25, ("job", at))
        body = f"<h1>{name(at // 3)} is hiring</h1><p>{about}</p><p class=job>{own}</p>"
        site.pages[f"/job/{at}"] = shell("Jobs", body)

    class Jobs(scrapy.Spider):
        name = "jobs"
        start_urls = (site.url + "/jobs?page=0",)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="ul a", callback=self.job)
            yield from response.follow_all(css="[rel=next]")

        def job(self, response: Any) -> Iterator[Any]:
            yield {"job": response.css(".job::text").get()}

    return Jobs


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
