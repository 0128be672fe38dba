"""Spiders that put their items together: of lists and details, of several pages, inline, and of feeds."""

import json
from collections.abc import Iterator
from typing import Any

import scrapy
from parsel import Selector
from scrapy.dupefilters import RFPDupeFilter
from scrapy.http import Response
from scrapy.spiders import SitemapSpider

from tests.support.foreign.site import Asked, Site, links, shell
from tests.support.pages.everyday import name, text


def fragments(site: Site) -> type[scrapy.Spider]:
    """Infinite scroll: a form is posted, the answer is JSON with a fragment of HTML, whose cards lead to articles"""

    def more(asked: Asked) -> str:
        at = int(asked.form["page"])
        cards = [
            f"<article><h3>{name(one)}</h3>{links(f'/story/{one}/')}</article>"
            for one in range(8 * at, 8 * at + 8)
        ]
        return json.dumps({"success": True, "data": {"content": "".join(cards), "posts_end": at == 4}})

    site.pages["/ajax.json"] = more
    for at in range(40):
        body = f"<h1>Review</h1><b>{at % 5} of 5</b><p class=text>{text(12, ('story', at))}</p><p>{text(70, 'about')}</p>"
        site.pages[f"/story/{at}/"] = shell("Reviews", body, marked=True)

    class Fragments(scrapy.Spider):
        name = "fragments"

        async def start(self) -> Any:
            yield self.more(0)

        def more(self, page: int) -> scrapy.FormRequest:
            form = {"action": "load_more", "page": str(page)}
            return scrapy.FormRequest(site.url + "/ajax.json", formdata=form, meta={"page": page})

        def parse(self, response: Any) -> Iterator[Any]:
            found = response.json()["data"]
            for href in Selector(found["content"]).css("a::attr(href)").getall():
                yield response.follow(href, self.story)
            if not found["posts_end"]:
                yield self.more(response.meta["page"] + 1)

        def story(self, response: Any) -> Iterator[Any]:
            yield {"stars": response.css("b::text").get(), "text": response.css(".text::text").get()}

    return Fragments


def twice(site: Site) -> type[scrapy.Spider]:
    """The same item from the list, and more of it from its page; lists by city and by trade show the same shops"""

    def card(at: int) -> str:
        return f"<li><b>{name(at)}</b> {links(f'/shop/{at}')}</li>"

    lists = {f"/{kind}/{at}": range(at, 20, 4) for kind in ("city", "trade") for at in range(4)}
    site.pages["/"] = shell("Shops", links(*lists))
    for path, found in lists.items():
        site.pages[path] = shell("Shops", f"<h1>Shops</h1><ul>{''.join(map(card, found))}</ul>")
    for at in range(20):
        site.pages[f"/shop/{at}"] = shell(
            "Shop", f"<h1>{name(at)}</h1><i>{30000 + 71 * at}</i><p>{text(60, 'shop')}</p>"
        )

    class Twice(scrapy.Spider):
        name = "twice"
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a", callback=self.list)

        def list(self, response: Any) -> Iterator[Any]:
            for row in response.css("li b"):
                item = {"name": row.css("::text").get()}
                yield item
                yield response.follow(row.xpath("../a/@href").get(), self.shop, meta={"item": item})

        def shop(self, response: Any) -> Iterator[Any]:
            yield response.meta["item"] | {"postcode": response.css("i::text").get()}

    return Twice


