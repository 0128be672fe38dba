"""Spiders of strangers, which know nothing of the filter, and sites as their selectors expect them.

Each function is a shape found in public collections of spiders, written anew: it fills a site, and returns its spider.
Called again, it makes the site as it was at the beginning.
"""

import asyncio
import json
from collections.abc import Callable
from inspect import isfunction, signature
from typing import Any, NamedTuple

from itemadapter import ItemAdapter
from scrapy import Spider, signals
from scrapy.utils.test import get_crawler

from tests.support.foreign import feeds, handed, hidden, records, shops, trouble, ways
from tests.support.foreign.site import Site
from tests.support.foreign.site import serving as serving

Shape = Callable[[Site], type[Spider]]

#: All functions of these modules that a site alone is given.
SHAPES: tuple[Shape, ...] = tuple(
    found
    for module in (records, feeds, shops, trouble, ways, handed, hidden)
    for found in vars(module).values()
    if isfunction(found)
    and found.__module__ == module.__name__
    and [*signature(found).parameters] == ["site"]
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
