"""A spider that many projects have."""

from collections.abc import Callable, Iterator
from typing import Any

import scrapy

from tests.support.foreign.site import Site


def one_from_each(site: Site, called: str, item: Callable[[Any], Any], css: str = "a") -> type[scrapy.Spider]:
    """Returns a spider that follows links of the front page, and makes one item of each of their pages."""

    class OneFromEach(scrapy.Spider):
        name = called
        start_urls = (site.url,)

        def parse(self, response: Any) -> Iterator[Any]:
            yield from response.follow_all(css=css, callback=self.parse_page)

        def parse_page(self, response: Any) -> Iterator[Any]:
            yield item(response)

    return OneFromEach
