"""Spiders of sites whose pages are reached in several ways: by two rules, two templates, session ids, redirects."""

import random
from collections.abc import Iterator
from typing import Any, ClassVar

import scrapy
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

from tests.support.foreign.site import Site, links, one_from_each, shell
from tests.support.pages.everyday import name, text


def rules(site: Site) -> type[scrapy.Spider]:
    """CrawlSpider; one rule follows everything, another makes items, and each page is linked in both ways"""
    found = [f"/a/{at}" for at in range(40)]
    site.pages["/"] = shell(
        "Articles", links(*(f"/topic/{at}" for at in range(4)), *(path + "?from=front" for path in found))
    )
    for at in range(4):
        site.pages[f"/topic/{at}"] = shell("Topic", links(*found[at::4]))
    for at, path in enumerate(found):
        body = f"<h1>{name(at)}</h1><p class=text>{text(150, at)}</p>"
        site.pages[path] = site.pages[path + "?from=front"] = shell(name(at), body)

    class Rules(CrawlSpider):
        name = "rules"
        start_urls = (site.url,)
        rules = (
            Rule(LinkExtractor(allow=r"/a/\d+$"), callback="parse_article"),
            Rule(LinkExtractor(), follow=True),
        )

        def parse_article(self, response: Any) -> Any:
            return {"title": response.css("h1::text").get(), "text": response.css(".text::text").get()}

    return Rules


def raising(site: Site) -> type[scrapy.Spider]:
    """The callback fails on one of the two templates of a product, and makes its item of the other"""
    site.pages["/"] = shell(
        "Shop", links(*(f"/t/{at}{end}" for end in ("", "?template=new") for at in range(40)))
    )
    for at in range(40):
        for end, shown in (("", f"<b>{3 * at}.50</b>"), ("?template=new", f"<em>{3 * at}.50</em>")):
            body = f"<h1>{name(at)}</h1>{shown}<p>{text(120, at)}</p>"
            site.pages[f"/t/{at}{end}"] = shell(name(at), body, marked=True)

    def product(response: Any) -> Any:
        return {
            "name": response.css("h1::text").get(),
            "price": float(response.css("b::text").getall()[0]),
        }

    return one_from_each(site, "raising", product)


def tokens(site: Site) -> type[scrapy.Spider]:
    """All links have a session id, which is another one in each crawl"""
    session = f"{random.getrandbits(64):x}"
    site.pages["/"] = shell("Directory", links(*(f"/person/{at}?sid={session}" for at in range(40))))
    for at in range(40):
        body = f"<h1>Directory</h1><b>{name(at)}</b><p class=own>{text(60, at)}</p><p>{text(60, 'who')}</p>"
        site.pages[f"/person/{at}?sid={session}"] = shell(f"{name(at)} - Directory", body)

    class Tokens(scrapy.Spider):
        name = "tokens"
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            if called := response.css("b::text").get():
                yield {"name": called, "text": response.css(".own::text").get()}
            yield from response.follow_all(css="a")

    return Tokens


def shallow(site: Site) -> type[scrapy.Spider]:
    """DEPTH_LIMIT, depth first: the same list is met at the limit at first, and nearer to the front page later"""
    found = [f"/z/{at}" for at in range(40)]
    site.pages["/"] = shell("Shop", links("/terms", "/later", "/gone", "/gone/2", "/gone/3", "/one"))
    site.pages["/later"] = shell("Later", links("/list") + text(60, "later"))
    site.pages["/one"] = shell("Ways", links("/two") + text(60, "one"))
    site.pages["/two"] = shell("More ways", links("/list?from=two") + text(60, "two"))
    site.pages["/list"] = site.pages["/list?from=two"] = shell(
        "All products", links(*found) + text(80, "list")
    )
    for at, path in enumerate(found):
        site.pages[path] = shell(name(at), f"<h1>{name(at)}</h1><p class=own>{text(100, at)}</p>")

    class Shallow(scrapy.Spider):
        name = "shallow"
        start_urls = (site.url,)
        custom_settings: ClassVar[dict[str, Any]] = {"DEPTH_LIMIT": 3, "CONCURRENT_REQUESTS": 1}

        def parse(self, response: Any) -> Iterator[Any]:
            if own := response.css(".own::text").get():
                yield {"text": own}
            yield from response.follow_all(css="a")

    return Shallow


def domain(site: Site) -> type[scrapy.Spider]:
    """A search engine's spider: every link of a domain, many of them with a campaign's name, an item for each text"""
    links_of = [f"/article/{at}{end}" for at in range(40) for end in ("", "?utm_source=mail", "?print=1")]
    for at in range(40):
        onward = links(*(link for link in links_of if hash_of(link) % 8 == at % 8))
        page = shell(name(at), f"<h1>{name(at)}</h1><p class=text>{text(150, at)}</p>{onward}")
        for end in ("", "?utm_source=mail", "?print=1"):
            site.pages[f"/article/{at}{end}"] = page
    site.pages["/"] = shell("News", links(*links_of[:30]))

    class Domain(scrapy.Spider):
        name = "domain"
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            if written := response.css(".text::text").get():
                yield {"url": response.url, "title": response.css("title::text").get(), "text": written}
            for link in LinkExtractor().extract_links(response):
                yield scrapy.Request(link.url)

    return Domain


def hash_of(words: str) -> int:
    return sum(ord(letter) * (at + 1) for at, letter in enumerate(words))
