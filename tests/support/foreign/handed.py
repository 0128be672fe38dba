"""Spiders that put their items together: of lists and details, of several pages, inline, and of feeds."""

from collections.abc import Iterator
from typing import Any

import scrapy
from scrapy.dupefilters import RFPDupeFilter
from scrapy.spiders import SitemapSpider

from tests.support.foreign.site import Asked, Site, links, shell
from tests.support.pages.everyday import name, text


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