def assembled(site: Site) -> type[scrapy.Spider]:
    """An item goes through three pages by meta: a product, its delivery, and its reviews, of which most have none"""
    site.pages["/"] = shell("Shop", links(*(f"/p/{at}" for at in range(40))))
    for at in range(40):
        body = f"<h1>{name(at)}</h1><p>{text(60, at)}</p>{links(f'/p/{at}/delivery', f'/p/{at}/reviews')}"
        site.pages[f"/p/{at}"] = shell(name(at), body)
        site.pages[f"/p/{at}/delivery"] = shell(
            "Delivery", f"<h1>Delivery</h1><i>{at % 3} days</i><p>{text(80, 'd')}</p>"
        )
        site.pages[f"/p/{at}/reviews"] = shell(
            "Reviews", f"<h1>Reviews</h1><em>None yet</em><p>{text(80, 'r')}</p>"
        )

    class Assembled(scrapy.Spider):
        name = "assembled"
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a", callback=self.product)

        def product(self, response: Any) -> Iterator[Any]:
            item = {"name": response.css("h1::text").get()}
            delivery, reviews = response.css("a[href^='/p']::attr(href)").getall()
            yield response.follow(delivery, self.delivery, meta={"item": item, "next": reviews})

        def delivery(self, response: Any) -> Iterator[Any]:
            item = response.meta["item"] | {"days": response.css("i::text").get()}
            yield response.follow(response.meta["next"], self.reviews, meta={"item": item})

        def reviews(self, response: Any) -> Iterator[Any]:
            yield response.meta["item"] | {"reviews": response.css("em::text").get()}

    return Assembled


def awaits(site: Site) -> type[scrapy.Spider]:
    """A callback awaits page after page of a thread, and makes one item of them all"""
    site.pages["/"] = shell("Forum", links(*(f"/t/{at}?page=1" for at in range(40))))
    for at in range(40):
        for page in (1, 2, 3):
            ahead = f"<a class=next href='/t/{at}?page={page + 1}'>Next</a>" if page < 3 else ""
            body = f"<h1>Thread</h1><p class=post>{text(15, (at, page))}</p><p>{text(70, 'rules')}</p>{ahead}"
            site.pages[f"/t/{at}?page={page}"] = shell("Thread", body)

    class Awaits(scrapy.Spider):
        name = "awaits"
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a[href*=page]", callback=self.thread)

        async def thread(self, response: Any) -> Any:
            posts = response.css(".post::text").getall()
            while ahead := response.css(".next::attr(href)").get():
                response = await self.crawler.engine.download_async(response.follow(ahead))
                posts += response.css(".post::text").getall()
            yield {"posts": posts}

    return Awaits


def alternates(site: Site) -> type[scrapy.Spider]:
    """Sitemap with alternates: a page in two languages, of which the label and the currency differ, and no more"""
    places = []
    for at in range(20):
        for language, label, sign in (("en", "Price", "USD"), ("de", "Preis", "EUR")):
            body = f"<h1>{name(at)}</h1><b>{label} {at}.90 {sign}</b><p>{text(90, at)}</p>"
            site.pages[f"/{language}/p/{at}"] = shell(name(at), body, marked=True)
        other = f'<xhtml:link rel="alternate" hreflang="de" href="{site.url}/de/p/{at}"/>'
        places.append(f"<url><loc>{site.url}/en/p/{at}</loc>{other}</url>")
    named = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"'
    site.pages["/sitemap.xml"] = f"<urlset {named}>{''.join(places)}</urlset>"

    class Alternates(SitemapSpider):
        name = "alternates"
        sitemap_urls = (site.url + "/sitemap.xml",)
        sitemap_alternate_links = True

        def parse(self, response: Any) -> Iterator[Any]:
            yield {"name": response.css("h1::text").get(), "price": response.css("b::text").get()}

    return Alternates


