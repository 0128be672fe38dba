"""Spiders of strangers, which know nothing of the filter, and sites as their selectors expect them.

Each function is a shape found in public collections of spiders, written anew: it fills a site, and returns its spider.
Called again, it makes the site as it was at the beginning.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from itemadapter import ItemAdapter
from scrapy import Spider, signals
from scrapy.utils.test import get_crawler

from tests.support.foreign import feeds, handed, hidden, records, shops, signs, stores, trouble, ways
from tests.support.foreign.site import Site, serving

__all__ = [
    "SHAPES",
    "Gathered",
    "Shape",
    "feeds",
    "gather",
    "handed",
    "hidden",
    "records",
    "serving",
    "shops",
    "signs",
    "stores",
    "trouble",
    "ways",
]

Shape = Callable[[Site], type[Spider]]

SHAPES: tuple[Shape, ...] = (
    stores.frames,
    stores.locator,
    stores.regions,
    stores.branches,
    stores.lots,
    stores.scripts,
    stores.markers,
    stores.linked_data,
    stores.grid,
    records.opinions,
    records.register,
    records.pager,
    records.tickets,
    records.gazette,
    records.meetings,
    records.rates,
    records.forum,
    records.profiles,
    records.jobs,
    feeds.postbacks,
    feeds.members,
    shops.variants,
    shops.categories,
    shops.polling,
    shops.sessions,
    shops.inline,
    shops.rendered,
    feeds.xml_feed,
    feeds.csv_feed,
    feeds.scroll,
    feeds.interface,
    shops.gallery,
    shops.on_request,
    trouble.captcha,
    trouble.mirror,
    trouble.headers,
    trouble.closed,
    ways.domain,
    ways.rules,
    ways.previews,
    ways.raising,
    ways.tokens,
    ways.redirected,
    trouble.languages,
    trouble.stock,
    ways.shallow,
    handed.fragments,
    handed.twice,
    handed.assembled,
    handed.awaits,
    handed.alternates,
    handed.by_id,
    handed.fed,
    handed.pending,
    hidden.seats,
    hidden.inputs,
    hidden.commented,
    hidden.charts,
    hidden.cards,
    hidden.stars,
    hidden.protected,
    hidden.seasons,
    hidden.cleaned,
    hidden.enough,
    hidden.escaped,
    signs.ticks,
    signs.gauges,
)


class Gathered(NamedTuple):
    """What came of a crawl."""

    contents: set[str]  #: items without their URLs
    stats: dict[str, Any]


def gather(shape: Shape, site: Site, **settings: Any) -> Gathered:
    """Crawls a site with the spider of this shape."""
    spider = shape(site)
    crawler = get_crawler(spider, settings)
    contents = set()

    def scraped(item: Any) -> None:
        fields = ItemAdapter(item).asdict()
        contents.add(json.dumps({name: fields[name] for name in fields if name != "url"}, default=str))

    crawler.signals.connect(scraped, signals.item_scraped)
    asyncio.run(crawler.crawl_async())
    assert crawler.stats.get_value("finish_reason") == "finished", crawler.stats.get_stats()
    return Gathered(contents, crawler.stats.get_stats())