class ById(RFPDupeFilter):
    """Asks for each id once, whatever else is in the URL; and for lists as often as they are linked."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.ids: set[str] = set()

    def request_seen(self, request: scrapy.Request) -> bool:
        _, found, number = request.url.partition("id=")
        if not found:
            return False
        seen = number.partition("&")[0] in self.ids
        self.ids.add(number.partition("&")[0])
        return seen


def by_id(site: Site) -> type[scrapy.Spider]:
    """A dupefilter of its own, which knows ids; the pages of a list are followed with dont_filter, and lead to each other"""

    def page(asked: Asked) -> str:
        first = 10 * int(asked.query.get("page", 0))
        rows = links(*(f"/ad?ref=list{first}&id={at}" for at in range(first, min(40, first + 10))))
        ahead = f"<a rel=next href='/ads?page={first // 10 + 1}'>Next</a>" if first < 30 else ""
        return shell("Ads", f"<h1>Ads</h1>{rows}{ahead}")

    def ad(asked: Asked) -> str:
        at = int(asked.query["id"])
        return shell(
            "Ad", f"<h1>For sale</h1><b>{name(at)}</b><i>{17 * at} km</i><p>{text(90, 'seller')}</p>"
        )

    site.pages |= {"/ads": page, "/ad": ad}

    class ByIds(scrapy.Spider):
        name = "by_id"
        start_urls = (site.url + "/ads",)
        custom_settings = {"DUPEFILTER_CLASS": ById}  # noqa: RUF012 (as Scrapy declares it)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css="a[href*=id]", callback=self.ad)
            yield from response.follow_all(css="a[rel=next]", callback=self.parse, dont_filter=True)

        def ad(self, response: Any) -> Iterator[Any]:
            yield {"name": response.css("b::text").get(), "driven": response.css("i::text").get()}

    return ByIds


def fed(site: Site) -> type[scrapy.Spider]:
    """start() reads two feeds by itself; an item has what the feed says of it, and a word of its page"""
    for feed in (0, 1):
        entries = "".join(
            f"<item><title>{name(at)}</title><link>{site.url}/n/{at}?feed={feed}</link></item>"
            for at in range(20 * feed, 20 * feed + 20)
        )
        site.pages[f"/{feed}/rss.xml"] = f"<rss><channel>{entries}</channel></rss>"
    for at in range(40):
        site.pages[f"/n/{at}"] = shell(
            "News", f"<h1>News</h1><p>This article is for members.</p><p>{text(80, 'wall')}</p>"
        )

    class Fed(scrapy.Spider):
        name = "fed"

        async def start(self) -> Any:
            for feed in (0, 1):
                request = scrapy.Request(f"{site.url}/{feed}/rss.xml")
                response: Response = await self.crawler.engine.download_async(request)
                for entry in Selector(response.text, type="xml").css("item"):
                    title, link = entry.css("title::text").get(), entry.css("link::text").get()
                    yield scrapy.Request(link, self.news, cb_kwargs={"title": title})

        def news(self, response: Any, title: str) -> Iterator[Any]:
            yield {"title": title, "open": "for members" not in response.text}

    return Fed


def pending(site: Site) -> type[scrapy.Spider]:
    """Callbacks and errbacks count what is open, and the last of them makes the items of all; half of the pages are copies"""
    paths = [f"/m/{at}{end}" for at in range(40) for end in ("", "?print=1")]
    site.pages["/"] = shell("Members", links(*paths))
    for at in range(40):
        body = f"<h1>{name(at)}</h1><p>{text(120, at)}</p>"
        site.pages |= dict.fromkeys((f"/m/{at}", f"/m/{at}?print=1"), shell(name(at), body, marked=True))

    class Pending(scrapy.Spider):
        name = "pending"
        start_urls = (site.url,)
        open = 0

        def parse(self, response: Any) -> Iterator[Any]:
            self.found: set[str] = set()
            found = list(response.follow_all(css="a", callback=self.member, errback=self.failed))
            self.open = len(found)
            yield from found

        def member(self, response: Any) -> Iterator[Any]:
            self.found.add(response.css("h1::text").get())
            yield from self.close_one()

        def failed(self, failure: Any) -> Iterator[Any]:
            yield from self.close_one()

        def close_one(self) -> Iterator[Any]:
            self.open -= 1
            if not self.open:
                yield from ({"name": name} for name in sorted(self.found))

    return Pending
